"""`kata next`: one rung up, once the present one holds."""

from __future__ import annotations

import click

from checker.catalog import Kata
from checker.commands.running import Options, after, exit_code, print_report, run_check
from checker.commands.session import Session, open_session
from checker.errors import ENVIRONMENT, PASSED, KataUsageError


@click.command("next", short_help="Unlock the next kata once this one passes.")
@click.option("--skip", is_flag=True, help="Leave the present kata unsolved and go on; you can return to it.")
def command(skip: bool) -> int:
    """Unlock the next kata and say which file to open. A kata that does not pass unlocks nothing.

    The present kata is checked again if its file changed since it passed.
    """
    session = open_session()
    current = session.progress.current(session.katas)
    state = session.progress.state(current)
    if skip:
        if state == "passed":
            raise KataUsageError(f"{current.id} has passed: there is nothing to skip.", next_step="Run `kata next`.")
        if not session.update(lambda progress: progress.skips(current)):
            return ENVIRONMENT
        click.echo(f"{current.id} is skipped. `kata check {current.number:02}` takes it up again.")
    elif state in ("open", "changed"):
        report = run_check(session, current, Options())
        if not report.passed:
            print_report(session, report, verbose=False, next_step=after(session, current, report))
            click.echo(f"Nothing was unlocked: {current.id} has to pass first. `kata next --skip` goes on without it.")
            return exit_code(report)
        click.echo(f"{current.id} passes.")
    return _unlock_following(session)


def _unlock_following(session: Session) -> int:
    following = session.progress.following(session.katas)
    if following is None:
        click.echo("You have reached the top of the ladder: there is no further kata.")
        return PASSED
    if not session.unlock(following):
        return ENVIRONMENT
    _introduce(session, following)
    return PASSED


def _introduce(session: Session, kata: Kata) -> None:
    click.echo(click.style(f"{kata.id} is unlocked", bold=True) + f" (lesson {kata.lesson}, about {kata.minutes} min)")
    click.echo(kata.title)
    click.echo(f"Read {session.path(kata.readme)}")
    click.echo(f"Edit {session.path(kata.kernel)}")
    click.echo(f"Then `kata check {kata.number:02}`.")
