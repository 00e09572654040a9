"""Times the reference kernels beside eager PyTorch, torch.compile and the vendor's library on a real GPU.

    python scripts/measure_solutions.py OUTPUT.json [KATA ...]
    python scripts/measure_solutions.py --document [RUN.json ...]

The first needs a GPU; the second adds what such runs wrote to docs/measured/solutions.json and writes docs/solutions.md
from it. A time is the median over some calls, with L2 flushed before each, and then the median of three turns, in which
all rivals take part one after the other. float16 unless the case says otherwise.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
import triton
from torch.nn import functional

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from checker.loading import load_module  # noqa: E402  (found through the line above)

MEASURED = ROOT / "docs" / "measured" / "solutions.json"
TARGET = ROOT / "docs" / "solutions.md"
TURNS = 3
CALLS_US = 20_000
"""Microseconds of calls in a turn, flushing left out."""
FLUSH_BYTES = 1 << 30
"""What is overwritten before each call: more than L2, and so much that the host queues the call meanwhile."""

Call = Callable[[], Any]


@dataclass(frozen=True)
class Race:
    """A solution on one case, the rivals to beat, and how far: `at_least` of the fastest of `against`."""

    case: str
    mine: Call
    rivals: dict[str, Call]
    against: tuple[str, ...]
    at_least: float


def _half(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def _compiled(function: Callable[..., Any], *args: Any, mode: str | None = None) -> Call:
    """A call of what torch.compile makes of a function, compiled for these shapes alone."""
    made = torch.compile(function, dynamic=False, mode=mode)
    return lambda: made(*args)


def _pair(function: Callable[..., Any], *args: Any) -> dict[str, Call]:
    """The two rivals that any function has."""
    return {"eager": lambda: function(*args), "torch.compile": _compiled(function, *args)}


def _silu_mul(kata: Any) -> Iterator[Race]:
    gate, up = _half(1 << 26), _half(1 << 26)
    rivals = _pair(lambda gate, up: functional.silu(gate) * up, gate, up)
    yield Race("2^26", lambda: kata.silu_mul(gate, up), rivals, ("torch.compile",), 0.98)
    yield Race("2^26", lambda: kata.silu_mul(gate, up), rivals, ("eager",), 1.6)


def _copy_2d(kata: Any) -> Iterator[Race]:
    wide = _half(8192, 16384)
    for case, x in (("8192 x 8192, every second column", wide[:, ::2]), ("8192 x 8192, a slice", wide[:, 100:8292])):
        rivals = _pair(lambda x: torch.clone(x, memory_format=torch.contiguous_format), x)
        yield Race(case, partial(kata.copy_2d, x), rivals, ("torch.compile",), 0.95)


def _bias_add(kata: Any) -> Iterator[Race]:
    x, bias = _half(8192, 8192), _half(8192)
    yield Race("8192 x 8192", lambda: kata.bias_add(x, bias), _pair(torch.add, x, bias), ("torch.compile",), 0.95)


def _row_sum_max(kata: Any) -> Iterator[Race]:
    for m, n in ((8192, 8192), (32768, 1024)):
        x = _half(m, n)
        rivals = _pair(lambda x: (x.sum(1), x.amax(1)), x)
        yield Race(f"{m} x {n}", partial(kata.row_sum_max, x), rivals, ("torch.compile",), 0.95)


def _softmax(kata: Any) -> Iterator[Race]:
    for m, n in ((16384, 1024), (8192, 4096), (4096, 16384), (8192, 781)):
        x = torch.randn(m, n, device="cuda")
        rivals = _pair(lambda x: torch.softmax(x, 1), x)
        yield Race(f"{m} x {n} float32", partial(kata.softmax, x), rivals, ("eager", "torch.compile"), 1.0)


def _rms_norm(kata: Any) -> Iterator[Race]:
    for m, n in ((8192, 4096), (4096, 8192)):
        x, weight = _half(m, n), _half(n)
        rivals = _pair(lambda x, weight, n=n: functional.rms_norm(x, (n,), weight, 1e-6), x, weight)
        mine = partial(kata.rms_norm, x, weight, 1e-6)
        yield Race(f"{m} x {n}", mine, rivals, ("torch.compile",), 1.0)


def _softmax_long(kata: Any) -> Iterator[Race]:
    for m, n in ((4096, 65536), (256, 262144)):
        x = _half(m, n)
        rivals = _pair(lambda x: torch.softmax(x, 1), x)
        yield Race(f"{m} x {n}", partial(kata.softmax_long, x), rivals, ("eager", "torch.compile"), 1.0)


def _matmul(kata: Any, at_least: float, sizes: tuple[int, ...]) -> Iterator[Race]:
    for size in sizes:
        a, b = _half(size, size), _half(size, size)
        rivals: dict[str, Call] = {"vendor": partial(torch.matmul, a, b)}
        yield Race(f"{size}^3", partial(kata.matmul, a, b), rivals, ("vendor",), at_least)


def _addmm_relu(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.relu(torch.addmm(bias, x, w))


def _fused_linear(kata: Any, at_least: float) -> Iterator[Race]:
    shapes = [(1024, 1024, 1024), (4096, 4096, 4096), (8192, 8192, 8192), (16, 4096, 4096)]
    for m, n, k in [*shapes, (4096, 14336, 4096), (4096, 4096, 14336)]:
        x, w, bias = _half(m, k), _half(k, n), _half(n)
        rivals: dict[str, Call] = {
            "addmm, relu": partial(_addmm_relu, x, w, bias),
            "addmm_activation": partial(torch._addmm_activation, bias, x, w),
            "max-autotune": _compiled(_addmm_relu, x, w, bias, mode="max-autotune-no-cudagraphs"),
        }
        mine = partial(kata.fused_linear, x, w, bias, "relu")
        yield Race(f"{m} x {n} x {k}", mine, rivals, tuple(rivals), at_least)


RACES: dict[str, Callable[[Any], Iterator[Race]]] = {
    "09_fused_elementwise": _silu_mul,
    "12_strided_copy": _copy_2d,
    "14_bias_add": _bias_add,
    "15_row_sum_max": _row_sum_max,
    "16_softmax": _softmax,
    "17_rms_norm": _rms_norm,
    "18_long_rows": _softmax_long,
    "21_matmul": lambda kata: _matmul(kata, 0.75, (4096,)),
    "22_matmul_l2": lambda kata: _matmul(kata, 0.85, (4096, 8192)),
    "25_fused_gemm": lambda kata: _fused_linear(kata, 0.90),
    "25_fused_gemm_gold": lambda kata: _fused_linear(kata, 1.0),
}
MEANS = ("25_fused_gemm", "25_fused_gemm_gold")
"""Races in which the geometric mean over the cases has to be enough."""


def device_us(call: Call) -> float:
    """The median time of a call on the device: what the host needs to launch it is hidden behind the flush."""
    flush = torch.empty(FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
    times: list[float] = []
    while len(times) < 10 or (sum(times) < CALLS_US and len(times) < 100):
        marks = [tuple(torch.cuda.Event(enable_timing=True) for _ in range(2)) for _ in range(10)]
        for before, after in marks:
            flush.zero_()
            before.record()
            call()
            after.record()
        torch.cuda.synchronize()
        times += [1e3 * before.elapsed_time(after) for before, after in marks]
    return statistics.median(times)


def run(race: Race) -> dict[str, Any]:
    """The times of all, in microseconds, and the ratio that decides."""
    calls = {"mine": race.mine, **race.rivals}
    turns: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()  # compiles, tunes
    for _ in range(TURNS):
        for name, call in calls.items():
            turns[name].append(device_us(call))
    us = {name: statistics.median(times) for name, times in turns.items()}
    ratio = min(us[name] for name in race.against) / us["mine"]
    return {"case": race.case, "us": us, "against": list(race.against), "at_least": race.at_least, "ratio": ratio}


def measure(target: Path, asked: list[str]) -> None:
    """Times all solutions that exist, or those asked for, and writes `target`."""
    chip = torch.cuda.get_device_properties(0)
    about = {"device": chip.name, "torch": torch.__version__, "triton": triton.__version__}
    result: dict[str, Any] = {}
    for name, races in RACES.items():
        file = ROOT / "solutions" / f"{name}.py"
        if not file.exists() or (asked and name not in asked and name[:2] not in asked):
            continue
        torch.compiler.reset()  # what is compiled anew too often is no longer compiled
        rows = []
        try:
            for race in races(load_module(file)):
                rows.append(run(race))
                times = ", ".join(f"{rival} {us:.1f}" for rival, us in rows[-1]["us"].items())
                print(f"{name:22s} {race.case:32s} {rows[-1]['ratio']:.3f} of {race.at_least:g}: {times}", flush=True)
        except Exception as error:  # one that does not run must not cost the others
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
        result[name] = {**about, "rows": rows}
        target.write_text(json.dumps(result, indent=1) + "\n")
        torch.cuda.empty_cache()


HEAD = """\
# Reference kernels on a real GPU

