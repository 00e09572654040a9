"""Judges one case of one kata: runs the learner's function on the virtual GPU and says what is wrong with it.

The order is that of the craft: does it launch, is every access legal, is everything written, does the result
depend on undefined lanes, and only then whether the values are right. The first thing found is the answer: what
follows from it is not reported again.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch

from checker import fairness, memory_findings
from checker.attempt import Run, Subject, argument_names, call, copied, open_gpu, outputs_of, place, which_result
from checker.cases import Case, Probe, Refusal, case_seed
from checker.diagnose import from_exception
from checker.findings import Finding
from checker.lab import Lab
from checker.limits import LimitReachedError
from checker.predictions import Predictions, check_predictions
from checker.undefined import undefined_lanes, unsteady
from checker.values import wrong_values
from checker.vgpu.errors import VirtualGpuError

__all__ = [
    "Predictions", "Run", "Subject", "briefly", "call", "check_case", "check_predictions", "check_probe",
    "check_refusal", "judge_authors", "open_gpu", "outputs_of", "settle", "unsteady", "wrong_values",
]  # fmt: skip


def check_case(subject: Subject, case: Case, seed: int) -> list[Finding]:
    """Every finding of one case: none, or the one root cause. Limits that strike while it runs pass through.

    Compiles no further than its values need; `settle` makes up for it.
    """
    with briefly(subject):
        return _check_case(subject, case, seed)


def briefly(subject: Subject) -> AbstractContextManager[None]:
    """Inside the block nothing is compiled further than its values need, unless the file looks at what was compiled."""
    return subject.vgpu.brevity.briefly() if subject.brief else nullcontext()


def settle(subject: Subject) -> None:
    """Compile to the end what may need more of the chip than what the cases compiled so; raises what is refused."""
    subject.vgpu.brevity.settle()


def _check_case(subject: Subject, case: Case, seed: int) -> list[Finding]:
    own_seed = case_seed(seed, case.id)
    device = torch.device("cpu")
    inputs = tuple(subject.spec.make_inputs(case, seed=own_seed, device=device))
    pristine = tuple(copied(value) for value in inputs)
    run = call(subject, inputs, case.id)
    if run.findings:
        return run.findings
    found = _structure(subject, run, case) or _memory(subject, run, case) or _shape(subject, run, pristine, case)
    if found is None and any(launch.poisoned_lanes for launch in run.launches):
        found = undefined_lanes(subject, run, pristine, case, own_seed)
    if found is None:
        found = wrong_values(subject, run, pristine, case)
    if found is None:
        judge_authors(subject, run)
    if run.evidence is not None:
        subject.results.remember(run.evidence)
    return [found] if found else []


def judge_authors(subject: Subject, run: Run) -> None:
    """Notes whose work a right result is; the stage "fairness" tells it."""
    if run.evidence is None:
        return
    if fairness.reads_the_unknown(run.evidence):
        subject.suspects.add(run.evidence.case)
    unfair = fairness.examine(run.evidence, subject.results)
    if unfair is None:
        subject.storers |= fairness.storers(run.evidence)
        subject.notes += [note for note in fairness.copies(run.evidence) if note not in subject.notes]
    elif unfair.root() not in {finding.root() for finding in subject.unfair}:
        subject.unfair.append(unfair)


def _structure(subject: Subject, run: Run, case: Case) -> Finding | None:
    """Asks whether it launched anything and returned tensors."""
    name = getattr(subject.entry, "__name__", "the entry point")
    returned = "\n".join(type(output).__name__ for output in outputs_of(run.result))
    if not all(type(output) is torch.Tensor for output in outputs_of(run.result)):
        return Finding(
            "K604",
            f"{name}() returned {returned or 'nothing'}, not a tensor",
            "End the wrapper with `return` and the output tensor.",
            case=case.id,
            **place(subject),
        )
    if not run.launches and any(output.numel() for output in outputs_of(run.result)):
        if run.evidence is not None and run.evidence.vacuous:
            return None
        found = fairness.unlaunched(run.evidence, subject.results) if run.evidence is not None else None
        if found is not None:
            return replace(found, stage_override="compile")
        return Finding(
            "K307",
            f"{name}() returned without launching a kernel",
            "Launch your kernel in the wrapper: kernel[grid](...).",
            case=case.id,
            **place(subject),
        )
    return None


def _memory(subject: Subject, run: Run, case: Case) -> Finding | None:
    """Illegal accesses, stores into inputs, elements never written."""
    found = memory_findings.first_violation(run.launches, str(subject.file), case.id)
    if found:
        return found
    inout = set(getattr(subject.spec, "INOUT", ()))
    names = argument_names(subject.entry)
    storages = {
        value.untyped_storage().data_ptr(): names[i] if i < len(names) else f"#{i}"
        for i, value in enumerate(run.inputs)
        if isinstance(value, torch.Tensor) and value.numel()
    }
    allowed = {
        value.untyped_storage().data_ptr()
        for i, value in enumerate(run.inputs)
        if i in inout and isinstance(value, torch.Tensor)
    }
    found = memory_findings.input_stored(run.launches, storages, allowed, case.id)
    if found:
        return found
    if run.evidence is not None:
        found = fairness.inputs_changed(run.evidence)
        if found:
            return found
        found = subject.results.returned_again(run.evidence)
        if found:
            return replace(found, stage_override="memory")
    for number, output in enumerate(outputs_of(run.result)):
        missing = run.session.shadows.unwritten(output)
        unseen = fairness.written_unseen(run.evidence, output) if run.evidence is not None else None
        if missing is not None and unseen is not None:
            missing = missing[~unseen[missing]]
        if missing is not None and missing.size:
            found = memory_findings.unwritten(
                missing.tolist(), output.numel(), tuple(output.shape), run.launches, output, str(subject.file), case.id
            )
            line = found.line or place(subject)["line"]
            return replace(found, message=which_result(run, number) + found.message, line=line)
    return None


def _shape(subject: Subject, run: Run, pristine: tuple[Any, ...], case: Case) -> Finding | None:
    """Shape, dtype and aliasing of what was returned."""
    found = _another_tensor(subject, run, case)
    if found:
        return found
    expected = outputs_of(subject.spec.reference(*pristine))
    got = outputs_of(run.result)
    if len(got) != len(expected):
        return Finding(
            "K604",
            f"{len(got)} tensors were returned where {len(expected)} are expected",
            "Return the outputs in the order of the signature.",
            case=case.id,
            **place(subject),
        )
    dtypes = _expected_dtypes(subject, pristine, len(expected))
    inout = set(getattr(subject.spec, "INOUT", ()))
    for output, want, dtype in zip(got, expected, dtypes, strict=True):
        if tuple(output.shape) != tuple(want.shape):
            message = f"the result has shape {tuple(output.shape)}; it must be {tuple(want.shape)}"
            advice = "Check the shape of the output's allocation."
            return Finding("K602", message, advice, case=case.id, **place(subject))
        if getattr(subject.spec, "CONTIGUOUS", False) and not output.is_contiguous():
            message = f"the result has strides {output.stride()}; it must be contiguous"
            advice = "Allocate with torch.empty and the shape: empty_like keeps the order of its argument's strides."
            return Finding("K602", message, advice, case=case.id, **place(subject))
        if output.dtype != dtype:
            message = f"the result is {_name(output.dtype)}; it must be {_name(dtype)}"
            advice = "Check the dtype of the output's allocation."
            return Finding("K603", message, advice, case=case.id, **place(subject))
        for i, value in enumerate(run.inputs):
            # An input that the caller handed in as output as well is shared because she asked for it.
            same = isinstance(value, torch.Tensor) and output.numel() > 0 and i not in inout
            if same and _shared(value, output) and not any(_shared(value, run.inputs[j]) for j in inout):
                message = "the result shares its memory with an input"
                advice = "Return a new tensor: changing it later must not change the caller's input."
                return Finding("K608", message, advice, case=case.id, **place(subject))
    return None


def _shared(value: torch.Tensor, other: Any) -> bool:
    return isinstance(other, torch.Tensor) and other.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()


def _another_tensor(subject: Subject, run: Run, case: Case) -> Finding | None:
    """Where the caller hands in the tensor for the result, at the spec's position RESULT, it must come back itself."""
    position: int | None = getattr(subject.spec, "RESULT", None)
    if position is None or run.inputs[position] is None or run.result is run.inputs[position]:
        return None
    name = argument_names(subject.entry)[position]
    return Finding(
        "K601",
        f"the result is another tensor than the {name} that was handed in: who holds {name} finds no result in it",
        f"Let the kernel store into {name} itself, and return {name}.",
        case=case.id,
        **place(subject),
    )


