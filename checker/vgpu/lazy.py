"""Large tensors that cost nothing until they are read: a few drawn pages, mapped again and again.

Timing mode runs a handful of programs on tensors of gigabytes. Drawing so many numbers would take longer than the
check. The period is no multiple of a power of two, so that neighbouring rows differ.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import weakref

import torch

__all__ = ["LazyDraw"]

_PAGE = mmap.PAGESIZE
_PERIOD = 1021 * _PAGE
_SMALL_BYTES = 2 * _PERIOD
_MAP_FIXED, _MAP_NORESERVE = 0x10, 0x4000

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class LazyDraw:
    """Draws normally distributed tensors from a seed: `draw(shape, dtype)`. Small ones are drawn as a whole."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """A contiguous CPU tensor of mean 0 and variance 1. What is written to it is its own."""
        numel, width = math.prod(shape), dtype.itemsize
        if numel * width <= _SMALL_BYTES:
            return self._numbers(numel, dtype).reshape(shape)
        period = self._numbers(_PERIOD // width, dtype)
        return _mapped(period, numel * width).view(dtype)[:numel].reshape(shape)

    def _numbers(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        values = torch.randn(count, generator=self._generator)
        return values.to(dtype) if dtype.is_floating_point else values.mul_(30).to(dtype)


def _mapped(period: torch.Tensor, size: int) -> torch.Tensor:
    """Bytes in which the pages of `period` repeat, private to whoever writes them."""
    data = period.numpy(force=True) if period.dtype != torch.bfloat16 else period.view(torch.int16).numpy()
    whole = math.ceil(size / _PAGE) * _PAGE
    file = os.memfd_create("period")
    try:
        os.write(file, data.tobytes())
        access = mmap.PROT_READ | mmap.PROT_WRITE
        address = _map(None, whole, access, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE, -1)
        for start in range(0, whole, _PERIOD):
            part = min(_PERIOD, whole - start)
            _map(address + start, part, access, mmap.MAP_PRIVATE | _MAP_FIXED | _MAP_NORESERVE, file)
    finally:
        os.close(file)
    buffer = (ctypes.c_char * whole).from_address(address)
    weakref.finalize(buffer, _libc.munmap, address, whole)
    return torch.frombuffer(buffer, dtype=torch.uint8)


def _map(address: int | None, size: int, access: int, flags: int, file: int) -> int:
    found = _libc.mmap(address, size, access, flags, file, 0)
    if found is None or found == ctypes.c_void_p(-1).value:
        raise MemoryError(f"cannot map {size} bytes: {os.strerror(ctypes.get_errno())}")
    return int(found)
