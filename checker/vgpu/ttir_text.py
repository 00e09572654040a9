"""Pieces of MLIR text: lists, attributes, types, locations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from checker.vgpu.errors import SourceLine
from checker.vgpu.ttir import Type, parse_type

__all__ = ["Locations", "attributes", "balanced", "split_all", "split_top", "types"]

_LOC_LINE = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_FILE_LOC = re.compile(r'^"((?:[^"\\]|\\.)*)":(\d+):(\d+)(?: to :?\d*:?\d+)?$')
_NAME_LOC = re.compile(r'^"((?:[^"\\]|\\.)*)"\((.*)\)$')


def split_top(text: str, separator: str) -> tuple[str, str]:
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


def split_all(text: str) -> list[str]:
    """Splits a comma-separated list, minding brackets and quotes."""
    parts = []
    while text.strip():
        head, text = split_top(text, ",")
        parts.append(head.strip())
    return parts


def types(text: str) -> list[Type]:
    """Every type of a type section such as `tensor<8xf16> * tensor<8xf16> -> (f32, i32)`."""
    found: list[Type] = []
    for chunk in re.split(r"\s+\*\s+|\s+to\s+|->", text):
        chunk = chunk.strip()
        if chunk.startswith("(") and chunk.endswith(")"):
            chunk = chunk[1:-1]
        found += [parse_type(part) for part in split_all(chunk) if part]
    return found


def attributes(text: str) -> tuple[str, dict[str, str]]:
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
            head, _ = balanced(text, i)
            for part in split_all(head):
                key, value = split_top(part, " = ")
                value = split_top(value, " : ")[0]
                attrs[key.strip()] = value.strip().strip('"')
            i += len(head) + 2
        else:
            out.append(text[i])
            i += 1
    return "".join(out).replace("<>", ""), attrs


def balanced(text: str, start: int) -> tuple[str, int]:
    """What stands between the bracket at `start` and its partner, and where the partner is."""
    depth = 0
    for i in range(start, len(text)):
        if text[i] in "{[(":
            depth += 1
        elif text[i] in "}])":
            depth -= 1
            if depth == 0:
                return text[start + 1 : i], i
    raise ValueError(f"unbalanced brackets in TTIR: {text!r}")


class Locations:
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
            callee, caller = split_top(loc[len("callsite(") : -1], " at ")
            yield from self.frames(callee)
            yield from self.frames(caller)
        elif loc.startswith("fused"):
            inner = loc[loc.index("[") + 1 : loc.rindex("]")]
            for part in split_all(inner):
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
