"""What a right shift does, and on which inputs it is asked to."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch
import triton

from checker.cases import Case, Question, Refusal

if TYPE_CHECKING:
    from checker.lab import Lab

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
INF, NAN = float("inf"), float("nan")

CASES = [
    Case("n=1024, k=3", n=1024, k=3, dtype=F32),
    Case("n=1024, k=-3", n=1024, k=-3, dtype=F32),
    Case("n=1024, k=0", n=1024, k=0, dtype=F32),
    Case("n=3072, k=5, three full blocks", n=3072, k=5, dtype=F32),
    Case("n=257, k=5, ragged", n=257, k=5, dtype=F32),
    Case("n=5000, k=1, ragged, several blocks", n=5000, k=1, dtype=F32),
    Case("n=5000, k=-700", n=5000, k=-700, dtype=F32),
    Case("n=3000, k=1500, more than a block", n=3000, k=1500, dtype=F32),
    Case("n=3000, k=3000, all shifted out", n=3000, k=3000, dtype=F32),
    Case("n=300, k=-1000, all shifted out", n=300, k=-1000, dtype=F32),
    Case("n=300, k=2^40", n=300, k=2**40, dtype=F32),
    Case("n=1, k=0", n=1, k=0, dtype=F32),
    Case("n=1, k=-1", n=1, k=-1, dtype=F32),
    Case("n=0, empty", n=0, k=4, dtype=F32),
    Case("float16", n=1500, k=-7, dtype=F16),
    Case("bfloat16", n=1500, k=7, dtype=BF16),
    Case("a drawn n and k", n=None, k=None, dtype=F32),
    Case("fill is NaN", stage="numerics", n=1100, k=-30, dtype=F32, fill=NAN),
    Case("fill is -inf", stage="numerics", n=1100, k=30, dtype=F16, fill=-INF),
    Case("fill is rounded", stage="numerics", n=1100, k=30, dtype=BF16, fill=0.1),
    Case("x holds NaN and infinities", stage="numerics", n=1100, k=30, dtype=F32, special=True),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor, int, float]:
    """Draw x, spread widely around 2. The fill is -7.5 unless the case names one."""
    draw = torch.Generator().manual_seed(seed)
    n, k = case.n, case.k
    if n is None:
        n = int(torch.randint(2, 6000, (1,), generator=draw))
        k = int(torch.randint(-n, n, (1,), generator=draw))
    x = (torch.randn(n, generator=draw) * 8 + 2).to(case.dtype)
    if case.params.get("special"):
        x[::5], x[1::5], x[2::5] = NAN, INF, -INF
    return x.to(device), k, case.params.get("fill", -7.5)


def reference(x: torch.Tensor, k: int, fill: float) -> torch.Tensor:
    """y[i] = x[i - k] if there is such an element, else fill."""
    return _shifted(x.double(), k, fill)


def torch_op(x: torch.Tensor, k: int, fill: float) -> torch.Tensor:
    """A filled tensor, and a copy of a slice into it."""
    return _shifted(x, k, fill)


def _shifted(x: torch.Tensor, k: int, fill: float) -> torch.Tensor:
    y = torch.full_like(x, fill)
    n = x.numel()
    first, last = max(0, k), min(n, n + k)
    if first < last:
        y[first:last] = x[first - k : last - k]
    return y


def timed_inputs(
    case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]
) -> tuple[torch.Tensor, int, float]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    return draw((case.n,), case.dtype), case.k, -7.5


def expected_at(indices: torch.Tensor, x: torch.Tensor, k: int, fill: float) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    source = indices - k
    exists = (source >= 0) & (source < x.numel())
    return torch.where(exists, x[source.clamp(0, x.numel() - 1)].double(), fill)


def eager(x: torch.Tensor, k: int, fill: float) -> torch.Tensor:
    """What one would write without Triton."""
    return _shifted(x, k, fill)


def least_bytes(case: Case) -> int:
    """Elements that stay are read once; every element of y is written once."""
    return (max(0, case.n - abs(case.k)) + int(case.n)) * case.dtype.itemsize


def flops(case: Case) -> int:
    """A shift computes nothing but addresses."""
    return 0


REFUSED = [
    Refusal("2 dimensions", lambda device: (torch.ones(4, 5, device=device), 1, 0.0)),
    Refusal("every second element", lambda device: (torch.ones(64, device=device)[::2], 1, 0.0)),
    Refusal("integers", lambda device: (torch.ones(64, device=device, dtype=torch.int32), 1, 0.0)),
    Refusal("k is a fraction", lambda device: (torch.ones(64, device=device), 1.5, 0.0)),
]


def questions(draw: random.Random) -> list[Question]:
    """A shift in each direction, none, and one that leaves nothing; n is never a whole number of blocks."""
    block = draw.choice([64, 128, 256])
    n = block * draw.randrange(2, 9) + draw.randrange(1, block)
    beyond = draw.choice([1, -1]) * (n + draw.randrange(block, 999))
    shifts = [draw.randrange(1, block), -draw.randrange(1, n), 0, beyond]
    return [
        Question(
            "masked_off",
            (n, k, block),
            partial(_traced_lanes, n, k, block),
            "How many lanes does the mask of the load hold back, and how many that of the store?",
        )
        for k in shifts
    ]


def _traced_lanes(n: int, k: int, block: int, lab: Lab) -> tuple[int, int]:
    """The lanes that a run of the solved kernel holds back."""
    x, y = torch.ones(n), torch.empty(n)
    kernel = lab.reference_module.shift_kernel
    (launch,) = lab.launches(
        lambda: kernel[(triton.cdiv(n, block),)](x, y, n, k, 0.0, BLOCK_SIZE=block),
    )
    (load,), (store,) = launch.loads, launch.stores
    return load.masked, store.masked
