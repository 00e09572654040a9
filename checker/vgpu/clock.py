"""How long a launch takes on the chip, from what was counted.

A multiprocessor is a small closed queueing network. Its customers are the programs that are resident together
(occupancy); each spends some time merely waiting (latency: being started, loads on their way, barriers) and asks
several servers for work: DRAM, L2, the tensor cores, the ALUs, the dispatcher. Mean-value analysis (Reiser and
Lavenberg, 1980) gives the throughput: few residents leave the servers idle and latency shows, many saturate the
slowest one, and the change between the two is smooth, as it is on the chip. The constants below are few and each
is read off one measurement on an H200 (docs/model-accuracy.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from checker.vgpu.memory import Buffer
from checker.vgpu.profile import Profile
from checker.vgpu.specs import GpuSpec

__all__ = ["L2", "Clock", "Duration", "Estimate", "estimate", "occupancy"]

# --- Constants, in microseconds unless the name says otherwise. ---

# A launch of nothing: an empty kernel takes 3.2 us, of which one program's own latency is 0.85.
_LAUNCH = 2.2
# Starting a program and retiring it, without its memory accesses.
_START = 0.45
# From a load to its value in an idle chip: a loop that loads, stores and repeats takes 0.37 us a step.
_DRAM_LATENCY = 0.38
_L2_LATENCY = 0.20
# A multiprocessor takes a new program every 79 ns: 2^28 elements in blocks of 32 take 5046 us.
_DISPATCH = 0.079
# A reduction over several warps: exchange through shared memory and two barriers.
_BARRIER = 0.16
# Bytes a clock from L2 to one multiprocessor, and clocks a 128-byte line costs there: a 64x64x32 GEMM is bound by
# the first, scattered lanes by the second.
_L2_BYTES_PER_CLOCK = 44.0
_CLOCKS_PER_LINE = 1.7
# A store that fills only part of a sector must fetch the rest and write it back.
_CLOCKS_PER_PARTIAL_SECTOR = 2.7
# The share of the data sheet's rate that long GEMMs reach before power limits the clock.
_TENSOR_SHARE = 0.70
# Float32 tiles whose K is not the fastest axis cannot feed wgmma: 2048^3 reaches 77 of 495 TFLOP/s.
_TF32_SHARE = 0.16
# The share of the ALUs' rate that a chain of independent multiply-adds reaches.
_ALU_SHARE = 0.86
# DRAM needs this long to reach its rate, a share of the transfer for short ones.
_RAMP = 1.8
_COLD = 0.4
# Registers are handed out in units of 8 a thread; shared memory has a fixed part a block.
_REGISTER_UNIT = 8
_SHARED_OVERHEAD = 1024
# The part of L2 that holds what will be used again while other data streams through.
_L2_USABLE = 0.6
# Dense mma.sync instructions reach this share of the wgmma rate on sm_90.
_SMALL_TILE_SHARE = 0.62


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
    by_shared = spec.shared_bytes_per_sm // (profile.shared_bytes + _SHARED_OVERHEAD)
    return min(by_warps, by_registers, by_shared, spec.blocks_per_sm)


def _dram_sectors(profile: Profile, spec: GpuSpec, resident: int) -> float:
    """Sectors a program takes from DRAM and returns to it, on average."""
    usable = spec.l2_bytes * _L2_USABLE
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


def estimate(profile: Profile, spec: GpuSpec, *, warm: bool = False) -> Estimate:
    """The modelled device time of one launch, launch latency included. `warm`: its operands lie in L2 already."""
    programs = profile.programs
    if programs == 0:
        return Estimate(_LAUNCH, "launch", {}, 0.0, 0.0, 0, 0.0)
    fits = max(1, occupancy(profile, spec))
    active = min(programs, spec.multiprocessors)
    rounds = math.ceil(programs / spec.multiprocessors)
    if programs > 16 * spec.multiprocessors * fits:
        rounds = programs / spec.multiprocessors  # type: ignore[assignment]  # the tail no longer matters
    resident = min(fits, max(1, math.ceil(programs / spec.multiprocessors)))
    clock = spec.clock_mhz  # clocks a microsecond
    dram = 0.0 if warm else _dram_sectors(profile, spec, resident) * 32
    lines = sum(site.lines for site in profile.sites)
    moved = sum(site.sectors for site in profile.sites) * 32
    partial = sum(site.partial_sectors for site in profile.sites if site.kind != "load" and site.partial_sectors > 1)
    spilled = profile.stack_bytes * 32.0 * profile.num_warps * 6
    demands = {
        "dram": dram / (spec.copy_gb_per_s * 1e3 / active),
        "l2": (max((moved + spilled) / _L2_BYTES_PER_CLOCK, _CLOCKS_PER_LINE * lines)
               + max(0.0, partial * _CLOCKS_PER_PARTIAL_SECTOR)) / clock,
        "tensor": _tensor_us(profile, spec),
        "alu": _alu_us(profile, spec),
        "dispatch": _DISPATCH,
    }  # fmt: skip
    waiting = _waiting_us(profile, dram, moved)
    customers = resident * (profile.num_stages if profile.pipelined_steps else 1)
    cycle = _cycle_us(demands, waiting, customers)
    total = _LAUNCH + rounds * cycle / customers
    stream = dram * programs / (spec.copy_gb_per_s * 1e3)
    total += min(_RAMP, _COLD + stream)
    alone = {name: demand * rounds for name, demand in demands.items()}
    slowest = max(alone, key=lambda name: alone[name])
    limiter = slowest if alone[slowest] > 0.5 * (total - _LAUNCH) else "latency"
    if total - _LAUNCH < _LAUNCH:
        limiter = "launch"
    return Estimate(
        total, limiter, {**alone, "latency": waiting * rounds / customers, "launch": _LAUNCH},
        dram * programs, moved * programs, resident, programs / (spec.multiprocessors * fits),
    )  # fmt: skip


def _tensor_us(profile: Profile, spec: GpuSpec) -> float:
    total = 0.0
    for kind, flops in profile.dot_flops.items():
        peak = {"f16": spec.fp16_tensor_tflop_per_s, "bf16": spec.fp16_tensor_tflop_per_s,
                "i8": 2 * spec.fp16_tensor_tflop_per_s, "tf32": spec.tf32_tensor_tflop_per_s}.get(kind, 0.0)  # fmt: skip
        share = _TF32_SHARE if kind == "tf32" else _TENSOR_SHARE
        if profile.dot_rows < 64:
            share *= _SMALL_TILE_SHARE
        peak = peak * share or spec.fp32_tflop_per_s * 0.85
        total += flops / (peak * 1e6 / spec.multiprocessors)
    return total


def _alu_us(profile: Profile, spec: GpuSpec) -> float:
    """128 lanes a clock for plain operations, 16 for special functions, four instructions a clock to issue."""
    clocks = max(profile.lane_operations / (128 * _ALU_SHARE), profile.special_operations / 16, profile.warp_instructions / 4)
    return clocks / spec.clock_mhz


def _waiting_us(profile: Profile, dram: float, moved: float) -> float:
    """Latency that a program alone cannot hide: its start, its dependent loads, its barriers."""
    from_dram = min(1.0, dram / moved) if moved else 0.0
    latency = _L2_LATENCY + (_DRAM_LATENCY - _L2_LATENCY) * from_dram
    barriers = profile.reductions * (_BARRIER if profile.num_warps > 1 else 0.05)
    return _START + profile.memory_steps * latency + barriers


def _cycle_us(demands: dict[str, float], waiting: float, customers: int) -> float:
    """Mean time from one program's start to its end with `customers` resident, by exact mean-value analysis."""
    queues = dict.fromkeys(demands, 0.0)
    cycle = waiting
    for count in range(1, customers + 1):
        times = {name: demand * (1 + queues[name]) for name, demand in demands.items()}
        cycle = waiting + sum(times.values())
        queues = {name: count / cycle * time for name, time in times.items()}
    return cycle