def _expected_dtypes(subject: Subject, pristine: tuple[Any, ...], count: int) -> list[torch.dtype]:
    custom = getattr(subject.spec, "OUT_DTYPE", None)
    if custom is not None:
        chosen = custom(*pristine)
        return list(chosen) if isinstance(chosen, (tuple, list)) else [chosen] * count
    first = next(value.dtype for value in pristine if isinstance(value, torch.Tensor))
    return [first] * count


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def check_refusal(subject: Subject, refusal: Refusal) -> list[Finding]:
    """A bad input must be refused by the wrapper itself, with one of the exceptions named, before any launch."""
    arguments = refusal.make(torch.device("cpu"))
    names = " or ".join(kind.__name__ for kind in refusal.exceptions)
    with subject.vgpu.record() as session:
        try:
            subject.entry(*arguments)
        except refusal.exceptions:
            if not session.launches:
                return []
            outcome = "was refused only after a kernel had been launched"
        except LimitReachedError:
            raise
        except Exception as error:  # any other exception is the wrong answer
            if isinstance(error, VirtualGpuError) and error.code in ("K006", "K007", "K008"):
                return [from_exception(error, subject.file)]
            text = str(error).splitlines()[0][:120] if str(error) else ""
            outcome = f"raised {type(error).__name__} ({text})"
        else:
            outcome = "was accepted"
    message = f"bad input ({refusal.id}) {outcome}; it must be refused with {names}"
    advice = f"Check the arguments at the top of the wrapper and raise {refusal.exceptions[0].__name__} there."
    return [Finding("K606", message, advice, case=refusal.id, **place(subject))]


def check_probe(subject: Subject, probe: Probe) -> list[Finding]:
    """What a kata tries on the module as a whole; what the learner's code raises passes through."""
    fault = probe.examine(subject.module, Lab(subject.vgpu, subject.spec))
    if fault is None:
        return []
    where = place(subject) if fault.line is None else {"file": str(subject.file), "line": fault.line}
    return [Finding(fault.code, fault.message, fault.advice, case=probe.id, details=fault.details, **where)]
