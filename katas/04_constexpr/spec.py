"""What a right scale_or_relu does, on which inputs it is asked to, and how many binaries it may take."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import torch
import triton

from checker.cases import Case, Fault, Probe, Question, Refusal
from checker.loading import load_module

if TYPE_CHECKING:
    from checker.lab import Lab

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
INF, NAN = float("inf"), float("nan")

CASES = [
    Case("n=1024, scale", n=1024, slope=0.25, mode="scale", dtype=F32),
    Case("n=1024, relu", n=1024, slope=0.25, mode="relu", dtype=F32),
    Case("n=3000, relu, ragged", n=3000, slope=0.01, mode="relu", dtype=F32),
    Case("n=257, scale, ragged", n=257, slope=-1.5, mode="scale", dtype=F32),
    Case("n=1, scale", n=1, slope=3.5, mode="scale", dtype=F32),
    Case("n=1, relu", n=1, slope=3.5, mode="relu", dtype=F32),
    Case("n=0, empty", n=0, slope=3.5, mode="relu", dtype=F32),
    Case("relu, slope=2.5, steeper than 1", n=1100, slope=2.5, mode="relu", dtype=F32),
    Case("relu, a negative slope", n=1100, slope=-0.5, mode="relu", dtype=F32),
    Case("relu, a slope of zero", n=1100, slope=0.0, mode="relu", dtype=F32),
    Case("relu, slope=1, an int", n=1100, slope=1, mode="relu", dtype=F32),
    Case("scale, slope=3, an int", n=1100, slope=3, mode="scale", dtype=F32),
    Case("scale, float16", n=1500, slope=0.3, mode="scale", dtype=F16),
    Case("relu, float16", n=1500, slope=0.3, mode="relu", dtype=F16),
    Case("relu, bfloat16", n=1500, slope=0.3, mode="relu", dtype=BF16),
    Case("a drawn n and slope, scale", n=None, slope=None, mode="scale", dtype=F32),
    Case("a drawn n and slope, relu", n=None, slope=None, mode="relu", dtype=F32),
    Case("slope is beyond float16", stage="numerics", n=1100, slope=2.0**17, mode="scale", dtype=F16, values="tiny"),
    Case("x holds NaN, infinities, relu", stage="numerics", n=1100, slope=0.5, mode="relu", dtype=F32, values="odd"),
    Case("x holds NaN, infinities, scale", stage="numerics", n=1100, slope=-2, mode="scale", dtype=F32, values="odd"),
    Case("slope is NaN", stage="numerics", n=1100, slope=NAN, mode="relu", dtype=F32),
    Case("slope is infinite", stage="numerics", n=1100, slope=INF, mode="relu", dtype=BF16),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor, float, str]:
    """Draw x, spread widely around -1, so that both signs are there."""
    draw = torch.Generator().manual_seed(seed)
    n, slope = case.n, case.slope
    if n is None:
        n = int(torch.randint(2, 6000, (1,), generator=draw))
        slope = float(torch.randn(1, generator=draw)) * 2
    x = torch.randn(n, generator=draw) * 8 - 1
    values = case.params.get("values")
    if values == "tiny":
        x *= 1e-4
    elif values == "odd":
        x[::5], x[1::5], x[2::5] = NAN, INF, -INF
    return x.to(case.dtype).to(device), slope, case.mode


def reference(x: torch.Tensor, slope: float, mode: str) -> torch.Tensor:
    """The product, or x where x is positive and the mode is relu."""
    return _computed(x.double(), slope, mode)


def torch_op(x: torch.Tensor, slope: float, mode: str) -> torch.Tensor:
    """A product, and torch.where."""
    return _computed(x, slope, mode)


def _computed(x: torch.Tensor, slope: float, mode: str) -> torch.Tensor:
    scaled = x * float(slope)
    return scaled if mode == "scale" else torch.where(x > 0, x, scaled)


def timed_inputs(
    case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]
) -> tuple[torch.Tensor, float, str]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    return draw((case.n,), case.dtype), 0.125, case.mode


def expected_at(indices: torch.Tensor, x: torch.Tensor, slope: float, mode: str) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    return _computed(x[indices].double(), slope, mode)


def eager(x: torch.Tensor, slope: float, mode: str) -> torch.Tensor:
    """What one would write without Triton."""
    return x * slope if mode == "scale" else torch.nn.functional.leaky_relu(x, slope)


def least_bytes(case: Case) -> int:
    """Every element is read once and written once."""
    return int(2 * case.n * case.dtype.itemsize)


def flops(case: Case) -> int:
    """A product an element, and in a ReLU a comparison."""
    return int(case.n * (1 if case.mode == "scale" else 2))


REFUSED = [
    Refusal("2 dimensions", lambda device: (torch.ones(4, 5, device=device), 0.5, "relu")),
    Refusal("every second element", lambda device: (torch.ones(64, device=device)[::2], 0.5, "relu")),
    Refusal("integers", lambda device: (torch.ones(64, device=device, dtype=torch.int32), 0.5, "scale")),
    Refusal("slope is a string", lambda device: (torch.ones(64, device=device), "0.5", "scale")),
    Refusal("mode is gelu", lambda device: (torch.ones(64, device=device), 0.5, "gelu")),
]

# (n, start, slope, mode): scale_or_relu(memory[start : start + n], slope, mode).
Call = tuple[int, int, float, str]


def probes(draw: random.Random) -> list[Probe]:
    """How many binaries some calls take that differ in the slope alone, in its type, or in sizes and addresses."""
    slopes = [round(draw.uniform(-3, 3), 3) for _ in range(4)]
    size = 16 * draw.randrange(2, 40)
    # Of three powers of two, so that a block made to fit shows.
    sizes = [16 * draw.randrange(low, high) + over for low, high, over in ((2, 5, 0), (9, 17, 0), (33, 64, 0))]
    sizes += [size + draw.randrange(1, 16) for size in sizes[1:]]
    return [
        _probe("four slopes, both modes", [(size, 0, slope, mode) for slope in slopes for mode in ("scale", "relu")]),
        _probe("whole numbers as slopes", [(size, 0, slope, "relu") for slope in (0.5, 1, 3, 16)]),
        _probe("five sizes, each at two addresses", [(n, start, 0.5, "scale") for n in sizes for start in (0, 1)]),
    ]


def _probe(name: str, calls: list[Call]) -> Probe:
    return Probe(name, partial(_few_binaries, calls))


def _few_binaries(calls: list[Call], module: ModuleType, lab: Lab) -> Fault | None:
    """At most one binary for each mode, and for each class of alignment that a call can have."""
    classes = {(mode, n == 1, n % 16 == 0, start % 4 == 0) for n, start, _, mode in calls}
    launches = lab.launches(_call_all, module.scale_or_relu, calls)
    # Each entry of a kernel's cache has a handle of its own.
    by_binary: dict[int, list[dict[str, object]]] = {}
    for launch in launches:
        by_binary.setdefault(id(launch.kernel_handle), []).append(launch.scalars)
    if len(by_binary) <= len(classes):
        return None
    return Fault(
        "K663",
        f"{len(calls)} calls compiled {len(by_binary)} binaries; {len(classes)} would do: one for each mode and for "
        "each class of n and of addresses",
        "Make constant what defines a shape or chooses a branch, and nothing else. What remains is a run-time value, "
        "of the same type in every call.",
        line=launches[-1].line,
        details=_told_apart(list(by_binary.values())),
    )


def _told_apart(groups: list[list[dict[str, object]]]) -> tuple[str, ...]:
    """The arguments whose value differs from binary to binary, but never within one."""
    told = []
    for name in groups[0][0]:
        values = [{repr(scalars.get(name)) for scalars in group} for group in groups]
        different = set().union(*values)
        if name != "mode" and len(different) > 2 and all(len(one) == 1 for one in values):
            told.append(f"{name} differs from binary to binary: {', '.join(sorted(different)[:4])}")
    return tuple(told)


def _call_all(function: Callable[..., torch.Tensor], calls: list[Call]) -> None:
    memory = torch.ones(max(n + start for n, start, _, _ in calls))
    for n, start, slope, mode in calls:
        function(memory[start : start + n], slope, mode)


def questions(draw: random.Random) -> list[Question]:
    """Three lists of calls, each with a class that only a right count tells apart, and six of eight lines."""
    slopes = (1, 2.5, -0.5, 16)
    # Of n the number counts, not its bytes: 4 divides ragged, 16 does not.
    whole, ragged = 16 * draw.randrange(2, 60), 16 * draw.randrange(2, 60) + draw.choice([4, 8, 12])
    beside = draw.choice([2, 6, 10])
    lists = [
        # An empty call launches nothing: it is the only one in its mode.
        [(n, 0, draw.choice(slopes), "scale") for n in (whole, ragged, 1, whole + 16, ragged + 16)]
        + [(0, 0, draw.choice(slopes), "relu")],
        # 16 bytes are 4 elements: all of these are aligned.
        [(whole, start, draw.choice(slopes), "relu") for start in (0, *draw.sample([4, 8, 12, 20, 28, 36], 4))],
        # The mode and the address make a class each; the slope and its type make none.
        [(whole, 0, 1, "scale"), (whole, 4, 2.5, "scale"), (whole, beside, 1, "scale"), (whole, 0, 1, "relu")]
        + [
            (draw.choice([whole, ragged, ragged + 3, 1]), draw.choice([0, beside, 4]), draw.choice(slopes), mode)
            for mode in ("scale", "relu")
            for _ in range(2)
        ],
    ]
    for calls in lists:
        draw.shuffle(calls)
    return [
        Question(
            "binaries", (tuple(calls),), partial(_entries_of_the_cache, calls), "How many binaries do these calls take?"
        )
        for calls in lists
    ] + [
        Question("compiles", (line,), partial(_compiles, line), f"Does a kernel with {line} compile?")
        for line in draw.sample(_LINES, 6)
    ]


def _entries_of_the_cache(calls: list[Call], lab: Lab) -> int:
    """From the cache of the solved kernel, emptied before."""
    kernel: triton.JITFunction = lab.reference_module.scale_or_relu_kernel
    kernel.device_caches.clear()
    lab.launches(_call_all, lab.reference_module.scale_or_relu, calls)
    return sum(len(cache[0]) for cache in kernel.device_caches.values())


_LINES = [
    "tl.arange(0, n)",
    "n + tl.arange(0, BLOCK_SIZE)",
    "tl.arange(0, BLOCK_SIZE + 1)",
    "tl.arange(BLOCK_SIZE, 2 * BLOCK_SIZE)",
    "tl.zeros((n,), dtype=tl.float32)",
    "tl.full((BLOCK_SIZE,), n, dtype=tl.int32)",
    "tl.zeros((BLOCK_SIZE, 3), dtype=tl.float32)",
    "tl.arange(0, BLOCK_SIZE if BLOCK_SIZE > 32 else n)",
]

_KERNEL = '''"""A line in a kernel, to see whether it compiles."""

import triton
import triton.language as tl


@triton.jit
def probe(n, BLOCK_SIZE: tl.constexpr):
    value = {line}
'''


def _compiles(line: str, lab: Lab) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        # Triton reads the text of a kernel from its file.
        file = Path(folder, "probe.py")
        file.write_text(_KERNEL.format(line=line))
        probe: triton.JITFunction = load_module(file).probe
        return lab.compiles(lambda: probe[(1,)](64, BLOCK_SIZE=64))
