"""Asks whether a result is the expected one, and says of a wrong value what it is a sign of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from checker import numerics
from checker.attempt import Run, Subject, outputs_of, which_result
from checker.cases import Case
from checker.findings import Finding
from checker.numerics import Mismatch

__all__ = ["compare_results", "value_finding", "wrong_values"]


def wrong_values(subject: Subject, run: Run, pristine: tuple[Any, ...], case: Case) -> Finding | None:
    """Asks whether the result is the expected one, and as exact as it must be."""
    attempts = [pristine]
    if getattr(subject.spec, "DOT_PRECISION", None) == "tf32" and _has_float32(pristine):
        # The chip multiplies float32 tiles with truncated operands; a kernel that asks for more is right as well.
        attempts.append(tuple(_truncated(value) for value in pristine))
    wrong: tuple[int, Mismatch] | None = None
    for arguments in attempts:
        wrong = compare_results(subject, outputs_of(run.result), arguments)
        if wrong is None:
            return None
    assert wrong is not None
    return value_finding(subject, run, pristine, case, *wrong)


def compare_results(subject: Subject, outputs: list[Any], arguments: tuple[Any, ...]) -> tuple[int, Mismatch] | None:
    """The first output that is wrong, by number, and where; None if all are right."""
    expected = outputs_of(subject.spec.reference(*arguments))
    torch_op = getattr(subject.spec, "torch_op", None)
    yardsticks: Sequence[Any] = outputs_of(torch_op(*arguments)) if torch_op else [None] * len(expected)
    rows = getattr(subject.spec, "GROUP", "all") == "row"
    units = getattr(subject.spec, "UNITS", 1.0)
    for number, (output, want, own) in enumerate(zip(outputs, expected, yardsticks, strict=True)):
        mismatch = numerics.compare(output, want, own, rows=rows, units=units)
        if mismatch is not None:
            return number, mismatch
    return None


def _has_float32(values: tuple[Any, ...]) -> bool:
    return any(isinstance(value, torch.Tensor) and value.dtype == torch.float32 for value in values)


def _truncated(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dtype == torch.float32 and value.dim() > 1:
        return (value.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)
    return value


def value_finding(
    subject: Subject, run: Run, pristine: tuple[Any, ...], case: Case, number: int, mismatch: Mismatch
) -> Finding:
    """The finding for output `number`, which is wrong as `mismatch` says."""
    code, advice = _diagnose(case, pristine, mismatch)
    where = mismatch.index[0] if len(mismatch.index) == 1 else mismatch.index
    share = f"{mismatch.count} of {mismatch.total} elements"
    if code == "K701":
        message = (
            f"the result errs by {mismatch.error:.3g} at index {where}, where {mismatch.allowed:.3g} is allowed "
            f"(twice PyTorch's own error, or one unit in the last place); {share} are beyond it"
        )
    else:
        message = f"element {where} is {mismatch.actual:.6g}; it must be {mismatch.expected:.6g} ({share} are wrong)"
    details = (mismatch.pattern,) if mismatch.pattern else ()
    launch, place = _last_store(run, outputs_of(run.result)[number])
    return Finding(
        code,
        which_result(run, number) + message,
        advice,
        file=place.file if place else str(subject.file),
        line=place.line if place else None,
        column=place.column if place else None,
        case=case.id,
        launch=str(launch) if launch else None,
        details=details,
    )


def _last_store(run: Run, output: Any) -> tuple[Any, Any]:
    """The launch that stored into this output last, and where; the last store of all where that is not known."""
    stores = [(launch, a) for launch in run.launches for a in launch.accesses if a.kind != "load"]
    storage = output.untyped_storage().data_ptr()
    own = [
        (launch, access)
        for launch, access in stores
        if isinstance(tensor := launch.tensors.get(access.argument), torch.Tensor)
        and tensor.untyped_storage().data_ptr() == storage
    ]
    launch, access = (own or stores or [(run.launches[-1] if run.launches else None, None)])[-1]
    return launch, access.where if access else None


def _diagnose(case: Case, pristine: tuple[Any, ...], mismatch: Mismatch) -> tuple[str, str]:
    """Which code a wrong value gets, and where to look: it depends on what the data was meant to break."""
    if not mismatch.gross:
        return "K701", "Accumulate in float32, and round once, when storing."
    if case.stage == "values":
        advice = "Compare by hand what one program loads, computes and stores; the smallest failing case is quickest."
        return "K601", advice
    tensors = [v.double() for v in pristine if isinstance(v, torch.Tensor) and v.is_floating_point() and v.numel()]
    scalars = [v for v in pristine if isinstance(v, float)]
    if any(not torch.isfinite(tensor).all() for tensor in tensors) or not all(map(math.isfinite, scalars)):
        return "K703", (
            "Follow a NaN or an infinity through each step: what do max, exp and a difference make of it? "
            "Where a lane was not chosen, pick with tl.where, do not multiply by 0: 0 times either is NaN."
        )
    largest = max((float(tensor.abs().max()) for tensor in tensors), default=0.0)
    if 0 < largest < 1e-3:
        return "K704", "Look for a constant that is added or compared: it may swallow tiny data."
    if mismatch.kind != "value" or largest > 10:
        advice = "Find what leaves the range of its dtype: an exponential, a square, a sum or a scalar in fp16."
        if mismatch.kind == "nan":
            advice += " A NaN may also be 0 / 0, or 0 times a lane that was not chosen: pick with tl.where."
        return "K702", advice
    # The same kernel is right on plain data (the values stage comes first): what it lacks is precision.
    return "K701", (
        "Accumulate in float32, and round once, when storing. An error as large as this may also be terms left out."
    )
