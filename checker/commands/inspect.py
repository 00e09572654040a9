"""`kata inspect`: the kernel at each level of the stack, and what it uses of the chip."""

from __future__ import annotations

import json
from pathlib import Path

import click

from checker import levels
from checker.commands.asking import ask, code_of, show_finding
from checker.commands.running import look
from checker.commands.session import open_session, require_linux
from checker.errors import PASSED, KataUsageError
from checker.inspection_text import overview

SCHEMA = 1
"""Version of the JSON document."""


@click.command("inspect", short_help="Show the kernel at each level of the stack.")
@click.argument("kata", required=False)
@click.option(
    "--file",
    type=click.Path(exists=True, dir_okay=False, readable=True, resolve_path=True, path_type=Path),
    help="Look at this file in place of the kata's kernel.py.",
)
@click.option("--gpu", default="h200", show_default=True, metavar="NAME", help="The chip to compile for.")
@click.option("--case", "case", metavar="ID", help="The case to launch on; by default the largest that is timed.")
@click.option("--level", type=click.Choice(list(levels.LEVELS)), help="Print this level whole, and nothing else.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document with every level whole.")
def command(kata: str | None, file: Path | None, gpu: str, case: str | None, level: str | None, as_json: bool) -> int:
    """Show what became of a kernel: eager PyTorch, Triton, TTIR, TTGIR, PTX, SASS, each cut to what matters.

    Then what it uses: width of each load and store, tensor cores, registers, shared memory, occupancy. No GPU is needed
    for any of it. Exit code: 0, or 1 if the kernel does not compile for the chip.
    """
    session = open_session()
    chosen = session.kata(kata)
    session.say_if_locked(chosen)
    require_linux("kata inspect")
    subject = file or session.file_of(chosen)
    document, finding = ask("inspect", chosen, file=subject, gpu=gpu, options={"case": case}, quiet=as_json)
    if document is None:
        assert finding is not None
        if as_json:
            click.echo(json.dumps({"schema": SCHEMA, "kata": chosen.id, "finding": finding.to_dict()}, indent=2))
        else:
            show_finding(session, finding, subject)
        return code_of(finding)
    texts = document["texts"]
    if level is not None and level not in texts:
        raise KataUsageError(
            f"There is no {levels.LEVELS[level].title} for {document['gpu']['name']}.",
            needed=f"Its levels are {', '.join(name for name in levels.LEVELS if name in texts)}.",
        )
    if as_json:
        document = {**document, "texts": {level: texts[level]} if level else texts}
        click.echo(json.dumps({"schema": SCHEMA, "kata": chosen.id, **document}, indent=2))
    elif level is not None:
        click.echo(texts[level].strip("\n"))
    else:
        click.echo("\n\n".join(overview(chosen.id, document, look(verbose=False))))
    return PASSED
