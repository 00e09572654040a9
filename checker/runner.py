"""Checks one kata in a child process and makes the report.

The learner's code never runs in this process. The child writes records as things happen, over a pipe of its own with
a nonce in each; whatever ends the child, the records so far and the way it ended make the verdict.
"""

from __future__ import annotations

import importlib.util
import os
import random
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from checker import devices
from checker.catalog import Kata
from checker.child import Request
from checker.errors import KataUsageError
from checker.findings import Finding
from checker.lint import LintResult, lint
from checker.records import versions
from checker.supervise import Child, Ended, supervise
from checker.verdict import Report, conclude

__all__ = ["CASE_LIMIT", "Start", "check", "debug"]

CASE_LIMIT = 20.0
"""Seconds a case may take, compiling excluded. Cases are small: one that takes this long has a loop without an end."""

OnRecord = Callable[[Mapping[str, Any]], None]


class Start(Protocol):
    """How to start a child: gets the request, the record pipe and the output pipe (writing ends)."""

    def __call__(self, request: Request, records: int, output: int) -> Child:
        """Start it."""


def check(
    kata: Kata,
    *,
    root: Path,
    file: Path | None = None,
    gpu: str = "h200",
    device: str = "auto",
    seed: int | None = None,
    quick: bool = False,
    reveal: bool = False,
    verbose: bool = False,
    on_record: OnRecord | None = None,
    limit: float = CASE_LIMIT,
    start: Start | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Report:
    """Check a kata's kernel.py, or `file` in its place.

    `limit` is the seconds a case may take. `start` replaces the fresh process by another way to get one (the warm
    process); `cancelled` calls the check off (CancelledError). With `verbose` what the file prints goes to stderr as it
    comes. KeyboardInterrupt ends the child first.
    """
    began = time.monotonic()
    subject = (file or kata.kernel).absolute()
    chosen = random.SystemRandom().randrange(2**31) if seed is None else seed
    _device(gpu)
    source = lint(subject, entry=kata.entry, signature=kata.signature, skeleton=kata.skeleton)
    early = _source_findings(source) or _environment_findings(device)
    if early:
        records = [_session_record(kata, subject, chosen, gpu), _todos_record(source)]
        records += [{"kind": "finding", "test": None, "finding": finding.to_dict()} for finding in early]
        return _conclude([*records, {"kind": "done"}], kata, subject, chosen, gpu, began)
    request = Request(
        folder=str(kata.folder.absolute()),
        file=str(subject),
        gpu=gpu,
        device=devices.choose(device),
        seed=chosen,
        quick=quick,
        reveal=reveal,
        limit=limit,
        nonce=secrets.token_hex(8),
    )
    ended = supervise(start or start_fresh, request, on_record=on_record, echo=verbose, cancelled=cancelled)
    records = [*ended.records]
    if not any(record["kind"] == "session" for record in records):
        records.insert(0, _session_record(kata, subject, chosen, gpu))
    if ended.output and not verbose:
        records.append({"kind": "note", "text": "the file printed:\n" + ended.output})
    return _conclude(records, kata, subject, chosen, gpu, began, ended)


def debug(kata: Kata, case: str, program: int | None = None, root: Path | None = None, file: Path | None = None) -> int:
    """Run one case in the foreground in Triton's interpreter, with print and breakpoint() working; an exit code."""
    subject = (file or (kata.kernel if kata.kernel.exists() else kata.skeleton)).absolute()
    arguments = [str(kata.folder.absolute()), str(subject), kata.entry, case, "" if program is None else str(program)]
    code = "import sys; sys.path.append(sys.argv[1]); from checker.debugging import main; main(sys.argv[2:])"
    return subprocess.call(
        [sys.executable, "-P", "-B", "-W", "ignore", "-c", code, _here(), *arguments], env=environment()
    )


def start_fresh(request: Request, records: int, output: int) -> Child:
    """Start a fresh interpreter: safe import path, no .pyc files, a clean environment, a session of its own."""
    from dataclasses import replace

    code = "import sys; sys.path.append(sys.argv[1]); from checker.child import main; main()"
    return subprocess.Popen(
        [sys.executable, "-P", "-B", "-W", "ignore", "-c", code, _here(), replace(request, records=records).dumps()],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        pass_fds=[records],
        start_new_session=True,
        env=environment(),
    )


def environment() -> dict[str, str]:
    """The environment of a child: nothing that changes what Triton or Python does, and one thread per library."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name
        not in ("TRITON_INTERPRET", "TRITON_DEFAULT_BACKEND", "PYTHONSTARTUP", "PYTHONOPTIMIZE", "PYTEST_ADDOPTS")
    }
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    # Triton 3.9 warns unless this is chosen; contraction is what its compiled code has done so far.
    return {**kept, **threads, "TRITON_DEFAULT_FP_FUSION": "1"}


def _here() -> str:
    return str(Path(__file__).resolve().parent.parent)


def _source_findings(source: LintResult) -> tuple[Finding, ...]:
    return source.fatal


def _environment_findings(device: str) -> tuple[Finding, ...]:
    """K006 for what is missing, found without importing it."""
    missing = [name for name in ("torch", "triton", "numpy", "pytest") if importlib.util.find_spec(name) is None]
    if missing:
        return (
            Finding(
                "K006",
                f"{' and '.join(missing)} cannot be imported by {sys.executable}",
                "install the package again as the README says; `kata doctor` names the command",
            ),
        )
    if device == "cuda" and devices.problem():
        return (
            Finding(
                "K006",
                f"there is no GPU to run on: {devices.problem()}",
                "leave --device out: the virtual GPU compiles for the same chip",
            ),
        )
    return ()


def _device(gpu: str) -> dict[str, str]:
    try:
        return devices.describe(gpu)
    except ValueError as error:
        raise KataUsageError(str(error)) from error


def _session_record(kata: Kata, file: Path, seed: int, gpu: str) -> dict[str, Any]:
    return {
        "kind": "session",
        "kata": kata.id,
        "file": str(file),
        "seed": seed,
        "device": _device(gpu),
        "versions": versions(),
    }


def _todos_record(source: LintResult) -> dict[str, Any]:
    todos = [
        {"number": todo.number, "line": todo.line, "text": todo.text, "untouched": todo.untouched}
        for todo in source.todos
    ]
    return {"kind": "todos", "todos": todos}


def _conclude(
    records: list[dict[str, Any]],
    kata: Kata,
    file: Path,
    seed: int,
    gpu: str,
    began: float,
    ended: Ended | None = None,
) -> Report:
    return conclude(
        records,
        kata=kata.id,
        file=str(file),
        seed=seed,
        device=_device(gpu),
        seconds=round(time.monotonic() - began, 3),
        ended=ended.finding if ended is not None else None,
    )
