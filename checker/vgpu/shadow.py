"""What is known of memory besides its bytes: which elements were written at all, and by whom in this launch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch.multiprocessing.reductions import StorageWeakRef

from checker.vgpu.floats import Array
from checker.vgpu.views import DENSE_LIMIT, Buffer

__all__ = ["Shadow", "Shadows"]


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
    _complete: bool = False

    @property
    def complete(self) -> bool:
        """Whether every element has been written."""
        if not self._complete:
            self._complete = bool(self.written.all())
        return self._complete

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
        if size > DENSE_LIMIT:
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
