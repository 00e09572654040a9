"""What a right saxpy does, what it must refuse, and on which inputs it is asked to."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from checker.cases import Case, Question, Refusal

if TYPE_CHECKING:
    from checker.lab import Lab

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
INF, NAN = float("inf"), float("nan")

# The caller may hand in `out`: kernels may store there, and it must come back as the result.
INOUT = (3,)
RESULT = 3

# The result is contiguous, whatever the inputs are.
CONTIGUOUS = True

# `layout` says how x and y lie in memory, `out` what is handed in as out; see _lay_out and _output.
CASES = [
    Case("n=1024, one full block", shape=(1024,), dtype=F32),
    Case("n=1", shape=(1,), dtype=F32),
    Case("n=257, ragged", shape=(257,), dtype=F32),
    Case("n=5000, ragged, several blocks", shape=(5000,), dtype=F32),
    Case("3 x 5 x 7", shape=(3, 5, 7), dtype=F32),
    Case("no dimensions", shape=(), dtype=F32),
    Case("float16", shape=(1500,), dtype=F16),
    Case("bfloat16", shape=(1500,), dtype=BF16),
    Case("a is the integer 1", shape=(300,), dtype=F32, a=1),
    Case("a is a large integer", shape=(300,), dtype=F32, a=3 * 10**25),
    Case("n=0, empty", shape=(0,), dtype=F32),
    Case("x every second element", shape=(700,), dtype=F32, layout=("every second", "contiguous")),
    Case("x transposed", shape=(30, 50), dtype=F32, layout=("transposed", "contiguous")),
    Case("y transposed", shape=(30, 50), dtype=F32, layout=("contiguous", "transposed")),
    Case("both transposed", shape=(30, 50), dtype=F32, layout=("transposed", "transposed")),
    Case("y one row, expanded", shape=(30, 50), dtype=F32, layout=("contiguous", "expanded")),
    Case("out given", shape=(1500,), dtype=F32, out="own"),
    Case("out given, float16, one element", shape=(1,), dtype=F16, out="own"),
    Case("out given, x transposed", shape=(30, 50), dtype=F32, layout=("transposed", "contiguous"), out="own"),
    Case("out given, empty", shape=(0, 4), dtype=F32, out="own"),
    Case("out is x", shape=(1500,), dtype=F32, out="x"),
    Case("out is y", shape=(1500,), dtype=F32, out="y"),
    Case("out follows x in one buffer", shape=(1500,), dtype=F32, out="follows"),
    Case("a drawn size", shape=None, dtype=F32),
    Case("a * x and y almost cancel", stage="numerics", shape=(1100,), dtype=F16, values="cancelling"),
    Case("near the largest float16", stage="numerics", shape=(1100,), dtype=F16, values="near the largest"),
    Case("tiny", stage="numerics", shape=(1100,), dtype=F32, values="tiny"),
    Case("NaN and infinities", stage="numerics", shape=(1100,), dtype=F32, values="special"),
    Case("a is 0, x holds infinities", stage="numerics", shape=(1100,), dtype=F32, values="special", a=0.0),
]

Arguments = tuple[float, torch.Tensor, torch.Tensor, torch.Tensor | None]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> Arguments:
    """Draw x around 2 and y around -1, both spread widely; a is 2.5 unless the case names it."""
    draw = torch.Generator().manual_seed(seed)
    drawn = int(torch.randint(2, 9000, (1,), generator=draw))
    shape = (drawn,) if case.shape is None else case.shape
    a = case.params.get("a", 2.5)
    x = torch.randn(shape, generator=draw) * 5 + 2
    y = torch.randn(shape, generator=draw) * 3 - 1
    x, y = _set_values(a, x, y, case.params.get("values", "plain"), case.dtype)
    layouts = case.params.get("layout", ("contiguous", "contiguous"))
    x, y = (_lay_out(t.to(case.dtype).to(device), layout) for t, layout in zip((x, y), layouts, strict=True))
    return a, *_output(case.params.get("out"), x, y)


def _set_values(
    a: float, x: torch.Tensor, y: torch.Tensor, kind: str, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    limits = torch.finfo(dtype)
    if kind == "cancelling":
        y = -a * x.to(dtype).float() * (1 + y.sign() * 2 * limits.eps)
    elif kind == "near the largest":
        # The result fits into the dtype, a * x alone does not.
        x, y = x.sigmoid() * limits.max * 0.1 + limits.max * 0.4, -(y.sigmoid() * 0.1 + 0.4) * limits.max
    elif kind == "tiny":
        x, y = x * limits.tiny * 1e3, y * limits.tiny * 1e3
    elif kind == "special":
        x[::5], y[1::5] = NAN, INF
        x[2::5], y[2::5] = INF, -INF
        x[3::5] = -INF
    return x, y


def _lay_out(t: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with other strides, on the same device."""
    if layout == "expanded":
        return t[:1].clone().expand(t.shape)
    if layout == "every second":
        view = t.new_full((2 * t.numel(),), 77)[::2]
    elif layout == "transposed":
        view = t.new_empty(t.shape[::-1]).t()
    else:
        return t
    return view.copy_(t)


def _output(kind: str | None, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, Any]:
    """(x, y, out); x may be laid anew, so that out can follow it in memory."""
    if kind == "follows":
        both = torch.cat([x, torch.full_like(x, 55)])
        return both[: x.numel()], y, both[x.numel() :]
    own = torch.full(x.shape, 55, dtype=x.dtype, device=x.device)
    return x, y, {None: None, "own": own, "x": x, "y": y}[kind]


