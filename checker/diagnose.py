"""From an exception to a finding: which mistake it means, and on which line of the learner's file.

Triton's errors nest (a kernel that calls a helper that calls `tl.zeros`), and the innermost one may lie in Triton's
own library; what is shown is the innermost place in the learner's file. Exceptions are told apart by name and shape,
never by importing Triton, so that this module costs nothing until something fails.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from typing import Any

from checker.compile_diagnosis import compile_finding, lowering_finding
from checker.findings import Finding
from checker.launch_diagnosis import host_finding, unsupported_reference
from checker.limits import MemoryLimitReachedError, ProcessEndedError, ProcessForkedError, TimeLimitReachedError
from checker.loading import ForbiddenImportError, LoadError
from checker.source import frames_in, read_source

__all__ = ["from_exception"]


def from_exception(exc: BaseException, file: Path, launch: str | None = None) -> Finding:
    """The finding that an exception means. `file` is the learner's file, `launch` how the last launch was written."""
    finding = _finding(exc, _Subject(file))
    if launch is not None and finding.launch is None and finding.stage == "compile":
        from dataclasses import replace

        return replace(finding, launch=launch)
    return finding


class _Subject:
    """The learner's file as text and tree; empty where it cannot be read any more."""

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            self.source = read_source(file)
            self.tree = ast.parse(self.source)
        except (OSError, SyntaxError, ValueError):
            self.source, self.tree = "", ast.Module(body=[], type_ignores=[])


def _finding(exc: BaseException, subject: _Subject) -> Finding:
    if isinstance(exc, LoadError):
        return exc.finding
    if (limit := _limit(exc, subject.file)) is not None:
        return limit
    if isinstance(exc, ForbiddenImportError):
        line, column = _place(exc, subject.file)
        advice = "solve the kata with torch and triton alone; the answers and the checks are off limits here"
        return Finding("K110", str(exc), advice, file=str(subject.file), line=line, column=column)
    if _is_virtual_gpu_error(exc):
        return _virtual(exc, subject.file)
    if _is_compilation_error(exc):
        return compile_finding(exc, subject.file, subject.source, subject.tree)
    text = str(exc)
    if type(exc).__name__ == "OutOfResources":
        return _out_of_resources(exc, subject.file)
    if type(exc).__name__ == "PTXASError":
        return _ptxas(exc, subject.file)
    if isinstance(exc, RuntimeError) and re.search(r"encountered during parsing|PassManager::run failed", text):
        line, _ = _place(exc, subject.file)
        return lowering_finding(text, subject.file, subject.source, subject.tree, line)
    if isinstance(exc, RuntimeError) and "has changed since we compiled this kernel" in text:
        name = (re.search(r"Global variable (\w+)", text) or ["", "?"])[1]
        line, column = _place(exc, subject.file)
        return Finding(
            "K204",
            f"the global `{name}` changed after the kernel was compiled with its old value",
            "pass it as an argument of the kernel",
            file=str(subject.file),
            line=line,
            column=column,
        )
    if "Unsupported function referenced" in text:
        return _unsupported(exc, subject)
    return host_finding(exc, subject.file, subject.tree)


def _unsupported(exc: BaseException, subject: _Subject) -> Finding:
    call = next(unsupported_reference(str(exc), subject.tree), None)
    line, column = (call.lineno, call.col_offset + 1) if call is not None else _place(exc, subject.file)
    name = ast.unparse(call.func) if call is not None else "a function"
    root = name.partition(".")[0]
    advice = (
        f"use tl.{name.rpartition('.')[2]}, if triton.language has it; otherwise build it from what is there"
        if root in ("torch", "np", "numpy", "math")
        else f"decorate `{name}` with @triton.jit as well"
    )
    return Finding(
        "K211",
        f"the kernel calls `{name}`, which is not a function of Triton",
        advice,
        file=str(subject.file),
        line=line,
        column=column,
    )


def _is_compilation_error(exc: BaseException) -> bool:
    return type(exc).__module__.startswith("triton.") and hasattr(exc, "node") and hasattr(exc, "error_message")


def _is_virtual_gpu_error(exc: BaseException) -> bool:
    return all(hasattr(exc, name) for name in ("code", "message", "advice"))


def _place(exc: BaseException, file: Path) -> tuple[int | None, int | None]:
    """Where the learner's file was when the exception was raised: its innermost frame."""
    frames = frames_in(exc, file)
    if not frames:
        return None, None
    column = frames[-1].colno
    return frames[-1].lineno, column + 1 if column is not None else None


def _limit(exc: BaseException, file: Path) -> Finding | None:
    line, column = _place(exc, file)
    text = str(exc)
    if isinstance(exc, TimeLimitReachedError):
        line, column = _running_kernel(exc, file) or (line, column)
        return Finding(
            "K002",
            text,
            "look for a loop whose condition never becomes false, here or in the kernel launched here",
            file=str(file),
            line=line,
            column=column,
        )
    if isinstance(exc, MemoryError | MemoryLimitReachedError) or "can't allocate memory" in text:
        return Finding(
            "K004",
            "this asks for more memory than a check may use",
            "allocate tensors of the size of the input; look at the shape that is asked for here",
            file=str(file),
            line=line,
            column=column,
            details=(text.strip().splitlines()[-1][:200],) if text.strip() else (),
        )
    if isinstance(exc, SystemExit | ProcessEndedError):
        forks = isinstance(exc, ProcessForkedError)
        message = "the file starts a second process" if forks else "the file asks for the end of the process"
        return Finding("K005", message, "remove that call", file=str(file), line=line, column=column)
    return None


def _running_kernel(exc: BaseException, file: Path) -> tuple[int, int] | None:
    """The line of the learner's kernel that the virtual GPU was at, if it was running one."""
    executor = sys.modules.get("checker.vgpu.executor")
    if executor is None or not frames_in(exc, Path(str(executor.__file__))):
        return None
    site = executor.current_site()
    # A binary from Triton's cache names the file it was first compiled from, wherever the same source lies now; the
    # lines are the same. Only Triton's own library is another place.
    return (site.line, site.column) if site is not None and "/triton/" not in site.file else None


def _virtual(exc: Any, file: Path) -> Finding:
    where = getattr(exc, "where", None)
    line, column = _place(exc, file)
    if where is not None and where.file == str(file):
        line, column = where.line, where.column
    details = tuple(getattr(exc, "details", ()))
    return Finding(exc.code, exc.message, exc.advice, file=str(file), line=line, column=column, details=details)


def _out_of_resources(exc: Any, file: Path) -> Finding:
    line, column = _place(exc, file)
    name, required, limit = exc.name, exc.required, exc.limit
    if "thread" in name or "register" in name:
        return Finding(
            "K222",
            f"a program asks for {required} {name}; this GPU has {limit}",
            "lower num_warps: a warp is 32 threads",
            file=str(file),
            line=line,
            column=column,
        )
    return Finding(
        "K221",
        f"a program needs {required} bytes of {name}; this GPU has {limit}",
        "smaller tiles or fewer num_stages: each stage holds one tile of every operand",
        file=str(file),
        line=line,
        column=column,
    )


def _ptxas(exc: BaseException, file: Path) -> Finding:
    line, column = _place(exc, file)
    said = next((text for text in str(exc).splitlines() if "error" in text.lower()), str(exc))[:200]
    code = "K222" if "register" in said else "K200"
    return Finding(
        code,
        f"NVIDIA's assembler refused the kernel: {said}",
        "lower num_warps or the block size",
        file=str(file),
        line=line,
        column=column,
    )
