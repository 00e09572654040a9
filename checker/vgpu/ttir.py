"""Reads the text of Triton's first intermediate representation (TTIR) into plain objects.

The virtual GPU runs what the compiler understood, not what the source seems to say: types, implicit conversions,
constant arguments and control flow are settled in TTIR, and every operation still carries the file, line and
column of the learner's source. The text changes little between Triton versions, far less than the interpreter's
private hooks. This module parses; it knows nothing of numbers or memory, and imports neither triton nor torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from checker.vgpu.errors import NotModelled, SourceLine

__all__ = ["Block", "Function", "Module", "Op", "Region", "Type", "parse", "parse_type"]


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


_LOC_LINE = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_FILE_LOC = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to :?\d*:?\d+)?$')
_NAME_LOC = re.compile(r'^"((?:[^"\\]|\\.)*)"\((.*)\)$')
_SSA = re.compile(r"%[A-Za-z0-9_$.\-]+(?:#\d+)?")
_BLOCK = re.compile(r"^\^(\w+)(?:\((.*)\))?:")
_SUCCESSOR = re.compile(r"\^(\w+)(?:\(([^)]*)\))?")


# What ends a block of a loop, a branch, a reduction or a scan.
_TERMINATORS = frozenset(
    ["scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"]
)


class _Locations:
    """Resolves MLIR locations to lines of Python source, innermost frame first."""

    def __init__(self, text: str, column_base: int = 1) -> None:
        self.column_shift = 1 - column_base
        self.table = {m[1]: m[2] for line in text.splitlines() if (m := _LOC_LINE.match(line))}
        self.cache: dict[str, tuple[SourceLine, ...]] = {}

    def frames(self, loc: str) -> tuple[SourceLine, ...]:
        """All frames of a location, callee first."""
        loc = loc.strip()
        if loc not in self.cache:
            self.cache[loc] = tuple(self._frames(loc))
        return self.cache[loc]

    def _frames(self, loc: str) -> Iterator[SourceLine]:
        if loc in self.table:
            yield from self.frames(self.table[loc])
        elif match := _FILE_LOC.match(loc):
            yield SourceLine(match[1], int(match[2]), int(match[3]) + self.column_shift)
        elif loc.startswith("callsite("):
            callee, caller = _split_top(loc[len("callsite(") : -1], " at ")
            yield from self.frames(callee)
            yield from self.frames(caller)
        elif loc.startswith("fused"):
            inner = loc[loc.index("[") + 1 : loc.rindex("]")]
            for part in _split_all(inner):
                yield from self.frames(part)
                break
        elif match := _NAME_LOC.match(loc):
            yield from self.frames(match[2])

    def source(self, loc: str) -> SourceLine | None:
        """The innermost frame outside Triton's own library, else the innermost frame."""
        frames = self.frames(loc)
        for frame in frames:
            if "/triton/language/" not in frame.file:
                return frame
        return frames[0] if frames else None


def _split_top(text: str, separator: str) -> tuple[str, str]:
    """Splits at the first separator outside brackets and quotes; ("text", "") where there is none."""
    depth = 0
    quoted = False
    for i, char in enumerate(text):
        if char == '"' and text[i - 1 : i] != "\\":
            quoted = not quoted
        elif not quoted and char in "([{<":
            depth += 1
        elif (not quoted and char in ")]}") or (not quoted and char == ">" and text[i - 1 : i] != "-"):
            depth -= 1
        if depth == 0 and not quoted and text.startswith(separator, i):
            return text[:i], text[i + len(separator) :]
    return text, ""


def _split_all(text: str) -> list[str]:
    """Splits a comma-separated list, minding brackets and quotes."""
    parts = []
    while text.strip():
        head, text = _split_top(text, ",")
        parts.append(head.strip())
    return parts


def _types(text: str) -> list[Type]:
    """Every type of a type section such as `tensor<8xf16> * tensor<8xf16> -> (f32, i32)`."""
    found: list[Type] = []
    for chunk in re.split(r"\s+\*\s+|\s+to\s+|->", text):
        chunk = chunk.strip()
        if chunk.startswith("(") and chunk.endswith(")"):
            chunk = chunk[1:-1]
        found += [parse_type(part) for part in _split_all(chunk) if part]
    return found


