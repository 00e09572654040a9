"""The TODO blocks of a kata file: where they are, and which the learner has not touched.

A block runs from `# TODO(n): what to do` to `# END TODO(n)`. A marker left in solved code is never a failure, so this
only serves words: what is still open, and which hint to give.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from checker.verdict import Todo

_START = re.compile(r"^\s*#\s*TODO\((\d+)\):?\s*(.*?)\s*$")
_END = re.compile(r"^\s*#\s*END TODO\((\d+)\)\s*$")


@dataclass(frozen=True, slots=True)
class Block:
    """One TODO block. `line` is the 1-based line of its first marker, `body` the lines between the markers."""

    number: int
    line: int
    text: str
    body: tuple[str, ...]


def blocks(source: str) -> tuple[Block, ...]:
    """The TODO blocks of a file in order. A block without its end marker is passed over."""
    found = []
    start: tuple[int, int, str] | None = None
    lines = source.splitlines()
    for index, line in enumerate(lines):
        if opening := _START.match(line):
            start = (int(opening[1]), index, opening[2])
        elif (closing := _END.match(line)) and start is not None and int(closing[1]) == start[0]:
            number, first, text = start
            found.append(Block(number, first + 1, text, tuple(lines[first + 1 : index])))
            start = None
    return tuple(found)


def outside(source: str) -> str:
    """The file without the bodies of its TODO blocks: what a skeleton and its solution must share."""
    bodies = {line for block in blocks(source) for line in range(block.line, block.line + len(block.body))}
    return "\n".join(line for index, line in enumerate(source.splitlines()) if index not in bodies)


def open_todos(source: str, skeleton: str) -> tuple[Todo, ...]:
    """The TODOs whose markers are still in `source`; untouched where the body is the skeleton's, blanks aside."""
    originals = {block.number: _code(block) for block in blocks(skeleton)}
    return tuple(
        Todo(block.number, block.line, block.text, _code(block) == originals.get(block.number))
        for block in blocks(source)
    )


def _code(block: Block) -> list[str]:
    return [line.strip() for line in block.body if line.strip()]
