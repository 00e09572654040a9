"""Runs the speed tests of every solution and every slow mutant on a real GPU and on the virtual one; compares verdicts.

    python scripts/compare_verdicts.py OUTPUT.json [KATA ...] [--repeat N]

Needs a GPU. A row is a file; its verdict is passed or the code it is refused with. Solutions run all tests of their
kata, and `--repeat` runs them N times on the real GPU: they have to pass every time. What is modelled runs in parallel
once the GPU's work is done, because it would take the host's cores from it. The exit code is 1 where a file that passes
on one of them is refused on the other, unless a ratio is so near to its threshold that the report says "close".
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Where the package is installed pytest finds the plugin by itself.
PLUGIN = () if entry_points(group="pytest11", name="triton_kata") else ("-p", "checker.plugin")
WORKERS = max(1, (os.cpu_count() or 2) // 2)


def check(kata: str, file: Path, device: str, tests: str) -> dict[str, Any]:
    """One run of a kata's tests on one device: the verdict, the rows of the speed stage."""
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records"
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PLUGIN),
            *(f"katas/{kata}/{tests}", "--kata-file", str(file), "--kata-device", device, "--kata-seed", "1"),
            *("--kata-records", str(records)),
        ]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_DEFAULT_FP_FUSION": "1"}
        run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=280)
        lines = records.read_text().splitlines() if records.exists() else []
    found = [json.loads(line) for line in lines]
    codes = [record["finding"]["code"] for record in found if record["kind"] == "finding"]
    rows = [record["row"] for record in found if record["kind"] == "performance"]
    failed = [record for record in found if record["kind"] == "end" and record["outcome"] == "failed"]
    verdict = "passed" if not failed and any(r["kind"] == "done" for r in found) else ",".join(dict.fromkeys(codes))
    return {"verdict": verdict or f"no verdict (pytest {run.returncode}): {run.stdout[-400:]}", "rows": rows}


def differ(measured: list[dict[str, Any]], modelled: dict[str, Any]) -> bool:
    """Whether one passes and the other is refused, and no ratio is close to its threshold."""
    passed = {run["verdict"] == "passed" for run in (*measured, modelled)}
    close = any(row["close"] for run in (*measured, modelled) for row in run["rows"])
    return len(passed) > 1 and not close


def main() -> int:
    """Checks every file on both devices and writes what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("kata", nargs="*", help="a number or a folder's name; all that are timed if none is given")
    parser.add_argument("--repeat", type=int, default=1)
    asked = parser.parse_args()
    katas = sorted(path.parent.name for path in (ROOT / "katas").glob("*/kata.toml") if "[[speed]]" in path.read_text())
    katas = [kata for kata in katas if not asked.kata or kata in asked.kata or kata[:2] in asked.kata]
    result: dict[str, Any] = {}
    waiting = {}
    with ThreadPoolExecutor(WORKERS) as pool:
        todo = [(kata, ROOT / "solutions" / f"{kata}.py", asked.repeat, "") for kata in katas]
        for kata in katas:
            slow = sorted((ROOT / "tests" / "mutants" / kata).glob("slow_*.py"))
            todo += [(kata, path, 1, "test_performance.py") for path in slow]
        for kata, file, times, tests in todo:
            name = f"{kata}/{file.stem if tests else 'solution'}"
            result[name] = {"measured": [check(kata, file, "cuda", tests) for _ in range(times)]}
            print(f"{name:50s} measured {' '.join(r['verdict'] for r in result[name]['measured'])}", flush=True)
            asked.output.write_text(json.dumps(result, indent=1) + "\n")
        for kata, file, _, tests in todo:
            name = f"{kata}/{file.stem if tests else 'solution'}"
            waiting[name] = pool.submit(check, kata, file, "virtual", tests)
        for name, future in waiting.items():
            result[name]["modelled"] = future.result()
            row = result[name]
            row["differ"] = differ(row["measured"], row["modelled"])
            print(f"{name:50s} modelled {row['modelled']['verdict']}{'  DIFFERS' * row['differ']}", flush=True)
            asked.output.write_text(json.dumps(result, indent=1) + "\n")
    return int(any(row["differ"] for row in result.values()))


if __name__ == "__main__":
    sys.exit(main())
