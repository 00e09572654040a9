"""Runs the same kernels on a real GPU and on the virtual one, and says how far their results are apart.

    python scripts/fidelity.py OUTPUT.json

Needs a GPU. For bf16 and fp16 results the distance is in units in the last place of the format; for tf32 products
it is the ratio of the mean errors against float64. `docs/virtual-gpu.md` holds the figures of one such run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import workloads as rows  # noqa: E402  (a script beside this one)

from checker.vgpu.driver import VirtualGpu  # noqa: E402  (found through the line above)


@triton.jit
def chain_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Products, contracted with a sum and alone."""
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    # Contracted with the product, and the product alone, and a difference.
    tl.store(z_ptr + offs, (x * y + x) - y * y + x * x, mask=mask)


@triton.jit
def functions_kernel(x_ptr, z_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Special functions of x."""
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    z = tl.exp(x) / (1.0 + tl.abs(x)) + tl.log(1.0 + x * x) * tl.rsqrt(1.0 + x * x) + tl.sigmoid(x) + tl.sin(x)
    tl.store(z_ptr + offs, z, mask=mask)


@triton.jit
def integers_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Division and remainder of negatives, shift and wrap."""
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=1)
    y = tl.load(y_ptr + offs, mask=mask, other=1)
    tl.store(z_ptr + offs, (x // y) * 7 + x % y + (x >> 3) * y + tl.maximum(x, y) * 65537, mask=mask)


@triton.jit
def casts_kernel(x_ptr, z_ptr, n, BLOCK_SIZE: tl.constexpr):
    """To narrower formats and back."""
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    z = x.to(tl.bfloat16).to(tl.float32) + x.to(tl.float16).to(tl.float32) + (x * 1000.0).to(tl.int32).to(tl.float32)
    tl.store(z_ptr + offs, z, mask=mask)


@triton.jit
def dot_kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr):
    """One tile product."""
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(c_ptr + m[:, None] * N + n[None, :], tl.dot(a, b, input_precision=PRECISION).to(c_ptr.dtype.element_ty))


def ordered(values: torch.Tensor) -> torch.Tensor:
    """Floating-point numbers as integers that count representable values."""
    width = {2: torch.int16, 4: torch.int32}[values.element_size()]
    bits = values.contiguous().view(width).long()
    top = 1 << (8 * values.element_size() - 1)
    return torch.where(bits < 0, -(bits + top), bits)


def compare(real: torch.Tensor, virtual: torch.Tensor) -> dict[str, float]:
    """Largest and mean distance in units in the last place, and the share of equal bits."""
    if not real.dtype.is_floating_point:
        return {"equal": float((real == virtual).double().mean())}
    both_nan = torch.isnan(real) & torch.isnan(virtual)
    distance = (ordered(real) - ordered(virtual)).abs().double()
    distance[both_nan] = 0
    scale = max(float(real.double().abs()[torch.isfinite(real)].max()), 1e-30)
    limits = torch.finfo(real.dtype)
    unit = 2.0 ** torch.tensor(scale, dtype=torch.float64).log2().floor().item() * limits.eps
    apart = (real.double() - virtual.double()).abs()
    apart[~torch.isfinite(apart)] = 0
    return {
        "equal": float((distance == 0).double().mean()),
        "max_ulp": float(distance.max()),
        "max_ulp_at_scale": float(apart.max()) / unit,
    }


def experiments() -> dict[str, tuple[Callable[[list[torch.Tensor]], Any], list[torch.Tensor], Any]]:
    """Name -> (launch on operands, operands on the CPU with the output last, the truth in float64 or None)."""
    torch.manual_seed(0)
    n = 100_003
    found: dict[str, tuple[Callable[[list[torch.Tensor]], Any], list[torch.Tensor], Any]] = {}
    grid = (triton.cdiv(n, 1024),)
    for name in ("float32", "float16", "bfloat16"):
        dtype = getattr(torch, name)
        x, y = (torch.randn(n).mul(3).to(dtype) for _ in range(2))
        out = torch.empty_like(x)
        found[f"add {name}"] = (lambda t: rows.add_kernel[grid](*t, n, BLOCK_SIZE=1024), [x, y, out], None)
        found[f"contracted chain {name}"] = (lambda t: chain_kernel[grid](*t, n, BLOCK_SIZE=1024), [x, y, out], None)
        found[f"exp, log, rsqrt, sin {name}"] = (
            lambda t: functions_kernel[grid](*t, n, BLOCK_SIZE=1024), [x, out], None)  # fmt: skip
        found[f"repeat_fma {name}"] = (
            lambda t: rows.repeat_fma_kernel[grid](*t, n, 8, BLOCK_SIZE=1024), [x / 4, out], None)  # fmt: skip
        m = torch.randn(64, 1000).mul(4).to(dtype)
        found[f"softmax {name}"] = (
            lambda t: rows.softmax_kernel[(64,)](*t, 1000, BLOCK_SIZE=1024),
            [m, torch.empty_like(m)], None)  # fmt: skip
        found[f"row sum in {name}"] = (
            lambda t: rows.row_sum_kernel[(64,)](*t, 1000, BLOCK_SIZE=1024),
            [m, torch.empty(64, dtype=dtype)], None)  # fmt: skip
    i, j = torch.randint(-100000, 100000, (n,), dtype=torch.int32), torch.randint(1, 999, (n,), dtype=torch.int32)
    j = torch.where(torch.arange(n) % 2 == 0, j, -j)
    found["integer division, remainder, shift, wrap"] = (
        lambda t: integers_kernel[grid](*t, n, BLOCK_SIZE=1024), [i, j, torch.empty_like(i)], None)  # fmt: skip
    x = torch.randn(n) * torch.logspace(-6, 6, n)
    found["casts to bf16, fp16, int32 and back"] = (
        lambda t: casts_kernel[grid](*t, n, BLOCK_SIZE=1024), [x, torch.empty_like(x)], None)  # fmt: skip
    for name in ("float32", "float16", "bfloat16"):
        dtype = getattr(torch, name)
        a, b = torch.randn(64, 128).to(dtype), torch.randn(128, 64).to(dtype)
        for precision in ("tf32", "ieee") if name == "float32" else ("tf32",):
            found[f"dot 64x64x128 {name} {precision}"] = (
                lambda t, p=precision: dot_kernel[(1,)](*t, 64, 64, 128, p),
                [a, b, torch.empty(64, 64)], a.double() @ b.double())  # fmt: skip
        a, b = torch.randn(300, 500).to(dtype), torch.randn(500, 200).to(dtype)
        bias, c = torch.zeros(200).to(dtype), torch.empty(300, 200).to(dtype)

        def matmul(t: list[torch.Tensor]) -> None:
            a, b, bias, c = t
            rows.matmul_kernel[(5 * 4,)](a, b, c, bias, 300, 200, 500, BLOCK_SIZE_M=64, BLOCK_SIZE_N=64,
                                         BLOCK_SIZE_K=32, GROUP=8, EPILOGUE=False)  # fmt: skip

        found[f"matmul 300x200x500 {name}"] = (matmul, [a, b, bias, c], a.double() @ b.double())
    return found


def main(target: str) -> None:
    """Runs every experiment on both devices and writes the distances."""
    real_driver = triton.runtime.driver.active
    real_driver.get_current_target()
    virtual = VirtualGpu("h200")
    report: dict[str, Any] = {"device": torch.cuda.get_device_name(0), "triton": triton.__version__, "results": {}}
    for name, (launch, operands, truth) in experiments().items():
        triton.runtime.driver.set_active(real_driver)
        on_gpu = [value.cuda() for value in operands]
        launch(on_gpu)
        real = on_gpu[-1].cpu()
        virtual.activate()
        on_cpu = [value.clone() for value in operands]
        launch(on_cpu)
        figures = compare(real, on_cpu[-1])
        if truth is not None:
            figures["error_real"] = float((real.double() - truth).abs().mean())
            figures["error_virtual"] = float((on_cpu[-1].double() - truth).abs().mean())
        report["results"][name] = figures
        print(f"{name:48s}", {key: float(f"{value:.4g}") for key, value in figures.items()}, flush=True)
    triton.runtime.driver.set_active(real_driver)
    Path(target).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "fidelity.json")
