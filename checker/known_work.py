"""Work whose time is known, and the GPU in the hand of somebody who measures it: for lessons on measuring.

The times come from real kernels on the modelled clock, once; what is timed then repeats them on the clock alone, so
that thousands of calls cost nothing. Noise, where a session has some, comes on top.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from checker.vgpu.noise import Noise
from checker.vgpu.session import Session
from checker.vgpu.timeline import Duration

if TYPE_CHECKING:
    from checker.lab import Lab

__all__ = ["FLUSH", "LOADING", "Event", "Gpu", "NotReachedError", "Work", "measured"]

LOADING = 4_000.0
"""Host microseconds of a first call, in which a kernel is loaded."""
FLUSH = 58.0
"""Device microseconds of a flush of L2."""


@triton.jit  # type: ignore[untyped-decorator]  # Triton ships no types
def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
    """The copy of kata 01."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit  # type: ignore[untyped-decorator]  # Triton ships no types
def chain_kernel(x_ptr, y_ptr, n, repeats, BLOCK_SIZE: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
    """The chain of kata 08."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = x
    for _ in range(repeats):
        y = tl.fma(y, x, x)
    tl.store(y_ptr + offs, y, mask=mask)


class NotReachedError(RuntimeError):
    """An event was read before the device had set it."""


class Event:
    """A mark that the device sets when it gets there."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self.at_us: float | None = None

    def record(self) -> None:
        """Queues the mark. With the first one the measurement begins."""
        self.at_us = self._gpu.session.clock.now_us
        if isinstance(self._gpu.session.clock.noise, Noise):
            self._gpu.session.clock.noise.begin()

    def elapsed_us(self, later: Event) -> float:
        """Microseconds from this mark to `later`. NotReachedError before the host has waited for it."""
        if self.at_us is None or later.at_us is None:
            raise NotReachedError("an event was read that was never recorded")
        if later.at_us > self._gpu.session.clock.host_us:
            raise NotReachedError("an event was read that the device has not reached yet")
        return later.at_us - self.at_us


class Gpu:
    """What the learner's function gets in hand: the clocks and the L2 of one session."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.flushed = True

    def event(self) -> Event:
        """A mark, to be recorded once."""
        return Event(self)

    def synchronize(self) -> None:
        """The host's clock waits for the device's."""
        self.session.clock.synchronize()

    def flush_l2(self) -> None:
        """Launches the fill that empties L2."""
        self.flushed = True
        self.session.clock.flush_l2()

    def host_us(self) -> float:
        """The host's clock."""
        return self.session.clock.host_us


@dataclass(frozen=True)
class Work:
    """Something to be timed: copies, or chains of multiply-adds, of 2^power float32, `times` in a row.

    A call takes the host `host_us` more than its launches do.
    """

    power: int
    repeats: int = 0
    times: int = 1
    host_us: float = 0.0

    def __str__(self) -> str:
        what = f"a chain of {self.repeats} multiply-adds on" if self.repeats else "a copy of"
        several = f", {self.times} in a row" if self.times > 1 else ""
        slow = f", {self.host_us:.0f} us on the host" if self.host_us else ""
        return f"{what} 2^{self.power} float32{several}{slow}"

    def truth(self, lab: Lab, *, warm: bool = False) -> float:
        """Undisturbed device time of a call, with an L2 that was flushed, or that holds what the last call left."""
        return _known_times(lab.spec.key, self, lab)[warm]

    def function(self, lab: Lab, gpu: Gpu, *, loaded: bool) -> Callable[[], None]:
        """The function itself, which repeats the known times on the clock alone. Its first call loads, if need be."""

        def fn() -> None:
            nonlocal loaded
            clock = gpu.session.clock
            clock.host_us += self.host_us if loaded else self.host_us + LOADING
            us = self.truth(lab, warm=not gpu.flushed) / self.times
            loaded, gpu.flushed = True, False
            for _ in range(self.times):
                clock.launch(Duration(lambda: us))

        return fn


_KNOWN: dict[tuple[str, Work], tuple[float, float]] = {}


def _known_times(chip: str, work: Work, lab: Lab) -> tuple[float, float]:
    """The device times of a call with a cold L2 and with a warm one, from a launch of real kernels on the clock."""
    if (chip, work) not in _KNOWN:
        n = 1 << work.power
        tensors = [torch.empty(n) for _ in range(work.times + 1)]
        grid = (triton.cdiv(n, 1024),)
        with lab.stopwatch() as session:
            found = []
            for _ in range(2):
                launched = len(session.launches)
                for x, y in itertools.pairwise(tensors):
                    if work.repeats:
                        chain_kernel[grid](x, y, n, work.repeats, BLOCK_SIZE=1024)
                    else:
                        copy_kernel[grid](x, y, n, BLOCK_SIZE=1024)
                found.append(sum(float(launch.estimate.us) for launch in session.launches[launched:]))
        _KNOWN[chip, work] = found[0], found[1]
    return _KNOWN[chip, work]


@contextmanager
def measured(
    lab: Lab, work: Work, noise: Noise | None, *, loaded: bool = False
) -> Iterator[tuple[Callable[[], None], Gpu]]:
    """A function to be timed and the GPU to time it with, in a session of their own."""
    work.truth(lab)
    with lab.stopwatch(noise) as session:
        gpu = Gpu(session)
        yield work.function(lab, gpu, loaded=loaded), gpu
