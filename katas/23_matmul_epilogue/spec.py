"""What a right linear_act does, and on which inputs it is asked to."""

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

# The chip computes exp with ex2.approx and divides with div.full: two units in the last place each (CUDA C++
# Programming Guide, "Mathematical Functions"), which PyTorch on a CPU does not show.
UNITS = 4.0

# The result is contiguous, whatever the inputs are.
CONTIGUOUS = True

# `size` is (M, N, K); `layout` says how x, w and bias lie in memory, `values` what lies there.
CASES = [
    Case("32 x 64, K=128, one tile", size=(32, 64, 128), dtype=F16, activation="none"),
    Case("K=300, three steps", size=(40, 90, 300), dtype=F16, activation="none"),
    Case("relu", size=(40, 90, 300), dtype=F16, activation="relu"),
    Case("silu", size=(40, 90, 300), dtype=F16, activation="silu"),
    Case("gelu", size=(40, 90, 300), dtype=F16, activation="gelu"),
    Case("bfloat16, gelu", size=(40, 90, 300), dtype=BF16, activation="gelu"),
    Case("float32, silu", size=(40, 90, 100), dtype=F32, activation="silu"),
    Case("float32 as tf32, relu", size=(40, 90, 100), dtype=F32, activation="relu", precision="tf32"),
    Case("1 x 1, K=1, relu", size=(1, 1, 1), dtype=F16, activation="relu"),
    Case("K=0, bias alone", size=(40, 50, 0), dtype=F16, activation="relu"),
    Case("M=0, empty", size=(0, 50, 60), dtype=F16, activation="gelu"),
    Case("290 x 130, two groups", size=(290, 130, 40), dtype=F16, activation="none"),
    Case(
        "transposed views, every second of bias",
        size=(40, 90, 50),
        dtype=F16,
        activation="none",
        layout=("transposed", "transposed", "every second"),
    ),
    Case(
        "slices, bias expanded",
        size=(40, 90, 50),
        dtype=F16,
        activation="none",
        layout=("sliced", "sliced", "expanded"),
    ),
    # Row 2 begins 2^31 elements after row 0. Only pages that are touched exist: this costs no memory.
    Case(
        "rows of w 2^30 elements apart",
        size=(40, 20, 3),
        dtype=F16,
        activation="none",
        layout=("contiguous", "far rows", "contiguous"),
    ),
    Case(
        "numbers of bias 2^30 elements apart",
        size=(40, 3, 20),
        dtype=F16,
        activation="none",
        layout=("contiguous", "contiguous", "2^30 apart"),
    ),
    Case("a drawn size", size=None, dtype=F16, activation="relu"),
    Case("bias takes away most of the sum", stage="numerics", size=(40, 70, 256), dtype=F16, activation="none",
         values="cancelling"),
    Case("sums past 65504 before bias", stage="numerics", size=(40, 70, 256), dtype=F16, activation="none",
         values="cancelling, large"),
    Case("float32, exactly", stage="numerics", size=(40, 70, 256), dtype=F32, activation="none"),
    Case("float32, gelu of numbers around 0", stage="numerics", size=(40, 70, 64), dtype=F32, activation="gelu",
         values="small"),
    Case("silu of numbers around -200 and 200", stage="numerics", size=(40, 70, 64), dtype=F16, activation="silu",
         values="far out"),
    Case("NaN and infinities, relu", stage="numerics", size=(40, 70, 64), dtype=F16, activation="relu",
         values="special"),
]  # fmt: skip

Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor, str, str]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> Inputs:
    """Draw x around 0.5 and w around -0.1, bias around 3 with a spread of 5, laid out as the case says."""
    draw = torch.Generator().manual_seed(seed)
    drawn = (*torch.randint(2, 200, (2,), generator=draw).tolist(), 40)
    M, N, K = drawn if case.size is None else case.size
    x = torch.randn((M, K), generator=draw) + 0.5
    w = torch.randn((K, N), generator=draw) * 0.5 - 0.1
    bias = torch.randn((N,), generator=draw) * 5 + 3
    x, w, bias = _set_values(x, w, bias, case.params.get("values", "plain"))
    layouts = case.params.get("layout", ("contiguous",) * 3)
    x, w, bias = (_lay_out(t.to(case.dtype).to(device), how) for t, how in zip((x, w, bias), layouts, strict=True))
    return x, w, bias, case.activation, case.params.get("precision", "ieee")


