"""The state of a launch while it runs, and what every operation needs of it.

A value is one array for all programs of a batch: its first axis is the program (length 1 where all agree), the
others are those of the block, any of which has length 1 where the value does not vary. `active` masks the programs
that take part; None is all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from checker.vgpu.analysis import Analysis
from checker.vgpu.errors import NotModelled, SourceLine
from checker.vgpu.floats import WIDTH, Array
from checker.vgpu.memory import LaunchMemory
from checker.vgpu.trace import Access, LaunchTrace
from checker.vgpu.ttir import Block, Function, Module, Op, Type
from checker.vgpu.violations import Site

__all__ = ["Descriptor", "Handler", "Machine", "current_site", "known", "ranked"]

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


class Machine(ABC):
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

    @abstractmethod
    def block(self, block: Block) -> Op:
        """Runs a block up to its terminator, which is returned."""

    @staticmethod
    def at(op: Op | None) -> None:
        """Remembers where the launch is; None once it is over."""
        _CURRENT[0] = op.where if op is not None else None

    def whole(self, value: Array, shape: tuple[int, ...], programs: int | None = None) -> Array:
        """The value with every axis at its full extent; the program axis only if `programs` says so."""
        return np.broadcast_to(value, (value.shape[0] if programs is None else programs, *shape))

    def rows(self, value: Array, shape: tuple[int, ...]) -> Array:
        """(programs, lanes)."""
        full = np.broadcast_to(value, (self.programs.size, *shape))
        return full.reshape(self.programs.size, -1)

    def mask(self, slot: int | None, shape: tuple[int, ...]) -> Array:
        """(programs, lanes): which lanes of an access take part; `slot` holds its mask, None is no mask."""
        lanes = int(np.prod(shape, dtype=np.int64))
        if slot is None:
            mask = np.ones((self.programs.size, lanes), dtype=np.bool_)
        else:
            mask = self.rows(self.env[slot], shape)
        return mask if self.active is None else mask & self.active[:, None]

    def site(self, op: Op) -> Site:
        """Where an access stands, for reports."""

        def wrapped() -> SourceLine | None:
            for index in self.analysis.address_ops.get(op.index, ()):
                if index in self.wrapped:
                    return self.wrapped[index]
            return None

        self.at(op)
        return Site(op.index, op.where, wrapped)

    def note(self, op: Op, kind: str, addresses: Array, mask: Array, width: int, hint: int, has_other: bool) -> None:
        """Counts what an access does, for the trace."""
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

    def origin(self, slot: int) -> int:
        """Number of the tensor argument a pointer value comes from, among the buffers; -1 if unknown."""
        number = self.analysis.origin.get(slot, -1)
        if self.function.name != self.module.entry or number < 0:
            return -1
        return self.buffer_numbers.get(number, -1)


Handler = Callable[[Machine, Op], None]


def ranked(value: Array, rank: int) -> Array:
    """Adds axes after the program axis' value, so that a scalar per program meets a block."""
    return value if value.ndim == rank else value.reshape(value.shape[0], *(1,) * (rank - value.ndim), *value.shape[1:])


def _distinct_sectors(addresses: Array, mask: Array) -> int:
    """Distinct 32-byte sectors of each program, summed."""
    sectors = np.where(mask, addresses >> 5, -1)
    sectors.sort(axis=1)
    changes = np.count_nonzero(sectors[:, 1:] != sectors[:, :-1]) + sectors.shape[0]
    return int(changes - np.count_nonzero(sectors[:, 0] == -1))


def known(element: str, op: Op) -> None:
    """NotModelled for a number format without arithmetic here, such as fp8."""
    if element not in WIDTH:
        raise NotModelled(f"the number format {element}", where=op.where)
