"""`kata reset`: begin a kata again, with the old file kept."""

from __future__ import annotations

import click

from checker.commands.session import open_session
from checker.errors import EnvironmentProblem, KataUsageError
from checker.workspace import reset_kernel


@click.command("reset", short_help="Begin a kata again; your file is backed up first.")
@click.argument("kata", required=False)
def command(kata: str | None) -> None:
    """Put the skeleton back in place of your kernel.py, after backing it up. What has passed stays passed."""
    session = open_session()
    chosen = session.kata(kata)
    if session.progress.state(chosen) == "locked" and not chosen.kernel.exists():
        raise KataUsageError(
            f"{chosen.id} is still locked, so there is nothing to reset.",
            next_step="`kata next` unlocks katas in their order.",
        )
    existed = chosen.kernel.exists()
    try:
        backup = reset_kernel(chosen)
    except OSError as error:
        raise EnvironmentProblem(
            f"{session.path(chosen.kernel)} was not reset: {error.filename} {error.strerror}. Nothing was changed."
        ) from error
    if backup is not None:
        click.echo(f"Your file is kept as {session.path(backup)}")
        click.echo(f"{session.path(chosen.kernel)} is the skeleton again.")
    elif existed:
        click.echo(f"{session.path(chosen.kernel)} is the skeleton already.")
    else:
        click.echo(f"{session.path(chosen.kernel)} was missing; it is the skeleton now.")
