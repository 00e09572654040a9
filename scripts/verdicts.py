"""Checks every solution and every slow mutant on the virtual GPU and on a real one, and says where verdicts differ.

    python scripts/verdicts.py OUTPUT.json [KATA ...]

Without a GPU only the virtual half runs. A ratio within the margin of its threshold is "close": there the two may
differ. The exit code is 1 if they differ anywhere else.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from checker import devices, runner  # noqa: E402  (found through the line above)
from checker.catalog import Kata, load  # noqa: E402  (found through the line above)
from checker.verdict import Report  # noqa: E402  (found through the line above)

ROOT = HERE.parent
SEED = 1


def verdict(report: Report) -> dict[str, Any]:
    """Whether it passes, the first finding, and by case the time, the ratio and what limits."""
    keys = ("us", "low", "high", "basis", "ratio", "at_least", "to", "enough", "close", "share_of_bound", "limiter",
            "torch_us", "reference_us")  # fmt: skip
    return {
        "passed": report.passed,
        "code": report.findings[0].code if report.findings else None,
        "cases": {row["case"]: {key: row[key] for key in keys} for row in report.performance},
    }


def subjects(katas: list[Kata]) -> list[tuple[Kata, Path]]:
    """The solution of each kata that is timed, then its slow mutants."""
    found = []
    for kata in katas:
        slow = sorted((ROOT / "tests" / "mutants" / kata.id).glob("slow_*.py"))
        found += [(kata, path) for path in (kata.solution, *slow)]
    return found


def differing(virtual: dict[str, Any], real: dict[str, Any]) -> list[str]:
    """The cases in which the two decide otherwise, those that are close left out."""
    if virtual["passed"] == real["passed"] and not real["cases"]:
        return []
    names = virtual["cases"].keys() & real["cases"].keys()
    wrong = [
        name
        for name in sorted(names)
        if virtual["cases"][name]["enough"] != real["cases"][name]["enough"]
        and not (virtual["cases"][name]["close"] or real["cases"][name]["close"])
    ]
    stopped = virtual["passed"] != real["passed"] and not names
    return wrong + ["(before speed)"] * stopped


def main(target: str, wanted: list[str]) -> int:
    """Runs everything, prints a line a file, writes `target`."""
    katas = [kata for kata in load(ROOT) if kata.speed and (not wanted or f"{kata.number:02}" in wanted)]
    kinds = ["virtual"] if devices.problem() else ["virtual", "cuda"]
    results: dict[str, dict[str, Any]] = {}
    differences = 0
    for kata, path in subjects(katas):
        name = f"{kata.id}/{path.stem}"
        results[name] = {
            kind: verdict(runner.check(kata, root=ROOT, file=path, seed=SEED, device=kind)) for kind in kinds
        }
        wrong = differing(*results[name].values()) if len(kinds) == 2 else []
        differences += len(wrong)
        shown = []
        for case, row in results[name]["virtual"]["cases"].items():
            real = results[name].get("cuda", {}).get("cases", {}).get(case)
            beside = f" | real {real['us']:9.1f} us, ratio {real['ratio']}" if real else ""
            shown.append(f"    {case:48} {row['us']:9.1f} us, ratio {row['ratio']}{beside}")
        codes = " / ".join(str(results[name][kind]["code"] or "passes") for kind in kinds)
        print(f"{'DIFFERS ' if wrong else ''}{name}: {codes} {', '.join(wrong)}", *shown, sep="\n", flush=True)
        Path(target).write_text(json.dumps(results, indent=1) + "\n")
    print(f"{len(results)} files, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    raise SystemExit(main(sys.argv[1], sys.argv[2:]))
