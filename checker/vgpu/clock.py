"""How long a launch would take on the chip: a first model, in microseconds.

The larger of what DRAM needs for the bytes the kernel asks for and what dispatching its programs takes, plus the
latency of a launch. It orders configurations of memory-bound kernels; its accuracy is not yet measured, so no
verdict rests on it.
"""

from __future__ import annotations

from checker.vgpu.specs import GpuSpec
from checker.vgpu.trace import LaunchTrace

__all__ = ["Clock", "launch_us"]

# Measured on an H200: 2^28 elements copied in blocks of 32, 64, 128 and 256 take 5043, 2526, 1269 and 641 us,
# which is 1.65 programs a nanosecond over 132 multiprocessors.
_PROGRAMS_PER_US_PER_SM = 1650 / 132


def launch_us(trace: LaunchTrace, spec: GpuSpec) -> float:
    """Modelled device time of one launch."""
    scale = trace.programs / max(1, trace.programs_run)
    moved = (trace.bytes_loaded + trace.bytes_stored) * scale
    memory = moved / (spec.copy_gb_per_s * 1e3)
    dispatch = trace.programs / (_PROGRAMS_PER_US_PER_SM * spec.multiprocessors)
    return spec.launch_latency_us + max(memory, dispatch)


class Clock:
    """Device time since the session began, in microseconds."""

    def __init__(self) -> None:
        self.now_us = 0.0

    def advance(self, us: float) -> None:
        """Moves on by `us`."""
        self.now_us += us