def _set_values(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, values: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if values.startswith("cancelling"):
        scale = 18.0 if values.endswith("large") else 2.0
        x, w = (x * 0.01 + 1) * scale, (w * 0.02 + 1) * scale
        # float16 ends before the large sum does: bias brings it back to where it can be stored.
        bias = (bias * 0.1 - x.shape[1] * scale * scale).clamp(min=-65000)
    elif values == "small":
        x, w, bias = x * 0.2, w * 0.2, bias * 0.1
    elif values == "far out":
        bias = torch.where(bias > 3, 200.0, -200.0) + bias
    elif values == "special":
        x[1, 3], x[2, -1], x[5, 0] = INF, NAN, -INF
        bias[7], bias[9] = NAN, -INF
    return x, w, bias


def _lay_out(t: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with other strides, on the same device."""
    if layout == "expanded":
        return t[:1].clone().expand(t.shape)
    if layout == "2^30 apart":
        return torch.empty_strided(t.shape, (2**30,), dtype=t.dtype, device=t.device).copy_(t)
    if layout == "every second":
        view = t.new_full((2 * t.shape[0],), 777)[::2]
    elif layout == "transposed":
        view = t.new_empty(t.shape[::-1]).t()
    elif layout == "sliced":
        # What lies in the gaps must not count: it would be seen at once.
        M, N = t.shape
        view = t.new_full((M, N + 13), 777)[:, 6 : N + 6]
    elif layout == "far rows":
        view = torch.empty_strided(t.shape, (2**30, 1), dtype=t.dtype, device=t.device)
    else:
        return t
    return view.copy_(t)


_ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda y: y,
    "relu": torch.relu,
    "silu": functional.silu,
    "gelu": functional.gelu,
}


def reference(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, activation: str, precision: str) -> torch.Tensor:
    """The layer in float64. Of float32 factors as tf32 it takes what the chip does, their upper bits."""
    if precision == "tf32" and x.dtype == F32:
        x, w = _upper_bits(x), _upper_bits(w)
    return _ACTIVATIONS[activation](x.double() @ w.double() + bias.double())


def _upper_bits(t: torch.Tensor) -> torch.Tensor:
    """Without the 13 bits that a tensor core drops of a float32."""
    return (t.contiguous().view(torch.int32) & ~0x1FFF).view(F32)


def torch_op(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, activation: str, precision: str) -> torch.Tensor:
    """PyTorch's own, in float32 up to the end. For tf32 its error is that of the dropped bits."""
    return _ACTIVATIONS[activation](x.float() @ w.float() + bias.float()).to(x.dtype)


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> Inputs:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    M, N, K = case.size
    x, w, bias = (draw(shape, case.dtype) for shape in ((M, K), (K, N), (N,)))
    return x, w, bias, case.activation, case.precision


def expected_at(
    indices: torch.Tensor, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, activation: str, precision: str
) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    N = w.shape[1]
    rows, columns = x[indices // N], w[:, indices % N].t()
    if precision == "tf32" and x.dtype == F32:
        rows, columns = _upper_bits(rows), _upper_bits(columns)
    return _ACTIVATIONS[activation]((rows.double() * columns.double()).sum(1) + bias[indices % N].double())


def eager(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, activation: str, precision: str) -> torch.Tensor:
    """What one would write without Triton."""
    return _ACTIVATIONS[activation](torch.addmm(bias, x, w))


def least_bytes(case: Case) -> int:
    """Every input read once, the result written once."""
    M, N, K = case.size
    return (M * K + K * N + N + M * N) * case.dtype.itemsize


def flops(case: Case) -> int:
    """A multiplication and an addition for each of M N K products."""
    M, N, K = case.size
    return 2 * M * N * K


def _refused(**changed: Any) -> Callable[[torch.device], tuple[Any, ...]]:
    """A good call with some arguments made anew by a function of the device."""

    def make(device: torch.device) -> tuple[Any, ...]:
        good = {
            "x": _ones(device, 32, 48),
            "w": _ones(device, 48, 64),
            "bias": _ones(device, 64),
            "activation": "relu",
            "precision": "ieee",
        }
        return tuple((good | {name: value(device) for name, value in changed.items()}).values())

    return make


def _ones(device: torch.device | str, *shape: int, dtype: torch.dtype = F16) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype, device=device)


REFUSED = [
    Refusal("inner sizes differ", _refused(w=lambda d: _ones(d, 32, 64))),
    Refusal("x has 1 dimension", _refused(x=lambda d: _ones(d, 48))),
    Refusal("bias has one number", _refused(bias=lambda d: _ones(d, 1))),
    Refusal("bias is a matrix", _refused(bias=lambda d: _ones(d, 32, 64))),
    Refusal("float16 and bfloat16", _refused(w=lambda d: _ones(d, 48, 64, dtype=BF16))),
    Refusal("bias in float32", _refused(bias=lambda d: _ones(d, 64, dtype=F32))),
    # Not "cuda" or "cpu": which of the two runs kernels depends on the machine. `meta` never does.
    Refusal("w on another device", _refused(w=lambda _: _ones("meta", 48, 64))),
    Refusal("an activation that nobody knows", _refused(activation=lambda _: "relu6")),
    Refusal("a precision that nobody knows", _refused(precision=lambda _: "fast")),
]

# A block of a language model as a list of steps: a function, and the names of what it takes.
_STEPS: dict[str, tuple[Callable[..., torch.Tensor], tuple[str, ...]]] = {
    "norm": (lambda x: functional.rms_norm(x, x.shape[-1:]), ("x",)),
    "gate": (torch.mm, ("norm", "w_gate")),
    "up": (torch.mm, ("norm", "w_up")),
    "silu": (functional.silu, ("gate",)),
    "product": (torch.mul, ("silu", "up")),
    "down": (torch.mm, ("product", "w_down")),
    "bias": (torch.add, ("down", "row")),
    "residual": (torch.add, ("bias", "x")),
    "scores": (lambda norm, keys: norm @ keys.t(), ("norm", "keys")),
    "scale": (lambda scores: scores * 0.125, ("scores",)),
    "softmax": (lambda scale: scale.softmax(-1), ("scale",)),
    "mix": (torch.mm, ("softmax", "values")),
}
_PAIRS = [(first, second) for second, (_, taken) in _STEPS.items() for first in taken if first in _STEPS]


def questions(draw: random.Random) -> list[Question]:
    """Five of the eleven pairs of steps of which the second takes what the first one made."""
    asked = []
    for first, second in draw.sample(_PAIRS, 5):
        tokens, width, hidden = (256 * draw.randrange(2, 40) for _ in range(3))
        asked.append(
            Question(
                "bytes_saved",
                (first, second, tokens, width, hidden),
                partial(_traced_saving, first, second, (tokens, width, hidden)),
                f"What does it save to do {second!r} in the kernel of {first!r}?",
            )
        )
    return asked


def _traced_saving(first: str, second: str, sizes: tuple[int, int, int], lab: Lab) -> int:
    """The bytes of both operations, less those that come into the pair and go out of it."""
    if not _needs_one_element(first, second):
        return 0
    tensors = _block(sizes, dtype=F16, device="meta")
    bytes_of_both = sum(
        lab.eager(_STEPS[name][0], *(tensors[t] for t in _STEPS[name][1])).bytes for name in (first, second)
    )
    ends = {*_STEPS[first][1], *_STEPS[second][1], second} - {first}
    return bytes_of_both - sum(tensors[name].numel() * tensors[name].element_size() for name in ends)


def _needs_one_element(first: str, second: str) -> bool:
    """Whether a change of one element of the first step's result changes one element of the second's."""
    tensors = _block((6, 8, 10), dtype=torch.float64, device="cpu")
    function, taken = _STEPS[second]
    changed = dict(tensors)
    changed[first] = tensors[first].clone()
    changed[first][2, 3] += 0.5
    return int((function(*(changed[name] for name in taken)) != tensors[second]).sum()) == 1


def _block(sizes: tuple[int, int, int], *, dtype: torch.dtype, device: str) -> dict[str, torch.Tensor]:
    """Every tensor of the block, by its name."""
    tokens, width, hidden = sizes
    shapes = {
        "x": (tokens, width),
        "w_gate": (width, hidden),
        "w_up": (width, hidden),
        "w_down": (hidden, width),
        "row": (width,),
        "keys": (tokens, width),
        "values": (tokens, width),
    }
    draw = torch.Generator().manual_seed(1)
    tensors = {
        name: torch.empty(shape, dtype=dtype, device=device)
        if device == "meta"
        else torch.randn(shape, generator=draw, dtype=dtype)
        for name, shape in shapes.items()
    }
    for name, (function, taken) in _STEPS.items():
        tensors[name] = function(*(tensors[one] for one in taken))
    return tensors
