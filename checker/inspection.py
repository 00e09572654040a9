"""What became of a kernel: launches it once for a chip and collects what the compiler made of it, level by level.

Runs in the child. Nothing is judged here and nothing is worded: the document holds the texts and the figures, and
`levels.py` chooses what to show of them.
"""

from __future__ import annotations

import inspect as python_inspect
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from checker import assembly
from checker.cost import LIMITERS
from checker.findings import Finding
from checker.occupancy import occupancy
from checker.timed import as_timed, drawn, time_call
from checker.vgpu import aten
from checker.workbench import FileAtFault

if TYPE_CHECKING:
    from checker.vgpu.trace import LaunchTrace
    from checker.workbench import Bench

__all__ = ["inspect"]

_TEXTS = ("ttir", "ttgir", "llir", "ptx", "amdgcn")


def inspect(bench: Bench) -> dict[str, Any]:
    """The document of `kata inspect`: option `case` names one, else the one that is timed."""
    case = bench.case(bench.options.get("case"))
    with bench.step(f"compiling for {bench.gpu.spec.name}", bench.file):
        subject = bench.subject(bench.file, mine=True)
        spec = as_timed(bench.spec, case, bench.request.seed)
        done = time_call(subject.entry, bench.file, spec, case, bench.request.seed, bench.gpu)
    launches = [trace for trace in done.call.launches if trace.estimate is not None]
    if not launches:
        raise FileAtFault(
            Finding(
                "K307",
                f"{bench.entry}() returned without launching a kernel on the case {case.id!r}",
                "There is nothing to look at before a kernel is launched: kernel[grid](...).",
                file=str(bench.file),
            )
        )
    trace = max(launches, key=lambda one: one.estimate.us)
    texts = _texts(trace)
    chip = bench.gpu.spec
    machine = texts.get("ptx") or texts.get("amdgcn", "")
    fits = occupancy(chip, num_warps=trace.num_warps, registers=trace.registers, shared_bytes=trace.shared_bytes)
    return {
        "file": str(bench.file),
        "gpu": {"key": chip.key, "name": chip.name, "target": chip.target, "validated": chip.validated},
        "case": case.id,
        "kernel": trace.kernel,
        "launch": str(trace),
        "other_kernels": sorted({one.kernel for one in launches} - {trace.kernel}),
        "launches": len(launches),
        "texts": {"eager": _eager(bench, drawn(spec, case)), **texts},
        "accesses": [asdict(one) for one in assembly.accesses(machine)],
        "tensor_instructions": assembly.tensor_instructions(texts.get("sass") or machine),
        "products": bool(trace.profile.dot_flops),
        "num_warps": trace.num_warps,
        "num_stages": trace.num_stages,
        "registers": trace.registers,
        "spilled_bytes": trace.spills,
        "shared_bytes": trace.shared_bytes,
        "occupancy": {**asdict(fits), "share": round(fits.share, 4)},
        "time": {
            "us": round(trace.estimate.us, 2),
            "limiter": LIMITERS.get(trace.estimate.limiter, trace.estimate.limiter),
            "basis": f"modelled for {chip.name}" + ("" if chip.validated else ", not validated"),
        },
    }


def _texts(trace: LaunchTrace) -> dict[str, str]:
    """Every level that was made, by name, whole."""
    kernel: Any = trace.kernel_handle
    texts = {"python": _source(trace)}
    texts |= {name: text for name in _TEXTS if (text := kernel.text(name))}
    cubin = next((path for name, path in kernel.files.items() if name.endswith(".cubin")), None)
    if cubin is not None and (sass := assembly.disassemble(Path(cubin).read_bytes())):
        texts["sass"] = sass
    return texts


def _eager(bench: Bench, arguments: tuple[Any, ...]) -> str:
    """One line for each kernel that eager PyTorch launches for the same job."""
    cost = aten.cost(bench.eager, *arguments, spec=bench.gpu.spec)
    rows = [
        f"aten.{one.name:<12} {one.dtype}[{', '.join(map(str, one.shape))}] {one.layout}: "
        f"{one.bytes / 1e6:.4g} MB, {one.us:.4g} us{'' if one.measured else ' (estimated)'}"
        for one in cost.operations
    ]
    return "\n".join(rows or ["(views only: nothing is launched)"])


def _source(trace: LaunchTrace) -> str:
    """The kernel's own lines, with empty ones before them so that line numbers are the file's."""
    import linecache

    rows = linecache.getlines(trace.file)[trace.line - 1 :]
    return "\n" * (trace.line - 1) + "".join(python_inspect.getblock(rows))
