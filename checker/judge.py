"""Judges one case of one kata: runs the learner's function on the virtual GPU and says what is wrong with it.

The order is that of the craft: does it launch, is every access legal, is everything written, does the result
depend on undefined lanes, and only then whether the values are right. The first thing found is the answer: what
follows from it is not reported again.
"""

from __future__ import annotations

import random
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from checker import fairness, memory_findings, numerics
from checker.cases import Case, Question, Refusal, case_seed
from checker.diagnose import from_exception
from checker.findings import Finding
from checker.lab import Lab
from checker.limits import LimitReachedError
from checker.numerics import Mismatch
from checker.observe import Observer
from checker.originals import Originals
from checker.vgpu.authors import Authors
from checker.vgpu.driver import Session, VirtualGpu
from checker.vgpu.errors import VirtualGpuError

__all__ = ["Predictions", "Subject", "check_case", "check_predictions", "check_refusal", "open_gpu"]

# What undefined lanes read in the runs after the first, whose poison is NaN: a maximum ignores NaN, a sum of
# comparisons ignores zero, and so on. A right kernel gives the same bytes for all of them.
_OTHER_POISONS = ("zero", "largest", "smallest")


@lru_cache
def open_gpu(name: str) -> VirtualGpu:
    """The virtual GPU of this process, active from now on. ValueError for an unknown chip."""
    return VirtualGpu(name).activate()


@dataclass
class Subject:
    """A learner's module beside the kata it is to solve. `gpu` names the chip; `reveal` shows predictions' truth.

    `fair` asks whose work the results are; what the cases show of that is gathered here and told by its own stage.
    `originals` holds what the check relies on, from before the module was imported.
    """

    module: ModuleType
    spec: ModuleType
    entry: Callable[..., Any]
    file: Path
    gpu: str
    reveal: bool = False
    device: str = "auto"
    fair: bool = True
    originals: Originals | None = None
    unfair: list[Finding] = field(default_factory=list)
    results: fairness.Results = field(default_factory=fairness.Results)
    storers: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    suspects: set[str] = field(default_factory=set)

    @property
    def vgpu(self) -> VirtualGpu:
        """The chip the subject runs on."""
        return open_gpu(self.gpu)


@dataclass
class Predictions:
    """What became of the learner's predictions."""

    findings: list[Finding]
    right: int
    total: int


@dataclass
class Run:
    """One call of the learner's function."""

    session: Session
    result: Any
    inputs: tuple[Any, ...]
    findings: list[Finding] = field(default_factory=list)
    evidence: fairness.Call | None = None

    @property
    def launches(self) -> list[Any]:
        return self.session.launches


def check_case(subject: Subject, case: Case, seed: int) -> list[Finding]:
    """Every finding of one case: none, or the one root cause. Limits that strike while it runs pass through."""
    own_seed = case_seed(seed, case.id)
    device = torch.device("cpu")
    inputs = tuple(subject.spec.make_inputs(case, seed=own_seed, device=device))
    pristine = tuple(_copy(value) for value in inputs)
    run = call(subject, inputs, case.id)
    if run.findings:
        return run.findings
    found = _structure(subject, run, case) or _memory(subject, run, case) or _shape(subject, run, pristine, case)
    if found is None and any(launch.poisoned_lanes for launch in run.launches):
        found = _poison(subject, run, pristine, case, own_seed)
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


def call(subject: Subject, inputs: tuple[Any, ...], case: str, **options: Any) -> Run:
    """Calls the entry point in a session of its own; what it raises becomes a finding.

    Unless options say how the session is to differ, it keeps the authors of all memory as evidence.
    """
    gpu = subject.vgpu
    authors = Authors() if subject.fair and "poison" not in options else None
    if authors is not None:
        for value in inputs:
            if isinstance(value, torch.Tensor) and value.device.type == "cpu":
                authors.given(value)
    with gpu.record(authors=authors, **options) as session:
        run = Run(session, None, inputs)
        observer = Observer(session.shadows, str(subject.file), authors)
        try:
            with observer:
                run.result = subject.entry(*inputs)
        except LimitReachedError:
            raise
        except Exception as error:  # whatever a learner's code raises is hers to read about
            launch = str(session.launches[-1]) if session.launches and isinstance(error, VirtualGpuError) else None
            run.findings = [_with_case(_refused(error, from_exception(error, subject.file, launch)), case)]
    replaced = subject.originals.replaced() if subject.originals is not None else None
    if replaced is not None:
        run.findings = [
            Finding(
                "K907",
                f"{replaced} is not what it was before the file was imported",
                "Leave functions that are not yours as they are: the check itself relies on them.",
                case=case,
                stage_override="source",
                **_place(subject),
            )
        ]
    if authors is not None and not run.findings:
        run.evidence = fairness.Call(
            file=subject.file,
            entry=getattr(subject.entry, "__name__", "the entry point"),
            line=_place(subject)["line"],
            case=case,
            inputs=inputs,
            names=_argument_names(subject.entry),
            outputs=[output for output in outputs_of(run.result) if type(output) is torch.Tensor],
            session=session,
            observer=observer,
            inout=frozenset(getattr(subject.spec, "INOUT", ())),
        )
    return run


