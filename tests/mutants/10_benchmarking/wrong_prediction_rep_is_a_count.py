# expect: K651
# Takes rep for the number of rounds.
"""A timer one can trust: warmed up, on the device's clock, with a cold cache, and unmoved by what disturbs a round."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

# What one measurement may take in all, and what a chip needs under load until its clock has risen.
BUDGET_US = 200_000.0
WARM_UP_US = 25_000.0


class Event(Protocol):
    """A mark that the device sets when it gets there: behind all work that was launched before `record()`."""

    def record(self) -> None:
        """Queue the mark. The host goes on at once."""

    def elapsed_us(self, later: "Event") -> float:
        """Microseconds from this mark to `later`. RuntimeError if the device has not set both yet."""


class Gpu(Protocol):
    """A GPU as seen by somebody who measures."""

    def event(self) -> Event:
        """Make a mark, to be recorded once."""

    def synchronize(self) -> None:
        """Wait until the device has done all that was launched."""

    def flush_l2(self) -> None:
        """Launch a fill that leaves nothing useful in the L2 cache; it keeps the device busy for 58 µs."""

    def host_us(self) -> float:
        """Read the host's clock, in microseconds."""


class Timing(NamedTuple):
    """What `measure` found."""

    us: float  # the time that a call takes on the device, with a cold L2
    spread_us: float  # interquartile range: the middle half of all rounds lies this far apart
    rounds: int


def measure(fn: Callable[[], object], gpu: Gpu) -> Timing:
    """Time the device's work in one call of fn, in at most BUDGET_US of the clock.

    fn launches work and returns at once; its first call takes some milliseconds on the host, to load kernels.
    """
    # By time and not by count: for WARM_UP_US at least, however short a call is.
    fn()
    gpu.synchronize()
    begin, calls = gpu.host_us(), 0
    while gpu.host_us() - begin < WARM_UP_US:
        fn()
        gpu.synchronize()
        calls += 1
    call_us = (gpu.host_us() - begin) / calls

    # Half of the budget, a flush in each round: what disturbs some rounds may take its share of the other half.
    rounds = int(BUDGET_US / 2 / (call_us + 70))
    rounds = max(20, min(rounds, 200))

    marks = []
    for _ in range(rounds):
        start, end = gpu.event(), gpu.event()
        # Nobody waits between the flush and the end: while it runs, the host gets ahead, and the device never idles.
        gpu.flush_l2()
        start.record()
        fn()
        end.record()
        marks.append((start, end))
    gpu.synchronize()
    times = [start.elapsed_us(end) for start, end in marks]

    # A quarter of all rounds may go wrong without moving a quartile much, half of them without moving the median.
    times.sort()
    us = times[rounds // 2]
    spread_us = times[rounds * 3 // 4] - times[rounds // 4]

    return Timing(us, spread_us, len(times))


def verdict(timer: str) -> str | None:
    """Predict what a timer says of the device's time with a cold L2: "right" (within 5 %), "too low" or "too high".

    timer is one of these. All begin with 30 calls and a synchronize, unless they say otherwise; R is a round of
    `flush_l2(); start.record(); fn(); end.record()`, read after a synchronize.
    "host"       a copy of 1 GB: the host's clock before and after one call
    "waiting"    a copy of 32 KB: the same, with a synchronize before each reading
    "first"      a copy of 1 GB: no calls before; start.record(), one call, end.record()
    "queued"     a copy of 16 MB: start.record(), 100 calls, end.record(), divided by 100
    "streaming"  a copy of 1 GB: the same
    "idle"       a copy of 32 KB: median of 50 R with a synchronize between the flush and start.record()
    "mean"       a copy of 1 GB; one launch in 15 takes several times as long: the mean of 50 R
    "minimum"    a copy of 1 GB; every launch varies by 6 %: the minimum of 50 R
    "median"     a copy of 1 GB; both of these: the median of 50 R
    """
    labels: dict[str, str] = {
        # The host has launched after 6 µs, and goes on.
        "host": "too low",
        # Launching takes longer than the copy, and the device waits for it.
        "waiting": "too high",
        "idle": "too high",
        # Between the two marks the kernel is loaded.
        "first": "too high",
        # From the second call on L2 holds what is copied. What is larger than L2 is cold by itself.
        "queued": "too low",
        "streaming": "right",
        # Whatever is disturbed takes longer, and a mean takes it in. A minimum is the luck of one round.
        "mean": "too high",
        "minimum": "too low",
        "median": "right",
    }
    return labels.get(timer)


def rounds_of_do_bench(us: float, rep: int) -> float | None:
    """Predict how many rounds triton.testing.do_bench(fn, rep=rep) times of a fn that takes `us` with its flush.

    us: microseconds, 200 or more.
    """
    # rep is no number of rounds but a time, in milliseconds.
    return float(rep)
