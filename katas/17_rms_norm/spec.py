"""What a right rms_norm does, and on which inputs it is asked to."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from checker.cases import Case, Question, Refusal

if TYPE_CHECKING:
    from checker.lab import Lab

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
INF, NAN = float("inf"), float("nan")

# The chip computes rsqrt with rsqrt.approx, two units in the last place (CUDA C++ Programming Guide, "Mathematical
# Functions"), under three products and a sum of up to some thousand squares.
UNITS = 4.0

# y is contiguous, whatever x is.
CONTIGUOUS = True

# `layout` says how x and weight lie in memory, `values` what lies there; `weight` is its dtype, x's if not given.
CASES = [
    Case("16 x 64, a power of two", shape=(16, 64), dtype=F32),
    Case("16 x 100, ragged", shape=(16, 100), dtype=F32),
    Case("4 x 5000, two chunks", shape=(4, 5000), dtype=F32),
    Case("1 x 1", shape=(1, 1), dtype=F32),
    Case("40 x 7, many short rows", shape=(40, 7), dtype=F32),
    Case("float16", shape=(5, 300), dtype=F16),
    Case("bfloat16", shape=(5, 300), dtype=BF16),
    Case("float16, weight float32", shape=(5, 300), dtype=F16, weight=F32),
    Case("a large eps", shape=(5, 300), dtype=F32, eps=0.5),
    Case("0 x 5, no rows", shape=(0, 5), dtype=F32),
    Case("5 x 0, no columns", shape=(5, 0), dtype=F32),
    Case("x is a transposed view", shape=(6, 90), dtype=F16, layout=("transposed", "contiguous")),
    Case("x is a slice of wider rows", shape=(6, 90), dtype=F16, layout=("sliced", "contiguous")),
    Case("x is one row, expanded", shape=(6, 90), dtype=F16, layout=("expanded", "contiguous")),
    Case("weight is every second number", shape=(6, 90), dtype=F16, layout=("contiguous", "every second")),
    # Element (2, 0) lies 2^31 elements after element (0, 0). Only pages that are touched exist: this costs no memory.
    Case("rows 2^30 elements apart", shape=(3, 16), dtype=F16, layout=("far rows", "contiguous")),
    Case("columns 2^30 elements apart", shape=(16, 3), dtype=F16, layout=("far columns", "contiguous")),
    Case("weights 2^30 elements apart", shape=(16, 3), dtype=F16, layout=("contiguous", "2^30 apart")),
    Case("a drawn shape", shape=None, dtype=BF16),
    Case("float16 around 1000", stage="numerics", shape=(8, 300), dtype=F16, values=1000.0),
    Case("a row of zeros", stage="numerics", shape=(8, 300), dtype=F32, values="zeros"),
    Case("so small that eps decides", stage="numerics", shape=(8, 300), dtype=F32, values="tiny"),
    Case("float16, many products to round", stage="numerics", shape=(32, 1000), dtype=F16, values="weights around 1.9"),
    Case(
        "bfloat16, weight float32",
        stage="numerics",
        shape=(32, 1000),
        dtype=BF16,
        weight=F32,
        values="weights around 1.9",
    ),
    Case("weights past 65504", stage="numerics", shape=(8, 300), dtype=F16, weight=F32, values="large weights"),
    Case("NaN and infinities", stage="numerics", shape=(8, 300), dtype=F16, values="special"),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Draw x around 1, weight around 1.5, both spread widely, or as the case says, laid out as it says."""
    draw = torch.Generator().manual_seed(seed)
    rows, columns = torch.randint(2, 30, (1,), generator=draw), torch.randint(2, 1500, (1,), generator=draw)
    M, N = (int(rows), int(columns)) if case.shape is None else case.shape
    # Rows of very different size: a scale taken from another row shows.
    x = (torch.randn((M, N), generator=draw) * 3 + 1) * (1 + torch.arange(M)[:, None] % 7)
    weight = torch.randn((N,), generator=draw) + 1.5
    x, weight = _set_values(x, weight, case.params.get("values", "plain"))
    layouts = case.params.get("layout", ("contiguous", "contiguous"))
    x = _lay_out(x.to(case.dtype).to(device), layouts[0])
    weight = _lay_out(weight.to(case.params.get("weight", case.dtype)).to(device), layouts[1])
    return x, weight, case.params.get("eps", 1e-5)


