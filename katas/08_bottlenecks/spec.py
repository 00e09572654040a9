"""What a right repeat_fma does, and on which inputs it is asked to."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from checker.cases import Case, Question, Refusal
from checker.vgpu.clock import estimate
from checker.vgpu.specs import CHIPS, GpuSpec

if TYPE_CHECKING:
    from checker.lab import Lab

F32, F16, BF16 = torch.float32, torch.float16, torch.bfloat16
NAN, INF = float("nan"), float("inf")

# Each repeat may round, and passes on what was rounded before: PyTorch's own error is the luck of the largest element.
UNITS = 8.0

# The result is contiguous, as x is.
CONTIGUOUS = True

# `values` says what x holds; see make_inputs.
CASES = [
    Case("one repeat", shape=(1024,), dtype=F32, repeats=1),
    Case("five repeats", shape=(1024,), dtype=F32, repeats=5),
    Case("no repeats, a copy", shape=(1024,), dtype=F32, repeats=0),
    Case("n=1", shape=(1,), dtype=F32, repeats=3),
    Case("n=3000, ragged, several blocks", shape=(3000,), dtype=F32, repeats=2),
    Case("float16", shape=(1500,), dtype=F16, repeats=3),
    Case("bfloat16", shape=(1500,), dtype=BF16, repeats=3),
    Case("3 x 5 x 7", shape=(3, 5, 7), dtype=F32, repeats=2),
    Case("n=0, empty", shape=(0,), dtype=F32, repeats=4),
    Case("a drawn number of repeats", shape=(600,), dtype=F32, repeats=None),
    Case("float16, 300 terms near 1", stage="numerics", shape=(300,), dtype=F16, repeats=300, values="near 1"),
    Case("bfloat16, 300 terms near 1", stage="numerics", shape=(300,), dtype=BF16, repeats=300, values="near 1"),
    Case("terms that cancel", stage="numerics", shape=(1100,), dtype=F32, repeats=41, values="near -1"),
    Case("tiny values", stage="numerics", shape=(1100,), dtype=F32, repeats=3, values="tiny"),
    Case("NaN and infinities", stage="numerics", shape=(1100,), dtype=F32, repeats=3, values="special"),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor, int]:
    """Draw x around 0.4 with a spread of 0.9, so that the powers of some elements grow and those of others shrink."""
    draw = torch.Generator().manual_seed(seed)
    drawn = int(torch.randint(6, 20, (1,), generator=draw))
    repeats = drawn if case.repeats is None else case.repeats
    x = torch.randn(case.shape, generator=draw) * 0.9 + 0.4
    kind = case.params.get("values", "plain")
    if kind == "near 1":
        x = 1 - 0.005 * x.sigmoid()
    elif kind == "near -1":
        x = -1 + 0.01 * x.sigmoid()
    elif kind == "tiny":
        x = x * torch.finfo(case.dtype).tiny * 1e3
    elif kind == "special":
        x[::5], x[1::5] = NAN, INF
    return x.to(case.dtype).to(device), repeats


def _chain(x: torch.Tensor, repeats: int) -> torch.Tensor:
    y = x
    for _ in range(repeats):
        y = y * x + x
    return y


def reference(x: torch.Tensor, repeats: int) -> torch.Tensor:
    """The exact result, x + x^2 + ... + x^(repeats + 1)."""
    return _chain(x.double(), repeats)


def torch_op(x: torch.Tensor, repeats: int) -> torch.Tensor:
    """PyTorch's own: in float32, rounded once."""
    return _chain(x.float(), repeats).to(x.dtype)


def eager(x: torch.Tensor, repeats: int) -> torch.Tensor:
    """What one would write without Triton."""
    return _chain(x, repeats)


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> tuple[torch.Tensor, int]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
    x = draw(case.shape, case.dtype)
    # The powers of what is beyond 1 would leave float32.
    return (x.mul_(0.1) if case.repeats > 16 else x), case.repeats


