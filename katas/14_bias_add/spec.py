"""What a right bias_add does, and on which inputs it is asked to."""

from __future__ import annotations

import random
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

# The result is contiguous, whatever the inputs are.
CONTIGUOUS = True

# `layout` says how x and bias lie in memory, `values` what lies there; see _lay_out and _set_values.
CASES = [
    Case("32 x 128, one full tile", shape=(32, 128), dtype=F32),
    Case("64 x 256, four tiles", shape=(64, 256), dtype=F32),
    Case("40 x 40, square", shape=(40, 40), dtype=F32),
    Case("33 x 150, ragged", shape=(33, 150), dtype=F32),
    Case("1 x 1", shape=(1, 1), dtype=F32),
    Case("3 x 300, wide", shape=(3, 300), dtype=F32),
    Case("150 x 3, tall", shape=(150, 3), dtype=F32),
    Case("float16", shape=(50, 70), dtype=F16),
    Case("bfloat16", shape=(50, 70), dtype=BF16),
    Case("0 x 5, no rows", shape=(0, 5), dtype=F32),
    Case("5 x 0, no columns", shape=(5, 0), dtype=F32),
    Case("x is a transposed view", shape=(30, 90), dtype=F32, layout=("transposed", "contiguous")),
    Case("x is a slice of wider rows", shape=(30, 90), dtype=F32, layout=("sliced", "contiguous")),
    Case("x is one row, expanded", shape=(30, 90), dtype=F32, layout=("expanded", "contiguous")),
    Case("bias is every second number", shape=(30, 90), dtype=F32, layout=("contiguous", "every second")),
    Case("bias is one number, expanded", shape=(30, 90), dtype=F32, layout=("contiguous", "expanded")),
    # Element (2, 0) lies 2^31 elements after element (0, 0). Only pages that are touched exist: this costs no memory.
    Case("rows 2^30 elements apart", shape=(3, 16), dtype=F16, layout=("far rows", "contiguous")),
    Case("columns 2^30 elements apart", shape=(16, 3), dtype=F16, layout=("far columns", "contiguous")),
    Case("numbers of bias 2^30 elements apart", shape=(16, 3), dtype=F16, layout=("contiguous", "2^30 apart")),
    Case("a drawn shape", shape=None, dtype=BF16),
    Case("large and tiny together", stage="numerics", shape=(33, 40), dtype=F32, values="wide"),
    Case("near the largest float16", stage="numerics", shape=(33, 40), dtype=F16, values="near the largest"),
    Case("x + bias almost cancels", stage="numerics", shape=(33, 40), dtype=BF16, values="cancelling"),
    Case("NaN and infinities", stage="numerics", shape=(33, 40), dtype=F32, values="special"),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw x around 2 and bias around -5, both spread widely, laid out as the case says."""
    draw = torch.Generator().manual_seed(seed)
    drawn = tuple(torch.randint(2, 200, (2,), generator=draw).tolist())
    M, N = drawn if case.shape is None else case.shape
    x = torch.randn((M, N), generator=draw) * 5 + 2
    bias = torch.randn((N,), generator=draw) * 20 - 5
    x, bias = _set_values(x, bias, case.params.get("values", "plain"), case.dtype)
    layouts = case.params.get("layout", ("contiguous", "contiguous"))
    x, bias = (_lay_out(t.to(case.dtype).to(device), layout) for t, layout in zip((x, bias), layouts, strict=True))
    return x, bias


def _set_values(
    x: torch.Tensor, bias: torch.Tensor, values: str, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    limits = torch.finfo(dtype)
    if values == "wide":
        exponents = torch.linspace(-30, 30, bias.numel())
        x, bias = x * 10.0**exponents, bias * 10.0**exponents
    elif values == "near the largest":
        # Sums of up to the largest number, none beyond.
        x, bias = x.sigmoid() * limits.max * 0.6, bias.sigmoid() * limits.max * 0.39
    elif values == "cancelling":
        x = -bias.to(dtype).float() * (1 + x.sign() * 2 * limits.eps)
    elif values == "special":
        inf, nan = float("inf"), float("nan")
        x[::5, ::3], x[1, 1], bias[3], bias[4], bias[-1] = inf, nan, -inf, inf, nan
    return x, bias


def _lay_out(t: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with other strides, on the same device."""
    if layout == "expanded":
        return t[:1].clone().expand(t.shape)
    if layout == "2^30 apart":
        return torch.empty_strided(t.shape, (2**30,), dtype=t.dtype, device=t.device).copy_(t)
    if layout == "every second":
        view = t.new_full((2 * t.numel(),), 77)[::2]
    elif layout == "transposed":
        view = t.new_empty(t.shape[::-1]).t()
    elif layout == "sliced":
        M, N = t.shape
        view = t.new_full((M, N + 13), 77)[:, 6 : N + 6]
    elif layout in ("far rows", "far columns"):
        strides = (2**30, 1) if layout == "far rows" else (1, 2**30)
        view = torch.empty_strided(t.shape, strides, dtype=t.dtype, device=t.device)
    else:
        return t
    return view.copy_(t)


def reference(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """y[m, n] = x[m, n] + bias[n], exactly."""
    return x.double() + bias.double()[None, :]


def torch_op(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """PyTorch's own sum; it aligns shapes at their last dimension, as bias needs it."""
    return x + bias


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    return draw(case.shape, case.dtype), draw((case.shape[1],), case.dtype)


def expected_at(indices: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    return x.flatten()[indices].double() + bias[indices % x.shape[1]].double()


def eager(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """What one would write without Triton."""
    return x + bias


def least_bytes(case: Case) -> int:
    """Every element of x and of bias read once, every element of y written once."""
    M, N = case.shape
    return (2 * M * N + N) * case.dtype.itemsize


def flops(case: Case) -> int:
    """One addition an element."""
    return torch.Size(case.shape).numel()


REFUSED = [
    Refusal("as many numbers as rows", lambda device: (_ones(device, 8, 12), _ones(device, 8))),
    Refusal("bias has one number", lambda device: (_ones(device, 8, 12), _ones(device, 1))),
    Refusal("bias has 2 dimensions", lambda device: (_ones(device, 8, 12), _ones(device, 8, 12))),
    Refusal("x has 1 dimension", lambda device: (_ones(device, 12), _ones(device, 12))),
    Refusal("x has 3 dimensions", lambda device: (_ones(device, 2, 8, 12), _ones(device, 12))),
    Refusal("float32 and float16", lambda device: (_ones(device, 8, 12), _ones(device, 12).half())),
    Refusal("integers", lambda device: (_ones(device, 8, 12).int(), _ones(device, 12).int())),
    # Not "cuda" or "cpu": which of the two runs kernels depends on the machine. `meta` never does.
    Refusal("bias on another device", lambda device: (_ones(device, 8, 12), _ones("meta", 12))),
]


def _ones(device: torch.device | str, *shape: int) -> torch.Tensor:
    return torch.ones(shape, device=device)


def questions(draw: random.Random) -> list[Question]:
    """A square, a wide and a tall matrix, one row, one column, and the bias of a new layer on a wide and a tall one."""
    small, large = sorted(draw.sample(range(2, 60), 2))
    asked = [
        (small, small, False),
        (small, large, False),
        (large, small, False),
        (1, 1, False),
        (1, large, False),
        (large, 1, False),
        (small, large, True),
        (large, small, True),
    ]
    draw.shuffle(asked)
    return [
        Question(
            "wrong_axis",
            (M, N, constant),
            partial(_run_along_the_wrong_axis, M, N, constant),
            "What does a test see of a kernel that adds bias[m]?",
        )
        for M, N, constant in asked
    ]


@triton.jit
def _add_bias_of_the_row(x_ptr, bias_ptr, y_ptr, M, N, BLOCK_SIZE: tl.constexpr):
    """The wrong kernel: offsets and mask of bias follow the rows. x and y are contiguous and fit one tile."""
    offs = tl.arange(0, BLOCK_SIZE)
    places = offs[:, None] * N + offs[None, :]
    mask = (offs[:, None] < M) & (offs[None, :] < N)
    bias = tl.load(bias_ptr + offs, mask=offs < M)
    tl.store(y_ptr + places, tl.load(x_ptr + places, mask=mask) + bias[:, None], mask=mask)


def _run_along_the_wrong_axis(M: int, N: int, constant: bool, lab: Lab) -> str:
    """Runs the wrong kernel and looks at its accesses, then at its result."""
    x = torch.arange(M * N, dtype=F32).reshape(M, N)
    bias = torch.full((N,), 7.0) if constant else torch.arange(N, dtype=F32) + 1
    y = torch.empty_like(x)
    block_size = triton.next_power_of_2(max(M, N))
    (launch,) = lab.launches(lambda: _add_bias_of_the_row[(1,)](x, bias, y, M, N, BLOCK_SIZE=block_size))
    if launch.violations:
        return "out of bounds"
    return "passes" if torch.equal(y, x + bias) else "wrong values"
