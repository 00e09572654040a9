"""Kata 07 names what slips through. Its right kernels differ, and its wrong ones look right on plain input."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from checker.judge import open_gpu
from checker.lab import Lab
from checker.loading import load_module

pytest.importorskip("triton", reason="Triton has wheels for Linux only")

ROOT = Path(__file__).parents[1]
MUTANTS = ROOT / "tests" / "mutants" / "07_validation"
SPEC = load_module(ROOT / "katas" / "07_validation" / "spec.py")

SLIPS = {
    "any_beyond_the_tolerance": ["wrong: NaN swallowed", "wrong: a factor of zero"],
    "copies_handed_in": ["wrong: input changed"],
    "bfloat16_not_tried": ["wrong: range of bfloat16"],
    "finite_values": ["wrong: NaN swallowed"],
    "first_result_forgotten": ["wrong: a buffer kept"],
    "layouts_alike": ["wrong: non-contiguous x"],
    "large_values_in_float16_alone": ["wrong: range of bfloat16", "wrong: range of float32"],
    "large_values_without_float32": ["wrong: range of float32"],
    "range_not_tried": ["wrong: large values", "wrong: range of bfloat16", "wrong: range of float32"],
    "shapes_broadcast": ["wrong: broadcast result shape"],
    "truth_in_the_same_dtype": ["wrong: dtype of the arithmetic"],
    "two_percent": ["wrong: dtype of the arithmetic"],
    "whole_blocks": ["wrong: ragged tail"],
}


@pytest.mark.parametrize("name", SLIPS)
def test_what_slips_through_is_named(name: str) -> None:
    lab, module = Lab(open_gpu("h200"), SPEC), load_module(MUTANTS / f"{name}.py")
    faults = {probe.id: probe.examine(module, lab) for probe in SPEC.probes(random.Random(1))}
    found = {where: fault for where, fault in faults.items() if fault is not None}
    assert list(found) == SLIPS[name]
    for where, fault in found.items():
        assert fault.code == "K661"
        assert fault.message.startswith(where.removeprefix("wrong: "))


def test_right_kernels_differ() -> None:
    """One rounding leaves 2^-24 of a sum of which two leave nothing."""
    lab = Lab(open_gpu("h200"), SPEC)
    x = torch.full((8,), 1 + 2**-12)
    y = torch.full((8,), -1 - 2**-11)
    left = {name: float(lab.result(make(), 1 + 2**-12, x, y)[0]) for name, (make, _) in SPEC.RIGHT.items()}
    assert left == {"fused": 2**-24, "not fused": 0, "blocked differently": 2**-24, "in float64": 2**-24}


@pytest.mark.parametrize("kind", SPEC.WRONG)
def test_a_wrong_kernel_looks_right_on_plain_input(kind: str) -> None:
    lab = Lab(open_gpu("h200"), SPEC)
    x, y = torch.linspace(-3, 3, 1024), torch.linspace(2, 4, 1024)
    expected = 2.5 * x + y
    out = lab.result(SPEC.WRONG[kind].make(), 2.5, x, y)
    assert torch.allclose(out, expected, rtol=1e-2, atol=1e-2)


def test_the_line_that_refuses_a_right_kernel_is_shown() -> None:
    lab, file = Lab(open_gpu("h200"), SPEC), MUTANTS / "default_tolerance.py"
    fault = SPEC.probes(random.Random(1))[0].examine(load_module(file), lab)
    assert fault.code == "K662"
    assert file.read_text().splitlines()[fault.line - 1].startswith("    assert right")


def test_a_protocol_that_breaks_has_neither_accepted_nor_refused() -> None:
    with pytest.raises(AttributeError):
        examined(lambda candidate: candidate.no_such_thing, -1)


def test_elements_are_counted_as_calls_are() -> None:
    large = torch.zeros(SPEC.ELEMENTS)
    assert examined(lambda candidate: candidate(1.0, large, large), 0) is None
    both = examined(lambda candidate: [candidate(1.0, x, x) for x in (large[:1], large)], 0)
    assert both.code == "K663"


def examined(validate: Callable[[Any], Any], which: int) -> Any:
    """What a probe says of a module that holds this protocol."""
    module = ModuleType("protocol")
    vars(module).update(validate=validate, __file__=__file__)
    return SPEC.probes(random.Random(1))[which].examine(module, Lab(open_gpu("h200"), SPEC))
