"""`kata compare`: yours beside the reference and PyTorch, once the kata passes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from checker.catalog import Kata
from checker.commands.asking import ask, code_of, show_finding
from checker.commands.running import look
from checker.commands.session import Session, open_session, require_linux
from checker.comparison_text import curve, table
from checker.errors import NOT_PASSED, PASSED, EnvironmentProblem, KataUsageError
from checker.findings import Finding

SCHEMA = 1
"""Version of the JSON document."""
_MOST_VALUES = 16


@click.command("compare", short_help="Yours, the reference and PyTorch, side by side.")
@click.argument("kata", required=False)
@click.option("--case", "case", metavar="ID", help="The input to compare on; by default the largest that is timed.")
@click.option(
    "--device",
    type=click.Choice(["auto", "virtual", "cuda"]),
    default="auto",
    show_default=True,
    help="What gives the times; auto takes a real GPU where there is one, unless --gpu names a chip.",
)
@click.option("--gpu", metavar="NAME", help="The chip the virtual GPU stands for.  [default: h200]")
@click.option("--spoil", is_flag=True, help="Show the reference though the kata does not pass yet.")
@click.option("--source", is_flag=True, help="Show the kernels of the two files side by side instead.")
@click.option("--sweep", metavar="NAME=VALUES", help="Time yours over values: BLOCK_SIZE=64..4096, num_warps=1,2,4.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Write a roofline picture to this file, .png or .svg.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of text.")
def command(
    kata: str | None,
    case: str | None,
    device: str,
    gpu: str | None,
    spoil: bool,
    source: bool,
    sweep: str | None,
    plot: Path | None,
    as_json: bool,
) -> int:
    """Compare KATA, or the one you are at, with the reference and with what eager PyTorch takes for the same job.

    Open once the kata passes. --sweep looks at your kernel alone, so it is open at any time.
    """
    if sweep and (source or plot):
        raise KataUsageError("--sweep was given together with --source or --plot.", needed="One at a time.")
    wanted = parse_sweep(sweep) if sweep else None
    if plot is not None:
        _require_plot(plot)
    session = open_session()
    chosen = session.kata(kata)
    state = session.progress.state(chosen)
    if state not in ("passed", "changed") and not spoil and not sweep:
        click.echo(_locked(chosen, state))
        return NOT_PASSED
    require_linux("kata compare")
    file = session.file_of(chosen)
    if source:
        _show_source(file, chosen)
        return PASSED
    options = {"case": case, "trusted": state == "passed" and file == chosen.kernel, "sweep": wanted}
    chosen_device = _device(device, gpu, sweeping=bool(wanted))
    document, finding = ask(
        "compare", chosen, file=file, gpu=gpu or "h200", options=options, device=chosen_device, quiet=as_json
    )
    if document is None:
        assert finding is not None
        if as_json:
            click.echo(json.dumps({"schema": SCHEMA, "kata": chosen.id, "finding": finding.to_dict()}, indent=2))
        else:
            show_finding(session, finding, file)
        return code_of(finding)
    if as_json:
        click.echo(json.dumps({"schema": SCHEMA, "kata": chosen.id, **document}, indent=2))
    elif wanted:
        click.echo("\n".join(curve(chosen.id, document, look(verbose=False))))
    else:
        _show_table(session, chosen, document, file)
    if plot is not None:
        from checker.roofline import draw

        draw(document, chosen.id, plot)
        click.echo(f"The roofline picture is in {session.path(plot.absolute())}.", err=True)
    rows = document.get("columns") or document["sweep"]["rows"]
    answered = rows[0]["finding"] is None if not wanted else any(row["us"] for row in rows)
    return PASSED if answered else NOT_PASSED


def _device(device: str, gpu: str | None, *, sweeping: bool) -> str:
    """What gives the times: the modelled clock, or the real GPU. A sweep is timed on the clock."""
    if sweeping or (device == "auto" and gpu is not None):
        return "virtual"
    from checker import devices

    chosen = devices.choose(device)
    if chosen == "cuda" and (why := devices.problem()):
        raise EnvironmentProblem(f"--device cuda needs a GPU, and {why}.\nLeave it out: the times are modelled then.")
    return chosen


def _locked(kata: Kata, state: str) -> str:
    number = f"{kata.number:02}"
    if state == "locked":
        return (
            f"{kata.id} is still locked, and this would show its solution. `kata next` unlocks katas in their order.\n"
            f"`kata compare {number} --spoil` shows it all the same."
        )
    return (
        f"{kata.id} does not pass yet, and this would show its solution: the comparison opens once it does.\n"
        f"`kata check {number}` says what is missing, `kata hint {number}` helps, "
        f"`kata inspect {number}` looks inside your kernel.\n"
        f"`kata compare {number} --spoil` shows it all the same."
    )


def parse_sweep(text: str) -> dict[str, Any]:
    """Name and values of BLOCK_SIZE=64..4096 (powers of two) or num_warps=1,2,4. KataUsageError if it is neither."""
    name, _, wanted = (part.strip() for part in text.partition("="))
    needed = "Give a parameter and its values: BLOCK_SIZE=64..4096 (powers of two) or num_warps=1,2,4."
    try:
        if ".." in wanted:
            low, high = (int(part) for part in wanted.split(".."))
            values = [1 << power for power in range(31) if low <= 1 << power <= high]
        else:
            values = [int(part) for part in wanted.split(",")]
    except ValueError:
        raise KataUsageError(f"--sweep {text!r} cannot be read.", needed=needed) from None
    if not name.isidentifier() or not values or min(values) < 1:
        raise KataUsageError(f"--sweep {text!r} names no parameter, or no value from 1 on.", needed=needed)
    if len(values) > _MOST_VALUES:
        raise KataUsageError(f"--sweep {text!r} has {len(values)} values.", needed=f"At most {_MOST_VALUES}.")
    return {"name": name, "values": values}


def _require_plot(file: Path) -> None:
    """Find out before the work what would end it: the kind of picture, its folder, the library."""
    if file.suffix.lower() not in (".png", ".svg"):
        raise KataUsageError(
            f"--plot {str(file)!r} ends in {file.suffix or 'nothing'}.", needed="A picture is a .png or an .svg file."
        )
    if not file.absolute().parent.is_dir():
        raise KataUsageError(f"There is no folder {file.absolute().parent}.", needed="--plot makes a file, no folder.")
    from importlib.util import find_spec

    if find_spec("matplotlib") is None:
        raise EnvironmentProblem(
            "--plot needs matplotlib, which is not installed here.\n"
            'Install it with: pip install "matplotlib>=3.9"\n'
            'or, in the folder of this project, with its extra: pip install -e ".[plot]"'
        )


def _show_source(file: Path, kata: Kata) -> None:
    from checker.side_by_side import show

    try:
        show(file, kata.solution)
    except (SyntaxError, UnicodeDecodeError) as error:
        raise KataUsageError(
            f"{file.name} does not parse: {error}.", next_step=f"`kata check {kata.number:02}` shows where."
        ) from error


def _show_table(session: Session, kata: Kata, document: dict[str, Any], file: Path) -> None:
    looks = look(verbose=False)
    click.echo("\n".join(table(kata.id, document, looks)))
    finding = document["columns"][0]["finding"]
    if finding is not None:
        click.echo("\nYours has no figures, because it is not right yet:\n")
        show_finding(session, Finding.from_dict(finding), file)
