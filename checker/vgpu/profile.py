"""Counts what a launch costs, on a sample of its programs: sectors, lines, operations, dependent steps.

Timing mode. Nothing is judged here: no shadow, no poison; sampled programs really run and really store, the others
are taken to be like them. What is counted becomes a `Profile`, from which `clock.py` makes a time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from checker.vgpu.errors import SourceLine
from checker.vgpu.executor import Executor
from checker.vgpu.floats import Array
from checker.vgpu.memory import LaunchMemory
from checker.vgpu.ttir import Block, Op
from checker.vgpu.violations import Book

__all__ = ["ArgumentProfile", "Profile", "Profiler", "SiteProfile", "UntrackedMemory"]

_SECTOR_BITS = 5
_LINE_BITS = 7

# Instructions a lane issues for one element: special functions take several, and a quarter or less of the rate.
_SPECIAL = frozenset(["math.exp", "math.exp2", "math.log", "math.log2", "math.sqrt", "math.rsqrt", "math.sin",
                      "math.cos", "math.tanh", "tt.precise_sqrt"])  # fmt: skip
_DIVISIONS = frozenset(["arith.divf", "tt.precise_divf", "arith.divsi", "arith.remsi", "arith.divui", "arith.remui"])
_FREE = frozenset(["arith.constant", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.make_range", "arith.bitcast",
                   "tt.bitcast", "tt.addptr", "arith.extui", "tt.get_program_id", "tt.get_num_programs"])  # fmt: skip


_SMALL = 1 << 20
"""Bytes of a tensor that stays in the L2 cache of any chip while programs share it."""


@dataclass(slots=True)
class SiteProfile:
    """One load, store or atomic of the source, per program on average."""

    kind: str
    argument: str
    where: SourceLine | None
    bytes: float = 0.0
    sectors: float = 0.0
    partial_sectors: float = 0.0
    lines: float = 0.0
    executions: float = 0.0


@dataclass(slots=True)
class ArgumentProfile:
    """One tensor argument: its size, and what a program touches of it, each sector once."""

    name: str
    tensor_bytes: int
    read_sectors: float = 0.0
    written_sectors: float = 0.0
    requested_read_sectors: float = 0.0


@dataclass(slots=True)
class Profile:
    """What one program does on average. Times need the chip as well: see `clock.py`."""

    programs: int
    num_warps: int
    num_stages: int
    registers: int
    shared_bytes: int
    stack_bytes: int
    sites: list[SiteProfile] = field(default_factory=list)
    arguments: dict[str, ArgumentProfile] = field(default_factory=dict)
    memory_steps: float = 0.0
    pipelined_steps: float = 0.0
    reductions: float = 0.0
    lane_operations: float = 0.0
    special_operations: float = 0.0
    warp_instructions: float = 0.0
    dot_flops: dict[str, float] = field(default_factory=dict)
    dot_steps: float = 0.0
    dot_rows: int = 0
    dot_columns: int = 0

    @property
    def bytes_requested(self) -> float:
        """Bytes all programs together ask for, masked-off lanes not counted.

        A small tensor that many programs read, such as a bias, comes from the cache for all but the first: its bytes
        count once for each time that one program reads them.
        """
        return sum(self.programs * site.bytes / self._readers(site) for site in self.sites)

    def _readers(self, site: SiteProfile) -> float:
        """How many programs share each byte of a load from a small tensor; 1 for any other access."""
        argument = self.arguments.get(site.argument)
        if argument is None or site.kind != "load" or not 0 < argument.tensor_bytes <= _SMALL:
            return 1.0
        return max(1.0, self.programs * argument.read_sectors * 32 / argument.tensor_bytes)


class _BlankBook(Book):
    """Enters nothing."""

    def add(self, *_: Any) -> None:
        """Forgets it."""


class UntrackedMemory(LaunchMemory):
    """Memory without a history: legal lanes are read, and written if `stores`; nothing is reported.

    `stored` holds, by argument, the element offsets that were written.
    """

    stores = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.check_races = False
        self.book = _BlankBook(self.grid)
        self.stored: dict[str, list[Array]] = {}

    def _note_read(self, *_: Any) -> None:
        return

    def store(
        self, addresses: Array, values: Array, mask: Array, element: str, programs: Array, site: Any, hint: int
    ) -> None:
        """Writes the lanes inside the view."""
        from checker.vgpu import floats

        buffer = self.buffer_of(addresses, mask, hint)
        if buffer is None or not self.stores:
            return
        ok, offsets = self._legal("store", buffer, addresses, mask, programs, site, element)
        flat = buffer.flat if buffer.element == element else buffer.flat.view(floats.stored_dtype(element))
        where = offsets[ok]
        flat[where] = floats.encode(element, np.broadcast_to(values, addresses.shape)[ok])
        self.stored.setdefault(buffer.name, []).append(where)


class Profiler(Executor):
    """An executor that counts. `profile()` gives the averages over the programs that ran."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.visits: Counter[int] = Counter()
        self.blocks: dict[int, Block] = {}
        self.sites: dict[tuple[str, int], SiteProfile] = {}
        self.touched: dict[tuple[str, str], list[Array]] = {}

    def block(self, block: Block) -> Op:
        """Runs a block and counts the visit."""
        self.visits[id(block)] += self.programs.size if self.active is None else int(np.count_nonzero(self.active))
        self.blocks[id(block)] = block
        return super().block(block)

    def note(self, op: Op, kind: str, addresses: Array, mask: Array, width: int, hint: int, has_other: bool) -> None:
        """Counts what an access does, and which sectors it touches."""
        super().note(op, kind, addresses, mask, width, hint, has_other)
        buffers = self.memory.buffers
        name = buffers[hint].name if 0 <= hint < len(buffers) else ""
        site = self.sites.setdefault((kind, op.index), SiteProfile(kind, name, op.where))
        site.executions += mask.shape[0]
        site.bytes += int(np.count_nonzero(mask)) * width
        for row in range(mask.shape[0]):
            live = addresses[row][mask[row]] if not mask[row].all() else addresses[row]
            if not live.size:
                continue
            sectors, counts = np.unique(live >> _SECTOR_BITS, return_counts=True)
            site.sectors += sectors.size
            site.partial_sectors += int(np.count_nonzero(counts * width < 32))
            site.lines += np.unique(sectors >> (_LINE_BITS - _SECTOR_BITS)).size
            if row == 0:
                way = "read" if kind == "load" else "written"
                self.touched.setdefault((name, way), []).append(sectors)

    def profile(self) -> Profile:
        """Averages over the programs that ran; footprints from the first of them."""
        ran = max(1, self.trace.programs_run)
        trace = self.trace
        result = Profile(
            trace.programs, trace.num_warps, trace.num_stages, trace.registers, trace.shared_bytes, trace.spills
        )
        for site in self.sites.values():
            for name in ("bytes", "sectors", "partial_sectors", "lines", "executions"):
                setattr(site, name, getattr(site, name) / ran)
            result.sites.append(site)
        for buffer in self.memory.buffers:
            argument = ArgumentProfile(buffer.name, buffer.numel * buffer.itemsize)
            for way in ("read", "written"):
                parts = self.touched.get((buffer.name, way), [])
                count = float(np.unique(np.concatenate(parts)).size) if parts else 0.0
                setattr(argument, f"{way}_sectors", count)
            argument.requested_read_sectors = sum(
                site.sectors for site in result.sites if site.argument == buffer.name and site.kind == "load"
            )
            result.arguments[buffer.name] = argument
        for key, block in self.blocks.items():
            self._count_block(block, self.visits[key] / ran, result)
        return result

    def _count_block(self, block: Block, visits: float, result: Profile) -> None:
        """Adds what one block costs a program that passes it `visits` times."""
        has_dot = any(op.name == "tt.dot" for op in block.ops)
        if any(op.name in ("tt.load", "tt.descriptor_load") for op in block.ops):
            result.memory_steps += visits
            if has_dot and result.num_stages > 1:
                result.pipelined_steps += visits
        warps = result.num_warps
        for op in block.ops:
            if op.name == "tt.dot":
                m, k = op.types[0].shape[-2:]
                n = op.types[1].shape[-1]
                batch = int(np.prod(op.types[0].shape[:-2], dtype=np.int64))
                kind = op.types[0].element
                if kind == "f32" and op.attrs.get("inputPrecision") == "tf32":
                    kind = "tf32"
                result.dot_flops[kind] = result.dot_flops.get(kind, 0.0) + visits * 2.0 * batch * m * n * k
                result.dot_rows, result.dot_columns = m, n
                result.dot_steps += visits
                continue
            if op.name in ("tt.reduce", "tt.scan"):
                result.reductions += visits
                size = op.types[0].numel
                result.lane_operations += visits * size
                result.warp_instructions += visits * max(warps, size / 32) + visits * warps * 10
                continue
            if op.name in _FREE or op.name.startswith(("scf.", "cf.", "tt.return")) or not op.types:
                continue
            size = max((kind.numel for kind in op.types), default=1)
            issued = visits * max(warps, size / 32)
            if op.name in _SPECIAL:
                result.special_operations += visits * size
                result.lane_operations += visits * size * 2
                result.warp_instructions += 3 * issued
            elif op.name in _DIVISIONS:
                result.special_operations += visits * size
                result.lane_operations += visits * size * 6
                result.warp_instructions += 8 * issued
            else:
                result.lane_operations += visits * size
                result.warp_instructions += issued
