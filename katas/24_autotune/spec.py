"""What a right matmul_add_ does, and what a search space for it must hold."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
import triton
from triton.runtime.errors import OutOfResources

from checker.cases import Case, Fault, Probe, Question, Refusal
from checker.vgpu.driver import VirtualGpu
from checker.vgpu.lazy import LazyDraw

if TYPE_CHECKING:
    from checker.lab import Lab

F16, BF16 = torch.float16, torch.bfloat16

# c is updated in place and returned.
INOUT = (0,)
RESULT = 0

# `size` is (M, N, K); `layout` says how c, a and b lie in memory.
CASES = [
    Case("64 x 64, K=64", size=(64, 64, 64), dtype=F16),
    Case("48 x 80, K=144", size=(48, 80, 144), dtype=F16),
    Case("33 x 70, K=50, ragged", size=(33, 70, 50), dtype=F16),
    Case("1 x 130, K=65, one row", size=(1, 130, 65), dtype=F16),
    Case("bfloat16", size=(64, 48, 64), dtype=BF16),
    Case("K=0, nothing is added", size=(16, 32, 0), dtype=F16),
    Case("M=0, empty", size=(0, 32, 16), dtype=F16),
    Case("all are transposed views", size=(48, 64, 32), dtype=F16, layout="transposed"),
    Case("all are slices", size=(48, 64, 32), dtype=F16, layout="sliced"),
    Case("a drawn size", size=None, dtype=F16),
    Case("c nearly cancels the product", stage="numerics", size=(16, 48, 256), dtype=F16, values="cancelling"),
    Case("a long sum of positive numbers", stage="numerics", size=(16, 48, 1024), dtype=BF16, values="positive"),
]

Operands = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> Operands:
    """Draw c around 3, a around 0.5 and b around -0.5, laid out as the case says."""
    draw = torch.Generator().manual_seed(seed)
    drawn = tuple(torch.randint(2, 150, (3,), generator=draw).tolist())
    M, N, K = drawn if case.size is None else case.size
    c = torch.randn((M, N), generator=draw) * 4 + 3
    a = torch.randn((M, K), generator=draw) + 0.5
    b = torch.randn((K, N), generator=draw) - 0.5
    if case.params.get("values") == "positive":
        c, a, b = c.abs(), a.abs() + 0.5, b.abs() + 0.5
    if case.params.get("values") == "cancelling":
        c = c * 0.01 - a.to(case.dtype).float() @ b.to(case.dtype).float()
    layout = case.params.get("layout", "contiguous")
    c, a, b = (_lay_out(t.to(case.dtype).to(device), layout) for t in (c, a, b))
    return c, a, b


def _lay_out(x: torch.Tensor, layout: str) -> torch.Tensor:
    """The same values with other strides, on the same device."""
    M, N = x.shape
    if layout == "transposed":
        return x.new_empty((N, M)).t().copy_(x)
    if layout == "sliced":
        # What lies in the gaps must not count: it would be seen at once.
        return x.new_full((M, N + 13), 777)[:, 6 : N + 6].copy_(x)
    return x


def reference(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The sum of c and the product in float64."""
    return c.double() + a.double() @ b.double()


