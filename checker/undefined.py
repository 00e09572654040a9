"""Asks whether a result depends on what masked-off lanes and gaps of a view hold, by letting them hold other values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from checker import memory_findings
from checker.attempt import Run, Subject, call, outputs_of, place
from checker.cases import Case
from checker.findings import Finding
from checker.values import compare_results, value_finding

__all__ = ["undefined_lanes", "unsteady"]

# What undefined lanes read in the runs after the first, whose poison is NaN: a maximum ignores NaN, a sum of
# comparisons ignores zero, and so on. A right kernel gives the same bytes for all of them.
_OTHER_POISONS = ("zero", "largest", "smallest")


def undefined_lanes(subject: Subject, run: Run, pristine: tuple[Any, ...], case: Case, seed: int) -> Finding | None:
    """Runs the case again with other values in undefined lanes; a right result does not change by a bit."""
    before = [_bytes(output) for output in outputs_of(run.result)]

    def changes(**options: Any) -> list[torch.Tensor] | None:
        """Which elements of each output come out differently; None where the outputs cannot be compared at all."""
        inputs = tuple(subject.spec.make_inputs(case, seed=seed, device=torch.device("cpu")))
        again = call(subject, inputs, case.id, **options)
        after = [] if again.findings else [_bytes(output) for output in outputs_of(again.result)]
        if [tensor.shape for tensor in after] != [tensor.shape for tensor in before]:
            return None
        return [(a != b).any(-1) for a, b in zip(after, before, strict=True)]

    def differs(**options: Any) -> bool:
        changed = changes(**options)
        return changed is None or any(bool(which.any()) for which in changed)

    poison = next((kind for kind in _OTHER_POISONS if differs(poison=kind)), None)
    if poison is None:
        return None
    if differs(poison="nan"):
        return unsteady(subject, case.id)
    found = _culprit(run, case, lambda where: differs(poison=poison, poison_only=frozenset([where])))
    if found is not None and found.code == "K407":
        return _wrong_anyway(subject, run, pristine, case, [changes(poison=kind) for kind in _OTHER_POISONS]) or found
    return found


def unsteady(subject: Subject, case: str) -> Finding:
    """K605: the same call gives another result."""
    return Finding(
        "K605",
        "two calls on the same inputs gave different results",
        "Look for what outlives a call: a buffer that is not reset, a counter, an output that is kept.",
        case=case,
        **place(subject),
    )


def _culprit(run: Run, case: Case, reaches: Callable[[tuple[object, ...]], bool]) -> Finding | None:
    """The load whose undefined lanes reach the result: found by poisoning one load, and one kind of lane, at a time."""
    suspects = []
    for launch in run.launches:
        gaps = {v.where for v in launch.violations if v.kind == "load_gap"}
        for access in launch.accesses:
            if access.kind == "load" and access.where:
                suspects += [(launch, access, "gap")] * (access.where in gaps)
                suspects += [(launch, access, "masked")] * (not access.has_other)
    for launch, access, lanes in suspects:
        where = access.where
        if len(suspects) == 1 or reaches((where.file, where.line, where.column, lanes)):
            return memory_findings.undefined_lanes(launch, where, access.argument, lanes == "gap", case.id)
    if not suspects:
        return None
    launch, access, lanes = suspects[0]
    return memory_findings.undefined_lanes(launch, access.where, access.argument, lanes == "gap", case.id)


def _wrong_anyway(
    subject: Subject, run: Run, pristine: tuple[Any, ...], case: Case, runs: list[list[torch.Tensor] | None]
) -> Finding | None:
    """The finding for elements that are wrong whatever masked-off lanes hold: that is the graver mistake."""
    outputs, expected = outputs_of(run.result), outputs_of(subject.spec.reference(*pristine))
    mended = []
    for i, (output, want) in enumerate(zip(outputs, expected, strict=True)):
        touched = torch.zeros(output.numel(), dtype=torch.bool)
        for changed in runs:
            touched |= changed[i] if changed is not None else torch.ones_like(touched)
        mended.append(torch.where(touched.reshape(output.shape), want.to(output.dtype), output))
    wrong = compare_results(subject, mended, pristine)
    if wrong is None or not wrong[1].gross:
        return None
    return value_finding(subject, run, pristine, case, *wrong)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of each element, as (elements, bytes)."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).reshape(flat.numel(), flat.element_size()).clone()
