"""What `compare` and `inspect` have in common: asking the workbench with a progress line, and printing a finding."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from checker import report as reports
from checker.catalog import Kata
from checker.commands.running import look
from checker.commands.session import Session
from checker.errors import ENVIRONMENT, NOT_PASSED
from checker.findings import Finding


def ask(
    task: str, kata: Kata, *, file: Path, gpu: str, options: Mapping[str, Any], quiet: bool, device: str = "virtual"
) -> tuple[dict[str, Any] | None, Finding | None]:
    """The workbench's document, or the finding in its way. Progress and what the file prints go to stderr."""
    from checker import workbench

    with _progress(kata.id, quiet=quiet) as on_record:
        answer = workbench.ask(task, kata, file=file, gpu=gpu, options=options, device=device, on_record=on_record)
    if answer.output:
        click.echo(f"The file printed:\n{answer.output}", err=True)
    if answer.document is None and answer.finding is None:
        return None, Finding("K007", "the child ended without an answer", "please report this with the command")
    return answer.document, answer.finding


def show_finding(session: Session, finding: Finding, file: Path) -> None:
    """A finding on stdout, as a check shows it."""
    click.echo(reports.finding_text(finding, str(file), session.path(file), look(verbose=False)))


def code_of(finding: Finding) -> int:
    """The exit code for a finding: 3 where the machine is to blame, else 1."""
    return ENVIRONMENT if finding.code == "K006" else NOT_PASSED


@contextmanager
def _progress(name: str, *, quiet: bool) -> Iterator[Callable[[Mapping[str, Any]], None] | None]:
    """A line on stderr that says what is being done, where stderr is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    with console.status(Text(f"{name}: starting")) as status:

        def on_record(record: Mapping[str, Any]) -> None:
            if record["kind"] == "start":
                line = Text(f"{name}: {record['name']}")
                line.truncate(console.width - len("⠋ "), overflow="ellipsis")
                status.update(line)

        yield on_record
