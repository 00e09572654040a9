"""Every kata is whole: its files agree with each other, and its inputs can tell a right kernel from a lazy one."""

from __future__ import annotations

import functools
import inspect
import random
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import write_lessons

from checker.cases import Case
from checker.catalog import Kata, load
from checker.loading import load_module
from checker.todos import blocks
from checker.warm import Warm

ROOT = Path(__file__).parents[1]
KATAS = load(ROOT)
CPU = torch.device("cpu")
# Other tests fork: a child hangs at its first parallel operation if its parent has started torch's threads.
torch.set_num_threads(1)
SECTIONS = ["Problem", "Idea", "Cost", "Do", "Run", "Then"]
FILES = {"README.md", "kata.toml", "skeleton.py", "spec.py", "test_correctness.py", "test_performance.py"}

every_kata = pytest.mark.parametrize("rung", KATAS, ids=lambda rung: rung.id)
# The others have probes: their lesson is on the host, and no result is compared with a reference.
with_cases = pytest.mark.parametrize(
    "rung",
    [rung for rung in KATAS if "def make_inputs" in rung.spec.read_text(encoding="utf-8")],
    ids=lambda rung: rung.id,
)


def every_case() -> Iterator[Any]:
    for rung in KATAS:
        for case in spec_of(rung).CASES:
            yield pytest.param(rung, case, id=f"{rung.number:02}: {case.id}")


def spec_of(rung: Kata) -> ModuleType:
    return loaded(rung.spec)


@functools.cache
def loaded(path: Path) -> ModuleType:
    return load_module(path)


def gaps(skeleton: str, solution: str) -> list[str] | None:
    """What the solution has in place of each TODO block of the skeleton; None if they differ outside the blocks."""
    marked = re.compile(r"^[ ]*# TODO\(\d+\).*?^[ ]*# END TODO\(\d+\)\n", re.MULTILINE | re.DOTALL)
    shared = [re.escape(piece) for piece in marked.split(skeleton)]
    found = re.fullmatch("(.+?)".join(shared), solution, re.DOTALL)
    return list(found.groups()) if found else None


@every_kata
def test_a_kata_has_the_same_six_files(rung: Kata) -> None:
    assert {path.name for path in rung.folder.iterdir() if path.is_file()} - {"kernel.py"} == FILES


@every_kata
def test_skeleton_and_solution_are_the_same_outside_the_todo_blocks(rung: Kata) -> None:
    solved = gaps(rung.skeleton.read_text(), rung.solution.read_text())
    assert solved is not None
    assert len(solved) == len(rung.todos)
    assert all(text.strip() for text in solved)


@every_kata
def test_the_solution_holds_no_markers(rung: Kata) -> None:
    assert "TODO" not in rung.solution.read_text()


@every_kata
def test_markers_number_the_todos_and_say_what_the_kata_says(rung: Kata) -> None:
    marked = [(block.number, block.text) for block in blocks(rung.skeleton.read_text())]
    assert marked == [(todo.number, todo.text) for todo in rung.todos]
    assert [number for number, _ in marked] == list(range(1, len(marked) + 1))


@every_kata
def test_each_todo_has_a_ladder_of_three_hints(rung: Kata) -> None:
    assert {len(todo.hints) for todo in rung.todos} == {3}


@every_kata
def test_no_hint_is_the_code(rung: Kata) -> None:
    solved = gaps(rung.skeleton.read_text(), rung.solution.read_text()) or []
    lines = {line.strip() for text in solved for line in text.splitlines()}
    code = {line for line in lines if line and not line.startswith("#") and len(line) > 8}
    hints = [hint for todo in rung.todos for hint in todo.hints]
    assert [(line, hint) for line in code for hint in hints if line in hint] == []


@every_kata
def test_the_lesson_has_its_sections_in_order_and_shows_what_the_check_prints(rung: Kata) -> None:
    text = rung.readme.read_text()
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert f"<!-- output of kata check {rung.number:02} -->" in text
    assert text.startswith(f"# {rung.number:02} · {rung.title}\n")


@pytest.mark.slow
@every_kata
def test_the_lesson_shows_what_the_check_says_about_the_unsolved_kata(rung: Kata, warm: Warm) -> None:
    said = write_lessons.unsolved_check(rung, warm.start)
    assert write_lessons.shown(rung.readme.read_text(encoding="utf-8"), rung) == said


@every_kata
def test_a_kata_requires_only_lower_rungs(rung: Kata) -> None:
    below = {other.id for other in KATAS if other.number < rung.number}
    assert set(rung.requires) <= below


@every_kata
def test_the_entry_has_the_signature_that_the_kata_states(rung: Kata) -> None:
    module = load_module(rung.skeleton)
    declared = inspect.signature(getattr(module, rung.entry)).parameters.values()
    parameters = ", ".join(p.name if p.default is p.empty else f"{p.name}={p.default}" for p in declared)
    assert rung.signature.startswith(f"{rung.entry}({parameters}) -> ")


