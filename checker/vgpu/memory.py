"""The memory of the virtual GPU: invented addresses, views, shadow state, poison.

Each tensor argument of a launch gets an address of its own, far from every other, so that an access belongs to
one argument or to none. Lanes are checked against the *logical view* of the tensor (its shape and strides), not
against its storage. A lane outside never touches real memory. Beside the data runs a shadow: which elements were
ever written, and, within a launch, by which program they were read and written.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch.multiprocessing.reductions import StorageWeakRef

from checker.vgpu import floats
from checker.vgpu.atomics import Atomic
from checker.vgpu.authors import Authors
from checker.vgpu.errors import SourceLine
from checker.vgpu.floats import Array
from checker.vgpu.trace import Violation

__all__ = ["Buffer", "LaunchMemory", "Shadow", "Shadows"]

# One argument to a slot of 128 GiB, placed in its middle: an int32 offset reaches at most 16 GiB either way, so a
# wrapped one lands in the red zone of the tensor it was meant for and is still attributed to it.
_SLOT_BITS = 37
_ORIGIN = 1 << 44
_MIDDLE = 1 << (_SLOT_BITS - 1)

# Above this many elements a storage is not shadowed densely: only the elements of the view are.
_DENSE_LIMIT = 1 << 27

_INDICES_SHOWN = 6


class _Storage:
    """Whether a storage lives on; does not keep it alive, but keeps its number from being reused."""

    def __init__(self, storage: Any) -> None:
        self._reference: Any = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # torch leaves it untyped

    @property
    def gone(self) -> bool:
        """True once the memory was freed."""
        return bool(self._reference.expired())


@dataclass(slots=True)
class Shadow:
    """What is known about the elements of one storage. Programs are numbered from 1; 0 is nobody."""

    written: Array
    storage: _Storage
    writer: Array | None = None
    reader: Array | None = None
    adder: Array | None = None

    def begin_launch(self) -> None:
        """Forgets who read and wrote during the previous launch; what was ever written stays."""
        self.writer = None
        self.reader = None
        self.adder = None

    def writers(self) -> Array:
        """Last writing program of this launch, per element."""
        if self.writer is None:
            self.writer = np.zeros(self.written.size, dtype=np.int32)
        return self.writer

    def readers(self) -> Array:
        """Reading program of this launch, per element; -1 where several did."""
        if self.reader is None:
            self.reader = np.zeros(self.written.size, dtype=np.int32)
        return self.reader

    def adders(self) -> Array:
        """Last program of this launch that changed an element with an atomic, per element."""
        if self.adder is None:
            self.adder = np.zeros(self.written.size, dtype=np.int32)
        return self.adder


class Shadows:
    """The shadows of all storages a session has seen.

    They outlive no storage: an address that is reused after a free inherits no history.
    """

    def __init__(self) -> None:
        self._shadows: dict[tuple[Any, ...], Shadow] = {}
        self._uninitialised: dict[int, _Storage] = {}

    def mark_uninitialised(self, tensor: Any) -> None:
        """Says that nothing has written the storage of `tensor` yet (it came from `torch.empty`)."""
        storage = tensor.untyped_storage()
        self._uninitialised[storage.data_ptr()] = _Storage(storage)

    def mark_written(self, tensor: Any) -> None:
        """Says that the host wrote the elements of `tensor` (a fill or a copy)."""
        storage = tensor.untyped_storage()
        key = storage.data_ptr()
        whole = tensor.numel() * tensor.element_size() == storage.nbytes()
        if not whole and key in self._uninitialised:
            buffer = Buffer(tensor, "", -1)
            self.of(buffer).written[buffer.slots(buffer.offsets_in_order())] = True
            return
        self._uninitialised.pop(key, None)
        for (pointer, *_), shadow in self._shadows.items():
            if pointer == key:
                shadow.written[:] = True

    def begin_launch(self) -> None:
        """Starts a launch: nobody has read or written yet."""
        self._shadows = {key: shadow for key, shadow in self._shadows.items() if not shadow.storage.gone}
        for key, shadow in self._shadows.items():
            self._learn(key, shadow)
        for shadow in self._shadows.values():
            shadow.begin_launch()

    def of(self, buffer: Buffer) -> Shadow:
        """The shadow of the storage behind `buffer`, made on first sight."""
        storage = buffer.tensor.untyped_storage()
        pointer = storage.data_ptr()
        key: tuple[Any, ...] = (pointer, buffer.itemsize)
        size = storage.nbytes() // buffer.itemsize
        if size > _DENSE_LIMIT:
            key += (buffer.shape, buffer.strides, buffer.tensor.storage_offset())
            size = buffer.numel
        shadow = self._shadows.get(key)
        if shadow is None or shadow.storage.gone:
            mark = self._uninitialised.get(pointer)
            fresh = mark is not None and not mark.gone
            shadow = self._shadows[key] = Shadow(np.full(size, not fresh, dtype=np.bool_), _Storage(storage))
            self._learn(key, shadow)
        return shadow

    def _learn(self, key: tuple[Any, ...], shadow: Shadow) -> None:
        """Takes over what was written through views of the same storage with elements of another size."""
        for other, known in self._shadows.items():
            if other[0] == key[0] and other[1] != key[1] and len(other) == len(key) == 2 and not known.storage.gone:
                of_bytes = np.repeat(known.written, other[1])
                whole = of_bytes[: shadow.written.size * key[1]].reshape(-1, key[1]).all(-1)
                shadow.written[: whole.size] |= whole

    def unwritten(self, tensor: Any) -> Array | None:
        """Logical indices (flattened, row-major) of the view's elements that nothing has written; None if unknown."""
        buffer = Buffer(tensor, "", -1)
        if buffer.numel == 0:
            return np.zeros(0, dtype=np.int64)
        shadow = self.of(buffer)
        return np.flatnonzero(~shadow.written[buffer.slots(buffer.offsets_in_order())])


