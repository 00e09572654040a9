"""How fast a kernel is on one case, what that rests on, and whether it is fast enough.

On the virtual GPU the time is modelled from counted facts. On a real one the same facts are counted there first, and
the time is the device's own. One ratio binds a case: to the bound, to the least bytes, to the solution or to eager
PyTorch, in the same run; the others are shown. A time below the physical bound is refused, whoever measured it.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from checker import slowness
from checker.bounds import Bound, bound
from checker.cases import Case, case_seed
from checker.catalog import SpeedCase
from checker.cost import Counted, count
from checker.findings import Finding
from checker.loading import load_module
from checker.timed_cases import affordable, timed_case
from checker.timing import Rounds, VirtualRounds, Wrong, plain_rounds
from checker.vgpu import aten
from checker.vgpu.driver import VirtualGpu
from checker.vgpu.specs import GpuSpec

if TYPE_CHECKING:
    from checker.judge import Subject

__all__ = ["MARGIN", "SpeedResult", "judge", "measure", "notes", "timed_case"]

MARGIN = 0.05
"""A ratio this near its threshold is "close": another driver, Triton or chip may decide otherwise."""

# A measured time may fall short of the physical bound by so much before it is impossible: clocks have a resolution.
_SLACK = 0.97


@dataclass(frozen=True, slots=True)
class SpeedResult:
    """One case, timed. Times in microseconds; `low` and `high` are the fastest and the slowest round.

    `ratio` is what the threshold asks for, None if it could not be formed; `decides` whether the threshold is applied:
    not on a chip whose model was not validated, nor against PyTorch where it was not measured.
    """

    case: str
    us: float
    low: float
    high: float
    rounds: int
    basis: str
    measured: bool
    bound: Bound
    least_bytes: int
    counted: Counted
    ratio: float | None
    threshold: SpeedCase
    decides: bool
    reference_us: float | None = None
    torch_us: float | None = None
    torch_measured: bool = False
    wrong: Wrong | None = None
    verified: int = 0
    causes: tuple[slowness.Cause, ...] = ()
    note: str = ""

    @property
    def share_of_bound(self) -> float:
        """The bound over the time: 1 is perfect."""
        return self.bound.us / self.us

    @property
    def enough(self) -> bool:
        """Whether the threshold is met, or does not apply."""
        return not self.decides or self.ratio is None or self.ratio >= self.threshold.at_least

    @property
    def close(self) -> bool:
        """Whether the ratio is within the margin around its threshold."""
        return self.ratio is not None and abs(self.ratio / self.threshold.at_least - 1) <= MARGIN

    def row(self) -> dict[str, Any]:
        """The figures as a JSON-able record, for the report."""
        counted, worst = self.counted, self.counted.worst
        return {
            "case": self.case,
            "us": _short(self.us),
            "low": _short(self.low),
            "high": _short(self.high),
            "rounds": self.rounds,
            "basis": self.basis,
            "measured": self.measured,
            "bound_us": _short(self.bound.us),
            "bound_by": self.bound.by,
            "share_of_bound": _short(self.share_of_bound),
            "least_bytes": self.least_bytes,
            "bytes": round(counted.bytes),
            "dram_bytes": round(counted.dram_bytes),
            "limiter": counted.limiter,
            "worst": None
            if worst is None
            else {
                "kind": worst.kind,
                "argument": worst.argument,
                "file": worst.file,
                "line": worst.line,
                "column": worst.column,
                "ratio": _short(worst.ratio),
            },
            "launches": counted.launches,
            "pytorch_operations": [name for name, _ in counted.operations],
            "registers": counted.registers,
            "spilled_bytes": counted.spilled_bytes,
            "shared_bytes": counted.shared_bytes,
            "occupancy": _short(counted.occupancy),
            "to": self.threshold.to,
            "at_least": self.threshold.at_least,
            "ratio": None if self.ratio is None else _short(self.ratio),
            "enough": self.enough,
            "close": self.close,
            "decides": self.decides,
            "reference_us": None if self.reference_us is None else _short(self.reference_us),
            "torch_us": None if self.torch_us is None else _short(self.torch_us),
            "torch_measured": self.torch_measured,
            "verified": self.verified,
            "note": self.note,
        }


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def measure(subject: Subject, speed: SpeedCase, seed: int, *, rounds: Rounds = plain_rounds) -> SpeedResult:
    """Times the subject on a case, in `rounds` (those of pytest-benchmark, or three plain ones)."""
    on_cuda = subject.device == "cuda"
    gpu = subject.vgpu
    chip, memory = gpu.spec, gpu.spec.memory_bytes
    if on_cuda:
        from checker import realgpu

        chip, memory = realgpu.chip(gpu.spec), realgpu.free_bytes()
    case, note = timed_case(speed, subject.spec, memory)
    own_seed = case_seed(seed, speed.id)
    case, endless = affordable(subject.entry, subject.file, subject.spec, case, own_seed, gpu)
    virtual = VirtualRounds(subject.entry, subject.file, subject.spec, case, own_seed, gpu)
    with virtual.running():
        seconds = (plain_rounds if on_cuda else rounds)(virtual.setup, virtual.run, virtual.timer)
    counted, wrong, verified = count(virtual.first, gpu.spec), virtual.wrong, virtual.verified
    if on_cuda and wrong is None:
        real = realgpu.RealRounds(subject.entry, subject.spec, case, own_seed)
        with real.running():
            seconds = rounds(real.setup, real.run, real.timer)
        wrong, verified = real.wrong, real.verified
    # A call that launches nothing takes no time at all; a nanosecond keeps the ratios finite.
    times = sorted(max(second * 1e6, 1e-3) for second in seconds)
    result = SpeedResult(
        case=speed.id,
        us=statistics.median(times),
        low=times[0],
        high=times[-1],
        rounds=len(times),
        basis=f"measured on {chip.name}" if on_cuda else f"modelled for {chip.name}" + _doubt(chip),
        measured=on_cuda,
        bound=_bound(subject.spec, case, chip),
        least_bytes=subject.spec.least_bytes(case),
        counted=counted,
        ratio=None,
        threshold=speed,
        decides=on_cuda or chip.validated,
        wrong=wrong,
        verified=verified,
        note=note or endless,
    )
    result = _with_ratio(_with_peers(result, subject, case, own_seed, gpu))
    if result.enough:
        return result
    half = getattr(case, "dtype", None) in (torch.float16, torch.bfloat16)
    found = slowness.causes(
        counted, gpu.spec, least_bytes=result.least_bytes, flops=subject.spec.flops(case), half=half
    )
    return replace(result, causes=tuple(found))


def _doubt(chip: GpuSpec) -> str:
    return "" if chip.validated else ", not validated"


def _bound(spec: ModuleType, case: Case, chip: GpuSpec) -> Bound:
    least = spec.least_bytes(case)
    inputs = spec.timed_inputs(case, lambda shape, dtype: torch.empty(shape, dtype=dtype, device="meta"))
    read = sum(value.numel() * value.element_size() for value in inputs if isinstance(value, torch.Tensor))
    dtype = str(getattr(case, "dtype", "")).removeprefix("torch.")
    return bound(chip, least_bytes=least, written_bytes=max(0, least - read), flops=spec.flops(case), dtype=dtype)


def _with_peers(result: SpeedResult, subject: Subject, case: Case, seed: int, gpu: VirtualGpu) -> SpeedResult:
    """The times of the solution and of eager PyTorch, where the threshold asks for them or they cost nothing."""
    threshold = result.threshold
    reference: float | None = None
    if threshold.to == "reference":
        reference = _reference_us(subject, case, seed, gpu, on_cuda=result.measured)
    name = threshold.against or "eager"
    eager = getattr(subject.spec, name, None) or getattr(subject.spec, "torch_op", None)
    if eager is None:
        return replace(result, reference_us=reference)
    if result.measured:
        from checker import realgpu

        with realgpu.RealRounds(eager, subject.spec, case, seed, verify=False).running() as real:
            seconds = plain_rounds(real.setup, real.run, real.timer, 5)
        return replace(result, reference_us=reference, torch_us=statistics.median(seconds) * 1e6, torch_measured=True)
    inputs = subject.spec.timed_inputs(case, lambda shape, dtype: torch.empty(shape, dtype=dtype, device="meta"))
    found = aten.cost(eager, *inputs, spec=gpu.spec)
    return replace(result, reference_us=reference, torch_us=found.us, torch_measured=found.measured)


def _reference_us(subject: Subject, case: Case, seed: int, gpu: VirtualGpu, *, on_cuda: bool) -> float:
    folder = Path(str(subject.spec.__file__)).resolve().parent
    solution = folder.parent.parent / "solutions" / f"{folder.name}.py"
    entry = getattr(load_module(solution), subject.entry.__name__)
    if on_cuda:
        from checker import realgpu

        with realgpu.RealRounds(entry, subject.spec, case, seed, verify=False).running() as real:
            return statistics.median(plain_rounds(real.setup, real.run, real.timer, 5)) * 1e6
    with VirtualRounds(entry, solution, subject.spec, case, seed, gpu).running() as virtual:
        return plain_rounds(virtual.setup, virtual.run, virtual.timer, 1)[0] * 1e6


def _with_ratio(result: SpeedResult) -> SpeedResult:
    threshold = result.threshold
    if threshold.to == "bytes":
        # Bytes are counted, not modelled: they decide on every chip.
        asked = result.counted.bytes
        return replace(result, ratio=result.least_bytes / asked if asked else None, decides=True)
    if threshold.to == "bound":
        return replace(result, ratio=result.share_of_bound)
    if threshold.to == "reference":
        return replace(result, ratio=None if result.reference_us is None else result.reference_us / result.us)
    if result.torch_us is None or not result.torch_measured:
        return replace(result, ratio=None, decides=False)
    return replace(result, ratio=result.torch_us / result.us)


_AGAINST = {
    "bound": "the bound, {us:.0f} us",
    "reference": "the solution, {us:.0f} us",
    "torch": "PyTorch, {us:.0f} us",
}


def judge(subject: Subject, result: SpeedResult) -> list[Finding]:
    """The finding of a timed case: wrong at this size, impossibly fast, or too slow and why. None if it is well."""
    file = str(subject.file)
    code = getattr(subject.entry, "__code__", None)
    entry_line = code.co_firstlineno if code else None
    if result.wrong is not None:
        wrong = result.wrong
        message = (
            f"at the size that is timed, element {wrong.index} is {wrong.actual:.6g}; it must be {wrong.expected:.6g}"
        )
        advice = "Look for what depends on the size: another path in the wrapper, an offset, a loop that ends early."
        return [Finding("K601", message, advice, file, entry_line, case=result.case, stage_override="speed")]
    facts = (f"{result.us:.1f} us, {result.basis}; {_bar(result)}",)
    if result.us < _SLACK * result.bound.physical_us:
        message = (
            f"{result.us:.1f} us is less than the {result.bound.physical_us:.1f} us that the chip needs for the "
            f"{'bytes' if result.bound.by == 'memory' else 'arithmetic'} of this problem"
        )
        advice = "See that each call does all of its work: nothing kept from before, nothing left out."
        return [Finding("K811", message, advice, file, entry_line, case=result.case, details=facts)]
    if result.enough:
        return []
    main = result.counted.main
    launch = str(main) if main is not None else None
    if not result.causes:
        message = f"{_gap(result)}; what limits it is {result.counted.limiter}"
        advice = "Change one thing at a time, block size and number of warps first, and look what the time does."
        line = main.line if main is not None else entry_line
        return [Finding("K810", message, advice, file, line, case=result.case, launch=launch, details=facts)]
    first, *others = result.causes
    also = tuple(f"also: {cause.message} ({cause.code}; about {cause.us:.0f} us without)" for cause in others[:2])
    message = f"{_gap(result)}. {first.message[0].upper()}{first.message[1:]}"
    if first.us > 0:
        message += f"; without that it would take about {first.us:.0f} us"
    return [
        Finding(
            first.code, message, first.advice, file, first.line or (main.line if main else entry_line), first.column,
            case=result.case, launch=launch, details=(*facts, *also),
        )
    ]  # fmt: skip


def _gap(result: SpeedResult) -> str:
    if result.threshold.to == "bytes":
        return f"{result.counted.bytes / 1e6:.0f} MB are asked for, and {result.least_bytes / 1e6:.0f} MB would do"
    against = {"bound": result.bound.us, "reference": result.reference_us, "torch": result.torch_us}
    other = _AGAINST[result.threshold.to].format(us=against[result.threshold.to] or 0.0)
    return f"the call takes {result.us:.0f} us ({other})"


def _bar(result: SpeedResult) -> str:
    """The threshold in words."""
    if result.ratio is None:
        return "no threshold applies"
    close = f", which is close (within {MARGIN:.0%})" if result.close else ""
    names = {"bound": "the bound", "bytes": "the least bytes", "reference": "the solution", "torch": "PyTorch"}
    return f"{result.ratio:.2f} of {names[result.threshold.to]}, and {result.threshold.at_least:.2f} is needed{close}"


def notes(result: SpeedResult) -> list[str]:
    """What a reader must know beside the verdict."""
    found = [result.note] if result.note else []
    if not result.decides and result.threshold.to == "torch" and not result.torch_measured:
        found.append(f"{result.case}: PyTorch was not measured here, so nothing is held against it")
    elif not result.decides:
        found.append(f"{result.case}: times for this chip are not validated and decide nothing")
    if result.close and result.ratio is not None:
        found.append(
            f"{result.case}: {result.ratio:.2f} is close to the threshold of {result.threshold.at_least:.2f}; another "
            "driver or another Triton may decide otherwise"
        )
    return found
