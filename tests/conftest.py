"""Fixtures that more than one test file uses."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
from gate_process import RUNNING, GateProcess, wanted

from checker import verdict
from checker.catalog import Kata
from checker.findings import STAGES, Finding
from checker.warm import Warm

# A shell that runs these tests in the background has them ignore Ctrl-C, and a child would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the gate last: its checks run in the background from the start."""
    items.sort(key=lambda item: item.path.name == "test_gate.py")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start what the gate's tests will wait for, if any were selected."""
    files = list(wanted(session.items))
    if files and not session.config.option.collectonly:
        session.config.stash[RUNNING] = GateProcess(files)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End what is left of it."""
    if RUNNING in session.config.stash:
        session.config.stash[RUNNING].close()


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """A process that has torch and Triton imported and forks a child for each check; one for all tests."""
    with Warm() as process:
        yield process


SKELETON = '''"""A kata as small as can be."""


def {entry}(x):
    # TODO(1): begin
    # END TODO(1)
    # TODO(2): finish
    return None
    # END TODO(2)
'''
TOML = """
id = "{id}"
title = "The {entry} kata"
lesson = {lesson}
minutes = 15
outcomes = ["L1.1"]
entry = "{entry}"
signature = "{entry}(x) -> y"
requires = []
start = "blank"
fails_at = "memory"
aliases = ["{alias}"]
[[todo]]
number = 1
text = "begin"
hints = ["first of one", "second of one"]
[[todo]]
number = 2
text = "finish"
hints = ["first of two", "second of two", "third of two"]
"""
LESSONS = """
[[lesson]]
number = 1
title = "What it is"
[lesson.outcomes]
"L1.1" = "say what it is"
[[lesson]]
number = 2
title = "What it does"
[lesson.outcomes]
"L2.1" = "say what it does"
"""
LADDER = (("01_first_step", "first_step", 1, "begin"), ("05_second", "second", 2, "add"), ("13_third", "third", 2, "t"))


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone with three small katas, and the working directory in it."""
    root = tmp_path / "clone"
    (root / "solutions").mkdir(parents=True)
    (root / "katas").mkdir()
    (root / "katas" / "outcomes.toml").write_text(LESSONS)
    for name, entry, lesson, alias in LADDER:
        folder = root / "katas" / name
        folder.mkdir(parents=True)
        (folder / "kata.toml").write_text(TOML.format(id=name, entry=entry, lesson=lesson, alias=alias))
        (folder / "skeleton.py").write_text(SKELETON.format(entry=entry))
        (folder / "README.md").write_text(f"# {entry}\n")
    monkeypatch.chdir(root)
    monkeypatch.delenv("KATA_ROOT", raising=False)
    return root


@dataclass
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str


@pytest.fixture
def kata(tree: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Runs `kata ...` in this process, in the tree."""
    from checker.cli import run

    def call(*arguments: str) -> Outcome:
        code = run(arguments)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return call


class Runner(ModuleType):
    """Stands in for `checker.runner`, which needs torch: a file passes if its text says so. Keeps its calls."""

    def __init__(self) -> None:
        super().__init__("checker.runner")
        self.calls: list[dict[str, object]] = []

    def check(self, kata: Kata, *, file: Path, **options: object) -> verdict.Report:
        self.calls.append({"kata": kata.id, "file": file, **options})
        text = file.read_text()
        passed, stages, findings = "# right" in text, "values", ()
        if "# wrong prediction" in text:
            passed, stages = False, "predictions"
        if not passed:
            code = {"values": "K601", "predictions": "K651"}[stages]
            findings = (Finding(code, "it is not what was asked for", "look at the formula", file=str(file), line=4),)
        return verdict.Report(
            kata=kata.id,
            file=str(file),
            passed=passed,
            device={"kind": "virtual", "name": "NVIDIA H200", "target": "sm_90"},
            seed=7,
            stages=tuple(verdict.Stage(name, "failed" if findings and name == stages else "passed") for name in STAGES),
            findings=findings,
        )

    def debug(self, kata: Kata, case: str, program: int | None, root: Path) -> int:
        self.calls.append({"kata": kata.id, "case": case, "program": program, "root": root})
        return 0


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Puts the stand-in in place of `checker.runner`."""
    import checker

    fake = Runner()
    monkeypatch.setitem(sys.modules, "checker.runner", fake)
    monkeypatch.setattr(checker, "runner", fake, raising=False)
    monkeypatch.setattr("checker.commands.session.sys.platform", "linux")
    return fake
