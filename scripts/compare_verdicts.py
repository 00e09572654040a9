"""Runs the speed tests of every solution and every slow mutant on a real GPU and on the virtual one; compares verdicts.

    python scripts/compare_verdicts.py OUTPUT.json [--repeat N]

Needs a GPU. A row is a file; its verdict is passed or the stage that is red. `--repeat` runs the solutions N times on
the real GPU: they have to pass every time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
# Where the package is installed pytest finds the plugin by itself.
PLUGIN = () if entry_points(group="pytest11", name="triton_kata") else ("-p", "checker.plugin")


def check(kata: str, file: Path, device: str) -> dict[str, Any]:
    """One run of a kata's tests on one device: the verdict, the rows of the speed stage, the findings' codes."""
    with tempfile.TemporaryDirectory() as folder:
        records = Path(folder) / "records"
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *PLUGIN),
            *(f"katas/{kata}", "--kata-file", str(file), "--kata-device", device, "--kata-seed", "1"),
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


def main() -> None:
    """Checks every file on both devices and writes what came of it."""
    target = Path(sys.argv[1])
    repeat = int(sys.argv[sys.argv.index("--repeat") + 1]) if "--repeat" in sys.argv else 1
    katas = sorted(path.parent.name for path in (ROOT / "katas").glob("*/kata.toml") if "[[speed]]" in path.read_text())
    result: dict[str, Any] = {}
    for kata in katas:
        solution = ROOT / "solutions" / f"{kata}.py"
        slow = sorted((ROOT / "tests" / "mutants" / kata).glob("slow_*.py"))
        for file in (solution, *slow):
            runs = [check(kata, file, "cuda") for _ in range(repeat if file == solution else 1)]
            modelled = check(kata, file, "virtual")
            name = f"{kata}/{'solution' if file == solution else file.stem}"
            result[name] = {"measured": runs, "modelled": modelled}
            print(
                f"{name:50s} measured {' '.join(r['verdict'] for r in runs):28s} modelled {modelled['verdict']}",
                flush=True,
            )
            target.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
