"""The memory of one launch: loads, stores and atomics on the tensors it was given.

A lane outside every view never touches real memory: its load reads poison, its store is dropped, and both are put
in the book. Beside the data runs a shadow, which knows what was ever written and by whom.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from checker.vgpu import floats
from checker.vgpu.atomics import Atomic
from checker.vgpu.authors import Authors
from checker.vgpu.floats import Array
from checker.vgpu.races import Races
from checker.vgpu.shadow import Shadow, Shadows
from checker.vgpu.trace import Violation
from checker.vgpu.views import Buffer, slot_of
from checker.vgpu.violations import Book, Site, addresses_of

__all__ = ["LaunchMemory"]


@dataclass
class LaunchMemory:
    """The memory one launch sees. All arrays are (programs, lanes); `programs` holds linear program numbers.

    `read_only` numbers the buffers into whose storage the kernel cannot store, which therefore need no watch for races.
    `changed` numbers those whose bytes are no longer what they were, `changes` counts the times this happened.
    """

    buffers: list[Buffer]
    shadows: Shadows
    grid: tuple[int, int, int]
    poison: str = "nan"
    poison_only: frozenset[tuple[object, ...]] | None = None
    check_races: bool = True
    authors: Authors | None = None
    launch: int = 0
    read_only: frozenset[int] = frozenset()
    poisoned_lanes: int = 0
    changed: set[int] = field(default_factory=set)
    changes: int = 0

    def __post_init__(self) -> None:
        self.book = Book(self.grid)
        self.races = Races(self.book)

    @property
    def violations(self) -> list[Violation]:
        """What the launch did wrong, in the order of programs, then of the source."""
        return self.book.in_order()

    def program(self, linear: int) -> tuple[int, int, int]:
        """(x, y, z) of a linear program number, x fastest."""
        return self.book.program(linear)

    def buffer_of(self, addresses: Array, mask: Array, hint: int) -> Buffer | None:
        """The buffer whose slot holds the first active address; `hint` (an argument number) where none is active."""
        if addresses.size and mask.any():
            first = int(addresses.reshape(-1)[int(np.argmax(mask))])
            slot = int(slot_of(first))
            if 0 <= slot < len(self.buffers):
                return self.buffers[slot]
        return self.buffers[hint] if 0 <= hint < len(self.buffers) else None

    def _parts(self, addresses: Array, mask: Array, hint: int) -> list[Array]:
        """The mask, one part for each tensor its lanes lead into, where that may be several (`hint` is -1)."""
        if hint >= 0 or len(self.buffers) < 2:
            return [mask]
        slots = slot_of(addresses)
        found = [number for number in np.unique(slots[mask]).tolist() if 0 <= number < len(self.buffers)]
        if len(found) < 2:
            return [mask]
        parts = [mask & (slots == number) for number in found]
        # What leads nowhere goes with the first.
        parts[0] |= mask & ~np.isin(slots, found)
        return parts

    def load(
        self, addresses: Array, mask: Array, other: Array | None, element: str, programs: Array, site: Site, hint: int
    ) -> Array:
        """Reads; lanes that are masked off, outside or in a gap never touch memory."""
        parts = self._parts(addresses, mask, hint)
        if len(parts) > 1:
            loaded = [self.load(addresses, part, other, element, programs, site, hint) for part in parts]
            return np.asarray(np.select(parts, loaded, loaded[-1]))
        fill: Any = floats.poison(element, self._poison_at(site, "masked"))
        buffer = self.buffer_of(addresses, mask, hint)
        if other is not None:
            result = np.array(np.broadcast_to(other, addresses.shape), dtype=floats.NUMPY[element])
        else:
            result = np.full(addresses.shape, fill, dtype=floats.NUMPY[element])
        if buffer is None:
            self.book.add("load_outside", None, addresses, mask, programs, site)
            return result
        ok, offsets = self._legal("load", buffer, addresses, mask, programs, site, element)
        lost = mask & ~ok
        if lost.any():
            result[lost] = floats.poison(element, self._poison_at(site, "gap"))
        if not ok.any():
            return result
        flat = buffer.flat if buffer.element == element else buffer.flat.view(floats.stored_dtype(element))
        whole = bool(ok.all())
        where = offsets if whole else offsets[ok]
        values = floats.decode(element, flat[where])
        if whole:
            result = values.reshape(addresses.shape)
        else:
            result[ok] = values
        self._note_read(buffer, where.reshape(-1), ok, programs, site)
        return result

    def store(
        self, addresses: Array, values: Array, mask: Array, element: str, programs: Array, site: Site, hint: int
    ) -> None:
        """Writes the lanes that are inside the view; reports the others."""
        parts = self._parts(addresses, mask, hint)
        if len(parts) > 1:
            for part in parts:
                self.store(addresses, values, part, element, programs, site, hint)
            return
        buffer = self.buffer_of(addresses, mask, hint)
        if buffer is None:
            self.book.add("store_outside", None, addresses, mask, programs, site)
            return
        ok, offsets = self._legal("store", buffer, addresses, mask, programs, site, element)
        if not ok.any():
            return
        flat = buffer.flat if buffer.element == element else buffer.flat.view(floats.stored_dtype(element))
        where = offsets[ok]
        new = floats.encode(element, np.broadcast_to(values, addresses.shape)[ok])
        shadow = self.shadows.of(buffer)
        slots = buffer.slots(where)
        fresh = _bits(flat[where]) != _bits(new)
        if self.check_races:
            self.races.write(buffer, shadow, where, _bits(new), fresh, ok, programs, site)
        if fresh.any():
            self._note_change(buffer)
        flat[where] = new
        shadow.written[slots] = True
        if self.authors is not None:
            self.authors.stored(buffer, flat, where, self.launch)

    def exchange(
        self,
        addresses: Array,
        mask: Array,
        element: str,
        programs: Array,
        site: Site,
        hint: int,
        atomic: Atomic,
        ordered: bool,
    ) -> Array:
        """An atomic, lane by lane; returns the old values (0 where masked off), right if `ordered` asks for them."""
        result = np.zeros(addresses.shape, dtype=floats.NUMPY[element])
        parts = self._parts(addresses, mask, hint)
        if len(parts) > 1:
            for part in parts:
                old = self.exchange(addresses, part, element, programs, site, hint, atomic, ordered)
                result[part] = old[part]
            return result
        buffer = self.buffer_of(addresses, mask, hint)
        if buffer is None:
            self.book.add("store_outside", None, addresses, mask, programs, site)
            return result
        ok, offsets = self._legal("store", buffer, addresses, mask, programs, site, element)
        if not ok.any():
            return result
        where = offsets[ok]
        lanes = np.flatnonzero(ok.reshape(-1))
        shadow = self.shadows.of(buffer)
        slots = buffer.slots(where)
        if atomic.reads or ordered:
            self._check_written(buffer, shadow, where, ok, programs, site)
        flat = buffer.flat if buffer.element == element else buffer.flat.view(floats.stored_dtype(element))
        before = flat[where]
        result.reshape(-1)[lanes] = atomic.apply(flat, where, lanes, ordered=ordered)
        if (_bits(before) != _bits(flat[where])).any():
            self._note_change(buffer)
        shadow.written[slots] = True
        if self.authors is not None:
            self.authors.stored(buffer, buffer.flat, where, self.launch)
        if self.check_races:
            self.races.exchange(buffer, shadow, where, ok, ordered, programs, site)
        return result

    def _note_change(self, buffer: Buffer) -> None:
        self.changed.add(buffer.number)
        self.changes += 1

    def _note_read(self, buffer: Buffer, offsets: Array, ok: Array, programs: Array, site: Site) -> None:
        shadow = self.shadows.of(buffer)
        self._check_written(buffer, shadow, offsets, ok, programs, site)
        if self.check_races and buffer.number not in self.read_only:
            self.races.read(buffer, shadow, offsets, ok, programs, site)

    def _check_written(
        self, buffer: Buffer, shadow: Shadow, offsets: Array, ok: Array, programs: Array, site: Site
    ) -> None:
        if shadow.complete:
            return
        unwritten = ~shadow.written[buffer.slots(offsets)]
        if unwritten.any():
            bad = ok.copy()
            bad[ok] = unwritten
            self.book.add("load_unwritten", buffer, addresses_of(buffer, offsets, ok), bad, programs, site)

    def _poison_at(self, site: Site, lanes: str) -> str:
        """What undefined lanes of a load read. `lanes` is "masked" (held back by the mask) or "gap" (not in the view).

        `poison_only` names loads as (file, line, column), or one kind of their lanes as (file, line, column, lanes).
        """
        if self.poison_only is None or site.where is None:
            return self.poison
        key = (site.where.file, site.where.line, site.where.column)
        return self.poison if key in self.poison_only or (*key, lanes) in self.poison_only else "nan"

    def _legal(
        self, verb: str, buffer: Buffer, addresses: Array, mask: Array, programs: Array, site: Site, element: str
    ) -> tuple[Array, Array]:
        offset_bytes = addresses - buffer.base
        width = floats.WIDTH[element]
        # Widths are powers of two.
        offsets = offset_bytes >> (width.bit_length() - 1) if width > 1 else offset_bytes
        inside, _ = buffer.locate(offsets)
        ok = mask & inside
        if width > 1:
            crooked = mask & (offset_bytes & (width - 1) != 0)
            if crooked.any():
                self.book.add("misaligned", buffer, addresses, crooked, programs, site)
                ok &= ~crooked
        bad = mask & ~inside
        if bad.any():
            gap = bad & (offsets >= 0) & (offsets < buffer.span)
            if verb == "load" and gap.any():
                self.book.add("load_gap", buffer, addresses, gap, programs, site)
                self.poisoned_lanes += int(np.count_nonzero(gap))
                bad &= ~gap
            if bad.any():
                self.book.add(f"{verb}_outside", buffer, addresses, bad, programs, site)
        return ok, offsets


def _bits(values: Array) -> Array:
    return values.view(f"u{values.dtype.itemsize}")
