"""Why a kernel is slow: each cause is taken away in the model, and the one whose absence saves most is named.

The questions asked of the model are of one kind: how long would this launch take, if its accesses were coalesced, its
registers did not spill, its blocks were larger? That is a fact about the kernel and not a list of habits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from checker.cost import Counted
from checker.vgpu.calibration import H200
from checker.vgpu.clock import estimate
from checker.vgpu.profile import Profile
from checker.vgpu.specs import GpuSpec

__all__ = ["Cause", "causes"]

# A cause whose absence saves less than this part of the time is none.
_WORTH = 0.05
# Rows and columns of a tile of a product from which on its size is no longer the cause.
_TILE = 128
# Bytes of a block from which on dispatch no longer shows.
_BLOCK_BYTES = 8192


@dataclass(frozen=True, slots=True)
class Cause:
    """A diagnosis with what it costs: `us` is what the call would take without it."""

    code: str
    us: float
    message: str
    advice: str
    line: int | None = None
    column: int | None = None


def causes(counted: Counted, spec: GpuSpec, *, least_bytes: int, flops: int, half: bool) -> list[Cause]:
    """The causes that matter, the greatest first. `half`: whether the inputs are float16 or bfloat16."""
    total = counted.launches_us + counted.operations_us
    found = [cause for cause in _all(counted, spec, total, least_bytes, flops, half) if cause.us < (1 - _WORTH) * total]
    return sorted(found, key=lambda cause: cause.us)


def _all(counted: Counted, spec: GpuSpec, total: float, least_bytes: int, flops: int, half: bool) -> Iterator[Cause]:
    if counted.operations:
        yield _in_pytorch(counted, total)
    if counted.launches > 1:
        yield _many_launches(counted, total)
    main = counted.main
    if main is None:
        return
    profile: Profile = main.profile
    rest = total - float(main.estimate.us)

    def without(change: Callable[[Profile], Any]) -> float:
        changed = deepcopy(profile)
        change(changed)
        return float(rest + estimate(changed, spec).us)

    worst = counted.worst
    if worst is not None:
        verb = "fetches" if worst.kind == "load" else "moves"
        yield Cause(
            "K802",
            without(_coalesced),
            f"the {worst.kind} through {worst.argument} {verb} {worst.ratio:.1f} bytes for each useful byte",
            "Let neighbouring lanes touch neighbouring elements: the last axis of the block belongs to stride 1.",
            worst.line,
            worst.column,
        )
    asked = counted.bytes - counted.operations_bytes
    repeated = asked / least_bytes if least_bytes else 1.0
    if repeated > 1.1 and not profile.dot_flops and flops <= 20 * least_bytes:
        once = float(estimate(_thinner(profile, repeated), spec).us)
        several = counted.launches > 1
        yield Cause(
            "K801",
            counted.operations_us + counted.launches_us / repeated if several else rest + once,
            f"{_size(asked)} are asked for{' in all launches' * several} where {_size(least_bytes)} would do "
            f"({repeated:.2f}x)",
            "Keep what was loaded: read each input once, and write nothing but the result.",
            *_most_repeated(profile),
        )
    if main.spills:
        yield Cause(
            "K805",
            without(lambda p: _set(p, stack_bytes=0, registers=min(p.registers, 64))),
            f"each thread keeps {main.spills} bytes in memory that do not fit into its registers",
            "Spread the block over more threads (num_warps), or make it smaller.",
            main.line,
        )
    yield from _about_programs(profile, spec, without, main.line)
    yield from _about_products(counted, profile, spec, without, flops, least_bytes, half)
    if counted.launches > 1 and counted.dram_bytes > 1.3 * least_bytes and profile.dot_flops:
        yield Cause(
            "K801",
            float(main.estimate.us),
            f"{_size(counted.dram_bytes)} pass through memory where {_size(least_bytes)} would do: what one launch "
            "stores, another loads again",
            "Do at the end of the product, in registers, what the other launches do to its result.",
            main.called_at or main.line,
        )
    elif counted.dram_bytes > 1.3 * least_bytes and counted.bytes > 1.1 * counted.dram_bytes and profile.dot_flops:
        again = counted.dram_bytes / least_bytes
        yield Cause(
            "K808",
            rest + max(us for name, us in main.estimate.parts.items() if name != "dram"),
            f"DRAM delivers {_size(counted.dram_bytes)}, {again:.1f}x the least: L2 has lost what programs share",
            "Number the programs so that those which share data run at the same time.",
            main.line,
        )


def _in_pytorch(counted: Counted, total: float) -> Cause:
    names = ", ".join(dict.fromkeys(name for name, _ in counted.operations))
    line = next((line for _, line in counted.operations if line), None)
    return Cause(
        "K801",
        total - counted.operations_us,
        f"PyTorch's own {names} in the wrapper takes {counted.operations_us:.0f} us and moves its bytes on top",
        "Hand the kernel the strides and let it read the tensor as it lies.",
        line,
    )


def _many_launches(counted: Counted, total: float) -> Cause:
    launches = counted.launches + len(counted.operations)
    return Cause(
        "K809",
        total - (launches - 1) * H200.launch,
        f"{launches} launches at {H200.launch:g} us each, before any work is done",
        "Let one launch do the work of all: the grid is there for that.",
        counted.main.line if counted.main else None,
    )


def _about_programs(
    profile: Profile, spec: GpuSpec, without: Callable[[Callable[[Profile], Any]], float], line: int
) -> Iterator[Cause]:
    programs, bytes_each = profile.programs, sum(site.bytes for site in profile.sites)
    if programs < 4 * spec.multiprocessors:
        yield Cause(
            "K803",
            without(lambda p: _regrouped(p, programs / (8 * spec.multiprocessors))),
            f"{programs} {'program' if programs == 1 else 'programs'} on {spec.multiprocessors} multiprocessors",
            "Cut the problem into more programs: several for each multiprocessor.",
            line,
        )
    if bytes_each < _BLOCK_BYTES and not profile.dot_flops and programs > 16 * spec.multiprocessors:
        larger = _BLOCK_BYTES / max(bytes_each, 1.0)
        yield Cause(
            "K804",
            without(lambda p: _regrouped(p, larger)),
            f"{programs} programs move {bytes_each:.0f} bytes each: starting them takes longer than their work",
            "Give each program more elements: 512 to 4096 is a good block for element-wise work.",
            line,
        )
    if profile.num_warps > 4 and not profile.dot_flops:
        yield Cause(
            "K806",
            without(lambda p: _set(p, num_warps=4)),
            f"{profile.num_warps} warps for one block leave room for {max(1, spec.warps_per_sm // profile.num_warps)} "
            "programs on a multiprocessor, and they all wait at the same barriers",
            "Take fewer warps for a block of this size, so that more programs are in flight.",
            line,
        )
    elif profile.registers > 64 or profile.shared_bytes > spec.shared_bytes_per_sm // 8:
        yield Cause(
            "K806",
            without(lambda p: _set(p, registers=32, shared_bytes=0)),
            f"{profile.registers} registers a thread and {profile.shared_bytes} bytes of shared memory leave few "
            "programs on a multiprocessor: nobody works while they wait",
            "Make the block smaller, or spread it over more warps.",
            line,
        )


def _about_products(
    counted: Counted,
    profile: Profile,
    spec: GpuSpec,
    without: Callable[[Callable[[Profile], Any]], float],
    flops: int,
    least_bytes: int,
    half: bool,
) -> Iterator[Cause]:
    """Arithmetic that belongs on the tensor cores, and tiles too small to feed them."""
    if flops < 50 * least_bytes or counted.main is None:
        return
    line = counted.main.line
    kinds = set(profile.dot_flops)
    if half and not kinds & {"f16", "bf16"}:
        slow = "multiplies on the ordinary units" if not kinds else f"multiplies {', '.join(sorted(kinds))} operands"
        yield Cause(
            "K807",
            without(lambda p: _on_tensor_cores(p, flops / profile.programs)),
            f"the kernel {slow}, while its float16 operands could go to the tensor cores as they are",
            "Call tl.dot on the tiles as they were loaded; it accumulates in float32.",
            line,
        )
    if kinds and profile.dot_rows * profile.dot_columns < _TILE * _TILE // 4:
        growth = math.sqrt(_TILE * _TILE / (profile.dot_rows * profile.dot_columns))
        yield Cause(
            "K804",
            without(lambda p: _larger_tile(p, growth)),
            f"tiles of {profile.dot_rows} x {profile.dot_columns} use each loaded value {profile.dot_columns} or "
            f"{profile.dot_rows} times only: {_size(counted.bytes)} pass from L2 to the multiprocessors",
            "Take larger tiles, such as 128 x 128: twice the side halves the bytes.",
            line,
        )


# What follows changes a profile as if one fault were gone.


def _set(profile: Profile, **values: int) -> None:
    for name, value in values.items():
        setattr(profile, name, value)


def _coalesced(profile: Profile) -> None:
    for site in profile.sites:
        site.sectors = min(site.sectors, site.bytes / 32)
        site.lines = min(site.lines, site.bytes / 128)
        site.partial_sectors = 0.0
    for argument in profile.arguments.values():
        loads = [site for site in profile.sites if site.argument == argument.name and site.kind == "load"]
        asked = sum(site.sectors for site in loads)
        argument.read_sectors = min(argument.read_sectors, asked)
        argument.requested_read_sectors = min(argument.requested_read_sectors, asked)


def _thinner(profile: Profile, times: float) -> Profile:
    """As if bytes were moved once that are moved `times`."""
    changed = deepcopy(profile)
    for site in changed.sites:
        for name in ("bytes", "sectors", "partial_sectors", "lines"):
            setattr(site, name, getattr(site, name) / times)
    for argument in changed.arguments.values():
        argument.requested_read_sectors = min(argument.requested_read_sectors, argument.read_sectors)
    changed.memory_steps /= times
    return changed


def _regrouped(profile: Profile, factor: float) -> None:
    """As if `factor` programs were one; below 1, as if one were several."""
    programs = max(1, round(profile.programs / factor))
    factor = profile.programs / programs
    profile.programs = programs
    for site in profile.sites:
        for name in ("bytes", "sectors", "partial_sectors", "lines"):
            setattr(site, name, getattr(site, name) * factor)
    for argument in profile.arguments.values():
        for name in ("read_sectors", "written_sectors", "requested_read_sectors"):
            setattr(argument, name, getattr(argument, name) * factor)
    for name in ("lane_operations", "special_operations", "warp_instructions"):
        setattr(profile, name, getattr(profile, name) * factor)
    if factor < 1:
        profile.memory_steps *= factor


def _on_tensor_cores(profile: Profile, flops: float) -> None:
    profile.dot_flops = {"f16": flops}
    profile.dot_rows = profile.dot_columns = _TILE
    profile.dot_steps = 0.0
    profile.lane_operations = profile.warp_instructions = profile.special_operations = 0.0
    for site in profile.sites:
        site.sectors, site.lines = site.sectors / 4, site.lines / 4


def _larger_tile(profile: Profile, growth: float) -> None:
    """As if a tile of a product had `growth` times the side: each program does more, and loads less for it."""
    area = growth * growth
    profile.programs = max(1, round(profile.programs / area))
    for site in profile.sites:
        scale = growth if site.kind == "load" else area
        for name in ("bytes", "sectors", "partial_sectors", "lines"):
            setattr(site, name, getattr(site, name) * scale)
    for argument in profile.arguments.values():
        for name in ("read_sectors", "requested_read_sectors"):
            setattr(argument, name, getattr(argument, name) * growth)
    profile.dot_flops = {kind: flops * area for kind, flops in profile.dot_flops.items()}
    profile.dot_rows, profile.dot_columns = _TILE, _TILE
    profile.dot_steps = 0.0
    profile.warp_instructions *= growth


def _most_repeated(profile: Profile) -> tuple[int | None, int | None]:
    """The last load of the argument that is asked for most often beyond its size."""
    loads = [site for site in profile.sites if site.kind == "load" and site.where is not None]
    if not loads:
        return None, None
    per_argument: dict[str, float] = {}
    for site in loads:
        per_argument[site.argument] = per_argument.get(site.argument, 0.0) + site.bytes
    most = max(per_argument, key=lambda name: per_argument[name])
    where = [site.where for site in loads if site.argument == most][-1]
    return (where.line, where.column) if where is not None else (None, None)


def _size(count: float) -> str:
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.4g} MB"