def _attributes(text: str) -> tuple[str, dict[str, str]]:
    """Takes `{key = value, …}` out of an operation's text."""
    attrs: dict[str, str] = {}
    out = []
    i = 0
    while i < len(text):
        if text[i] == '"':
            end = i + 1
            while text[end] != '"' or text[end - 1] == "\\":
                end += 1
            out.append(text[i : end + 1])
            i = end + 1
        elif text[i] == "{":
            head, _ = _balanced(text, i)
            for part in _split_all(head):
                key, value = _split_top(part, " = ")
                value = _split_top(value, " : ")[0]
                attrs[key.strip()] = value.strip().strip('"')
            i += len(head) + 2
        else:
            out.append(text[i])
            i += 1
    return "".join(out).replace("<>", ""), attrs


def _balanced(text: str, start: int) -> tuple[str, int]:
    depth = 0
    for i in range(start, len(text)):
        if text[i] in "{[(":
            depth += 1
        elif text[i] in "}])":
            depth -= 1
            if depth == 0:
                return text[start + 1 : i], i
    raise ValueError(f"unbalanced brackets in TTIR: {text!r}")


class _Parser:
    """Line by line, with a scope stack: sibling regions may use one name for two values."""

    def __init__(self, text: str, column_base: int) -> None:
        self.locations = _Locations(text, column_base)
        self.lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        self.at = 0
        self.scopes: list[dict[str, int]] = []
        self.slots = 0
        self.op_count = 0

    def module(self) -> Module:
        functions: dict[str, Function] = {}
        entry = ""
        while self.at < len(self.lines):
            line = self.lines[self.at].strip()
            if line.startswith("tt.func"):
                function = self.function()
                functions[function.name] = function
                if " public " in line:
                    entry = function.name
            else:
                self.at += 1
        if not functions:
            raise ValueError("this TTIR holds no function")
        return Module(functions, entry or next(iter(functions)))

    def function(self) -> Function:
        line = self.lines[self.at].strip()
        match = re.match(r"tt\.func\s+(?:public |private )?@([\w.$\-]+|\"[^\"]+\")\(", line)
        if match is None:
            raise ValueError(f"not a TTIR function: {line!r}")
        inner, _ = _balanced(line, match.end() - 1)
        self.slots = 0
        self.scopes = [{}]
        args, names = [], []
        for part in _split_all(inner):
            name, rest = _split_top(part, ": ")
            kind = _split_top(_split_top(rest, " {")[0], " loc(")[0]
            names.append(name.strip().lstrip("%"))
            args.append((self.define(name.strip()), parse_type(kind)))
        self.at += 1
        body = self.region(function_level=True)
        _, loc = self._location(self.lines[self.at].strip())
        where = self.locations.source(loc) if loc else None
        return Function(match[1].strip('"'), args, names, body, self.slots, where)

    def define(self, name: str) -> int:
        self.scopes[-1][name] = self.slots
        self.slots += 1
        return self.slots - 1

    def lookup(self, name: str) -> int:
        base, _, part = name.partition("#")
        for scope in reversed(self.scopes):
            if base in scope:
                return scope[base] + int(part or 0)
        raise KeyError(f"TTIR value {name} is used before it is defined")

    def region(self, *, function_level: bool = False) -> Region:
        """Reads blocks up to the line that closes the region; leaves `at` on that line."""
        if not function_level:
            self.scopes.append({})
        blocks = [Block("entry")]
        while True:
            line = self.lines[self.at].strip()
            if line.startswith("}"):
                break
            if match := _BLOCK.match(line):
                block = Block(match[1])
                for part in _split_all(self._block_args(line)):
                    name, rest = _split_top(part, ": ")
                    block.args.append((self.define(name.strip()), parse_type(_split_top(rest, " loc(")[0])))
                if len(blocks) == 1 and not blocks[0].ops and not function_level:
                    blocks[0] = block
                else:
                    blocks.append(block)
                self.at += 1
                continue
            blocks[-1].ops.append(self.op())
        if not function_level:
            self.scopes.pop()
            if not blocks[-1].ops or blocks[-1].ops[-1].name not in _TERMINATORS:
                # A loop or branch that yields nothing is printed without its terminator.
                blocks[-1].ops.append(Op("scf.yield", (), (), (), index=self.op_count))
                self.op_count += 1
        return Region(blocks)

    @staticmethod
    def _block_args(line: str) -> str:
        start = line.find("(")
        label_end = line.find(":")
        return _balanced(line, start)[0] if 0 <= start < label_end or (start >= 0 and label_end < 0) else ""

    def op(self) -> Op:
        line = self.lines[self.at].strip()
        self.at += 1
        names: list[tuple[str, int]] = []
        if line.startswith("%"):
            head, line = line.split(" = ", 1)
            for part in head.split(","):
                label, _, count = part.strip().partition(":")
                names.append((label, int(count or 1)))
        opens = line.endswith("{")
        body, loc = self._location(line)
        name = re.match(r'"?([\w.]+)"?', body)
        if name is None:
            raise ValueError(f"not a TTIR operation: {line!r}")
        op = Op(name[1], (), (), (), label=names[0][0].lstrip("%") if names else "", index=self.op_count)
        self.op_count += 1
        rest = body[name.end() :]
        if op.name.startswith("scf."):
            loc = self._structured(op, rest, loc)
        elif opens:
            loc = self._generic_region(op, rest)
        else:
            self._plain(op, rest)
        op.where = self.locations.source(loc) if loc else None
        results: list[int] = []
        for value, many in names:
            first = self.define(value)
            self.slots += many - 1
            results += range(first, first + many)
        op.results = tuple(results)
        return op

    @staticmethod
    def _location(line: str) -> tuple[str, str]:
        at = line.rfind(" loc(")
        if at < 0 or not line.endswith(")"):
            return line, ""
        # An inline location may itself hold " loc(": take the outermost that closes at the end of the line.
        return line[:at], line[at + len(" loc(") : -1]

    def _operands(self, text: str) -> tuple[int, ...]:
        return tuple(self.lookup(name) for name in _SSA.findall(text))

    def _plain(self, op: Op, rest: str) -> None:
        if op.name == "arith.constant":
            value, kind = rest.rsplit(" : ", 1) if " : " in rest else (rest, "i1")
            op.words = (value.strip(),)
            op.types = (parse_type(kind),)
            return
        if op.name == "tt.print":
            match = re.match(r'\s*"((?:[^"\\]|\\.)*)"', rest)
            op.words = (match[1] if match else "",)
            rest = rest[match.end() :] if match else rest
            rest, op.attrs = _attributes(rest)
            operands = rest.lstrip().removeprefix(":")
            head, kinds = _split_top(operands, " : ")
            op.operands = self._operands(head)
            op.types = tuple(_types(kinds))
            return
        if op.name.startswith("cf."):
            condition, _ = _split_top(rest, "^")
            op.operands = self._operands(condition)
            op.successors = tuple(
                (label, self._operands(_split_top(args, ":")[0])) for label, args in _SUCCESSOR.findall(rest)
            )
            return
        rest, op.attrs = _attributes(rest)
        head, kinds = _split_top(rest, " : ")
        if op.name == "tt.call":
            callee = re.match(r'\s*@("[^"]*"|[\w.$\-]+)', head)
            op.words = (callee[1].strip('"') if callee else "",)
            head = head[callee.end() :] if callee else head
        if op.name == "tt.assert":
            op.words = tuple(re.findall(r'"((?:[^"\\]|\\.)*)"', head))
            head = re.sub(r'"(?:[^"\\]|\\.)*"', "", head)
        op.operands = self._operands(head)
        plain = _SSA.sub(" ", head)
        for key, value in re.findall(r"(\w+)\s*=\s*(\w+)", plain):
            op.attrs[key] = value
        op.words = op.words or tuple(re.findall(r"@?[A-Za-z_]\w*(?:<[^>]*>)?", re.sub(r"\w+\s*=\s*\w+", " ", plain)))
        op.types = tuple(_types(kinds)) if kinds else ()

    def _generic_region(self, op: Op, rest: str) -> str:
        rest, op.attrs = _attributes(rest[: rest.rindex("({")] if "({" in rest else rest.rstrip("{"))
        op.operands = self._operands(rest)
        op.regions.append(self.region())
        closing, loc = self._location(self.lines[self.at].strip())
        self.at += 1
        tail, attrs = _attributes(closing.lstrip("})"))
        op.attrs |= attrs
        op.types = tuple(_types(_split_top(" " + tail.strip(), ": ")[1]))
        return loc

    def _structured(self, op: Op, rest: str, loc: str) -> str:
        if op.name in ("scf.yield", "scf.condition"):
            op.operands = self._operands(_split_top(rest, " : ")[0])
            return loc
        if op.name == "scf.for":
            return self._for(op, rest)
        if op.name == "scf.while":
            return self._while(op, rest)
        if op.name == "scf.if":
            head, kinds = _split_top(rest.rstrip("{").strip(), " -> ")
            op.operands = self._operands(head)
            op.types = tuple(_types(kinds)) if kinds else ()
            op.regions.append(self.region())
            line = self.lines[self.at].strip()
            self.at += 1
            if line.startswith("} else"):
                op.regions.append(self.region())
                line = self.lines[self.at].strip()
                self.at += 1
            op.attrs = _attributes(self._location(line)[0].lstrip("}"))[1]
            return self._location(line)[1]
        raise NotModelled(f"the control flow `{op.name}`", where=self.locations.source(loc) if loc else None)

    def _for(self, op: Op, rest: str) -> str:
        match = re.match(r"\s*(?:unsigned\s+)?(%[\w$.\-]+) = (%\S+) to (%\S+) step (%\S+)", rest)
        if match is None:
            raise ValueError(f"not a TTIR loop: {rest!r}")
        bounds = [self.lookup(match[i]) for i in (2, 3, 4)]
        carried: list[str] = []
        inits: list[int] = []
        tail = rest[match.end() :]
        if "iter_args(" in tail:
            inner, end = _balanced(tail, tail.index("iter_args(") + len("iter_args"))
            for part in _split_all(inner):
                name, value = part.split(" = ")
                carried.append(name.strip())
                inits.append(self.lookup(value.strip()))
            kinds = _split_top(tail[end + 1 :], "-> ")[1]
            op.types = tuple(_types(_balanced(kinds.strip(), 0)[0])) if kinds.strip().startswith("(") else ()
        op.operands = tuple(bounds + inits)
        self.scopes.append({})
        counter = (self.define(match[1]), Type("index"))
        args = [counter] + [(self.define(name), kind) for name, kind in zip(carried, op.types, strict=True)]
        region = self.region()
        region.blocks[0].args = args
        self.scopes.pop()
        op.regions.append(region)
        line = self.lines[self.at].strip()
        self.at += 1
        text, loc = self._location(line)
        op.attrs = _attributes(text.lstrip("}"))[1]
        return loc

    def _while(self, op: Op, rest: str) -> str:
        carried: list[str] = []
        inits: list[int] = []
        if rest.strip().startswith("("):
            inner, end = _balanced(rest, rest.index("("))
            for part in _split_all(inner):
                name, value = part.split(" = ")
                carried.append(name.strip())
                inits.append(self.lookup(value.strip()))
            rest = rest[end + 1 :]
        before, after = _split_top(rest.rstrip("{").strip().lstrip(":").strip(), " -> ")
        op.operands = tuple(inits)
        op.types = tuple(_types(after))
        self.scopes.append({})
        args = [(self.define(name), kind) for name, kind in zip(carried, _types(before), strict=True)]
        condition = self.region()
        condition.blocks[0].args = args
        self.scopes.pop()
        op.regions.append(condition)
        self.at += 1  # `} do {`
        op.regions.append(self.region())
        line = self.lines[self.at].strip()
        self.at += 1
        return self._location(line)[1]


def parse(text: str, *, column_base: int = 1) -> Module:
    """Parses a whole TTIR module; raises `NotModelled` for control flow outside scf.for/if/while and cf branches.

    `column_base` is the number that the text gives to the first column of a line; ours is 1.
    """
    return _Parser(text, column_base).module()
