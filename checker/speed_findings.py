"""What a timed case means: nothing, or one finding with its cause, and what a reader must know beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from checker.findings import Finding
from checker.speed_result import MARGIN, SpeedResult

if TYPE_CHECKING:
    from checker.judge import Subject

__all__ = ["judge", "notes"]

# A measured time may fall short of the physical bound by so much before it is impossible: clocks have a resolution.
_SLACK = 0.97

# Diagnoses of a kernel that moves too many bytes.
_OF_BYTES = frozenset({"K801", "K802"})

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
    line = main.line if main is not None else entry_line
    causes = result.causes
    if result.threshold.to == "bytes":
        # Bytes are what is judged, whether or not they cost time here.
        causes = tuple(sorted(causes, key=lambda cause: cause.code not in _OF_BYTES))
    if result.threshold.to == "bytes" and not any(cause.code in _OF_BYTES for cause in causes):
        advice = "Keep what was loaded: read each input as often as you must, and write nothing but the result."
        return [Finding("K801", _gap(result), advice, file, line, case=result.case, launch=launch, details=facts)]
    if not causes:
        message = f"{_gap(result)}; what limits it is {result.counted.limiter}"
        advice = "Change one thing at a time, block size and number of warps first, and look what the time does."
        return [Finding("K810", message, advice, file, line, case=result.case, launch=launch, details=facts)]
    first, *others = causes
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
