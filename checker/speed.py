"""How fast a kernel is on one case, what that rests on, and whether it is fast enough.

On the virtual GPU the time is modelled from counted facts. On a real one the same facts are counted there first, and
the time is the device's own. One ratio binds a case: to the bound, to the least bytes, to the solution or to eager
PyTorch, in the same run; the others are shown. A time below the physical bound is refused, whoever measured it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from checker import limits, slowness
from checker.bounds import Bound, arithmetic_of, bound
from checker.cases import Case, case_seed
from checker.catalog import SpeedCase
from checker.cost import count
from checker.findings import Finding
from checker.loading import load_module
from checker.speed_findings import judge, notes
from checker.speed_result import MARGIN, SpeedResult
from checker.timed_cases import affordable, shrunk, timed_case
from checker.timing import Rounds, VirtualRounds, plain_rounds
from checker.vgpu import aten
from checker.vgpu.driver import VirtualGpu
from checker.vgpu.specs import GpuSpec

if TYPE_CHECKING:
    from checker.judge import Subject

__all__ = ["MARGIN", "SpeedResult", "check", "judge", "measure", "notes", "timed_case"]

# Seconds that the rounds of a case may take before it is shrunk.
_BUDGET = 35.0


def check(
    subject: Subject, speed: SpeedCase, seed: int, rounds: Rounds, emit: Callable[..., None]
) -> tuple[list[Finding], str]:
    """Times a case and judges it; the row and what must be known beside it go to `emit`.

    Returns the findings, and why nothing was judged (empty if it was).
    """
    result = measure(subject, speed, seed, rounds=rounds)
    emit(kind="performance", row=result.row())
    for note in notes(result):
        emit(kind="note", text=note)
    findings = judge(subject, result)
    return findings, "" if findings or result.decides else f"nothing is judged by times {result.basis}"


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
    try:
        with limits.budget(_BUDGET):
            virtual, seconds = _virtually(subject, case, own_seed, plain_rounds if on_cuda else rounds)
    except limits.BudgetSpentError:
        # Long programs, few of them: pytest-benchmark times a test once only, so this goes without it.
        case, endless = shrunk(case)
        virtual, seconds = _virtually(subject, case, own_seed, plain_rounds)
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


def _virtually(subject: Subject, case: Case, seed: int, rounds: Rounds) -> tuple[VirtualRounds, list[float]]:
    """The rounds on the virtual GPU, and the modelled seconds of each."""
    virtual = VirtualRounds(subject.entry, subject.file, subject.spec, case, seed, subject.vgpu)
    with virtual.running():
        return virtual, rounds(virtual.setup, virtual.run, virtual.timer)


def _doubt(chip: GpuSpec) -> str:
    return "" if chip.validated else ", not validated"


def _bound(spec: ModuleType, case: Case, chip: GpuSpec) -> Bound:
    least = spec.least_bytes(case)
    inputs = spec.timed_inputs(case, lambda shape, dtype: torch.empty(shape, dtype=dtype, device="meta"))
    read = sum(value.numel() * value.element_size() for value in inputs if isinstance(value, torch.Tensor))
    again = spec.again_bytes(case) if hasattr(spec, "again_bytes") else 0
    return bound(
        chip,
        least_bytes=least,
        written_bytes=max(0, least - read - again),
        flops=spec.flops(case),
        dtype=arithmetic_of(case),
        again_bytes=again,
    )


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
