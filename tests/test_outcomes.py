"""Each of the thirty outcomes is taught by a kata or a command, and something is refused that lacks only that.

That a marked mutant is refused with its code is what test_gate.py proves, for each mutant there is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import outcomes
import pytest

from checker.catalog import Kata, load
from checker.outcomes import load_lessons

ROOT = Path(__file__).resolve().parent.parent
KATAS = load(ROOT)
NAMES = [name for lesson in load_lessons(ROOT) for name in lesson.outcomes]
WITNESSES = list(outcomes.witnesses())
MUTANTS = [one for one in WITNESSES if one.expects]


def test_there_are_ten_lessons_of_three_outcomes() -> None:
    assert [f"L{lesson}.{number}" for lesson in range(1, 11) for number in (1, 2, 3)] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_each_outcome_is_taught_and_verified(name: str) -> None:
    owners = {kata.id for kata in KATAS if name in kata.outcomes}
    verified = {one.owner for one in WITNESSES if one.outcome == name}
    assert owners, "no kata names it in its kata.toml"
    assert verified, "nothing is marked as lacking it"


def every_promise() -> Iterator[Any]:
    for rung in KATAS:
        for name in rung.outcomes:
            yield pytest.param(rung, name, id=f"{rung.number:02}-{name}")


@pytest.mark.parametrize(("rung", "name"), list(every_promise()))
def test_what_a_kata_promises_is_verified_there(rung: Kata, name: str) -> None:
    """By a mutant of its own, unless a command serves the outcome."""
    assert name in NAMES
    served = {one.owner for one in WITNESSES if one.outcome == name}
    assert rung.id in served or any(owner.startswith("kata ") for owner in served)


@pytest.mark.parametrize("one", MUTANTS, ids=lambda one: f"{one.owner[:2]}-{one.outcome}-{one.name}")
def test_a_marked_mutant_lacks_only_what_it_says(one: outcomes.Witness) -> None:
    """It is refused on every Triton, for an outcome of its kata, and differs from the solution in one place or two."""
    rung = next(kata for kata in KATAS if kata.id == one.owner)
    assert one.outcome in rung.outcomes
    assert "passes" not in one.expects
    changed = different(one.file.read_text(encoding="utf-8"), rung.solution.read_text(encoding="utf-8"))
    # A kernel and its launch, or one of them, or one prediction.
    assert 1 <= len(changed) <= 2, changed


def different(mutant: str, solution: str) -> set[str]:
    """Names of the top-level definitions that are not the same in both, whatever comments say."""
    mine, theirs = definitions(mutant), definitions(solution)
    return {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}


def definitions(text: str) -> dict[str, str]:
    """Each top-level statement by its name, as code without comments and docstrings."""
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            if ast.get_docstring(node):
                node.body = node.body[1:]
            found[node.name] = ast.unparse(node)
        elif not isinstance(node, ast.Expr):
            found[ast.unparse(node)] = ""
    return found


def test_marked_tests_name_commands_that_exist() -> None:
    from checker.cli import COMMANDS

    marked = [one for one in WITNESSES if not one.expects]
    assert {one.outcome for one in marked} >= {"L2.1"}
    assert {one.owner.removeprefix("kata ") for one in marked} <= COMMANDS.keys()
    assert {one.outcome for one in marked} <= set(NAMES)


def test_the_marks_of_a_head_are_read_and_others_are_not() -> None:
    text = "# expect: K402\n# What is wrong.\n# lacks: L4.1, L10.2\n\nx = 1  # lacks: L9.9\n# lacks: L8.8\n"
    assert outcomes.lacked(text) == ["L4.1", "L10.2"]
