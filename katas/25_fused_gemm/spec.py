"""What a right fused linear layer does, on which inputs it is asked to, and what readiness claims are tested with."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from checker.cases import Case, Fault, Probe, Question, Refusal
from checker.loading import load_module
from checker.vgpu.driver import VirtualGpu

if TYPE_CHECKING:
    from types import ModuleType

    from checker.lab import Lab

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
INF, NAN = float("inf"), float("nan")

# The chip multiplies float32 tiles with truncated operands.
DOT_PRECISION = "tf32"

# The result is contiguous, whatever the inputs are.
CONTIGUOUS = True

PLAIN = ("contiguous", "contiguous", "contiguous")
ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "none": lambda y: y,
    "relu": torch.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
}


def _case(
    id: str,
    size: tuple[int, int, int] | None,
    activation: str = "none",
    *,
    bias: bool = True,
    dtype: torch.dtype = F16,
    layout: tuple[str, str, str] = PLAIN,
    values: str = "plain",
    stage: str = "values",
) -> Case:
    """`size` is (M, N, K); `layout` says how x, w and bias lie in memory, `values` what lies there."""
    return Case(id, stage=stage, size=size, activation=activation, bias=bias, dtype=dtype, layout=layout, values=values)


# Most sizes are not multiples of 16, so that few variants of a kernel have to be compiled.
CASES = [
    _case("16 x 64, K=64, the product alone", (16, 64, 64), bias=False),
    _case("50 x 70, K=90, ragged", (50, 70, 90), bias=False),
    _case("150 x 70, K=90, a short last group", (150, 70, 90), bias=False),
    _case("1 x 1, K=1", (1, 1, 1), bias=False),
    # More rows than columns: a bias along the rows would end too soon.
    _case("bias", (40, 30, 90)),
    _case("3 x 70, K=130, tiny M", (3, 70, 130)),
    _case("bias and relu", (20, 70, 90), "relu"),
    _case("bias and gelu, float32", (20, 70, 90), "gelu", dtype=F32),
    _case("bias and silu, float32", (20, 70, 90), "silu", dtype=F32),
    _case("K=0: the bias is left", (20, 30, 0), "relu"),
    _case("M=0, empty", (0, 30, 40)),
    _case("x and w are column-major", (20, 70, 90), "relu", layout=("transposed", "transposed", "contiguous")),
    _case("slices with NaN between the rows", (20, 70, 90), "relu", layout=("sliced", "sliced", "every second")),
    _case("every second column", (20, 70, 90), "relu", layout=("every second", "every second", "sliced")),
    _case("w and bias are expanded", (20, 70, 90), layout=("contiguous", "expanded", "expanded")),
    # Row 2 begins 2^31 elements after row 0. Only pages that are touched exist: this costs no memory.
    _case("rows of x 2^30 elements apart", (3, 40, 20), layout=("far rows", "contiguous", "contiguous")),
    _case("rows of w 2^30 elements apart", (20, 40, 3), layout=("contiguous", "far rows", "contiguous")),
    _case("numbers of bias 2^30 elements apart", (20, 3, 40), layout=("contiguous", "contiguous", "2^30 apart")),
    _case("a drawn size", None, "gelu"),
    _case("partial sums past 65504", (20, 70, 510), "relu", values="cancelling", stage="numerics"),
    _case("a bias that cancels the product", (20, 70, 250), values="bias cancels", stage="numerics"),
    _case("large values under silu", (20, 70, 90), "silu", dtype=F32, values="large", stage="numerics"),
    _case("large values under gelu", (20, 70, 90), "gelu", dtype=BF16, values="large", stage="numerics"),
    _case("NaN and infinities under relu", (20, 70, 90), "relu", values="special", stage="numerics"),
    _case("NaN and infinities under silu", (20, 70, 90), "silu", dtype=F32, values="special", stage="numerics"),
]


def make_inputs(
    case: Case, *, seed: int, device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, str]:
    """Draw x around 0.5, w around -0.2 and bias around 1, laid out as the case says."""
    draw = torch.Generator().manual_seed(seed)
    drawn = tuple(torch.randint(2, 130, (3,), generator=draw).tolist())
    M, N, K = drawn if case.size is None else case.size
    x = torch.randn((M, K), generator=draw) + 0.5
    w = torch.randn((K, N), generator=draw) - 0.2
    bias = torch.randn((N,), generator=draw) * 3 + 1
    x, w, bias = _set_values(x, w, bias, case.values)
    x, w, bias = (_lay_out(t.to(case.dtype).to(device), how) for t, how in zip((x, w, bias), case.layout, strict=True))
    return x, w, bias if case.bias else None, case.activation


def _set_values(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, values: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    if values == "cancelling":
        # The first half of K adds up to a large number, the second half takes it away again.
        half = x.shape[1] // 2
        x, w = (x * 0.05 + 1) * 20, (w * 0.05 + 1) * 20
        w[half:] = -w[half:]
    elif values == "bias cancels":
        # Each sum is near 9, where float16 numbers are 1/128 apart, and the bias takes it back to about 0.1.
        x, w = x * 0.01 + 0.2, w * 0.001 + 0.18
        bias = 0.1 - (x.half().double() @ w.half().double()).mean(0).float()
    elif values == "large":
        x, w = x * 10, w * 10
    elif values == "special":
        # In the last step along K too, next to what a mask must hold back.
        x[1, 3], x[2, -1], x[5, 0] = INF, NAN, -INF
        bias[7] = NAN
    return x, w, bias


def _lay_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with other strides, on the same device. What lies in a gap is NaN: it would be seen at once."""
    last = x.shape[-1]
    if layout == "expanded":
        return x[:1].clone().expand(x.shape)
    if layout == "transposed":
        view = x.new_empty(x.shape[::-1]).t()
    elif layout == "sliced":
        view = x.new_full((*x.shape[:-1], last + 13), NAN)[..., 6 : last + 6]
    elif layout == "every second":
        view = x.new_full((*x.shape[:-1], 2 * last + 1), NAN)[..., 1::2]
    elif layout == "far rows":
        view = torch.empty_strided(x.shape, (2**30, 1), dtype=x.dtype, device=x.device)
    elif layout == "2^30 apart":
        view = torch.empty_strided(x.shape, (2**30,), dtype=x.dtype, device=x.device)
    else:
        return x
    return view.copy_(x)


