"""The time no kernel can beat: from the least bytes and FLOPs of a problem and the chip's figures."""

from __future__ import annotations

from dataclasses import dataclass

from checker.cases import Case
from checker.vgpu.specs import GpuSpec

__all__ = ["Bound", "arithmetic_of", "bound", "peak_tflop_per_s"]


@dataclass(frozen=True, slots=True)
class Bound:
    """`us` is what a perfect kernel can hope for, `physical_us` what the data sheet forbids to go below.

    `by` is "memory" or "arithmetic". Neither time includes the launch.
    """

    us: float
    physical_us: float
    by: str


def bound(
    spec: GpuSpec, *, least_bytes: int, written_bytes: int, flops: int, dtype: str, again_bytes: int = 0
) -> Bound:
    """The bound of a problem that must move `least_bytes`, `written_bytes` of them written, and compute `flops`.

    `again_bytes` of them are asked for a second time: a cache may have kept them, so nothing forbids that they cost
    nothing.

    Memory is taken at the rate of a plain copy for the one time, at the data sheet's for the other, where what is
    written may also still lie in L2 when the kernel ends, as much as fits. FLOPs count at the tensor cores' peak for
    float16, bfloat16 and tf32, else at that of the ordinary units.
    """
    arithmetic = flops / (peak_tflop_per_s(spec, dtype) * 1e6)
    memory = least_bytes / (spec.copy_gb_per_s * 1e3)
    fastest = (least_bytes - again_bytes - min(written_bytes, spec.l2_bytes)) / (spec.dram_gb_per_s * 1e3)
    return Bound(max(memory, arithmetic), max(fastest, arithmetic), "memory" if memory >= arithmetic else "arithmetic")


def peak_tflop_per_s(spec: GpuSpec, dtype: str) -> float:
    """The rate that a chip computes in `dtype` at: its tensor cores' where they know it, else the ordinary units'."""
    half, tf32 = spec.fp16_tensor_tflop_per_s, spec.tf32_tensor_tflop_per_s
    return {"float16": half, "bfloat16": half, "tf32": tf32}.get(dtype) or spec.fp32_tflop_per_s


def arithmetic_of(case: Case) -> str:
    """What a case's FLOPs are computed in: its dtype, or "tf32" where its `precision` says so."""
    if getattr(case, "precision", "") == "tf32":
        return "tf32"
    return str(getattr(case, "dtype", "")).removeprefix("torch.")
