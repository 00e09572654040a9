"""Limits on time and memory inside the process that runs the learner's code.

A limit raises an exception in her code, so that the finding has her line. It derives from BaseException, because an
`except Exception` of hers must not swallow it. The parent process kills as the last resort: C code is not interrupted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

__all__ = [
    "COMPILE_LIMIT",
    "BudgetSpentError",
    "LimitReachedError",
    "MemoryLimitReachedError",
    "ProcessEndedError",
    "ProcessForkedError",
    "TimeLimitReachedError",
    "budget",
    "no_exit",
    "of_stage",
    "on_memory_signal",
    "time_limit",
    "watch_compiling",
]

COMPILE_LIMIT = 120.0
"""Seconds one compilation may take. The time of a case excludes compiling; something must bound it all the same."""


def of_stage(stage: str, limit: float) -> float:
    """Seconds a test of this stage may take where a case may take `limit`: a timed one is a few rounds at full size."""
    return 4 * limit if stage == "speed" else limit


class LimitReachedError(BaseException):
    """The learner's code met a limit of the check."""


class TimeLimitReachedError(LimitReachedError):
    """A case took longer than it may."""


class BudgetSpentError(LimitReachedError):
    """What was tried takes longer than it is worth; the one who set the budget tries something smaller."""


class MemoryLimitReachedError(LimitReachedError):
    """The process uses more memory than it may; the parent said so."""


class ProcessEndedError(LimitReachedError):
    """The learner's code asked for the end of the process."""


class ProcessForkedError(ProcessEndedError):
    """Something asked for a copy of the process."""


@contextlib.contextmanager
def no_exit() -> Iterator[None]:
    """Turn `os._exit`, `os.abort` and `os.fork` into an exception with a line. What goes round them still works."""

    def ended(status: int = 0) -> NoReturn:
        raise ProcessEndedError(f"exit status {status}")

    def forked() -> NoReturn:
        raise ProcessForkedError("a second process would judge the same file again")

    originals = os._exit, os.abort, os.fork
    os._exit = os.abort = ended
    os.fork = forked
    try:
        yield
    finally:
        os._exit, os.abort, os.fork = originals


def on_memory_signal() -> None:
    """Let SIGUSR1, which the parent sends when this process has grown too large, raise in the learner's code."""

    def grown(_signal: int, _frame: FrameType | None) -> None:
        raise MemoryLimitReachedError("the process has grown too large")

    signal.signal(signal.SIGUSR1, grown)


class _Clock:
    """The running limit of this process, if any: remaining seconds, and whether Triton is compiling."""

    def __init__(self) -> None:
        self.limit = 0.0
        self.remaining = 0.0
        self.compiling = False


_clock = _Clock()


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TimeLimitReachedError in this thread after so many seconds of wall time, compiling excluded.

    Repeats every second, so that code which swallows it once is stopped again. Does nothing outside the main thread,
    where Python delivers no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _clock.limit, _clock.compiling = seconds, False
    previous = signal.signal(signal.SIGALRM, _expired)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)
        _clock.limit = 0.0


@contextlib.contextmanager
def budget(seconds: float) -> Iterator[None]:
    """Raise BudgetSpentError after so many seconds, compiling excluded, inside a running time limit.

    The limit's own clock stands still meanwhile. Does nothing where no limit runs, or little of it is left.
    """
    left = signal.getitimer(signal.ITIMER_REAL)[0] if _clock.limit else 0.0
    if left < 2 * seconds or threading.current_thread() is not threading.main_thread():
        yield
        return

    def spent(_signal: int, _frame: FrameType | None) -> None:
        raise BudgetSpentError(f"took longer than {seconds:g} s")

    previous = signal.signal(signal.SIGALRM, spent)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.signal(signal.SIGALRM, previous)
        signal.setitimer(signal.ITIMER_REAL, left, 1.0)


def _expired(_signal: int, _frame: FrameType | None) -> None:
    what, limit = ("compiling took", COMPILE_LIMIT) if _clock.compiling else ("still running after", _clock.limit)
    raise TimeLimitReachedError(f"{what} {limit:g} seconds" if _clock.compiling else f"{what} {limit:g} s")


@contextlib.contextmanager
def watch_compiling(report: Callable[[bool], None]) -> Iterator[None]:
    """Stop the clock while Triton compiles, and tell `report`. Uses Triton's public hooks and puts them back."""
    from triton import knobs

    before, after = knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook

    def begin(*args: Any, **kwargs: Any) -> Any:
        compiling(True, report)
        return before(*args, **kwargs) if before is not None else None

    def end(*args: Any, **kwargs: Any) -> Any:
        compiling(False, report)
        return after(*args, **kwargs) if after is not None else None

    knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook = begin, end
    try:
        yield
    finally:
        knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook = before, after


def compiling(on: bool, report: Callable[[bool], None]) -> None:
    """Swap the case's clock for the compiler's, or back. A compilation that fails never says that it ended."""
    if not _clock.limit or on == _clock.compiling:
        return
    _clock.compiling = on
    report(on)
    if on:
        _clock.remaining = max(signal.getitimer(signal.ITIMER_REAL)[0], 0.1)
        signal.setitimer(signal.ITIMER_REAL, COMPILE_LIMIT, 1.0)
    else:
        signal.setitimer(signal.ITIMER_REAL, _clock.remaining, 1.0)
