"""Writes into each kata's README what `kata check` says about the unsolved kata, so that no lesson shows an old report.

tests/test_katas.py fails where they differ; `python scripts/write_lessons.py` mends it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from checker.catalog import Kata, load

ROOT = Path(__file__).resolve().parent.parent


def unsolved_check(kata: Kata) -> str:
    """What a learner sees who checks the kata before touching it, without what differs from machine to machine.

    The seed is fixed: values in the report are those of one draw. Needs Triton.
    """
    command = [sys.executable, "-m", "checker", "check", str(kata.number), "--seed", "1"]
    environment = {**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    environment.pop("KATA_ROOT", None)
    # In a copy, because a check begins a learner's progress, and this tree may be a learner's own.
    with tempfile.TemporaryDirectory() as folder:
        for part in ("katas", "solutions"):
            shutil.copytree(ROOT / part, Path(folder, part), ignore=shutil.ignore_patterns("kernel.py", "__pycache__"))
        # As `kata next` does when it unlocks a kata.
        own = Path(folder, "katas", kata.id)
        shutil.copy(own / "skeleton.py", own / "kernel.py")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 1:
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}, not 1:\n{done.stdout}{done.stderr}")
    return re.sub(r"^Checked on .*\n(Seed .*\n)?\n?", "", done.stdout, flags=re.MULTILINE).strip() + "\n"


def shown(readme: str, kata: Kata) -> str:
    """What the README shows at present. ValueError if its markers are gone."""
    found = _block(kata).search(readme)
    if found is None:
        raise ValueError(f"the README of {kata.id} has lost the markers of the output")
    return found[2]


def renewed(readme: str, kata: Kata, output: str) -> str:
    """The README with another output in its place."""
    return _block(kata).sub(lambda found: found[1] + output + found[3], readme)


def _block(kata: Kata) -> re.Pattern[str]:
    name = re.escape(f"<!-- output of kata check {kata.number:02} -->")
    return re.compile(rf"({name}\n```text\n)(.*?)(```\n)", re.DOTALL)


def main() -> None:
    """Write every lesson anew."""
    for kata in load(ROOT):
        text = kata.readme.read_text(encoding="utf-8")
        kata.readme.write_text(renewed(text, kata, unsolved_check(kata)), encoding="utf-8")


if __name__ == "__main__":
    main()
