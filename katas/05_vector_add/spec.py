"""What a right vector_add does, and on which inputs it is asked to."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch

from checker.cases import Case, Question, Refusal
from checker.vgpu.specs import CHIPS

if TYPE_CHECKING:
    from checker.lab import Lab

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16

# The result is contiguous, whatever the inputs are.
CONTIGUOUS = True

# `layout` says how x and y lie in memory; see _lay_out.
CASES = [
    Case("n=1024, one full block", shape=(1024,), dtype=F32),
    Case("n=1", shape=(1,), dtype=F32),
    Case("n=257, ragged", shape=(257,), dtype=F32),
    Case("n=5000, ragged, several blocks", shape=(5000,), dtype=F32),
    Case("float16", shape=(1500,), dtype=F16),
    Case("bfloat16", shape=(1500,), dtype=BF16),
    Case("3 x 5 x 7", shape=(3, 5, 7), dtype=F32),
    Case("no dimensions", shape=(), dtype=F32),
    Case("n=0, empty", shape=(0,), dtype=F32),
    Case("0 x 4, empty", shape=(0, 4), dtype=F32),
    Case("x every second element, y contiguous", shape=(700,), dtype=F32, layout=("every second", "contiguous")),
    Case("x transposed, y contiguous", shape=(30, 50), dtype=F32, layout=("transposed", "contiguous")),
    Case("both transposed", shape=(30, 50), dtype=F32, layout=("transposed", "transposed")),
    Case("y one row, expanded", shape=(30, 50), dtype=F32, layout=("contiguous", "expanded")),
    Case("a drawn size", shape=None, dtype=F32),
    Case("large and tiny together", stage="numerics", shape=(1100,), dtype=F32, values="wide"),
    Case("near the largest float16", stage="numerics", shape=(1100,), dtype=F16, values="near the largest"),
    Case("x + y almost cancels", stage="numerics", shape=(1100,), dtype=BF16, values="cancelling"),
    Case("subnormal numbers", stage="numerics", shape=(1100,), dtype=F32, values="subnormal"),
    Case("NaN and infinities", stage="numerics", shape=(1100,), dtype=F32, values="special"),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw x around 2 and y around -1, both spread widely, laid out as the case says."""
    draw = torch.Generator().manual_seed(seed)
    drawn = int(torch.randint(2, 9000, (1,), generator=draw))
    shape = (drawn,) if case.shape is None else case.shape
    x = torch.randn(shape, generator=draw) * 5 + 2
    y = torch.randn(shape, generator=draw) * 3 - 1
    x, y = _set_values(x, y, case.params.get("values", "plain"), case.dtype)
    layouts = case.params.get("layout", ("contiguous", "contiguous"))
    x, y = (_lay_out(t.to(case.dtype).to(device), layout) for t, layout in zip((x, y), layouts, strict=True))
    return x, y


def _set_values(x: torch.Tensor, y: torch.Tensor, kind: str, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    limits = torch.finfo(dtype)
    if kind == "wide":
        x = x * 10.0 ** torch.linspace(-30, 30, x.numel())
    elif kind == "near the largest":
        # Sums of up to the largest number: no overflow, and nothing that passes through a narrower range survives.
        x, y = x.sigmoid() * limits.max * 0.6, y.sigmoid() * limits.max * 0.39
    elif kind == "cancelling":
        y = -x.to(dtype).float() * (1 + y.sign() * 2 * limits.eps)
    elif kind == "subnormal":
        x, y = x * limits.smallest_normal / 64, y * limits.smallest_normal / 64
    elif kind == "special":
        x[::5], y[1::5] = float("nan"), float("inf")
        x[2::5], y[2::5] = float("inf"), -float("inf")
        x[3::5], y[4::5] = -float("inf"), float("nan")
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


def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The exact sum."""
    return x.double() + y.double()


def torch_op(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """PyTorch's own sum."""
    return x + y


def timed_inputs(
    case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    return (draw(case.shape, case.dtype), draw(case.shape, case.dtype))


def expected_at(indices: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    return x.reshape(-1)[indices].double() + y.reshape(-1)[indices].double()


def eager(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """What one would write without Triton."""
    return x + y


def least_bytes(case: Case) -> int:
    """Both operands read once, the sum written once."""
    return 3 * torch.Size(case.shape).numel() * case.dtype.itemsize


def flops(case: Case) -> int:
    """One addition an element."""
    return torch.Size(case.shape).numel()


REFUSED = [
    Refusal("y is shorter", lambda device: (torch.ones(100, device=device), torch.ones(60, device=device))),
    Refusal("y has one element", lambda device: (torch.ones(100, device=device), torch.ones(1, device=device))),
    Refusal("y is a row", lambda device: (torch.ones(4, 5, device=device), torch.ones(5, device=device))),
    Refusal(
        "as many elements in another shape",
        lambda device: (torch.ones(4, 6, device=device), torch.ones(6, 4, device=device)),
    ),
    Refusal(
        "float32 and float16", lambda device: (torch.ones(64, device=device), torch.ones(64, device=device, dtype=F16))
    ),
    # Not "cuda" or "cpu": which of the two runs kernels depends on the machine. `meta` never does.
    Refusal("y on another device", lambda device: (torch.ones(64, device=device), torch.ones(64, device="meta"))),
]


def questions(draw: random.Random) -> list[Question]:
    """Two traffic counts, and the break-even point of two chips."""
    asked = []
    for itemsize, dtype in ((2, F16), (4, F32)):
        n = draw.randrange(1000, 20000)
        asked.append(
            Question("bytes_moved", (n, itemsize), partial(_traced_bytes, n, dtype), "How many bytes does a call move?")
        )
    for name in draw.sample(sorted(CHIPS), 2):
        chip = CHIPS[name]
        itemsize, dtype = draw.choice([(2, F16), (4, F32)])
        asked.append(
            Question(
                "break_even",
                (itemsize, chip.launch_latency_us, chip.dram_gb_per_s),
                partial(_break_even, chip.launch_latency_us, chip.dram_gb_per_s, dtype),
                f"Below which n does the launch outweigh the bytes on an {chip.name}?",
                tolerance=0.05,
            )
        )
    return asked


def _traced_bytes(n: int, dtype: torch.dtype, lab: Lab) -> int:
    launches = lab.launches(lab.reference_module.vector_add, torch.ones(n, dtype=dtype), torch.ones(n, dtype=dtype))
    return sum(launch.bytes_loaded + launch.bytes_stored for launch in launches)


def _break_even(launch_us: float, gb_per_s: float, dtype: torch.dtype, lab: Lab) -> float:
    """Bytes an element from a trace; the times from the chip's figures, until the clock takes over."""
    bytes_an_element = _traced_bytes(4096, dtype, lab) / 4096
    return launch_us * 1e-6 * gb_per_s * 1e9 / bytes_an_element
