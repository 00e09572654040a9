"""Promises to the compiler that the values contradict, and offsets that do not fit their type."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from checker.vgpu.errors import VirtualGpuError
from checker.vgpu.floats import Array
from checker.vgpu.machine import Machine
from checker.vgpu.ttir import Op

__all__ = ["check_hint", "watch_overflow"]

_EXACTLY: dict[str, np.ufunc] = {"arith.muli": np.multiply, "arith.addi": np.add, "arith.subi": np.subtract}


def check_hint(machine: Machine, op: Op, value: Array, width: int = 1) -> None:
    """A multiple_of or max_contiguous that the values contradict: the compiler believes it, so the chip faults.

    `width` is how far apart neighbours are: 1, or an element's bytes where the value is a pointer.
    """
    divisors, runs = (_claims(op.attrs.get(key, "")) for key in ("tt.divisibility", "tt.contiguity"))
    value = _active(machine, value)
    false = ""
    for axis, extent in enumerate(op.type.shape or (1,)):
        run = runs[axis] if axis < len(runs) else 1
        divisor = divisors[axis] if axis < len(divisors) else 1
        along = value if value.ndim == 1 else np.moveaxis(value, 1 + axis, -1)
        if divisor > 1:
            # A divisor is promised for the first element of each run, and of the block where no run is.
            heads = along if value.ndim == 1 else along[..., :: run if run > 1 else along.shape[-1]]
            false = f"multiple_of {divisor}" if (heads % divisor != 0).any() else false
        if run > 1 and extent % run == 0:
            inside = np.broadcast_to(along, (*along.shape[:-1], extent)).reshape(*along.shape[:-1], -1, run)
            false = f"max_contiguous {run}" if (np.diff(inside, axis=-1) != width).any() else false
    if false:
        raise VirtualGpuError(
            "K409",
            f"the hint {false} is not true of the values it is given",
            "The compiler builds wide accesses on this promise; give only hints that hold for every program.",
            where=op.where,
        )


def watch_overflow(machine: Machine, op: Op, values: Sequence[Array], result: Array) -> None:
    """Remembers an int32 operation of an address that wrapped, so that an access outside can name it."""
    if op.index in machine.wrapped:
        return
    left, right = (_active(machine, value).astype(np.int64) for value in values)
    exact = _EXACTLY[op.name](left, right)
    if (exact != _active(machine, result)).any():
        machine.wrapped[op.index] = op.where


def _active(machine: Machine, value: Array) -> Array:
    """The value of the programs that take part: what the others hold means nothing."""
    return value if machine.active is None or value.shape[0] == 1 else value[machine.active]


def _claims(text: str) -> tuple[int, ...]:
    body = text.removeprefix("dense<").strip("[]<> ")
    return tuple(int(part) for part in body.split(",")) if body else ()
