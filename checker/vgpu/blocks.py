"""Blocks: how they come about, change their shape and are picked apart."""

from __future__ import annotations

import numpy as np

from checker.vgpu import arithmetic
from checker.vgpu.errors import NotModelled
from checker.vgpu.floats import NUMPY, WIDTH
from checker.vgpu.hints import check_hint
from checker.vgpu.machine import Descriptor, Handler, Machine, known, ranked
from checker.vgpu.ttir import Op

__all__ = ["HANDLERS"]


def _constant(run: Machine, op: Op) -> None:
    run.env[op.results[0]] = arithmetic.constant(op)


def _program_id(run: Machine, op: Op) -> None:
    x, y, _ = run.memory.grid
    linear = run.programs
    part = {"x": linear % x, "y": linear // x % y, "z": linear // (x * y)}[op.words[0]]
    run.env[op.results[0]] = part.astype(np.int32)


def _num_programs(run: Machine, op: Op) -> None:
    axis = {"x": 0, "y": 1, "z": 2}[op.words[0]]
    run.env[op.results[0]] = np.array([run.memory.grid[axis]], dtype=np.int32)


def _range(run: Machine, op: Op) -> None:
    span = np.arange(int(op.attrs["start"]), int(op.attrs["end"]), dtype=np.int32)
    run.env[op.results[0]] = span[None, :]
    check_hint(run, op, run.env[op.results[0]])


def _splat(run: Machine, op: Op) -> None:
    value = run.env[op.operands[0]]
    run.env[op.results[0]] = value.reshape(value.shape[0], *(1,) * len(op.type.shape))


def _same(run: Machine, op: Op) -> None:
    run.env[op.results[0]] = run.env[op.operands[0]]


def _expand(run: Machine, op: Op) -> None:
    run.env[op.results[0]] = np.expand_dims(run.env[op.operands[0]], 1 + int(op.attrs["axis"]))


def _transpose(run: Machine, op: Op) -> None:
    order = [int(n) + 1 for n in op.attrs["order"].partition(":")[2].strip(" >").split(",")]
    run.env[op.results[0]] = np.transpose(run.env[op.operands[0]], (0, *order))


def _reshape(run: Machine, op: Op) -> None:
    value = run.whole(run.env[op.operands[0]], op.types[0].shape)
    run.env[op.results[0]] = value.reshape(value.shape[0], *op.type.shape)


def _join(run: Machine, op: Op) -> None:
    parts = [run.whole(run.env[slot], op.types[0].shape) for slot in op.operands]
    run.env[op.results[0]] = np.stack(np.broadcast_arrays(*parts), axis=-1)


def _split(run: Machine, op: Op) -> None:
    value = run.whole(run.env[op.operands[0]], op.types[0].shape)
    for part, slot in enumerate(op.results):
        run.env[slot] = value[..., part]


def _cat(run: Machine, op: Op) -> None:
    left, right = (run.whole(run.env[slot], op.types[0].shape) for slot in op.operands)
    count = max(left.shape[0], right.shape[0])
    sides = [np.broadcast_to(side, (count, *side.shape[1:])) for side in (left, right)]
    run.env[op.results[0]] = np.concatenate(sides, axis=1)


def _gather(run: Machine, op: Op) -> None:
    axis = 1 + int(op.attrs["axis"])
    source = run.whole(run.env[op.operands[0]], op.types[0].shape, run.programs.size)
    index = run.whole(run.env[op.operands[1]], op.types[1].shape, run.programs.size)
    run.env[op.results[0]] = np.take_along_axis(source, index.astype(np.int64), axis=axis)


def _histogram(run: Machine, op: Op) -> None:
    bins = op.type.shape[0]
    source = run.whole(run.env[op.operands[0]], op.types[0].shape, run.programs.size)
    mask = np.ones(source.shape, dtype=bool)
    if len(op.operands) > 1:
        mask = run.whole(run.env[op.operands[1]], op.types[0].shape, run.programs.size)
    counts = [np.bincount(row[keep], minlength=bins)[:bins] for row, keep in zip(source, mask, strict=True)]
    run.env[op.results[0]] = np.asarray(counts, dtype=np.int32)


def _select(run: Machine, op: Op) -> None:
    condition, yes, no = (run.env[slot] for slot in op.operands)
    if isinstance(yes, Descriptor):
        raise NotModelled("a choice between tensor descriptors", where=op.where)
    rank = max(yes.ndim, no.ndim)
    run.env[op.results[0]] = np.where(ranked(condition, rank), yes, no)


def _undefined(run: Machine, op: Op) -> None:
    run.env[op.results[0]] = np.zeros((1,) * (1 + len(op.type.shape)), dtype=NUMPY[op.type.element])


def _dot(run: Machine, op: Op) -> None:
    shapes = [kind.shape for kind in op.types]
    values = [run.whole(run.env[slot], shape) for slot, shape in zip(op.operands, shapes[:2], strict=False)]
    values.append(run.env[op.operands[2]])
    run.env[op.results[0]] = arithmetic.dot(op, values)


def _addptr(run: Machine, op: Op) -> None:
    known(op.types[0].pointee, op)
    base, offset = (run.env[slot] for slot in op.operands)
    run.env[op.results[0]] = base + offset.astype(np.int64) * WIDTH[op.types[0].pointee]
    check_hint(run, op, run.env[op.results[0]], WIDTH[op.types[0].pointee])


HANDLERS: dict[str, Handler] = {
    "arith.constant": _constant,
    "arith.select": _select,
    "ub.poison": _undefined,
    "tt.get_program_id": _program_id,
    "tt.get_num_programs": _num_programs,
    "tt.make_range": _range,
    "tt.splat": _splat,
    "tt.unsplat": _same,
    "tt.broadcast": _same,
    "tt.expand_dims": _expand,
    "tt.trans": _transpose,
    "tt.reshape": _reshape,
    "tt.join": _join,
    "tt.split": _split,
    "tt.cat": _cat,
    "tt.gather": _gather,
    "tt.histogram": _histogram,
    "tt.dot": _dot,
    "tt.addptr": _addptr,
}
