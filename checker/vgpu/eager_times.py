"""The time of one PyTorch operation, read off measurements at other shapes, or estimated where there are none.

What is interpolated is not the time but its ratio to a plain account of bytes and FLOPs, which changes slowly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import torch

from checker.vgpu.calibration import H200
from checker.vgpu.eager_table import MEASURED
from checker.vgpu.specs import CHIPS, GpuSpec

__all__ = ["MEASURED_ON", "SHORT", "time"]

MEASURED_ON = "h200"
"""The chip of the table."""

# bfloat16 was not measured: it takes the same kernels with the same bytes and the same tensor-core rate as float16.
SHORT: Mapping[torch.dtype, str] = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "f16"}

# Operations whose time depends on each extent. That of any other depends on the number of elements.
_BY_EXTENTS = frozenset(["softmax", "sum", "amax", "max", "layer_norm", "rms_norm", "mm", "addmm", "addmm_activation"])
# How far from a measured shape its figures are trusted: in each extent of a row operation or a product, in the
# number of elements of anything else.
_NEAR_EXTENT = 4.0
_NEAR_SIZE = 64.0
# The share of memory's bandwidth that an operation without a measurement is taken to reach, by layout.
_ASSUMED = {"transposed": 0.27, "strided": 0.27}


@lru_cache
def _points(operation: str, layout: str, dtype: str) -> tuple[tuple[tuple[int, ...], float], ...]:
    return tuple((shape, us) for o, how, d, shape, us in MEASURED if (o, how, d) == (operation, layout, dtype))


def time(
    operation: str, layout: str, dtype: str, shape: tuple[int, ...], moved: int, flops: int, spec: GpuSpec
) -> tuple[float, bool]:
    """(device microseconds, whether they rest on measurements on this very chip)."""
    plain = _plain(dtype, moved, flops, spec)
    points = _points(operation, layout, dtype)
    by_extents = operation in _BY_EXTENTS or layout not in ("contiguous", "cast")
    if by_extents:
        points = tuple(point for point in points if len(point[0]) == len(shape))
    if not points or spec.key != MEASURED_ON:
        return plain / _ASSUMED.get(layout, 1.0), False
    place = _place(shape, by_extents)
    known = [(_place(known, by_extents), us / _of_shape(operation, layout, dtype, known)) for known, us in points]
    ratio, reach = _interpolate(place, known)
    return plain * ratio, reach <= math.log(_NEAR_EXTENT if by_extents else _NEAR_SIZE) + 1e-9


def _plain(dtype: str, moved: int, flops: int, spec: GpuSpec) -> float:
    """A launch, then bytes at the bandwidth of a copy or FLOPs at the peak: what the ratios refer to."""
    peak = spec.fp16_tensor_tflop_per_s if dtype == "f16" else spec.fp32_tflop_per_s
    return H200.launch + max(moved / (spec.copy_gb_per_s * 1e3), flops / (peak * 1e6))


@lru_cache
def _of_shape(operation: str, layout: str, dtype: str, shape: tuple[int, ...]) -> float:
    """`_plain` of a measured row, whose bytes and FLOPs follow from its operation and shape."""
    width = 2 if dtype == "f16" else 4
    numel, flops = math.prod(shape), 0
    if operation in ("mm", "addmm", "addmm_activation"):
        m, n, k = shape
        items, flops = m * k + k * n + m * n + (n if operation != "mm" else 0), 2 * m * n * k
    elif operation in ("sum", "amax", "max"):
        items = numel + shape[0]
    elif layout == "a row":
        items = 2 * numel + shape[1]
    elif layout == "a column":
        items = 2 * numel + shape[0]
    else:
        items = {"fill": 1, "add": 3, "mul": 3}.get(operation, 2) * numel
    moved = items * width if layout != "cast" else 6 * numel
    if operation == "max":
        moved += 8 * shape[0]
    return _plain(dtype, moved, flops, CHIPS[MEASURED_ON])


def _place(shape: Sequence[int], by_extents: bool) -> tuple[float, ...]:
    """Where a shape lies: the logarithms of its extents, or of its number of elements."""
    return tuple(math.log(extent) for extent in shape) if by_extents else (math.log(math.prod(shape)),)


def _interpolate(place: tuple[float, ...], known: list[tuple[tuple[float, ...], float]]) -> tuple[float, float]:
    """(ratio at `place`, distance of the nearest known place in its farthest axis).

    On one axis a straight line between the neighbours, and their own ratio beyond the ends; on several the mean of
    all, weighted by the inverse fourth power of the distance. Ratios are averaged as logarithms.
    """
    distances = [max(abs(a - b) for a, b in zip(place, other, strict=True)) for other, _ in known]
    nearest = min(distances)
    if nearest < 1e-9:
        same = [math.log(ratio) for (_, ratio), apart in zip(known, distances, strict=True) if apart < 1e-9]
        return math.exp(sum(same) / len(same)), 0.0
    if len(place) == 1:
        below = [(other, ratio) for other, ratio in known if other < place]
        above = [(other, ratio) for other, ratio in known if other > place]
        ends = [max(below, default=None), min(above, default=None)]
        known = [end for end in ends if end is not None]
        weights = [1 / abs(other[0] - place[0]) for other, _ in known]
    else:
        weights = [sum((a - b) ** 2 for a, b in zip(place, other, strict=True)) ** -2 for other, _ in known]
    total = sum(weight * math.log(ratio) for weight, (_, ratio) in zip(weights, known, strict=True))
    return math.exp(total / sum(weights)), nearest
