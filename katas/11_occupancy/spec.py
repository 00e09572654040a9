"""What a right grid_stride_copy does, and on which settings it is asked to."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING

import torch

from checker.cases import Case, Fault, Probe, Question, Refusal
from checker.occupancy import occupancy
from checker.vgpu.clock import estimate
from checker.vgpu.specs import CHIPS
from checker.vgpu.trace import LaunchTrace

if TYPE_CHECKING:
    from checker.lab import Lab

F32, F16, BF16, I32 = torch.float32, torch.float16, torch.bfloat16, torch.int32

# The result is contiguous, as x is.
CONTIGUOUS = True

# With blocks of 16 all programs together copy about two thousand elements a turn, so the loop turns more than once.
CASES = [
    Case("n=2000, one turn", shape=(2000,), dtype=F32, setting=(1, 32, 1)),
    Case("n=4500, several turns", shape=(4500,), dtype=F32, setting=(1, 16, 1)),
    Case("n=4303, ragged", shape=(4303,), dtype=F32, setting=(1, 16, 1)),
    Case("n=5001, two programs a multiprocessor", shape=(5001,), dtype=F32, setting=(2, 16, 1)),
    Case("n=1, nearly all have nothing to do", shape=(1,), dtype=F32, setting=(1, 16, 1)),
    Case("n=0, empty", shape=(0,), dtype=F32, setting=(1, 16, 1)),
    Case("float16", shape=(2500,), dtype=F16, setting=(1, 16, 1)),
    Case("bfloat16", shape=(2500,), dtype=BF16, setting=(1, 16, 1)),
    Case("int32", shape=(2500,), dtype=I32, setting=(1, 16, 1)),
    Case("3 x 110 x 7", shape=(3, 110, 7), dtype=F32, setting=(1, 16, 1)),
    Case("the setting of the file", shape=(9000,), dtype=F32, setting=()),
    Case("a drawn size", shape=None, dtype=F32, setting=(1, 16, 2)),
    Case("NaN, infinities, largest and smallest", stage="numerics", shape=(2500,), dtype=F32, setting=(1, 16, 1)),
    Case("the same in bfloat16", stage="numerics", shape=(2500,), dtype=BF16, setting=(1, 16, 1)),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor | int, ...]:
    """Draw a contiguous x, spread widely around 2; then the setting of the case, if it has one."""
    draw = torch.Generator().manual_seed(seed)
    drawn = int(torch.randint(2200, 4400, (1,), generator=draw))
    shape = (drawn,) if case.shape is None else case.shape
    if case.dtype == I32:
        # The whole range: a copy that passes through float32 keeps only 24 bits.
        x = torch.randint(-(2**31), 2**31 - 1, shape, generator=draw, dtype=torch.int64).to(I32)
    else:
        x = (torch.randn(shape, generator=draw) * 8 + 2).to(case.dtype)
    if case.stage == "numerics":
        limits = torch.finfo(case.dtype)
        x[::7], x[1::7], x[2::7], x[3::7] = float("nan"), float("inf"), -float("inf"), limits.max
        # The smallest subnormal number: the first to go if a copy passes through arithmetic.
        x[4::7] = limits.smallest_normal * limits.eps
    return x.to(device), *case.setting


def reference(x: torch.Tensor, *setting: int) -> torch.Tensor:
    """Every element where it was."""
    return x.double()


def torch_op(x: torch.Tensor, *setting: int) -> torch.Tensor:
    """PyTorch's own copy."""
    return x.clone()


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> tuple[torch.Tensor]:
    """A large x, drawn by `draw(shape, dtype)`, and no setting: the file's own is on trial."""
    return (draw(case.shape, case.dtype),)


