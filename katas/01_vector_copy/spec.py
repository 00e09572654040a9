"""What a right vector_copy does, and on which inputs it is asked to."""

from __future__ import annotations

import contextlib
import random
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import triton
from triton.runtime.build import compile_module_from_src

from checker.cases import Case, Question, Refusal

if TYPE_CHECKING:
    from checker.lab import Lab

CASES = [
    Case("n=1024, one full block", shape=(1024,), dtype=torch.float32),
    Case("n=4096, full blocks", shape=(4096,), dtype=torch.float32),
    Case("n=257, ragged", shape=(257,), dtype=torch.float32),
    Case("n=5000, ragged, several blocks", shape=(5000,), dtype=torch.float32),
    Case("n=1", shape=(1,), dtype=torch.float32),
    Case("n=0, empty", shape=(0,), dtype=torch.float32),
    Case("3 x 5 x 7", shape=(3, 5, 7), dtype=torch.float32),
    Case("float16", shape=(1500,), dtype=torch.float16),
    Case("bfloat16", shape=(1500,), dtype=torch.bfloat16),
    Case("int32", shape=(1500,), dtype=torch.int32),
    Case("a drawn size", shape=None, dtype=torch.float32),
    Case("NaN, infinities, largest and smallest", stage="numerics", shape=(1100,), dtype=torch.float32, special=True),
    Case("the same in bfloat16", stage="numerics", shape=(1100,), dtype=torch.bfloat16, special=True),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor]:
    """Draw a contiguous x, spread widely around 2."""
    draw = torch.Generator().manual_seed(seed)
    drawn = int(torch.randint(2, 9000, (1,), generator=draw))
    shape = (drawn,) if case.shape is None else case.shape
    values = torch.randn(shape, generator=draw) * 8 + 2
    if case.dtype == torch.int32:
        # The whole range: a copy that passes through float32 keeps only 24 bits.
        x = torch.randint(-(2**31), 2**31 - 1, shape, generator=draw, dtype=torch.int64).to(torch.int32)
    else:
        x = values.to(case.dtype)
    if case.params.get("special"):
        limits = torch.finfo(case.dtype)
        x[::7] = float("nan")
        x[1::7] = float("inf")
        x[2::7] = -float("inf")
        x[3::7] = limits.max
        # The smallest subnormal number: the first to go if a copy passes through arithmetic.
        x[4::7] = limits.smallest_normal * limits.eps
    return (x.to(device),)


def reference(x: torch.Tensor) -> torch.Tensor:
    """Every element where it was."""
    return x.double()


def torch_op(x: torch.Tensor) -> torch.Tensor:
    """PyTorch's own copy."""
    return x.clone()


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> tuple[torch.Tensor]:
    """What a speed case calls with: large, and drawn by `draw(shape, dtype)`."""
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
    Refusal("every second element", lambda device: (torch.ones(64, device=device)[::2],)),
    Refusal("a transposed view", lambda device: (torch.ones(4, 5, device=device).t(),)),
]


def questions(draw: random.Random) -> list[Question]:
    """Four of the six failures, and four of the five levels of compilation."""
    failures = draw.sample(sorted(_STAGES), 4)
    levels = tuple(draw.sample(["ttir", "ttgir", "llir", "ptx", "cubin"], 4))
    return [
        Question("triage", (name,), partial(_whose_fault, _STAGES[name]), f"Whose fault is the failure {name!r}?")
        for name in failures
    ] + [
        Question(
            "compile_order",
            (levels,),
            partial(_in_order, levels),
            "In which order does Triton produce these levels?",
        )
    ]


def _in_order(levels: tuple[str, ...], lab: Lab) -> tuple[str, ...]:
    """As Triton makes them for the chip at hand. On an AMD chip the last two go by other names."""
    made = [{"amdgcn": "ptx", "hsaco": "cubin"}.get(level, level) for level in lab.levels()]
    return tuple(sorted(levels, key=made.index))


# --- The truth about the six failures: each is staged, and a kernel known to be good runs on the same stage. ---


def _whose_fault(stage: Callable[[], contextlib.AbstractContextManager[Any]], lab: Lab) -> str:
    """The environment's, if a kernel known to be good fails on the same stage as well."""
    x = torch.arange(1000.0)
    # A new jit function: the stage must not be hidden by a binary compiled before it was set.
    kernel = triton.jit(lab.reference_module.copy_kernel.fn)

    def copy_with_a_good_kernel() -> torch.Tensor:
        y = torch.empty_like(x)
        with stage():
            kernel[(1,)](x, y, 1000, BLOCK_SIZE=1024)
        return y

    y = lab.result(copy_with_a_good_kernel)
    good = isinstance(y, torch.Tensor) and torch.equal(y, x)
    return "kernel" if good else "environment"


@contextlib.contextmanager
def _no_compiler() -> Iterator[None]:
    """Triton's driver builds a stub in C before its first launch; this does the same without a C compiler."""

    def find_no_compiler(*_: object, **__: object) -> str:
        raise RuntimeError("Failed to find C compiler. Please specify via CC environment variable")

    with triton.knobs.build.scope(), triton.knobs.cache.scope(), tempfile.TemporaryDirectory() as folder:
        triton.knobs.cache.dir = folder
        triton.knobs.build.impl = find_no_compiler
        compile_module_from_src(src="/* a launcher */", name="stub")
        yield


@contextlib.contextmanager
def _unwritable_cache() -> Iterator[None]:
    """A cache folder that cannot be made, because a file is in its way: that holds for root as well."""
    with triton.knobs.cache.scope():
        triton.knobs.cache.dir = f"{__file__}/cache"
        yield


@contextlib.contextmanager
def _no_driver() -> Iterator[None]:
    """No driver answers, as on a machine whose GPU is not visible."""

    class NoDriver:
        def __getattr__(self, name: str) -> object:
            raise RuntimeError("0 active drivers ([]). There should only be one.")

    kept = triton.runtime.driver.active
    triton.runtime.driver.set_active(NoDriver())
    try:
        yield
    finally:
        triton.runtime.driver.set_active(kept)


# The last three are staged in the text of a kernel or of its launch; around another kernel nothing is left of them.
_STAGES: dict[str, Callable[[], contextlib.AbstractContextManager[Any]]] = {
    "no compiler": _no_compiler,
    "unwritable cache": _unwritable_cache,
    "no driver": _no_driver,
    "unmasked store": contextlib.nullcontext,
    "short grid": contextlib.nullcontext,
    "misspelt meta": contextlib.nullcontext,
}
