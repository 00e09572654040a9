"""Triton's first intermediate representation (TTIR) as plain objects.

The virtual GPU runs what the compiler understood, not what the source seems to say: types, implicit conversions,
constant arguments and control flow are settled in TTIR, and every operation still carries the file, line and
column of the learner's source. The text changes little between Triton versions, far less than the interpreter's
private hooks. `parser.py` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from checker.vgpu.errors import SourceLine

__all__ = ["Block", "Function", "Module", "Op", "Region", "Type", "parse_type"]


@dataclass(frozen=True, slots=True)
class Type:
    """A TTIR type: a scalar or a block of them.

    `element` is "f32", "i32", "ptr", "desc", …; `pointee` the element type a pointer or descriptor leads to.
    """

    element: str
    shape: tuple[int, ...] = ()
    pointee: str = ""

    @property
    def numel(self) -> int:
        """Number of elements of the block; 1 for a scalar."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass(slots=True)
class Op:
    """One operation. Operands and results are slots of the function's value table."""

    name: str
    results: tuple[int, ...]
    operands: tuple[int, ...]
    types: tuple[Type, ...]
    words: tuple[str, ...] = ()
    attrs: dict[str, str] = field(default_factory=dict)
    regions: list[Region] = field(default_factory=list)
    successors: tuple[tuple[str, tuple[int, ...]], ...] = ()
    where: SourceLine | None = None
    label: str = ""
    index: int = 0

    @property
    def type(self) -> Type:
        """The last type written: the result's, for every operation with one result."""
        return self.types[-1]


@dataclass(slots=True)
class Block:
    """A basic block: its label, its argument slots with their types, its operations."""

    label: str
    args: list[tuple[int, Type]] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)


@dataclass(slots=True)
class Region:
    """The blocks of a function body, a loop body or a branch."""

    blocks: list[Block]


@dataclass(slots=True)
class Function:
    """A function of the module: argument slots, body and the size of its value table."""

    name: str
    args: list[tuple[int, Type]]
    arg_names: list[str]
    body: Region
    slots: int = 0
    where: SourceLine | None = None

    def ops(self) -> Iterator[Op]:
        """Every operation, nested ones included, in the order of the text."""
        yield from _walk(self.body)


@dataclass(slots=True)
class Module:
    """All functions of a compiled kernel; `entry` is the public one."""

    functions: dict[str, Function]
    entry: str

    def moved_to(self, file: str) -> None:
        """Says in which file the entry function stands now.

        Triton's cache is keyed by the source text: a copy of a file finds the binary of the original, whose places
        name the original.
        """
        where = self.functions[self.entry].where
        if where is None or where.file == file:
            return
        for function in self.functions.values():
            for op in function.ops():
                if op.where is not None and op.where.file == where.file:
                    op.where = replace(op.where, file=file)


def _walk(region: Region) -> Iterator[Op]:
    for block in region.blocks:
        for op in block.ops:
            yield op
            for inner in op.regions:
                yield from _walk(inner)


@lru_cache(maxsize=4096)
def parse_type(text: str) -> Type:
    """`tensor<32x1x!tt.ptr<f16>>` -> Type("ptr", (32, 1), "f16")."""
    text = text.strip()
    if text.startswith("<"):
        # Where only one type is possible, MLIR leaves its name out: `: <f32>, <256xf32>` are a pointer, a descriptor.
        text = ("!tt.tensordesc" if re.match(r"<(tensor<|\d)", text) else "!tt.ptr") + text
    if text.startswith("tensor<"):
        inner = text[len("tensor<") : -1]
        shape = []
        while match := re.match(r"(\d+)x", inner):
            shape.append(int(match[1]))
            inner = inner[match.end() :]
        element = parse_type(inner)
        return Type(element.element, tuple(shape), element.pointee)
    if text.startswith("!tt.ptr<"):
        inner = text[len("!tt.ptr<") : -1]
        return Type("ptr", (), inner.split(",")[0].strip())
    if text.startswith("!tt.tensordesc<"):
        inner = text[len("!tt.tensordesc<") : -1]
        block = parse_type(inner if inner.startswith("tensor<") else f"tensor<{inner}>")
        # A descriptor of integers says whether they are signed (`si32`), the blocks loaded from it do not.
        return Type("desc", block.shape, re.sub(r"^[su]i(?=\d)", "i", block.element))
    return Type(text)