def torch_op(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """PyTorch's own."""
    return torch.addmm(c, a, b)


def least_bytes(case: Case) -> int:
    """Every element of a and b read once, every element of c read and written once."""
    M, N, K = case.size
    return (M * K + K * N + 2 * M * N) * case.dtype.itemsize


def flops(case: Case) -> int:
    """A product and a sum for each of M N K."""
    M, N, K = case.size
    return 2 * M * N * K


def _ones(device: torch.device | str, *shape: int, dtype: torch.dtype = F16) -> torch.Tensor:
    return torch.ones(shape, device=device, dtype=dtype)


def _inside(device: torch.device) -> Operands:
    memory = _ones(device, 16, 16)
    return memory, memory, _ones(device, 16, 16)


REFUSED = [
    Refusal("inner sizes differ", lambda d: (_ones(d, 8, 12), _ones(d, 8, 16), _ones(d, 20, 12))),
    Refusal("c has another shape", lambda d: (_ones(d, 12, 8), _ones(d, 8, 16), _ones(d, 16, 12))),
    Refusal("c has 1 dimension", lambda d: (_ones(d, 12), _ones(d, 1, 16), _ones(d, 16, 12))),
    Refusal("c is one row, expanded", lambda d: (_ones(d, 1, 12).expand(8, 12), _ones(d, 8, 16), _ones(d, 16, 12))),
    Refusal("c is a", _inside),
    Refusal("float32", lambda d: tuple(_ones(d, 16, 16, dtype=torch.float32) for _ in range(3))),
    Refusal("c is bfloat16", lambda d: (_ones(d, 16, 16, dtype=BF16), _ones(d, 16, 16), _ones(d, 16, 16))),
    # Not "cuda" or "cpu": which of the two runs kernels depends on the machine. `meta` never does.
    Refusal("b on another device", lambda d: (_ones(d, 16, 16), _ones(d, 16, 16), _ones("meta", 16, 16))),
]

# --- The search space. ---

MOST_CONFIGURATIONS = 12
CHIPS_ASKED = ("h200", "a100", "l4")
# Square, a few rows, a few columns, small, wide with a short K.
SHAPES = ((2048, 2048, 1024), (16, 4096, 2048), (4096, 48, 2048), (512, 512, 2048), (256, 8192, 512))
# The best modelled time of some hundred configurations in microseconds, by chip and shape (M, N, K). Made by
# scripts/search_tiles.py with the kernel of the solution.
BEST: dict[tuple[str, tuple[int, int, int]], float] = {
    ("h200", (2048, 2048, 1024)): 17.8,  # 128 x 256 x 64, 8 warps, 4 stages
    ("h200", (16, 4096, 2048)): 8.8,  # 32 x 32 x 128, 4 warps, 4 stages
    ("h200", (4096, 48, 2048)): 9.3,  # 32 x 64 x 128, 4 warps, 4 stages
    ("h200", (512, 512, 2048)): 8.9,  # 64 x 32 x 128, 4 warps, 4 stages
    ("h200", (256, 8192, 512)): 8.8,  # 128 x 128 x 64, 8 warps, 4 stages
    ("a100", (2048, 2048, 1024)): 50.2,  # 64 x 128 x 32, 4 warps, 4 stages
    ("a100", (16, 4096, 2048)): 14.0,  # 16 x 64 x 128, 4 warps, 4 stages
    ("a100", (4096, 48, 2048)): 15.3,  # 64 x 16 x 128, 4 warps, 4 stages
    ("a100", (512, 512, 2048)): 15.7,  # 64 x 64 x 128, 4 warps, 4 stages
    ("a100", (256, 8192, 512)): 17.9,  # 64 x 64 x 64, 4 warps, 3 stages
    ("l4", (2048, 2048, 1024)): 119.3,  # 64 x 128 x 32, 4 warps, 3 stages
    ("l4", (16, 4096, 2048)): 67.7,  # 16 x 128 x 64, 4 warps, 4 stages
    ("l4", (4096, 48, 2048)): 70.5,  # 256 x 32 x 32, 4 warps, 4 stages
    ("l4", (512, 512, 2048)): 30.6,  # 64 x 128 x 64, 4 warps, 4 stages
    ("l4", (256, 8192, 512)): 68.4,  # 64 x 64 x 64, 4 warps, 3 stages
}
REGRET = 0.15


def tuner_of(module: ModuleType) -> Any:
    """The tuned kernel of a module, or None."""
    return next((value for value in vars(module).values() if isinstance(value, triton.runtime.Autotuner)), None)


@contextmanager
def _only(tuner: Any, config: Any) -> Iterator[None]:
    """A single configuration, so that nothing is tuned and nothing pruned."""
    kept, tuner.configs = tuner.configs, [config]
    try:
        yield
    finally:
        tuner.configs = kept


def _kept(tuner: Any, shape: tuple[int, int, int]) -> list[Any]:
    """The configurations that are left for a shape after pruning."""
    if tuner.early_config_prune is None:
        return list(tuner.configs)
    M, N, K = shape
    tensors = {name: torch.empty(0, dtype=F16) for name in ("c_ptr", "a_ptr", "b_ptr")}
    strides = {"stride_cm": N, "stride_cn": 1, "stride_am": K, "stride_ak": 1, "stride_bk": N, "stride_bn": 1}
    return list(tuner.early_config_prune(tuner.configs, {**tensors, "M": M, "N": N, "K": K, **strides}))


def modelled_us(function: Any, shape: tuple[int, int, int], gpu: VirtualGpu) -> float:
    """The modelled time of the last launch of a call on operands of this shape, in microseconds."""
    M, N, K = shape
    draw = LazyDraw(1)
    c, a, b = (draw(size, F16) for size in ((M, N), (M, K), (K, N)))
    with gpu.record(timing=True, sample=2) as session:
        function(c, a, b)
    return float(session.launches[-1].estimate.us)


def _is_tuned(module: ModuleType, _: Lab) -> Fault | None:
    if tuner_of(module) is None:
        return Fault("K666", "no kernel of the file is tuned", "decorate the kernel with @triton.autotune")
    if len(tuner_of(module).configs) < 2:
        return Fault(
            "K666",
            "the space holds a single configuration, so there is nothing to choose from",
            "add tiles of other sizes and shapes: for a small c, a flat one, a tall one",
        )
    return None


def _few(module: ModuleType, _: Lab) -> Fault | None:
    count = len(tuner_of(module).configs)
    if count <= MOST_CONFIGURATIONS:
        return None
    return Fault(
        "K663",
        f"{count} configurations are to be tried, and {MOST_CONFIGURATIONS} are allowed: each costs seconds to compile",
        "keep those that differ in kind, not all that differ",
    )


def _no_twins(module: ModuleType, _: Lab) -> Fault | None:
    counted = Counter(str(config) for config in tuner_of(module).configs)
    twins = [text for text, count in counted.items() if count > 1]
    if not twins:
        return None
    return Fault("K665", f"a configuration is there twice: {twins[0]}", "remove one: it costs time and finds nothing")


def _fits_chip(chip: str, module: ModuleType, _: Lab) -> Fault | None:
    """Every configuration that is left for a large product compiles for the chip and fits it."""
    with VirtualGpu(chip).instead() as gpu:
        for config in _kept(tuner_of(module), SHAPES[0]):
            excess = _excess(module, config, gpu)
            if excess is not None:
                return Fault(
                    "K665",
                    f"on {gpu.spec.name} {config} does not fit: {excess}",
                    "fewer stages or a shorter BLOCK_SIZE_K; or prune it where it does not fit",
                )
    return None


def _excess(module: ModuleType, config: Any, gpu: VirtualGpu) -> OutOfResources | None:
    """What the tuned kernel of a module asks for beyond the active chip with this configuration; None if it fits."""
    try:
        with _only(tuner_of(module), config), gpu.record():
            module.matmul_add_(*(torch.zeros(16, 16, dtype=F16) for _ in range(3)))
    except OutOfResources as error:
        return error
    return None


def _tunes_anew(axis: int, module: ModuleType, lab: Lab) -> Fault | None:
    """Another size along one axis has to be another entry of the tuner's cache."""
    tuner = tuner_of(module)
    if len(tuner.configs) < 2:
        return None
    sizes = [64, 64, 64]
    seen = []
    for size in (64, 128):
        sizes[axis] = size
        M, N, K = sizes
        lab.launches(module.matmul_add_, *(torch.zeros(shape, dtype=F16) for shape in ((M, N), (M, K), (K, N))))
        seen.append(len(tuner.cache))
    if seen[1] > seen[0]:
        return None
    name = "MNK"[axis]
    return Fault(
        "K667",
        f"what was chosen for {name}=64 was taken for {name}=128 without a new search",
        f"name {name} in the key: the best tile depends on it",
    )


def _regret(chip: str, shape: tuple[int, int, int], module: ModuleType, _: Lab) -> Fault | None:
    """The best of the space against the best of an exhaustive search, by modelled time."""
    tuner = tuner_of(module)
    times: dict[str, float] = {}
    with VirtualGpu(chip).instead() as gpu:
        for config in _kept(tuner, shape):
            with suppress(OutOfResources), _only(tuner, config):
                times[str(config)] = modelled_us(module.matmul_add_, shape, gpu)
    best = BEST[chip, shape]
    mine = min(times.values(), default=float("inf"))
    if mine <= best * (1 + REGRET):
        return None
    M, N, K = shape
    said = f"{mine:.1f} us" if times else "nothing is left to try"
    return Fault(
        "K666",
        f"on {gpu.spec.name}, {M} x {N} with K={K}: {said}; another tile takes {best:.1f} us (modelled)",
        "ask what limits this shape: too few programs, tiles that hang over, or too little reuse; add a tile for it",
        details=(f"your best: {min(times, key=lambda text: times[text])}",) if times else (),
    )


def probes(draw: random.Random) -> list[Probe]:
    """What holds for the space as a whole, each axis of the key, each chip; and two shapes a chip by the clock."""
    drawn = [(chip, shape) for chip in CHIPS_ASKED for shape in draw.sample(SHAPES, 2)]
    return [
        Probe("the kernel is tuned", _is_tuned),
        Probe(f"at most {MOST_CONFIGURATIONS} configurations", _few),
        Probe("no configuration twice", _no_twins),
        *(Probe(f"{name} is in the key", partial(_tunes_anew, axis)) for axis, name in enumerate("MNK")),
        *(Probe(f"all fit on {chip}", partial(_fits_chip, chip)) for chip in CHIPS_ASKED),
        *(
            Probe(f"near the best on {chip}, {M} x {N} x {K}", partial(_regret, chip, (M, N, K)), stage="speed")
            for chip, (M, N, K) in drawn
        ),
    ]


def questions(draw: random.Random) -> list[Question]:
    """For each chip a tile near its limit: one that fits, or one that does not."""
    near = {
        "a100": [(128, 256, 64, 4), (128, 256, 64, 5), (128, 128, 64, 6), (256, 128, 64, 4), (64, 256, 64, 5)],
        "l4": [(128, 256, 64, 3), (128, 256, 64, 4), (128, 128, 64, 4), (128, 64, 64, 5), (64, 64, 64, 6)],
        "h200": [(128, 256, 64, 4), (128, 256, 64, 5), (128, 128, 64, 7), (128, 128, 64, 8), (256, 128, 64, 5)],
    }
    asked = [(*tile, chip) for chip in CHIPS_ASKED for tile in draw.sample(near[chip], 2)]
    draw.shuffle(asked)
    return [
        Question("fits", arguments, partial(_really_fits, *arguments), "Does a program with these tiles fit the chip?")
        for arguments in asked
    ]


def _really_fits(block_m: int, block_n: int, block_k: int, num_stages: int, chip: str, lab: Lab) -> bool:
    """Compiles the reference kernel with this tile for the chip."""
    sizes = {"BLOCK_SIZE_M": block_m, "BLOCK_SIZE_N": block_n, "BLOCK_SIZE_K": block_k, "GROUP_SIZE_M": 8}
    config = triton.Config(sizes, num_warps=8, num_stages=num_stages)
    with VirtualGpu(chip).instead() as gpu:
        return _excess(lab.reference_module, config, gpu) is None
