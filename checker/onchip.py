"""The values of a case, computed on the real GPU after the virtual one found nothing wrong with the same call.

Memory was judged there: what is asked here is only whether the chip agrees.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from checker import judge, realgpu
from checker.cases import Case, case_seed
from checker.diagnose import from_exception
from checker.findings import Finding
from checker.judge import Subject
from checker.vgpu.driver import Session

__all__ = ["check_case"]


def check_case(subject: Subject, case: Case, seed: int) -> list[Finding]:
    """The finding of one case on the real GPU, or none. K006 where the GPU cannot be used at all."""
    if not realgpu.usable():
        message = "PyTorch cannot use the GPU that the driver sees"
        return [
            Finding("K006", message, "Look at `python -c 'import torch; torch.zeros(1).cuda()'`, or --device virtual.")
        ]
    own_seed = case_seed(seed, case.id)
    try:
        with realgpu.active() as device:
            inputs = tuple(subject.spec.make_inputs(case, seed=own_seed, device=device))
            pristine = tuple(_on_host(value) for value in inputs)
            result = subject.entry(*inputs)
            torch.cuda.synchronize()
            outputs = tuple(_on_host(output) for output in judge.outputs_of(result))
    except torch.cuda.OutOfMemoryError:
        # A sparse view of gigabytes costs nothing on the host. The virtual GPU has judged it.
        torch.cuda.empty_cache()
        return []
    except Exception as error:  # whatever a learner's code raises is hers to read about
        found = from_exception(error, subject.file)
        return [_told(found if found.case else replace(found, case=case.id))]
    finding = judge.wrong_values(subject, judge.Run(Session(), outputs, pristine), pristine, case)
    return [_told(finding)] if finding else []


def _on_host(value: Any) -> Any:
    """The elements of a tensor on the CPU, contiguous: a sparse view must not bring its whole storage."""
    return value.detach().contiguous().cpu() if isinstance(value, torch.Tensor) else value


def _told(finding: Finding) -> Finding:
    name = realgpu.describe()["name"]
    return replace(finding, details=(*finding.details, f"on the {name}; the virtual GPU found nothing wrong here"))
