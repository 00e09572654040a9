"""From what a launch was given to what the kernel takes: the grid, scalars, tensors, descriptors."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from checker.vgpu import ttir
from checker.vgpu.errors import VirtualGpuError
from checker.vgpu.floats import NUMPY
from checker.vgpu.machine import Descriptor
from checker.vgpu.views import Buffer

__all__ = ["bind", "checked_grid", "require_allocator"]

_GRID_LIMIT = (2**31 - 1, 65535, 65535)


def checked_grid(grid: tuple[Any, Any, Any]) -> tuple[int, int, int]:
    """The grid as a launch takes it: K301 for what is no whole number, K306 for what no GPU takes."""
    for axis, (extent, limit) in enumerate(zip(grid, _GRID_LIMIT, strict=True)):
        if isinstance(extent, bool) or not isinstance(extent, int):
            raise VirtualGpuError(
                "K301",
                f"grid axis {axis} is {extent!r} of type {type(extent).__name__}; a launch grid holds whole numbers",
                "Build the grid with triton.cdiv(n, BLOCK_SIZE), which returns an int.",
            )
        if extent < 0 or extent > limit:
            raise VirtualGpuError(
                "K306",
                f"grid axis {axis} has {extent} programs; a GPU takes 0 to {limit} there",
                "Put the largest dimension first: only axis 0 goes beyond 65535.",
            )
    return int(grid[0]), int(grid[1]), int(grid[2])


def require_allocator(metadata: Any) -> None:
    """A kernel that makes tensor descriptors on the device needs scratch memory, as on a real GPU."""
    size = getattr(metadata, "global_scratch_size", 0)
    if size:
        triton.runtime._allocation._allocator.get()(size, metadata.global_scratch_align, 0)


def bind(entry: ttir.Function, signature: dict[str, Any], bound: dict[str, Any]) -> tuple[list[Any], list[Buffer]]:
    """Values for the arguments of the TTIR function from those of the launch; tensors become buffers."""
    flat: list[tuple[str, Any]] = []
    for name, kind in signature.items():
        _flatten(name, kind, bound.get(name), flat)
    values: list[Any] = []
    buffers: list[Buffer] = []
    todo = iter(flat)
    pending: list[Any] = []
    for number, (_, kind) in enumerate(entry.args):
        if pending:
            values.append(_scalar(kind, pending.pop(0)))
            continue
        name, value = next(todo)
        if _is_descriptor(value):
            buffer = Buffer(_on_device(value.base, name), name, len(buffers), number)
            buffers.append(buffer)
            rest = [*value.shape, *value.strides]
            if kind.element == "desc":
                base = np.array([buffer.base], dtype=np.int64)
                shape = [np.array([n], dtype=np.int64) for n in value.shape]
                strides = [np.array([n], dtype=np.int64) for n in value.strides]
                rounds = bool(getattr(value, "round_f32_to_tf32", False))
                padding = "nan" if value.padding == "nan" else "zero"
                values.append(Descriptor(base, shape, strides, kind, len(buffers) - 1, padding, rounds))
                pending = list(rest)
            else:
                values.append(np.array([buffer.base], dtype=np.int64))
                flags = sum(1 for _, k in entry.args[number + 1 + 2 * len(value.shape) :][:2] if k.element == "i1")
                settings = [value.padding == "nan", getattr(value, "round_f32_to_tf32", False)][:flags]
                pending = [*rest, *settings, *rest]
        elif kind.element == "ptr":
            if value is None or not hasattr(value, "data_ptr"):
                raise VirtualGpuError("K304", f"the argument {name} is {value!r}, not a tensor", "Pass a torch tensor.")
            buffers.append(Buffer(_on_device(value, name), name, len(buffers), number))
            values.append(np.array([buffers[-1].base], dtype=np.int64))
        else:
            values.append(_scalar(kind, value))
    return values, buffers


def _flatten(name: str, kind: Any, value: Any, out: list[tuple[str, Any]]) -> None:
    """Tuples become their members; constants do not reach the kernel's signature."""
    if isinstance(kind, (tuple, list)):
        for i, (inner, part) in enumerate(zip(kind, value, strict=False)):
            _flatten(f"{name}[{i}]", inner, part, out)
    elif kind != "constexpr":
        out.append((name, value))


def _is_descriptor(value: Any) -> bool:
    return all(hasattr(value, field) for field in ("base", "shape", "strides", "block_shape"))


def _scalar(kind: ttir.Type, value: Any) -> Any:
    if isinstance(value, int) and kind.element.startswith("i") and kind.element != "i1":
        bits = 8 * NUMPY[kind.element].itemsize
        value = (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    return np.array([value], dtype=NUMPY[kind.element])


def _on_device(tensor: Any, name: str) -> Any:
    device = getattr(tensor, "device", None)
    if device is not None and device.type != "cpu":
        raise VirtualGpuError(
            "K305",
            f"the tensor passed as {name} is on device {device}, and the kernel runs on cpu",
            "Check the devices of all tensors in the wrapper before the launch, and allocate with device=x.device.",
        )
    return tensor
