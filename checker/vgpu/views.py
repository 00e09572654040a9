"""A tensor argument as a kernel sees it: an invented address, a shape, strides.

Each argument gets an address of its own, far from every other, so that an access belongs to one argument or to
none. Lanes are checked against the *logical view* of the tensor, not against its storage.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from checker.vgpu import floats
from checker.vgpu.floats import Array

__all__ = ["DENSE_LIMIT", "Buffer", "slot_of"]

# One argument to a slot of 128 GiB, placed in its middle: an int32 offset reaches at most 16 GiB either way, so a
# wrapped one lands in the red zone of the tensor it was meant for and is still attributed to it.
_SLOT_BITS = 37
_ORIGIN = 1 << 44
_MIDDLE = 1 << (_SLOT_BITS - 1)

# Above this many elements a storage is not shadowed densely: only the elements of the view are.
DENSE_LIMIT = 1 << 27


def slot_of(address: Any) -> Any:
    """The number of the argument in whose slot an address (or each of many) lies; others are below 0 or too large."""
    return (address - _ORIGIN) >> _SLOT_BITS


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
        self.sparse = storage_items > DENSE_LIMIT
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
