"""Runs one case in the foreground, in Triton's interpreter: print, tl.device_print and breakpoint() work.

No verdict comes of it. This runs in a process of its own, attached to the learner's terminal.
"""

from __future__ import annotations

import bdb
import random
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from checker.errors import NOT_PASSED, PASSED, USAGE

__all__ = ["main", "run"]


def main(arguments: Sequence[str]) -> None:
    """Entry of the process: folder, file, entry point, case id and program number (may be empty); exits."""
    folder, file, entry, case, program = arguments
    sys.exit(run(Path(folder), Path(file), entry, case, int(program) if program else None))


def run(folder: Path, file: Path, entry: str, case_id: str, program: int | None) -> int:
    """Run one case. `case_id` may be a part of an id that fits one case only; `program` is a linear number."""
    import torch

    from checker.cases import case_seed
    from checker.loading import LoadError, load_kernel, load_module, protect
    from checker.vgpu import stepper
    from checker.vgpu.driver import VirtualGpu

    torch.set_num_threads(1)
    # A wrapper may ask Triton on which device kernels run. Nothing is launched on it.
    VirtualGpu("h200").activate()
    protect(file.parent)
    spec = load_module(folder / "spec.py")
    case = _find(spec.CASES, case_id)
    if case is None:
        return USAGE
    seed = random.SystemRandom().randrange(2**31)
    arguments = spec.make_inputs(case, seed=case_seed(seed, case.id), device=torch.device("cpu"))
    click.echo(f"case {case.id}" + (f", program {program}" if program is not None else "") + f"  ({file})")

    def load() -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(load_kernel(file), entry)
        return function

    try:
        result = stepper.run(load, arguments, program)
    except bdb.BdbQuit:
        return NOT_PASSED
    except LoadError as error:
        finding = error.finding
        where = f" (line {finding.line})" if finding.line else ""
        click.echo(f"{finding.code} {finding.message}{where}; {finding.advice}", err=True)
        return NOT_PASSED
    except Exception as error:
        _show(error, file)
        return NOT_PASSED
    only = "" if program is None else " (only one program ran, so the rest is unwritten)"
    click.echo(f"{entry} returned{only}\n{result}")
    return PASSED


def _find(cases: Sequence[Any], wanted: str) -> Any:
    """The case that is meant, or None after saying which there are."""
    exact = [case for case in cases if case.id == wanted]
    near = exact or [case for case in cases if wanted.lower() in case.id.lower()]
    if len(near) == 1:
        return near[0]
    what = "fits more than one case" if near else "is no case of this kata"
    click.echo(f"Error: {wanted!r} {what}. Its cases are:", err=True)
    for case in near or cases:
        click.echo(f"  {case.id}", err=True)
    return None


def _show(error: BaseException, file: Path) -> None:
    """The traceback, the learner's own frames only: the rest is Triton's interpreter."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    sys.stderr.writelines(["Traceback, your file only:\n", *traceback.format_list(frames)])
    cause = error.__cause__ or error
    sys.stderr.writelines(traceback.format_exception_only(cause))
