"""Reductions and scans by the function that the kernel gives them.

Pairwise, in log2 steps, each in the element's own precision: that is how warps do it, up to the order of the pairs.
"""

from __future__ import annotations

import numpy as np

from checker.vgpu.floats import Array
from checker.vgpu.machine import Handler, Machine
from checker.vgpu.ttir import Op

__all__ = ["HANDLERS"]


def _reduce(run: Machine, op: Op) -> None:
    """Pairwise: halves are combined until one element is left, each step in the element's own precision."""
    axis = 1 + int(op.attrs["axis"])
    values = _materialised(run, op)
    while values[0].shape[axis] > 1:
        half = values[0].shape[axis] // 2
        left, right = ((*(slice(None),) * axis, part) for part in (slice(0, half), slice(half, 2 * half)))
        values = _combine(run, op, [value[left] for value in values], [value[right] for value in values])
    for slot, value in zip(op.results, values, strict=True):
        run.env[slot] = np.squeeze(value, axis=axis)


def _scan(run: Machine, op: Op) -> None:
    axis = 1 + int(op.attrs["axis"])
    values = [np.moveaxis(value, axis, -1) for value in _materialised(run, op)]
    backwards = op.attrs.get("reverse") == "true"
    if backwards:
        values = [value[..., ::-1] for value in values]
    extent = values[0].shape[-1]
    distance = 1
    while distance < extent:
        joined = _combine(run, op, [v[..., :-distance] for v in values], [v[..., distance:] for v in values])
        values = [np.concatenate([old[..., :distance], new], axis=-1) for old, new in zip(values, joined, strict=True)]
        distance *= 2
    for slot, value in zip(op.results, values, strict=True):
        run.env[slot] = np.moveaxis(value[..., ::-1] if backwards else value, -1, axis)


def _materialised(run: Machine, op: Op) -> list[Array]:
    values = [run.env[slot] for slot in op.operands]
    count = max(value.shape[0] for value in values)
    return [run.whole(v, kind.shape, count) for v, kind in zip(values, op.types, strict=False)]


def _combine(run: Machine, op: Op, left: list[Array], right: list[Array]) -> list[Array]:
    body = op.regions[0].blocks[0]
    for (slot, _), value in zip(body.args, [*left, *right], strict=True):
        run.env[slot] = value
    end = run.block(body)
    shape = left[0].shape
    return [np.broadcast_to(run.env[slot], shape) for slot in end.operands]


HANDLERS: dict[str, Handler] = {
    "tt.reduce": _reduce,
    "tt.scan": _scan,
}
