"""What one timed call cost, counted: bytes, resources, the limiting resource, the access that wastes most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from checker.occupancy import occupancy
from checker.timing import Call
from checker.vgpu.calibration import H200
from checker.vgpu.specs import GpuSpec
from checker.vgpu.trace import LaunchTrace

__all__ = ["LIMITERS", "Counted", "Waste", "count"]

LIMITERS = {
    "dram": "memory",
    "l2": "L2",
    "tensor": "tensor cores",
    "alu": "ALU",
    "dispatch": "starting programs",
    "latency": "latency",
    "launch": "launch",
}
"""The clock's names of resources in plain words."""

PYTORCH = "PyTorch in the wrapper"
"""The limiter of a call in which PyTorch's own operations take most of the time."""


@dataclass(frozen=True, slots=True)
class Waste:
    """An access that moves more than it was asked for: `ratio` bytes fetched for each useful byte."""

    kind: str
    argument: str
    file: str
    line: int
    column: int
    ratio: float


@dataclass(frozen=True, slots=True)
class Counted:
    """The facts of one call. Bytes are those asked for, and those that pass through DRAM; times are modelled.

    `main` is the launch that takes longest. `occupancy` is the share of a multiprocessor's warps that can be resident.
    """

    launches: int
    operations: tuple[tuple[str, int], ...]
    launches_us: float
    operations_us: float
    operations_bytes: int
    bytes: float
    dram_bytes: float
    limiter: str
    main: LaunchTrace | None
    worst: Waste | None
    registers: int
    spilled_bytes: int
    shared_bytes: int
    occupancy: float


def count(call: Call, spec: GpuSpec) -> Counted:
    """Adds up the launches and operations of a call."""
    launches = [launch for launch in call.launches if launch.profile is not None]
    operations = [operation for operation, _ in call.operations]
    launches_us = sum(launch.estimate.us for launch in launches)
    operations_us = sum(operation.us for operation in operations)
    main = max(launches, key=lambda launch: float(launch.estimate.us), default=None)
    fits = None
    if main is not None:
        fits = occupancy(spec, num_warps=main.num_warps, registers=main.registers, shared_bytes=main.shared_bytes)
    return Counted(
        launches=len(launches),
        operations=tuple((operation.name, line) for operation, line in call.operations),
        launches_us=launches_us,
        operations_us=operations_us,
        operations_bytes=sum(operation.bytes for operation in operations),
        bytes=sum(launch.profile.bytes_requested for launch in launches) + sum(o.bytes for o in operations),
        dram_bytes=sum(launch.estimate.dram_bytes for launch in launches) + sum(o.bytes for o in operations),
        limiter=_limiter(launches, main, launches_us, operations_us),
        main=main,
        worst=_worst(launches),
        registers=main.registers if main else 0,
        spilled_bytes=main.spills if main else 0,
        shared_bytes=main.shared_bytes if main else 0,
        occupancy=fits.share if fits else 0.0,
    )


def _limiter(launches: list[LaunchTrace], main: LaunchTrace | None, launches_us: float, operations_us: float) -> str:
    if main is None or operations_us > launches_us:
        return PYTORCH
    if len(launches) > 1 and len(launches) * H200.launch > 0.5 * launches_us:
        return LIMITERS["launch"]
    return LIMITERS.get(main.estimate.limiter, str(main.estimate.limiter))


def _worst(launches: list[LaunchTrace]) -> Waste | None:
    """The access that fetches most beyond what it asks for; None where all of them are as good as can be."""
    worst: Any = None
    most = 0.0
    for launch in launches:
        for site in launch.profile.sites:
            wasted = (site.sectors * 32 - site.bytes) * launch.programs
            if site.where is not None and site.bytes and site.sectors * 32 > 1.1 * site.bytes and wasted > most:
                worst, most = site, wasted
    if worst is None:
        return None
    where = worst.where
    ratio = worst.sectors * 32 / worst.bytes
    return Waste(worst.kind, worst.argument, where.file, where.line, where.column, ratio)
