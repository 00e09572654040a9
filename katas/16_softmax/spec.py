"""What a right softmax does, and on which inputs it is asked to."""

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
INF, NAN = float("inf"), float("nan")

# Units in the last place that a float32 result may always err by. The chip computes exp with ex2.approx and divides
# with div.full: two each (CUDA C++ Programming Guide, "Mathematical Functions"), which PyTorch on a CPU does not show.
# The rounding of a sum over a row adds up to 4.5 (the worst of 2400 draws), and PyTorch may be lucky with its own.
UNITS = 8.0

# The result is contiguous, whatever the inputs are.
CONTIGUOUS = True

# `layout` says how x lies in memory, `values` what lies there; see _lay_out and _set_values.
CASES = [
    Case("64 x 64, a power of two", shape=(64, 64), dtype=F32),
    Case("64 x 100, ragged", shape=(64, 100), dtype=F32),
    Case("1 x 1", shape=(1, 1), dtype=F32),
    Case("40 x 7, many short rows", shape=(40, 7), dtype=F32),
    Case("8 x 5000, long rows", shape=(8, 5000), dtype=F32),
    Case("float16", shape=(5, 300), dtype=F16),
    Case("bfloat16", shape=(5, 300), dtype=BF16),
    Case("0 x 5, no rows", shape=(0, 5), dtype=F32),
    Case("5 x 0, no columns", shape=(5, 0), dtype=F32),
    Case("x is a transposed view", shape=(6, 90), dtype=F16, layout="transposed"),
    Case("x is a slice of wider rows", shape=(6, 90), dtype=F16, layout="sliced"),
    Case("x is one row, expanded", shape=(6, 90), dtype=F16, layout="expanded"),
    # Element (2, 0) lies 2^31 elements after element (0, 0). Only pages that are touched exist: this costs no memory.
    Case("rows 2^30 elements apart", shape=(3, 16), dtype=F16, layout="far rows"),
    Case("columns 2^30 elements apart", shape=(16, 3), dtype=F16, layout="far columns"),
    Case("a drawn shape", shape=None, dtype=BF16),
    Case("large logits, around 1000", stage="numerics", shape=(64, 100), dtype=F32, values=1000.0),
    Case("all-negative rows, around -1000", stage="numerics", shape=(64, 100), dtype=F32, values=-1000.0),
    Case("all-negative rows, around -20", stage="numerics", shape=(64, 100), dtype=F32, values=-20.0),
    Case("large float16 logits, around 30000", stage="numerics", shape=(4, 100), dtype=F16, values=30000.0),
    Case("large bfloat16 logits, around 100", stage="numerics", shape=(4, 100), dtype=BF16, values=100.0),
    Case("tiny logits", stage="numerics", shape=(4, 100), dtype=F32, values="tiny"),
    Case("sums of 1000 float16 values", stage="numerics", shape=(40, 1000), dtype=F16, values="close together"),
    Case("sums of 1000 bfloat16 values", stage="numerics", shape=(40, 1000), dtype=BF16, values="close together"),
    Case("some logits are -inf", stage="numerics", shape=(64, 100), dtype=F32, values="some -inf"),
    Case("a row of -inf", stage="numerics", shape=(6, 100), dtype=F16, values="a row of -inf"),
    # Past what float16 can hold: a large negative number in place of -inf shows.
    Case("a row of -inf in float32", stage="numerics", shape=(6, 100), dtype=F32, values="a row of -inf"),
    Case("below -1e30 in float32", stage="numerics", shape=(6, 100), dtype=F32, values=-3e30),
    Case("a logit is +inf", stage="numerics", shape=(6, 100), dtype=F16, values="one inf"),
    Case("a logit is NaN", stage="numerics", shape=(6, 100), dtype=F16, values="one nan"),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor]:
    """Draw logits around 2, or as the case says, laid out as it says."""
    draw = torch.Generator().manual_seed(seed)
    rows, columns = torch.randint(2, 30, (1,), generator=draw), torch.randint(2, 1500, (1,), generator=draw)
    shape = (int(rows), int(columns)) if case.shape is None else case.shape
    x = torch.randn(shape, generator=draw) * 3 + 2
    x = _set_values(x, case.params.get("values", "plain")).to(case.dtype)
    return (_lay_out(x.to(device), case.params.get("layout", "contiguous")),)


