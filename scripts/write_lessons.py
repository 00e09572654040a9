"""Writes into each kata's README what `kata check` says about the unsolved kata, so that no lesson shows an old report.

tests/test_katas.py fails where they differ; `python scripts/write_lessons.py` mends it.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from checker import report as reports
from checker import runner
from checker.catalog import Kata, load
from checker.commands.running import after
from checker.commands.session import Session
from checker.progress import Store
from checker.runner import Start
from checker.warm import Warm

ROOT = Path(__file__).resolve().parent.parent


def unsolved_check(kata: Kata, start: Start | None = None) -> str:
    """What a learner sees who checks the kata before touching it, without what differs from machine to machine.

    The seed is fixed: values in the report are those of one draw. `start` is as for `runner.check`. Needs Triton.
    """
    # In a copy, because this tree may be a learner's own.
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for part in ("katas", "solutions"):
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("kernel.py", "__pycache__"))
        katas = load(root)
        own = next(one for one in katas if one.id == kata.id)
        store = Store(root, katas)
        session = Session(root, katas, store, store.read())
        session.unlock(own)
        report = runner.check(own, root=root, seed=1, start=start)
        if report.passed:
            raise SystemExit(f"the skeleton of {kata.id} passes")
        said = reports.render(
            report,
            reports.Look(width=100),
            next_step=after(session, own, report),
            path=session.path(own.kernel),
        )
    return re.sub(r"^Checked on .*\n(Seed .*\n)?\n?", "", said, flags=re.MULTILINE).strip() + "\n"


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
    with Warm() as warm:
        for kata in load(ROOT):
            text = kata.readme.read_text(encoding="utf-8")
            kata.readme.write_text(renewed(text, kata, unsolved_check(kata, warm.start)), encoding="utf-8")


if __name__ == "__main__":
    main()
