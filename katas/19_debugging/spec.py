"""What a right layer_norm does, and on which inputs it is asked to."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch.nn import functional

from checker.cases import Case, Question, Refusal
from checker.numerics import compare

if TYPE_CHECKING:
    from checker.lab import Lab

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
INF, NAN = float("inf"), float("nan")

# rsqrt.approx errs by two units in the last place (CUDA C++ Programming Guide, "Mathematical Functions"), and passes
# through a product and a sum.
UNITS = 4.0

# y is contiguous, whatever x is.
CONTIGUOUS = True

# `layout` says how x and weight lie in memory (bias lies as weight does), `values` what lies there.
CASES = [
    Case("16 x 64, a power of two", shape=(16, 64), dtype=F32),
    Case("16 x 100, ragged", shape=(16, 100), dtype=F32),
    Case("4 x 1500, ragged, longer", shape=(4, 1500), dtype=F32),
    Case("3 x 1, rows of one element", shape=(3, 1), dtype=F32),
    Case("40 x 7, many short rows", shape=(40, 7), dtype=F32),
    Case("float16", shape=(5, 300), dtype=F16),
    Case("bfloat16", shape=(5, 300), dtype=BF16),
    Case("a large eps", shape=(5, 300), dtype=F32, eps=0.5),
    Case("0 x 5, no rows", shape=(0, 5), dtype=F32),
    Case("5 x 0, no columns", shape=(5, 0), dtype=F32),
    Case("x is a transposed view", shape=(6, 90), dtype=F16, layout=("transposed", "contiguous")),
    Case("x is a slice of wider rows", shape=(6, 90), dtype=F16, layout=("sliced", "contiguous")),
    Case("x is one row, expanded", shape=(6, 90), dtype=F16, layout=("expanded", "contiguous")),
    Case("weight and bias are every second number", shape=(6, 90), dtype=F16, layout=("contiguous", "every second")),
    # Element (2, 0) lies 2^31 elements after element (0, 0). Only pages that are touched exist: this costs no memory.
    Case("rows 2^30 elements apart", shape=(3, 16), dtype=F16, layout=("far rows", "contiguous")),
    Case("weights and biases 2^30 elements apart", shape=(16, 3), dtype=F32, layout=("contiguous", "2^30 apart")),
    Case("a drawn shape", shape=None, dtype=BF16),
    Case("float16 around 2000", stage="numerics", shape=(8, 300), dtype=F16, values=2000.0),
    Case("float16, squares beyond its range", stage="numerics", shape=(8, 300), dtype=F16, values="wide"),
    Case("bias nearly cancels the product", stage="numerics", shape=(8, 300), dtype=F16, values="cancelling"),
    Case("constant rows", stage="numerics", shape=(8, 256), dtype=F32, values="constant"),
    Case("so small that eps decides", stage="numerics", shape=(8, 300), dtype=F32, values="tiny"),
    Case("NaN and infinities", stage="numerics", shape=(8, 300), dtype=F16, values="special"),
]

Tensors = tuple[torch.Tensor, torch.Tensor, torch.Tensor, float]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> Tensors:
    """Draw x around 2, weight around 1.5 and bias around -1, all spread widely, or as the case says."""
    draw = torch.Generator().manual_seed(seed)
    rows, columns = torch.randint(2, 30, (1,), generator=draw), torch.randint(2, 1500, (1,), generator=draw)
    M, N = (int(rows), int(columns)) if case.shape is None else case.shape
    # Rows of different mean and deviation: those of another row show.
    x = (torch.randn((M, N), generator=draw) * 3 + 2) * (1 + torch.arange(M)[:, None] % 5)
    weight = torch.randn((N,), generator=draw) + 1.5
    bias = torch.randn((N,), generator=draw) * 2 - 1
    if case.params.get("values") == "cancelling":
        # Every row is row 0 up to a factor and a summand, so all have the same normalised values.
        x = (x[:1] - x[:1].mean()) * (1 + torch.arange(M)[:, None] % 5)
        bias = bias * 0.01 - functional.layer_norm(x[0], (N,)) * weight
    x = _set_values(x, case.params.get("values", "plain"))
    layouts = case.params.get("layout", ("contiguous", "contiguous"))
    x = _lay_out(x.to(case.dtype).to(device), layouts[0])
    weight, bias = (_lay_out(t.to(case.dtype).to(device), layouts[1]) for t in (weight, bias))
    return x, weight, bias, case.params.get("eps", 1e-5)


def _set_values(x: torch.Tensor, values: str | float) -> torch.Tensor:
    if isinstance(values, float):
        return x + values
    if values == "wide":
        return x * 200
    if values == "tiny":
        return x * 1e-4
    if values == "constant":
        x[1], x[2] = 0.1, 12345.0
    elif values == "special":
        x[1, 3], x[2, 4], x[3, 5] = INF, NAN, -INF
    return x


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
    elif layout == "far rows":
        view = torch.empty_strided(t.shape, (2**30, 1), dtype=t.dtype, device=t.device)
    else:
        return t
    return view.copy_(t)


def reference(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Each row less its mean over its deviation, times weight, plus bias, in float64."""
    centred = x.double() - x.double().mean(dim=1, keepdim=True)
    return centred / torch.sqrt(centred.square().mean(dim=1, keepdim=True) + eps) * weight.double() + bias.double()