def expected_at(indices: torch.Tensor, x: torch.Tensor, repeats: int) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    return _chain(x.reshape(-1)[indices].double(), repeats)


def least_bytes(case: Case) -> int:
    """Reads x once, writes y once."""
    return 2 * torch.Size(case.shape).numel() * case.dtype.itemsize


def flops(case: Case) -> int:
    """A multiply-add is two operations."""
    return 2 * case.repeats * torch.Size(case.shape).numel()


REFUSED = [
    Refusal("repeats below 0", lambda device: (torch.ones(64, device=device), -1)),
    Refusal("repeats is a float", lambda device: (torch.ones(64, device=device), 2.0)),
    Refusal("x is transposed", lambda device: (torch.ones(30, 50, device=device).t(), 2), (ValueError,)),
    Refusal("x holds integers", lambda device: (torch.ones(64, device=device).int(), 2)),
]


class Chip(NamedTuple):
    """What the learner's file calls a chip: the same figures in the same order."""

    name: str
    dram_gb_per_s: float
    fp32_tflop_per_s: float
    launch_us: float


# A point is asked for only if one of the three times is at least so many times as long as each other. The clock may
# differ from the data sheet by 3.3: a launch is 2.2 of 3.3 us, a copy has 0.9 of the bandwidth, and one program too
# many for a round makes two.
_CLEAR = 4.0
# Two chips differ by less. There the calls are large, and the last round is one of several.
_CLEAR_OF_TWO = 2.5

_SNIPPETS: dict[str, Callable[..., torch.Tensor]] = {
    "mix": lambda a, b: torch.relu(a * b + a),
    "clone": lambda a: a.clone(),
    "tiny": lambda s, t: torch.relu(s * t + s),
    "lone": lambda s: torch.relu(s),
    "gemm": lambda m, k: m @ k,
    "act": lambda m, k: torch.relu(m @ k),
    "thin": lambda r, m: r @ m,
    "power": lambda a: (a * a).sum(1),
}

_SHAPES: dict[str, tuple[tuple[int, ...], torch.dtype]] = {
    "a": ((8192, 8192), F32),
    "b": ((8192, 8192), F32),
    "s": ((2000,), F32),
    "t": ((2000,), F32),
    "m": ((8192, 8192), F16),
    "k": ((8192, 8192), F16),
    "r": ((4, 8192), F16),
}


def questions(draw: random.Random) -> list[Question]:
    """Two intensities, clear points under the roofs of three chips, six of the eight snippets."""
    asked = []
    for itemsize, dtype in ((4, F32), (2, F16)):
        repeats = draw.randrange(2, 200)
        truth = partial(_traced_intensity, repeats, dtype)
        asked.append(Question("intensity", (repeats, itemsize), truth, "How many FLOP for each byte?", tolerance=0.001))
    h200, l4, other = (CHIPS[name] for name in ("h200", "l4", draw.choice(["a100", "rtx4090", "h100"])))
    points = [(spec, _point(draw, spec, what)) for spec in (h200, other) for what in _times(1, 1, spec)]
    # The same call on two chips that differ in what limits it.
    parted = _parting_point(draw, h200, l4)
    for spec, (n, repeats) in [*points, (h200, parted), (l4, parted)]:
        gpu = Chip(spec.name, spec.dram_gb_per_s, spec.fp32_tflop_per_s, spec.launch_latency_us)
        asked.append(
            Question("limiter", (n, repeats, gpu), partial(_modelled, n, repeats, spec), "What takes the time?")
        )
    asked += [
        Question("diagnose", (name,), partial(_diagnosed, name), f"What limits {name!r}, and is it worth a kernel?")
        for name in draw.sample(sorted(_SNIPPETS), 6)
    ]
    return asked