class Buffer:
    """A tensor argument as the kernel sees it: an invented base address, a shape, strides in elements."""

    def __init__(self, tensor: Any, name: str, slot: int, argument: int = -1) -> None:
        self.tensor = tensor
        self.name = name
        self.argument = argument
        self.number = slot
        self.shape = tuple(int(extent) for extent in tensor.shape)
        self.strides = tuple(int(stride) for stride in tensor.stride())
        self.itemsize = int(tensor.element_size())
        self.element = _element(tensor)
        self.numel = int(np.prod(self.shape, dtype=np.int64))
        pointer = int(tensor.data_ptr())
        self.base = _ORIGIN + (slot << _SLOT_BITS) + _MIDDLE + (pointer & 0xFF)
        self.dims = sorted(
            ((s, n) for s, n in zip(self.strides, self.shape, strict=True) if n > 1 and s > 0), reverse=True
        )
        self.span = 0 if self.numel == 0 else 1 + sum((n - 1) * s for s, n in self.dims)
        self.dense = self.span == self.numel
        self.flat = _flat_view(pointer, self.span, self.element)
        storage_items = tensor.untyped_storage().nbytes() // self.itemsize
        self.sparse = storage_items > _DENSE_LIMIT
        self.offset = int(tensor.storage_offset())

    def locate(self, offsets: Array) -> tuple[Array, Array]:
        """Which element offsets belong to the view, and their place in it.

        Membership is arithmetic on strides, largest first, never a bitmap: a view with a stride of 2^30 costs no
        memory. Dimensions of stride 0 add nothing.
        """
        if self.dense:
            return (offsets >= 0) & (offsets < self.numel), offsets
        inside = (offsets >= 0) & (offsets < self.span)
        rest = np.where(inside, offsets, 0)
        place = np.zeros_like(rest)
        for stride, extent in self.dims:
            index = np.minimum(rest // stride, extent - 1)
            rest = rest - index * stride
            place = place * extent + index
        return inside & (rest == 0), place

    def slots(self, offsets: Array) -> Array:
        """Where the shadow keeps these element offsets, all of them inside the view."""
        return self.locate(offsets)[1] if self.sparse else offsets + self.offset

    def offsets_in_order(self) -> Array:
        """Element offsets of every element in row-major order of the logical indices."""
        offsets = np.zeros((), dtype=np.int64)
        for extent, stride in zip(self.shape, self.strides, strict=True):
            offsets = offsets[..., None] + np.arange(extent, dtype=np.int64) * stride
        return offsets.reshape(-1)


def _element(tensor: Any) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    known = {
        "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "bool": "i1",
        "int8": "i8", "uint8": "i8", "int16": "i16", "uint16": "i16", "int32": "i32", "uint32": "i32",
        "int64": "i64", "uint64": "i64",
    }  # fmt: skip
    return known.get(name, f"i{8 * tensor.element_size()}")


def _flat_view(pointer: int, span: int, element: str) -> Array:
    """The elements from the first to the last of a view, as one numpy array over the tensor's own memory.

    Made from the address and not through torch, so that no torch operation appears in a learner's call.
    """
    dtype = floats.stored_dtype(element)
    if span == 0:
        return np.zeros(0, dtype=dtype)
    memory = memoryview((ctypes.c_char * (span * dtype.itemsize)).from_address(pointer)).cast("B")
    return np.frombuffer(memory, dtype=dtype)


@dataclass(slots=True)
class _Site:
    """Where an access stands: the operation's number in the text, its source line, the argument it was meant for."""

    index: int
    where: SourceLine | None
    wrapped: Callable[[], SourceLine | None]


@dataclass
class LaunchMemory:
    """The memory one launch sees. All arrays are (programs, lanes); `programs` holds linear program numbers."""

    buffers: list[Buffer]
    shadows: Shadows
    grid: tuple[int, int, int]
    poison: str = "nan"
    poison_only: frozenset[tuple[object, ...]] | None = None
    violations: dict[tuple[str, int], Violation] = field(default_factory=dict)
    poisoned_lanes: int = 0
    synced: set[int] = field(default_factory=set)
    same_bytes: int = 0
    check_races: bool = True
    changed: set[int] = field(default_factory=set)
    authors: Authors | None = None
    launch: int = 0
    changes: int = 0

    def buffer_of(self, addresses: Array, mask: Array, hint: int) -> Buffer | None:
        """The buffer whose slot holds the first active address; `hint` (an argument number) where none is active."""
        if addresses.size and mask.any():
            first = int(addresses.reshape(-1)[int(np.argmax(mask))])
            slot = (first - _ORIGIN) >> _SLOT_BITS
            if 0 <= slot < len(self.buffers):
                return self.buffers[slot]
        return self.buffers[hint] if 0 <= hint < len(self.buffers) else None

    def load(
        self, addresses: Array, mask: Array, other: Array | None, element: str, programs: Array, site: _Site, hint: int
    ) -> Array:
        """Reads; lanes that are masked off, outside or in a gap never touch memory."""
        fill: Any = floats.poison(element, self._poison_at(site, "masked"))
        buffer = self.buffer_of(addresses, mask, hint)
        if other is not None:
            result = np.array(np.broadcast_to(other, addresses.shape), dtype=floats.NUMPY[element])
        else:
            result = np.full(addresses.shape, fill, dtype=floats.NUMPY[element])
        if buffer is None:
            self._add("load_outside", None, addresses, mask, programs, site)
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
        self._note_read(buffer, where.reshape(-1), ok, whole, programs, site)
        return result

    def store(
        self, addresses: Array, values: Array, mask: Array, element: str, programs: Array, site: _Site, hint: int
    ) -> None:
        """Writes the lanes that are inside the view; reports the others."""
        buffer = self.buffer_of(addresses, mask, hint)
        if buffer is None:
            self._add("store_outside", None, addresses, mask, programs, site)
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
            self._note_write(buffer, shadow, slots, where, new, fresh, ok, programs, site)
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
        site: _Site,
        hint: int,
        atomic: Atomic,
        ordered: bool,
    ) -> Array:
        """An atomic, lane by lane; returns the old values (0 where masked off), right if `ordered` asks for them."""
        result = np.zeros(addresses.shape, dtype=floats.NUMPY[element])
        buffer = self.buffer_of(addresses, mask, hint)
        if buffer is None:
            self._add("store_outside", None, addresses, mask, programs, site)
            return result
        ok, offsets = self._legal("store", buffer, addresses, mask, programs, site, element)
        if not ok.any():
            return result
        where = offsets[ok]
        lanes = np.flatnonzero(ok.reshape(-1))
        shadow = self.shadows.of(buffer)
        slots = buffer.slots(where)
        if (atomic.reads or ordered) and not shadow.written[slots].all():
            bad = ok.copy()
            bad[ok] = ~shadow.written[slots]
            self._add("load_unwritten", buffer, addresses, bad, programs, site)
        flat = buffer.flat if buffer.element == element else buffer.flat.view(floats.stored_dtype(element))
        before = flat[where]
        result.reshape(-1)[lanes] = atomic.apply(flat, where, lanes, ordered=ordered)
        if (_bits(before) != _bits(flat[where])).any():
            self._note_change(buffer)
        shadow.written[slots] = True
        if self.authors is not None:
            self.authors.stored(buffer, buffer.flat, where, self.launch)
        per_program = ok.shape[1] if ok.ndim > 1 else 1
        shadow.adders()[slots] = (np.repeat(programs, per_program).reshape(ok.shape)[ok] + 1).astype(np.int32)
        if ordered:
            # Only a program that looks at what the atomic returned (a lock, a ticket) can be ordered by it.
            self.synced.update(int(p) for p in programs)
        return result

    # What follows keeps the shadow and collects violations.

    def _note_change(self, buffer: Buffer) -> None:
        self.changed.add(buffer.number)
        self.changes += 1

    def _poison_at(self, site: _Site, lanes: str) -> str:
        """What undefined lanes of a load read. `lanes` is "masked" (held back by the mask) or "gap" (not in the view).

        `poison_only` names loads as (file, line, column), or one kind of their lanes as (file, line, column, lanes).
        """
        if self.poison_only is None or site.where is None:
            return self.poison
        key = (site.where.file, site.where.line, site.where.column)
        return self.poison if key in self.poison_only or (*key, lanes) in self.poison_only else "nan"

    def _legal(
        self, verb: str, buffer: Buffer, addresses: Array, mask: Array, programs: Array, site: _Site, element: str
    ) -> tuple[Array, Array]:
        offset_bytes = addresses - buffer.base
        width = floats.WIDTH[element]
        offsets = offset_bytes // width if width > 1 else offset_bytes
        inside, _ = buffer.locate(offsets)
        ok = mask & inside
        if width > 1:
            crooked = mask & (offset_bytes % width != 0)
            if crooked.any():
                self._add("misaligned", buffer, addresses, crooked, programs, site)
                ok &= ~crooked
        bad = mask & ~inside
        if bad.any():
            gap = bad & (offsets >= 0) & (offsets < buffer.span)
            if verb == "load" and gap.any():
                self._add("load_gap", buffer, addresses, gap, programs, site)
                self.poisoned_lanes += int(np.count_nonzero(gap))
                bad &= ~gap
            if bad.any():
                self._add(f"{verb}_outside", buffer, addresses, bad, programs, site)
        return ok, offsets

    def _note_read(self, buffer: Buffer, offsets: Array, ok: Array, whole: bool, programs: Array, site: _Site) -> None:
        shadow = self.shadows.of(buffer)
        slots = buffer.slots(offsets)
        if not shadow.written.all() and not shadow.written[slots].all():
            bad = ok.copy()
            bad[ok] = ~shadow.written[slots]
            self._add("load_unwritten", buffer, _addresses(buffer, offsets, ok), bad, programs, site)
        if not self.check_races:
            return
        lanes = ok.shape[1] if ok.ndim > 1 else 1
        who = (np.repeat(programs, lanes).reshape(ok.shape)[ok] + 1).astype(np.int32)
        for changed in (shadow.writer, shadow.adder):
            if changed is None:
                continue
            last = changed[slots]
            foreign = (last != 0) & (last != who)
            if foreign.any() and not self._excused(who[foreign]):
                bad = ok.copy()
                bad[ok] = foreign
                first = int(last[foreign][0]) - 1
                self._add("read_after_write", buffer, _addresses(buffer, offsets, ok), bad, programs, site, first)
        readers = shadow.readers()
        before = readers[slots]
        readers[slots] = np.where((before == 0) | (before == who), who, -1)
        # Two programs reading one element in the same batch: the last one written above is only one of them.
        clash = readers[slots] != who
        readers[slots[clash]] = -1

    def _note_write(
        self,
        buffer: Buffer,
        shadow: Shadow,
        slots: Array,
        offsets: Array,
        new: Array,
        changed: Array,
        ok: Array,
        programs: Array,
        site: _Site,
    ) -> None:
        lanes = ok.shape[1] if ok.ndim > 1 else 1
        who = (np.repeat(programs, lanes).reshape(ok.shape)[ok] + 1).astype(np.int32)
        writers = shadow.writers()
        bits = _bits(new)
        last = writers[slots]
        foreign = (last != 0) & (last != who)
        clash = foreign & changed
        self.same_bytes += int(np.count_nonzero(foreign & ~changed))
        if clash.any() and not self._excused(who[clash]):
            bad = ok.copy()
            bad[ok] = clash
            first = int(last[clash][0]) - 1
            self._add("store_conflict", buffer, _addresses(buffer, offsets, ok), bad, programs, site, first)
        if shadow.reader is not None:
            seen = shadow.reader[slots]
            early = (seen != 0) & (seen != who) & changed & ~foreign
            if early.any() and not self._excused(who[early]):
                bad = ok.copy()
                bad[ok] = early
                first = int(seen[early][0]) - 1
                self._add("write_after_read", buffer, _addresses(buffer, offsets, ok), bad, programs, site, first)
        # Within this one store: does any element receive two values?
        order = np.arange(slots.size, dtype=np.int32)
        writers[slots] = order
        winner = writers[slots]
        double = winner != order
        writers[slots] = who[winner]
        if double.any():
            differ = double & (bits != bits[winner])
            self.same_bytes += int(np.count_nonzero(double & ~differ))
            mine = differ & (who == who[winner])
            theirs = differ & (who != who[winner])
            for kind, which in (("lane_conflict", mine), ("store_conflict", theirs)):
                if which.any() and not self._excused(who[which]):
                    bad = ok.copy()
                    bad[ok] = which
                    first = int(who[winner][which][0]) - 1
                    self._add(kind, buffer, _addresses(buffer, offsets, ok), bad, programs, site, first)

    def _excused(self, who: Array) -> bool:
        """Programs that have used what an atomic returned are taken to be ordered by it (a lock, a ticket)."""
        return bool(self.synced) and all(int(p) - 1 in self.synced for p in np.unique(who))

    def _add(
        self,
        kind: str,
        buffer: Buffer | None,
        addresses: Array,
        bad: Array,
        programs: Array,
        site: _Site,
        other: int | None = None,
    ) -> None:
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


def _bits(values: Array) -> Array:
    return values.view(f"u{values.dtype.itemsize}")


def _addresses(buffer: Buffer, offsets: Array, ok: Array) -> Array:
    """Addresses of the legal lanes, laid out like `ok` (for reports only)."""
    full = np.zeros(ok.shape, dtype=np.int64)
    full[ok] = buffer.base + offsets * buffer.itemsize
    return full


Site = _Site
