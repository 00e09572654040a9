"""`kata explain`: the whole story of a diagnosis, with a small example."""

from __future__ import annotations

import textwrap

import click

from checker.commands.session import width
from checker.errors import KataUsageError
from checker.findings import CATALOGUE, FAMILIES, Diagnosis


@click.command("explain", short_help="Explain a diagnosis, such as K402.")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Explain a diagnosis with an example; without CODE, list them all by family."""
    if code is None:
        _list_all()
        return
    wanted = code.strip().upper()
    wanted = wanted if wanted.startswith("K") else f"K{wanted}"
    diagnosis = CATALOGUE.get(wanted)
    if diagnosis is not None:
        click.echo(describe(diagnosis, width()))
        return
    family = [one for one in CATALOGUE.values() if one.code.startswith(wanted[:2])]
    raise KataUsageError(
        f"There is no diagnosis {code!r}.",
        needed=f"Near it: {', '.join(one.code for one in family)}." if family else "",
        next_step="`kata explain` lists them all.",
    )


def describe(diagnosis: Diagnosis, columns: int) -> str:
    """The diagnosis as text for a terminal of so many columns."""
    parts = [
        click.style(f"{diagnosis.code} {diagnosis.title}", bold=True)
        + f"   (stage {diagnosis.stage}, {FAMILIES[diagnosis.code[:2]]})",
        "\n\n".join(textwrap.fill(part, columns) for part in diagnosis.explanation.split("\n\n")),
    ]
    if diagnosis.example:
        parts += [click.style("Wrong", fg="red"), textwrap.indent(diagnosis.example, "    ")]
    if diagnosis.mend:
        parts += [click.style("Right", fg="green"), textwrap.indent(diagnosis.mend, "    ")]
    return "\n\n".join(parts)


def _list_all() -> None:
    for family, name in FAMILIES.items():
        members = [one for one in CATALOGUE.values() if one.code.startswith(family)]
        if members:
            click.secho(f"{family}xx  {name}", bold=True)
        for one in members:
            click.echo(f"  {one.code}  {one.title}")
