"""Programs run in no order: finds where the result would depend on one.

Two programs, or two lanes, that store different bytes to one element; a program that loads what another one
stored, or stores what another one loaded. The same bytes are only counted, and programs that looked at what an
atomic returned are taken to be ordered by it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from checker.vgpu.floats import Array
from checker.vgpu.shadow import Shadow
from checker.vgpu.views import Buffer
from checker.vgpu.violations import Book, Site, addresses_of

__all__ = ["Races"]


@dataclass
class Races:
    """The order-dependence of one launch. All arrays are (programs, lanes); `ok` marks the lanes that take part."""

    book: Book
    enabled: bool = True
    synced: set[int] = field(default_factory=set)
    same_bytes: int = 0

    def read(self, buffer: Buffer, shadow: Shadow, offsets: Array, ok: Array, programs: Array, site: Site) -> None:
        """Notes that the lanes `ok` loaded the elements at `offsets`."""
        slots, who = buffer.slots(offsets), _who(programs, ok)
        for changed in (shadow.writer, shadow.adder):
            if changed is not None:
                last = changed[slots]
                foreign = (last != 0) & (last != who)
                self._report("read_after_write", buffer, offsets, ok, foreign, last, who, programs, site)
        readers = shadow.readers()
        before = readers[slots]
        readers[slots] = np.where((before == 0) | (before == who), who, -1)
        # Two programs reading one element in the same batch: the last one written above is only one of them.
        clash = readers[slots] != who
        readers[slots[clash]] = -1

    def write(
        self, buffer: Buffer, shadow: Shadow, offsets: Array, bits: Array, changed: Array,
        ok: Array, programs: Array, site: Site,
    ) -> None:  # fmt: skip
        """Notes a store of `bits` to the elements at `offsets`, `changed` where it gives other bytes than before."""
        slots, who = buffer.slots(offsets), _who(programs, ok)
        writers = shadow.writers()
        last = writers[slots] if shadow.adder is None else np.where(writers[slots], writers[slots], shadow.adder[slots])
        foreign = (last != 0) & (last != who)
        self.same_bytes += int(np.count_nonzero(foreign & ~changed))
        self._report("store_conflict", buffer, offsets, ok, foreign & changed, last, who, programs, site)
        if shadow.reader is not None:
            seen = shadow.reader[slots]
            early = (seen != 0) & (seen != who) & changed & ~foreign
            self._report("write_after_read", buffer, offsets, ok, early, seen, who, programs, site)
        # Within this one store: does any element receive two values?
        order = np.arange(slots.size, dtype=np.int32)
        writers[slots] = order
        winner = writers[slots]
        double = winner != order
        writers[slots] = who[winner]
        if double.any():
            differ = double & (bits != bits[winner])
            self.same_bytes += int(np.count_nonzero(double & ~differ))
            mine = who == who[winner]
            self._report("lane_conflict", buffer, offsets, ok, differ & mine, who[winner], who, programs, site)
            self._report("store_conflict", buffer, offsets, ok, differ & ~mine, who[winner], who, programs, site)

    def exchange(
        self, buffer: Buffer, shadow: Shadow, offsets: Array, ok: Array, ordered: bool, programs: Array, site: Site
    ) -> None:
        """Notes an atomic; `ordered` says that the program looks at what it returned."""
        slots, who = buffer.slots(offsets), _who(programs, ok)
        if ordered:
            # Only a program that looks at what the atomic returned (a lock, a ticket) can be ordered by it.
            self.synced.update(programs.tolist())
        if shadow.writer is not None:
            last = shadow.writer[slots]
            foreign = (last != 0) & (last != who)
            self._report("store_conflict", buffer, offsets, ok, foreign, last, who, programs, site)
        if shadow.reader is not None:
            seen = shadow.reader[slots]
            early = (seen != 0) & (seen != who)
            self._report("write_after_read", buffer, offsets, ok, early, seen, who, programs, site)
        shadow.adders()[slots] = who

    def _report(
        self, kind: str, buffer: Buffer, offsets: Array, ok: Array, which: Array,
        partner: Array, who: Array, programs: Array, site: Site,
    ) -> None:  # fmt: skip
        """Adds the lanes `which` (of those that are `ok`) to the book, unless their programs are ordered."""
        if not which.any() or self._excused(who[which]):
            return
        bad = ok.copy()
        bad[ok] = which
        other = int(partner[which][0]) - 1
        self.book.add(kind, buffer, addresses_of(buffer, offsets, ok), bad, programs, site, other)

    def _excused(self, who: Array) -> bool:
        """Programs that have used what an atomic returned are taken to be ordered by it (a lock, a ticket)."""
        return bool(self.synced) and all(int(p) - 1 in self.synced for p in np.unique(who))


def _who(programs: Array, ok: Array) -> Array:
    """The program of each lane that takes part, counted from 1."""
    lanes = ok.shape[1] if ok.ndim > 1 else 1
    return (np.repeat(programs, lanes).reshape(ok.shape)[ok] + 1).astype(np.int32)
