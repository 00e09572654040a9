"""Watches over the child of a check: reads its records and its output, ends it where it must, says how it ended.

The child raises its own limits in the learner's code, which gives them a line. This is the last resort, for code that
does not come back to Python (C code, a swallowed exception), and the only witness of a crash.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import selectors
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from checker.child import Request
from checker.findings import Finding
from checker.limits import COMPILE_LIMIT, of_stage

__all__ = ["CancelledError", "Child", "Ended", "supervise"]

START_LIMIT = 180.0
"""Seconds until the first test starts: importing torch from a cold network disk takes its time."""

GRACE = 4.0
"""Seconds between the limit that the child raises itself and the parent's kill."""

_TICK = 0.1
_OUTPUT_KEPT = 4000


def memory_limit() -> int:
    """Bytes of real memory a check may use: half of the machine's, at most 8 GiB."""
    total = os.sysconf("SC_PHYS_PAGES") * resource.getpagesize()
    return min(total // 2, 8 * 2**30)


class Child(Protocol):
    """A process: `subprocess.Popen`, or one that the warm process forked."""

    pid: int

    def poll(self) -> int | None:
        """The exit status as Popen gives it (negative for a signal), or None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit status."""


@dataclass(slots=True)
class Ended:
    """How a child ended. `finding` is set if it did not finish; `output` is what the file printed, shortened."""

    records: list[dict[str, Any]] = field(default_factory=list)
    output: str = ""
    finding: Finding | None = None


class CancelledError(Exception):
    """The check was called off; its child is gone."""


class _Watch:
    """What is known of a running child."""

    def __init__(self, request: Request, on_record: Callable[[Mapping[str, Any]], None] | None, echo: bool) -> None:
        self.request = request
        self.on_record = on_record
        self.echo = echo
        self.records: list[dict[str, Any]] = []
        self.output = bytearray()
        self.partial = b""
        self.deadline = time.monotonic() + START_LIMIT
        self.remaining = 0.0
        self.killed = ""
        self.warned = 0.0

    def read_records(self, data: bytes) -> None:
        """Take in a piece of the record pipe. Lines without the nonce are nobody's records."""
        *lines, self.partial = (self.partial + data).split(b"\n")
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if not isinstance(record, dict) or record.pop("nonce", None) != self.request.nonce:
                continue
            self.records.append(record)
            self._move_deadline(record)
            if self.on_record is not None:
                self.on_record(record)

    def _move_deadline(self, record: Mapping[str, Any]) -> None:
        now = time.monotonic()
        if record["kind"] == "start":
            self.deadline = now + of_stage(str(record.get("stage")), self.request.limit) + GRACE
        elif record["kind"] == "compiling":
            if record["on"]:
                self.remaining = self.deadline - now
                self.deadline = now + COMPILE_LIMIT + GRACE
            else:
                self.deadline = now + max(self.remaining, GRACE)
        elif record["kind"] in ("end", "done"):
            self.deadline = now + START_LIMIT

    def read_output(self, data: bytes) -> None:
        """Take in what the file printed."""
        self.output += data
        if self.echo:
            sys.stderr.write(data.decode(errors="replace"))
            sys.stderr.flush()
        if len(self.output) > 64 * _OUTPUT_KEPT:
            del self.output[: -32 * _OUTPUT_KEPT]

    def enforce(self, child: Child) -> None:
        """Kill what is out of time or memory; warn once before the latter, so that the child can say where it was."""
        now = time.monotonic()
        if now > self.deadline:
            self.killed = "time"
            kill(child)
            return
        limit = memory_limit()
        used = _resident(child.pid)
        if used > 1.5 * limit or (used > limit and self.warned and now - self.warned > GRACE):
            self.killed = "memory"
            kill(child)
        elif used > limit and not self.warned:
            self.warned = now
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGUSR1)


def supervise(
    start: Callable[[Request, int, int], Child],
    request: Request,
    *,
    on_record: Callable[[Mapping[str, Any]], None] | None = None,
    echo: bool = False,
    cancelled: Callable[[], bool] | None = None,
) -> Ended:
    """Start a child and stay with it to its end. Whatever happens here, the child is gone afterwards.

    Raises CancelledError as soon as `cancelled` says so.
    """
    watch = _Watch(request, on_record, echo)
    records_in, records_out = os.pipe()
    output_in, output_out = os.pipe()
    child: Child | None = None
    try:
        try:
            child = start(request, records_out, output_out)
        finally:
            os.close(records_out)
            os.close(output_out)
        status = _follow(child, watch, records_in, output_in, cancelled)
    finally:
        os.close(records_in)
        os.close(output_in)
        if child is not None:
            # Also where the child has ended: what it forked may live on, in its session.
            kill(child)
            child.wait(timeout=10)
    finding = None
    if not any(record["kind"] == "done" for record in watch.records):
        finding = _how_it_ended(watch, status)
    return Ended(watch.records, _printed(watch), finding)


