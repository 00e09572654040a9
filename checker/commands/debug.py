"""`kata debug`: run one case in the foreground, with print and breakpoint() working."""

from __future__ import annotations

import click

from checker.commands.session import open_session, require_linux


@click.command("debug", short_help="Run one case with print and breakpoint() working.")
@click.argument("kata", required=False)
@click.option("--case", "case", metavar="ID", required=True, help="The case to run, as a check names it: n=257.")
@click.option("--program", type=click.IntRange(min=0), metavar="N", help="Only this program (its linear number).")
def command(kata: str | None, case: str, program: int | None) -> int:
    """Run one case in the foreground, in Triton's interpreter: print, tl.device_print and breakpoint() work.

    No verdict comes of it: use it to look inside, then `kata check`.
    """
    session = open_session()
    chosen = session.kata(kata)
    session.say_if_locked(chosen)
    require_linux("kata debug")
    from checker import runner

    return runner.debug(chosen, case, program, session.root)
