"""The book of what a launch did wrong: one entry for each kind and operation, told by the first program that did it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from checker.vgpu.errors import SourceLine
from checker.vgpu.floats import Array
from checker.vgpu.trace import Violation
from checker.vgpu.views import Buffer

__all__ = ["Book", "Site", "addresses_of"]

_INDICES_SHOWN = 6


@dataclass(slots=True)
class Site:
    """Where an access stands: the operation's number in the text, its source line, the argument it was meant for."""

    index: int
    where: SourceLine | None
    wrapped: Callable[[], SourceLine | None]


@dataclass
class Book:
    """Collects violations. All arrays are (programs, lanes); `programs` holds linear program numbers."""

    grid: tuple[int, int, int]
    violations: dict[tuple[str, int], Violation] = field(default_factory=dict)

    def in_order(self) -> list[Violation]:
        """By the program that did it first, then as they were found."""
        return sorted(self.violations.values(), key=lambda violation: (violation.program[::-1], violation.order))

    def add(
        self,
        kind: str,
        buffer: Buffer | None,
        addresses: Array,
        bad: Array,
        programs: Array,
        site: Site,
        other: int | None = None,
    ) -> None:
        """Enters the lanes `bad` of an access; `other` is the program they collide with."""
        count = int(np.count_nonzero(bad))
        if count == 0:
            return
        rows = bad.reshape(bad.shape[0], -1)
        row = int(np.argmax(rows.any(axis=1)))
        program = int(programs[row]) if programs.size > 1 else int(programs[0])
        known = self.violations.get((kind, site.index))
        if known is not None:
            known.count += count
            if program >= self._linear(known.program):
                return
        width = buffer.itemsize if buffer else 1
        base = buffer.base if buffer else 0
        offsets = (addresses.reshape(rows.shape)[row][rows[row]] - base) // width
        fresh = Violation(
            kind=kind,
            argument=buffer.name if buffer else "",
            where=site.where,
            program=self.program(program),
            indices=tuple(int(o) for o in offsets[:_INDICES_SHOWN]),
            count=known.count if known else count,
            shape=buffer.shape if buffer else (),
            strides=buffer.strides if buffer else (),
            other_program=self.program(other) if other is not None and other >= 0 else None,
            wrapped_at=site.wrapped(),
            order=known.order if known else len(self.violations),
        )
        self.violations[kind, site.index] = fresh

    def program(self, linear: int) -> tuple[int, int, int]:
        """(x, y, z) of a linear program number, x fastest."""
        x, y, _ = self.grid
        return linear % x, linear // x % y, linear // (x * y)

    def _linear(self, program: tuple[int, int, int]) -> int:
        x, y, _ = self.grid
        return program[0] + x * (program[1] + y * program[2])


def addresses_of(buffer: Buffer, offsets: Array, ok: Array) -> Array:
    """Addresses of the legal lanes, laid out like `ok` (for reports only)."""
    full = np.zeros(ok.shape, dtype=np.int64)
    full[ok] = buffer.base + offsets * buffer.itemsize
    return full