def _set_values(x: torch.Tensor, values: str | float) -> torch.Tensor:
    if isinstance(values, float):
        return x + values if abs(values) < 1e6 else (1 + x.abs()) * values
    if values == "tiny":
        return x * 1e-30
    if values == "close together":
        return x * 0.03
    if values == "some -inf":
        # The first half of row 0 and single elements of the others.
        x[0, : x.shape[1] // 2] = -INF
        x[1:, ::5] = -INF
    elif values == "a row of -inf":
        x[1] = -INF
    elif values == "one inf":
        x[2, 3] = INF
    elif values == "one nan":
        x[2, 3] = NAN
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


def reference(x: torch.Tensor) -> torch.Tensor:
    """exp(x - max) / sum(exp(x - max)) of each row, in float64."""
    return torch.softmax(x.double(), dim=1)


def torch_op(x: torch.Tensor) -> torch.Tensor:
    """PyTorch's own softmax."""
    return torch.softmax(x, dim=1)


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> tuple[torch.Tensor]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    return (draw(case.shape, case.dtype),)


def expected_at(indices: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    rows, row_of = torch.unique(indices // x.shape[1], return_inverse=True)
    return torch.softmax(x[rows].double(), dim=1)[row_of, indices % x.shape[1]]


def eager(x: torch.Tensor) -> torch.Tensor:
    """What one would write without Triton."""
    return torch.softmax(x, dim=1)


def unfused(x: torch.Tensor) -> torch.Tensor:
    """The five steps as five operations, each of which reads and writes memory."""
    numerator = torch.exp(x - x.max(dim=1, keepdim=True).values)
    return numerator / numerator.sum(dim=1, keepdim=True)


def least_bytes(case: Case) -> int:
    """Every element read once and written once: the three passes over a row stay in registers."""
    return 2 * torch.Size(case.shape).numel() * case.dtype.itemsize


def flops(case: Case) -> int:
    """Five operations an element: compare, subtract, exponentiate, add, divide."""
    return 5 * torch.Size(case.shape).numel()


REFUSED = [
    Refusal("1 dimension", lambda device: (torch.ones(16, device=device),)),
    Refusal("3 dimensions", lambda device: (torch.ones(2, 3, 4, device=device),)),
    Refusal("integers", lambda device: (torch.ones(4, 8, device=device, dtype=torch.int32),)),
    Refusal("a row of 65537", lambda device: (torch.ones(1, 65537, device=device),)),
]


def questions(draw: random.Random) -> list[Question]:
    """Each dtype that exponentials can be kept in, under logits of a drawn dtype."""
    names = ["float32", "float16", "bfloat16"]
    pairs = [(draw.choice(names), kept_in) for kept_in in names]
    draw.shuffle(pairs)
    return [
        Question(
            "smallest_breaking_logit",
            pair,
            partial(_bisect, *pair),
            "At which L does the row (L, 0, 0, 0) break a softmax that subtracts nothing?",
            tolerance=0.01,
        )
        for pair in pairs
    ]


@triton.jit
def _unshifted_softmax(x_ptr, y_ptr, N: tl.constexpr, KEPT_IN: tl.constexpr):
    """The softmax of one row without the maximum, exponentials and sum kept in KEPT_IN."""
    offs = tl.arange(0, N)
    numerator = tl.exp(tl.load(x_ptr + offs).to(tl.float32)).to(KEPT_IN)
    denominator = tl.sum(numerator, axis=0)
    tl.store(y_ptr + offs, numerator.to(tl.float32) / denominator.to(tl.float32))


def _bisect(logits: str, kept_in: str, lab: Lab) -> float:
    """The smallest breaking logit, to a part in a thousand, found by running the kernel."""
    dtype = getattr(torch, logits)

    def breaks(logit: float) -> bool:
        x = torch.tensor([logit, 0, 0, 0], dtype=dtype)
        y = torch.empty(4)
        lab.launches(lambda: _unshifted_softmax[(1,)](x, y, N=4, KEPT_IN=getattr(tl, kept_in)))
        return not bool(y.isfinite().all())

    low, high = 1.0, 1000.0
    while high - low > 0.001 * low:
        middle = (low + high) / 2
        low, high = (low, middle) if breaks(middle) else (middle, high)
    return high
