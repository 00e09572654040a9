"""Mathematical functions: the language's own, the library's, and those of the standard library of blocks."""

from __future__ import annotations

from typing import ClassVar

import pytest
import torch
import triton
import triton.language as tl
from torch.utils._python_dispatch import TorchDispatchMode
from triton.language.extra import libdevice


# One kernel a group keeps compiling short; each row of the result is one function.
@triton.jit
def language(positive_ptr, any_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    p, x = tl.load(positive_ptr + offs), tl.load(any_ptr + offs)
    tl.store(out_ptr + offs, tl.exp(x))
    tl.store(out_ptr + N + offs, tl.exp2(x))
    tl.store(out_ptr + 2 * N + offs, tl.log(p))
    tl.store(out_ptr + 3 * N + offs, tl.log2(p))
    tl.store(out_ptr + 4 * N + offs, tl.sqrt(p))
    tl.store(out_ptr + 5 * N + offs, tl.rsqrt(p))
    tl.store(out_ptr + 6 * N + offs, tl.sin(x))
    tl.store(out_ptr + 7 * N + offs, tl.cos(x))
    tl.store(out_ptr + 8 * N + offs, tl.erf(x))
    tl.store(out_ptr + 9 * N + offs, tl.abs(x))
    tl.store(out_ptr + 10 * N + offs, tl.floor(x))
    tl.store(out_ptr + 11 * N + offs, tl.ceil(x))
    tl.store(out_ptr + 12 * N + offs, tl.sigmoid(x))
    tl.store(out_ptr + 13 * N + offs, tl.sqrt_rn(p))
    tl.store(out_ptr + 14 * N + offs, tl.div_rn(x, p))
    tl.store(out_ptr + 15 * N + offs, tl.fdiv(x, p))
    tl.store(out_ptr + 16 * N + offs, tl.cdiv((p * 10).to(tl.int32), 3).to(tl.float32))


@triton.jit
def library(positive_ptr, unit_ptr, any_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    p, u, x = tl.load(positive_ptr + offs), tl.load(unit_ptr + offs), tl.load(any_ptr + offs)
    tl.store(out_ptr + offs, libdevice.tanh(x))
    tl.store(out_ptr + N + offs, libdevice.erf(x))
    tl.store(out_ptr + 2 * N + offs, libdevice.pow(p, x))
    tl.store(out_ptr + 3 * N + offs, libdevice.log1p(p))
    tl.store(out_ptr + 4 * N + offs, libdevice.expm1(x))
    tl.store(out_ptr + 5 * N + offs, libdevice.atan2(x, p))
    tl.store(out_ptr + 6 * N + offs, libdevice.asin(u))
    tl.store(out_ptr + 7 * N + offs, libdevice.rint(x))
    tl.store(out_ptr + 8 * N + offs, libdevice.trunc(x))
    tl.store(out_ptr + 9 * N + offs, libdevice.rsqrt(p))
    tl.store(out_ptr + 10 * N + offs, libdevice.fmod(x, p))
    tl.store(out_ptr + 11 * N + offs, libdevice.copysign(p, x))
    tl.store(out_ptr + 12 * N + offs, libdevice.isnan(x).to(tl.float32))
    tl.store(out_ptr + 13 * N + offs, libdevice.cosh(x))
    tl.store(out_ptr + 14 * N + offs, libdevice.log10(p))
    tl.store(out_ptr + 15 * N + offs, libdevice.round(x))


@pytest.fixture(scope="module")
def values():
    generator = torch.Generator().manual_seed(5)
    draw = lambda: torch.randn(64, generator=generator)  # noqa: E731  # a name for one expression
    return draw().abs() * 3 + 0.01, draw().clamp(-0.99, 0.99), draw() * 3


def test_functions_of_the_language(values):
    p, _, x = (value.double() for value in values)
    out = torch.empty(17, 64)
    language[(1,)](values[0], values[2], out, N=64)
    tenfold = (values[0] * 10).int().double()
    truth = [x.exp(), x.exp2(), p.log(), p.log2(), p.sqrt(), p.rsqrt(), x.sin(), x.cos(), torch.erf(x), x.abs(),
             x.floor(), x.ceil(), x.sigmoid(), p.sqrt(), x / p, x / p, ((tenfold + 2) / 3).floor()]  # fmt: skip
    for row, expected in zip(out.double(), truth, strict=True):
        torch.testing.assert_close(row, expected, rtol=1e-6, atol=1e-7)


def test_functions_of_the_library(values):
    p, u, x = (value.double() for value in values)
    out = torch.empty(16, 64)
    library[(1,)](*values, out, N=64)
    away = torch.copysign((x.abs() + 0.5).floor(), x)
    truth = [x.tanh(), torch.erf(x), p**x, p.log1p(), x.expm1(), torch.atan2(x, p), u.asin(), x.round(), x.trunc(),
             p.rsqrt(), torch.fmod(x, p), torch.copysign(p, x), torch.zeros_like(x), x.cosh(),
             p.log10(), away]  # fmt: skip
    for row, expected in zip(out.double(), truth, strict=True):
        torch.testing.assert_close(row, expected, rtol=1e-6, atol=1e-7)


@triton.jit
def edges(x_ptr, out_ptr):
    offs = tl.arange(0, 4)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.exp(x))
    tl.store(out_ptr + 4 + offs, tl.log(x))
    tl.store(out_ptr + 8 + offs, 1.0 / x)
    tl.store(out_ptr + 12 + offs, x / x)


def test_infinities_and_nan_come_out_without_a_warning():
    inf, nan = float("inf"), float("nan")
    out = torch.empty(4, 4)
    edges[(1,)](torch.tensor([inf, -inf, 0.0, -1.0]), out)
    expected = [[inf, 0.0, 1.0, 0.36787945], [inf, nan, -inf, nan], [0.0, -0.0, inf, -1.0], [nan, nan, nan, 1.0]]
    torch.testing.assert_close(out, torch.tensor(expected), equal_nan=True)


@triton.jit
def dropout(x_ptr, y_ptr, n, p, seed, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    keep = tl.rand(seed, offs) > p
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(y_ptr + offs, tl.where(keep, x / (1 - p), 0.0), mask=mask)


def test_random_numbers_are_uniform_and_repeat_with_their_seed():
    x = torch.ones(4000)
    once, again, other = torch.empty(4000), torch.empty(4000), torch.empty(4000)
    for y, seed in ((once, 7), (again, 7), (other, 8)):
        dropout[(4,)](x, y, 4000, 0.25, seed, BLOCK=1024)
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    assert abs((once > 0).float().mean() - 0.75) < 0.03


def test_random_numbers_are_philox():
    """Philox 4x32-10 with counter and key zero, as published with Random123."""
    out = torch.empty(4, dtype=torch.uint32)
    philox[(1,)](out)
    assert [f"{value:08x}" for value in out.tolist()] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]


@triton.jit
def philox(out_ptr):
    a, b, c, d = tl.randint4x(0, tl.zeros((1,), tl.int32))
    offs = tl.arange(0, 1)
    tl.store(out_ptr + offs, a)
    tl.store(out_ptr + 1 + offs, b)
    tl.store(out_ptr + 2 + offs, c)
    tl.store(out_ptr + 3 + offs, d)


def test_who_watches_pytorch_does_not_see_what_the_model_itself_computes(values):
    """The checker asks what a learner's wrapper lets PyTorch compute; erf in her kernel is none of that."""

    class Seen(TorchDispatchMode):
        names: ClassVar[set[str]] = set()

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.names.add(function.overloadpacket.__name__)
            return function(*args, **(kwargs or {}))

    out = torch.empty(17, 64)
    with Seen() as seen:
        language[(1,)](values[0], values[2], out, N=64)
    assert "erf" not in seen.names