def reference(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    """Everything in float64."""
    y = x.double() @ w.double()
    return ACTIVATIONS[activation](y if bias is None else y + bias.double())


def torch_op(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    """PyTorch's own product, with the bias where there is one, and its activation."""
    return ACTIVATIONS[activation](x @ w if bias is None else torch.addmm(bias, x, w))


def eager(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    """The vendor's own fused kernel, which knows relu."""
    assert bias is not None
    assert activation == "relu"
    return torch._addmm_activation(bias, x, w)


def timed_inputs(
    case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, str]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    M, N, K = case.size
    return draw((M, K), case.dtype), draw((K, N), case.dtype), draw((N,), case.dtype), "relu"


def expected_at(
    indices: torch.Tensor, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, activation: str
) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    N = w.shape[1]
    product = (x[indices // N].double() * w[:, indices % N].t().double()).sum(1)
    return ACTIVATIONS[activation](product + bias[indices % N].double())


def least_bytes(case: Case) -> int:
    """Both operands and the bias read once, the result written once."""
    M, N, K = case.size
    return (M * K + K * N + N + M * N) * case.dtype.itemsize


def flops(case: Case) -> int:
    """A multiplication and an addition for each of M N K products; the epilogue counts nothing beside them."""
    M, N, K = case.size
    return 2 * M * N * K


def _call(**changed: Any) -> Callable[[torch.device], tuple[Any, ...]]:
    """A right call with some arguments replaced; a tuple is a shape, a function is given the device."""

    def make(device: torch.device) -> tuple[Any, ...]:
        given: dict[str, Any] = {"x": (20, 30), "w": (30, 40), "bias": (40,), "activation": "relu", **changed}
        return tuple(
            torch.ones(value, dtype=F16, device=device)
            if isinstance(value, tuple)
            else value(device)
            if callable(value)
            else value
            for value in given.values()
        )

    return make


def _double(*shape: int) -> Callable[[torch.device], torch.Tensor]:
    return lambda device: torch.ones(shape, dtype=torch.float64, device=device)


REFUSED = [
    Refusal("inner sizes differ", _call(w=(20, 40)), (ValueError,)),
    Refusal("x has 1 dimension", _call(x=(30,)), (ValueError,)),
    Refusal("w has 3 dimensions", _call(w=(30, 40, 1)), (ValueError,)),
    Refusal("bias is as long as M", _call(bias=(20,)), (ValueError,)),
    Refusal("bias could be broadcast", _call(bias=(1,)), (ValueError,)),
    Refusal("bias has 2 dimensions", _call(bias=(1, 40)), (ValueError,)),
    Refusal("x is a list", _call(x=lambda device: [[1.0] * 30] * 20), (TypeError,)),
    Refusal("bias is a number", _call(bias=0.5), (TypeError,)),
    Refusal("w is bfloat16", _call(w=lambda device: torch.ones(30, 40, dtype=BF16, device=device)), (TypeError,)),
    Refusal("bias is float32", _call(bias=lambda device: torch.ones(40, device=device)), (TypeError,)),
    Refusal("all are float64", _call(x=_double(20, 30), w=_double(30, 40), bias=_double(40)), (TypeError,)),
    # Not "cuda" or "cpu": which of the two runs kernels depends on the machine. `meta` never does.
    Refusal("w on another device", _call(w=lambda _: torch.ones(30, 40, dtype=F16, device="meta")), (ValueError,)),
    Refusal("bias on another device", _call(bias=lambda _: torch.ones(40, dtype=F16, device="meta")), (ValueError,)),
    Refusal("an unknown activation", _call(activation="tanh"), (ValueError,)),
    Refusal("no activation", _call(activation=None), (ValueError,)),
]


def probes(draw: random.Random) -> list[Probe]:
    """Whether what the tuner keeps fits a chip with less shared memory, where float32 fills it soonest."""
    return [Probe("tuned on an L4, float32", partial(_tunes_on, "l4", (draw.randrange(130, 250), 250, 70), F32))]


def _tunes_on(chip: str, size: tuple[int, int, int], dtype: torch.dtype, module: ModuleType, _: Lab) -> Fault | None:
    """Lets her tuner time what it keeps on another chip, and asks whether each of these could be launched there."""
    tuners = [value for value in vars(module).values() if type(value).__name__ == "Autotuner"]
    if not tuners:
        advice = "Give the kernel several configurations with @triton.autotune, and prune those that do not fit."
        return Fault("K666", "no kernel of this file is tuned: one tile must serve all sizes and chips", advice)
    M, N, K = size
    x, w, bias = (torch.ones(shape, dtype=dtype) for shape in ((M, K), (K, N), (N,)))
    _forget(tuners)
    try:
        with VirtualGpu(chip).instead() as other, other.record(timing=True, tuning="all", sample=1):
            module.fused_linear(x, w, bias, "relu")
        timed = [pair for tuner in tuners for pair in tuner.configs_timings.items()]
    finally:
        _forget(tuners)
    for configuration, milliseconds in timed:
        if min(milliseconds if isinstance(milliseconds, list) else [milliseconds]) == float("inf"):
            return Fault(
                "K665",
                f"the tuner keeps a configuration that cannot be launched on {other.spec.name}: {configuration}",
                f"That chip has {other.spec.shared_bytes_per_block} bytes of shared memory for a program. Prune by "
                "what the driver says of the chip, and by the bytes of an element.",
            )
    return None


def _forget(tuners: list[Any]) -> None:
    """A tuner knows no device: neither what it chose nor the driver's way of timing may be kept for another one."""
    for tuner in tuners:
        tuner.cache.clear()
        tuner.configs_timings = {}
        tuner.__dict__.pop("do_bench", None)


# Four kernels of the ladder: where each stands, the arguments made of one tensor and one of `also` layout, the result.
KERNELS: dict[str, tuple[str, Callable[[Any, Any], tuple[Any, ...]], Callable[[Any, Any], torch.Tensor]]] = {
    "vector_copy": ("01_vector_copy", lambda x, _: (x,), lambda x, _: x.double()),
    "saxpy": ("06_host_wrapper", lambda x, _: (2.0, x, x), lambda x, _: 3 * x.double()),
    "softmax": ("16_softmax", lambda x, _: (x,), lambda x, _: torch.softmax(x.double(), 1)),
    "matmul": ("21_matmul", lambda x, w: (x, w), lambda x, w: x.double() @ w.double()),
}
CRITERIA = ("any size", "any strides", "three dtypes", "clear errors", "nothing hidden")


def questions(draw: random.Random) -> list[Question]:
    """Every claim, in a drawn order."""
    claims = [(kernel, criterion) for kernel in KERNELS for criterion in CRITERIA]
    draw.shuffle(claims)
    return [
        Question("ready", claim, partial(_holds, *claim), "Which criteria does this kernel meet? Try it on paper.")
        for claim in claims
    ]


def _holds(kernel: str, criterion: str, lab: Lab) -> bool:
    """Whether the solution of another kata meets a criterion, found by trying."""
    file, arguments, result = KERNELS[kernel]
    entry = getattr(_solution(file), kernel)
    draw = torch.Generator().manual_seed(1)

    def made(shape: tuple[int, int], dtype: torch.dtype, layout: str) -> torch.Tensor:
        return _lay_out(torch.randn(shape, generator=draw).to(dtype), layout)

    def right(shape: tuple[int, int] = (5, 77), dtype: torch.dtype = F16, layout: str = "contiguous") -> bool:
        x = made(shape, dtype, layout)
        # Far rows of w would be as many as x has columns.
        w = made((shape[1], 6), dtype, "contiguous" if layout == "far rows" else layout)
        launches, got = _tried(lab, entry, arguments(x, w))
        if isinstance(got, Exception) or any(launch.violations for launch in launches):
            return False
        want = result(x, w)
        return got.shape == want.shape and torch.allclose(got.double(), want, rtol=0.02, atol=0.02 * shape[1] ** 0.5)

    if criterion == "any size":
        return all(right(shape) for shape in ((0, 7), (1, 1), (5, 77), (2, 70000)))
    if criterion == "any strides":
        layouts = ((5, 77), "transposed"), ((5, 77), "every second"), ((3, 20), "far rows")
        return all(right(shape, layout=layout) for shape, layout in layouts)
    if criterion == "three dtypes":
        return all(right(dtype=dtype) for dtype in (F32, F16, BF16))
    if criterion == "clear errors":
        calls = (arguments(bad, made((77, 6), F16, "contiguous")) for bad in (None, [1.0, 2.0]))
        tried = (_tried(lab, entry, call) for call in calls)
        return all(isinstance(got, (ValueError, TypeError)) and not launches for launches, got in tried)
    given = arguments(*(made(shape, F16, "transposed") for shape in ((5, 77), (77, 6))))
    with _Copies() as copies:
        launches, got = _tried(lab, entry, given)
    return copies.seen == 0 and (isinstance(got, Exception) or len(launches) == 1)


def _tried(lab: Lab, entry: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """The launches of a call, and what it returns or raises."""
    outcome: list[Any] = []

    def call() -> None:
        try:
            outcome.append(entry(*arguments))
        except Exception as error:  # the exception is the answer
            outcome.append(error)

    return lab.launches(call), outcome[0]


class _Copies(TorchDispatchMode):
    """Counts the copies that PyTorch makes inside the block."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen += function.overloadpacket.__name__ in ("clone", "copy_", "_to_copy", "contiguous")
        return function(*args, **(kwargs or {}))


@cache
def _solution(name: str) -> ModuleType:
    return load_module(Path(__file__).resolve().parents[2] / "solutions" / f"{name}.py")
