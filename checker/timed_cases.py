"""The inputs of the speed stage in a spec's own terms, shrunk to what the GPU can hold and this machine can sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from checker.cases import Case
from checker.catalog import SpeedCase
from checker.timing import LONG, VirtualRounds, plain_rounds
from checker.vgpu.driver import VirtualGpu

__all__ = ["affordable", "halved", "shrunk", "sizes", "timed_case"]

# How often a case is halved for a trial, and the seconds that a round at full size may cost by its measure.
_HALVINGS = 9
_AFFORDABLE = 3.0


def timed_case(speed: SpeedCase, spec: ModuleType, memory_bytes: int) -> tuple[Case, str]:
    """The case in the spec's own terms, shrunk until inputs, result and reference fit; a note if it was."""
    params = {name: _value(name, value) for name, value in speed.params.items()}
    case = Case(speed.id, **params)
    note = ""
    while spec.least_bytes(case) * 3 > memory_bytes and (smaller := halved(case)) is not None:
        case = smaller
        note = f"{speed.id} does not fit into the memory of this GPU and was shrunk to {sizes(case)}"
    return case, note


def affordable(
    entry: Callable[..., Any], file: Path, spec: ModuleType, case: Case, seed: int, gpu: VirtualGpu
) -> tuple[Case, str]:
    """The case, or a smaller one where a single program would run for minutes here; a note if it was shrunk.

    A kernel whose programs walk over all of a tensor is tried on a small part of it first.
    """
    if spec.flops(case) > LONG * spec.least_bytes(case):
        return case, ""
    steps = [case]
    while len(steps) <= _HALVINGS and (smaller := halved(steps[-1])) is not None:
        steps.append(smaller)

    def seconds(at: Case) -> float:
        with VirtualRounds(entry, file, spec, at, seed, gpu).running() as trial:
            plain_rounds(trial.setup, trial.run, trial.timer, 1)
        return trial.seconds

    least = seconds(steps[-1])
    if least * 2 ** (len(steps) - 1) < _AFFORDABLE or len(steps) < 4:
        return case, ""
    # Once more, now that everything is loaded, and on four times as much: does the time grow with the size?
    least, more = seconds(steps[-1]), seconds(steps[-3])
    each = max(0.0, more - least) / 3
    while len(steps) > 1 and least + each * (2 ** (len(steps) - 1) - 1) > _AFFORDABLE:
        steps.pop(0)
    return (case, "") if steps[0] is case else (steps[0], _said(case, steps[0]))


def shrunk(case: Case) -> tuple[Case, str]:
    """A case so much smaller that even a program which does everything is soon done; and the note."""
    smaller = case
    for _ in range(_HALVINGS):
        smaller = halved(smaller) or smaller
    return smaller, _said(case, smaller)


def _said(case: Case, smaller: Case) -> str:
    return f"{case.id}: a single program works so long that only {sizes(smaller)} was timed"


def halved(case: Case) -> Case | None:
    """The case with its largest extent halved; None where there is nothing left to halve."""
    params = dict(case.params)
    name, value = max(params.items(), key=lambda item: _extent(item[1]))
    if _extent(value) < 2:
        return None
    params[name] = value // 2 if isinstance(value, int) else _halved(value)
    return Case(case.id, **params)


def sizes(case: Case) -> str:
    """The extents of a case, as "shape=(4096, 1024)"."""
    return ", ".join(f"{name}={size}" for name, size in case.params.items() if _extent(size) > 1)


def _value(name: str, value: Any) -> Any:
    return getattr(torch, value) if name == "dtype" else value


def _extent(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return math.prod(value) if isinstance(value, tuple) and all(isinstance(part, int) for part in value) else 0


def _halved(extents: tuple[int, ...]) -> tuple[int, ...]:
    longest = extents.index(max(extents))
    return tuple(extent // 2 if axis == longest else extent for axis, extent in enumerate(extents))