# Host time of one launch through Triton, and of the fill that flushes L2 on the device: 256 MiB at DRAM's rate.
_HOST_LAUNCH = 6.0
_FLUSH = 58.0


class Duration:
    """A time in microseconds that is worked out when somebody asks for it: profiling a launch costs real time."""

    def __init__(self, work_out: Callable[[], float]) -> None:
        self._work_out: Callable[[], float] | None = work_out
        self._us = 0.0

    @property
    def us(self) -> float:
        """The time, worked out on first use."""
        if self._work_out is not None:
            self._us = self._work_out()
            self._work_out = None
        return self._us


class L2:
    """Which storages lie in L2 after the launches so far: the last ones, as far as they fit together."""

    def __init__(self) -> None:
        self._held: dict[int, int] = {}

    def flush(self) -> None:
        """Empties it."""
        self._held.clear()

    def touch(self, buffers: list[Buffer], spec: GpuSpec) -> bool:
        """Notes that a launch uses `buffers`; returns whether all of them were there before."""
        sizes = {b.tensor.untyped_storage().data_ptr(): b.numel * b.itemsize for b in buffers}
        warm = bool(sizes) and all(self._held.get(key) == size for key, size in sizes.items())
        for key, size in sizes.items():
            self._held.pop(key, None)
            self._held[key] = size
        while self._held and sum(self._held.values()) > spec.l2_bytes * _L2_USABLE:
            del self._held[next(iter(self._held))]
        return warm


class Clock:
    """Two clocks, in microseconds: the host's, and the device's, which runs behind it until they synchronise.

    A launch returns at once: the host goes on after a few microseconds while the device works through its queue.
    """

    def __init__(self) -> None:
        self.host_us = 0.0
        self._device_us = 0.0
        self._queue: list[tuple[float, Duration]] = []

    def launch(self, duration: Duration) -> None:
        """Queues work on the device, as it stands on the host's clock."""
        self.host_us += _HOST_LAUNCH
        self._queue.append((self.host_us, duration))

    def flush_l2(self) -> None:
        """Queues the fill that benchmarks use to empty L2."""
        self.launch(Duration(lambda: _FLUSH))

    @property
    def device_us(self) -> float:
        """When the device will have done all that is queued."""
        for queued, duration in self._queue:
            self._device_us = max(self._device_us, queued) + duration.us
        self._queue.clear()
        return self._device_us

    def synchronize(self) -> None:
        """The host waits for the device."""
        self.host_us = max(self.host_us, self.device_us)

    @property
    def now_us(self) -> float:
        """The mark an event makes: behind all queued work, and not before the host asked for it."""
        return max(self.device_us, self.host_us)
