"""Right kernels that a protocol must accept, and wrong ones, each wrong in one way, that it must refuse."""

from __future__ import annotations

import random
import traceback
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import triton
import triton.language as tl

from checker.cases import Case, Fault, Probe, Question

if TYPE_CHECKING:
    from checker.lab import Lab

CASES: list[Case] = []

# What validating one kernel may cost.
CALLS, ELEMENTS = 40, 2**22

BLOCK_SIZE = 1024

Saxpy = Callable[[float, torch.Tensor, torch.Tensor], torch.Tensor]

# The kernels. `n` is not specialised: a kernel is compiled once for each dtype, whatever the size.


@triton.jit(do_not_specialize=["n"])
def plain_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Right: computed in float32; the compiler may fuse the two operations."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
    tl.store(out_ptr + offs, (a * x + y).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n"])
def loop_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Right: few programs, each of which computes several blocks."""
    for start in range(tl.program_id(0) * BLOCK_SIZE, n, tl.num_programs(0) * BLOCK_SIZE):
        offs = start + tl.arange(0, BLOCK_SIZE)
        mask = offs < n
        x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
        y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
        tl.store(out_ptr + offs, tl.fma(a, x, y).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n"])
def double_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Right: computed in float64, rounded to float32 and then to the dtype."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float64)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float64)
    tl.store(out_ptr + offs, (a * x + y).to(tl.float32).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n"])
def swallowing_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Wrong: a NaN becomes 0."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
    out = a * x + y
    out = tl.where(out == out, out, 0.0)
    tl.store(out_ptr + offs, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n"])
def factored_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Wrong: a is factored out, and may be 0."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
    tl.store(out_ptr + offs, (a * (x + y / a)).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n"])
def clipping_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Wrong: float16 results are kept away from the end of the range."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
    out = a * x + y
    if out_ptr.dtype.element_ty == tl.float16:
        out = tl.where(out > 30000.0, 30000.0, out)
        out = tl.where(out < -30000.0, -30000.0, out)
    tl.store(out_ptr + offs, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n"])
def narrow_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Wrong: computed in the dtype of x, in which a * x is rounded and may overflow."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    product = (a * x).to(x_ptr.dtype.element_ty)
    tl.store(out_ptr + offs, product + y, mask=mask)


@triton.jit(do_not_specialize=["n"])
def half_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Wrong: float32 is rounded to float16 on its way."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    if x_ptr.dtype.element_ty == tl.float32:
        x = x.to(tl.float16)
    out = a * x.to(tl.float32) + y.to(tl.float32)
    tl.store(out_ptr + offs, out.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n"])
def through_half_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Wrong: bfloat16 reaches as far as float32, float16 does not."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
    if x_ptr.dtype.element_ty == tl.bfloat16:
        x = x.to(tl.float16).to(tl.float32)
    tl.store(out_ptr + offs, (a * x + y).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["n"])
def sentinel_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Wrong: float32 has room beyond 1e30, which stands for infinity here."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
    out = a * x + y
    if out_ptr.dtype.element_ty == tl.float32:
        out = tl.where(out > 1e30, float("inf"), out)
        out = tl.where(out < -1e30, -float("inf"), out)
    tl.store(out_ptr + offs, out.to(out_ptr.dtype.element_ty), mask=mask)


# The wrappers. Each call of `_fresh` makes a new candidate, which has seen nothing yet.


def _run(kernel: Any, a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, **options: Any) -> torch.Tensor:
    """Launch on memory order, as many programs as out has blocks."""
    n = out.numel()
    if n:
        kernel[(triton.cdiv(n, BLOCK_SIZE),)](float(a), x, y, out, n, BLOCK_SIZE=BLOCK_SIZE, **options)
    return out


def _with(kernel: Any, **options: Any) -> Saxpy:
    """A wrapper without a fault."""

    def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        return _run(kernel, a, x, y, torch.empty_like(x), **options)

    return saxpy


def _looping() -> Saxpy:
    def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        out = torch.empty_like(x)
        if out.numel():
            # A few programs with many blocks; not too many, for a loop is slow on the virtual GPU.
            programs = max(3, triton.cdiv(out.numel(), 64 * 128))
            loop_kernel[(programs,)](float(a), x, y, out, out.numel(), BLOCK_SIZE=128, num_warps=1)
        return out

    return saxpy


def _rounded_down() -> Saxpy:
    def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        # Zeros, and not whatever lies there: memory that is used again may hold the right result.
        out = torch.zeros_like(x)
        n = out.numel()
        if n:
            plain_kernel[(max(1, n // BLOCK_SIZE),)](float(a), x, y, out, n, BLOCK_SIZE=BLOCK_SIZE)
        return out

    return saxpy


def _nothing_to_do() -> Saxpy:
    def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        out = torch.zeros_like(x)
        return out if out.numel() <= 1 else _run(plain_kernel, a, x, y, out)

    return saxpy


def _y_as_it_lies() -> Saxpy:
    def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        return _run(plain_kernel, a, x, y, torch.empty_like(x))

    return saxpy


def _all_as_they_lie() -> Saxpy:
    def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return _run(plain_kernel, a, x, y, torch.empty_like(x))

    return saxpy


def _always_float32() -> Saxpy:
    def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        return _run(plain_kernel, a, x, y, torch.empty_like(x, dtype=torch.float32))

    return saxpy


def _into_y() -> Saxpy:
    def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        return _run(plain_kernel, a, x, y, y)

    return saxpy


def _one_buffer() -> Saxpy:
    buffers: dict[Any, torch.Tensor] = {}

    def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        out = buffers.setdefault((x.shape, x.dtype), torch.empty_like(x))
        return _run(plain_kernel, a, x, y, out)

    return saxpy


def _remembering() -> Saxpy:
    results: dict[Any, torch.Tensor] = {}

    def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        key = (a, x.shape, x.dtype)
        if key not in results:
            x, y = x.contiguous(), y.contiguous()
            results[key] = _run(plain_kernel, a, x, y, torch.empty_like(x))
        return results[key].clone()

    return saxpy


def _one_dimension_more() -> Saxpy:
    def saxpy(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x, y = x.contiguous(), y.contiguous()
        return _run(plain_kernel, a, x, y, torch.empty_like(x))[None]

    return saxpy


RIGHT: dict[str, tuple[Callable[[], Saxpy], str]] = {
    "fused": (partial(_with, plain_kernel), "a * x + y in one operation, rounded once"),
    "not fused": (
        partial(_with, plain_kernel, enable_fp_fusion=False),
        "product and sum apart, each rounded to float32",
    ),
    "blocked differently": (_looping, "few programs, each of which computes many blocks of 128"),
    "in float64": (partial(_with, double_kernel), "computed in float64, then rounded"),
}


class Wrong(NamedTuple):
    """A kernel that is wrong in one way."""

    make: Callable[[], Saxpy]
    what: str  # what it does
    advice: str


# In the order of the TODOs.
WRONG = {
    "one element": Wrong(
        _nothing_to_do,
        "a single element is taken for nothing to do",
        "Validate the smallest size that there is something to compute for.",
    ),
    "ragged tail": Wrong(
        _rounded_down,
        "where there is a full block of 1024, elements behind the last full one are not computed",
        "Validate sizes below, at and behind a block, and some large ones that are no multiple of anything.",
    ),
    "NaN swallowed": Wrong(
        partial(_with, swallowing_kernel),
        "where the result is NaN, it stores 0",
        "Put NaN and infinities into x and y, and look where NaN has to come out.",
    ),
    "a factor of zero": Wrong(
        partial(_with, factored_kernel),
        "it computes a * (x + y / a), which is NaN where a is 0",
        "Validate with a = 0. And mind how a NaN compares: it is not greater than any tolerance.",
    ),
    "large values": Wrong(
        partial(_with, clipping_kernel),
        "float16 results beyond 30000 are clipped, and float16 reaches 65504",
        "Validate each dtype with values as large as it can hold.",
    ),
    "range of bfloat16": Wrong(
        partial(_with, through_half_kernel),
        "a bfloat16 x becomes float16 on its way, which ends at 65504, and bfloat16 reaches 3.4e38",
        "Validate each dtype with values as large as it can hold.",
    ),
    "range of float32": Wrong(
        partial(_with, sentinel_kernel),
        "float32 results beyond 1e30 become infinite, and float32 reaches 3.4e38",
        "Validate each dtype with values as large as it can hold.",
    ),
    "non-contiguous y": Wrong(
        _y_as_it_lies,
        "y is read in the order in which it lies in memory",
        "Validate views that are not contiguous: transposed ones, and slices with a step.",
    ),
    "non-contiguous x": Wrong(
        _all_as_they_lie,
        "x is read in the order in which it lies in memory, and the result gets x's strides",
        "Validate x and y of different layouts: where both are laid out alike, two mistakes cancel.",
    ),
    "dtype of the result": Wrong(
        _always_float32,
        "it returns float32, whatever dtype x and y have",
        "Validate each dtype that the contract names, and compare the dtype of the result.",
    ),
    "dtype of the arithmetic": Wrong(
        partial(_with, narrow_kernel),
        "it computes in the dtype of x, so that float16 and bfloat16 are rounded twice and a * x may overflow",
        "Validate float16 and bfloat16 against float64, where the sum is much smaller than the product.",
    ),
    "dtype on the way": Wrong(
        partial(_with, half_kernel),
        "a float32 x is rounded to float16, which leaves 11 of 24 bits",
        "A tolerance follows from the dtype. What can be the error of a right float32 result?",
    ),
    "broadcast result shape": Wrong(
        _one_dimension_more,
        "the result has one dimension more, of size 1",
        "allclose broadcasts what it compares. Compare shapes before values.",
    ),
    "input changed": Wrong(
        _into_y,
        "the result is stored into y, and y is returned",
        "Keep copies of x and y, and compare them after the call.",
    ),
    "a result remembered": Wrong(
        _remembering,
        "state is kept between calls: with the same a, shape and dtype the result of the first one is returned",
        "Call twice, with the same shape and other values.",
    ),
    "a buffer kept": Wrong(
        _one_buffer,
        "state is kept between calls: results of one shape and dtype share their memory",
        "Look at the first result again after the second call.",
    ),
}


class _TooMuchError(Exception):
    """The budget is spent."""


class _CandidateError(Exception):
    """A candidate could not even run on what it was given."""


class _Candidate:
    """What a protocol gets: a kernel, counted."""

    def __init__(self, saxpy: Saxpy) -> None:
        self._saxpy = saxpy
        self.calls = self.elements = 0

    @property
    def too_much(self) -> bool:
        return self.calls > CALLS or self.elements > ELEMENTS

    def __call__(self, a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return what the kernel makes of it. _TooMuchError as soon as the budget is spent."""
        self.calls += 1
        self.elements += x.numel()
        if self.too_much:
            raise _TooMuchError
        try:
            return self._saxpy(a, x, y)
        except Exception as error:
            raise _CandidateError(f"{type(error).__name__}: {error}") from error


class _Refused(NamedTuple):
    """Why a candidate was refused, and the line of the protocol that did it."""

    reason: str
    line: int | None


def _verdict(module: ModuleType, make: Callable[[], Saxpy], lab: Lab) -> Fault | _Refused | None:
    """None if the candidate is accepted; a fault if that costs too much."""
    candidate = _Candidate(make())
    error = lab.result(module.validate, candidate)
    if candidate.too_much:
        return Fault(
            "K663",
            f"{candidate.calls} calls with {candidate.elements} elements for one kernel, and {CALLS} calls with "
            f"{ELEMENTS} elements are allowed",
            "Ask of each input which mistake it alone would show, and leave out those that show none.",
        )
    if not isinstance(error, BaseException):
        return None
    if isinstance(error, AssertionError | _CandidateError):
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == module.__file__
        ]
        return _Refused(reason, lines[-1] if lines else None)
    # Neither accepted nor refused: a fault of the protocol itself.
    raise error


