"""`kata list`: the ladder, lesson by lesson, and what each kata teaches."""

from __future__ import annotations

import textwrap
from itertools import groupby

import click

from checker.commands.session import open_session, width
from checker.outcomes import load_lessons

STATES = {"passed": "passed", "changed": "passed, changed since", "skipped": "skipped", "open": "open", "locked": ""}
COLOURS = {"passed": "green", "changed": "yellow", "skipped": "yellow", "open": "cyan", "locked": None}
BULLET, BELOW = "    - ", "      "


@click.command("list", short_help="Show the ladder: what each kata teaches, and what has passed.")
@click.option("--short", is_flag=True, help="Leave out what the katas teach.")
def command(short: bool) -> None:
    """Show the ladder by lesson: each kata's title, minutes and state, and what you can do once it passes."""
    session = open_session()
    lessons = {lesson.number: lesson for lesson in load_lessons(session.root)}
    outcomes = {name: text for lesson in lessons.values() for name, text in lesson.outcomes.items()}
    current = session.progress.current(session.katas)
    names = max(len(kata.id) for kata in session.katas)
    titles = min(max(len(kata.title) for kata in session.katas), width() - names - 36)
    begun: set[int] = set()
    for number, katas in groupby(session.katas, key=lambda kata: kata.lesson):
        title = f"  {lessons[number].title}" if number in lessons else ""
        # The ladder returns to a lesson when the learner has the means for the rest of it.
        again = ", continued" if number in begun else ""
        begun.add(number)
        click.echo(click.style(f"Lesson {number}", bold=True) + title + again)
        for kata in katas:
            state = session.progress.state(kata)
            title = kata.title if len(kata.title) <= titles else kata.title[: titles - 1] + "…"
            mark = ">" if kata is current else " "
            line = f"{mark} {kata.id:<{names}}  {title:<{titles}}  {kata.minutes:>3} min"
            click.echo(line + (click.style(f"  {STATES[state]}", fg=COLOURS[state]) if STATES[state] else ""))
            for name in () if short else kata.outcomes:
                text = textwrap.fill(outcomes.get(name, name), width(), initial_indent=BULLET, subsequent_indent=BELOW)
                click.secho(text, dim=True)
    unbroken = session.progress.unbroken(session.katas)
    left = sum(kata.minutes for kata in session.katas if kata.id not in session.progress.passed)
    click.echo(f"{unbroken} of {len(session.katas)} passed in a row; about {left} minutes to go.")