def reference(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """The exact result."""
    return float(a) * x.double() + y.double()


def torch_op(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """PyTorch's own, in one operation."""
    return torch.add(y, x, alpha=float(a))


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> Arguments:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    return 2.5, draw(case.shape, case.dtype), draw(case.shape, case.dtype), None


def expected_at(
    indices: torch.Tensor, a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor | None
) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    return a * x.reshape(-1)[indices].double() + y.reshape(-1)[indices].double()


def eager(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor | None) -> torch.Tensor:
    """What one would write without Triton, in two operations."""
    return a * x + y


def least_bytes(case: Case) -> int:
    """Both operands read once, the result written once."""
    return 3 * torch.Size(case.shape).numel() * case.dtype.itemsize


def flops(case: Case) -> int:
    """One multiplication and one addition an element."""
    return 2 * torch.Size(case.shape).numel()


def _bad(change: Callable[[torch.Tensor], tuple[Any, ...]]) -> Callable[[torch.device], tuple[Any, ...]]:
    """The arguments that `change` makes of 64 ones on the device."""
    return lambda device: change(torch.ones(64, device=device))


REFUSED = [
    Refusal("y is shorter", _bad(lambda t: (2.0, t, t[:40].clone()))),
    Refusal("y has one element", _bad(lambda t: (2.0, t, t[:1].clone()))),
    Refusal("as many elements in another shape", _bad(lambda t: (2.0, t.view(4, 16), t.view(16, 4)))),
    Refusal("float32 and float16", _bad(lambda t: (2.0, t, t.half())), (TypeError,)),
    Refusal("integers", _bad(lambda t: (2.0, t.int(), t.int())), (TypeError,)),
    # Not "cuda" or "cpu": which of the two runs kernels depends on the machine. `meta` never does.
    Refusal("y on another device", _bad(lambda t: (2.0, t, t.to("meta"))), (ValueError,)),
    Refusal("y is a list", _bad(lambda t: (2.0, t, [1.0] * 64)), (TypeError,)),
    Refusal("a is a tensor", _bad(lambda t: (t[0], t, t)), (TypeError,)),
    Refusal("out has another shape", _bad(lambda t: (2.0, t, t, t.new_empty(65))), (ValueError,)),
    Refusal("out has another dtype", _bad(lambda t: (2.0, t, t, t.half())), (TypeError,)),
    Refusal("out is on another device", _bad(lambda t: (2.0, t, t, t.to("meta"))), (ValueError,)),
    Refusal("out is not contiguous", _bad(lambda t: (2.0, t, t, t.new_empty(128)[::2])), (ValueError,)),
    Refusal("out overlaps x", _bad(lambda t: (2.0, t[:60], t[:60].clone(), t[4:])), (ValueError,)),
    Refusal("out overlaps y", _bad(lambda t: (2.0, t[:60].clone(), t[4:], t[:60])), (ValueError,)),
    Refusal("out is a list", _bad(lambda t: (2.0, t, t, [0.0] * 64)), (TypeError,)),
]


def questions(draw: random.Random) -> list[Question]:
    """Five of the eight calls."""
    seed = draw.randrange(1000)
    return [
        Question("outcome", (name,), partial(_outcome, name, seed), f"What does unguarded make of {name!r}?")
        for name in draw.sample(sorted(_CALLS), 5)
    ]


_CALLS: dict[str, Callable[[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]] = {
    "y is shorter": lambda s, t: (s[:1000], t[:600].clone()),
    "other shape": lambda s, t: (s.view(40, 60), t.view(60, 40)),
    "y is expanded": lambda s, t: (s[:1000], t[:1].clone().expand(1000)),
    "x is every second": lambda s, t: (s[:2000:2], t[:1000]),
    "both are transposed": lambda s, t: (s.view(60, 40).t(), t.view(60, 40).t()),
    "x is transposed": lambda s, t: (s.view(60, 40).t(), t.view(40, 60)),
    "y is float16": lambda s, t: (s, t.half()),
    "y is elsewhere": lambda s, t: (s, t.to("meta")),
}


def _outcome(name: str, seed: int, lab: Lab) -> str:
    """Runs the kernel behind no wrapper to speak of, and looks at what it touched and what came out."""
    generator = torch.Generator().manual_seed(seed)
    x, y = _CALLS[name](torch.randn(2400, generator=generator), torch.randn(2400, generator=generator))
    results: list[torch.Tensor] = []
    try:
        launches = lab.launches(lambda: results.append(lab.reference_module.unguarded(2.5, x, y)))
    except Exception:  # whatever it is, it is an exception
        return "fault"
    if any(violation.kind.endswith("_outside") for launch in launches for violation in launch.violations):
        return "fault"
    try:
        expected = 2.5 * x + y
    except RuntimeError:  # shapes that PyTorch refuses
        return "silently wrong"
    (result,) = results
    alike = result.dtype == expected.dtype and result.shape == expected.shape
    # Rounding may differ, for the kernel rounds once where PyTorch rounds twice; a wrong element differs by far more.
    return "right" if alike and torch.allclose(result, expected, rtol=1e-3, atol=1e-3) else "silently wrong"
