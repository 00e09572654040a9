"""How many programs fit on one multiprocessor at a time, and which resource ends it.

The clock only needs the number; a learner needs the reason. The rules are those of NVIDIA's CUDA C++ Programming Guide
(registers handed out by 8 a thread; what one block cannot have of a multiprocessor's shared memory, one KiB since
sm_80, is kept for each block); a test holds both to the same number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from checker.vgpu.specs import GpuSpec

__all__ = ["Occupancy", "occupancy"]

_REGISTER_UNIT = 8


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Programs resident on one multiprocessor. `limits` says how many each resource alone would allow."""

    programs: int
    warps: int
    warps_possible: int
    limiter: str
    limits: dict[str, int]

    @property
    def share(self) -> float:
        """Resident warps over those the multiprocessor can hold, 0 to 1."""
        return self.warps / self.warps_possible


def occupancy(spec: GpuSpec, *, num_warps: int, registers: int, shared_bytes: int) -> Occupancy:
    """What fits of a kernel with `registers` a thread and `shared_bytes` a program, which takes `num_warps` warps."""
    rounded = math.ceil(max(registers, 16) / _REGISTER_UNIT) * _REGISTER_UNIT
    kept = spec.shared_bytes_per_sm - spec.shared_bytes_per_block
    limits = {
        "warps": spec.warps_per_sm // num_warps,
        "registers": spec.registers_per_sm // (rounded * spec.warp_size * num_warps),
        "shared memory": spec.shared_bytes_per_sm // max(1, shared_bytes + kept),
        "blocks": spec.blocks_per_sm,
    }
    limiter = min(limits, key=lambda name: limits[name])
    programs = limits[limiter]
    return Occupancy(programs, programs * num_warps, spec.warps_per_sm, limiter, limits)
