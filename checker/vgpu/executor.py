"""Runs a TTIR function over a grid, many programs at once.

Programs advance in step, as the lanes of a warp do: a value is one array for all of them, and where they take
different branches or trip counts a mask says who takes part. A kernel whose programs talk to each other through
atomics runs one program at a time, in order. This module is the control flow; what operations do stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from checker.vgpu import accesses, arithmetic, blocks, reductions, words
from checker.vgpu.analysis import POLLS
from checker.vgpu.errors import NotModelled, VirtualGpuError
from checker.vgpu.floats import Array
from checker.vgpu.hints import check_hint, watch_overflow
from checker.vgpu.machine import Descriptor, Handler, Machine, current_site, ranked
from checker.vgpu.ttir import Block, Function, Op

__all__ = ["Executor", "current_site"]

# Elements of the largest block that a batch of programs may hold together: keeps arrays inside the CPU's caches.
_BATCH_ELEMENTS = 1 << 18

# A loop that polls memory this often waits for something that will not come.
_PATIENCE = 10_000


class Executor(Machine):
    """A machine that runs: `run` is all there is to call."""

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
        self.trace.violations = self.memory.violations
        self.trace.poisoned_lanes = self.memory.poisoned_lanes
        self.at(None)

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
            end = self.block(block)
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

    def block(self, block: Block) -> Op:
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
                    product = (ranked(env[contraction.left], rank), ranked(env[contraction.right], rank))
                    env[op.results[0]] = arithmetic.fused_multiply_add(
                        op, product, env[contraction.addend], negate_product=contraction.negate_product
                    )
                else:
                    values = [env[slot] for slot in op.operands]
                    env[op.results[0]] = result = function(op, values)
                    if op.index in wraps:
                        watch_overflow(self, op, values, result)
                if op.attrs and ("tt.divisibility" in op.attrs or "tt.contiguity" in op.attrs):
                    check_hint(self, op, env[op.results[0]])
                continue
            if name in _TERMINATORS:
                return op
            control = _CONTROL.get(name)
            handler = _HANDLERS.get(name)
            if control is not None:
                control(self, op)
            elif handler is not None:
                handler(self, op)
            else:
                raise NotModelled(f"the operation `{name}`", where=op.where)
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
            self.at(op)
            if not uniform:
                takes = self._per_program(trips > trip)
                self.active = takes if active is None else takes & active
            self.env[counter] = (low + np.asarray(trip, dtype=low.dtype) * step).astype(low.dtype)
            for (slot, _), value in zip(body.args[1:], carried, strict=True):
                self.env[slot] = value
            end = self.block(body)
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
            self.at(op)
            for (slot, _), value in zip(before.args, carried, strict=True):
                self.env[slot] = value
            end = self.block(before)
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
            end = self.block(after)
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
        end = self.block(op.regions[number].blocks[0])
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


def _select(condition: Array, yes: Any, no: Any) -> Any:
    """Per program."""
    if yes is no or isinstance(yes, Descriptor):
        return yes
    return np.where(condition.reshape(-1, *(1,) * (max(yes.ndim, no.ndim) - 1)), yes, no)


def _nothing(run: Machine, op: Op) -> None:
    """A barrier: the warps of a program are not apart here."""


_TERMINATORS = frozenset(
    ["tt.return", "scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return", "cf.br", "cf.cond_br"]
)

_CONTROL = {
    "scf.for": Executor._for,
    "scf.while": Executor._while,
    "scf.if": Executor._if,
    "tt.call": Executor._call,
}

_HANDLERS: dict[str, Handler] = {
    **blocks.HANDLERS,
    **reductions.HANDLERS,
    **accesses.HANDLERS,
    **words.HANDLERS,
    "gpu.barrier": _nothing,
    "ttg.barrier": _nothing,
}
