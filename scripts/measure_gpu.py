"""Measures the fixed set of workloads, and PyTorch's own operations, on a real GPU; writes a JSON file.

    python scripts/measure_gpu.py OUTPUT.json [--fresh]

Times are device times in microseconds: the median of `triton.testing.do_bench`, L2 flushed before each call.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import triton
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parent))
from workloads import fresh, workloads


def timed(function: Callable[[], Any]) -> tuple[float, float, float]:
    """(20th percentile, median, 80th percentile) in microseconds."""
    low, middle, high = triton.testing.do_bench(function, warmup=10, rep=40, quantiles=[0.2, 0.5, 0.8])
    return low * 1e3, middle * 1e3, high * 1e3


def eager() -> Iterator[tuple[str, str, Callable[[], Any], int]]:
    """(operation, case, function, least bytes) of PyTorch operations that a kernel is compared with."""
    for power in (20, 24, 28):
        n = 1 << power
        x, y, out = (torch.randn(n, device="cuda") for _ in range(3))
        yield "copy_", f"2^{power} f32", lambda x=x, out=out: out.copy_(x), 8 * n
        yield "add", f"2^{power} f32", lambda x=x, y=y, out=out: torch.add(x, y, out=out), 12 * n
        yield "mul", f"2^{power} f32", lambda x=x, y=y: x * y, 12 * n
        yield "exp", f"2^{power} f32", lambda x=x: torch.exp(x), 8 * n
        yield "relu", f"2^{power} f32", lambda x=x: torch.relu(x), 8 * n
        yield "silu", f"2^{power} f32", lambda x=x: functional.silu(x), 8 * n
        yield "gelu", f"2^{power} f32", lambda x=x: functional.gelu(x), 8 * n
        yield "fill_", f"2^{power} f32", lambda out=out: out.zero_(), 4 * n
        half = x.half()
        yield "copy_", f"2^{power} f16", lambda half=half: half.clone(), 4 * n
        yield "_to_copy", f"2^{power} f32 to f16", lambda x=x: x.half(), 6 * n
        yield "silu", f"2^{power} f16", lambda half=half: functional.silu(half), 4 * n
        yield "mul", f"2^{power} f16", lambda half=half: half * half, 4 * n
    for m, n in ((16384, 1024), (8192, 4096), (4096, 16384), (8192, 781), (2048, 2048), (8192, 8192)):
        x = torch.randn(m, n, device="cuda")
        bias = torch.randn(n, device="cuda")
        size = 4 * m * n
        yield "softmax", f"{m}x{n} f32", lambda x=x: torch.softmax(x, 1), 2 * size
        yield "sum", f"{m}x{n} f32", lambda x=x: x.sum(1), size
        yield "amax", f"{m}x{n} f32", lambda x=x: x.amax(1), size
        yield "max", f"{m}x{n} f32", lambda x=x: x.max(1), size
        yield "sub", f"{m}x{n} f32, a column", lambda x=x: x - x[:, :1], 2 * size
        yield "add", f"{m}x{n} f32, a row", lambda x=x, bias=bias: x + bias, 2 * size
        yield "clone transposed", f"{m}x{n} f32", lambda x=x: x.t().contiguous(), 2 * size
        yield "clone", f"{m}x{n} f32", lambda x=x: x.clone(), 2 * size
        yield "layer_norm", f"{m}x{n} f32", lambda x=x, n=n: functional.layer_norm(x, (n,)), 2 * size
        yield "rms_norm", f"{m}x{n} f32", lambda x=x, n=n: functional.rms_norm(x, (n,)), 2 * size
    for m, n in ((4096, 65536), (256, 262144)):
        x = torch.randn(m, n, device="cuda", dtype=torch.float16)
        yield "softmax", f"{m}x{n} f16", lambda x=x: torch.softmax(x, 1), 4 * m * n
        compiled = torch.compile(lambda x: torch.softmax(x, 1))
        yield "compiled softmax", f"{m}x{n} f16", lambda x=x, f=compiled: f(x), 4 * m * n
    shapes = [(s, s, s) for s in (512, 1024, 2048, 4096, 8192)]
    for m, n, k in [*shapes, (16, 4096, 4096), (4096, 14336, 4096), (4096, 4096, 14336)]:
        a = torch.randn(m, k, device="cuda", dtype=torch.float16)
        b = torch.randn(k, n, device="cuda", dtype=torch.float16)
        bias = torch.randn(n, device="cuda", dtype=torch.float16)
        size = 2 * (m * k + k * n + m * n)
        yield "mm", f"{m}x{n}x{k} f16", lambda a=a, b=b: a @ b, size
        yield "addmm", f"{m}x{n}x{k} f16", lambda a=a, b=b, bias=bias: torch.addmm(bias, a, b), size
        if hasattr(torch, "_addmm_activation"):
            fused = torch._addmm_activation
            yield "addmm_activation", f"{m}x{n}x{k} f16", lambda a=a, b=b, bias=bias, f=fused: f(bias, a, b), size
    a, b = (torch.randn(2048, 2048, device="cuda") for _ in range(2))
    yield "mm", "2048x2048x2048 f32", lambda: a @ b, 12 * 2048 * 2048
    for m, n in ((16384, 1024), (8192, 4096), (4096, 16384), (8192, 781)):
        x = torch.randn(m, n, device="cuda")
        compiled = torch.compile(lambda x: torch.softmax(x, 1), dynamic=False)
        yield "compiled softmax", f"{m}x{n} f32", lambda x=x, f=compiled: f(x), 8 * m * n


def main(target: str) -> None:
    """Measures everything and writes `target`."""
    result: dict[str, Any] = {
        "device": torch.cuda.get_device_name(0),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "workloads": {},
        "eager": {},
    }
    only_fresh = "--fresh" in sys.argv
    for row in [*([] if only_fresh else workloads()), *fresh()]:
        try:
            low, middle, high = timed(row.make("cuda"))
        except Exception as error:  # one configuration that does not fit must not cost the others
            print(f"{row.id}: {type(error).__name__}: {str(error)[:100]}", flush=True)
            continue
        result["workloads"][row.id] = {"kind": row.kind, "us": middle, "low": low, "high": high}
        torch.cuda.empty_cache()
    for operation, case, function, size in () if only_fresh else eager():
        try:
            low, middle, high = timed(function)
        except Exception as error:
            print(f"{operation} {case}: {type(error).__name__}: {str(error)[:100]}", flush=True)
            continue
        result["eager"][f"{operation} | {case}"] = {"us": middle, "low": low, "high": high, "bytes": size}
    Path(target).write_text(json.dumps(result, indent=1) + "\n")
    print(f"{len(result['workloads'])} workloads and {len(result['eager'])} operations -> {target}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "measured.json")
