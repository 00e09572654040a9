"""A learner's kernel beside the reference and eager PyTorch: error, bytes, resources, time, share of the bound.

Runs in the child. The document holds figures only; `commands/compare.py` makes a table of them. A kernel that is wrong
has no time: its column holds the finding instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from checker import judge
from checker.bounds import Bound, arithmetic_of, bound, peak_tflop_per_s
from checker.cost import count
from checker.occupancy import occupancy
from checker.sweep import sweep
from checker.timed import Timed, as_timed, drawn, real_us, time_call
from checker.vgpu import aten
from checker.workbench import FileAtFault

if TYPE_CHECKING:
    from checker.vgpu.specs import GpuSpec
    from checker.workbench import Bench

__all__ = ["compare"]


def compare(bench: Bench) -> dict[str, Any]:
    """The document of `kata compare`. Options: case, trusted (the file has passed), sweep (name and values or None)."""
    case = bench.case(bench.options.get("case"))
    judged = case if any(case is one for one in bench.spec.CASES) else bench.judged_like(case)
    chip = bench.gpu.spec
    modelled = f"modelled for {chip.name}" + ("" if chip.validated else ", not validated")
    document: dict[str, Any] = {
        "gpu": {"key": chip.key, "name": chip.name, "target": chip.target, "validated": chip.validated},
        "case": case.id,
        "error_case": judged.id,
        "note": bench.notes.get(case.id, ""),
        "basis": modelled,
        "counted": modelled,
        "measured": False,
    }
    if bench.options.get("sweep"):
        with bench.step("loading", bench.file):
            subject = bench.subject(bench.file, mine=True)
        return {**document, "sweep": sweep(bench, subject, case, judged, **bench.options["sweep"])}
    spec = as_timed(bench.spec, case, bench.request.seed)
    if bench.request.device == "cuda":
        from checker import realgpu

        chip = realgpu.chip(chip)
        document |= {"basis": f"measured on {chip.name}", "measured": True}
    least, flops = spec.least_bytes(case), spec.flops(case)
    document |= {"least_bytes": least, "flops": flops, **_bound(spec, case, chip)}
    columns = [_yours(bench, spec, case, judged), _reference(bench, spec, case, judged), *_pytorch(bench, spec, case)]
    columns[2]["error"] = _torch_error(bench, judged)
    for column in columns:
        if column.get("us") and document["bound_us"]:
            column["share_of_bound"] = round(document["bound_us"] / column["us"], 4)
    return {**document, "columns": columns}


def _bound(spec: ModuleType, case: Any, chip: GpuSpec) -> dict[str, Any]:
    """The bound that the check's speed stage uses, and the rates it comes from."""
    least, flops = spec.least_bytes(case), spec.flops(case)
    read = sum(value.numel() * value.element_size() for value in drawn(spec, case) if isinstance(value, torch.Tensor))
    dtype = arithmetic_of(case)
    found: Bound = bound(chip, least_bytes=least, written_bytes=max(0, least - read), flops=flops, dtype=dtype)
    return {
        "bound_us": round(found.us, 3),
        "bound_by": found.by,
        "peak_gb_per_s": round(chip.copy_gb_per_s),
        "peak_tflop_per_s": peak_tflop_per_s(chip, dtype),
    }


def _yours(bench: Bench, spec: ModuleType, case: Any, judged: Any) -> dict[str, Any]:
    try:
        if not bench.options.get("trusted"):
            _require_right(bench)
        with bench.step("yours", bench.file):
            subject = bench.subject(bench.file, mine=True)
            return _column(bench, "yours", subject.entry, bench.file, spec, case, judged)
    except FileAtFault as error:
        return {"who": "yours", "finding": error.finding.to_dict()}


def _require_right(bench: Bench) -> None:
    """FileAtFault with the first finding of the quick cases: a wrong kernel has no time."""
    with bench.step("yours: is it right?", bench.file):
        subject = bench.subject(bench.file, mine=True)
    for case in bench.spec.CASES:
        if not case.quick:
            continue
        with bench.step(f"yours: {case.id}", bench.file):
            findings = judge.check_case(subject, case, bench.request.seed)
        if findings:
            raise FileAtFault(findings[0])


