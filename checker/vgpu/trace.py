"""What a launch did, as facts: accesses by source line, violations, resources. No verdicts here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from checker.vgpu.errors import SourceLine

__all__ = ["Access", "LaunchTrace", "Violation"]


@dataclass(slots=True)
class Access:
    """All that one load, store or atomic of the source did in a launch.

    `lanes` counts lanes let through by the mask, `masked` those it held back; `bytes` is lanes times element size.
    `sectors` sums, over programs and executions, the distinct 32-byte sectors touched (0 unless asked for).
    """

    kind: str
    argument: str
    where: SourceLine | None
    lanes: int = 0
    masked: int = 0
    bytes: int = 0
    sectors: int = 0
    executions: int = 0
    has_other: bool = True

    @property
    def bytes_fetched_per_useful_byte(self) -> float:
        """32 bytes a sector over the bytes asked for; 1.0 is perfect coalescing."""
        return self.sectors * 32 / self.bytes if self.bytes else 0.0


@dataclass(slots=True)
class Violation:
    """Something a launch did to memory that it must not do.

    `kind` is one of load_outside, store_outside, load_gap, load_unwritten, store_conflict, lane_conflict,
    read_after_write, write_after_read, misaligned. `indices` are element offsets from the tensor's first element,
    of the first program that did it; `count` is the number of lanes over all programs.
    """

    kind: str
    argument: str
    where: SourceLine | None
    program: tuple[int, int, int]
    indices: tuple[int, ...]
    count: int
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    other_program: tuple[int, int, int] | None = None
    wrapped_at: SourceLine | None = None
    also_read: bool = False
    order: int = 0


@dataclass(slots=True)
class LaunchTrace:
    """One launch: which kernel, how it was called, what it touched, what it did wrong.

    `scalars` holds the run-time scalars and constants by name; `registers`, `spills` and `shared_bytes` come from
    the compiled binary; `file` and `line` are the kernel's, `called_at` is the line of that file which launched it, if
    one did. In timing mode `sampled` holds the programs that ran, `stored` by tensor argument the element
    offsets they wrote, `profile` and `estimate` what they cost.
    """

    kernel: str
    grid: tuple[int, int, int]
    scalars: dict[str, object]
    num_warps: int = 4
    num_stages: int = 1
    registers: int = 0
    spills: int = 0
    shared_bytes: int = 0
    file: str = ""
    line: int = 0
    called_at: int | None = None
    accesses: list[Access] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    tensors: dict[str, object] = field(default_factory=dict)
    poisoned_lanes: int = 0
    notes: list[str] = field(default_factory=list)
    prints: list[str] = field(default_factory=list)
    programs_run: int = 0
    same_bytes: int = 0
    replayed: bool = False
    kernel_handle: object = None
    profile: Any = None
    estimate: Any = None
    sampled: Any = None
    stored: Any = None

    def repeat(self, earlier: LaunchTrace) -> None:
        """Takes over what an identical launch did, which this one would do again."""
        self.replayed = True
        self.accesses, self.violations, self.prints = earlier.accesses, earlier.violations, earlier.prints
        self.poisoned_lanes, self.programs_run = earlier.poisoned_lanes, earlier.programs_run
        self.same_bytes, self.tensors = earlier.same_bytes, earlier.tensors

    @property
    def programs(self) -> int:
        """Number of program instances of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def loads(self) -> list[Access]:
        """Accesses that read."""
        return [access for access in self.accesses if access.kind == "load"]

    @property
    def stores(self) -> list[Access]:
        """Accesses that write."""
        return [access for access in self.accesses if access.kind == "store"]

    @property
    def bytes_loaded(self) -> int:
        """Bytes requested by loads, masked-off lanes not counted."""
        return sum(access.bytes for access in self.loads)

    @property
    def bytes_stored(self) -> int:
        """Bytes written by stores, masked-off lanes not counted."""
        return sum(access.bytes for access in self.stores)

    def __str__(self) -> str:
        grid = ", ".join(map(str, self.short_grid)) + ("," if len(self.short_grid) == 1 else "")
        scalars = ", ".join(f"{name}={value}" for name, value in self.scalars.items())
        return f"{self.kernel}[({grid})]({scalars})"

    @property
    def short_grid(self) -> tuple[int, ...]:
        """The grid without trailing ones."""
        x, y, z = self.grid
        return (x,) if y == z == 1 else (x, y) if z == 1 else (x, y, z)
