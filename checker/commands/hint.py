"""`kata hint`: one more rung of help each time, never the code."""

from __future__ import annotations

import click

from checker.catalog import Kata, TodoText
from checker.commands.session import Session, open_session
from checker.errors import KataUsageError
from checker.progress import Progress
from checker.todos import open_todos


@click.command("hint", short_help="Give one more hint for a TODO.")
@click.argument("kata", required=False)
@click.argument("todo", required=False, type=int)
def command(kata: str | None, todo: int | None) -> None:
    """Give one more hint for a TODO of a kata; without TODO, for the first that is still open."""
    session = open_session()
    chosen = session.kata(kata)
    session.say_if_locked(chosen)
    if not chosen.todos:
        raise KataUsageError(f"{chosen.id} has no TODOs with hints.", next_step=f"Read {session.path(chosen.readme)}.")
    one = _named(chosen, todo) if todo is not None else _first_open(session, chosen)
    number = 0

    def change(progress: Progress) -> None:
        nonlocal number
        number = progress.next_hint(chosen, one.number, len(one.hints))

    session.update(change)
    click.secho(f"{chosen.id}, TODO {one.number}: {one.text}", bold=True)
    click.echo(f"Hint {number} of {len(one.hints)}: {one.hints[number - 1]}")
    if number == len(one.hints):
        click.echo(f"That was the last hint for this TODO. {session.path(chosen.readme)} has the idea in full.")


def _named(kata: Kata, number: int) -> TodoText:
    for todo in kata.todos:
        if todo.number == number:
            return todo
    numbers = ", ".join(str(todo.number) for todo in kata.todos)
    raise KataUsageError(f"{kata.id} has no TODO {number}.", needed=f"Its TODOs are {numbers}.")


def _first_open(session: Session, kata: Kata) -> TodoText:
    """The first TODO whose code is the skeleton's, else the first that has hints left, else the last."""
    try:
        source = kata.kernel.read_text(encoding="utf-8")
        untouched = {todo.number for todo in open_todos(source, kata.skeleton.read_text("utf-8")) if todo.untouched}
    except (OSError, UnicodeDecodeError):
        untouched = {todo.number for todo in kata.todos}
    shown = session.progress.hints.get(kata.id, {})
    waiting = [todo for todo in kata.todos if todo.number in untouched]
    left = [todo for todo in kata.todos if shown.get(str(todo.number), 0) < len(todo.hints)]
    return (waiting or left or kata.todos[-1:])[0]
