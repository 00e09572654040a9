"""What a right matmul does, and on which inputs it is asked to."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

import numpy
import torch

from checker.cases import Case, Fault, Probe, Question, Refusal

if TYPE_CHECKING:
    from checker.lab import Lab

F16, BF16 = torch.float16, torch.bfloat16
INF, NAN = float("inf"), float("nan")

# The result is contiguous, whatever the inputs are.
CONTIGUOUS = True

# `size` is (M, N, K); `layout` says how a and b lie in memory, `values` what lies there. Of the smallest tiles, 32 by
# 64, a group has 256 rows.
CASES = [
    Case("32 x 64, one tile", size=(32, 64, 128), dtype=F16),
    Case("512 x 130, two whole groups", size=(512, 130, 32), dtype=F16),
    Case("290 x 130, the last group is short", size=(290, 130, 40), dtype=F16),
    Case("100 x 200, one short group", size=(100, 200, 40), dtype=F16),
    Case("300 x 40, one column of tiles", size=(300, 40, 40), dtype=F16),
    Case("20 x 300, one row of tiles", size=(20, 300, 40), dtype=F16),
    Case("1 x 1, K=1", size=(1, 1, 1), dtype=F16),
    Case("K=300, a ragged last step", size=(64, 128, 300), dtype=F16),
    Case("bfloat16", size=(290, 90, 40), dtype=BF16),
    Case("K=0, a sum of nothing", size=(290, 50, 0), dtype=F16),
    Case("N=0, empty", size=(50, 0, 60), dtype=F16),
    Case("both are transposed views", size=(290, 90, 40), dtype=F16, layout=("transposed", "transposed")),
    Case("both are slices", size=(290, 90, 40), dtype=F16, layout=("sliced", "sliced")),
    # Row 2 begins 2^31 elements after row 0. Only pages that are touched exist: this costs no memory.
    Case("rows of a 2^30 elements apart", size=(3, 40, 20), dtype=F16, layout=("far rows", "contiguous")),
    Case("a drawn size", size=None, dtype=F16),
    Case("partial sums past 65504", stage="numerics", size=(290, 70, 256), dtype=F16, values="cancelling, large"),
    Case("NaN and infinities in a", stage="numerics", size=(290, 70, 40), dtype=F16, values="special"),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a around 0.5 and b around -0.5, both of variance about 1, laid out as the case says."""
    draw = torch.Generator().manual_seed(seed)
    drawn = (*torch.randint(2, 400, (2,), generator=draw).tolist(), 40)
    M, N, K = drawn if case.size is None else case.size
    a = torch.randn((M, K), generator=draw) + 0.5
    b = torch.randn((K, N), generator=draw) - 0.5
    a, b = _set_values(a, b, case.params.get("values", "plain"))
    layouts = case.params.get("layout", ("contiguous", "contiguous"))
    a, b = (_lay_out(t.to(case.dtype).to(device), layout) for t, layout in zip((a, b), layouts, strict=True))
    return a, b


def _set_values(a: torch.Tensor, b: torch.Tensor, values: str) -> tuple[torch.Tensor, torch.Tensor]:
    half = a.shape[1] // 2
    if values == "cancelling, large":
        # The first half of K adds up to a large number, the second half takes it away again.
        a = (a * 0.05 + 1) * 30
        b = (b * 0.05 + 1) * 30
        b[half:] = -b[half:]
    elif values == "special":
        # In the last step along K too, next to what a mask must hold back.
        a[1, 3], a[2, -1], a[5, 0] = INF, NAN, -INF
    return a, b


def _lay_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with other strides, on the same device."""
    M, N = x.shape
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


# How many times the least a wave may load of a and b. Row by row it is 2.1 times on an H200, in groups of 8 rows 1.3.
ENOUGH = 1.8


def probes(draw: random.Random) -> list[Probe]:
    """What the programs that run together on the chip load, in a large product and in one that is not square."""
    sizes = [(8192, 8192), draw.choice([(4096, 14336), (6144, 10240), (8192, 16384)])]
    return [Probe(f"{M} x {N}, the first wave", partial(_first_wave, M, N), stage="speed") for M, N in sizes]


def _first_wave(M: int, N: int, module: ModuleType, lab: Lab) -> Fault | None:
    """Whether the tiles of c that are computed together lie together: only then are their rows and columns shared.

    For a set of elements of c, so many rows of a and columns of b are needed as the set touches. A square needs fewest.
    """
    K = 64
    launches = lab.first_wave(module.matmul, torch.empty((M, K), dtype=F16), torch.empty((K, N), dtype=F16))
    # Where no program waits for another to end, each computes several tiles, and what follows would mix them up.
    if not launches or launches[-1].programs <= lab.spec.multiprocessors:
        return None
    stored = [numpy.concatenate(pieces) for pieces in launches[-1].stored.values()]
    if not stored:
        return None
    offsets = torch.from_numpy(max(stored, key=len))
    rows, columns = (offsets // N).unique().numel(), (offsets % N).unique().numel()
    least = 2 * offsets.unique().numel() ** 0.5
    if rows + columns <= ENOUGH * least:
        return None
    return Fault(
        "K808",
        f"the first {lab.spec.multiprocessors} programs, which run at the same time, need {rows} rows of a and "
        f"{columns} columns of b: {(rows + columns) / least:.1f}x what a square part of c of that size needs",
        "Number the programs so that those which run together compute tiles that lie together.",
        line=launches[-1].line,
        details=(f"at most {ENOUGH:g}x is asked for",),
    )


def questions(draw: random.Random) -> list[Question]:
    """Four waves: two row by row, two in groups."""
    asked = []
    for group_size_m in (1, 1, 8, draw.choice([4, 8])):
        tiles_m, tiles_n = draw.randrange(8, 14), draw.randrange(9, 15)
        programs = draw.randrange(tiles_n + 1, 4 * tiles_n)
        wave = (tiles_m, tiles_n, programs, group_size_m)
        asked.append(
            Question(
                "first_wave", wave, partial(_traced_wave, wave), "How many tiles do these programs load in a step?"
            )
        )
    draw.shuffle(asked)
    return asked


def _traced_wave(wave: tuple[int, int, int, int], lab: Lab) -> int:
    """Rows and columns of tiles in which the first programs of the solved kernel store something."""
    tiles_m, tiles_n, programs, group_size_m = wave
    side = 16
    a, b = torch.ones((tiles_m * side, side), dtype=F16), torch.ones((side, tiles_n * side), dtype=F16)
    c = torch.zeros((tiles_m * side, tiles_n * side), dtype=F16)
    kernel = lab.reference_module.matmul_kernel

    def multiply() -> None:
        kernel[(programs,)](
            a, b, c, *c.shape, side, *a.stride(), *b.stride(), *c.stride(),
            BLOCK_SIZE_M=side, BLOCK_SIZE_N=side, BLOCK_SIZE_K=side, GROUP_SIZE_M=group_size_m,
        )  # fmt: skip

    lab.launches(multiply)
    done = c[::side, ::side] != 0
    return int(done.any(1).sum() + done.any(0).sum())
