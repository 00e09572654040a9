"""What verifies each outcome: read from the marks that stand where the verifying is done, so nothing is written twice.

A kata names its outcomes in its kata.toml. A mutant that lacks one of them, and nothing else, says so in its head:

    # expect: K402
    # The store has no mask.
    # lacks: L4.2

The gate proves that it is refused with its code. An outcome that a command serves has a test marked
`@pytest.mark.outcome("L2.1", "kata doctor")`. docs/outcomes.md is made from all three, and tests/test_outcomes.py
demands that none is missing.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from checker.catalog import load
from checker.outcomes import load_lessons

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Witness:
    """Something that verifies an outcome: a mutant of a kata, or a test of a command.

    `owner` is the kata's id or the command; `expects` is the code that the mutant is refused with, empty for a test.
    """

    outcome: str
    owner: str
    file: Path
    name: str
    expects: str
    why: str


def head(text: str) -> list[str]:
    """The comment lines that a mutant begins with, without their `# `."""
    return [line.removeprefix("#").strip() for line in takewhile(lambda line: line[:1] == "#", text.splitlines())]


def lacked(text: str) -> list[str]:
    """The outcomes that a mutant lacks, by its marks."""
    marks = [line.removeprefix("lacks:") for line in head(text) if line.startswith("lacks:")]
    return [name for mark in marks for name in re.findall(r"L\d+\.\d+", mark)]


def witnesses() -> Iterator[Witness]:
    """All of them: mutants in the order of the ladder, then tests."""
    for kata in load(ROOT):
        for file in sorted((ROOT / "tests" / "mutants" / kata.id).glob("*.py")):
            text = file.read_text(encoding="utf-8")
            for outcome in lacked(text):
                expects = head(text)[0].removeprefix("expect:").strip()
                why = next(line for line in head(text)[1:] if not line.startswith("lacks:"))
                yield Witness(outcome, kata.id, file, file.stem, expects, why)
    for file in sorted((ROOT / "tests").glob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for outcome, command in _marked(node):
                    yield Witness(outcome, command, file, node.name, "", node.name.removeprefix("test_"))


def _marked(test: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    for mark in test.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.outcome":
            outcome, command = (ast.literal_eval(argument) for argument in mark.args)
            yield outcome, command


HEAD = """\
# Outcomes

What a learner can do at the end, where it is taught, and what verifies it. Each mutant named here is a solution that is
right but for what this outcome is about, and the gate (`pytest tests/test_gate.py`) proves that it is refused with that
code. This file is made by `python scripts/write_docs.py` from `katas/outcomes.toml`, from what each kata says it
teaches, and from the marks of mutants and tests; `tests/test_outcomes.py` keeps it complete.
"""


def document() -> str:
    """The whole of docs/outcomes.md."""
    found = list(witnesses())
    katas = load(ROOT)
    parts = [HEAD]
    for lesson in load_lessons(ROOT):
        parts.append(f"## Lesson {lesson.number}: {lesson.title}\n")
        parts += ["| outcome | taught by | verified by |", "|---|---|---|"]
        for name, text in lesson.outcomes.items():
            mine = [one for one in found if one.outcome == name]
            owners = dict.fromkeys([k.id for k in katas if name in k.outcomes] + [one.owner for one in mine])
            taught = "<br>".join(
                f"[{owner}](../katas/{owner}/README.md)" if owner[0].isdigit() else f"`{owner}`" for owner in owners
            )
            verified = "<br>".join(_link(one) for one in mine)
            parts.append(f"| {name} {text} | {taught} | {verified} |")
        parts.append("")
    return "\n".join(parts)


def _link(one: Witness) -> str:
    target = one.file.relative_to(ROOT).as_posix()
    if not one.expects:
        return f"[{one.name}](../{target})"
    return f"{one.expects} on [{one.name}](../{target}): {one.why}"
