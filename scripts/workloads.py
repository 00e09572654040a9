"""The fixed set of kernels on which the time model is measured and judged.

`measure_gpu.py` runs every row on a real GPU, `model_accuracy.py` on the virtual one. A row is one kernel, shape
and configuration; rows that differ only in a parameter that is swept share a `sweep`, and a kernel with its shape is
one `group`: groups are held out as a whole, never single rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

__all__ = ["Workload", "fresh", "workloads"]


@dataclass(frozen=True)
class Workload:
    """One row. `make(device)` allocates the operands and returns the function to time."""

    kind: str
    group: str
    config: str
    make: Callable[[str], Callable[[], Any]]

    @property
    def id(self) -> str:
        """Unique name of the row."""
        return f"{self.group} | {self.config}"


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def strided_lanes_kernel(x_ptr, y_ptr, n, step, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) + tl.arange(0, BLOCK_SIZE) * step
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(z_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)


@triton.jit
def silu_mul_kernel(gate_ptr, up_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    gate = tl.load(gate_ptr + offs, mask=mask).to(tl.float32)
    up = tl.load(up_ptr + offs, mask=mask).to(tl.float32)
    tl.store(y_ptr + offs, gate * tl.sigmoid(gate) * up, mask=mask)


@triton.jit
def repeat_fma_kernel(x_ptr, y_ptr, n, repeats, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = x
    for _ in range(repeats):
        y = tl.fma(y, x, x)
    tl.store(y_ptr + offs, y, mask=mask)


@triton.jit
def grid_stride_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    step = tl.num_programs(0).to(tl.int64) * BLOCK_SIZE
    for start in range(tl.program_id(0).to(tl.int64) * BLOCK_SIZE, n, step):
        offs = start + tl.arange(0, BLOCK_SIZE)
        mask = offs < n
        tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def copy_2d_kernel(x_ptr, y_ptr, M, N, stride_xm, stride_xn, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    offs_m = tl.program_id(0).to(tl.int64) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = tl.program_id(1).to(tl.int64) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    x = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn, mask=mask)
    tl.store(y_ptr + offs_m[:, None] * N + offs_n[None, :], x, mask=mask)


@triton.jit
def transpose_kernel(x_ptr, y_ptr, M, N, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = tl.program_id(1) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    x = tl.load(x_ptr + offs_m[:, None] * N + offs_n[None, :], mask=mask)
    turned = (offs_n[:, None] < N) & (offs_m[None, :] < M)
    tl.store(y_ptr + offs_n[:, None] * M + offs_m[None, :], tl.trans(x), mask=turned)


@triton.jit
def swapped_transpose_kernel(x_ptr, y_ptr, M, N, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = tl.program_id(1) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    x = tl.load(x_ptr + offs_m[:, None] * N + offs_n[None, :], mask=mask)
    tl.store(y_ptr + offs_n[None, :] * M + offs_m[:, None], x, mask=mask)


@triton.jit
def bias_add_kernel(x_ptr, bias_ptr, y_ptr, M, N, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    offs_m = tl.program_id(0).to(tl.int64) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = tl.program_id(1) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    bias = tl.load(bias_ptr + offs_n, mask=offs_n < N)
    x = tl.load(x_ptr + offs_m[:, None] * N + offs_n[None, :], mask=mask)
    tl.store(y_ptr + offs_m[:, None] * N + offs_n[None, :], x + bias[None, :], mask=mask)


@triton.jit
def row_sum_kernel(x_ptr, s_ptr, N, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + row * N + offs, mask=offs < N, other=0.0)
    tl.store(s_ptr + row, tl.sum(x, 0))


@triton.jit
def softmax_kernel(x_ptr, y_ptr, N, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < N
    x = tl.load(x_ptr + row * N + offs, mask=mask, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * N + offs, e / tl.sum(e, 0), mask=mask)


@triton.jit
def softmax_long_kernel(x_ptr, y_ptr, N, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * N + offs, mask=offs < N, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(x, 0))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(x - higher), 0)
        top = higher
    for start in range(0, N, BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        x = tl.load(x_ptr + row * N + offs, mask=offs < N).to(tl.float32)
        tl.store(y_ptr + row * N + offs, tl.exp(x - top) / total, mask=offs < N)


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < N
    x = tl.load(x_ptr + row * N + offs, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offs, mask=mask).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, 0) / N + eps)
    tl.store(y_ptr + row * N + offs, x * scale * w, mask=mask)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, bias_ptr, M, N, K,
    BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
    GROUP: tl.constexpr, EPILOGUE: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_SIZE_M)
    tiles_n = tl.cdiv(N, BLOCK_SIZE_N)
    first = pid // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    offs_m = (first + pid % (GROUP * tiles_n) % height) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = pid % (GROUP * tiles_n) // height * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
    b_ptrs = b_ptr + offs_k[:, None] * N + offs_n[None, :]
    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_SIZE_K):
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K - start), other=0.0)
        b = tl.load(b_ptrs, mask=(offs_n[None, :] < N) & (offs_k[:, None] < K - start), other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_SIZE_K
        b_ptrs += BLOCK_SIZE_K * N
    if EPILOGUE:
        acc += tl.load(bias_ptr + offs_n, mask=offs_n < N, other=0.0).to(tl.float32)[None, :]
        acc = tl.maximum(acc, 0.0)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def layer_norm_kernel(x_ptr, w_ptr, y_ptr, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < N
    x = tl.load(x_ptr + row * N + offs, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / N
    centred = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centred * centred, 0) / N + eps)
    w = tl.load(w_ptr + offs, mask=mask).to(tl.float32)
    tl.store(y_ptr + row * N + offs, centred * scale * w, mask=mask)


@triton.jit
def column_sum_kernel(x_ptr, s_ptr, M, N, BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr):
    offs_n = tl.program_id(0) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    acc = tl.zeros((BLOCK_SIZE_N,), dtype=tl.float32)
    for start in range(0, M, BLOCK_SIZE_M):
        offs_m = (start + tl.arange(0, BLOCK_SIZE_M)).to(tl.int64)
        mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
        acc += tl.sum(tl.load(x_ptr + offs_m[:, None] * N + offs_n[None, :], mask=mask, other=0.0), 0)
    tl.store(s_ptr + offs_n, acc, mask=offs_n < N)


@triton.jit
def embedding_kernel(index_ptr, table_ptr, y_ptr, N, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    source = tl.load(index_ptr + row)
    offs = tl.arange(0, BLOCK_SIZE)
    mask = offs < N
    tl.store(y_ptr + row * N + offs, tl.load(table_ptr + source * N + offs, mask=mask), mask=mask)


def _flat(kernel: Any, n: int, block: int, operands: int, dtype: torch.dtype, *extra: Any, **options: Any) -> Any:
    def make(device: str) -> Callable[[], Any]:
        inputs = [torch.randn(n, device=device, dtype=dtype) for _ in range(operands)]
        out = torch.empty(n, device=device, dtype=dtype)
        grid = (triton.cdiv(n, block),)
        return lambda: kernel[grid](*inputs, out, n, *extra, BLOCK_SIZE=block, **options)

    return make


def _rows(
    kernel: Any, m: int, n: int, dtype: torch.dtype, *, block: int = 0, warps: int = 4, scalar: bool = False
) -> Any:
    def make(device: str) -> Callable[[], Any]:
        x = torch.randn(m, n, device=device, dtype=dtype)
        out = torch.empty(m if scalar else (m, n), device=device, dtype=dtype)
        size = block or triton.next_power_of_2(n)
        return lambda: kernel[(m,)](x, out, n, BLOCK_SIZE=size, num_warps=warps)

    return make


def _norm(m: int, n: int, dtype: torch.dtype, warps: int, kernel: Any = rms_norm_kernel) -> Any:
    def make(device: str) -> Callable[[], Any]:
        x = torch.randn(m, n, device=device, dtype=dtype)
        w = torch.randn(n, device=device, dtype=dtype)
        out = torch.empty_like(x)
        size = triton.next_power_of_2(n)
        return lambda: kernel[(m,)](x, w, out, n, 1e-6, BLOCK_SIZE=size, num_warps=warps)

    return make


def _tiles(
    kernel: Any, m: int, n: int, tile: tuple[int, int], *, bias: bool = False, layout: str = "", warps: int = 4
) -> Any:
    def make(device: str) -> Callable[[], Any]:
        x = torch.randn(m, n, device=device)
        out = torch.empty(m, n, device=device)
        extra: tuple[Any, ...] = ()
        if layout:
            wide = torch.randn(m, 2 * n, device=device)
            x = {"contiguous": x, "half rows": wide[:, :n], "every second": wide[:, ::2], "transposed": x.t()}[layout]
            extra = (x.stride(0), x.stride(1))
        grid = (triton.cdiv(m, tile[0]), triton.cdiv(n, tile[1]))
        operands = (x, torch.randn(n, device=device), out) if bias else (x, out)
        return lambda: kernel[grid](
            *operands, m, n, *extra, BLOCK_SIZE_M=tile[0], BLOCK_SIZE_N=tile[1], num_warps=warps
        )

    return make


def _matmul(
    m: int, n: int, k: int, dtype: torch.dtype, config: tuple[int, int, int, int, int, int], epilogue: bool
) -> Any:
    def make(device: str) -> Callable[[], Any]:
        a = torch.randn(m, k, device=device, dtype=dtype)
        b = torch.randn(k, n, device=device, dtype=dtype)
        bias = torch.randn(n, device=device, dtype=dtype)
        c = torch.empty(m, n, device=device, dtype=dtype)
        bm, bn, bk, group, warps, stages = config
        grid = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
        return lambda: matmul_kernel[grid](
            a, b, c, bias, m, n, k, BLOCK_SIZE_M=bm, BLOCK_SIZE_N=bn, BLOCK_SIZE_K=bk, GROUP=group,
            EPILOGUE=epilogue, num_warps=warps, num_stages=stages,
        )  # fmt: skip

    return make


def _grid_stride(n: int, per_sm: int, block: int, warps: int) -> Any:
    def make(device: str) -> Callable[[], Any]:
        x = torch.randn(n, device=device)
        out = torch.empty_like(x)
        count = triton.runtime.driver.active.utils.get_device_properties(
            triton.runtime.driver.active.get_current_device()
        )["multiprocessor_count"]
        return lambda: grid_stride_kernel[(count * per_sm,)](x, out, n, BLOCK_SIZE=block, num_warps=warps)

    return make


def _strided(n: int, block: int) -> Any:
    def make(device: str) -> Callable[[], Any]:
        x = torch.randn(n, device=device)
        out = torch.empty_like(x)
        count = triton.cdiv(n, block)
        return lambda: strided_lanes_kernel[(count,)](x, out, n, count, BLOCK_SIZE=block)

    return make


def workloads() -> Iterator[Workload]:
    """Every row, slow and fast."""
    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    for power in (12, 18, 22, 26, 28):
        for block in (32, 128, 256, 512, 1024, 4096, 16384):
            if power < 26 and block in (32, 16384):
                continue
            yield Workload("copy", f"copy 2^{power} f32", f"B={block}", _flat(copy_kernel, 1 << power, block, 1, f32))
    for block in (128, 512, 1024, 4096):
        yield Workload("copy", "copy 2^26 f16", f"B={block}", _flat(copy_kernel, 1 << 26, block, 1, f16))
    for warps in (1, 2, 4, 8, 16):
        make = _flat(copy_kernel, 1 << 26, 1024, 1, f32, num_warps=warps)
        yield Workload("copy", "copy 2^26 f32 by warps", f"w={warps}", make)
    for block in (256, 1024):
        yield Workload("strided lanes", "strided lanes 2^24 f32", f"B={block}", _strided(1 << 24, block))
    for power, dtype in ((20, f32), (24, f32), (28, f32), (26, bf16)):
        for block in (64, 256, 1024, 4096):
            group = f"add 2^{power} {str(dtype)[6:]}"
            yield Workload("elementwise", group, f"B={block}", _flat(add_kernel, 1 << power, block, 2, dtype))
    for power, dtype in ((28, f32), (26, f16)):
        for block in (256, 1024, 4096):
            group = f"silu_mul 2^{power} {str(dtype)[6:]}"
            yield Workload("elementwise", group, f"B={block}", _flat(silu_mul_kernel, 1 << power, block, 2, dtype))
    for repeats in (1, 8, 32, 64, 128, 512):
        make = _flat(repeat_fma_kernel, 1 << 24, 1024, 1, f32, repeats)
        yield Workload("fma", "repeat_fma 2^24 f32", f"r={repeats}", make)
    for per_sm in (1, 2, 4, 8, 16):
        for block, warps in ((256, 4), (1024, 4), (4096, 8)):
            make = _grid_stride(1 << 26, per_sm, block, warps)
            yield Workload("grid stride", f"grid stride 2^26, B={block} w={warps}", f"per SM={per_sm}", make)
    for layout in ("contiguous", "half rows", "every second", "transposed"):
        for tile in ((32, 32), (16, 128), (4, 512)):
            make = _tiles(copy_2d_kernel, 8192, 8192, tile, layout=layout)
            yield Workload("copy 2D", f"copy_2d 8192^2, {layout}", f"tile={tile}", make)
    for size in (2048, 8192):
        for tile in ((16, 16), (32, 32), (64, 64), (128, 32), (128, 64)):
            make = _tiles(transpose_kernel, size, size, tile)
            yield Workload("transpose", f"transpose {size}^2", f"tile={tile}", make)
    for tile in ((16, 16), (32, 32), (64, 64), (1, 1024)):
        make = _tiles(swapped_transpose_kernel, 8192, 8192, tile)
        yield Workload("transpose", "transpose 8192^2, swapped pointers", f"tile={tile}", make)
    for tile in ((1, 1024), (32, 32), (16, 256)):
        make = _tiles(bias_add_kernel, 8192, 8192, tile, bias=True)
        yield Workload("elementwise", "bias_add 8192^2", f"tile={tile}", make)
    for m, n in ((16384, 1024), (8192, 4096), (4096, 16384)):
        for warps in (1, 4, 16):
            make = _rows(row_sum_kernel, m, n, f32, warps=warps, scalar=True)
            yield Workload("reduction", f"row_sum {m}x{n}", f"w={warps}", make)
    for m, n in ((16384, 1024), (8192, 4096), (4096, 16384), (8192, 781), (128, 128)):
        for warps in (1, 4, 8, 16, 32):
            make = _rows(softmax_kernel, m, n, f32, warps=warps)
            yield Workload("softmax", f"softmax {m}x{n} f32", f"w={warps}", make)
    for warps in (2, 4, 8):
        yield Workload(
            "softmax", "softmax 8192x4096 bf16", f"w={warps}", _rows(softmax_kernel, 8192, 4096, bf16, warps=warps)
        )
    for m, n in ((4096, 65536), (256, 262144)):
        for block, warps in ((1024, 4), (4096, 8), (8192, 16)):
            make = _rows(softmax_long_kernel, m, n, f16, block=block, warps=warps)
            yield Workload("long rows", f"softmax_long {m}x{n} f16", f"B={block} w={warps}", make)
    for m, n in ((8192, 4096), (4096, 8192)):
        for warps in (2, 4, 8, 16):
            yield Workload("reduction", f"rms_norm {m}x{n} bf16", f"w={warps}", _norm(m, n, bf16, warps))
    small = [(16, 16, 16, 8, 4, 3), (32, 32, 32, 8, 4, 3), (64, 64, 32, 8, 4, 4)]
    middle = [(64, 128, 64, 8, 4, 4), (128, 128, 32, 8, 4, 4), (128, 128, 64, 8, 4, 3), (128, 128, 64, 8, 8, 3)]
    large = [(128, 256, 64, 8, 8, 3), (256, 128, 64, 8, 8, 3), (128, 128, 64, 1, 4, 3), (128, 256, 64, 1, 8, 3)]
    for size in (512, 1024, 2048, 4096, 8192):
        for config in (small if size < 8192 else small[2:]) + middle + large:
            group = f"matmul {size}^3 f16"
            yield Workload("matmul", group, str(config), _matmul(size, size, size, f16, config, False))
    for config in (small[2], *middle, *large):
        make = _matmul(4096, 4096, 4096, f16, config, True)
        yield Workload("matmul", "matmul+bias+relu 4096^3 f16", str(config), make)
    for m, n, k in ((16, 4096, 4096), (4096, 14336, 4096), (4096, 4096, 14336)):
        for config in ((16, 32, 256, 8, 4, 4), (32, 64, 128, 8, 4, 3)) if m == 16 else (middle[2], large[0], large[1]):
            group = f"matmul {m}x{n}x{k} f16"
            yield Workload("matmul", group, str(config), _matmul(m, n, k, f16, config, False))
    for config in ((64, 64, 32, 8, 4, 3), (128, 128, 32, 8, 8, 3), (128, 64, 32, 8, 4, 3)):
        make = _matmul(2048, 2048, 2048, f32, config, False)
        yield Workload("matmul", "matmul 2048^3 f32 (tf32)", str(config), make)
    yield Workload("launch", "launch of a tiny kernel", "n=64", _flat(copy_kernel, 64, 64, 1, f32))


def _column_sum(m: int, n: int, tile: tuple[int, int]) -> Any:
    def make(device: str) -> Callable[[], Any]:
        x = torch.randn(m, n, device=device)
        out = torch.empty(n, device=device)
        grid = (triton.cdiv(n, tile[1]),)
        return lambda: column_sum_kernel[grid](x, out, m, n, BLOCK_SIZE_M=tile[0], BLOCK_SIZE_N=tile[1])

    return make


def _embedding(rows: int, n: int, warps: int) -> Any:
    def make(device: str) -> Callable[[], Any]:
        table = torch.randn(50_000, n, device=device, dtype=torch.float16)
        # A walk through the table in large steps: no two rows are neighbours.
        index = (torch.arange(rows, device=device) * 7919) % 50_000
        out = torch.empty(rows, n, device=device, dtype=torch.float16)
        size = triton.next_power_of_2(n)
        return lambda: embedding_kernel[(rows,)](index, table, out, n, BLOCK_SIZE=size, num_warps=warps)

    return make


def fresh() -> Iterator[Workload]:
    """Kernels and shapes of their own, measured only after the model's constants had been written down."""
    f32, f16, bf16 = torch.float32, torch.float16, torch.bfloat16
    for block in (64, 256, 1024, 8192):
        group = "copy 3*2^24 bf16"
        yield Workload("fresh", group, f"B={block}", _flat(copy_kernel, 3 << 24, block, 1, bf16))
        yield Workload("fresh", "silu_mul 2^25 bf16", f"B={block}", _flat(silu_mul_kernel, 1 << 25, block, 2, bf16))
    for warps in (1, 4, 8, 16):
        make = _norm(16384, 2048, bf16, warps, layer_norm_kernel)
        yield Workload("fresh", "layer_norm 16384x2048 bf16", f"w={warps}", make)
        make = _norm(4096, 12288, f32, warps, layer_norm_kernel)
        yield Workload("fresh", "layer_norm 4096x12288 f32", f"w={warps}", make)
        yield Workload(
            "fresh", "softmax 32768x512 f32", f"w={warps}", _rows(softmax_kernel, 32768, 512, f32, warps=warps)
        )
        yield Workload("fresh", "embedding 65536x1024 f16", f"w={warps}", _embedding(65536, 1024, warps))
    for tile in ((1, 1024), (16, 256), (64, 128), (128, 32)):
        yield Workload("fresh", "column_sum 8192x8192 f32", f"tile={tile}", _column_sum(8192, 8192, tile))
    for tile in ((32, 32), (64, 64), (32, 128)):
        yield Workload("fresh", "transpose 4096x12288", f"tile={tile}", _tiles(transpose_kernel, 4096, 12288, tile))
    for block, warps in ((512, 4), (2048, 4), (8192, 16)):
        make = _rows(softmax_long_kernel, 2048, 50000, f16, block=block, warps=warps)
        yield Workload("fresh", "softmax_long 2048x50000 f16", f"B={block} w={warps}", make)
    configs = [(32, 64, 64, 8, 4, 3), (64, 64, 64, 8, 4, 4), (128, 128, 64, 8, 8, 4), (128, 256, 64, 8, 8, 4)]
    for m, n, k in ((3072, 3072, 3072), (1536, 6144, 2560), (640, 5120, 5120)):
        for config in configs:
            make = _matmul(m, n, k, bf16, config, True)
            yield Workload("fresh", f"matmul+bias+relu {m}x{n}x{k} bf16", str(config), make)
    for repeats in (16, 96, 256):
        make = _flat(repeat_fma_kernel, 1 << 25, 512, 1, f32, repeats)
        yield Workload("fresh", "repeat_fma 2^25 f32, B=512", f"r={repeats}", make)