def torch_op(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """PyTorch's own, as its kernel for a GPU computes it: in float32, rounded once."""
    return functional.layer_norm(x.float(), x.shape[1:], weight.float(), bias.float(), eps).to(x.dtype)


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> Tensors:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    N = case.shape[1]
    return draw(case.shape, case.dtype), draw((N,), case.dtype), draw((N,), case.dtype), 1e-5


def expected_at(
    indices: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    rows, row_of = torch.unique(indices // x.shape[1], return_inverse=True)
    return reference(x[rows], weight, bias, eps)[row_of, indices % x.shape[1]]


def eager(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """What one would write without Triton."""
    return functional.layer_norm(x, x.shape[1:], weight, bias, eps)


def least_bytes(case: Case) -> int:
    """Every element of x, weight and bias read once, every element of y written once."""
    M, N = case.shape
    return (2 * M * N + 2 * N) * case.dtype.itemsize


def flops(case: Case) -> int:
    """Seven operations an element: two sums, a difference, a square, two products and the bias."""
    return 7 * torch.Size(case.shape).numel()


def _ones(device: torch.device | str, *shape: int) -> torch.Tensor:
    return torch.ones(shape, device=device)


REFUSED = [
    Refusal("weight as long as a column", lambda d: (_ones(d, 8, 12), _ones(d, 8), _ones(d, 12), 1e-5)),
    Refusal("bias has one number", lambda d: (_ones(d, 8, 12), _ones(d, 12), _ones(d, 1), 1e-5)),
    Refusal("x has 1 dimension", lambda d: (_ones(d, 12), _ones(d, 12), _ones(d, 12), 1e-5)),
    Refusal("x has 3 dimensions", lambda d: (_ones(d, 2, 8, 12), _ones(d, 12), _ones(d, 12), 1e-5)),
    Refusal("eps is 0", lambda d: (_ones(d, 8, 12), _ones(d, 12), _ones(d, 12), 0.0)),
    Refusal("x float32, weight float16", lambda d: (_ones(d, 8, 12), _ones(d, 12).half(), _ones(d, 12), 1e-5)),
    Refusal("integers", lambda d: (_ones(d, 8, 12).int(), _ones(d, 12).int(), _ones(d, 12).int(), 1e-5)),
    Refusal("a row of 65537", lambda d: (_ones(d, 1, 65537), _ones(d, 65537), _ones(d, 65537), 1e-5)),
    # Not "cuda" or "cpu": which of the two runs kernels depends on the machine. `meta` never does.
    Refusal("bias on another device", lambda d: (_ones(d, 8, 12), _ones(d, 12), _ones("meta", 12), 1e-5)),
]

# --- The truth about the faults: a kernel that has any of them runs, and its results are looked at. ---

FAULTS = {
    "mean over the block": "MEAN_OVER_BLOCK",
    "padded lanes counted": "PADDED_COUNTED",
    "scale overwritten": "SCALE_OVERWRITTEN",
    "one-pass variance": "ONE_PASS",
    "stride of x for weight": "STRIDE_OF_X",
    "row loaded again": "LOADED_AGAIN",
}
# Those that change what the variance or the scale is, or where it goes: one of these may hide another.
_IN_THE_VALUES = ("mean over the block", "padded lanes counted", "scale overwritten", "one-pass variance")


@triton.jit
def _faulty_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, N, eps, stride_xm, stride_xn, stride_ym, BLOCK_SIZE: tl.constexpr,
    MEAN_OVER_BLOCK: tl.constexpr, PADDED_COUNTED: tl.constexpr, SCALE_OVERWRITTEN: tl.constexpr,
    ONE_PASS: tl.constexpr, STRIDE_OF_X: tl.constexpr, LOADED_AGAIN: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    offs_n = tl.arange(0, BLOCK_SIZE)
    mask = offs_n < N
    x_ptrs = x_ptr + row * stride_xm + offs_n * stride_xn
    x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / (BLOCK_SIZE if MEAN_OVER_BLOCK else N)
    centred = x - mean
    if not PADDED_COUNTED:
        centred = tl.where(mask, centred, 0.0)
    variance = tl.sum(centred * centred, axis=0) / N
    if ONE_PASS:
        variance = tl.sum(x * x, axis=0) / N - mean * mean
    scale = tl.rsqrt(variance + eps)
    if LOADED_AGAIN:
        x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + offs_n * (stride_xn if STRIDE_OF_X else 1), mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + offs_n, mask=mask).to(tl.float32)
    if SCALE_OVERWRITTEN:
        scale = 1.0
    y = (x - mean) * scale * weight + bias
    tl.store(y_ptr + row * stride_ym + offs_n, y.to(y_ptr.dtype.element_ty), mask=mask)


def _faulty(faults: tuple[str, ...], x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype)
    flags = {flag: name in faults for name, flag in FAULTS.items()}
    _faulty_kernel[(M,)](
        x, weight, bias, y, N, 1e-5, x.stride(0), x.stride(1), N, BLOCK_SIZE=triton.next_power_of_2(N), **flags
    )
    return y


def _data(offset: float, dtype: torch.dtype, layout: str = "contiguous") -> tuple[torch.Tensor, ...]:
    case = Case("", shape=(4, 300), dtype=dtype, values=offset, layout=(layout, "contiguous"))
    return make_inputs(case, seed=1, device=torch.device("cpu"))[:3]


def _first_red(fault: str, lab: Lab) -> str:
    """The layers in the check's own order: legal accesses, values of easy rows, values of hard rows, bytes."""
    transposed = _data(0.0, F16, "transposed")
    if any(launch.violations for launch in lab.launches(_faulty, (fault,), *transposed)):
        return "memory"
    for stage, offset in (("values", 0.0), ("numerics", 2000.0)):
        x, weight, bias = _data(offset, F16)
        y = lab.result(_faulty, (fault,), x, weight, bias)
        expected, yardstick = reference(x, weight, bias, 1e-5), torch_op(x, weight, bias, 1e-5)
        if compare(y, expected, yardstick, units=UNITS) is not None:
            return stage
    (launch,) = lab.launches(_faulty, (fault,), *transposed)
    least = 2 * transposed[0].nbytes
    return "speed" if launch.bytes_loaded + launch.bytes_stored > 1.4 * least else "none"


def _hidden(first: str, second: str, lab: Lab) -> bool:
    """Whether the second fault changes a bit of the result beside the first."""
    data = _data(40.0, F32)
    return torch.equal(lab.result(_faulty, (first,), *data), lab.result(_faulty, (first, second), *data))


def questions(draw: random.Random) -> list[Question]:
    """Four of the faults, and of the pairs two that matter and two of the others."""
    pairs = [("scale overwritten", "one-pass variance"), ("scale overwritten", "padded lanes counted")]
    pairs = [draw.choice(pairs), ("one-pass variance", "padded lanes counted")]
    others = [(a, b) for a in _IN_THE_VALUES for b in _IN_THE_VALUES if a != b and (a, b) not in pairs]
    asked = [*pairs, *draw.sample(others, 2)]
    draw.shuffle(asked)
    faults = draw.sample(sorted(FAULTS), 4)
    return [
        Question("first_red", (name,), partial(_first_red, name), f"Which stage is red first with {name!r} alone?")
        for name in faults
    ] + [Question("hides", pair, partial(_hidden, *pair), f"Does {pair[0]!r} hide {pair[1]!r}?") for pair in asked]
