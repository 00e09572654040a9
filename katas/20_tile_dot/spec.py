"""What a right tile_dot does, and on which inputs it is asked to."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import torch

from checker.cases import Case, Question, Refusal

if TYPE_CHECKING:
    from checker.lab import Lab

F16, BF16, I8 = torch.float16, torch.bfloat16, torch.int8
INF, NAN = float("inf"), float("nan")

# The result is contiguous, whatever the inputs are.
CONTIGUOUS = True

# `size` is (M, N, K); `layout` says how a and b lie in memory, `values` what lies there.
CASES = [
    Case("32 x 128, K=64, one full tile", size=(32, 128, 64), dtype=F16),
    Case("K=40, padded", size=(32, 128, 40), dtype=F16),
    Case("K=1", size=(32, 128, 1), dtype=F16),
    Case("1 x 1, K=1", size=(1, 1, 1), dtype=F16),
    Case("50 x 200, K=64, four ragged tiles", size=(50, 200, 64), dtype=F16),
    Case("90 x 20, K=50, tall", size=(90, 20, 50), dtype=F16),
    Case("bfloat16", size=(40, 90, 50), dtype=BF16),
    Case("K=0, a sum of nothing", size=(40, 50, 0), dtype=F16),
    Case("M=0, empty", size=(0, 50, 60), dtype=F16),
    Case("a is a transposed view", size=(40, 90, 50), dtype=F16, layout=("transposed", "contiguous")),
    Case("b is a transposed view", size=(40, 90, 50), dtype=F16, layout=("contiguous", "transposed")),
    Case("both are slices", size=(40, 90, 50), dtype=F16, layout=("sliced", "sliced")),
    Case("b is one row, expanded", size=(40, 90, 50), dtype=F16, layout=("contiguous", "expanded")),
    # Row 2 begins 2^31 elements after row 0. Only pages that are touched exist: this costs no memory.
    Case("rows of a 2^30 elements apart", size=(3, 40, 20), dtype=F16, layout=("far rows", "contiguous")),
    Case("rows of b 2^30 elements apart", size=(40, 20, 3), dtype=F16, layout=("contiguous", "far rows")),
    Case("a drawn size", size=None, dtype=F16),
    Case("partial sums far above the result", stage="numerics", size=(40, 70, 64), dtype=F16, values="cancelling"),
    Case("partial sums past 65504", stage="numerics", size=(40, 70, 64), dtype=F16, values="cancelling, large"),
    Case("tiny factors", stage="numerics", size=(40, 70, 50), dtype=BF16, values="tiny"),
    Case("NaN and infinities in a", stage="numerics", size=(40, 70, 50), dtype=F16, values="special in a"),
    Case("NaN and infinities in b", stage="numerics", size=(40, 70, 50), dtype=F16, values="special in b"),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a around 0.5 and b around -0.5, both of variance about 1, laid out as the case says."""
    draw = torch.Generator().manual_seed(seed)
    drawn = (*torch.randint(2, 150, (2,), generator=draw).tolist(), int(torch.randint(2, 65, (1,), generator=draw)))
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
        scale = 60.0 if values.endswith("large") else 1.0
        a = (a * 0.05 + 1) * scale
        b = (b * 0.05 + 1) * scale
        b[half:] = -b[half:]
    elif values == "tiny":
        a, b = a * 1e-15, b * 1e-15
    elif values == "special in a":
        # In the last column too, next to what a mask must hold back.
        a[1, 3], a[2, -1], a[5, 0] = INF, NAN, -INF
    elif values == "special in b":
        b[3, 1], b[-1, 2], b[0, 5] = INF, NAN, -INF
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
    Refusal("K=65", lambda device: (_ones(device, 32, 65), _ones(device, 65, 48))),
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
    """Four tiles near the edge of what compiles: two with 16 elements along K, one thin, one of an odd size."""
    # Of int8 the same number of elements is half as many bytes: one of the two does not compile.
    tiles = [(draw.choice([16, 32]), 32, 16, dtype) for dtype in (I8, draw.choice([F16, BF16]))]
    tiles.append((draw.choice([1, 4, 8]), draw.choice([4, 8, 64]), 32, draw.choice([F16, BF16])))
    sides = [32, 16, 64]
    sides[draw.randrange(3)] = draw.choice([24, 48, 96])
    tiles.append((*sides, draw.choice([F16, BF16])))
    draw.shuffle(tiles)
    return [
        Question("compiles", tile, partial(_compiles, tile), "Does the kernel compile with this tile and dtype?")
        for tile in tiles
    ]


def _compiles(tile: tuple[int, int, int, torch.dtype], lab: Lab) -> bool:
    """Whether the solved kernel, launched on one tile of this size, compiles for the chip at hand."""
    M, N, K, dtype = tile
    a, b, c = (torch.ones(shape, dtype=dtype) for shape in ((M, K), (K, N), (M, N)))
    kernel = lab.reference_module.tile_dot_kernel

    def multiply() -> None:
        kernel[(1,)](
            a, b, c, M, N, K, *a.stride(), *b.stride(), *c.stride(), BLOCK_SIZE_M=M, BLOCK_SIZE_N=N, BLOCK_SIZE_K=K
        )  # fmt: skip

    return lab.compiles(multiply)
