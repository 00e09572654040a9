"""What a right softmax_long does, and on which inputs it is asked to."""

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

# `layout` says how x lies in memory, `values` what lies there; see _lay_out and _set_values. A chunk has 8192 elements.
CASES = [
    Case("16 x 64, one chunk", shape=(16, 64), dtype=F32),
    Case("3 x 16384, two chunks", shape=(3, 16384), dtype=F32),
    Case("3 x 8193, one element over", shape=(3, 8193), dtype=F32),
    Case("2 x 20000, three chunks, ragged", shape=(2, 20000), dtype=F32),
    Case("2 x 20000, rising", shape=(2, 20000), dtype=F32, values="rising"),
    Case("2 x 20000, falling", shape=(2, 20000), dtype=F32, values="falling"),
    Case("1 x 1", shape=(1, 1), dtype=F32),
    Case("20 x 7, many short rows", shape=(20, 7), dtype=F32),
    Case("float16", shape=(2, 9000), dtype=F16),
    Case("bfloat16", shape=(2, 9000), dtype=BF16),
    Case("0 x 5, no rows", shape=(0, 5), dtype=F32),
    Case("5 x 0, no columns", shape=(5, 0), dtype=F32),
    Case("x is a transposed view", shape=(2, 9000), dtype=F16, layout="transposed"),
    Case("x is a slice of wider rows", shape=(2, 9000), dtype=F16, layout="sliced"),
    Case("x is one row, expanded", shape=(2, 9000), dtype=F16, layout="expanded"),
    # Element (2, 0) lies 2^31 elements after element (0, 0). Only pages that are touched exist: this costs no memory.
    Case("rows 2^30 elements apart", shape=(3, 16), dtype=F16, layout="far rows"),
    Case("columns 2^30 elements apart", shape=(16, 3), dtype=F16, layout="far columns"),
    Case("a drawn shape", shape=None, dtype=BF16),
    Case("large logits, around 1000", stage="numerics", shape=(2, 9000), dtype=F32, values=1000.0),
    Case("all-negative rows, around -1000", stage="numerics", shape=(2, 9000), dtype=F32, values=-1000.0),
    Case("below -1e30 in float32", stage="numerics", shape=(2, 9000), dtype=F32, values=-3e30),
    Case("the first chunk is -inf", stage="numerics", shape=(3, 20000), dtype=F32, values="first chunk -inf"),
    Case("the last chunk is -inf", stage="numerics", shape=(3, 20000), dtype=F32, values="last chunk -inf"),
    Case("a row of -inf", stage="numerics", shape=(6, 9000), dtype=F32, values="a row of -inf"),
    Case("a logit is +inf", stage="numerics", shape=(4, 9000), dtype=F16, values="one inf"),
    Case("a logit is NaN", stage="numerics", shape=(4, 9000), dtype=F16, values="one nan"),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor]:
    """Draw logits around 2, or as the case says, laid out as it says."""
    draw = torch.Generator().manual_seed(seed)
    rows, columns = torch.randint(2, 5, (1,), generator=draw), torch.randint(2, 20000, (1,), generator=draw)
    shape = (int(rows), int(columns)) if case.shape is None else case.shape
    x = torch.randn(shape, generator=draw) * 3 + 2
    x = _set_values(x, case.params.get("values", "plain")).to(case.dtype)
    return (_lay_out(x.to(device), case.params.get("layout", "contiguous")),)


def _set_values(x: torch.Tensor, values: str | float) -> torch.Tensor:
    if isinstance(values, float):
        return x + values if abs(values) < 1e6 else (1 + x.abs()) * values
    if values in ("rising", "falling"):
        # Every chunk has another maximum, or none after the first has.
        slope = torch.linspace(0, 40, x.shape[1])
        return x + (slope if values == "rising" else -slope)
    if values == "first chunk -inf":
        x[:, :8192] = -INF
    elif values == "last chunk -inf":
        x[:, 16384:] = -INF
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


def least_bytes(case: Case) -> int:
    """Every element read twice, since a row need not fit on the chip, and written once."""
    return 3 * torch.Size(case.shape).numel() * case.dtype.itemsize


def again_bytes(case: Case) -> int:
    """The second reading: L2 may have kept a row that is short enough."""
    return torch.Size(case.shape).numel() * case.dtype.itemsize


def flops(case: Case) -> int:
    """Five operations an element: compare, subtract, exponentiate, add, divide."""
    return 5 * torch.Size(case.shape).numel()


REFUSED = [
    Refusal("1 dimension", lambda device: (torch.ones(16, device=device),)),
    Refusal("3 dimensions", lambda device: (torch.ones(2, 3, 4, device=device),)),
    Refusal("integers", lambda device: (torch.ones(4, 8, device=device, dtype=torch.int32),)),
]


def questions(draw: random.Random) -> list[Question]:
    """Chunk maxima that rise, fall, repeat and begin with -inf; and two traffic counts."""
    rising = sorted(draw.sample(range(-9, 9), 5))
    mixed = [draw.randrange(-5, 5) for _ in range(6)]
    asked: list[list[float]] = [
        [float(v) for v in rising],
        [float(v) for v in reversed(rising)],
        [float(v) for v in mixed],
        [-INF, -INF, *(float(v) for v in draw.sample(range(9), 3))],
    ]
    sizes = [(draw.randrange(2, 5), draw.randrange(3000, 9000), draw.choice([1024, 2048]), size) for size in (2, 4)]
    return [
        Question("rescalings", (maxima,), partial(_counted, maxima), "How many chunks change a sum that is not 0?")
        for maxima in asked
    ] + [
        Question("bytes_of_x", given, partial(_traced, *given), "How many bytes of x are asked for in all?")
        for given in sizes
    ]


@triton.jit
def _counting_kernel(maxima_ptr, count_ptr, chunks):
    """The first pass over chunks of one element, which counts the factors that change a sum."""
    row_max = -float("inf")
    row_sum = 0.0
    count = 0
    for chunk in range(chunks):
        x = tl.load(maxima_ptr + chunk)
        new_max = tl.maximum(row_max, x)
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        factor = tl.exp(row_max - shift)
        count += ((factor != 1.0) & (row_sum != 0.0)).to(tl.int32)
        row_sum = row_sum * factor + tl.exp(x - shift)
        row_max = new_max
    tl.store(count_ptr, count)


def _counted(maxima: list[float], lab: Lab) -> int:
    """Runs the first pass and counts."""
    count = torch.zeros(1, dtype=torch.int32)
    lab.launches(lambda: _counting_kernel[(1,)](torch.tensor(maxima), count, len(maxima)))
    return int(count)


def _traced(M: int, N: int, block_size: int, itemsize: int, lab: Lab) -> int:
    """Runs the reference kernel with chunks of this size, and adds up what its loads ask for."""
    x = torch.zeros((M, N), dtype={2: F16, 4: F32}[itemsize])
    y = torch.empty_like(x)
    kernel = lab.reference_module.softmax_long_kernel
    (launch,) = lab.launches(lambda: kernel[(M,)](x, y, N, N, 1, N, 1, BLOCK_SIZE=block_size))
    return launch.bytes_loaded
