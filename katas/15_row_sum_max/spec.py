"""What a right row_sum_max does, and on which inputs it is asked to."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from checker.cases import Case, Question, Refusal

if TYPE_CHECKING:
    from checker.lab import Lab

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
INF = float("inf")

# `layout` says how x lies in memory, `values` what lies there; see _lay_out and _set_values.
CASES = [
    Case("64 x 64, a power of two", shape=(64, 64), dtype=F32),
    Case("64 x 100, ragged", shape=(64, 100), dtype=F32),
    Case("64 x 100, all-negative rows", shape=(64, 100), dtype=F32, values="negative"),
    Case("64 x 64, all-negative rows", shape=(64, 64), dtype=F32, values="negative"),
    Case("1 x 1", shape=(1, 1), dtype=F32),
    Case("40 x 7, many short rows", shape=(40, 7), dtype=F32),
    Case("8 x 5000, long rows", shape=(8, 5000), dtype=F32),
    Case("float16", shape=(5, 300), dtype=F16),
    Case("bfloat16", shape=(5, 300), dtype=BF16),
    Case("0 x 5, no rows", shape=(0, 5), dtype=F32),
    Case("x is a transposed view", shape=(6, 90), dtype=F16, layout="transposed"),
    Case("x is a slice of wider rows", shape=(6, 90), dtype=F16, layout="sliced"),
    Case("x is one row, expanded", shape=(6, 90), dtype=F16, layout="expanded"),
    # Element (2, 0) lies 2^31 elements after element (0, 0). Only pages that are touched exist: this costs no memory.
    Case("rows 2^30 elements apart", shape=(3, 16), dtype=F16, layout="far rows"),
    Case("columns 2^30 elements apart", shape=(16, 3), dtype=F16, layout="far columns"),
    Case("a drawn shape", shape=None, dtype=BF16),
    Case("sums of 1000 float16 values", stage="numerics", shape=(40, 1000), dtype=F16, values="close together"),
    Case("sums of 1000 bfloat16 values", stage="numerics", shape=(40, 1000), dtype=BF16, values="close together"),
    Case("partial sums past 65504", stage="numerics", shape=(6, 2000), dtype=F16, values="there and back"),
    Case("tiny numbers", stage="numerics", shape=(64, 100), dtype=F32, values="tiny"),
    Case("near the largest float32", stage="numerics", shape=(6, 100), dtype=F32, values="near the largest"),
    Case("infinities", stage="numerics", shape=(6, 100), dtype=F16, values="infinities"),
    Case("infinities in float32", stage="numerics", shape=(6, 100), dtype=F32, values="infinities"),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor]:
    """Draw x around 2, spread widely, or as the case says, laid out as it says."""
    draw = torch.Generator().manual_seed(seed)
    rows, columns = torch.randint(2, 30, (1,), generator=draw), torch.randint(2, 1500, (1,), generator=draw)
    shape = (int(rows), int(columns)) if case.shape is None else case.shape
    x = torch.randn(shape, generator=draw) * 3 + 2
    x = _set_values(x, case.params.get("values", "plain")).to(case.dtype)
    return (_lay_out(x.to(device), case.params.get("layout", "contiguous")),)


def _set_values(x: torch.Tensor, values: str) -> torch.Tensor:
    half = x.shape[1] // 2
    if values == "negative":
        return -x.abs() - 0.5
    if values == "close together":
        return 1 + x * 0.03
    if values == "there and back":
        # The first half of a row adds up to more than float16 can hold, the second half takes it away again.
        x = 100 + x * 5
        x[:, half:] = -x[:, half:]
    elif values == "tiny":
        x = x * 1e-30
    elif values == "near the largest":
        # Each sum is within the range, and so is every partial one.
        x = (x.sigmoid() + 1) * (torch.finfo(F32).max / (2.1 * x.shape[1]))
    elif values == "infinities":
        x[1], x[2, 3], x[3, 4] = -INF, INF, -INF
        x[4, 5], x[4, 6] = INF, -INF
    return x


def _lay_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with other strides, on the same device."""
    M, N = x.shape
    if layout == "expanded":
        return x[:1].clone().expand(M, N)
    if layout == "transposed":
        view = x.new_empty((N, M)).t()
    elif layout == "sliced":
        view = x.new_full((M, N + 13), 77)[:, 6 : N + 6]
    elif layout in ("far rows", "far columns"):
        strides = (2**30, 1) if layout == "far rows" else (1, 2**30)
        view = torch.empty_strided((M, N), strides, dtype=x.dtype, device=x.device)
    else:
        return x
    return view.copy_(x)


