"""One call of a learner's function on the virtual GPU, and all that was seen of it."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from checker import fairness
from checker.diagnose import from_exception
from checker.findings import Finding
from checker.limits import LimitReachedError
from checker.observe import Observer
from checker.originals import Originals
from checker.source import read_source
from checker.vgpu.authors import Authors
from checker.vgpu.driver import Session, VirtualGpu
from checker.vgpu.errors import VirtualGpuError

__all__ = ["Run", "Subject", "argument_names", "call", "copied", "open_gpu", "outputs_of", "place", "which_result"]

_LOOKS_AT_BINARIES = re.compile(r"\b(warmup|n_regs|n_spills|n_max_threads|metadata|asm|knobs)\b")
"""Names under which Triton shows what it compiled."""


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

    @cached_property
    def brief(self) -> bool:
        """Whether cases may stop compiling where values are settled: not if the file looks at what was compiled."""
        return not _LOOKS_AT_BINARIES.search(read_source(self.file))

    @property
    def vgpu(self) -> VirtualGpu:
        """The chip the subject runs on."""
        return open_gpu(self.gpu)


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
        """What was launched, in order."""
        return self.session.launches


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
                **place(subject),
            )
        ]
    if authors is not None and not run.findings:
        run.evidence = fairness.Call(
            file=subject.file,
            entry=getattr(subject.entry, "__name__", "the entry point"),
            line=place(subject)["line"],
            case=case,
            inputs=inputs,
            names=argument_names(subject.entry),
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


def copied(value: Any) -> Any:
    """The elements of a tensor, never its whole storage: a sparse view may span gigabytes."""
    return value.detach().clone(memory_format=torch.contiguous_format) if isinstance(value, torch.Tensor) else value


def outputs_of(result: Any) -> list[Any]:
    """What was returned, as a list."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def place(subject: Subject) -> dict[str, Any]:
    """Where the entry point stands, as arguments of a finding."""
    code = getattr(subject.entry, "__code__", None)
    return {"file": str(subject.file), "line": code.co_firstlineno if code else None}


def which_result(run: Run, number: int) -> str:
    """Words before a message about one of several results."""
    count = len(outputs_of(run.result))
    return f"result {number + 1} of {count}: " if count > 1 else ""


def argument_names(entry: Callable[..., Any]) -> list[str]:
    """Names of the positional arguments, in order."""
    code = getattr(entry, "__code__", None)
    return list(code.co_varnames[: code.co_argcount]) if code else []
