"""Reductions, scans and sorts, along every axis, for every program."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def reduce_tile(x_ptr, y_ptr, F: tl.constexpr, AXIS: tl.constexpr, N_OUT: tl.constexpr):
    base = tl.program_id(0) * 128
    x = tl.load(x_ptr + base + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(y_ptr + tl.program_id(0) * N_OUT + tl.arange(0, N_OUT), tl.reshape(F(x, AXIS), (N_OUT,)))


@triton.jit
def _sum(x, axis: tl.constexpr):
    return tl.sum(x, axis)


@triton.jit
def _sum_keep(x, axis: tl.constexpr):
    return tl.sum(x, axis, keep_dims=True)


@triton.jit
def _max(x, axis: tl.constexpr):
    return tl.max(x, axis)


@triton.jit
def _min(x, axis: tl.constexpr):
    return tl.min(x, axis)


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _product(x, axis: tl.constexpr):
    return tl.reduce(x, axis, _multiply)


@triton.jit
def _xor(x, axis: tl.constexpr):
    return tl.xor_sum(x, axis)


@triton.jit
def _argmax(x, axis: tl.constexpr):
    return tl.argmax(x, axis)


@triton.jit
def _argmin(x, axis: tl.constexpr):
    return tl.argmin(x, axis)


@triton.jit
def _argmax_any(x, axis: tl.constexpr):
    return tl.argmax(x, axis, tie_break_left=False)


def reduced(function, x, axis):
    extent = x.shape[2 - axis] if axis is not None else 1
    y = torch.empty(x.shape[0], extent, dtype=x.dtype)
    reduce_tile[(x.shape[0],)](x, y, F=function, AXIS=axis, N_OUT=extent)
    return y


WHOLE = torch.randint(-9, 9, (3, 8, 16), dtype=torch.int32)
TORCH = {
    "sum": (_sum, lambda x, d: x.sum(d)),
    "sum that keeps its axis": (_sum_keep, lambda x, d: x.sum(d)),
    "max": (_max, lambda x, d: x.amax(d)),
    "min": (_min, lambda x, d: x.amin(d)),
    "argmax": (_argmax, lambda x, d: first(x == x.amax(d, keepdim=True), d)),
    "argmin": (_argmin, lambda x, d: first(x == x.amin(d, keepdim=True), d)),
}


def first(flags, axis):
    """Index of the first True along an axis; torch's own argmax does not promise which of equals it returns."""
    index = torch.arange(flags.shape[axis]).reshape([-1 if i == axis else 1 for i in range(3)])
    return torch.where(flags, index, 1000).amin(axis)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", TORCH)
def test_a_reduction_along_an_axis(name, axis):
    function, expected = TORCH[name]
    assert torch.equal(reduced(function, WHOLE, axis), expected(WHOLE, axis + 1).to(torch.int32))


def test_argmax_that_may_take_any_of_equals_takes_one_of_them():
    index = reduced(_argmax_any, WHOLE, 1).long()
    assert torch.equal(WHOLE.gather(2, index[:, :, None])[:, :, 0], WHOLE.amax(2))


