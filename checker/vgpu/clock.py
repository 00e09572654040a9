"""How long a launch takes on the chip, from what was counted.

A multiprocessor is a small closed queueing network. Its customers are the programs that are resident together
(occupancy); each spends some time merely waiting (latency: being started, loads on their way, barriers) and asks
several servers for work: DRAM, L2, the tensor cores, the ALUs, the dispatcher. Two bounds hold (Denning and Buzen,
1978): few residents deliver at most one result each in the time that a program takes alone, and many at most what the
slowest server can. The time is the larger of the two, with a smooth change between them. DRAM is one server for all
multiprocessors: it bounds them together, but a program that comes alone hardly queues there. The constants stand in
`calibration.py`; docs/model-accuracy.md says how far the model is off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from checker.vgpu.calibration import H200, Calibration
from checker.vgpu.profile import Profile
from checker.vgpu.specs import GpuSpec

__all__ = ["Estimate", "estimate", "occupancy"]

# Registers are handed out in units of 8 a thread (CUDA programming guide).
_REGISTER_UNIT = 8


@dataclass(frozen=True, slots=True)
class Estimate:
    """A modelled time and why: microseconds, the limiting resource, and what each resource alone would need."""

    us: float
    limiter: str
    parts: dict[str, float]
    dram_bytes: float
    l2_bytes: float
    resident: int
    waves: float


def occupancy(profile: Profile, spec: GpuSpec) -> int:
    """Programs that fit on one multiprocessor at a time; 0 if not even one does."""
    by_warps = spec.warps_per_sm // profile.num_warps
    registers = math.ceil(max(profile.registers, 16) / _REGISTER_UNIT) * _REGISTER_UNIT
    by_registers = spec.registers_per_sm // (registers * spec.warp_size * profile.num_warps)
    # What one block cannot have of a multiprocessor's shared memory the chip keeps for each block: 1 KiB since sm_80.
    kept = spec.shared_bytes_per_sm - spec.shared_bytes_per_block
    by_shared = spec.shared_bytes_per_sm // max(1, profile.shared_bytes + kept)
    return min(by_warps, by_registers, by_shared, spec.blocks_per_sm)


def _dram_sectors(profile: Profile, spec: GpuSpec, resident: int, figures: Calibration) -> float:
    """Sectors a program takes from DRAM and returns to it, on average."""
    usable = spec.l2_bytes * figures.l2_usable
    programs = profile.programs
    footprint = sum(a.read_sectors for a in profile.arguments.values()) * 32
    keeps = min(programs, spec.multiprocessors * resident) * footprint <= usable
    total = 0.0
    shared = sum(
        a.tensor_bytes for a in profile.arguments.values() if a.read_sectors * programs * 32 > 1.5 * a.tensor_bytes
    )
    for argument in profile.arguments.values():
        once = argument.read_sectors
        again = max(0.0, argument.requested_read_sectors - once)
        whole = argument.tensor_bytes / 32
        reads = once * programs
        if reads > 1.5 * whole:
            # Programs read the same data: from L2 while all of it fits there, else once a wave.
            waves = max(1.0, programs / (spec.multiprocessors * resident))
            reads = whole if shared <= usable else min(reads, whole * min(waves, 1 + shared / usable))
        total += reads + (0.0 if keeps else again * programs)
    for site in profile.sites:
        if site.kind != "load":
            total += site.sectors * programs
    return total / programs


def estimate(profile: Profile, spec: GpuSpec, *, warm: bool = False, figures: Calibration = H200) -> Estimate:
    """The modelled device time of one launch, launch latency included. `warm`: its operands lie in L2 already."""
    programs = profile.programs
    if programs == 0:
        return Estimate(figures.launch, "launch", {}, 0.0, 0.0, 0, 0.0)
    fits = max(1, occupancy(profile, spec))
    active = min(programs, spec.multiprocessors)
    rounds = math.ceil(programs / spec.multiprocessors)
    if programs > 16 * spec.multiprocessors * fits:
        rounds = programs / spec.multiprocessors  # type: ignore[assignment]  # the tail no longer matters
    resident = min(fits, max(1, math.ceil(programs / spec.multiprocessors)))
    clock = spec.clock_mhz  # clocks a microsecond
    dram = 0.0 if warm else _dram_sectors(profile, spec, resident, figures) * 32
    lines = sum(site.lines for site in profile.sites)
    moved = sum(site.sectors for site in profile.sites) * 32
    partial = sum(site.partial_sectors for site in profile.sites if site.kind != "load" and site.partial_sectors > 1)
    spilled = _spilled_past_l1(profile, spec, resident, figures) * figures.spill_factor
    demands = {
        "dram": dram / (spec.copy_gb_per_s * 1e3 / active),
        "l2": (max((moved + spilled) / figures.l2_bytes_per_clock, figures.clocks_per_line * lines)
               + max(0.0, partial * figures.clocks_per_partial_sector)) / clock,
        "tensor": _tensor_us(profile, spec, figures),
        "alu": _alu_us(profile, spec, figures),
        "dispatch": figures.dispatch,
    }  # fmt: skip
    waiting = _waiting_us(profile, dram, moved, figures)
    customers = resident * (profile.num_stages if profile.pipelined_steps else 1)
    cycle = _cycle_us(demands, waiting, customers, figures)
    # However many loads are on their way, the steps of a program follow one another.
    cycle = max(cycle, (figures.start + figures.dot_step * profile.dot_steps) * customers / resident)
    total = figures.launch + rounds * cycle / customers
    stream = dram * programs / (spec.copy_gb_per_s * 1e3)
    total += min(figures.ramp, figures.cold + stream)
    alone = {name: demand * rounds for name, demand in demands.items()}
    slowest = max(alone, key=lambda name: alone[name])
    limiter = slowest if alone[slowest] > 0.5 * (total - figures.launch) else "latency"
    if total - figures.launch < figures.launch:
        limiter = "launch"
    return Estimate(
        total, limiter, {**alone, "latency": waiting * rounds / customers, "launch": figures.launch},
        dram * programs, moved * programs, resident, programs / (spec.multiprocessors * fits),
    )  # fmt: skip


def _spilled_past_l1(profile: Profile, spec: GpuSpec, resident: int, figures: Calibration) -> float:
    """Bytes that a program spills, unless L1 keeps the stacks of all resident programs.

    L1 is what shared memory leaves of a store that both divide, and other data streams through it.
    """
    stacks = profile.stack_bytes * 32.0 * profile.num_warps
    left = spec.shared_bytes_per_sm - resident * profile.shared_bytes
    return stacks if resident * stacks > figures.l1_usable * left else 0.0


def _tensor_us(profile: Profile, spec: GpuSpec, figures: Calibration) -> float:
    total = 0.0
    half = spec.fp16_tensor_tflop_per_s
    peaks = {"f16": half, "bf16": half, "i8": 2 * half, "tf32": spec.tf32_tensor_tflop_per_s}
    for kind, flops in profile.dot_flops.items():
        peak = peaks.get(kind, 0.0)
        share = figures.tf32_share if kind == "tf32" else figures.tensor_share
        # A wide tile feeds the tensor cores from shared memory with fewer bytes a product than a narrow one.
        share *= (profile.dot_columns / (profile.dot_columns + 32)) / (256 / 288)
        if profile.dot_rows < 64:
            share *= figures.small_tile_share
        peak = peak * share or spec.fp32_tflop_per_s * 0.85
        total += flops / (peak * 1e6 / spec.multiprocessors)
    return total


def _alu_us(profile: Profile, spec: GpuSpec, figures: Calibration) -> float:
    """128 lanes a clock for plain operations, 16 for special functions, four instructions a clock to issue."""
    issued = profile.warp_instructions + profile.dot_steps * profile.num_warps * figures.dot_step_instructions
    clocks = max(profile.lane_operations / (128 * figures.alu_share), profile.special_operations / 16, issued / 4)
    return clocks / spec.clock_mhz


def _waiting_us(profile: Profile, dram: float, moved: float, figures: Calibration) -> float:
    """Latency that a program alone cannot hide: its start, its dependent loads, its barriers."""
    from_dram = min(1.0, dram / moved) if moved else 0.0
    latency = figures.l2_latency + (figures.dram_latency - figures.l2_latency) * from_dram
    barriers = profile.reductions * (figures.barrier if profile.num_warps > 1 else 0.05)
    return figures.start + profile.memory_steps * latency + barriers


def _cycle_us(demands: dict[str, float], waiting: float, customers: int, figures: Calibration) -> float:
    """Mean time between two programs' ends, times `customers`: the time a program takes with that many resident."""
    # DRAM is shared with the programs on all multiprocessors: it bounds them together, and is no wait of one's own.
    alone = waiting + sum(demand for name, demand in demands.items() if name != "dram")
    by_latency = alone / customers
    by_server = max(demands.values())
    power = figures.sharpness
    return float((by_latency**power + by_server**power) ** (1 / power) * customers)
