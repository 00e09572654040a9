"""`kata doctor`: is it the machine? What is installed, what is missing, and a known kernel on every device."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import click

from checker.commands.running import look
from checker.doctor.examination import KERNEL, examine
from checker.doctor.item import Item
from checker.errors import ENVIRONMENT, PASSED
from checker.report import MARKS, Look

SCHEMA = 1
"""Version of the JSON document."""
_MARKS = {"ok": "passed", "note": "skipped", "trouble": "failed", "not_run": "not_run"}


@click.command("doctor", short_help="Look at the machine: what is missing, and the command that mends it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def command(as_json: bool) -> int:
    """Look at Python, PyTorch, Triton and whether they fit, ptxas, C compiler, cache, memory, GPU and driver.

    Then run a kernel known to be good on the virtual GPU, and on a real one if there is one, and compare its values.
    Each trouble comes with the command that mends it. No GPU is no trouble. Exit code: 0, or 3 if something is missing.
    """
    style = look(verbose=False)
    items: list[Item] = []
    progress = _Progress(quiet=as_json)
    try:
        for item in examine(progress.show):
            progress.clear()
            items.append(item)
            if not as_json:
                click.echo(text_of(item, style))
    finally:
        progress.clear()
    troubles = [item for item in items if item.status == "trouble"]
    if as_json:
        document = {"schema": SCHEMA, "ok": not troubles, "items": [asdict(item) for item in items]}
        click.echo(json.dumps(document, indent=2))
    else:
        click.echo("\n" + "\n".join(style.fill(line) for line in conclusion(items)))
    return ENVIRONMENT if troubles else PASSED


def text_of(item: Item, style: Look) -> str:
    """One item: a line, and below it the advice and the command."""
    mark, plain, colour = MARKS[_MARKS[item.status]]
    lines = [f"{style.paint(plain if style.ascii else mark, colour)} {style.paint(item.name, bold=True)}: {item.found}"]
    if item.advice:
        lines.append(style.fill(item.advice, "    "))
    if item.command:
        # Never wrapped: it is there to be copied.
        lines.append(style.paint(f"    $ {item.command}", "cyan"))
    return "\n".join(lines)


def conclusion(items: Sequence[Item]) -> Iterator[str]:
    """What it all means for somebody with a kernel that fails."""
    troubles = [item for item in items if item.status == "trouble"]
    well = [item.name.removeprefix(KERNEL) for item in items if item.name.startswith(KERNEL) and item.status == "ok"]
    if not troubles:
        yield "Nothing is missing. If a kernel of yours fails, look at the kernel: `kata check` says on which line."
        return
    names = ", ".join(item.name for item in troubles)
    yield f"Missing or broken: {names}. Run the command below each, then `kata doctor` again."
    if well:
        yield f"A kernel known to be good runs on {' and '.join(well)} all the same: katas can be checked there."


class _Progress:
    """A line on stderr while a kernel runs, where stderr is a terminal. Not rich's: rich may be what is missing."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet or not sys.stderr.isatty()
        self._shown = ""

    def show(self, name: str) -> None:
        """Say what is going on, until the next `clear`."""
        if not self._quiet:
            self._shown = f"{name}: compiling and running"
            click.echo(self._shown, nl=False, err=True)

    def clear(self) -> None:
        """Leave the line as it was."""
        if self._shown:
            click.echo("\r" + " " * len(self._shown) + "\r", nl=False, err=True)
            self._shown = ""