@triton.jit
def reduce_all(x_ptr, y_ptr):
    x = tl.load(x_ptr + tl.program_id(0) * 128 + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(y_ptr + tl.program_id(0) * 2, tl.sum(x))
    tl.store(y_ptr + tl.program_id(0) * 2 + 1, tl.max(x))


def test_a_reduction_over_everything():
    y = torch.empty(3, 2, dtype=torch.int32)
    reduce_all[(3,)](WHOLE, y)
    assert y.tolist() == torch.stack([WHOLE.sum((1, 2)), WHOLE.amax((1, 2))], 1).tolist()


def test_a_reduction_by_a_function_of_ones_own():
    x = torch.randint(1, 3, (2, 8, 16), dtype=torch.int32)
    assert torch.equal(reduced(_product, x, 1), x.prod(2).to(torch.int32))


def test_xor_sum():
    x = torch.randint(0, 1000, (1, 8, 16), dtype=torch.int32)
    expected = 0
    for value in x[0, 2].tolist():
        expected ^= value
    assert reduced(_xor, x, 1)[0, 2].item() == expected


@triton.jit
def _welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    delta = mean_b - mean_a
    count = count_a + count_b
    return mean_a + delta * count_b / count, m2_a + m2_b + delta * delta * count_a * count_b / count, count


@triton.jit
def mean_and_variance(x_ptr, mean_ptr, variance_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * N + tl.arange(0, N))
    mean, m2, count = tl.reduce((x, tl.zeros_like(x), tl.full((N,), 1.0, tl.float32)), 0, _welford)
    tl.store(mean_ptr + row, mean)
    tl.store(variance_ptr + row, m2 / count)


def test_three_values_are_reduced_together():
    x = torch.randn(4, 64)
    mean, variance = torch.empty(4), torch.empty(4)
    mean_and_variance[(4,)](x, mean, variance, N=64)
    torch.testing.assert_close(mean, x.mean(1))
    torch.testing.assert_close(variance, x.var(1, correction=0))


@triton.jit
def max_with_index(x_ptr, value_ptr, index_ptr, N: tl.constexpr):
    row = tl.program_id(0)
    value, index = tl.max(tl.load(x_ptr + row * N + tl.arange(0, N)), 0, return_indices=True)
    tl.store(value_ptr + row, value)
    tl.store(index_ptr + row, index)


def test_max_returns_its_index_if_asked():
    x = torch.randn(3, 32)
    value, index = torch.empty(3), torch.empty(3, dtype=torch.int32)
    max_with_index[(3,)](x, value, index, N=32)
    assert torch.equal(value, x.amax(1))
    assert torch.equal(index.long(), x.argmax(1))


@triton.jit
def scan_tile(x_ptr, y_ptr, F: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    offs = tl.program_id(0) * 64 + tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(y_ptr + offs, F(tl.load(x_ptr + offs), AXIS, REVERSE))


@triton.jit
def _cumsum(x, axis: tl.constexpr, reverse: tl.constexpr):
    return tl.cumsum(x, axis, reverse=reverse)


@triton.jit
def _cumprod(x, axis: tl.constexpr, reverse: tl.constexpr):
    return tl.cumprod(x, axis, reverse=reverse)


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def _cummax(x, axis: tl.constexpr, reverse: tl.constexpr):
    return tl.associative_scan(x, axis, _larger, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (_cumsum, torch.cumsum),
        (_cumprod, torch.cumprod),
        (_cummax, lambda x, d: torch.cummax(x, d).values),
    ],
    ids=["cumsum", "cumprod", "cummax"],
)
def test_a_scan_along_an_axis(function, expected, axis, reverse):
    x = torch.randint(-2, 3, (2, 4, 16), dtype=torch.int32)
    y = torch.empty_like(x)
    scan_tile[(2,)](x, y, F=function, AXIS=axis, REVERSE=reverse)
    turned = x.flip(axis + 1) if reverse else x
    wanted = expected(turned, axis + 1)
    assert torch.equal(y, (wanted.flip(axis + 1) if reverse else wanted).to(torch.int32))


@triton.jit
def _linear(gain_a, value_a, gain_b, value_b):
    return gain_a * gain_b, value_a * gain_b + value_b


@triton.jit
def recurrence(gain_ptr, x_ptr, y_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    _, state = tl.associative_scan((tl.load(gain_ptr + offs), tl.load(x_ptr + offs)), 0, _linear)
    tl.store(y_ptr + offs, state)


def test_a_recurrence_is_a_scan_of_pairs():
    gain, x, y = torch.rand(32), torch.randn(32), torch.empty(32)
    recurrence[(1,)](gain, x, y, N=32)
    state, expected = 0.0, []
    for g, v in zip(gain.tolist(), x.tolist(), strict=True):
        state = state * g + v
        expected.append(state)
    torch.testing.assert_close(y, torch.tensor(expected))


@triton.jit
def sort_rows(x_ptr, y_ptr, DESCENDING: tl.constexpr):
    offs = tl.program_id(0) * 32 + tl.arange(0, 2)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(y_ptr + offs, tl.sort(tl.load(x_ptr + offs), descending=DESCENDING))


@pytest.mark.parametrize("descending", [False, True])
def test_sort_orders_every_row(descending):
    x = torch.randn(4, 16)
    y = torch.empty_like(x)
    sort_rows[(2,)](x, y, DESCENDING=descending)
    assert torch.equal(y, x.sort(1, descending=descending).values)


@triton.jit
def largest_four(x_ptr, y_ptr):
    x = tl.load(x_ptr + tl.arange(0, 16))
    tl.store(y_ptr + tl.arange(0, 4), tl.topk(x, 4))


def test_topk_gives_the_largest():
    x, y = torch.randn(16), torch.empty(4)
    largest_four[(1,)](x, y)
    assert torch.equal(y, x.topk(4).values)


@triton.jit
def softmax_rows(x_ptr, y_ptr, columns, BLOCK: tl.constexpr, LIBRARY: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + offs, mask=offs < columns, other=float("-inf"))
    if LIBRARY:
        y = tl.softmax(x)
    else:
        numerator = tl.exp(x - tl.max(x, axis=0))
        y = numerator / tl.sum(numerator, axis=0)
    tl.store(y_ptr + row * columns + offs, y, mask=offs < columns)


@pytest.mark.parametrize("library", [True, False])
def test_softmax_is_that_of_torch(library):
    x = torch.randn(5, 37) * 10
    y = torch.empty_like(x)
    softmax_rows[(5,)](x, y, 37, BLOCK=64, LIBRARY=library)
    torch.testing.assert_close(y, torch.softmax(x, 1))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_narrow_sum_is_a_pairwise_tree_rounded_at_each_step(dtype):
    x = (torch.rand(1, 8, 16) * 100).to(dtype)
    level = x[0]
    while level.shape[1] > 1:
        half = level.shape[1] // 2
        level = (level[:, :half].float() + level[:, half:].float()).to(dtype)
    assert torch.equal(reduced(_sum, x, 1)[0], level[:, 0])


def test_a_narrow_sum_does_not_stall_as_a_running_one_would():
    x = torch.full((1, 8, 16), 256.0).to(torch.bfloat16)
    x[0, :, 1:] = 1.0
    running = torch.tensor(256.0, dtype=torch.bfloat16)
    for _ in range(15):
        running = running + torch.tensor(1.0, dtype=torch.bfloat16)
    assert running == 256
    assert (reduced(_sum, x, 1) > 256).all()


@pytest.mark.parametrize("axis", [0, 1])
def test_max_and_min_ignore_nan(axis):
    x = torch.randn(1, 8, 16)
    x[0, 3, 5] = float("nan")
    expected = torch.where(x.isnan(), torch.tensor(float("-inf")), x).amax(axis + 1)
    assert torch.equal(reduced(_max, x, axis), expected)


def test_a_block_of_nan_has_nan_as_its_max():
    assert reduced(_max, torch.full((1, 8, 16), float("nan")), 1).isnan().all()


@triton.jit
def _max_propagating(x, axis: tl.constexpr):
    return tl.reduce(x, axis, _maximum_all)


@triton.jit
def _maximum_all(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


def test_a_reduction_that_asks_for_it_propagates_nan():
    x = torch.randn(1, 8, 16)
    x[0, 3, 5] = float("nan")
    y = reduced(_max_propagating, x, 1)
    assert y[0].isnan().tolist() == [row == 3 for row in range(8)]
