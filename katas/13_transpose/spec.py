"""What a right transpose does, and on which inputs it is asked to."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
import triton

from checker.cases import Case, Question, Refusal

if TYPE_CHECKING:
    from checker.lab import Lab

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16

# The result is contiguous, whatever the inputs are.
CONTIGUOUS = True

# `layout` says how x lies in memory; see _lay_out.
CASES = [
    Case("64 x 64", shape=(64, 64), dtype=F32),
    Case("1 x 1", shape=(1, 1), dtype=F32),
    Case("40 x 40, ragged", shape=(40, 40), dtype=F32),
    Case("64 x 128", shape=(64, 128), dtype=F32),
    Case("33 x 100, ragged", shape=(33, 100), dtype=F32),
    Case("3 x 200, wide", shape=(3, 200), dtype=F32),
    Case("150 x 3, tall", shape=(150, 3), dtype=F32),
    Case("float16", shape=(50, 70), dtype=F16),
    Case("bfloat16", shape=(50, 70), dtype=BF16),
    Case("int8", shape=(50, 70), dtype=torch.int8),
    Case("0 x 5, empty", shape=(0, 5), dtype=F32),
    Case("x is a transposed view", shape=(30, 90), dtype=F32, layout="transposed"),
    Case("x is a slice of wider rows", shape=(30, 90), dtype=F32, layout="sliced"),
    Case("x is every second column", shape=(30, 90), dtype=F32, layout="every second column"),
    Case("x is one row, expanded", shape=(30, 90), dtype=F32, layout="expanded"),
    # Row 2 begins 2^31 elements after row 0. Only pages that are touched exist: this costs no memory.
    Case("rows 2^30 elements apart", shape=(3, 16), dtype=F32, layout="far rows"),
    Case("a drawn shape", shape=None, dtype=F32),
    Case("NaN and infinities", stage="numerics", shape=(33, 40), dtype=F32, special=True),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor]:
    """Draw x, spread widely around 2, laid out as the case says."""
    draw = torch.Generator().manual_seed(seed)
    drawn = tuple(torch.randint(2, 120, (2,), generator=draw).tolist())
    shape = drawn if case.shape is None else case.shape
    x = (torch.randn(shape, generator=draw) * 20 + 2).to(case.dtype)
    if case.params.get("special"):
        x.view(-1)[::7] = float("nan")
        x.view(-1)[1::7] = float("inf")
        x.view(-1)[2::7] = -float("inf")
    return (_lay_out(x.to(device), case.params.get("layout", "contiguous")),)


def _lay_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with other strides, on the same device."""
    M, N = x.shape
    if layout == "expanded":
        return x[:1].clone().expand(M, N)
    if layout == "transposed":
        view = x.new_empty((N, M)).t()
    elif layout == "sliced":
        view = x.new_full((M, N + 13), 77)[:, 6 : N + 6]
    elif layout == "every second column":
        view = x.new_full((M, 2 * N), 77)[:, ::2]
    elif layout == "far rows":
        view = torch.empty_strided((M, N), (2**30, 1), dtype=x.dtype, device=x.device)
    else:
        return x
    return view.copy_(x)


def reference(x: torch.Tensor) -> torch.Tensor:
    """y[n, m] = x[m, n]."""
    return x.t().double()


def torch_op(x: torch.Tensor) -> torch.Tensor:
    """PyTorch's own: a view, then a copy into contiguous memory."""
    return x.t().contiguous()


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> tuple[torch.Tensor]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    return (draw(case.shape, case.dtype),)


def expected_at(indices: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    M = x.shape[0]
    return x[indices % M, indices // M].double()


def eager(x: torch.Tensor) -> torch.Tensor:
    """What one would write without Triton."""
    return x.t().contiguous()


def plain_copy(x: torch.Tensor) -> torch.Tensor:
    """What moves the same bytes without turning anything."""
    return x.clone()


def least_bytes(case: Case) -> int:
    """Every element read once and written once."""
    return 2 * torch.Size(case.shape).numel() * case.dtype.itemsize


def flops(case: Case) -> int:
    """A transpose computes nothing."""
    return 0


REFUSED = [
    Refusal("1 dimension", lambda device: (torch.ones(16, device=device),)),
    Refusal("3 dimensions", lambda device: (torch.ones(2, 3, 4, device=device),)),
]


def questions(draw: random.Random) -> list[Question]:
    """Four tiles: one a row, one a column, two drawn."""
    tiles = [(1, 64), (64, 1), *draw.sample([(2, 32), (4, 16), (32, 2), (16, 4), (8, 8), (32, 32)], 2)]
    draw.shuffle(tiles)
    asked = []
    for block_size_m, block_size_n in tiles:
        dtype = draw.choice([F16, F32])
        asked.append(
            Question(
                "fetched_per_useful_byte",
                (block_size_m, block_size_n, dtype.itemsize),
                partial(_traced_ratios, block_size_m, block_size_n, dtype),
                "How many bytes move for each byte asked for, on the load and on the store?",
                tolerance=0.01,
            )
        )
    return asked


def _traced_ratios(block_size_m: int, block_size_n: int, dtype: torch.dtype, lab: Lab) -> tuple[float, float]:
    """The sectors that the solved kernel touches with this tile, on a matrix whose rows begin on a sector's edge."""
    M, N = 64, 128
    x = torch.ones((M, N), dtype=dtype)
    y = torch.empty((N, M), dtype=dtype)
    kernel = lab.reference_module.transpose_kernel
    grid = (triton.cdiv(M, block_size_m) * triton.cdiv(N, block_size_n),)

    def transpose() -> None:
        kernel[grid](x, y, M, N, *x.stride(), *y.stride(), BLOCK_SIZE_M=block_size_m, BLOCK_SIZE_N=block_size_n)

    (launch,) = lab.launches(transpose)
    (load,), (store,) = launch.loads, launch.stores
    return load.bytes_fetched_per_useful_byte, store.bytes_fetched_per_useful_byte