Generated by `scripts/measure_solutions.py --document`; do not edit. Each row is one run on one chip
(docs/measured/solutions.json): device times in microseconds, the median of three turns in which all took part one after
the other, L2 flushed before each call. The ratio is the time of the fastest rival named over that of the reference
kernel: 1 is as fast. float16 unless the case says otherwise.
"""


def document(runs: list[Path]) -> None:
    """Adds runs to docs/measured/solutions.json and writes docs/solutions.md."""
    result: dict[str, Any] = json.loads(MEASURED.read_text()) if MEASURED.exists() else {}
    for run_file in runs:
        result |= json.loads(run_file.read_text())
    MEASURED.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    lines = [HEAD, "| solution | case | us | rivals, us | ratio | against | aim |", "|---|---|---|---|---|---|---|"]
    for name, found in sorted(result.items()):
        for row in found["rows"]:
            us = row["us"]
            rivals = ", ".join(f"{rival} {time:.1f}" for rival, time in us.items() if rival != "mine")
            against, aim = " and ".join(row["against"]), "" if name in MEANS else f"{row['at_least']:g}"
            case = f"{name} | {row['case']}"
            lines.append(f"| {case} | {us['mine']:.1f} | {rivals} | {row['ratio']:.2f} | {against} | {aim} |")
        if name in MEANS and found["rows"]:
            mean = statistics.geometric_mean(row["ratio"] for row in found["rows"])
            lines.append(f"| {name} | geometric mean | | | {mean:.3f} | | {found['rows'][0]['at_least']:g} |")
    machines = {(found["device"], found["torch"], found["triton"]) for found in result.values()}
    lines += [""] + [
        f"Measured on {device}, PyTorch {torch_}, Triton {triton_}." for device, torch_, triton_ in machines
    ]
    TARGET.write_text("\n".join(lines) + "\n")


def main() -> None:
    """Measures, or writes the document."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--document", action="store_true")
    parser.add_argument("output", type=Path, nargs="?")
    parser.add_argument("rest", nargs="*", help="katas to measure, or further runs to add")
    asked = parser.parse_args()
    if asked.document:
        document([Path(name) for name in ([asked.output] if asked.output else []) + asked.rest])
    else:
        measure(asked.output or Path("solutions.json"), asked.rest)


if __name__ == "__main__":
    main()
