"""Integers wrap, divide and shift as in C; casts between types round and saturate as the chip's do."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def binary(x_ptr, y_ptr, z_ptr, F: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(z_ptr + offs, F(tl.load(x_ptr + offs), tl.load(y_ptr + offs)))


def both(function, x, y, dtype=None):
    z = torch.empty(x.numel(), dtype=dtype or x.dtype)
    binary[(1,)](x, y, z, F=function, N=x.numel())
    return z


@triton.jit
def _divide(a, b):
    return a // b


@triton.jit
def _modulo(a, b):
    return a % b


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _left(a, b):
    return a << b


@triton.jit
def _right(a, b):
    return a >> b


@triton.jit
def _bits(a, b):
    return (a & b) * 3 + (a | b) - (a ^ b) + (~a)


@triton.jit
def _less(a, b):
    return a < b


@triton.jit
def _minimum(a, b):
    return tl.minimum(a, b)


@triton.jit
def _true_divide(a, b):
    return a / b


@triton.jit
def _high(a, b):
    return tl.umulhi(a, b)


SIGNED = torch.tensor([7, -7, 7, -7, 0, 1, -1, 2**31 - 1], dtype=torch.int32)
DIVISORS = torch.tensor([2, 2, -2, -2, 5, 3, 3, -1], dtype=torch.int32)


def test_division_truncates_toward_zero():
    assert both(_divide, SIGNED, DIVISORS).tolist() == [3, -3, -3, 3, 0, 0, 0, -(2**31 - 1)]


def test_a_remainder_has_the_sign_of_the_dividend():
    assert both(_modulo, SIGNED, DIVISORS).tolist() == [1, -1, 1, -1, 0, 1, -1, 0]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
def test_sums_and_products_wrap(dtype):
    info = torch.iinfo(dtype)
    x = torch.tensor([info.max, info.min, info.max, 3], dtype=dtype)
    y = torch.tensor([1, -1, 2, -5], dtype=dtype)
    assert both(_add, x, y).tolist() == [info.min, info.max, info.min + 1, -2]
    assert both(_multiply, x, y).tolist() == [info.max, info.min, -2, -15]


def test_unsigned_values_divide_compare_and_shift_as_unsigned():
    x = torch.tensor([2**32 - 1, 2**31, 5, 0], dtype=torch.uint32)
    y = torch.tensor([2, 3, 7, 9], dtype=torch.uint32)
    exact = [(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert both(_divide, x, y).tolist() == [a // b for a, b in exact]
    assert both(_modulo, x, y).tolist() == [a % b for a, b in exact]
    assert both(_right, x, y).tolist() == [a >> b for a, b in exact]
    assert both(_less, x, y, torch.bool).tolist() == [a < b for a, b in exact]
    assert both(_minimum, x, y).tolist() == [min(a, b) for a, b in exact]


def test_shifts_of_signed_values_keep_the_sign():
    x = torch.tensor([-8, -1, 8, 2**31 - 1], dtype=torch.int32)
    y = torch.tensor([1, 5, 2, 3], dtype=torch.int32)
    assert both(_right, x, y).tolist() == [-4, -1, 2, (2**31 - 1) >> 3]
    assert both(_left, x, y).tolist() == [-16, -32, 32, -8]


def test_bitwise_operators():
    x = torch.randint(-(2**31), 2**31 - 1, (BLOCK,), dtype=torch.int32)
    y = torch.randint(-(2**31), 2**31 - 1, (BLOCK,), dtype=torch.int32)
    assert torch.equal(both(_bits, x, y), (x & y) * 3 + (x | y) - (x ^ y) + ~x)


def test_booleans_combine_bitwise():
    x, y = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
    assert both(_less, x, y, torch.bool).tolist() == [False, False, True, False]


def test_true_division_of_integers_is_in_float32():
    x, y = torch.tensor([1, 2, -7, 10], dtype=torch.int32), torch.tensor([3, 3, 2, 4], dtype=torch.int32)
    assert torch.equal(both(_true_divide, x, y, torch.float32), x.float() / y.float())


@pytest.mark.parametrize("dtype", [torch.uint32, torch.uint64])
def test_umulhi_is_the_high_half_of_the_product(dtype):
    bits = 32 if dtype == torch.uint32 else 64
    values = [2**bits - 1, 2 ** (bits - 1) + 12345, 3, 2 ** (bits // 2) + 1]
    x, y = torch.tensor(values, dtype=dtype), torch.tensor(values[::-1], dtype=dtype)
    assert both(_high, x, y).tolist() == [a * b >> bits for a, b in zip(values, values[::-1], strict=True)]


@triton.jit
def mixed(x_ptr, y_ptr, z_ptr):
    offs = tl.arange(0, 4)
    tl.store(z_ptr + offs, tl.load(x_ptr + offs) + tl.load(y_ptr + offs))


def test_mixed_widths_are_widened_first():
    x, y = torch.tensor([127, -128, 1, 0], dtype=torch.int8), torch.tensor([1, -1, 2**20, 5], dtype=torch.int32)
    z = torch.empty(4, dtype=torch.int64)
    mixed[(1,)](x, y, z)
    assert z.tolist() == [128, -129, 2**20 + 1, 5]


@triton.jit
def cast(x_ptr, y_ptr, N: tl.constexpr):
    offs = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs).to(y_ptr.dtype.element_ty))


def converted(x, dtype):
    y = torch.empty(x.numel(), dtype=dtype)
    block = min(x.numel(), 1024)
    cast[(x.numel() // block,)](x, y, N=block)
    return y


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(torch.int32, -(2**31), 2**31 - 1), (torch.int64, -(2**63), 2**63 - 1)]
)
def test_float_to_integer_saturates_and_nan_gives_zero(dtype, low, high):
    x = torch.tensor([1.9, -1.9, 1e30, -1e30, float("inf"), float("-inf"), 0.5, -0.0])
    assert converted(x, dtype).tolist() == [1, -1, high, low, high, low, 0, 0]
    if dtype == torch.int32:
        assert converted(torch.full((4,), float("nan")), dtype).tolist() == [0] * 4


def test_float_to_unsigned_saturates_at_zero():
    x = torch.tensor([1.9, -1.9, 1e30, 2.0**31, 2.0**32 - 256, float("inf"), float("-inf"), -0.5])
    assert converted(x, torch.uint32).tolist() == [1, 0, 2**32 - 1, 2**31, 2**32 - 256, 2**32 - 1, 0, 0]


def test_integers_become_the_nearest_float():
    x = torch.tensor([2**24 + 1, 2**24 + 3, -(2**31), 2**31 - 1], dtype=torch.int32)
    assert torch.equal(converted(x, torch.float32), x.to(torch.float32))
    assert converted(torch.tensor([2049, 2051, 65520, -1], dtype=torch.int32), torch.float16).tolist() == [
        2048.0, 2052.0, float("inf"), -1.0,
    ]  # fmt: skip


def test_unsigned_integers_become_floats_without_a_sign():
    assert converted(torch.tensor([2**32 - 1, 5], dtype=torch.uint32), torch.float32).tolist() == [2.0**32, 5.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrowing_rounds_to_nearest_even(dtype):
    bits = torch.randint(0, 2**31 - 1, (4096,), dtype=torch.int32)
    ties = (torch.arange(4096, dtype=torch.int32) << 13) | 0x3F801000
    x = torch.cat([bits.view(torch.float32), (bits & ~0x7FFF).view(torch.float32), ties.view(torch.float32)])
    x = torch.cat([x, -x[:4096]])
    x = torch.where(x.isnan(), torch.zeros(()), x)
    assert torch.equal(converted(x, dtype), x.to(dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_widening_is_exact_for_every_value(dtype):
    x = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype)
    wide = converted(x, torch.float32)
    assert torch.equal(wide.nan_to_num(nan=7.0), x.float().nan_to_num(nan=7.0))
    assert torch.equal(converted(wide, dtype).nan_to_num(nan=7.0), x.nan_to_num(nan=7.0))


def test_narrow_integers_are_cut_and_widened_with_their_sign():
    assert converted(torch.tensor([200, -200, 65536, -1], dtype=torch.int32), torch.int8).tolist() == [-56, 56, 0, -1]
    assert converted(torch.tensor([200, -200], dtype=torch.int16).to(torch.uint8), torch.int32).tolist() == [200, 56]


def test_numbers_become_booleans_by_comparison_with_zero():
    assert converted(torch.tensor([0.0, 0.5, -1.0, float("nan")]), torch.bool).tolist() == [False, True, True, True]
    assert converted(torch.tensor([0, 2, -1, 256], dtype=torch.int32), torch.bool).tolist() == [False, True, True, True]


@triton.jit
def bitcast(x_ptr, y_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs).to(y_ptr.dtype.element_ty, bitcast=True))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (torch.float32, torch.int32),
        (torch.int32, torch.float32),
        (torch.float16, torch.int16),
        (torch.int16, torch.bfloat16),
        (torch.bfloat16, torch.float16),
        (torch.int64, torch.float64),
    ],
)
def test_a_bitcast_keeps_the_bits(source, target):
    bits = np.random.default_rng(0).integers(0, 2**14, 64).astype(np.int16)
    x = torch.from_numpy(bits.astype({1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}[source.itemsize])).view(source)
    y = torch.empty(64, dtype=target)
    bitcast[(1,)](x, y, N=64)
    assert torch.equal(y.view(torch.uint8), x.view(torch.uint8))
