"""Known times, and what can spoil their measurement: one trouble at a time, then all of them on six workloads."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import triton

from checker.cases import Case, Fault, Probe, Question
from checker.known_work import FLUSH, LOADING, Gpu, NotReachedError, Work, measured
from checker.vgpu.noise import Noise
from checker.vgpu.timeline import Duration

if TYPE_CHECKING:
    from checker.lab import Lab

CASES: list[Case] = []

BUDGET_US = 200_000.0
# How far a measurement may be from the truth.
TOLERANCE = 0.05
# For how long an idle chip's clock is slow, and what that makes of a time.
_RISING, _SLOW = 20_000.0, 1.4


def _try(module: ModuleType, lab: Lab, work: Work, noise: Noise | None = None, *, loaded: bool = True) -> Any:
    """What `measure` returns, or the fault that forbids to look at it."""
    with measured(lab, work, noise, loaded=loaded) as (fn, gpu):
        try:
            timing = module.measure(fn, gpu)
        except NotReachedError as error:
            return Fault(
                "K664", f"{error}", "Read the events after a synchronize: until then they lie in the device's future."
            )
        spent = max(gpu.host_us(), gpu.session.clock.now_us) - (0 if loaded else LOADING)
    try:
        us, spread, rounds = (float(value) for value in timing)
    except (TypeError, ValueError):
        return Fault("K664", f"measure() returned {timing!r}, not a Timing", "Return Timing(us, spread_us, rounds).")
    if spent > BUDGET_US:
        return Fault(
            "K663",
            f"{work}: the measurement took {spent / 1e3:.0f} ms of the clock, and {BUDGET_US / 1e3:.0f} ms are allowed",
            "See from the warm-up how long a call takes, and choose the number of rounds by it.",
        )
    return us, spread, rounds


def _far(us: float, truth: float) -> bool:
    return abs(us - truth) > TOLERANCE * truth


def _fault(work: Work, us: float, truth: float, what: str, advice: str) -> Fault:
    return Fault("K664", f"{work} takes {truth:.1f} us, and {us:.1f} us were measured: {what}", advice)


def _else(work: Work, us: float, truth: float) -> Fault | None:
    """What may be wrong wherever it shows; None if nothing is."""
    if not _far(us, truth):
        return None
    if not _far(us * 1e3, truth):
        return _fault(work, us, truth, "these are milliseconds", "Timing holds microseconds, as events and clocks do.")
    if not _far(us, truth + FLUSH):
        what = f"the flush, {FLUSH:.0f} us, lies between the marks"
        return _fault(work, us, truth, what, "Flush first, then record the first event.")
    advice = "Draw both clocks, the host's and the device's, and mark on each what you read."
    return _fault(work, us, truth, "it is neither the device's time nor a known mistake", advice)


def _idle(work: Work, us: float, truth: float) -> Fault:
    what = "the device had nothing to do when the round began, and waited for the host to launch"
    advice = "Let the flush run while the host launches: do not wait between it and the end of the round."
    return _fault(work, us, truth, what, advice)


def _of_the_device(module: ModuleType, lab: Lab) -> Fault | None:
    work = Work(27)
    found = _try(module, lab, work)
    if isinstance(found, Fault):
        return found
    us, truth = found[0], work.truth(lab)
    if 0.01 * truth < us < 0.2 * truth:
        what = "the host needs so long to launch it, and goes on while the device works"
        return _fault(work, us, truth, what, "Mark begin and end on the device, with events, and synchronize once.")
    return _else(work, us, truth)


def _launched_ahead(module: ModuleType, lab: Lab) -> Fault | None:
    work = Work(12, host_us=20.0)
    found = _try(module, lab, work)
    if isinstance(found, Fault):
        return found
    us, truth = found[0], work.truth(lab)
    if us > (1 + TOLERANCE) * truth:
        return _idle(work, us, truth)
    return _else(work, us, truth)


def _cold(module: ModuleType, lab: Lab) -> Fault | None:
    # As much as L2 holds, so that even from there it takes longer than the host needs to launch the next.
    work = Work(22)
    found = _try(module, lab, work)
    if isinstance(found, Fault):
        return found
    us, truth, warm = found[0], work.truth(lab), work.truth(lab, warm=True)
    if us < (1 - TOLERANCE) * truth:
        what = f"with its data left in L2 by the round before it takes {warm:.1f} us"
        return _fault(work, us, truth, what, "Flush L2 in each round, before its first event.")
    if us > (1 + TOLERANCE) * truth:
        return _idle(work, us, truth)
    return _else(work, us, truth)


def _warmed_up(module: ModuleType, lab: Lab) -> Fault | None:
    work = Work(24)
    found = _try(module, lab, work, Noise(ramp=_SLOW, ramp_us=_RISING), loaded=False)
    if isinstance(found, Fault):
        return found
    us, truth = found[0], work.truth(lab)
    if us > (1 + TOLERANCE) * truth:
        what = f"for its first {_RISING / 1e3:.0f} ms under load the chip runs at a low clock"
        advice = (
            "Warm up for a time and not for a number of calls: a hundred short ones are over in a few milliseconds."
        )
        return _fault(work, us, truth, what, advice)
    return _else(work, us, truth)


def _unmoved(seed: int, module: ModuleType, lab: Lab) -> Fault | None:
    work = Work(24)
    found = _try(module, lab, work, Noise(seed, outliers=0.1))
    if isinstance(found, Fault):
        return found
    us, truth = found[0], work.truth(lab)
    if us > (1 + TOLERANCE) * truth:
        what = "one round in ten was disturbed and took several times as long, and moved the result"
        return _fault(work, us, truth, what, "Take the middle of the sorted rounds; a mean is moved by a single one.")
    return _else(work, us, truth)


def _patient(module: ModuleType, lab: Lab) -> Fault | None:
    work = Work(24)
    # Two launches a round, the first flush not counted: eight rounds.
    found = _try(module, lab, work, Noise(burst=15))
    if isinstance(found, Fault):
        return found
    us, _, rounds = found
    truth = work.truth(lab)
    if us > (1 + TOLERANCE) * truth:
        which = f"the first 8 of {rounds:.0f}" if rounds > 8 else f"all {rounds:.0f}"
        what = f"{which} rounds fell into a moment at which others used the chip"
        return _fault(work, us, truth, what, "Make more rounds: the budget has room for dozens.")
    return _else(work, us, truth)


def _spread(seed: int, module: ModuleType, lab: Lab) -> Fault | None:
    work, jitter = Work(24), 0.04
    found = _try(module, lab, work, Noise(seed, jitter=jitter, outliers=0.05))
    if isinstance(found, Fault):
        return found
    us, known = found[0], work.truth(lab)
    if us < (1 - TOLERANCE) * known:
        what = "rounds differ in both directions, and the fastest of many was lucky"
        return _fault(work, us, known, what, "Take the middle of the sorted rounds.")
    # Of a normal distribution, the middle half is 1.35 sigma wide.
    spread, truth = found[1], 1.35 * jitter * known
    if 0.5 * truth < spread < 2 * truth:
        return None
    return Fault(
        "K664",
        f"{work}: the middle half of the rounds is {truth:.2f} us wide, and the spread is said to be {spread:.2f} us",
        "Sort the rounds; the spread is what lies between a quarter and three quarters of them.",
    )


def _all_at_once(work: Work, seed: int, module: ModuleType, lab: Lab) -> Fault | None:
    noise = Noise(seed, jitter=0.02, outliers=0.04, ramp=_SLOW, ramp_us=_RISING, burst=9)
    found = _try(module, lab, work, noise, loaded=False)
    if isinstance(found, Fault):
        return found
    us, truth = found[0], work.truth(lab)
    if not _far(us, truth):
        return None
    return _fault(
        work, us, truth, "it is more than 5 % off", "Everything above at once: see which of it comes through."
    )


_WORKLOADS = (
    Work(12),
    Work(21),
    Work(22, times=3),
    Work(25),
    Work(16, host_us=30.0),
    Work(24, repeats=2048),
)


def probes(draw: random.Random) -> list[Probe]:
    """One trouble after the other, then six workloads with all of them."""
    alone = [
        Probe("the device works on while the host goes on", _of_the_device),
        Probe("data that L2 could hold", _cold),
        Probe("a kernel shorter than its launch", _launched_ahead),
        Probe("a chip that was idle", _warmed_up),
        Probe("one round in ten is disturbed", partial(_unmoved, draw.randrange(1 << 30))),
        Probe("eight rounds in a row are disturbed", _patient),
        Probe("rounds that differ", partial(_spread, draw.randrange(1 << 30))),
    ]
    seeds = [draw.randrange(1 << 30) for _ in _WORKLOADS]
    return alone + [
        Probe(f"workload: {work}", partial(_all_at_once, work, seed))
        for work, seed in zip(_WORKLOADS, seeds, strict=True)
    ]


# The timers of the prediction. Each gets a fresh session, and returns microseconds.


def _rounds(fn: Callable[[], None], gpu: Gpu, *, wait: bool = False) -> list[float]:
    marks = []
    for _ in range(50):
        start, end = gpu.event(), gpu.event()
        gpu.flush_l2()
        if wait:
            gpu.synchronize()
        start.record()
        fn()
        end.record()
        marks.append((start, end))
    gpu.synchronize()
    return [start.elapsed_us(end) for start, end in marks]


def _between(fn: Callable[[], None], gpu: Gpu, calls: int) -> float:
    start, end = gpu.event(), gpu.event()
    start.record()
    for _ in range(calls):
        fn()
    end.record()
    gpu.synchronize()
    return start.elapsed_us(end) / calls


def _on_the_host(fn: Callable[[], None], gpu: Gpu, *, wait: bool = False) -> float:
    start = gpu.host_us()
    fn()
    if wait:
        gpu.synchronize()
    return gpu.host_us() - start


_LARGE, _FITTING, _SMALL = Work(27), Work(21), Work(12)
_OUTLIERS, _JITTER = 1 / 15, 0.06

_TIMERS: dict[str, tuple[Work, Callable[[int], Noise | None], Callable[..., float]]] = {
    "host": (_LARGE, lambda seed: None, _on_the_host),
    "waiting": (_SMALL, lambda seed: None, partial(_on_the_host, wait=True)),
    "first": (_LARGE, lambda seed: None, partial(_between, calls=1)),
    "queued": (_FITTING, lambda seed: None, partial(_between, calls=100)),
    "streaming": (_LARGE, lambda seed: None, partial(_between, calls=100)),
    "idle": (_SMALL, lambda seed: None, lambda fn, gpu: statistics.median(_rounds(fn, gpu, wait=True))),
    "mean": (_LARGE, lambda seed: Noise(seed, outliers=_OUTLIERS), lambda fn, gpu: statistics.mean(_rounds(fn, gpu))),
    "minimum": (_LARGE, lambda seed: Noise(seed, jitter=_JITTER), lambda fn, gpu: min(_rounds(fn, gpu))),
    "median": (
        _LARGE,
        lambda seed: Noise(seed, outliers=_OUTLIERS, jitter=_JITTER),
        lambda fn, gpu: statistics.median(_rounds(fn, gpu)),
    ),
}


def questions(draw: random.Random) -> list[Question]:
    """Five of nine timers, and the rounds that do_bench makes of a time."""
    asked = [
        Question("verdict", (name,), partial(_verdict, name), f"What does the timer {name!r} say?")
        for name in draw.sample(sorted(_TIMERS), 5)
    ]
    for _ in range(2):
        us, rep = float(draw.randrange(300, 3000)), draw.randrange(50, 200)
        asked.append(
            Question(
                "rounds_of_do_bench",
                (us, rep),
                partial(_do_bench, us, rep),
                "How many rounds does do_bench time?",
                tolerance=0.1,
            )
        )
    return asked


def _verdict(name: str, lab: Lab) -> str:
    """Runs the timer eleven times on a known time; noise may decide one of them, not most."""
    work, noise, timer = _TIMERS[name]
    truth = work.truth(lab)
    found = []
    for seed in range(11 if noise(0) else 1):
        with measured(lab, work, noise(seed)) as (fn, gpu):
            for _ in range(0 if name == "first" else 30):
                fn()
            gpu.synchronize()
            found.append(timer(fn, gpu))
    us = statistics.median(found)
    if not _far(us, truth):
        return "right"
    return "too low" if us < truth else "too high"


def _do_bench(us: float, rep: int, lab: Lab) -> float:
    """Counts the flushes of do_bench: five for its estimate, one for each round."""
    with lab.stopwatch() as session:
        rounds = triton.testing.do_bench(
            lambda: session.clock.launch(Duration(lambda: us - FLUSH)), warmup=1, rep=rep, return_mode="all"
        )
    return float(len(rounds))
