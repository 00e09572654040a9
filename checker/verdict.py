"""From the records of a check to its verdict. Pure: no files, no processes, no words for the terminal.

The plugin writes one record as each thing happens, so that a check which dies half-way still says how far it came.
`conclude` reads them in order and decides which stage is red, which findings are one, and what was never run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from checker.findings import STAGES, Finding

NEVER_BLOCKS = frozenset({"predictions"})
"""Stages that may be red without stopping a later one."""

ONE_A_LINE = frozenset({"compile", "memory", "values"})
"""Stages that one run of a case passes through: what they find on one line has one root."""


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the check. `status` is passed, failed, not_run or skipped; `reason` says why, or counts."""

    name: str
    status: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Todo:
    """One `# TODO(n)` block that is still in the learner's file; `untouched` if it reads as in the skeleton."""

    number: int
    line: int
    text: str
    untouched: bool


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found. `device` has the keys kind, name and target; `versions` python, torch and triton.

    `findings` are those of the earliest red stage, one per root cause, in the order of the tests. `later` holds the
    findings of later stages, for `-v`. `seconds` is wall time.
    """

    kata: str
    file: str
    passed: bool
    device: Mapping[str, str]
    seed: int
    stages: tuple[Stage, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()
    todos: tuple[Todo, ...] = ()
    cases_green: int = 0
    cases_total: int = 0
    smallest_failing: str | None = None
    seconds: float = 0.0
    performance: tuple[Mapping[str, Any], ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    later: tuple[Finding, ...] = ()

    @property
    def red(self) -> Stage | None:
        """The earliest stage that failed."""
        return next((stage for stage in self.stages if stage.status == "failed"), None)


@dataclass(slots=True)
class _Test:
    name: str
    stage: str
    case: str | None
    started: bool = False
    outcome: str | None = None
    reason: str = ""
    findings: list[Finding] = field(default_factory=list)


@dataclass(slots=True)
class _Log:
    """The records of one check, sorted by what they are about."""

    session: dict[str, Any] = field(default_factory=dict)
    todos: tuple[Todo, ...] = ()
    tests: dict[str, _Test] = field(default_factory=dict)
    loose: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
    performance: list[Mapping[str, Any]] = field(default_factory=list)
    done: bool = False

    def add(self, record: Mapping[str, Any]) -> None:
        """Sort one record. A kind it does not know is passed over, so that a newer plugin can say more."""
        match record["kind"]:
            case "session":
                self.session = dict(record)
            case "collected":
                for test in record["tests"]:
                    self._test(test)
            case "todos":
                self.todos = tuple(Todo(**todo) for todo in record["todos"])
            case "start":
                self._test(record).started = True
            case "finding":
                finding = Finding.from_dict(record["finding"])
                owner = self.tests.get(record.get("test") or "")
                (owner.findings if owner else self.loose).append(finding)
            case "note":
                if record["text"] not in self.notes:
                    self.notes.append(record["text"])
            case "performance":
                self.performance.append(record["row"])
            case "end":
                ended = self.tests.get(record["test"])
                if ended is not None:
                    ended.outcome, ended.reason = record["outcome"], record.get("reason") or ""
            case "skip_stage":
                self.skipped[record["stage"]] = record["reason"]
            case "done":
                self.done = True

    def _test(self, record: Mapping[str, Any]) -> _Test:
        test = _Test(record["name"], record["stage"], record.get("case"))
        return self.tests.setdefault(record["test"], test)

    def running(self) -> _Test | None:
        """The test that was running when the records stopped."""
        return next((test for test in self.tests.values() if test.started and test.outcome is None), None)

    def findings(self) -> Iterator[Finding]:
        """All findings: those before any test first, then in the order of the tests."""
        yield from self.loose
        for test in self.tests.values():
            yield from test.findings
            if test.outcome == "failed" and not test.findings:
                yield Finding(
                    "K007",
                    f"the test '{test.name}' failed and named no reason{': ' + test.reason if test.reason else ''}",
                    "this is a fault of the checker: please report it with the command and the seed",
                    case=test.case,
                    stage_override=test.stage,
                )


def conclude(
    records: Iterable[Mapping[str, Any]],
    *,
    kata: str,
    file: str,
    seed: int,
    device: Mapping[str, str],
    seconds: float = 0.0,
    ended: Finding | None = None,
) -> Report:
    """The verdict over the records of one check.

    `kata`, `file`, `seed` and `device` are what the runner asked for; the session record, where the child came far
    enough to write one, has the last word on seed and device. `ended` is what the runner knows about a child that did
    not finish (time, memory, a signal, an exit); it belongs to the test that was running.
    """
    log = _Log()
    for record in records:
        log.add(record)
    if ended is None and not log.done:
        ended = Finding(
            "K003",
            "the process that ran the check ended without finishing it",
            "run it again with -v; if it happens again, look at what the file does outside its kernels",
        )
    if ended is not None:
        log.loose.append(_place(ended, log.running()))
    elif not any(test.started for test in log.tests.values()) and not log.loose:
        log.loose.append(Finding("K007", "no test ran", "this is a fault of the checker: please report it"))

    found = _one_per_root(log.findings())
    red = _earliest({finding.stage for finding in found})
    shown = tuple(finding for finding in found if finding.stage == red)
    green, total, smallest = _count(log.tests.values())
    stages = tuple(_stage(name, log, found) for name in STAGES)
    return Report(
        kata=kata,
        file=file,
        passed=not any(stage.status == "failed" for stage in stages) and log.done and _something_was_judged(log),
        device=log.session.get("device", device),
        seed=log.session.get("seed", seed),
        stages=stages,
        findings=shown,
        later=tuple(finding for finding in found if finding.stage != red),
        notes=tuple(log.notes),
        todos=log.todos,
        cases_green=green,
        cases_total=total,
        smallest_failing=smallest,
        seconds=seconds,
        performance=tuple(log.performance),
        versions=log.session.get("versions", {}),
    )


def _something_was_judged(log: _Log) -> bool:
    """Whether a test passed, and none before the speed stage was left out that had something to ask."""
    asked = [test for test in log.tests.values() if test.stage != "speed" and "empty parameter set" not in test.reason]
    return any(test.outcome == "passed" for test in asked) and all(test.outcome != "skipped" for test in asked)


def _place(finding: Finding, test: _Test | None) -> Finding:
    """Attribute the end of the process to the test that was running, or to the import of the file."""
    if test is None:
        return finding
    return replace(finding, case=finding.case or test.case, stage_override=finding.stage_override or test.stage)


def _earliest(stages: Iterable[str]) -> str | None:
    return min(stages, key=STAGES.index, default=None)


def _one_per_root(findings: Iterable[Finding]) -> list[Finding]:
    """Keep the first finding of each root cause, and say in which other cases it was met.

    A wrong line looks different from case to case: a value here, a byte outside there. Cases go from small to large, so
    what it showed first is the simplest way to see it, and the rest are its consequences.
    """
    first: dict[tuple[str, str | None, int | None], Finding] = {}
    cases: dict[tuple[str, str | None, int | None], list[str]] = {}
    lines: dict[tuple[str | None, int], Finding] = {}
    for finding in findings:
        root = finding.root()
        if finding.stage in ONE_A_LINE and finding.line is not None:
            simplest = lines.setdefault((finding.file, finding.line), finding)
            root = simplest.root()
        first.setdefault(root, finding)
        if finding.case and finding.case != first[root].case and finding.case not in cases.setdefault(root, []):
            cases[root].append(finding.case)
    return [_with_other_cases(finding, cases.get(root, [])) for root, finding in first.items()]


def _with_other_cases(finding: Finding, others: Sequence[str], named: int = 3) -> Finding:
    if not others:
        return finding
    # Semicolons, because ids may hold commas.
    more = f"; and {len(others) - named} more" if len(others) > named else ""
    detail = f"also in {len(others)} other {'case' if len(others) == 1 else 'cases'}: {'; '.join(others[:named])}{more}"
    return replace(finding, details=(*finding.details, detail))


def _stage(name: str, log: _Log, found: Sequence[Finding]) -> Stage:
    red = {finding.stage for finding in found}
    blocking = _earliest(red - NEVER_BLOCKS)
    if blocking is not None and STAGES.index(blocking) < STAGES.index(name):
        # What another case showed in a later stage waits until this one is green.
        return Stage(name, "not_run", f"stopped by {blocking}")
    if name in red:
        return Stage(name, "failed", _reason(name, log))
    if name in log.skipped:
        return Stage(name, "skipped", log.skipped[name])
    # One test of a case compiles, traces and compares: it is the evidence for three stages at once.
    evidence = "values" if name in ("source", "compile", "memory") else name
    tests = [test for test in log.tests.values() if test.stage == evidence]
    if any(test.outcome == "passed" or test.findings for test in tests):
        return Stage(name, "passed", _reason(name, log))
    skipped = next((test.reason for test in tests if test.outcome == "skipped"), None)
    if skipped is not None:
        return Stage(name, "skipped", skipped)
    return Stage(name, "not_run", "the check ended before" if tests else "this kata asks nothing here")


def _reason(name: str, log: _Log) -> str:
    """Counts of what a stage rests on, or the words that its own test left."""
    tests = [test for test in log.tests.values() if test.stage == name and test.outcome is not None]
    if name in ("predictions", "fairness"):
        return next((test.reason for test in tests if test.reason), "")
    cases = [test for test in tests if test.case is not None]
    if not cases:
        return ""
    green = sum(test.outcome == "passed" for test in cases)
    noun = "case" if len(cases) == 1 else "cases"
    return f"{len(cases)} {noun}" if green == len(cases) else f"{green} of {len(cases)} {noun} green"


def _count(tests: Iterable[_Test]) -> tuple[int, int, str | None]:
    """Green cases, all cases, and the smallest that failed. Cases of a stage that never started do not count."""
    tests = [test for test in tests if test.case is not None]
    alive = {test.stage for test in tests if test.started}
    counted = [test for test in tests if test.stage in alive]
    failing = [test.case for test in counted if test.outcome == "failed" and test.case is not None]
    smallest = min(failing, key=_size, default=None)
    return sum(test.outcome == "passed" for test in counted), len(counted), smallest


def _size(case: str) -> float:
    """How large a case is, read from its id: the product of its numbers. `float16` counts no number, `64x33` two."""
    numbers = re.findall(r"(?:(?<![A-Za-z0-9.])|(?<=\dx))\d+(?:\.\d+)?", case)
    product = 1.0
    for number in numbers:
        product *= float(number)
    return product if numbers else float("inf")
