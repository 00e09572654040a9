"""`kata watch`: the verdict on every save."""

from __future__ import annotations

import time
from pathlib import Path

import click

from checker.commands.running import after, keep, look, print_report
from checker.commands.session import open_session, require_linux
from checker.errors import KataUsageError
from checker.progress import digest
from checker.verdict import Report


@click.command("watch", short_help="Check on every save, until Ctrl-C.")
@click.argument("kata", required=False)
def command(kata: str | None) -> None:
    """Check KATA on every save, until Ctrl-C. It never unlocks: `kata next` does."""
    session = open_session()
    chosen = session.kata(kata)
    if session.progress.state(chosen) == "locked":
        raise KataUsageError(
            f"{chosen.id} is still locked, so there is no file of yours to watch.",
            next_step="`kata next` unlocks katas in their order.",
        )
    require_linux("kata watch")
    from checker import watch

    def on_report(report: Report) -> None:
        sha = digest(chosen.kernel)
        if sha is not None and not _saved_since(chosen.kernel, report.seconds):
            keep(session, chosen, report, sha)
        if look(verbose=False).color:
            click.clear()
        print_report(session, report, verbose=False, next_step=after(session, chosen, report))
        click.echo(f"\nWatching {session.path(chosen.kernel)}; Ctrl-C ends.", err=True)

    watch.watch(chosen, session.root, on_report=on_report)


def _saved_since(file: Path, seconds: float) -> bool:
    """Whether a file was saved in the last seconds: then the verdict may be about what it held before."""
    return file.stat().st_mtime >= time.time() - seconds
