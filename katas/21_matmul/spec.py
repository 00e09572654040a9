"""What a right matmul does, and on which inputs it is asked to."""

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

F16, BF16 = torch.float16, torch.bfloat16
INF, NAN = float("inf"), float("nan")

# No DOT_PRECISION here: a product of two float16 or bfloat16 numbers is exact in float32, so nothing is truncated.
# Kata 23, which accepts float32, sets it to "tf32".

# The result is contiguous, whatever the inputs are.
CONTIGUOUS = True

# `size` is (M, N, K); `layout` says how a and b lie in memory, `values` what lies there.
CASES = [
    Case("32 x 64, K=128", size=(32, 64, 128), dtype=F16),
    Case("64 x 128, K=384", size=(64, 128, 384), dtype=F16),
    Case("K=100, less than a step", size=(64, 128, 100), dtype=F16),
    Case("K=300, a ragged last step", size=(64, 128, 300), dtype=F16),
    Case("K=1", size=(64, 128, 1), dtype=F16),
    Case("1 x 1, K=1", size=(1, 1, 1), dtype=F16),
    Case("33 x 150, K=70, ragged", size=(33, 150, 70), dtype=F16),
    Case("150 x 20, K=257, tall", size=(150, 20, 257), dtype=F16),
    Case("1 x 200, K=300, one row", size=(1, 200, 300), dtype=F16),
    Case("bfloat16", size=(70, 90, 200), dtype=BF16),
    Case("K=0, a sum of nothing", size=(40, 50, 0), dtype=F16),
    Case("M=0, empty", size=(0, 50, 60), dtype=F16),
    Case("a is a transposed view", size=(70, 90, 200), dtype=F16, layout=("transposed", "contiguous")),
    Case("b is a transposed view", size=(70, 90, 200), dtype=F16, layout=("contiguous", "transposed")),
    Case("both are slices", size=(70, 90, 200), dtype=F16, layout=("sliced", "sliced")),
    Case("b is one row, expanded", size=(70, 90, 200), dtype=F16, layout=("contiguous", "expanded")),
    # Row 2 begins 2^31 elements after row 0. Only pages that are touched exist: this costs no memory.
    Case("rows of a 2^30 elements apart", size=(3, 40, 20), dtype=F16, layout=("far rows", "contiguous")),
    Case("rows of b 2^30 elements apart", size=(40, 20, 3), dtype=F16, layout=("contiguous", "far rows")),
    Case("a drawn size", size=None, dtype=F16),
    Case("partial sums far above the result", stage="numerics", size=(40, 70, 1024), dtype=F16, values="cancelling"),
    Case("partial sums past 65504", stage="numerics", size=(40, 70, 1024), dtype=F16, values="cancelling, large"),
    Case("a long sum of positive numbers", stage="numerics", size=(40, 70, 2048), dtype=BF16, values="positive"),
    Case("tiny factors", stage="numerics", size=(40, 70, 200), dtype=BF16, values="tiny"),
    Case("NaN and infinities in a", stage="numerics", size=(40, 70, 200), dtype=F16, values="special"),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a around 0.5 and b around -0.5, both of variance about 1, laid out as the case says."""
    draw = torch.Generator().manual_seed(seed)
    drawn = tuple(torch.randint(2, 200, (3,), generator=draw).tolist())
    M, N, K = drawn if case.size is None else case.size
    a = torch.randn((M, K), generator=draw) + 0.5
    b = torch.randn((K, N), generator=draw) - 0.5
    a, b = _set_values(a, b, case.params.get("values", "plain"))
    layouts = case.params.get("layout", ("contiguous", "contiguous"))
    a, b = (_lay_out(t.to(case.dtype).to(device), layout) for t, layout in zip((a, b), layouts, strict=True))
    return a, b


def _set_values(a: torch.Tensor, b: torch.Tensor, values: str) -> tuple[torch.Tensor, torch.Tensor]:
    half = a.shape[1] // 2
    if values.startswith("cancelling"):
        # The first half of K adds up to a large number, the second half takes it away again.
        scale = 16.0 if values.endswith("large") else 1.0
        a = (a * 0.05 + 1) * scale
        b = (b * 0.05 + 1) * scale
        b[half:] = -b[half:]
    elif values == "positive":
        a, b = a.abs() + 0.5, b.abs() + 0.5
    elif values == "tiny":
        a, b = a * 1e-15, b * 1e-15
    elif values == "special":
        # In the last step along K too, next to what a mask must hold back.
        a[1, 3], a[2, -1], a[5, 0] = INF, NAN, -INF
    return a, b


def _lay_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with other strides, on the same device."""
    M, N = x.shape
    if layout == "expanded":
        return x[:1].clone().expand(M, N)
    if layout == "transposed":
        view = x.new_empty((N, M)).t()
    elif layout == "sliced":
        # What lies in the gaps must not count: it would be seen at once.
        view = x.new_full((M, N + 13), 777)[:, 6 : N + 6]
    elif layout == "far rows":
        view = torch.empty_strided((M, N), (2**30, 1), dtype=x.dtype, device=x.device)
    else:
        return x
    return view.copy_(x)


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product in float64."""
    return a.double() @ b.double()


def torch_op(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """PyTorch's own product."""
    return a @ b


def timed_inputs(
    case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    return (draw((case.size[0], case.size[2]), case.dtype), draw((case.size[2], case.size[1]), case.dtype))


def expected_at(indices: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    N = b.shape[1]
    return (a[indices // N].double() * b[:, indices % N].t().double()).sum(1)


def eager(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """What one would write without Triton."""
    return a @ b


def least_bytes(case: Case) -> int:
    """Both operands read once, the product written once."""
    M, N, K = case.size
    return (M * K + K * N + M * N) * case.dtype.itemsize


def flops(case: Case) -> int:
    """A multiplication and an addition for each of M N K products."""
    M, N, K = case.size
    return 2 * M * N * K


REFUSED = [
    Refusal("inner sizes differ", lambda device: (_ones(device, 32, 48), _ones(device, 32, 48))),
    Refusal("a has 1 dimension", lambda device: (_ones(device, 32), _ones(device, 32, 48))),
    Refusal("b has 3 dimensions", lambda device: (_ones(device, 32, 48), _ones(device, 48, 2, 2))),
    Refusal("float16 and bfloat16", lambda device: (_ones(device, 32, 48), _ones(device, 48, 32).to(BF16))),
    Refusal("float32", lambda device: (_ones(device, 32, 48).float(), _ones(device, 48, 32).float())),
    # Not "cuda" or "cpu": which of the two runs kernels depends on the machine. `meta` never does.
    Refusal("b on another device", lambda device: (_ones(device, 32, 48), _ones("meta", 48, 32))),
]


def _ones(device: torch.device | str, *shape: int) -> torch.Tensor:
    return torch.ones(shape, dtype=F16, device=device)


def questions(draw: random.Random) -> list[Question]:
    """Three products, each cut into another tile."""
    asked = []
    for tile in draw.sample([(16, 32, 64), (32, 16, 32), (64, 32, 16), (32, 64, 32), (16, 128, 32)], 3):
        M, N, K = (draw.randrange(20, 200) for _ in range(3))
        asked.append(
            Question(
                "bytes_of_a",
                (M, N, K, *tile, 2),
                partial(_traced_bytes_of_a, (M, N, K), tile),
                "How many bytes of a do all programs request together?",
            )
        )
    return asked


def _traced_bytes_of_a(size: tuple[int, int, int], tile: tuple[int, int, int], lab: Lab) -> int:
    """What the solved kernel's loads of a asked for, over all programs of a launch with this tile."""
    M, N, K = size
    BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K = tile
    a, b, c = (torch.ones(shape, dtype=F16) for shape in ((M, K), (K, N), (M, N)))
    kernel = lab.reference_module.matmul_kernel
    grid = (triton.cdiv(M, BLOCK_SIZE_M) * triton.cdiv(N, BLOCK_SIZE_N),)

    def multiply() -> None:
        kernel[grid](
            a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(),
            BLOCK_SIZE_M=BLOCK_SIZE_M, BLOCK_SIZE_N=BLOCK_SIZE_N, BLOCK_SIZE_K=BLOCK_SIZE_K,
        )  # fmt: skip

    (launch,) = lab.launches(multiply)
    return sum(load.bytes for load in launch.loads if load.argument == "a_ptr")
