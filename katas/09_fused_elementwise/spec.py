"""What a right silu_mul does, and on which inputs it is asked to."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from checker.cases import Case, Question, Refusal

if TYPE_CHECKING:
    from checker.lab import Lab

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16

# The chip computes exp with ex2.approx and divides with div.full: two units in the last place each (CUDA C++
# Programming Guide, "Mathematical Functions"), which PyTorch on a CPU does not show.
UNITS = 4.0

# The result is contiguous, whatever the inputs are.
CONTIGUOUS = True

# `layout` says how gate and up lie in memory, `values` what lies there; see _lay_out and _set_values.
CASES = [
    Case("n=1024, one full block", shape=(1024,), dtype=F32),
    Case("n=1", shape=(1,), dtype=F32),
    Case("n=257, ragged", shape=(257,), dtype=F32),
    Case("n=5000, ragged, several blocks", shape=(5000,), dtype=F32),
    Case("float16", shape=(1500,), dtype=F16),
    Case("bfloat16", shape=(1500,), dtype=BF16),
    Case("3 x 5 x 7", shape=(3, 5, 7), dtype=F32),
    Case("n=0, empty", shape=(0,), dtype=F32),
    Case("gate and up are halves of one matrix", shape=(20, 60), dtype=F16, layout=("left half", "right half")),
    Case("gate transposed, up contiguous", shape=(30, 50), dtype=F32, layout=("transposed", "contiguous")),
    Case("up one row, expanded", shape=(30, 50), dtype=F32, layout=("contiguous", "expanded")),
    Case("a drawn size", shape=None, dtype=BF16),
    Case("gates around 100", stage="numerics", shape=(1100,), dtype=F32, values=100.0),
    Case("gates around -100", stage="numerics", shape=(1100,), dtype=F32, values=-100.0),
    Case("float16 gates around 300", stage="numerics", shape=(1100,), dtype=F16, values=300.0),
    Case("tiny gates", stage="numerics", shape=(1100,), dtype=F32, values="tiny"),
    Case("silu(gate) tiny, up large", stage="numerics", shape=(1100,), dtype=F16, values="lost in between"),
    Case("NaN and infinities", stage="numerics", shape=(1100,), dtype=F32, values="special"),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw gate around 1 and up around -2, both spread widely, laid out as the case says."""
    draw = torch.Generator().manual_seed(seed)
    drawn = int(torch.randint(2, 9000, (1,), generator=draw))
    shape = (drawn,) if case.shape is None else case.shape
    gate = torch.randn(shape, generator=draw) * 4 + 1
    up = torch.randn(shape, generator=draw) * 5 - 2
    gate, up = _set_values(gate, up, case.params.get("values", "plain"))
    layouts = case.params.get("layout", ("contiguous", "contiguous"))
    gate, up = (_lay_out(t.to(case.dtype).to(device), layout) for t, layout in zip((gate, up), layouts, strict=True))
    return gate, up


def _set_values(gate: torch.Tensor, up: torch.Tensor, values: str | float) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(values, float):
        return gate + values, up
    if values == "tiny":
        gate = gate * 1e-30
    elif values == "lost in between":
        # silu is below what float16 holds with all its bits; the product is well within.
        gate, up = gate.sigmoid() - 13, up.abs() * 1000 + 1000
    elif values == "special":
        inf, nan = float("inf"), float("nan")
        gate[::5], up[1::5] = nan, inf
        gate[2::5], up[2::5] = inf, -inf
        gate[3::5] = -inf
    return gate, up


