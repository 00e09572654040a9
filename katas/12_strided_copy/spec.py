"""What a right copy_2d does, and on which layouts it is asked to."""

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

# The copy is contiguous, whatever x is.
CONTIGUOUS = True

# `layout` says how x lies in memory; see _lay_out.
CASES = [
    Case("64 x 256", shape=(64, 256), dtype=F32),
    Case("1 x 1", shape=(1, 1), dtype=F32),
    Case("33 x 300, ragged", shape=(33, 300), dtype=F32),
    Case("40 x 40, ragged", shape=(40, 40), dtype=F32),
    Case("2 x 1000, wide", shape=(2, 1000), dtype=F32),
    Case("300 x 3, tall", shape=(300, 3), dtype=F32),
    Case("float16", shape=(50, 70), dtype=F16),
    Case("bfloat16", shape=(50, 70), dtype=BF16),
    Case("int8", shape=(50, 70), dtype=torch.int8),
    Case("0 x 5, empty", shape=(0, 5), dtype=F32),
    Case("x is a transposed view", shape=(30, 90), dtype=F32, layout="transposed"),
    Case("x is a slice of wider rows", shape=(30, 90), dtype=F32, layout="sliced"),
    Case("x is every second column", shape=(30, 90), dtype=F32, layout="every second column"),
    Case("x is every third row", shape=(30, 90), dtype=F32, layout="every third row"),
    Case("x is one row, expanded", shape=(30, 90), dtype=F32, layout="one row"),
    Case("x is one column, expanded", shape=(30, 90), dtype=F32, layout="one column"),
    Case("x is a sliding window", shape=(30, 90), dtype=F32, layout="sliding window"),
    # Element (2, 0) or (0, 2) lies 2^31 elements after the first. Only touched pages exist: this costs nothing.
    Case("rows 2^30 elements apart", shape=(3, 16), dtype=F32, layout="far rows"),
    Case("columns 2^30 elements apart", shape=(16, 3), dtype=F32, layout="far columns"),
    Case("a drawn shape", shape=None, dtype=F32),
    Case("NaN and infinities", stage="numerics", shape=(33, 40), dtype=F32, special=True),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor]:
    """Draw x, spread widely around 2, laid out as the case says."""
    draw = torch.Generator().manual_seed(seed)
    drawn = tuple(torch.randint(2, 200, (2,), generator=draw).tolist())
    shape = drawn if case.shape is None else case.shape
    x = (torch.randn(shape, generator=draw) * 20 + 2).to(case.dtype)
    if case.params.get("special"):
        x.view(-1)[::7] = float("nan")
        x.view(-1)[1::7] = float("inf")
        x.view(-1)[2::7] = -float("inf")
    return (_lay_out(x.to(device), case.params.get("layout", "contiguous")),)


def _lay_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with other strides, on the same device; of a view that repeats elements, the first ones."""
    M, N = x.shape
    if layout == "one row":
        return x[:1].clone().expand(M, N)
    if layout == "one column":
        return x[:, :1].clone().expand(M, N)
    if layout == "sliding window":
        # Row m begins one element after row m - 1: most elements belong to many rows.
        return x.flatten()[: M + N - 1].clone().unfold(0, N, 1)
    if layout == "transposed":
        view = x.new_empty((N, M)).t()
    elif layout == "sliced":
        view = x.new_full((M, N + 13), 77)[:, 6 : N + 6]
    elif layout == "every second column":
        view = x.new_full((M, 2 * N), 77)[:, ::2]
    elif layout == "every third row":
        view = x.new_full((3 * M, N), 77)[::3]
    elif layout == "far rows":
        view = torch.empty_strided((M, N), (2**30, 1), dtype=x.dtype, device=x.device)
    elif layout == "far columns":
        view = torch.empty_strided((M, N), (1, 2**30), dtype=x.dtype, device=x.device)
    else:
        return x
    return view.copy_(x)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Every element where it was."""
    return x.double()


def torch_op(x: torch.Tensor) -> torch.Tensor:
    """PyTorch's own, into contiguous memory."""
    return x.clone(memory_format=torch.contiguous_format)


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> tuple[torch.Tensor]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    M, N = case.shape
    if case.layout == "sliced":
        return (draw((M, N + 64), case.dtype)[:, 32 : N + 32],)
    return (draw((M, N), case.dtype),)


def expected_at(indices: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    return x[indices // x.shape[1], indices % x.shape[1]].double()


def eager(x: torch.Tensor) -> torch.Tensor:
    """What one would write without Triton."""
    return x.clone(memory_format=torch.contiguous_format)


def least_bytes(case: Case) -> int:
    """Every element read once and written once."""
    return 2 * torch.Size(case.shape).numel() * case.dtype.itemsize


def flops(case: Case) -> int:
    """A copy computes nothing but addresses."""
    return 0


REFUSED = [
    Refusal("1 dimension", lambda device: (torch.ones(16, device=device),)),
    Refusal("3 dimensions", lambda device: (torch.ones(2, 3, 4, device=device),)),
]


def questions(draw: random.Random) -> list[Question]:
    """Six views of drawn size; about half of them come out right."""
    M, N = draw.randrange(3, 40), draw.randrange(41, 90)
    wide = N + draw.randrange(1, 30)
    views = [
        # All rows, some rows, one row of wider ones, a single column in memory order.
        *draw.sample([(M, N, N, 1), (1, N, wide, 1), (1, N, 1, 1), (M, 1, 1, N)], 3),
        # Transposed, a slice of wider rows, a column of a matrix, every second element, one row expanded.
        *draw.sample([(M, N, 1, M), (M, N, wide, 1), (M, 1, wide, 1), (1, N, 2 * N, 2), (M, N, 0, 1)], 3),
    ]
    draw.shuffle(views)
    return [
        Question(
            "stride_blind_is_right",
            view,
            partial(_blind_copy_is_right, view),
            "Does a kernel that ignores strides copy this view correctly?",
        )
        for view in views
    ]


def _blind_copy_is_right(view: tuple[int, int, int, int], lab: Lab) -> bool:
    """Runs the solved kernel on the view, telling it the strides that a contiguous tensor would have."""
    M, N, stride_m, stride_n = view
    x = torch.arange(float(M * max(N, stride_m, 1) * max(stride_n, 1) + M * N)).as_strided((M, N), (stride_m, stride_n))
    y = torch.zeros(M, N)
    kernel = lab.reference_module.copy_kernel
    tile = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 128}
    grid = (triton.cdiv(M, tile["BLOCK_SIZE_M"]) * triton.cdiv(N, tile["BLOCK_SIZE_N"]),)
    lab.result(lambda: kernel[grid](x, y, M, N, N, 1, N, 1, **tile))
    return torch.equal(x, y)