def expected_at(indices: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    return x.reshape(-1)[indices].double()


def eager(x: torch.Tensor) -> torch.Tensor:
    """What one would write without Triton."""
    return x.clone()


def least_bytes(case: Case) -> int:
    """Every element read once and written once."""
    return 2 * torch.Size(case.shape).numel() * case.dtype.itemsize


def flops(case: Case) -> int:
    """A copy computes nothing."""
    return 0


REFUSED = [
    Refusal("every second element", lambda device: (torch.ones(64, device=device)[::2], 1, 16, 1)),
    Refusal("no programs", lambda device: (torch.ones(64, device=device), 0, 16, 1)),
    Refusal("a block of 100", lambda device: (torch.ones(64, device=device), 1, 100, 1)),
    Refusal("three warps", lambda device: (torch.ones(64, device=device), 1, 16, 3)),
    Refusal("half a program", lambda device: (torch.ones(64, device=device), 0.5, 16, 1)),
]


def probes(draw: random.Random) -> list[Probe]:
    """What values cannot show: programs that copy what others copy as well store the same."""
    return [Probe("each element moves once", partial(_moves_once, draw.randrange(4000, 5000)))]


def _moves_once(n: int, module: ModuleType, lab: Lab) -> Fault | None:
    launches = lab.launches(module.grid_stride_copy, torch.ones(n), 1, 16, 1)
    loads = sum(launch.bytes_loaded for launch in launches) / (4 * n)
    stores = sum(launch.bytes_stored for launch in launches) / (4 * n)
    if max(loads, stores) < 1.05:
        return None
    programs = sum(launch.programs for launch in launches)
    return Fault(
        "K663",
        f"{programs} programs load each of {n} elements {loads:.1f} times and store it {stores:.1f} times on average",
        "See which blocks a program copies after its first: those of all other programs lie in between.",
    )


_H200 = CHIPS["h200"]
# Elements whose copy takes ten times as long as its launch.
_LARGE = 1 << 24
# A setting is (programs on a multiprocessor, block, warps). These are as good as any.
_BEST = ((8, 1024, 4), (8, 2048, 4), (16, 512, 4))
# Bytes on their way that are clearly too few, and clearly enough; memory wants 12 KiB.
_FEW, _MANY = 5 << 10, 24 << 10


def questions(draw: random.Random) -> list[Question]:
    """Bytes in flight of two settings; whether five are enough; three points of the triangle."""
    asked = []
    # All are resident, or not all.
    for itemsize, dtype, warps in ((4, F32, [1, 2, 4]), (2, F16, [8, 16])):
        programs = draw.choice([2, 3, 7, 8] if dtype == F32 else [12, 16, 32])
        setting = programs, 2 ** draw.randrange(6, 12), draw.choice(warps)
        truth = partial(_traced_in_flight, setting, dtype)
        asked.append(Question("bytes_in_flight", (*setting, itemsize), truth, "How much is on its way at once?"))
    clear = [setting for setting in _settings() if not _FEW < _in_flight(setting) < _MANY]
    # Much occupancy and few bytes, little occupancy and many bytes, and three of any kind.
    crowded = [s for s in clear if _resident(s) * s[2] == _H200.warps_per_sm and _in_flight(s) <= _FEW]
    lonely = [s for s in clear if _resident(s) * s[2] <= _H200.warps_per_sm // 4 and _in_flight(s) >= _MANY]
    chosen = [draw.choice(crowded), draw.choice(lonely), *draw.sample(clear, 3)]
    asked += [
        Question("enough", setting, partial(_reaches, setting), "Does this setting reach 90 % of the best?")
        for setting in draw.sample(chosen, 5)
    ]
    for what in ("registers", "shared memory", "warps"):
        needs = _needs(draw, what)
        asked.append(Question("corner", needs, partial(_fits, needs), "How many programs fit, and what is scarce?"))
    return asked


def _settings() -> list[tuple[int, int, int]]:
    """Settings of at least four programs, in which no thread holds more than 16 elements of a block."""
    return [
        (programs, 2**power, warps)
        for programs in (4, 8, 16, 32)
        for power in range(6, 13)
        for warps in (1, 2, 4, 8, 16)
        if 2**power <= 16 * 32 * warps
    ]


def _resident(setting: tuple[int, int, int]) -> int:
    return min(setting[0], _H200.warps_per_sm // setting[2])


def _in_flight(setting: tuple[int, int, int]) -> int:
    return _resident(setting) * setting[1] * 4


def _needs(draw: random.Random, what: str) -> tuple[int, int, int]:
    """Registers a thread, shared bytes and warps of a program, of which `what` alone is scarcest."""
    while True:
        needs = 8 * draw.randrange(3, 30), 1024 * draw.randrange(0, 64), 2 ** draw.randrange(1, 5)
        limits = occupancy(_H200, registers=needs[0], shared_bytes=needs[1], num_warps=needs[2]).limits
        scarcest = limits.pop(what)
        if 0 < scarcest < min(limits.values()):
            return needs


def _launched(lab: Lab, setting: tuple[int, int, int], dtype: torch.dtype, n: int) -> LaunchTrace:
    """A sample of the solved kernel's programs, as many as an H200 would get, whatever chip is at hand."""
    programs, block, warps = setting
    x = torch.empty(n, dtype=dtype)
    kernel = lab.reference_module.grid_stride_kernel[(programs * _H200.multiprocessors,)]
    (launch,) = lab.timed(lambda: kernel(x, torch.empty_like(x), n, BLOCK_SIZE=block, num_warps=warps))
    return launch


def _traced_in_flight(setting: tuple[int, int, int], dtype: torch.dtype, lab: Lab) -> int:
    """What one load asks for, times the programs that the clock finds resident."""
    # Four whole turns of the loop.
    launch = _launched(lab, setting, dtype, 4 * setting[0] * setting[1] * _H200.multiprocessors)
    (load,) = (site for site in launch.profile.sites if site.kind == "load")
    return round(load.bytes / load.executions) * estimate(launch.profile, _H200).resident


def _reaches(setting: tuple[int, int, int], lab: Lab) -> bool:
    return 0.9 * _us(lab, setting) <= min(_us(lab, best) for best in _BEST)


@cache
def _us(lab: Lab, setting: tuple[int, int, int]) -> float:
    return estimate(_launched(lab, setting, torch.float32, _LARGE).profile, _H200).us


def _fits(needs: tuple[int, int, int], lab: Lab) -> tuple[int, str]:
    """By the rules that the clock's occupancy follows."""
    found = occupancy(_H200, registers=needs[0], shared_bytes=needs[1], num_warps=needs[2])
    return found.programs, found.limiter
