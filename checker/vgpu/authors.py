"""Who wrote each byte: the caller, an operation of PyTorch, a launch, or nobody that was seen.

Beside each storage lie two arrays: the last author of every byte, and the byte it left. Memory that no longer holds
what its author left was written behind everybody's back (numpy, ctypes, a thread), and has no author. So nothing
needs to be forbidden or intercepted for the question "did a kernel store this?" to have an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.multiprocessing.reductions import StorageWeakRef

from checker.vgpu.floats import Array
from checker.vgpu.views import Buffer

__all__ = ["GIVEN", "UNKNOWN", "Authors", "launch_of", "operation_of"]

UNKNOWN = 0
"""Nobody that was seen. Launches are numbered 1, 2, ...; operations of PyTorch -2, -3, ..."""
GIVEN = -1
"""The caller, before the call."""

# Larger storages are not followed: a view with a stride of 2^30 would make arrays of gigabytes.
_LIMIT_BYTES = 1 << 26


def launch_of(author: int) -> int | None:
    """Index into the session's launches; None if the author is no launch."""
    return author - 1 if author > 0 else None


def operation_of(author: int) -> int | None:
    """Index into the operations of PyTorch in the order they ran; None if the author is none of them."""
    return -author - 2 if author <= -2 else None


@dataclass(slots=True)
class _Record:
    """One storage: authors and bytes as they left them, and whether any of it derives from the caller's data."""

    storage: Any
    author: Array
    image: Array
    data: bool = False

    @property
    def gone(self) -> bool:
        return bool(self.storage.expired())


class Authors:
    """The authors of all memory seen during one call. A storage's number is not reused while its record is kept."""

    def __init__(self) -> None:
        self._records: dict[int, _Record] = {}

    def given(self, tensor: Any) -> None:
        """The caller hands this tensor in."""
        self._note(tensor, GIVEN, data=True)

    def wrote(self, tensor: Any, operation: int, *, data: bool) -> None:
        """The PyTorch operation of that index has written this tensor; `data` if from the caller's data."""
        self._note(tensor, -operation - 2, data=data)

    def stored(self, buffer: Buffer, flat: Array, offsets: Array, launch: int) -> None:
        """A launch (counted from 1) has stored these element offsets of `flat`, the memory of the buffer."""
        record = self._record(buffer.tensor, make=True)
        if record is None:
            return
        width = flat.dtype.itemsize
        slots = offsets + buffer.offset * buffer.itemsize // width
        _by(width, record.author)[slots] = launch
        _by(width, record.image)[slots] = _by(width, np.ascontiguousarray(flat[offsets]).view(np.uint8))
        record.data = True

    def holds_data(self, tensor: Any, *, unknown: bool = True) -> bool:
        """Whether this tensor may hold what derives from the caller's data; `unknown`: what of untold origin does."""
        record = self._record(tensor)
        return bool(tensor.numel()) and (unknown if record is None else record.data)

    def of(self, tensor: Any) -> Array | None:
        """The author of each element in row-major order; None where memory is too large to be followed."""
        if tensor.untyped_storage().nbytes() > _LIMIT_BYTES:
            return None
        record = self._record(tensor)
        if record is None:
            return np.zeros(tensor.numel(), dtype=np.int32)
        buffer = _buffer(tensor)
        if buffer is None:
            return None
        width = buffer.itemsize
        if tensor.is_contiguous():
            start = buffer.offset * width
            where: Any = slice(start, start + buffer.numel * width)
            authors, changed = record.author[where], record.image[where] != buffer.flat.view(np.uint8)
        else:
            offsets = buffer.offsets_in_order()
            slots = offsets + buffer.offset
            authors = _by(width, record.author)[slots].reshape(-1)
            left, now = _by(width, record.image)[slots], _by(width, buffer.flat.view(np.uint8))[offsets]
            changed = (left != now).reshape(-1)
        return _of_elements(authors.reshape(-1, width), changed.reshape(-1, width))

    def _record(self, tensor: Any, *, make: bool = False) -> _Record | None:
        storage = tensor.untyped_storage()
        number = int(storage._cdata)
        record = self._records.get(number)
        if record is not None and (record.gone or record.author.size != storage.nbytes()):
            record = None
        if record is None and make and storage.nbytes() <= _LIMIT_BYTES:
            reference: Any = StorageWeakRef(storage)  # type: ignore[no-untyped-call]  # torch leaves it untyped
            size = storage.nbytes()
            record = _Record(reference, np.zeros(size, dtype=np.int32), np.zeros(size, dtype=np.uint8))
            self._records[number] = record
        return record

    def _note(self, tensor: Any, author: int, *, data: bool) -> None:
        buffer = _buffer(tensor)
        record = self._record(tensor, make=True) if buffer is not None and buffer.numel else None
        if record is None or buffer is None:
            return
        if buffer.dense:
            start = buffer.offset * buffer.itemsize
            where: Any = slice(start, start + buffer.numel * buffer.itemsize)
            record.author[where] = author
            record.image[where] = buffer.flat.view(np.uint8)
            whole = record.author.size == buffer.numel * buffer.itemsize
        else:
            offsets = buffer.offsets_in_order()
            slots = offsets + buffer.offset
            _by(buffer.itemsize, record.author)[slots] = author
            _by(buffer.itemsize, record.image)[slots] = _by(buffer.itemsize, buffer.flat.view(np.uint8))[offsets]
            whole = False
        record.data = data if whole else record.data or data


def _of_elements(authors: Array, changed: Array) -> Array:
    """One author for each element from those of its bytes; a byte changed unseen makes an element nobody's."""
    found = authors[:, 0].copy()
    if (authors[:, 1:] != authors[:, :1]).any():
        lowest, highest = authors.min(-1), authors.max(-1)
        found = np.where(lowest > 0, highest, lowest)
        found[(authors == UNKNOWN).any(-1)] = UNKNOWN
    if changed.any():
        found[changed.any(-1)] = UNKNOWN
    return np.asarray(found)


def _by(width: int, of_bytes: Array) -> Array:
    """An array over bytes as (elements, bytes), a view."""
    return of_bytes[: of_bytes.size // width * width].reshape(-1, width)


def _buffer(tensor: Any) -> Buffer | None:
    """The memory of a tensor; None where it has none that can be followed."""
    if tensor.untyped_storage().nbytes() > _LIMIT_BYTES:
        return None
    try:
        return Buffer(tensor, "", -1)
    except (RuntimeError, TypeError, KeyError, ValueError):
        # Sparse, quantised or complex tensors: no kernel takes them either.
        return None