def _refused(error: Exception, finding: Finding) -> Finding:
    """K607 in place of K308 where the wrapper's own `raise` or `assert` turned a good input away."""
    if finding.code != "K308" or not isinstance(error, (ValueError, TypeError, AssertionError)):
        return finding
    innermost = traceback.extract_tb(error.__traceback__)[-1]
    if innermost.filename != finding.file or not re.match(r"(raise|assert)\b", innermost.line or ""):
        return finding
    message = f"a good input was refused with {type(error).__name__}: {error}"
    return replace(
        finding, code="K607", message=message, advice="The docstring says what must be accepted: narrow this check."
    )


def _with_case(finding: Finding, case: str) -> Finding:
    return finding if finding.case else replace(finding, case=case)


def _copy(value: Any) -> Any:
    """The elements of a tensor, never its whole storage: a sparse view may span gigabytes."""
    return value.detach().clone(memory_format=torch.contiguous_format) if isinstance(value, torch.Tensor) else value


def outputs_of(result: Any) -> list[Any]:
    """What was returned, as a list."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def _place(subject: Subject) -> dict[str, Any]:
    code = getattr(subject.entry, "__code__", None)
    return {"file": str(subject.file), "line": code.co_firstlineno if code else None}


def _structure(subject: Subject, run: Run, case: Case) -> Finding | None:
    """Asks whether it launched anything and returned tensors."""
    name = getattr(subject.entry, "__name__", "the entry point")
    returned = "\n".join(type(output).__name__ for output in outputs_of(run.result))
    if not all(type(output) is torch.Tensor for output in outputs_of(run.result)):
        return Finding(
            "K604",
            f"{name} returned {returned or 'nothing'}, not a tensor",
            "End the wrapper with `return` and the output tensor.",
            case=case.id,
            **_place(subject),
        )
    if not run.launches and any(output.numel() for output in outputs_of(run.result)):
        if run.evidence is not None and run.evidence.vacuous:
            return None
        found = fairness.unlaunched(run.evidence, subject.results) if run.evidence is not None else None
        if found is not None:
            return replace(found, stage_override="compile")
        return Finding(
            "K307",
            f"{name} returned without launching a kernel",
            "Launch your kernel in the wrapper: kernel[grid](...).",
            case=case.id,
            **_place(subject),
        )
    return None


def _memory(subject: Subject, run: Run, case: Case) -> Finding | None:
    """Illegal accesses, stores into inputs, elements never written."""
    found = memory_findings.first_violation(run.launches, str(subject.file), case.id)
    if found:
        return found
    inout = set(getattr(subject.spec, "INOUT", ()))
    names = _argument_names(subject.entry)
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
            line = found.line or _place(subject)["line"]
            return replace(found, message=_which(run, number) + found.message, line=line)
    return None


def _which(run: Run, number: int) -> str:
    """Words before a message about one of several results."""
    count = len(outputs_of(run.result))
    return f"result {number + 1} of {count}: " if count > 1 else ""


def _argument_names(entry: Callable[..., Any]) -> list[str]:
    code = getattr(entry, "__code__", None)
    return list(code.co_varnames[: code.co_argcount]) if code else []


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
            **_place(subject),
        )
    dtypes = _expected_dtypes(subject, pristine, len(expected))
    inout = set(getattr(subject.spec, "INOUT", ()))
    for output, want, dtype in zip(got, expected, dtypes, strict=True):
        if tuple(output.shape) != tuple(want.shape):
            message = f"the result has shape {tuple(output.shape)}; it must be {tuple(want.shape)}"
            advice = "Check the shape of the output's allocation."
            return Finding("K602", message, advice, case=case.id, **_place(subject))
        if getattr(subject.spec, "CONTIGUOUS", False) and not output.is_contiguous():
            message = f"the result has strides {output.stride()}; it must be contiguous"
            advice = "Allocate with torch.empty and the shape: empty_like keeps the order of its argument's strides."
            return Finding("K602", message, advice, case=case.id, **_place(subject))
        if output.dtype != dtype:
            message = f"the result is {_name(output.dtype)}; it must be {_name(dtype)}"
            advice = "Check the dtype of the output's allocation."
            return Finding("K603", message, advice, case=case.id, **_place(subject))
        for i, value in enumerate(run.inputs):
            # An input that the caller handed in as output as well is shared because she asked for it.
            same = isinstance(value, torch.Tensor) and output.numel() > 0 and i not in inout
            if same and _shared(value, output) and not any(_shared(value, run.inputs[j]) for j in inout):
                message = "the result shares its memory with an input"
                advice = "Return a new tensor: changing it later must not change the caller's input."
                return Finding("K608", message, advice, case=case.id, **_place(subject))
    return None


def _shared(value: torch.Tensor, other: Any) -> bool:
    return isinstance(other, torch.Tensor) and other.untyped_storage().data_ptr() == value.untyped_storage().data_ptr()


def _another_tensor(subject: Subject, run: Run, case: Case) -> Finding | None:
    """Where the caller hands in the tensor for the result, at the spec's position RESULT, it must come back itself."""
    position: int | None = getattr(subject.spec, "RESULT", None)
    if position is None or run.inputs[position] is None or run.result is run.inputs[position]:
        return None
    name = _argument_names(subject.entry)[position]
    return Finding(
        "K601",
        f"the result is another tensor than the {name} that was handed in: who holds {name} finds no result in it",
        f"Let the kernel store into {name} itself, and return {name}.",
        case=case.id,
        **_place(subject),
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


def _poison(subject: Subject, run: Run, pristine: tuple[Any, ...], case: Case, seed: int) -> Finding | None:
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

    for poison in _OTHER_POISONS:
        if differs(poison=poison):
            if differs(poison="nan"):
                return unsteady(subject, case.id)
            found = _culprit(run, case, lambda place: differs(poison=poison, poison_only=frozenset([place])))  # noqa: B023  # called before the next turn
            if found is not None and found.code == "K407":
                return _wrong_anyway(subject, run, pristine, case, [changes(poison=p) for p in _OTHER_POISONS]) or found
            return found
    return None


def unsteady(subject: Subject, case: str) -> Finding:
    """K605: the same call gives another result."""
    return Finding(
        "K605",
        "two calls on the same inputs gave different results",
        "Look for what outlives a call: a buffer that is not reset, a counter, an output that is kept.",
        case=case,
        **_place(subject),
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
    wrong = _compare(subject, mended, pristine)
    if wrong is None or not wrong[1].gross:
        return None
    return _value_finding(subject, run, pristine, case, *wrong)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The bytes of each element, as (elements, bytes)."""
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).reshape(flat.numel(), flat.element_size()).clone()


def wrong_values(subject: Subject, run: Run, pristine: tuple[Any, ...], case: Case) -> Finding | None:
    """Asks whether the result is the expected one, and as exact as it must be."""
    attempts = [pristine]
    if getattr(subject.spec, "DOT_PRECISION", None) == "tf32" and _has_float32(pristine):
        # The chip multiplies float32 tiles with truncated operands; a kernel that asks for more is right as well.
        attempts.append(tuple(_truncated(value) for value in pristine))
    wrong: tuple[int, Mismatch] | None = None
    for arguments in attempts:
        wrong = _compare(subject, outputs_of(run.result), arguments)
        if wrong is None:
            return None
    assert wrong is not None
    return _value_finding(subject, run, pristine, case, *wrong)


def _compare(subject: Subject, outputs: list[Any], arguments: tuple[Any, ...]) -> tuple[int, Mismatch] | None:
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


def _value_finding(
    subject: Subject, run: Run, pristine: tuple[Any, ...], case: Case, number: int, mismatch: Mismatch
) -> Finding:
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
        _which(run, number) + message,
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
    if any(not torch.isfinite(tensor).all() for tensor in tensors):
        return "K703", "Follow a NaN or an infinity through each step: what do max, exp and a difference make of it?"
    largest = max((float(tensor.abs().max()) for tensor in tensors), default=0.0)
    if 0 < largest < 1e-3:
        return "K704", "Look for a constant that is added or compared: it may swallow tiny data."
    if mismatch.kind != "value" or largest > 10:
        return "K702", "Find the step that leaves the range of its dtype: an exponential, a square, a sum in fp16."
    # The same kernel is right on plain data (the values stage comes first): what it lacks is precision.
    return "K701", "Accumulate in float32, and round once, when storing."


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
    return [Finding("K606", message, advice, case=refusal.id, **_place(subject))]


def check_predictions(subject: Subject, seed: int) -> Predictions:
    """Asks every drawn question and compares the answers with what running, tracing or compiling shows."""
    make: Callable[[random.Random], list[Question]] | None = getattr(subject.spec, "questions", None)
    questions = make(random.Random(seed)) if make else []  # noqa: S311  # questions are drawn, not secrets
    lab = Lab(subject.vgpu, subject.spec)
    right = 0
    first: Finding | None = None
    wrong: list[str] = []
    for question in questions:
        problem, answer = _ask(subject, question)
        if problem is not None:
            first = first or problem
            continue
        truth = question.truth(lab)
        if not _same_kind(answer, truth):
            kind, wanted = type(answer).__name__, type(truth).__name__
            message = (
                f"{question.entry}{_arguments(question)} is {answer!r}, of type {kind}; the answer is of type {wanted}"
            )
            first = first or Finding(
                "K652", message, "Its annotation says what to return.", **_defined(subject, question)
            )
            continue
        if _agrees(answer, truth, question.tolerance):
            right += 1
            continue
        shown = f"{question.entry}({', '.join(map(repr, question.args))}) -> {answer!r}"
        wrong.append(shown + (f"; the truth is {truth!r}" if subject.reveal else ""))
        if first is None:
            first = Finding(
                "K651",
                f"{question.entry}{_arguments(question)} is not {answer!r}"
                + (f": it is {truth!r}" if subject.reveal else ""),
                "Work it out on paper for a small case, then in general; the lesson has all that is needed."
                if not subject.reveal
                else "Find where your reasoning and the truth part ways.",
                **_defined(subject, question),
            )
    if first is not None:
        details = (f"{right} of {len(questions)} predictions are right", *(f"not {line}" for line in wrong[:4]))
        first = replace(first, details=details)
    return Predictions([first] if first else [], right, len(questions))


def _arguments(question: Question) -> str:
    return f"({', '.join(map(repr, question.args))})"


def _defined(subject: Subject, question: Question) -> dict[str, Any]:
    """Where the prediction is defined, as arguments of a finding."""
    code = getattr(getattr(subject.module, question.entry, None), "__code__", None)
    return {"file": str(subject.file), "line": code.co_firstlineno if code else None}


def _ask(subject: Subject, question: Question) -> tuple[Finding | None, Any]:
    function = getattr(subject.module, question.entry, None)
    place = _defined(subject, question)
    if not callable(function):
        message = f"the file has no function {question.entry}, which holds a prediction"
        return Finding("K652", message, "Take its frame from the skeleton.", **place), None
    try:
        answer = function(*question.args)
    except LimitReachedError:
        raise
    except Exception as error:  # a prediction that raises is a wrong prediction
        message = f"{question.entry}{_arguments(question)} raised {type(error).__name__}: {error}"
        return Finding("K653", message, "A prediction is a plain function of its arguments.", **place), None
    if answer is None:
        message = f"{question.entry}{_arguments(question)} is not answered yet"
        return Finding("K652", message, question.text or "The lesson asks this question.", **place), None
    return None, answer


def _same_kind(answer: Any, truth: Any) -> bool:
    """Whether an answer can be compared with the truth at all: a number with a number, a sequence with a sequence."""
    kinds = ((int, float), (list, tuple), (str,))
    return all(isinstance(answer, kind) for kind in kinds if isinstance(truth, kind))


def _agrees(answer: Any, truth: Any, tolerance: float) -> bool:
    if isinstance(truth, (list, tuple)) and isinstance(answer, (list, tuple)):
        pairs = list(zip(answer, truth, strict=False))
        return len(answer) == len(truth) and all(_agrees(a, t, tolerance) for a, t in pairs)
    if isinstance(truth, bool) or isinstance(answer, bool):
        return bool(isinstance(answer, (bool, int)) and answer == truth)
    if isinstance(truth, (int, float)) and isinstance(answer, (int, float)):
        return bool(answer == truth or abs(answer - truth) <= tolerance * abs(truth))
    if isinstance(truth, str) and isinstance(answer, str):
        return answer.strip().lower() == truth.strip().lower()
    return bool(answer == truth)
