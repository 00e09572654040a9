"""Contracts of the reference wrappers: what a docstring accepts is computed, what it refuses raises what it names.

The calls are made from each kata's own first case: one argument at a time gets another shape, dtype, layout or device.
Whatever comes of it, there are two right answers: the value of the kata's reference, or an exception that the docstring
names. Anything else is a hole in the contract.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from checker.attempt import copied, open_gpu
from checker.catalog import Kata, load
from checker.loading import load_module
from checker.vgpu.errors import VirtualGpuError

pytest.importorskip("triton", reason="Triton has wheels for Linux only")

# A tensor to put in place of a right one; None where the change makes no sense for it.
CHANGES: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "0-d": lambda t: t.reshape(-1)[0],
    "empty": lambda t: t.new_empty((0, *t.shape[1:])) if t.dim() else None,
    "last extent 0": lambda t: t.new_empty((*t.shape[:-1], 0)) if t.dim() else None,
    "one dimension more": lambda t: t[None],
    "one dimension fewer": lambda t: t[0] if t.dim() > 1 else None,
    "one element more": lambda t: torch.cat([t, t[:1]]) if t.dim() else None,
    "last extent one more": lambda t: torch.cat([t, t[..., :1]], -1) if t.dim() else None,
    "every second": lambda t: torch.stack([t, t], -1)[..., 0] if t.dim() else None,
    "swapped strides": lambda t: t.t().contiguous().t() if t.dim() == 2 else None,
    "expanded": lambda t: t[:1].expand_as(t) if t.dim() else None,
    "float64": lambda t: t.double(),
    "int8": lambda t: t.to(torch.int8),
    "int64": lambda t: t.long(),
    "bool": lambda t: t > 0,
    "another device": lambda t: t.to("meta"),
    "huge": lambda t: t.reshape(-1)[:1].expand((2**31 + 8, *t.shape[1:])) if t.dim() else None,
    "huge and narrow": lambda t: t.reshape(-1)[:1].expand((2**31 + 8, *(1 for _ in t.shape[1:]))) if t.dim() else None,
}


def rungs() -> list[Kata]:
    """Katas whose entry point takes tensors and is judged by a reference."""
    found = load(Path(__file__).parents[1])
    return [rung for rung in found if "def make_inputs" in (rung.folder / "spec.py").read_text(encoding="utf-8")]


def named(docstring: str) -> set[str]:
    """The exceptions a docstring speaks of."""
    return set(re.findall(r"\b\w+Error\b", docstring))


def calls(spec: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """The first case with one tensor changed at a time."""
    case = spec.CASES[0]
    given = spec.make_inputs(case, seed=1, device=torch.device("cpu"))
    for position, value in enumerate(given):
        if not isinstance(value, torch.Tensor):
            continue
        for name, change in CHANGES.items():
            other = change(value)
            if other is not None:
                yield f"argument {position}: {name}", (*given[:position], other, *given[position + 1 :])


@pytest.mark.parametrize("rung", rungs(), ids=lambda rung: rung.id)
def test_a_wrapper_computes_or_refuses_as_it_says(rung: Kata) -> None:
    spec, solution = load_module(rung.folder / "spec.py"), load_module(rung.solution)
    entry = getattr(solution, rung.entry)
    allowed = named(entry.__doc__)
    gpu = open_gpu("h200")
    holes = []
    for what, arguments in calls(spec):
        huge = "huge" in what
        tensors = [value for value in arguments if isinstance(value, torch.Tensor)]
        # A kernel may update in place what it was given.
        pristine = arguments if huge else tuple(copied(value) for value in arguments)
        try:
            with gpu.record(timing=huge) as session:
                result = entry(*arguments)
        except VirtualGpuError as error:
            # Where there is one tensor alone, no wrapper can say on which device it belongs: the launch does.
            if "another device" not in what or len(tensors) > 1:
                holes.append(f"{what}: {error}")
            continue
        except Exception as error:
            if "can't allocate memory" not in str(error) and type(error).__name__ not in allowed:
                holes.append(f"{what}: {type(error).__name__}: {str(error)[:120]}")
            continue
        if any(launch.violations for launch in session.launches):
            holes.append(f"{what}: touches what it must not")
            continue
        if huge:
            continue
        try:
            expected = spec.reference(*pristine)
        except Exception as error:
            holes.append(f"{what}: returned {type(result).__name__}, where the reference raises {type(error).__name__}")
            continue
        pairs = zip(*(v if isinstance(v, tuple) else (v,) for v in (result, expected)), strict=True)
        for got, want in pairs:
            if got.shape != want.shape:
                holes.append(f"{what}: shape {tuple(got.shape)} for {tuple(want.shape)}")
            elif got.is_meta or not torch.allclose(got.double(), want.double(), rtol=2e-2, atol=2e-2, equal_nan=True):
                holes.append(f"{what}: wrong values")
    assert holes == []


@pytest.mark.parametrize("rung", rungs(), ids=lambda rung: rung.id)
def test_what_a_docstring_refuses_is_asked_for(rung: Kata) -> None:
    """What a kata's tests expect to be refused raises the exceptions that the docstring names, and no other."""
    spec, solution = load_module(rung.folder / "spec.py"), load_module(rung.solution)
    entry = getattr(solution, rung.entry)
    open_gpu("h200")
    raised = set()
    for refusal in getattr(spec, "REFUSED", []):
        with pytest.raises(refusal.exceptions) as caught:
            entry(*refusal.make(torch.device("cpu")))
        raised.add(type(caught.value).__name__)
    assert raised == named(entry.__doc__)