def _reference(bench: Bench, spec: ModuleType, case: Any, judged: Any) -> dict[str, Any]:
    with bench.step("the reference", bench.solution):
        subject = bench.subject(bench.solution, mine=False)
        return _column(bench, "reference", subject.entry, bench.solution, spec, case, judged)


def _column(
    bench: Bench, who: str, entry: Callable[..., Any], file: Path, spec: ModuleType, case: Any, judged: Any
) -> dict[str, Any]:
    """Error on the judged case, everything else on the timed one. FileAtFault if the timed result is wrong."""
    with bench.gpu.record():
        result = entry(*bench.inputs(judged))
    error = _error(result, bench.spec.reference(*bench.inputs(judged)))
    done = time_call(entry, file, spec, case, bench.request.seed, bench.gpu)
    if done.finding is not None:
        raise FileAtFault(done.finding)
    us = done.us if bench.request.device != "cuda" else real_us(entry, spec, case, bench.request.seed)
    return {"who": who, "finding": None, "error": error, "us": round(us, 3), **_facts(bench.gpu.spec, done)}


def _facts(chip: GpuSpec, done: Timed) -> dict[str, Any]:
    """What was counted of a call, and the resources of its longest launch."""
    counted = count(done.call, chip)
    launches = [one for one in done.call.launches if one.profile is not None]
    asked = sum(one.profile.bytes_requested for one in launches)
    fetched = sum(32 * one.programs * sum(site.sectors for site in one.profile.sites) for one in launches)
    facts: dict[str, Any] = {
        "limiter": counted.limiter,
        "bytes": round(counted.bytes),
        "dram_bytes": round(counted.dram_bytes),
        "fetched_per_useful_byte": round(fetched / asked, 3) if asked else None,
        "worst": asdict(counted.worst) if counted.worst else None,
        "launches": counted.launches + len(counted.operations),
        "operations": [name for name, _ in counted.operations],
    }
    main = counted.main
    if main is None:
        return facts
    fits = occupancy(chip, num_warps=main.num_warps, registers=main.registers, shared_bytes=main.shared_bytes)
    return {
        **facts,
        "kernel": main.kernel,
        "programs": main.programs,
        "num_warps": main.num_warps,
        "num_stages": main.num_stages,
        "registers": main.registers,
        "spilled_bytes": main.spills,
        "shared_bytes": main.shared_bytes,
        "occupancy": {**asdict(fits), "share": round(fits.share, 4)},
    }


def _pytorch(bench: Bench, spec: ModuleType, case: Any) -> list[dict[str, Any]]:
    """Eager PyTorch, and on a real GPU torch.compile as well."""
    with bench.step("eager PyTorch", bench.solution):
        function = bench.eager_on(case)
        cost = aten.cost(function, *drawn(spec, case), spec=bench.gpu.spec)
        on_cuda = bench.request.device == "cuda"
        us = real_us(function, spec, case, bench.request.seed) if on_cuda else cost.us
        eager = {
            "who": "PyTorch",
            "finding": None,
            "us": round(us, 3),
            "bytes": cost.bytes,
            "dram_bytes": cost.bytes,
            "launches": len(cost.operations),
            "operations": [one.name for one in cost.operations],
            "measured": on_cuda or cost.measured,
        }
    if not on_cuda:
        return [eager]
    with bench.step("torch.compile", bench.solution):
        us = real_us(torch.compile(function), spec, case, bench.request.seed)
    return [eager, {"who": "torch.compile", "finding": None, "us": round(us, 3)}]


def _torch_error(bench: Bench, judged: Any) -> float | None:
    with bench.step("PyTorch's error", bench.solution):
        return _error(bench.eager(*bench.inputs(judged)), bench.spec.reference(*bench.inputs(judged)))


def _error(result: Any, expected: Any) -> float | None:
    """The largest absolute error over all results, where the truth is finite; None if a shape differs."""
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    truths = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    largest = 0.0
    for got, truth in zip(results, truths, strict=False):
        if not isinstance(got, torch.Tensor) or got.shape != truth.shape:
            return None
        apart = (got.double() - truth.double()).abs()[torch.isfinite(truth.double())]
        if apart.numel():
            largest = max(largest, float(apart.max()))
    return largest