def _times(n: int, repeats: int, gpu: GpuSpec) -> dict[str, float]:
    """Microseconds of each by the data sheet."""
    return {
        "launch": gpu.launch_latency_us,
        "memory": 8 * n / (gpu.dram_gb_per_s * 1e3),
        "arithmetic": 2 * repeats * n / (gpu.fp32_tflop_per_s * 1e6),
    }


def _limit(n: int, repeats: int, gpu: GpuSpec, clear: float) -> str:
    """What takes at least `clear` times as long as each of the two others; empty if nothing does."""
    *_, second, longest = sorted((time, what) for what, time in _times(n, repeats, gpu).items())
    return longest[1] if longest[0] >= clear * second[0] else ""


def _point(draw: random.Random, gpu: GpuSpec, what: str) -> tuple[int, int]:
    """A drawn n and number of repeats at which `what` takes clearly longer than the two others."""
    while True:
        # A roof assumes that all of the chip is at work: a long chain in a few programs is another matter.
        n, repeats = int(2 ** draw.uniform(10, 27)), int(2 ** draw.uniform(0, 5 if what == "launch" else 11))
        if _limit(n, repeats, gpu, _CLEAR) == what:
            return n, repeats


def _parting_point(draw: random.Random, one: GpuSpec, other: GpuSpec) -> tuple[int, int]:
    """A drawn n and number of repeats at which two chips are limited by different things, each clearly."""
    while True:
        n, repeats = int(2 ** draw.uniform(16, 27)), int(2 ** draw.uniform(0, 7))
        limits = {_limit(n, repeats, gpu, _CLEAR_OF_TWO) for gpu in (one, other)}
        if len(limits) == 2 and "" not in limits:
            return n, repeats


def _traced_intensity(repeats: int, dtype: torch.dtype, lab: Lab) -> float:
    """The bytes are counted in a trace; a multiply-add is two operations, as on every data sheet."""
    n = 2048
    launches = lab.launches(lab.reference_module.repeat_fma, torch.ones(n, dtype=dtype), repeats)
    return 2 * repeats * n / sum(launch.bytes_loaded + launch.bytes_stored for launch in launches)


def _modelled(n: int, repeats: int, chip: GpuSpec, lab: Lab) -> str:
    """The longest of the three times that the clock finds for the solution on the chip."""
    (launch,) = lab.timed(lab.reference_module.repeat_fma, torch.empty(n), repeats)
    parts = estimate(launch.profile, chip).parts
    names = {"launch": "launch", "dram": "memory", "alu": "arithmetic"}
    return names[max(names, key=lambda name: parts[name])]


def _diagnosed(name: str, lab: Lab) -> tuple[str, bool]:
    """What the eager operations cost on an H200, and what is left of it if only the ends move, in one launch."""
    snippet, chip = _SNIPPETS[name], CHIPS["h200"]
    names = snippet.__code__.co_varnames[: snippet.__code__.co_argcount]
    inputs = [torch.empty(_SHAPES[it][0], dtype=_SHAPES[it][1], device="meta") for it in names]
    operations = lab.eager(snippet, *inputs).operations
    eager = _roof(len(operations), sum(one.bytes for one in operations), sum(one.flops for one in operations), chip)
    ends: list[Any] = [*inputs, snippet(*inputs)]
    moved = sum(end.numel() * end.element_size() for end in ends)
    fused = _roof(1, moved, sum(one.flops for one in operations), chip)
    return max(eager, key=lambda what: eager[what]), max(fused.values()) < 0.75 * max(eager.values())


def _roof(launches: int, moved: int, products: int, chip: GpuSpec) -> dict[str, float]:
    """Microseconds of launches, of bytes, and of products of matrices on the tensor cores."""
    return {
        "launch": launches * chip.launch_latency_us,
        "memory": moved / (chip.copy_gb_per_s * 1e3),
        "arithmetic": products / (chip.fp16_tensor_tflop_per_s * 1e6),
    }