def _follow(child: Child, watch: _Watch, records: int, output: int, cancelled: Callable[[], bool] | None) -> int:
    readers: dict[int, Callable[[bytes], None]] = {records: watch.read_records, output: watch.read_output}
    with selectors.DefaultSelector() as selector:
        for descriptor in readers:
            os.set_blocking(descriptor, False)
            selector.register(descriptor, selectors.EVENT_READ)
        while readers:
            for key, _ in selector.select(_TICK):
                data = os.read(key.fd, 1 << 16)
                if data:
                    readers[key.fd](data)
                else:
                    selector.unregister(key.fd)
                    del readers[key.fd]
            if cancelled is not None and cancelled():
                raise CancelledError
            watch.enforce(child)
            if child.poll() is not None:
                # A grandchild may hold the pipes open: what is there now is all that counts.
                for descriptor, read in readers.items():
                    with contextlib.suppress(BlockingIOError):
                        while data := os.read(descriptor, 1 << 16):
                            read(data)
                break
    return child.wait(timeout=10)


def kill(child: Child) -> None:
    """End a child and everything it started: it leads a session of its own."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    if child.poll() is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(child.pid, signal.SIGKILL)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0


def _how_it_ended(watch: _Watch, status: int) -> Finding:
    """The finding for a child that did not finish."""
    file = watch.request.file
    text = watch.output.decode(errors="replace")
    line = _last_line(text, file)
    fault = next((record for record in watch.records if record["kind"] in ("fault", "returned")), None)
    if watch.killed == "time":
        compiling = any(r["kind"] == "compiling" and r["on"] for r in watch.records[-1:])
        what = f"compiling took more than {COMPILE_LIMIT:g} s" if compiling else "it had to be stopped from outside"
        stages = [str(r.get("stage")) for r in watch.records if r["kind"] == "start"]
        limit = of_stage(stages[-1] if stages else "", watch.request.limit)
        message = what if compiling else f"still running after {limit:g} s; {what}"
        return Finding("K002", message, "look for a loop without an end, in the wrapper or in a kernel", file=file)
    if watch.killed == "memory":
        return Finding("K004", "this asks for more memory than a check may use", _MEMORY, file=file)
    if fault is not None:
        said = str(fault.get("text") or f"pytest returned {fault.get('code')}; {text[-400:]}")
        details = tuple(said.strip().splitlines()[-4:])
        return Finding("K007", "the check itself failed", "please report this with the command", details=details)
    if status == -signal.SIGKILL:
        return Finding("K004", "the system killed the process, most likely for want of memory", _MEMORY, file=file)
    if status < 0:
        name = signal.Signals(-status).name if -status in signal.valid_signals() else str(-status)
        return Finding(
            "K003",
            f"the process crashed ({name})",
            "look at what this line hands to C code: foreign addresses, ctypes, a tensor of a strange kind"
            if line
            else "look at what the file does outside its kernels",
            file=file,
            line=line,
        )
    if not any(record["kind"] in ("session", "start") for record in watch.records):
        details = tuple(text.strip().splitlines()[-4:])
        return Finding("K006", "the check could not start", "`kata doctor` looks for the cause", details=details)
    return Finding(
        "K005", f"the file ended the process (exit status {status})", "remove that call", file=file, line=line
    )


_MEMORY = "allocate tensors of the size of the input; look at the shapes that the wrapper asks for"
_FATAL = re.compile(r"^Fatal Python error: ", re.MULTILINE)


def _last_line(text: str, file: str) -> int | None:
    """The innermost line of the file in the traceback that Python left behind when it crashed."""
    fatal = _FATAL.search(text)
    found = re.search(re.escape(f'File "{file}", line ') + r"(\d+)", text[fatal.start() :]) if fatal else None
    return int(found[1]) if found else None


def _printed(watch: _Watch) -> str:
    """What the file printed, without the traceback of a crash, shortened from the front."""
    text = watch.output.decode(errors="replace")
    fatal = _FATAL.search(text)
    text = (text[: fatal.start()] if fatal else text).strip()
    return text if len(text) <= _OUTPUT_KEPT else "...\n" + text[-_OUTPUT_KEPT:]