def _set_values(x: torch.Tensor, weight: torch.Tensor, values: str | float) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(values, float):
        return x + values, weight
    if values == "zeros":
        x[1] = 0
    elif values == "tiny":
        x = x * 1e-4
    elif values == "weights around 1.9":
        # Just below a power of two, where a rounding more costs most.
        weight = 1.9 + weight * 0.02
    elif values == "large weights":
        # The products are well within float16, because x is 0 where the weight is large, or nearly so.
        weight = weight.abs() + 0.5
        weight[::3] = 1e5
        x[:, ::3] *= 1e-3
    elif values == "special":
        x[1, 3], x[2, 4], x[3, 5] = INF, NAN, -INF
    return x, weight


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


def reference(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Each row over its root mean square, times weight, in float64."""
    x = x.double()
    return x / torch.sqrt(x.square().mean(dim=1, keepdim=True) + eps) * weight.double()


def torch_op(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """PyTorch's own, as its kernel for a GPU computes it: in float32, rounded once."""
    return functional.rms_norm(x.float(), x.shape[-1:], weight.float(), eps).to(x.dtype)


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> Any:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    return draw(case.shape, case.dtype), draw((case.shape[1],), case.dtype), 1e-5


def expected_at(indices: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    rows, row_of = torch.unique(indices // x.shape[1], return_inverse=True)
    return reference(x[rows], weight, eps)[row_of, indices % x.shape[1]]


def eager(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """What one would write without Triton."""
    return functional.rms_norm(x, x.shape[-1:], weight, eps)


def least_bytes(case: Case) -> int:
    """Every element of x and of weight read once, every element of y written once."""
    M, N = case.shape
    return 2 * M * N * case.dtype.itemsize + N * case.params.get("weight", case.dtype).itemsize


def flops(case: Case) -> int:
    """Four operations an element: a square and its sum, and two products."""
    return 4 * torch.Size(case.shape).numel()


REFUSED = [
    Refusal("weight as long as a column", lambda device: (_ones(device, 8, 12), _ones(device, 8), 1e-5)),
    Refusal("weight has one number", lambda device: (_ones(device, 8, 12), _ones(device, 1), 1e-5)),
    Refusal("x has 1 dimension", lambda device: (_ones(device, 12), _ones(device, 12), 1e-5)),
    Refusal("x has 3 dimensions", lambda device: (_ones(device, 2, 8, 12), _ones(device, 12), 1e-5)),
    Refusal("eps is 0", lambda device: (_ones(device, 8, 12), _ones(device, 12), 0.0)),
    Refusal("x float32, weight float16", lambda device: (_ones(device, 8, 12), _ones(device, 12).half(), 1e-5)),
    Refusal("integers", lambda device: (_ones(device, 8, 12).int(), _ones(device, 12).int(), 1e-5)),
    # Not "cuda" or "cpu": which of the two runs kernels depends on the machine. `meta` never does.
    Refusal("weight on another device", lambda device: (_ones(device, 8, 12), _ones("meta", 12), 1e-5)),
]


def _ones(device: torch.device | str, *shape: int) -> torch.Tensor:
    return torch.ones(shape, device=device)


def _in_float32(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    h = x.float()
    h = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return weight * h.to(x.dtype)


def _in_the_dtype_of_x(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def _by_the_library(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return functional.rms_norm(x, x.shape[-1:], weight, eps)


_WAYS: dict[str, Callable[[torch.Tensor, torch.Tensor, float], torch.Tensor]] = {
    "in float32": _in_float32,
    "in x's dtype": _in_the_dtype_of_x,
    "library": _by_the_library,
}


def questions(draw: random.Random) -> list[Question]:
    """The way that computes in float32, for both widths, and one of the others."""
    asked = [("in float32", 2), ("in float32", 4), (draw.choice(["in x's dtype", "library"]), draw.choice([2, 4]))]
    draw.shuffle(asked)
    return [
        Question(
            "eager_over_fused",
            (way, itemsize),
            partial(_traced_ratio, way, itemsize),
            "How many times the bytes of a fused kernel does eager PyTorch move?",
            tolerance=0.01,
        )
        for way, itemsize in asked
    ]


def _traced_ratio(way: str, itemsize: int, lab: Lab) -> float:
    """The bytes of the operations that PyTorch really runs, over those of x and y."""
    dtype = {2: F16, 4: F32}[itemsize]
    x, weight = (torch.empty(shape, dtype=dtype, device="meta") for shape in ((4096, 4096), (4096,)))
    return lab.eager(_WAYS[way], x, weight, 1e-5).bytes / (2 * x.numel() * itemsize)