def _lay_out(t: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with other strides, on the same device."""
    if layout == "expanded":
        return t[:1].clone().expand(t.shape)
    if layout == "transposed":
        view = t.new_empty(t.shape[::-1]).t()
    elif layout.endswith("half"):
        # As a linear layer leaves them that computes both at once.
        M, N = t.shape
        view = t.new_full((M, 2 * N), 77)[:, :N] if layout == "left half" else t.new_full((M, 2 * N), 77)[:, N:]
    else:
        return t
    return view.copy_(t)


def reference(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """The product in float64."""
    return functional.silu(gate.double()) * up.double()


def torch_op(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """PyTorch's own: two operations, with a rounding in between."""
    return functional.silu(gate) * up


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    return draw(case.shape, case.dtype), draw(case.shape, case.dtype)


def expected_at(indices: torch.Tensor, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    return reference(gate.flatten()[indices], up.flatten()[indices])


def eager(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    """What one would write without Triton."""
    return torch.nn.functional.silu(gate) * up


def least_bytes(case: Case) -> int:
    """Both operands read once, the product written once."""
    return 3 * torch.Size(case.shape).numel() * case.dtype.itemsize


def flops(case: Case) -> int:
    """Five operations an element: negate, exponentiate, add, divide, multiply."""
    return 5 * torch.Size(case.shape).numel()


REFUSED = [
    Refusal("up is shorter", lambda device: (torch.ones(100, device=device), torch.ones(60, device=device))),
    Refusal("up has one element", lambda device: (torch.ones(100, device=device), torch.ones(1, device=device))),
    Refusal("up is a row", lambda device: (torch.ones(4, 5, device=device), torch.ones(5, device=device))),
    Refusal(
        "float32 and float16", lambda device: (torch.ones(64, device=device), torch.ones(64, device=device, dtype=F16))
    ),
    Refusal("integers", lambda device: (torch.ones(64, device=device).int(), torch.ones(64, device=device).int())),
    # Not "cuda" or "cpu": which of the two runs kernels depends on the machine. `meta` never does.
    Refusal("up on another device", lambda device: (torch.ones(64, device=device), torch.ones(64, device="meta"))),
]

_ALONE: dict[str, Callable[[Any], Any]] = {
    "silu": functional.silu,
    "relu": torch.relu,
    "exp": torch.exp,
    "neg": torch.neg,
}
_COMBINED: dict[str, Callable[[Any, Any], Any]] = {"mul": torch.mul, "add": torch.add, "sub": torch.sub}

_SNIPPETS: dict[str, Callable[..., torch.Tensor]] = {
    "gated": lambda a, b: functional.silu(a) * b,
    "scaled": lambda a: a * 2 + 1,
    "biased": lambda a, v: torch.relu(a + v),
    "leaky": lambda a: torch.where(a > 0, a, 0.1 * a),
    "copied": lambda a: a.clone(),
    "activated": lambda a: torch.tanh(a),
    "turned": lambda a: a.t(),
    "product": lambda a, w: a @ w,
}

# What gives a level away, in NVIDIA's and AMD's spelling.
_MARKS = {
    "program id": r"\btt\.get_program_id\b",
    "block layout": r"\bsizePerThread\b",
    "thread id": r"\btid\.x\b|\bworkitem\.id\.x\b",
    "registers": r"^\s*\.reg\s+\.b32\b|^\s*\.vgpr_count\b|\.amdhsa_next_free_vgpr\b",
}


def questions(draw: random.Random) -> list[Question]:
    """Two chains, four of the eight snippets, two of the four things that a level may speak of."""
    asked = []
    for length in draw.sample([2, 3, 4], 2):
        chain = tuple(draw.choice([*_ALONE, *_COMBINED]) for _ in range(length))
        asked.append(
            Question(
                "eager_over_fused",
                (chain,),
                partial(_traced_ratio, chain),
                "How many times the bytes of a fused kernel does this chain move?",
                tolerance=0.01,
            )
        )
    asked += [
        Question("worth_a_kernel", (name,), partial(_saves_bytes, name), f"Is {name!r} worth a kernel of its own?")
        for name in draw.sample(sorted(_SNIPPETS), 4)
    ]
    asked += [
        Question("first_level", (what,), partial(_first_level, what), f"Which level is the first to speak of: {what}?")
        for what in draw.sample(sorted(_MARKS), 2)
    ]
    return asked


def _traced_ratio(chain: tuple[str, ...], lab: Lab) -> float:
    """The bytes of the operations that PyTorch really runs, over those of the tensors that come in and go out."""
    operands = [torch.empty(1 << 24, dtype=F16, device="meta") for name in chain if name in _COMBINED]

    def eager(x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        waiting = list(others)
        for name in chain:
            x = _COMBINED[name](x, waiting.pop()) if name in _COMBINED else _ALONE[name](x)
        return x

    x = torch.empty(1 << 24, dtype=F16, device="meta")
    return lab.eager(eager, x, *operands).bytes / ((len(operands) + 2) * x.numel() * x.element_size())


def _saves_bytes(name: str, lab: Lab) -> bool:
    """Whether the snippet moves a quarter more than its inputs and its output, each once."""
    shapes = {"a": (4096, 4096), "b": (4096, 4096), "w": (4096, 4096), "v": (4096,)}
    snippet = _SNIPPETS[name]
    names = snippet.__code__.co_varnames[: snippet.__code__.co_argcount]
    inputs = [torch.empty(shapes[operand], dtype=F16, device="meta") for operand in names]
    results: list[torch.Tensor] = []
    eager = lab.eager(lambda *operands: results.append(snippet(*operands)), *inputs)
    fused = sum(tensor.numel() * tensor.element_size() for tensor in [*inputs, *results])
    return eager.bytes >= 1.25 * fused


def _first_level(what: str, lab: Lab) -> str:
    """The first level of the solved kernel, compiled for the chip at hand, that holds the mark."""
    x = torch.ones(2048, dtype=F16)
    texts = lab.texts(lab.reference_module.silu_mul, x, x)
    found = next(level for level, text in texts.items() if re.search(_MARKS[what], text, re.MULTILINE))
    return {"amdgcn": "ptx"}.get(found, found)
