"""The chips the virtual GPU can be: figures with their units in the names, and where each comes from.

Architecture limits (threads, warps, registers, shared memory) are those of NVIDIA's CUDA C++ Programming Guide,
"Technical Specifications per Compute Capability". Peak rates are the vendor's data sheets, dense, without
sparsity. What was measured on a real chip says so; a chip without measurements is `validated = False`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

__all__ = ["CHIPS", "DEFAULT_CHIP", "GpuSpec", "chip"]


@dataclass(frozen=True, slots=True)
class GpuSpec:
    """One chip. Rates are peaks; `measured_dram_gb_per_s` is what a plain copy reaches (read plus written)."""

    key: str
    name: str
    backend: str
    arch: int | str
    multiprocessors: int
    shared_bytes_per_block: int
    shared_bytes_per_sm: int
    registers_per_sm: int
    warps_per_sm: int
    blocks_per_sm: int
    l2_bytes: int
    dram_gb_per_s: float
    clock_mhz: int
    fp32_tflop_per_s: float
    fp16_tensor_tflop_per_s: float
    tf32_tensor_tflop_per_s: float
    memory_bytes: int
    warp_size: int = 32
    threads_per_block: int = 1024
    launch_latency_us: float = 3.3
    measured_dram_gb_per_s: float | None = None
    validated: bool = False

    @property
    def target(self) -> str:
        """Short name of the compilation target, such as sm_90 or gfx942."""
        return f"sm_{self.arch}" if self.backend == "cuda" else str(self.arch)

    @property
    def copy_gb_per_s(self) -> float:
        """The bandwidth a kernel can hope for: measured where known, else 0.9 of the data sheet."""
        return self.measured_dram_gb_per_s or 0.9 * self.dram_gb_per_s


_KIB = 1024
_MIB = 1024 * _KIB
_GIB = 1024 * _MIB

CHIPS: dict[str, GpuSpec] = {
    spec.key: spec
    for spec in (
        GpuSpec(
            key="t4", name="NVIDIA T4", backend="cuda", arch=75, multiprocessors=40,
            shared_bytes_per_block=64 * _KIB, shared_bytes_per_sm=64 * _KIB, registers_per_sm=65536, warps_per_sm=32,
            blocks_per_sm=16, l2_bytes=4 * _MIB, dram_gb_per_s=320, clock_mhz=1590, fp32_tflop_per_s=8.1,
            fp16_tensor_tflop_per_s=65, tf32_tensor_tflop_per_s=0, memory_bytes=16 * _GIB,
        ),
        GpuSpec(
            key="a100", name="NVIDIA A100", backend="cuda", arch=80, multiprocessors=108,
            shared_bytes_per_block=163 * _KIB, shared_bytes_per_sm=164 * _KIB, registers_per_sm=65536, warps_per_sm=64,
            blocks_per_sm=32, l2_bytes=40 * _MIB, dram_gb_per_s=2039, clock_mhz=1410, fp32_tflop_per_s=19.5,
            fp16_tensor_tflop_per_s=312, tf32_tensor_tflop_per_s=156, memory_bytes=80 * _GIB,
        ),
        GpuSpec(
            key="l4", name="NVIDIA L4", backend="cuda", arch=89, multiprocessors=58,
            shared_bytes_per_block=99 * _KIB, shared_bytes_per_sm=100 * _KIB, registers_per_sm=65536, warps_per_sm=48,
            blocks_per_sm=24, l2_bytes=48 * _MIB, dram_gb_per_s=300, clock_mhz=2040, fp32_tflop_per_s=30.3,
            fp16_tensor_tflop_per_s=121, tf32_tensor_tflop_per_s=60, memory_bytes=24 * _GIB,
        ),
        GpuSpec(
            key="rtx4090", name="NVIDIA GeForce RTX 4090", backend="cuda", arch=89, multiprocessors=128,
            shared_bytes_per_block=99 * _KIB, shared_bytes_per_sm=100 * _KIB, registers_per_sm=65536, warps_per_sm=48,
            blocks_per_sm=24, l2_bytes=72 * _MIB, dram_gb_per_s=1008, clock_mhz=2520, fp32_tflop_per_s=82.6,
            fp16_tensor_tflop_per_s=165, tf32_tensor_tflop_per_s=82.6, memory_bytes=24 * _GIB,
        ),
        GpuSpec(
            key="h100", name="NVIDIA H100 SXM", backend="cuda", arch=90, multiprocessors=132,
            shared_bytes_per_block=227 * _KIB, shared_bytes_per_sm=228 * _KIB, registers_per_sm=65536, warps_per_sm=64,
            blocks_per_sm=32, l2_bytes=50 * _MIB, dram_gb_per_s=3350, clock_mhz=1980, fp32_tflop_per_s=67,
            fp16_tensor_tflop_per_s=989, tf32_tensor_tflop_per_s=495, memory_bytes=80 * _GIB,
        ),
        GpuSpec(
            # PyTorch reports 60 MB of L2 on a real one; 4.3 TB/s is what its own large copy moves there.
            key="h200", name="NVIDIA H200", backend="cuda", arch=90, multiprocessors=132,
            shared_bytes_per_block=227 * _KIB, shared_bytes_per_sm=228 * _KIB, registers_per_sm=65536, warps_per_sm=64,
            blocks_per_sm=32, l2_bytes=60 * _MIB, dram_gb_per_s=4800, clock_mhz=1980, fp32_tflop_per_s=67,
            fp16_tensor_tflop_per_s=989, tf32_tensor_tflop_per_s=495, memory_bytes=141 * 10**9,
            measured_dram_gb_per_s=4300, validated=True,
        ),
        GpuSpec(
            key="mi300x", name="AMD Instinct MI300X", backend="hip", arch="gfx942", multiprocessors=304,
            shared_bytes_per_block=64 * _KIB, shared_bytes_per_sm=64 * _KIB, registers_per_sm=131072, warps_per_sm=32,
            blocks_per_sm=32, l2_bytes=256 * _MIB, dram_gb_per_s=5300, clock_mhz=2100, fp32_tflop_per_s=163.4,
            fp16_tensor_tflop_per_s=1307, tf32_tensor_tflop_per_s=654, memory_bytes=192 * 10**9, warp_size=64,
        ),
    )
}  # fmt: skip

DEFAULT_CHIP = "h200"


def chip(name: str) -> GpuSpec:
    """The chip called `name` (any case; "RTX 4090" and "rtx4090" are one). ValueError names the nearest and all."""
    key = "".join(char for char in name.lower() if char.isalnum())
    if key in CHIPS:
        return CHIPS[key]
    near = difflib.get_close_matches(key, CHIPS, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise ValueError(f"unknown GPU {name!r}.{hint} Known: {', '.join(CHIPS)}")
