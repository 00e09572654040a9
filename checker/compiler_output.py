"""What Triton prints while it compiles: kept for the diagnosis, and kept off the learner's screen.

Some errors (a `while` on a block, a mask of floats) are printed by MLIR with their place and then raised without it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

__all__ = ["Diagnostic", "diagnostics", "reading_compiler_output"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error that the compiler printed. `line` is 1-based."""

    file: str
    line: int
    text: str


_ERROR = re.compile(r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d+):\d+: error: (?P<text>.*)$", re.MULTILINE)
_active: IO[bytes] | None = None


@contextlib.contextmanager
def reading_compiler_output() -> Iterator[None]:
    """Send all output into a file while this is open; afterwards pass on what the compiler did not print."""
    global _active
    sys.stdout.flush()
    sys.stderr.flush()
    kept = {number: os.dup(number) for number in (1, 2)}
    with tempfile.TemporaryFile() as log:
        text = io.TextIOWrapper(log, "utf-8", "replace", line_buffering=True)
        for number in kept:
            os.dup2(log.fileno(), number)
        _active, outer = log, _active
        try:
            with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
                yield
        finally:
            text.detach()
            for number, copy in kept.items():
                os.dup2(copy, number)
                os.close(copy)
            _active = outer
            sys.stdout.write(_own(_text(log)))
            sys.stdout.flush()


def diagnostics() -> list[Diagnostic]:
    """The errors printed since `reading_compiler_output` began; empty outside it."""
    if _active is None:
        return []
    return [
        Diagnostic(found["file"].strip('loc("'), int(found["line"]), found["text"])
        for found in _ERROR.finditer(_text(_active))
    ]


def _text(log: IO[bytes]) -> str:
    size = os.fstat(log.fileno()).st_size
    return os.pread(log.fileno(), min(size, 4_000_000), 0).decode(errors="replace")


_NOISE = re.compile(
    r"(#loc|\"builtin\.module|module |  |\}|\{|#\w+ = |#-\}|[^\s:][^:]*:\d+:\d+: (error|note|warning|remark):|loc\(|\^)"
)


def _own(text: str) -> str:
    """The lines that are not the compiler's."""
    if not _ERROR.search(text) and "#loc" not in text:
        return text
    return "".join(line for line in text.splitlines(keepends=True) if not _NOISE.match(line))