@with_cases
def test_case_ids_are_unique_and_both_stages_have_cases(rung: Kata) -> None:
    cases = spec_of(rung).CASES
    assert len({case.id for case in cases}) == len(cases)
    assert {case.stage for case in cases} == {"values", "numerics"}


@every_kata
def test_probes_are_drawn_and_have_names(rung: Kata) -> None:
    spec = spec_of(rung)
    make = getattr(spec, "probes", lambda draw: getattr(spec, "PROBES", []))
    names = [probe.id for probe in make(random.Random(1))]
    assert len(set(names)) == len(names)
    assert names or spec.CASES
    assert names == [probe.id for probe in make(random.Random(1))]


@pytest.mark.parametrize(("rung", "case"), list(every_case()))
def test_inputs_repeat_with_the_seed(rung: Kata, case: Case) -> None:
    spec = spec_of(rung)
    first, again, other = (spec.make_inputs(case, seed=seed, device=CPU) for seed in (3, 3, 4))
    assert all(same(a, b) for a, b in zip(first, again, strict=True))
    for a, b in zip(tensors(first), tensors(again), strict=True):
        assert a.stride() == b.stride()
        assert a.device == CPU
    if sum(a.numel() for a in tensors(first)):
        assert not all(same(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(("rung", "case"), list(every_case()))
def test_the_reference_is_exact_and_pytorch_agrees_on_the_shape(rung: Kata, case: Case) -> None:
    spec = spec_of(rung)
    inputs = spec.make_inputs(case, seed=3, device=CPU)
    expected, own = several(spec.reference(*inputs)), several(spec.torch_op(*inputs))
    first = [tensor.dtype for tensor in tensors(inputs)][:1]
    dtypes = several(spec.OUT_DTYPE(*inputs)) if hasattr(spec, "OUT_DTYPE") else first * len(expected)
    assert [e.dtype for e in expected] == [torch.float64] * len(expected)
    assert [o.dtype for o in own] == list(dtypes)
    assert [o.shape for o in own] == [e.shape for e in expected]


@with_cases
def test_lazy_answers_are_far_from_right(rung: Kata) -> None:
    """Zeros, ones, the mean and the input itself are refused by the first case that has more than one element."""
    spec = spec_of(rung)
    inputs = spec.make_inputs(spec.CASES[0], seed=3, device=CPU)
    # A copy is its input; the check refuses it because no kernel stored it.
    copies = rung.entry in ("vector_copy", "copy_2d", "grid_stride_copy")
    for expected in several(spec.reference(*inputs)):
        lazy = [torch.zeros_like(expected), torch.ones_like(expected), expected.mean().expand_as(expected)]
        lazy += [x.double() for x in tensors(inputs) if x.shape == expected.shape and not copies]
        for answer in lazy:
            assert (answer - expected).abs().max() > 0.05 * expected.abs().max()


@with_cases
def test_refusals_can_be_made_and_have_names(rung: Kata) -> None:
    refusals = spec_of(rung).REFUSED
    assert len({refusal.id for refusal in refusals}) == len(refusals) > 0
    for refusal in refusals:
        assert isinstance(refusal.make(CPU), tuple)


@every_kata
def test_questions_are_drawn_and_each_belongs_to_a_todo(rung: Kata) -> None:
    spec, skeleton = spec_of(rung), load_module(rung.skeleton)
    asked = spec.questions(random.Random(1))
    assert [(q.entry, q.args) for q in asked] == [(q.entry, q.args) for q in spec.questions(random.Random(1))]
    assert [q.args for q in asked] != [q.args for q in spec.questions(random.Random(2))]
    # The skeleton has made no prediction yet, and says so by None.
    assert {getattr(skeleton, question.entry)(*question.args) for question in asked} == {None}


@with_cases
def test_cost_is_stated_for_cases_of_fixed_size(rung: Kata) -> None:
    spec = spec_of(rung)
    case = spec.CASES[0]
    moved = sum(x.numel() * x.element_size() for x in tensors(spec.make_inputs(case, seed=3, device=CPU)))
    assert spec.least_bytes(case) > moved
    assert spec.flops(case) >= 0


def several(result: Any) -> tuple[Any, ...]:
    """One result, or a tuple of them, as a tuple."""
    return result if isinstance(result, tuple) else (result,)


def tensors(values: tuple[Any, ...]) -> list[torch.Tensor]:
    """The tensors among some arguments."""
    return [value for value in values if isinstance(value, torch.Tensor)]


def same(a: Any, b: Any) -> bool:
    """Whether two arguments are equal; NaN counts as equal to NaN."""
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return bool(a == b or (a != a and b != b))
    return a.shape == b.shape and torch.equal(
        torch.nan_to_num(a.double(), nan=0.5), torch.nan_to_num(b.double(), nan=0.5)
    )
