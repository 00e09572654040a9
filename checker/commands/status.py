"""`kata` alone: where the learner is, and what to do next."""

from __future__ import annotations

import click

from checker.commands.session import open_session


def show() -> None:
    """Print the current kata, the way so far and the next command."""
    session = open_session()
    kata = session.progress.current(session.katas)
    state = session.progress.state(kata)
    passed = sum(one.id in session.progress.passed for one in session.katas)
    following = session.progress.following(session.katas)

    click.echo(f"{passed} of {len(session.katas)} katas passed.")
    if state in ("passed", "skipped") and following is None:
        click.echo("You have reached the top of the ladder.")
        for one in session.katas:
            if one.id in session.progress.skipped:
                click.echo(f"Skipped on the way: {one.id}. `kata check {one.number:02}` takes it up again.")
        return
    if state in ("passed", "skipped"):
        click.echo(f"{kata.id} has {'passed' if state == 'passed' else 'been skipped'}.")
        click.echo("Next: `kata next` unlocks the next one.")
        return
    click.echo(click.style(f"You are at {kata.id}", bold=True) + f" (lesson {kata.lesson}, about {kata.minutes} min)")
    click.echo(kata.title)
    if state == "changed":
        click.echo("It has passed, but the file has changed since.")
    click.echo(f"Read {session.path(kata.readme)}")
    click.echo(f"Edit {session.path(kata.kernel)}")
    click.echo("Then `kata check`; `kata hint` helps.")
