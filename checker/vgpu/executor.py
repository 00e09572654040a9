"""Runs a TTIR function over a grid, many programs at once.

Programs advance in step, as the lanes of a warp do: a value is one array for all of them, and where they take
different branches or trip counts a mask says who takes part. A kernel whose programs talk to each other through
atomics runs one program at a time, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from checker.vgpu import arithmetic
from checker.vgpu.analysis import POLLS, Analysis
from checker.vgpu.atomics import Atomic, known
from checker.vgpu.errors import NotModelled, SourceLine, VirtualGpuError
from checker.vgpu.floats import NUMPY, WIDTH, Array, poison, round_tf32
from checker.vgpu.memory import LaunchMemory, Site
from checker.vgpu.trace import Access, LaunchTrace
from checker.vgpu.ttir import Block, Function, Module, Op, Type

__all__ = ["Executor", "current_site"]

# Elements of the largest block that a batch of programs may hold together: keeps arrays inside the CPU's caches.
_BATCH_ELEMENTS = 1 << 18

# A loop that polls memory this often waits for something that will not come.
_PATIENCE = 10_000

_CURRENT: list[SourceLine | None] = [None]


def current_site() -> SourceLine | None:
    """The source line the virtual GPU is at, for a time limit that strikes in the middle of a launch."""
    return _CURRENT[0]


class Descriptor:
    """A tensor descriptor value: base address and, per dimension, extent and stride in elements, for all programs.

    What lies outside reads as `padding`, "zero" or "nan"; `rounds` says that float32 is rounded to tf32 when loaded.
    """

    def __init__(
        self,
        base: Array,
        shape: Sequence[Array],
        strides: Sequence[Array],
        kind: Type,
        origin: int,
        padding: str = "zero",
        rounds: bool = False,
    ) -> None:
        self.base = base
        self.shape = shape
        self.strides = strides
        self.kind = kind
        self.origin = origin
        self.padding = padding
        self.rounds = rounds


class Executor:
    """One launch. `arguments` are the values of the entry function's arguments, in order."""

    def __init__(
        self,
        module: Module,
        analyses: dict[str, Analysis],
        memory: LaunchMemory,
        trace: LaunchTrace,
        arguments: Sequence[Any],
        *,
        count_sectors: bool = False,
        echo: Callable[[str], None] | None = None,
    ) -> None:
        self.module = module
        self.analyses = analyses
        self.memory = memory
        self.trace = trace
        self.arguments = arguments
        self.count_sectors = count_sectors
        self.echo = echo
        self.accesses: dict[tuple[str, int], Access] = {}
        self.wrapped: dict[int, SourceLine | None] = {}
        self.env: list[Any] = []
        self.programs: Array = np.zeros(1, dtype=np.int64)
        self.active: Array | None = None
        self.function: Function = module.functions[module.entry]
        self.analysis: Analysis = analyses[module.entry]
        self.buffer_numbers = {buffer.argument: i for i, buffer in enumerate(memory.buffers)}

    def run(self, programs: Iterable[int] | None = None) -> None:
        """Runs the given linear program numbers (all of the grid by default), in order, in batches."""
        total = self.trace.programs
        chosen = np.arange(total, dtype=np.int64) if programs is None else np.asarray(list(programs), dtype=np.int64)
        batch = 1 if self.analysis.sequential else max(1, _BATCH_ELEMENTS // self.analysis.largest_block)
        with np.errstate(all="ignore"):
            for start in range(0, chosen.size, batch):
                self.programs = chosen[start : start + batch]
                self.active = None
                self.env = [None] * self.function.slots
                for (slot, _), value in zip(self.function.args, self.arguments, strict=True):
                    self.env[slot] = value
                self._body(self.function)
        self.trace.programs_run = int(chosen.size)
        self.trace.accesses = list(self.accesses.values())
        self.trace.violations = sorted(self.memory.violations.values(), key=lambda v: (v.program[::-1], v.order))
        self.trace.poisoned_lanes = self.memory.poisoned_lanes
        _CURRENT[0] = None

    # Control flow.

    def _body(self, function: Function) -> list[Any]:
        """A function's blocks from the entry to every return; programs that branch apart are followed in turn."""
        blocks = {block.label: block for block in function.body.blocks}
        entry = function.body.blocks[0]
        results: list[Any] = []
        todo: list[tuple[Block, list[Any], Array | None]] = [(entry, [], self.active)]
        while todo:
            block, args, active = todo.pop()
            self.active = active
            for (slot, _), value in zip(block.args, args, strict=False):
                self.env[slot] = value
            end = self._block(block)
            if end.name == "tt.return":
                results = self._merge(results, [self.env[s] for s in end.operands], active)
            elif end.name == "cf.br":
                label, passed = end.successors[0]
                todo.append((blocks[label], [self.env[s] for s in passed], active))
            else:
                condition = self._per_program(self.env[end.operands[0]])
                branches = zip(end.successors, (condition, ~condition), strict=True)
                for (label, passed), takes in reversed(list(branches)):
                    who = takes if active is None else takes & active
                    if who.any():
                        todo.append((blocks[label], [self.env[s] for s in passed], None if who.all() else who))
        return results

    def _merge(self, old: list[Any], new: list[Any], active: Array | None) -> list[Any]:
        if not old or active is None:
            return new
        return [_select(active, b, a) for a, b in zip(old, new, strict=True)]

    def _per_program(self, value: Array) -> Array:
        return np.broadcast_to(value.reshape(-1), (self.programs.size,))

    def _block(self, block: Block) -> Op:
        """Runs a block up to its terminator, which is returned."""
        env = self.env
        pure = arithmetic.PURE
        contractions = self.analysis.contractions
        wraps = self.analysis.wraps
        for op in block.ops:
            name = op.name
            function = pure.get(name)
            if function is not None:
                contraction = contractions.get(op.index)
                if contraction is not None:
                    rank = 1 + len(op.type.shape)
                    product = (_ranked(env[contraction.left], rank), _ranked(env[contraction.right], rank))
                    env[op.results[0]] = arithmetic.fused_multiply_add(
                        op, product, env[contraction.addend], negate_product=contraction.negate_product
                    )
                else:
                    values = [env[slot] for slot in op.operands]
                    env[op.results[0]] = result = function(op, values)
                    if op.index in wraps:
                        self._watch_overflow(op, values, result)
                if op.attrs and ("tt.divisibility" in op.attrs or "tt.contiguity" in op.attrs):
                    self._check_hint(op, env[op.results[0]])
                continue
            if name in _TERMINATORS:
                return op
            handler = _HANDLERS.get(name)
            if handler is None:
                raise NotModelled(f"the operation `{name}`", where=op.where)
            handler(self, op)
        raise ValueError("a TTIR block without a terminator")

    def _for(self, op: Op) -> None:
        low, high, step = (self.env[slot] for slot in op.operands[:3])
        body = op.regions[0].blocks[0]
        carried = [self.env[slot] for slot in op.operands[3:]]
        counter = body.args[0][0]
        active = self.active
        trips = np.maximum(0, -((low.astype(np.int64) - high) // np.maximum(step, 1)))
        trips = np.where(np.asarray(step) > 0, trips, 0)
        own = trips if active is None or trips.size == 1 else trips[active]
        uniform = own.size > 0 and bool((own == own.flat[0]).all())
        for trip in range(int(own.max()) if own.size else 0):
            _CURRENT[0] = op.where
            if not uniform:
                takes = self._per_program(trips > trip)
                self.active = takes if active is None else takes & active
            self.env[counter] = (low + np.asarray(trip, dtype=low.dtype) * step).astype(low.dtype)
            for (slot, _), value in zip(body.args[1:], carried, strict=True):
                self.env[slot] = value
            end = self._block(body)
            fresh = [self.env[slot] for slot in end.operands]
            if uniform:
                carried = fresh
            else:
                assert self.active is not None
                carried = [_select(self.active, new, old) for new, old in zip(fresh, carried, strict=True)]
        self.active = active
        for slot, value in zip(op.results, carried, strict=True):
            self.env[slot] = value

    def _while(self, op: Op) -> None:
        before, after = (region.blocks[0] for region in op.regions)
        carried = [self.env[slot] for slot in op.operands]
        outer = self.active
        results: list[Any] = [None] * len(op.results)
        polls = 0
        watching = any(o.name in POLLS for o in (*before.ops, *after.ops))
        while True:
            memory_before = self.memory.changes
            _CURRENT[0] = op.where
            for (slot, _), value in zip(before.args, carried, strict=True):
                self.env[slot] = value
            end = self._block(before)
            condition = self._per_program(self.env[end.operands[0]])
            passed = [self.env[slot] for slot in end.operands[1:]]
            here = self.active
            leaves = ~condition if here is None else ~condition & here
            results = [
                new if old is None else _select(leaves, new, old) for new, old in zip(passed, results, strict=True)
            ]
            stays = condition if here is None else condition & here
            if not stays.any():
                break
            self.active = None if stays.all() else stays
            for (slot, _), value in zip(after.args, passed, strict=True):
                self.env[slot] = value
            end = self._block(after)
            old, carried = carried, [self.env[slot] for slot in end.operands]
            polls += 1
            # Nothing carried on and nothing stored: every further round would be like this one.
            stuck = self.memory.changes == memory_before and all(map(np.array_equal, old, carried))
            if watching and (stuck or (polls > _PATIENCE and self.analysis.sequential)):
                raise VirtualGpuError(
                    "K505",
                    f"program {self.memory.program(int(self.programs[0]))} waits in a loop for a value that no earlier "
                    "program stores",
                    "Programs of one launch may run one after another: never wait for a program that comes later.",
                    where=op.where,
                )
        self.active = outer
        for slot, value in zip(op.results, results, strict=True):
            self.env[slot] = value

    def _if(self, op: Op) -> None:
        condition = self.env[op.operands[0]]
        active = self.active
        own = condition if active is None or condition.size == 1 else condition[active]
        if own.size == 0 or own.all() or not own.any():
            taken = 0 if own.size and own.all() else 1
            values = self._branch(op, taken)
        else:
            condition = self._per_program(condition)
            self.active = condition if active is None else condition & active
            yes = self._branch(op, 0)
            self.active = ~condition if active is None else ~condition & active
            no = self._branch(op, 1)
            values = [_select(condition, a, b) for a, b in zip(yes, no, strict=True)]
            self.active = active
        for slot, value in zip(op.results, values, strict=True):
            self.env[slot] = value

    def _branch(self, op: Op, number: int) -> list[Any]:
        if number >= len(op.regions):
            return []
        end = self._block(op.regions[number].blocks[0])
        return [self.env[slot] for slot in end.operands]

    def _call(self, op: Op) -> None:
        name = op.words[0]
        callee = self.module.functions[name]
        saved = (self.env, self.function, self.analysis, self.active)
        values = [self.env[slot] for slot in op.operands]
        self.function, self.analysis = callee, self.analyses[name]
        self.env = [None] * callee.slots
        for (slot, _), value in zip(callee.args, values, strict=True):
            self.env[slot] = value
        results = self._body(callee)
        self.env, self.function, self.analysis, self.active = saved
        for slot, value in zip(op.results, results, strict=True):
            self.env[slot] = value

    def _nothing(self, op: Op) -> None:
        """A barrier: the warps of a program are not apart here."""

    # Blocks and their shapes.

    def _whole(self, value: Array, shape: tuple[int, ...], programs: int | None = None) -> Array:
        """The value with every axis at its full extent; the program axis only if `programs` says so."""
        return np.broadcast_to(value, (value.shape[0] if programs is None else programs, *shape))

    def _constant(self, op: Op) -> None:
        self.env[op.results[0]] = arithmetic.constant(op)

    def _program_id(self, op: Op) -> None:
        x, y, _ = self.memory.grid
        linear = self.programs
        part = {"x": linear % x, "y": linear // x % y, "z": linear // (x * y)}[op.words[0]]
        self.env[op.results[0]] = part.astype(np.int32)

    def _num_programs(self, op: Op) -> None:
        axis = {"x": 0, "y": 1, "z": 2}[op.words[0]]
        self.env[op.results[0]] = np.array([self.memory.grid[axis]], dtype=np.int32)

    def _range(self, op: Op) -> None:
        span = np.arange(int(op.attrs["start"]), int(op.attrs["end"]), dtype=np.int32)
        self.env[op.results[0]] = span[None, :]
        self._check_hint(op, self.env[op.results[0]])

    def _splat(self, op: Op) -> None:
        value = self.env[op.operands[0]]
        self.env[op.results[0]] = value.reshape(value.shape[0], *(1,) * len(op.type.shape))

    def _same(self, op: Op) -> None:
        self.env[op.results[0]] = self.env[op.operands[0]]

    def _expand(self, op: Op) -> None:
        self.env[op.results[0]] = np.expand_dims(self.env[op.operands[0]], 1 + int(op.attrs["axis"]))

    def _transpose(self, op: Op) -> None:
        order = [int(n) + 1 for n in op.attrs["order"].partition(":")[2].strip(" >").split(",")]
        self.env[op.results[0]] = np.transpose(self.env[op.operands[0]], (0, *order))

    def _reshape(self, op: Op) -> None:
        value = self._whole(self.env[op.operands[0]], op.types[0].shape)
        self.env[op.results[0]] = value.reshape(value.shape[0], *op.type.shape)

    def _join(self, op: Op) -> None:
        parts = [self._whole(self.env[slot], op.types[0].shape) for slot in op.operands]
        self.env[op.results[0]] = np.stack(np.broadcast_arrays(*parts), axis=-1)

    def _split(self, op: Op) -> None:
        value = self._whole(self.env[op.operands[0]], op.types[0].shape)
        for part, slot in enumerate(op.results):
            self.env[slot] = value[..., part]

    def _cat(self, op: Op) -> None:
        left, right = (self._whole(self.env[slot], op.types[0].shape) for slot in op.operands)
        count = max(left.shape[0], right.shape[0])
        sides = [np.broadcast_to(side, (count, *side.shape[1:])) for side in (left, right)]
        self.env[op.results[0]] = np.concatenate(sides, axis=1)

    def _gather(self, op: Op) -> None:
        axis = 1 + int(op.attrs["axis"])
        source = self._whole(self.env[op.operands[0]], op.types[0].shape, self.programs.size)
        index = self._whole(self.env[op.operands[1]], op.types[1].shape, self.programs.size)
        self.env[op.results[0]] = np.take_along_axis(source, index.astype(np.int64), axis=axis)

    def _histogram(self, op: Op) -> None:
        bins = op.type.shape[0]
        source = self._whole(self.env[op.operands[0]], op.types[0].shape, self.programs.size)
        mask = np.ones(source.shape, dtype=bool)
        if len(op.operands) > 1:
            mask = self._whole(self.env[op.operands[1]], op.types[0].shape, self.programs.size)
        counts = [np.bincount(row[keep], minlength=bins)[:bins] for row, keep in zip(source, mask, strict=True)]
        self.env[op.results[0]] = np.asarray(counts, dtype=np.int32)

    def _select(self, op: Op) -> None:
        condition, yes, no = (self.env[slot] for slot in op.operands)
        if isinstance(yes, Descriptor):
            raise NotModelled("a choice between tensor descriptors", where=op.where)
        rank = max(yes.ndim, no.ndim)
        self.env[op.results[0]] = np.where(_ranked(condition, rank), yes, no)

    def _undefined(self, op: Op) -> None:
        self.env[op.results[0]] = np.zeros((1,) * (1 + len(op.type.shape)), dtype=NUMPY[op.type.element])

    def _dot(self, op: Op) -> None:
        shapes = [kind.shape for kind in op.types]
        values = [self._whole(self.env[slot], shape) for slot, shape in zip(op.operands, shapes[:2], strict=False)]
        values.append(self.env[op.operands[2]])
        self.env[op.results[0]] = arithmetic.dot(op, values)

    def _reduce(self, op: Op) -> None:
        """Pairwise: halves are combined until one element is left, each step in the element's own precision."""
        axis = 1 + int(op.attrs["axis"])
        values = self._materialised(op)
        while values[0].shape[axis] > 1:
            half = values[0].shape[axis] // 2
            pairs = (
                [(np.take(v, range(half), axis), np.take(v, range(half, 2 * half), axis)) for v in values]
                if (axis != values[0].ndim - 1)
                else [(v[..., :half], v[..., half : 2 * half]) for v in values]
            )
            values = self._combine(op, [a for a, _ in pairs], [b for _, b in pairs])
        for slot, value in zip(op.results, values, strict=True):
            self.env[slot] = np.squeeze(value, axis=axis)

    def _scan(self, op: Op) -> None:
        axis = 1 + int(op.attrs["axis"])
        values = [np.moveaxis(value, axis, -1) for value in self._materialised(op)]
        backwards = op.attrs.get("reverse") == "true"
        if backwards:
            values = [value[..., ::-1] for value in values]
        extent = values[0].shape[-1]
        distance = 1
        while distance < extent:
            joined = self._combine(op, [v[..., :-distance] for v in values], [v[..., distance:] for v in values])
            values = [
                np.concatenate([old[..., :distance], new], axis=-1) for old, new in zip(values, joined, strict=True)
            ]
            distance *= 2
        for slot, value in zip(op.results, values, strict=True):
            self.env[slot] = np.moveaxis(value[..., ::-1] if backwards else value, -1, axis)

    def _materialised(self, op: Op) -> list[Array]:
        values = [self.env[slot] for slot in op.operands]
        count = max(value.shape[0] for value in values)
        return [self._whole(v, kind.shape, count) for v, kind in zip(values, op.types, strict=False)]

    def _combine(self, op: Op, left: list[Array], right: list[Array]) -> list[Array]:
        body = op.regions[0].blocks[0]
        for (slot, _), value in zip(body.args, [*left, *right], strict=True):
            self.env[slot] = value
        end = self._block(body)
        shape = left[0].shape
        return [np.broadcast_to(self.env[slot], shape) for slot in end.operands]

    # Memory.

    def _rows(self, value: Array, shape: tuple[int, ...]) -> Array:
        """(programs, lanes)."""
        full = np.broadcast_to(value, (self.programs.size, *shape))
        return full.reshape(self.programs.size, -1)

    def _mask(self, slot: int | None, shape: tuple[int, ...]) -> Array:
        lanes = int(np.prod(shape, dtype=np.int64))
        if slot is None:
            mask = np.ones((self.programs.size, lanes), dtype=np.bool_)
        else:
            mask = self._rows(self.env[slot], shape)
        return mask if self.active is None else mask & self.active[:, None]

    def _site(self, op: Op) -> Site:
        def wrapped() -> SourceLine | None:
            for index in self.analysis.address_ops.get(op.index, ()):
                if index in self.wrapped:
                    return self.wrapped[index]
            return None

        _CURRENT[0] = op.where
        return Site(op.index, op.where, wrapped)

    def _note(self, op: Op, kind: str, addresses: Array, mask: Array, width: int, hint: int, has_other: bool) -> None:
        key = (kind, op.index)
        access = self.accesses.get(key)
        if access is None:
            names = self.memory.buffers
            argument = names[hint].name if 0 <= hint < len(names) else ""
            access = self.accesses[key] = Access(kind, argument, op.where, has_other=has_other)
        lanes = int(np.count_nonzero(mask))
        access.lanes += lanes
        access.masked += mask.size - lanes
        access.bytes += lanes * width
        access.executions += 1
        if self.count_sectors:
            access.sectors += _distinct_sectors(addresses, mask)

    def _origin(self, slot: int) -> int:
        """Number of the tensor argument a pointer value comes from, among the buffers; -1 if unknown."""
        number = self.analysis.origin.get(slot, -1)
        if self.function.name != self.module.entry or number < 0:
            return -1
        return self.buffer_numbers.get(number, -1)

    def _load(self, op: Op) -> None:
        shape, element = op.type.shape, op.type.pointee
        _known(element, op)
        addresses = self._rows(self.env[op.operands[0]], shape)
        mask = self._mask(op.operands[1] if len(op.operands) > 1 else None, shape)
        other = self._rows(self.env[op.operands[2]], shape) if len(op.operands) > 2 else None
        hint = self._origin(op.operands[0])
        has_other = other is not None or len(op.operands) < 2
        self._note(op, "load", addresses, mask, WIDTH[element], hint, has_other)
        if not has_other:
            taking = self.programs.size if self.active is None else int(np.count_nonzero(self.active))
            self.memory.poisoned_lanes += taking * mask.shape[1] - int(np.count_nonzero(mask))
        values = self.memory.load(addresses, mask, other, element, self.programs, self._site(op), hint)
        self.env[op.results[0]] = values.reshape(self.programs.size, *shape)

    def _store(self, op: Op) -> None:
        shape, element = op.type.shape, op.type.pointee
        _known(element, op)
        addresses = self._rows(self.env[op.operands[0]], shape)
        values = self._rows(self.env[op.operands[1]], shape)
        mask = self._mask(op.operands[2] if len(op.operands) > 2 else None, shape)
        hint = self._origin(op.operands[0])
        self._note(op, "store", addresses, mask, WIDTH[element], hint, True)
        self.memory.store(addresses, values, mask, element, self.programs, self._site(op), hint)

    def _atomic(self, op: Op) -> None:
        pointer = op.types[0]
        shape, element = pointer.shape, pointer.pointee
        _known(element, op)
        addresses = self._rows(self.env[op.operands[0]], shape)
        if op.name == "tt.atomic_cas":
            mask = self._mask(None, shape)
            expected, values = (self._rows(self.env[slot], shape).reshape(-1) for slot in op.operands[1:3])
            atomic = Atomic("cas", element, values, expected)
        else:
            mask = self._mask(op.operands[2] if len(op.operands) > 2 else None, shape)
            atomic = _atomic_named(op, element, self._rows(self.env[op.operands[1]], shape))
        ordered = bool(op.results) and op.results[0] in self.analysis.used
        result = self._exchange(op, atomic, addresses, mask, self._origin(op.operands[0]), ordered)
        if op.results:
            self.env[op.results[0]] = result.reshape(self.programs.size, *shape)

    def _exchange(self, op: Op, atomic: Atomic, addresses: Array, mask: Array, hint: int, ordered: bool) -> Array:
        self._note(op, "atomic", addresses, mask, WIDTH[atomic.element], hint, True)
        return self.memory.exchange(
            addresses, mask, atomic.element, self.programs, self._site(op), hint, atomic, ordered
        )

    def _descriptor_reduce(self, op: Op) -> None:
        rank = len(self.env[op.operands[0]].kind.shape)
        descriptor, addresses, mask = self._descriptor_lanes(op, op.operands[1 : 1 + rank])
        mask = mask if self.active is None else mask & self.active[:, None]
        values = self._rows(self.env[op.operands[-1]], op.types[-1].shape)
        atomic = _atomic_named(op, descriptor.kind.pointee, values)
        self._exchange(op, atomic, addresses, mask, descriptor.origin, ordered=False)

    def _make_descriptor(self, op: Op) -> None:
        kind = op.types[-1]
        rank = len(kind.shape)
        base, *rest = (self.env[slot] for slot in op.operands)
        origin = self._origin(op.operands[0])
        # 1 is zero, 2 is NaN: PaddingOption of the dialect.
        padding = "nan" if op.attrs.get("padding", "1").startswith("2") else "zero"
        self.env[op.results[0]] = Descriptor(base, rest[:rank], rest[rank : 2 * rank], kind, origin, padding)

    def _descriptor_lanes(self, op: Op, index: Sequence[int]) -> tuple[Descriptor, Array, Array]:
        descriptor: Descriptor = self.env[op.operands[0]]
        shape = descriptor.kind.shape
        rank = len(shape)
        width = WIDTH[descriptor.kind.pointee]
        addresses: Array = _ranked(descriptor.base, 1 + rank)
        mask: Array = np.ones((1,) * (1 + rank), dtype=np.bool_)
        for axis, slot in enumerate(index):
            span = np.arange(shape[axis], dtype=np.int64).reshape(-1, *(1,) * (rank - 1 - axis))
            at = _ranked(self.env[slot].astype(np.int64), 1 + rank) + span
            extent = _ranked(descriptor.shape[axis], 1 + rank)
            stride = _ranked(descriptor.strides[axis], 1 + rank).astype(np.int64)
            mask = mask & (at >= 0) & (at < extent)
            addresses = addresses + at * stride * width
        return descriptor, self._rows(addresses, shape), self._rows(mask, shape)

    def _descriptor_load(self, op: Op) -> None:
        rank = len(self.env[op.operands[0]].kind.shape)
        descriptor, addresses, mask = self._descriptor_lanes(op, op.operands[1 : 1 + rank])
        mask = mask if self.active is None else mask & self.active[:, None]
        element = descriptor.kind.pointee
        self._note(op, "load", addresses, mask, WIDTH[element], descriptor.origin, True)
        padding = np.full((1, 1), poison(element, descriptor.padding), dtype=NUMPY[element])
        values = self.memory.load(addresses, mask, padding, element, self.programs, self._site(op), descriptor.origin)
        if descriptor.rounds and element == "f32":
            values = round_tf32(values)
        block = values.reshape(self.programs.size, *descriptor.kind.shape)
        self.env[op.results[0]] = block.reshape(self.programs.size, *op.type.shape)

    def _descriptor_store(self, op: Op) -> None:
        rank = len(self.env[op.operands[0]].kind.shape)
        descriptor, addresses, mask = self._descriptor_lanes(op, op.operands[1 : 1 + rank])
        mask = mask if self.active is None else mask & self.active[:, None]
        element = descriptor.kind.pointee
        values = self._rows(self.env[op.operands[-1]], op.types[-1].shape)
        self._note(op, "store", addresses, mask, WIDTH[element], descriptor.origin, True)
        self.memory.store(addresses, values, mask, element, self.programs, self._site(op), descriptor.origin)

    def _addptr(self, op: Op) -> None:
        _known(op.types[0].pointee, op)
        base, offset = (self.env[slot] for slot in op.operands)
        self.env[op.results[0]] = base + offset.astype(np.int64) * WIDTH[op.types[0].pointee]
        self._check_hint(op, self.env[op.results[0]], WIDTH[op.types[0].pointee])

    # Words from the kernel.

    def _print(self, op: Op) -> None:
        for value_number, slot in enumerate(op.operands or (None,)):
            value = (
                None
                if slot is None
                else np.broadcast_to(self.env[slot], (self.programs.size, *self.env[slot].shape[1:]))
            )
            for row, program in enumerate(self.programs.tolist()):
                if self.active is not None and not self.active[row]:
                    continue
                shown = "" if value is None else np.array2string(value[row], threshold=16, edgeitems=4)
                operand = f"operand {value_number}: " if len(op.operands) > 1 else ""
                line = f"pid {self.memory.program(program)}{op.words[0]}{operand}{shown}"
                self.trace.prints.append(line)
                if self.echo:
                    self.echo(line)

    def _assert(self, op: Op) -> None:
        condition = self.env[op.operands[0]]
        rows = np.broadcast_to(condition.reshape(condition.shape[0], -1).all(axis=1), (self.programs.size,))
        failed = ~rows if self.active is None else ~rows & self.active
        if failed.any():
            program = self.memory.program(int(self.programs[int(np.argmax(failed))]))
            raise VirtualGpuError(
                "K309",
                f"device_assert failed in program {program}: {op.words[0] if op.words else ''}",
                "The condition is yours: print its operands with tl.device_print, or run `kata debug`.",
                where=op.where,
            )

    def _assume(self, op: Op) -> None:
        holds = np.broadcast_to(self.env[op.operands[0]].reshape(-1), (self.programs.size,))
        broken = ~holds if self.active is None else ~holds & self.active
        if broken.any():
            program = self.memory.program(int(self.programs[int(np.argmax(broken))]))
            raise VirtualGpuError(
                "K409",
                f"what tl.assume promises is not true in program {program}",
                "The compiler builds on this promise; assume only what holds for every program.",
                where=op.where,
            )

    def _watch_overflow(self, op: Op, values: Sequence[Array], result: Array) -> None:
        if op.index in self.wrapped:
            return
        left, right = (value.astype(np.int64) for value in values)
        exact = {"arith.muli": np.multiply, "arith.addi": np.add, "arith.subi": np.subtract}[op.name](left, right)
        if (exact != result).any():
            self.wrapped[op.index] = op.where

    def _check_hint(self, op: Op, value: Array, width: int = 1) -> None:
        """A multiple_of or max_contiguous that the values contradict: the compiler believes it, so the chip faults."""
        divisors, runs = (_claims(op.attrs.get(key, "")) for key in ("tt.divisibility", "tt.contiguity"))
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


def _claims(text: str) -> tuple[int, ...]:
    body = text.removeprefix("dense<").strip("[]<> ")
    return tuple(int(part) for part in body.split(",")) if body else ()


def _ranked(value: Array, rank: int) -> Array:
    """Adds axes after the program axis' value, so that a scalar per program meets a block."""
    return value if value.ndim == rank else value.reshape(value.shape[0], *(1,) * (rank - value.ndim), *value.shape[1:])


def _select(condition: Array, yes: Any, no: Any) -> Any:
    """Per program."""
    if yes is no or isinstance(yes, Descriptor):
        return yes
    return np.where(condition.reshape(-1, *(1,) * (max(yes.ndim, no.ndim) - 1)), yes, no)


def _distinct_sectors(addresses: Array, mask: Array) -> int:
    """Distinct 32-byte sectors of each program, summed."""
    sectors = np.where(mask, addresses >> 5, -1)
    sectors.sort(axis=1)
    changes = np.count_nonzero(sectors[:, 1:] != sectors[:, :-1]) + sectors.shape[0]
    return int(changes - np.count_nonzero(sectors[:, 0] == -1))


def _known(element: str, op: Op) -> None:
    if element not in WIDTH:
        raise NotModelled(f"the number format {element}", where=op.where)


def _atomic_named(op: Op, element: str, values: Array) -> Atomic:
    name = op.words[0]
    if not known(name):
        raise NotModelled(f"the atomic `{name}`", where=op.where)
    return Atomic(name, element, values.reshape(-1))


_TERMINATORS = frozenset(
    ["tt.return", "scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return", "cf.br", "cf.cond_br"]
)

_HANDLERS: dict[str, Callable[[Executor, Op], None]] = {
    "arith.constant": Executor._constant,
    "arith.select": Executor._select,
    "ub.poison": Executor._undefined,
    "scf.for": Executor._for,
    "scf.while": Executor._while,
    "scf.if": Executor._if,
    "tt.call": Executor._call,
    "tt.get_program_id": Executor._program_id,
    "tt.get_num_programs": Executor._num_programs,
    "tt.make_range": Executor._range,
    "tt.splat": Executor._splat,
    "tt.unsplat": Executor._same,
    "tt.broadcast": Executor._same,
    "tt.expand_dims": Executor._expand,
    "tt.trans": Executor._transpose,
    "tt.reshape": Executor._reshape,
    "tt.join": Executor._join,
    "tt.split": Executor._split,
    "tt.cat": Executor._cat,
    "tt.gather": Executor._gather,
    "tt.histogram": Executor._histogram,
    "tt.dot": Executor._dot,
    "tt.reduce": Executor._reduce,
    "tt.scan": Executor._scan,
    "tt.addptr": Executor._addptr,
    "tt.load": Executor._load,
    "tt.store": Executor._store,
    "tt.atomic_rmw": Executor._atomic,
    "tt.atomic_cas": Executor._atomic,
    "tt.make_tensor_descriptor": Executor._make_descriptor,
    "tt.descriptor_load": Executor._descriptor_load,
    "tt.descriptor_store": Executor._descriptor_store,
    "tt.descriptor_reduce": Executor._descriptor_reduce,
    "gpu.barrier": Executor._nothing,
    "ttg.barrier": Executor._nothing,
    "tt.print": Executor._print,
    "tt.assert": Executor._assert,
    "llvm.intr.assume": Executor._assume,
}
