"""Reads the text of TTIR. Parses, and knows nothing of numbers or memory; imports neither triton nor torch."""

from __future__ import annotations

import re

from checker.vgpu.errors import NotModelled
from checker.vgpu.ttir import Block, Function, Module, Op, Region, Type, parse_type
from checker.vgpu.ttir_text import Locations, attributes, balanced, split_all, split_top, types

__all__ = ["parse"]

_SSA = re.compile(r"%[A-Za-z0-9_$.\-]+(?:#\d+)?")
_BLOCK = re.compile(r"^\^(\w+)(?:\((.*)\))?:")
_SUCCESSOR = re.compile(r"\^(\w+)(?:\(([^)]*)\))?")

# What ends a block of a loop, a branch, a reduction or a scan.
_TERMINATORS = frozenset(
    ["scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"]
)


class _Parser:
    """Line by line, with a scope stack: sibling regions may use one name for two values."""

    def __init__(self, text: str, column_base: int) -> None:
        self.locations = Locations(text, column_base)
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
        inner, _ = balanced(line, match.end() - 1)
        self.slots = 0
        self.scopes = [{}]
        args, names = [], []
        for part in split_all(inner):
            name, rest = split_top(part, ": ")
            kind = split_top(split_top(rest, " {")[0], " loc(")[0]
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
                for part in split_all(self._block_args(line)):
                    name, rest = split_top(part, ": ")
                    block.args.append((self.define(name.strip()), parse_type(split_top(rest, " loc(")[0])))
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
        return balanced(line, start)[0] if 0 <= start < label_end or (start >= 0 and label_end < 0) else ""

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
            rest, op.attrs = attributes(rest)
            operands = rest.lstrip().removeprefix(":")
            head, kinds = split_top(operands, " : ")
            op.operands = self._operands(head)
            op.types = tuple(types(kinds))
            return
        if op.name.startswith("cf."):
            condition, _ = split_top(rest, "^")
            op.operands = self._operands(condition)
            op.successors = tuple(
                (label, self._operands(split_top(args, ":")[0])) for label, args in _SUCCESSOR.findall(rest)
            )
            return
        rest, op.attrs = attributes(rest)
        head, kinds = split_top(rest, " : ")
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
        op.types = tuple(types(kinds)) if kinds else ()

    def _generic_region(self, op: Op, rest: str) -> str:
        rest, op.attrs = attributes(rest[: rest.rindex("({")] if "({" in rest else rest.rstrip("{"))
        op.operands = self._operands(rest)
        op.regions.append(self.region())
        closing, loc = self._location(self.lines[self.at].strip())
        self.at += 1
        tail, attrs = attributes(closing.lstrip("})"))
        op.attrs |= attrs
        op.types = tuple(types(split_top(" " + tail.strip(), ": ")[1]))
        return loc

    def _structured(self, op: Op, rest: str, loc: str) -> str:
        if op.name in ("scf.yield", "scf.condition"):
            op.operands = self._operands(split_top(rest, " : ")[0])
            return loc
        if op.name == "scf.for":
            return self._for(op, rest)
        if op.name == "scf.while":
            return self._while(op, rest)
        if op.name == "scf.if":
            head, kinds = split_top(rest.rstrip("{").strip(), " -> ")
            op.operands = self._operands(head)
            op.types = tuple(types(kinds)) if kinds else ()
            op.regions.append(self.region())
            line = self.lines[self.at].strip()
            self.at += 1
            if line.startswith("} else"):
                op.regions.append(self.region())
                line = self.lines[self.at].strip()
                self.at += 1
            op.attrs = attributes(self._location(line)[0].lstrip("}"))[1]
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
            inner, end = balanced(tail, tail.index("iter_args(") + len("iter_args"))
            for part in split_all(inner):
                name, value = part.split(" = ")
                carried.append(name.strip())
                inits.append(self.lookup(value.strip()))
            kinds = split_top(tail[end + 1 :], "-> ")[1]
            op.types = tuple(types(balanced(kinds.strip(), 0)[0])) if kinds.strip().startswith("(") else ()
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
        op.attrs = attributes(text.lstrip("}"))[1]
        return loc

    def _while(self, op: Op, rest: str) -> str:
        carried: list[str] = []
        inits: list[int] = []
        if rest.strip().startswith("("):
            inner, end = balanced(rest, rest.index("("))
            for part in split_all(inner):
                name, value = part.split(" = ")
                carried.append(name.strip())
                inits.append(self.lookup(value.strip()))
            rest = rest[end + 1 :]
        before, after = split_top(rest.rstrip("{").strip().lstrip(":").strip(), " -> ")
        op.operands = tuple(inits)
        op.types = tuple(types(after))
        self.scopes.append({})
        args = [(self.define(name), kind) for name, kind in zip(carried, types(before), strict=True)]
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