def _accepts(kind: str, module: ModuleType, lab: Lab) -> Fault | None:
    make, what = RIGHT[kind]
    verdict = _verdict(module, make, lab)
    if not isinstance(verdict, _Refused):
        return verdict
    return Fault(
        "K662",
        f"{kind}: {what}. That is right, and validate() refused it: {verdict.reason}",
        "Take the truth from float64, and work out what the dtype of x and float32 on the way may lose.",
        line=verdict.line,
    )


def _refuses(kind: str, module: ModuleType, lab: Lab) -> Fault | None:
    make, what, advice = WRONG[kind]
    verdict = _verdict(module, make, lab)
    if verdict is None:
        return Fault("K661", f"{kind}: {what}. validate() accepted it.", advice)
    return verdict if isinstance(verdict, Fault) else None


def probes(draw: random.Random) -> list[Probe]:
    """Every right kernel, then every wrong one, and in a drawn place among them one of the right ones again."""
    asked = [Probe(f"wrong: {kind}", partial(_refuses, kind)) for kind in WRONG]
    again = draw.choice(sorted(RIGHT))
    # Not first: who accepts by turns, or only what comes early, must not know where.
    asked.insert(draw.randrange(1, len(asked)), Probe(f"right: {again}, again", partial(_accepts, again)))
    return [Probe(f"right: {kind}", partial(_accepts, kind)) for kind in RIGHT] + asked


def questions(draw: random.Random) -> list[Question]:
    """Six of the wrong kernels."""
    return [
        Question("passes", (kind,), partial(_passes, kind), f"Does the kernel with {kind!r} pass naive()?")
        for kind in draw.sample(sorted(WRONG), 6)
    ]


def _passes(kind: str, lab: Lab) -> bool:
    """Runs the naive protocol on the wrong kernel."""
    error = lab.result(lab.reference_module.naive, WRONG[kind].make())
    return not isinstance(error, BaseException)
