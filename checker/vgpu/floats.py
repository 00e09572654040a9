"""Number formats as the chip has them, in numpy.

fp16 and bf16 values travel as float32 arrays that hold only representable numbers: each operation is computed in
float32 and rounded once to nearest even, which is what the hardware returns for +, -, *, / and square roots
(float32 carries more than twice their significand bits, so rounding twice is rounding once).
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["NUMPY", "WIDTH", "Array", "decode", "encode", "fma", "poison", "round_tf32", "round_to", "truncate_tf32"]

Array = np.ndarray[Any, np.dtype[Any]]

# The array that carries a TTIR element type while a kernel runs.
NUMPY: dict[str, np.dtype[Any]] = {
    "i1": np.dtype(np.bool_),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "index": np.dtype(np.int64),
    "ptr": np.dtype(np.int64),
    "f16": np.dtype(np.float32),
    "bf16": np.dtype(np.float32),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}

# Bytes of a TTIR element type in memory.
WIDTH = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "f16": 2, "bf16": 2, "f32": 4, "f64": 8, "ptr": 8}

# How the bytes of an element type are viewed in memory.
_STORED: dict[str, np.dtype[Any]] = {**NUMPY, "f16": np.dtype(np.float16), "bf16": np.dtype(np.uint16)}


def _round_bf16(values: Array) -> Array:
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + (((bits >> 16) & 1) + np.uint32(0x7FFF))) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(values), np.float32(np.nan), rounded.view(np.float32))


def round_to(element: str, values: Array) -> Array:
    """Rounds to the nearest value of `element`, ties to even; returns an array of the carrying dtype."""
    if element == "f16":
        return np.asarray(values).astype(np.float16).astype(np.float32)
    if element == "bf16":
        return _round_bf16(np.asarray(values, dtype=np.float32))
    return np.asarray(values, dtype=NUMPY[element])


def truncate_tf32(values: Array) -> Array:
    """Drops the low 13 bits of float32, as tensor cores do to the operands of a tf32 product."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    return (bits & np.uint32(0xFFFFE000)).view(np.float32)


def round_tf32(values: Array) -> Array:
    """Rounds float32 to the nearest tf32, ties away from zero, as loads through a descriptor can."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)


def fma(element: str, a: Array, b: Array, c: Array) -> Array:
    """`a * b + c` with one rounding, in the format `element`.

    The product of two float32 is exact in float64. The sum is rounded to odd there, so that the second rounding,
    to `element`, is the only one that counts (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums").
    """
    if element == "f64":
        # Exact up to the rounding of the product: float64 FMA has no wider format to be emulated in.
        return np.asarray(a * b + c)
    product = np.multiply(a, b, dtype=np.float64)
    addend = np.asarray(c, dtype=np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = np.asarray(total).view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    if inexact.any():
        toward = np.where(error > 0, np.inf, -np.inf)
        total = np.where(inexact, np.nextafter(total, toward), total)
    if element == "f16":
        return np.asarray(total).astype(np.float16).astype(np.float32)
    narrowed = np.asarray(total).astype(np.float32)
    if element == "bf16":
        # float32 is not wide enough to round twice after an arbitrary sum: make the intermediate odd as well.
        return _round_bf16(_to_odd_f32(np.asarray(total), narrowed))
    return narrowed


def _to_odd_f32(exact: Array, nearest: Array) -> Array:
    bits = nearest.view(np.int32)
    even = ((bits & 1) == 0) & (nearest.astype(np.float64) != exact) & np.isfinite(nearest)
    toward = np.where(exact > nearest, np.float32(np.inf), np.float32(-np.inf))
    return np.where(even, np.nextafter(nearest, toward), nearest)


def stored_dtype(element: str) -> np.dtype[Any]:
    """The numpy dtype under which memory of this element type is viewed."""
    return _STORED[element]


def decode(element: str, stored: Array) -> Array:
    """Bytes as viewed in memory -> the carrying array."""
    if element == "bf16":
        return (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.astype(NUMPY[element], copy=False)


def encode(element: str, values: Array) -> Array:
    """The carrying array -> bytes as viewed in memory; the inverse of `decode`."""
    if element == "bf16":
        return (np.ascontiguousarray(values, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return values.astype(_STORED[element], copy=False)


def poison(element: str, kind: str) -> Any:
    """What a lane without a defined value reads: `kind` is "nan", "zero", "largest" or "smallest".

    "nan" is the largest integer where the type has no NaN, and True for i1.
    """
    if element == "i1":
        return kind in ("nan", "largest")
    if element.startswith("i") or element == "ptr":
        info = np.iinfo(NUMPY[element])
        return {"nan": info.max, "zero": 0, "largest": info.max, "smallest": info.min}[kind]
    largest = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38}.get(element, 1.7e308)
    return {"nan": float("nan"), "zero": 0.0, "largest": largest, "smallest": -largest}[kind]