def reference(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum and maximum of each row, in float64."""
    return x.double().sum(dim=1), x.double().amax(dim=1)


def torch_op(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """PyTorch's own: two operations, each of which reads x."""
    return x.sum(dim=1), x.amax(dim=1)


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> tuple[torch.Tensor]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    return (draw(case.shape, case.dtype),)


def expected_at(indices: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The reference at indices of both results, which are as long as x has rows."""
    rows = x[indices].double()
    return rows.sum(dim=1), rows.amax(dim=1)


def eager(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What one would write without Triton."""
    return x.sum(dim=1), x.amax(dim=1)


def least_bytes(case: Case) -> int:
    """Every element read once, two numbers written a row."""
    M, N = case.shape
    return (M * N + 2 * M) * case.dtype.itemsize


def flops(case: Case) -> int:
    """An addition and a comparison an element."""
    return 2 * torch.Size(case.shape).numel()


REFUSED = [
    Refusal("1 dimension", lambda device: (torch.ones(16, device=device),)),
    Refusal("3 dimensions", lambda device: (torch.ones(2, 3, 4, device=device),)),
    Refusal("no columns", lambda device: (torch.ones(5, 0, device=device),)),
    Refusal("integers", lambda device: (torch.ones(4, 8, device=device, dtype=torch.int32),)),
    Refusal("a row of 65537", lambda device: (torch.ones(1, 65537, device=device),)),
]


def questions(draw: random.Random) -> list[Question]:
    """A copy and a reduction, each on one warp and on several."""
    reduction, other = draw.sample(["sum", "max"], 2)
    asked = [(reduction, 1), (reduction, draw.choice([2, 4, 8])), ("copy", draw.choice([1, 2, 4, 8]))]
    asked.append((other, draw.choice([1, 2, 4, 8])))
    draw.shuffle(asked)
    return [
        Question(
            "exchanges",
            (kernel, num_warps),
            partial(_compiled_exchanges, kernel, num_warps),
            "Does the compiled program contain shuffles, barriers, shared memory?",
        )
        for kernel, num_warps in asked
    ]


@triton.jit
def _copy(x_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))


@triton.jit
def _sum(x_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    tl.store(y_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK_SIZE)), axis=0))


@triton.jit
def _max(x_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    tl.store(y_ptr, tl.max(tl.load(x_ptr + tl.arange(0, BLOCK_SIZE)), axis=0))


_KERNELS = {"copy": _copy, "sum": _sum, "max": _max}

# As PTX spells it, and as AMD's assembly does.
_SHUFFLE = re.compile(r"\bshfl\.|\bredux\.|_dpp\b|\bds_bpermute|\bds_swizzle|\bv_permlane|\bv_readlane")
_BARRIER = re.compile(r"\bbar\.sync|\bbarrier\.sync|\bbarrier\.cta|^\s*s_barrier", re.MULTILINE)


def _compiled_exchanges(kernel: str, num_warps: int, lab: Lab) -> tuple[bool, bool, bool]:
    """Compiles the kernel for the chip at hand and reads the machine code."""
    x, y = torch.ones(1024), torch.empty(1024)

    def launch() -> None:
        _KERNELS[kernel][(1,)](x, y, BLOCK_SIZE=1024, num_warps=num_warps)

    code = list(lab.texts(launch).values())[-1]
    (trace,) = lab.launches(launch)
    return bool(_SHUFFLE.search(code)), bool(_BARRIER.search(code)), trace.shared_bytes > 0
