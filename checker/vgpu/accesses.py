"""Loads, stores and atomics, through pointers and through tensor descriptors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from checker.vgpu import atomics
from checker.vgpu.atomics import Atomic
from checker.vgpu.errors import NotModelled
from checker.vgpu.floats import NUMPY, WIDTH, Array, poison, round_tf32
from checker.vgpu.machine import Descriptor, Handler, Machine, known, ranked
from checker.vgpu.ttir import Op

__all__ = ["HANDLERS"]


def _load(run: Machine, op: Op) -> None:
    shape, element = op.type.shape, op.type.pointee
    known(element, op)
    addresses = run.rows(run.env[op.operands[0]], shape)
    mask = run.mask(op.operands[1] if len(op.operands) > 1 else None, shape)
    other = run.rows(run.env[op.operands[2]], shape) if len(op.operands) > 2 else None
    hint = run.origin(op.operands[0])
    has_other = other is not None or len(op.operands) < 2
    run.note(op, "load", addresses, mask, WIDTH[element], hint, has_other)
    if not has_other:
        taking = run.programs.size if run.active is None else int(np.count_nonzero(run.active))
        run.memory.poisoned_lanes += taking * mask.shape[1] - int(np.count_nonzero(mask))
    values = run.memory.load(addresses, mask, other, element, run.programs, run.site(op), hint)
    run.env[op.results[0]] = values.reshape(run.programs.size, *shape)


def _store(run: Machine, op: Op) -> None:
    shape, element = op.type.shape, op.type.pointee
    known(element, op)
    addresses = run.rows(run.env[op.operands[0]], shape)
    values = run.rows(run.env[op.operands[1]], shape)
    mask = run.mask(op.operands[2] if len(op.operands) > 2 else None, shape)
    hint = run.origin(op.operands[0])
    run.note(op, "store", addresses, mask, WIDTH[element], hint, True)
    run.memory.store(addresses, values, mask, element, run.programs, run.site(op), hint)


def _atomic(run: Machine, op: Op) -> None:
    pointer = op.types[0]
    shape, element = pointer.shape, pointer.pointee
    known(element, op)
    addresses = run.rows(run.env[op.operands[0]], shape)
    if op.name == "tt.atomic_cas":
        mask = run.mask(None, shape)
        expected, values = (run.rows(run.env[slot], shape).reshape(-1) for slot in op.operands[1:3])
        atomic = Atomic("cas", element, values, expected)
    else:
        mask = run.mask(op.operands[2] if len(op.operands) > 2 else None, shape)
        atomic = _atomic_named(op, element, run.rows(run.env[op.operands[1]], shape))
    ordered = bool(op.results) and op.results[0] in run.analysis.used
    result = _exchange(run, op, atomic, addresses, mask, run.origin(op.operands[0]), ordered)
    if op.results:
        run.env[op.results[0]] = result.reshape(run.programs.size, *shape)


def _exchange(run: Machine, op: Op, atomic: Atomic, addresses: Array, mask: Array, hint: int, ordered: bool) -> Array:
    run.note(op, "atomic", addresses, mask, WIDTH[atomic.element], hint, True)
    return run.memory.exchange(addresses, mask, atomic.element, run.programs, run.site(op), hint, atomic, ordered)


def _make_descriptor(run: Machine, op: Op) -> None:
    kind = op.types[-1]
    rank = len(kind.shape)
    base, *rest = (run.env[slot] for slot in op.operands)
    origin = run.origin(op.operands[0])
    # 1 is zero, 2 is NaN: PaddingOption of the dialect.
    padding = "nan" if op.attrs.get("padding", "1").startswith("2") else "zero"
    run.env[op.results[0]] = Descriptor(base, rest[:rank], rest[rank : 2 * rank], kind, origin, padding)


def _descriptor_lanes(run: Machine, op: Op, index: Sequence[int]) -> tuple[Descriptor, Array, Array]:
    descriptor: Descriptor = run.env[op.operands[0]]
    shape = descriptor.kind.shape
    rank = len(shape)
    width = WIDTH[descriptor.kind.pointee]
    addresses: Array = ranked(descriptor.base, 1 + rank)
    mask: Array = np.ones((1,) * (1 + rank), dtype=np.bool_)
    for axis, slot in enumerate(index):
        span = np.arange(shape[axis], dtype=np.int64).reshape(-1, *(1,) * (rank - 1 - axis))
        at = ranked(run.env[slot].astype(np.int64), 1 + rank) + span
        extent = ranked(descriptor.shape[axis], 1 + rank)
        stride = ranked(descriptor.strides[axis], 1 + rank).astype(np.int64)
        mask = mask & (at >= 0) & (at < extent)
        addresses = addresses + at * stride * width
    return descriptor, run.rows(addresses, shape), run.rows(mask, shape)


def _descriptor_load(run: Machine, op: Op) -> None:
    rank = len(run.env[op.operands[0]].kind.shape)
    descriptor, addresses, mask = _descriptor_lanes(run, op, op.operands[1 : 1 + rank])
    mask = mask if run.active is None else mask & run.active[:, None]
    element = descriptor.kind.pointee
    run.note(op, "load", addresses, mask, WIDTH[element], descriptor.origin, True)
    padding = np.full((1, 1), poison(element, descriptor.padding), dtype=NUMPY[element])
    values = run.memory.load(addresses, mask, padding, element, run.programs, run.site(op), descriptor.origin)
    if descriptor.rounds and element == "f32":
        values = round_tf32(values)
    block = values.reshape(run.programs.size, *descriptor.kind.shape)
    run.env[op.results[0]] = block.reshape(run.programs.size, *op.type.shape)


def _descriptor_store(run: Machine, op: Op) -> None:
    rank = len(run.env[op.operands[0]].kind.shape)
    descriptor, addresses, mask = _descriptor_lanes(run, op, op.operands[1 : 1 + rank])
    mask = mask if run.active is None else mask & run.active[:, None]
    element = descriptor.kind.pointee
    values = run.rows(run.env[op.operands[-1]], op.types[-1].shape)
    run.note(op, "store", addresses, mask, WIDTH[element], descriptor.origin, True)
    run.memory.store(addresses, values, mask, element, run.programs, run.site(op), descriptor.origin)


def _descriptor_reduce(run: Machine, op: Op) -> None:
    rank = len(run.env[op.operands[0]].kind.shape)
    descriptor, addresses, mask = _descriptor_lanes(run, op, op.operands[1 : 1 + rank])
    mask = mask if run.active is None else mask & run.active[:, None]
    values = run.rows(run.env[op.operands[-1]], op.types[-1].shape)
    atomic = _atomic_named(op, descriptor.kind.pointee, values)
    _exchange(run, op, atomic, addresses, mask, descriptor.origin, ordered=False)


def _atomic_named(op: Op, element: str, values: Array) -> Atomic:
    name = op.words[0]
    if not atomics.known(name):
        raise NotModelled(f"the atomic `{name}`", where=op.where)
    return Atomic(name, element, values.reshape(-1))


HANDLERS: dict[str, Handler] = {
    "tt.load": _load,
    "tt.store": _store,
    "tt.atomic_rmw": _atomic,
    "tt.atomic_cas": _atomic,
    "tt.make_tensor_descriptor": _make_descriptor,
    "tt.descriptor_load": _descriptor_load,
    "tt.descriptor_store": _descriptor_store,
    "tt.descriptor_reduce": _descriptor_reduce,
}
