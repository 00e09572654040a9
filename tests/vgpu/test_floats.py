"""Narrow formats, contraction and NaN: bit for bit what the chip returns."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
import triton
import triton.language as tl

FORMATS = [torch.float32, torch.float16, torch.bfloat16]
NARROW = [torch.float16, torch.bfloat16]


@triton.jit
def ternary(x_ptr, y_ptr, z_ptr, out_ptr, F: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(out_ptr + offs, F(tl.load(x_ptr + offs), tl.load(y_ptr + offs), tl.load(z_ptr + offs)))


def compute(function, x, y, z, **keywords):
    out = torch.empty_like(x)
    ternary[(1,)](x, y, z, out, F=function, N=x.numel(), **keywords)
    return out


def draw(dtype, count=256, seed=0):
    """Random numbers whose bits are all in use, of magnitudes that meet."""
    generator = torch.Generator().manual_seed(seed)
    exponents = torch.randint(-4, 5, (count,), generator=generator)
    return (torch.randn(count, generator=generator) * 2.0**exponents).to(dtype)


def nearest(value: Fraction, dtype: torch.dtype) -> float:
    """The number of `dtype` nearest to an exact one, ties to even; the overflow threshold is not looked at."""
    digits, smallest = {torch.float32: (24, -149), torch.float16: (11, -24), torch.bfloat16: (8, -133)}[dtype]
    exponent = max(math.frexp(float(value))[1] - digits, smallest)
    scaled = value / Fraction(2) ** exponent
    return float(round(scaled) * Fraction(2) ** exponent)


def exactly(formula, dtype, *columns):
    return [nearest(formula(*map(Fraction, row)), dtype) for row in zip(*(c.tolist() for c in columns), strict=True)]


@triton.jit
def _add(a, b, c):
    return a + b


@triton.jit
def _subtract(a, b, c):
    return a - b


@triton.jit
def _multiply(a, b, c):
    return a * b


@triton.jit
def _divide(a, b, c):
    return a / b


@triton.jit
def _multiply_add(a, b, c):
    return a * b + c


@triton.jit
def _add_product(a, b, c):
    return c + a * b


@triton.jit
def _multiply_subtract(a, b, c):
    return a * b - c


@triton.jit
def _subtract_product(a, b, c):
    return c - a * b


@triton.jit
def _two_products(a, b, c):
    return a * b + b * c


@triton.jit
def _explicit(a, b, c):
    return tl.fma(a, b, c)


@triton.jit
def _two_steps(a, b, c):
    product = a * b
    total = product + c
    return tl.where(total > product, total, product)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(
    ("function", "formula"),
    [
        (_add, lambda a, b, c: a + b),
        (_subtract, lambda a, b, c: a - b),
        (_multiply, lambda a, b, c: a * b),
    ],
    ids=["add", "subtract", "multiply"],
)
def test_one_operation_is_rounded_once(function, formula, dtype):
    x, y, z = draw(dtype, seed=1), draw(dtype, seed=2), draw(dtype, seed=3)
    assert compute(function, x, y, z).tolist() == exactly(formula, dtype, x, y, z)


def test_division_is_a_product_with_the_reciprocal():
    """As div.full.f32: off by 2 units in the last place at most, and a number over itself need not be 1."""
    x, y = draw(torch.float32, seed=1), draw(torch.float32, seed=2)
    quotient, exact = compute(_divide, x, y, x).double(), x.double() / y.double()
    assert 0 < ((quotient - exact) / exact).abs().max() <= 2 * torch.finfo(torch.float32).eps
    assert (compute(_divide, x, x, x) != 1).any()


def test_division_at_the_ends_of_the_range():
    x = torch.tensor([0.0, 1.0, -1.0, torch.inf, torch.inf, 1.0, 3e38, 1e-40])
    y = torch.tensor([1.0, 0.0, 0.0, 2.0, torch.inf, torch.inf, 3e38, 1e-40])
    assert torch.equal(compute(_divide, x, y, x).nan_to_num(7), (x / y).nan_to_num(7))


def test_division_of_narrow_numbers_is_done_in_float32():
    x, y = draw(torch.float16, seed=1), draw(torch.float16, seed=2)
    assert compute(_divide, x, y, x).tolist() == exactly(lambda a, b: a / b, torch.float16, x, y)


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize(
    ("function", "formula"),
    [
        (_multiply_add, lambda a, b, c: a * b + c),
        (_add_product, lambda a, b, c: a * b + c),
        (_multiply_subtract, lambda a, b, c: a * b - c),
        (_subtract_product, lambda a, b, c: c - a * b),
        (_explicit, lambda a, b, c: a * b + c),
    ],
    ids=["ab+c", "c+ab", "ab-c", "c-ab", "tl.fma"],
)
def test_a_product_and_a_sum_are_rounded_once_together(function, formula, dtype):
    x, y, z = draw(dtype, seed=1), draw(dtype, seed=2), draw(dtype, seed=3)
    assert compute(function, x, y, z).tolist() == exactly(formula, dtype, x, y, z)


@pytest.mark.parametrize("dtype", FORMATS)
def test_contraction_can_be_switched_off(dtype):
    x, y, z = draw(dtype, seed=1), draw(dtype, seed=2), draw(dtype, seed=3)
    apart = compute(_multiply_add, x, y, z, enable_fp_fusion=False)
    steps = ((x.float() * y.float()).to(dtype).float() + z.float()).to(dtype)
    assert torch.equal(apart, steps)
    assert not torch.equal(apart, compute(_multiply_add, x, y, z))


def test_of_two_products_the_first_is_fused():
    x, y, z = draw(torch.float32, seed=1), draw(torch.float32, seed=2), draw(torch.float32, seed=3)
    rounded = (y * z).tolist()
    expected = [
        nearest(Fraction(a) * Fraction(b) + Fraction(p), torch.float32)
        for a, b, p in zip(x.tolist(), y.tolist(), rounded, strict=True)
    ]
    assert compute(_two_products, x, y, z).tolist() == expected


def test_a_product_used_elsewhere_too_is_still_fused_into_its_sum():
    x, y, z = draw(torch.float32, seed=1), draw(torch.float32, seed=2), draw(torch.float32, seed=3)
    fused = torch.tensor(exactly(lambda a, b, c: a * b + c, torch.float32, x, y, z))
    product = x * y
    assert torch.equal(compute(_two_steps, x, y, z), torch.where(fused > product, fused, product))


@pytest.mark.parametrize("dtype", FORMATS)
def test_halfway_cases_of_a_fused_result_go_by_the_exact_value(dtype):
    """A sum that lies a hair beside the middle of two neighbours: rounding twice would take the tie to even."""
    digits = {torch.float32: 24, torch.float16: 11, torch.bfloat16: 8}[dtype]
    one_and_half_unit = 1 + 2.0 ** (1 - digits)
    x = torch.tensor([one_and_half_unit, one_and_half_unit, -one_and_half_unit, 1.0], dtype=dtype)
    y = torch.tensor([one_and_half_unit, 1 - 2.0 ** (-digits), one_and_half_unit, 1.0], dtype=dtype)
    tiny = 2.0 ** (-2 * digits + 1) if dtype != torch.float16 else 2.0**-14
    z = torch.tensor([2.0**-digits, tiny, -(2.0**-digits), tiny], dtype=dtype)
    assert compute(_multiply_add, x, y, z).tolist() == exactly(lambda a, b, c: a * b + c, dtype, x, y, z)


@pytest.mark.parametrize("dtype", NARROW)
def test_overflow_gives_infinity(dtype):
    top = torch.finfo(dtype).max
    x = torch.tensor([top, top, -top, 1.0], dtype=dtype)
    y = torch.tensor([2.0, top, 2.0, 1.0], dtype=dtype)
    assert compute(_multiply, x, y, x).tolist() == [math.inf, math.inf, -math.inf, 1.0]


def test_float16_keeps_its_subnormal_numbers():
    x = torch.full((4,), 2.0**-20, dtype=torch.float16)
    assert compute(_add, x, x, x).tolist() == [2.0**-19] * 4


@triton.jit
def scale_by_python_number(x_ptr, y_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) * 0.1)


@pytest.mark.parametrize("dtype", NARROW)
def test_a_number_in_the_source_takes_the_type_of_the_block(dtype):
    x, y = draw(dtype), torch.empty(256, dtype=dtype)
    scale_by_python_number[(1,)](x, y, N=256)
    assert torch.equal(y, (x.float() * torch.tensor(0.1).to(dtype).float()).to(dtype))


@triton.jit
def _maximum(a, b, c):
    return tl.maximum(a, b)


@triton.jit
def _minimum(a, b, c):
    return tl.minimum(a, b)


@triton.jit
def _maximum_all(a, b, c):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _minimum_all(a, b, c):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _clamp(a, b, c):
    return tl.clamp(a, b, c)


@triton.jit
def _clamp_all(a, b, c):
    return tl.clamp(a, b, c, propagate_nan=tl.PropagateNan.ALL)


NAN = float("nan")
LEFT, RIGHT = torch.tensor([1.0, NAN, 3.0, NAN]), torch.tensor([2.0, 2.0, NAN, NAN])


def same(actual, expected):
    return torch.equal(torch.tensor(actual).nan_to_num(nan=99.0), torch.tensor(expected).nan_to_num(nan=99.0))


def test_maximum_and_minimum_prefer_a_number_to_nan():
    assert same(compute(_maximum, LEFT, RIGHT, LEFT).tolist(), [2.0, 2.0, 3.0, NAN])
    assert same(compute(_minimum, LEFT, RIGHT, LEFT).tolist(), [1.0, 2.0, 3.0, NAN])


def test_maximum_and_minimum_propagate_nan_if_asked():
    assert same(compute(_maximum_all, LEFT, RIGHT, LEFT).tolist(), [2.0, NAN, NAN, NAN])
    assert same(compute(_minimum_all, LEFT, RIGHT, LEFT).tolist(), [1.0, NAN, NAN, NAN])


def test_clamp_keeps_nan_only_if_asked():
    x, low, high = torch.tensor([-5.0, 0.5, 5.0, NAN]), torch.zeros(4), torch.ones(4)
    assert compute(_clamp, x, low, high).tolist()[:3] == [0.0, 0.5, 1.0]
    assert not compute(_clamp, x, low, high)[3].isnan()
    assert same(compute(_clamp_all, x, low, high).tolist(), [0.0, 0.5, 1.0, NAN])


@triton.jit
def comparisons(x_ptr, y_ptr, out_ptr):
    offs = tl.arange(0, 4)
    x, y = tl.load(x_ptr + offs), tl.load(y_ptr + offs)
    flags = (x < y).to(tl.int32) + (x <= y) * 2 + (x > y) * 4 + (x >= y) * 8 + (x == y) * 16 + (x != y) * 32
    tl.store(out_ptr + offs, flags)


def test_comparisons_with_nan_are_false_but_for_inequality():
    out = torch.empty(4, dtype=torch.int32)
    comparisons[(1,)](torch.tensor([1.0, 2.0, 2.0, NAN]), torch.tensor([2.0, 1.0, 2.0, 1.0]), out)
    assert out.tolist() == [1 + 2 + 32, 4 + 8 + 32, 2 + 8 + 16, 32]


def test_a_bfloat16_sum_in_float32_is_rounded_when_stored():
    x = draw(torch.bfloat16)
    out = torch.empty(1, dtype=torch.bfloat16)
    wide_sum[(1,)](x, out, N=256)
    assert abs(out.double() - x.double().sum()) <= 2.0**-8 * abs(x.double().sum())


@triton.jit
def wide_sum(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, N)).to(tl.float32)))
