"""Runs checks for the commands: shows what is going on, prints the report, keeps the progress.

`check`, `next` and `watch` differ in what they do with a verdict, not in how they come to it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from checker import report as reports
from checker.catalog import Kata
from checker.commands.session import Session, require_linux, width
from checker.errors import ENVIRONMENT, NOT_PASSED, PASSED
from checker.progress import digest
from checker.verdict import Report

if TYPE_CHECKING:
    from rich.status import Status


@dataclass(frozen=True, slots=True)
class Options:
    """How to check; the fields are the options of `kata check`."""

    file: Path | None = None
    device: str = "auto"
    gpu: str = "h200"
    seed: int | None = None
    quick: bool = False
    verbose: bool = False


def run_check(session: Session, kata: Kata, options: Options, *, quiet: bool = False) -> Report:
    """Check one kata and keep what follows from the verdict. `quiet` shows no progress display."""
    require_linux("kata check")
    file = options.file or session.file_of(kata)
    before = digest(file)
    from checker import runner

    with _display(kata, quiet=quiet) as on_record:
        report = runner.check(
            kata,
            file=file,
            root=session.root,
            gpu=options.gpu,
            device=options.device,
            seed=options.seed,
            quick=options.quick,
            verbose=options.verbose,
            reveal=session.progress.reveals(kata, before),
            on_record=on_record,
        )
    # A file saved while it was being checked has no verdict: what passed may not be what is there.
    if file == kata.kernel and before is not None and before == digest(file):
        keep(session, kata, report, before, quick=options.quick)
    return report


def keep(session: Session, kata: Kata, report: Report, sha: str, *, quick: bool = False) -> None:
    """Record a pass, or a try at the predictions. A quick check is no pass, and a locked kata keeps no record."""
    state = session.progress.state(kata)
    if state == "locked":
        return
    wrong = any(stage.name == "predictions" and stage.status == "failed" for stage in report.stages)
    if report.passed and not quick and session.progress.passed.get(kata.id) != sha:
        session.update(lambda progress: progress.passes(kata, sha))
    elif wrong:
        session.update(lambda progress: progress.tried(kata, sha))


def print_report(session: Session, report: Report, *, verbose: bool, next_step: str) -> None:
    """Write the report to stdout, with colour where stdout shows it."""
    click.echo(
        reports.render(
            report,
            look(verbose=verbose),
            next_step=next_step,
            path=session.path(Path(report.file)),
        )
    )


def look(*, verbose: bool) -> reports.Look:
    """How stdout wants to be written to. NO_COLOR, pipes and terminals without UTF-8 are respected."""
    tty = sys.stdout.isatty()
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return reports.Look(
        width=width(),
        color=tty and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb",
        ascii=not encoding.startswith("utf"),
        verbose=verbose,
    )


def after(session: Session, kata: Kata, report: Report, *, quick: bool = False) -> str:
    """What to do next, after this verdict."""
    own = report.file == str(kata.kernel)
    if report.passed:
        if quick:
            return f"The quick check passes. `kata check {kata.number:02}` asks everything."
        if not own or session.progress.state(kata) == "locked":
            return ""
        if session.progress.following(session.katas):
            return "Next: `kata next` unlocks the next kata."
        left = next((one for one in session.katas if session.progress.state(one) != "passed"), None)
        return f"Next: `kata check {left.number:02}`." if left else "All katas of the ladder are passed."
    if exit_code(report) == ENVIRONMENT:
        return "This is the machine, not your kernel: nothing of yours was judged. Mend what is named, and check again."
    line = _where(report)
    place = session.path(Path(report.file)) + (f", line {line}" if line else "")
    if not own:
        return f"Next: open {place}, and check again."
    return (
        f"Next: open {place}. {session.path(kata.readme)} tells the idea, `kata hint {kata.number:02}` helps, "
        f"`kata check {kata.number:02}` checks again."
    )


def _where(report: Report) -> int | None:
    """The line to begin at: the first TODO if none was begun or if nothing more exact is known, else the finding's."""
    open_todos = [todo.line for todo in report.todos if todo.untouched]
    found = [finding for finding in report.findings if finding.line and finding.file == report.file]
    exact = [finding.line for finding in found if finding.column is not None]
    begun = len(open_todos) < len(report.todos)
    return next(iter((exact if begun else []) + open_todos + [finding.line for finding in found]), None)


def exit_code(report: Report) -> int:
    """0 passed, 3 where the machine is to blame, else 1."""
    if report.passed:
        return PASSED
    return ENVIRONMENT if any(finding.code == "K006" for finding in report.findings) else NOT_PASSED


@contextmanager
def _display(kata: Kata, *, quiet: bool) -> Iterator[Callable[[Mapping[str, Any]], None] | None]:
    """A line on stderr that says which case is running, where stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    display = _Display(kata.id)
    try:
        yield display.on_record
    finally:
        display.close()


class _Display:
    """The line itself. rich draws it, and is imported on the first record: by then the child does the waiting."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._status: Status | None = None
        self._green = self._red = 0
        click.echo(f"{name}: starting", nl=False, err=True)

    def on_record(self, record: Mapping[str, Any]) -> None:
        """Show what a record says has begun."""
        if record["kind"] == "end":
            self._green += record["outcome"] == "passed"
            self._red += record["outcome"] == "failed"
        elif record["kind"] == "start":
            from rich.text import Text

            what = record.get("case") or record["name"]
            status = self._shown()
            # As Text, since a case id may hold what rich would take for markup. Longer than a line it would wrap.
            line = Text(f"{self._name}: {self._green} green, {self._red} red; {what}")
            line.truncate(status.console.width - len("⠋ "), overflow="ellipsis")
            status.update(line)

    def _shown(self) -> Status:
        if self._status is None:
            from rich.console import Console

            self._clear()
            self._status = Console(stderr=True).status("")
            self._status.start()
        return self._status

    def _clear(self) -> None:
        click.echo("\r" + " " * (len(self._name) + len(": starting")) + "\r", nl=False, err=True)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._status is None:
            self._clear()
        else:
            self._status.stop()
