"""Writes the parts of the documentation that are made from something else, so that prose cannot drift from it.

docs/diagnoses.md comes from the catalogue, docs/commands.md from the help texts, docs/outcomes.md from what katas and
mutants say of themselves, the README's ladder from the katas, and its example of a check from a check.
tests/test_docs.py fails where a file and its source differ; `python scripts/write_docs.py` mends it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import outcomes

from checker.catalog import load
from checker.cli import COMMANDS, cli
from checker.findings import CATALOGUE, FAMILIES, Diagnosis

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "docs" / "examples" / "forgotten_mask.py"
"""The kernel whose check the README shows."""
HEAD = """\
# Diagnoses

Everything `kata check` can find, by family. `kata explain CODE` shows the same text. This file is made from
`checker/diagnoses/` by `python scripts/write_docs.py`; a test keeps it true.
"""


def diagnoses() -> str:
    """The whole of docs/diagnoses.md."""
    return "\n".join([HEAD, *_table(), *(line for family in FAMILIES for line in _family(family))])


def _table() -> Iterator[str]:
    yield "| code | stage | title |"
    yield "|---|---|---|"
    for one in CATALOGUE.values():
        yield f"| [{one.code}](#{one.code.lower()}) | {one.stage} | {one.title} |"
    yield ""


def _members(family: str) -> list[Diagnosis]:
    return [one for one in CATALOGUE.values() if one.code.startswith(family)]


def _family(family: str) -> Iterator[str]:
    if not _members(family):
        return
    yield f"## {family}xx: {FAMILIES[family]}\n"
    for one in _members(family):
        # The heading is the code alone, so that a link to it never breaks.
        yield f"### {one.code}\n\n**{one.title[0].upper()}{one.title[1:]}.** {one.explanation}\n"
        for name, code in (("Wrong", one.example), ("Right", one.mend)):
            if code:
                yield f"{name}:\n\n```python\n{code}\n```\n"


def ladder() -> str:
    """The README's table of katas."""
    rows = [f"| [{kata.id}](katas/{kata.id}/README.md) | {kata.title} | {kata.minutes} |" for kata in load(ROOT)]
    return "\n".join(["| kata | what it is about | minutes |", "|---|---|---|", *rows])


def example_check() -> str:
    """What `kata check 01` says about `EXAMPLE`, as the README shows it. Needs Triton."""
    name = str(EXAMPLE.relative_to(ROOT))
    command = [sys.executable, "-m", "checker", "check", "01", "--file", name, "--seed", "1"]
    environment = {**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
    environment.pop("KATA_ROOT", None)
    # In a copy, because a check begins a learner's progress, and this tree may be a learner's own.
    with tempfile.TemporaryDirectory() as folder:
        for part in ("katas", "solutions", "docs"):
            shutil.copytree(ROOT / part, Path(folder, part), ignore=shutil.ignore_patterns("kernel.py", "__pycache__"))
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment)
    if done.returncode != 1:
        raise SystemExit(f"{' '.join(command)} exited with {done.returncode}, not 1:\n{done.stdout}{done.stderr}")
    return f"```text\n$ kata check 01 --file {name}\n{done.stdout.strip()}\n```"


COMMANDS_HEAD = """\
# Commands

What `kata COMMAND --help` says. This file is made from the commands by `python scripts/write_docs.py`; a test keeps it
true.

KATA is a number (`13`), an id (`13_transpose`) or a part of one; without it a command is about the kata you are at.
`kata inspect` and `kata compare` need no GPU: they compile for the chip that `--gpu` names, and model its time. A chip
whose times were never measured says "not validated" beside them.
"""


def commands() -> str:
    """The whole of docs/commands.md."""
    parts = [COMMANDS_HEAD]
    # With the group as parent, as in a real call: it says that -h is --help, and click keeps the option it made first.
    group = click.Context(cli, info_name="kata", **cli.context_settings)
    for name in COMMANDS:
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        context = click.Context(command, parent=group, info_name=name, max_content_width=100, terminal_width=100)
        parts.append(f"## kata {name}\n\n```text\n{command.get_help(context)}\n```\n")
    return "\n".join(parts)


def between(text: str, name: str) -> str:
    """What a file holds between the markers of a generated part."""
    found = re.search(rf"<!-- {name} -->\n(.*?)\n?<!-- /{name} -->", text, re.DOTALL)
    if found is None:
        raise SystemExit(f"the markers of {name!r} are gone")
    return found[1]


def put_between(text: str, name: str, content: str) -> str:
    """The file with a generated part renewed."""
    old = between(text, name)
    return text.replace(f"<!-- {name} -->\n{old}" + ("\n" if old else ""), f"<!-- {name} -->\n{content}\n", 1)


def main() -> None:
    """Write everything anew."""
    (ROOT / "docs" / "diagnoses.md").write_text(diagnoses(), encoding="utf-8")
    (ROOT / "docs" / "commands.md").write_text(commands(), encoding="utf-8")
    (ROOT / "docs" / "outcomes.md").write_text(outcomes.document(), encoding="utf-8")
    readme = ROOT / "README.md"
    text = put_between(readme.read_text(encoding="utf-8"), "ladder", ladder())
    readme.write_text(put_between(text, "check", example_check()), encoding="utf-8")


if __name__ == "__main__":
    main()
