"""`kata check`: the verdict over a kata."""

from __future__ import annotations

import json
from pathlib import Path

import click

from checker import report as reports
from checker.commands.running import Options, after, exit_code, print_report, run_check
from checker.commands.session import Session, open_session
from checker.errors import NOT_PASSED, PASSED, KataUsageError
from checker.verdict import Report


@click.command("check", short_help="Check a kata: right, safe, stable; else which line and why.")
@click.argument("kata", required=False)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, readable=True, resolve_path=True, path_type=Path),
    help="Check this file in place of the kata's kernel.py.",
)
@click.option(
    "--device",
    type=click.Choice(["auto", "virtual", "cuda"]),
    default="auto",
    show_default=True,
    help="What runs the kernels; auto takes the virtual GPU.",
)
@click.option("--gpu", default="h200", show_default=True, metavar="NAME", help="The chip the virtual GPU stands for.")
@click.option("--seed", type=click.IntRange(min=0), help="Repeat the inputs of an earlier check.")
@click.option("--quick", is_flag=True, help="Fewer cases: an answer to work with, not a pass.")
@click.option("--all", "everything", is_flag=True, help="Check every kata that is unlocked.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
@click.option("-v", "--verbose", is_flag=True, help="Show the findings of every stage.")
def command(
    kata: str | None,
    file: Path | None,
    device: str,
    gpu: str,
    seed: int | None,
    quick: bool,
    everything: bool,
    as_json: bool,
    verbose: bool,
) -> int:
    """Check KATA, or the one you are at. Exit code: 0 passed, 1 not yet, 2 usage, 3 the machine lacks something."""
    if everything and (kata is not None or file is not None):
        raise KataUsageError("--all was given together with KATA or --file.", needed="--all checks what is unlocked.")
    if file is not None and kata is None:
        raise KataUsageError("--file was given without KATA.", needed="Say which kata the file is to solve.")
    session = open_session()
    options = Options(file=file, device=device, gpu=gpu, seed=seed, quick=quick, verbose=verbose)
    if everything:
        return _check_all(session, options, as_json=as_json)
    chosen = session.kata(kata)
    session.say_if_locked(chosen)
    report = run_check(session, chosen, options, quiet=as_json)
    if as_json:
        click.echo(json.dumps(reports.document(report), indent=2))
    else:
        print_report(session, report, verbose=verbose, next_step=after(session, chosen, report, quick=quick))
    return exit_code(report)


def _check_all(session: Session, options: Options, *, as_json: bool) -> int:
    """Check every unlocked kata: one line each, the reports of those that fail, and the sum."""
    done: list[Report] = []
    for kata in session.katas:
        if session.progress.state(kata) == "locked":
            continue
        report = run_check(session, kata, options, quiet=as_json)
        done.append(report)
        if as_json:
            continue
        if report.passed:
            click.echo(f"{kata.id}  " + click.style("passed", fg="green"))
        else:
            first = report.findings[0]
            click.echo(f"{kata.id}  " + click.style("does not pass", fg="red") + f"  {first.code} {first.title}")
    if as_json:
        click.echo(json.dumps(reports.documents(done), indent=2))
    else:
        click.echo(f"{sum(report.passed for report in done)} of {len(done)} unlocked katas pass.")
    worst = [exit_code(report) for report in done]
    return max(worst, default=NOT_PASSED if not done else PASSED)
