"""`kata list`: the ladder, lesson by lesson."""

from __future__ import annotations

from itertools import groupby

import click

from checker.commands.session import open_session, width

STATES = {"passed": "passed", "changed": "passed, changed since", "skipped": "skipped", "open": "open", "locked": ""}
COLOURS = {"passed": "green", "changed": "yellow", "skipped": "yellow", "open": "cyan", "locked": None}


@click.command("list", short_help="Show the ladder: katas, minutes, what has passed.")
def command() -> None:
    """Show the ladder by lesson: each kata's title, minutes and state."""
    session = open_session()
    current = session.progress.current(session.katas)
    names = max(len(kata.id) for kata in session.katas)
    titles = min(max(len(kata.title) for kata in session.katas), width() - names - 36)
    for lesson, katas in groupby(session.katas, key=lambda kata: kata.lesson):
        click.secho(f"Lesson {lesson}", bold=True)
        for kata in katas:
            state = session.progress.state(kata)
            title = kata.title if len(kata.title) <= titles else kata.title[: titles - 1] + "…"
            mark = ">" if kata is current else " "
            line = f"{mark} {kata.id:<{names}}  {title:<{titles}}  {kata.minutes:>3} min"
            click.echo(line + (click.style(f"  {STATES[state]}", fg=COLOURS[state]) if STATES[state] else ""))
    unbroken = session.progress.unbroken(session.katas)
    left = sum(kata.minutes for kata in session.katas if kata.id not in session.progress.passed)
    click.echo(f"{unbroken} of {len(session.katas)} passed in a row; about {left} minutes to go.")
