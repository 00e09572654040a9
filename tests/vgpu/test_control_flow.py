"""Programs that branch, loop and return on their own, though many run at once."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def persistent(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    step = tl.num_programs(0) * BLOCK
    for start in range(tl.program_id(0) * BLOCK, n, step):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < n
        tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


@pytest.mark.parametrize("programs", [1, 3, 7])
def test_a_grid_stride_loop_covers_everything_with_any_grid(programs):
    x = torch.randn(1000)
    y = torch.empty_like(x)
    persistent[(programs,)](x, y, 1000, BLOCK=64)
    assert torch.equal(y, x + 1)


@triton.jit
def persistent_tiles(y_ptr, tiles, GROUP: tl.constexpr):
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), num_stages=2, flatten=True):
        tl.store(y_ptr + tile, tile // GROUP)


def test_tl_range_takes_its_hints():
    y = torch.full((10,), -1, dtype=torch.int32)
    persistent_tiles[(4,)](y, 10, GROUP=3)
    assert y.tolist() == [i // 3 for i in range(10)]


@triton.jit
def row_sums(x_ptr, length_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    length = tl.load(length_ptr + row)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, length, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * stride + offs, mask=offs < length, other=0.0)
    tl.store(out_ptr + row, tl.sum(total))


def test_every_program_has_its_own_loop_bound():
    x = torch.arange(5 * 40.0).reshape(5, 40)
    lengths = torch.tensor([0, 1, 17, 32, 40], dtype=torch.int32)
    out = torch.empty(5)
    row_sums[(5,)](x, lengths, out, x.stride(0), BLOCK=16)
    assert out.tolist() == [float(x[i, : lengths[i]].sum()) for i in range(5)]


@triton.jit
def halve_until_odd(x_ptr, y_ptr, steps_ptr):
    pid = tl.program_id(0)
    value = tl.load(x_ptr + pid)
    steps = 0
    while value % 2 == 0:
        value = value // 2
        steps += 1
    tl.store(y_ptr + pid, value)
    tl.store(steps_ptr + pid, steps)


def test_every_program_leaves_a_while_loop_when_its_own_condition_ends():
    x = torch.tensor([1, 2, 3, 12, 64, 100], dtype=torch.int32)
    y, steps = torch.empty_like(x), torch.empty_like(x)
    halve_until_odd[(6,)](x, y, steps)
    assert y.tolist() == [1, 1, 3, 3, 1, 25]
    assert steps.tolist() == [0, 1, 0, 2, 6, 2]


@triton.jit
def branchy(x_ptr, y_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    if pid % 3 == 0:
        y = x * 2
    elif pid % 3 == 1:
        y = x + 100
        if pid > 3:
            y = y + 1000
    else:
        y = -x
    tl.store(y_ptr + offs, y)


def test_programs_take_different_branches():
    x = torch.arange(32.0)
    y = torch.empty_like(x)
    branchy[(8,)](x, y, BLOCK=4)
    expected = []
    for pid, block in enumerate(x.reshape(8, 4)):
        expected += [block * 2, block + 100 + (1000 if pid > 3 else 0), -block][pid % 3].tolist()
    assert y.tolist() == expected


@triton.jit
def stores_in_branches(y_ptr, n):
    pid = tl.program_id(0)
    if pid >= n:
        return
    if pid % 2 == 0:
        tl.store(y_ptr + pid, 10)
        return
    tl.store(y_ptr + pid, 20)


@triton.jit
def late_return(x_ptr, y_ptr):
    pid = tl.program_id(0)
    value = tl.load(x_ptr + pid)
    if value < 0:
        tl.store(y_ptr + pid, -1)
        return
    for _ in range(value):
        value += 1
    tl.store(y_ptr + pid, value)


def test_a_program_that_returns_early_does_nothing_more():
    y = torch.zeros(8, dtype=torch.int32)
    stores_in_branches[(8,)](y, 5)
    assert y.tolist() == [10, 20, 10, 20, 10, 0, 0, 0]


def test_programs_that_went_on_still_loop_by_their_own_bounds():
    x = torch.tensor([3, -1, 0, 5], dtype=torch.int32)
    y = torch.zeros_like(x)
    late_return[(4,)](x, y)
    assert y.tolist() == [6, -1, 0, 10]


@triton.jit
def nested(y_ptr, ROWS: tl.constexpr):
    pid = tl.program_id(0)
    total = 0
    for i in range(pid):
        for j in range(i):
            if (i + j) % 2 == 0:
                total += i * j
            else:
                total -= 1
    for k in tl.static_range(ROWS):
        total += k
    tl.store(y_ptr + pid, total)


def test_loops_and_branches_nest():
    def expected(pid):
        return sum(i * j if (i + j) % 2 == 0 else -1 for i in range(pid) for j in range(i)) + 6

    y = torch.zeros(9, dtype=torch.int32)
    nested[(9,)](y, ROWS=4)
    assert y.tolist() == [expected(pid) for pid in range(9)]


@triton.jit
def countdown(y_ptr, start, stop, step):
    at = y_ptr
    for i in range(start, stop, step):
        tl.store(at, i)
        at += 1


def test_a_loop_that_counts_by_steps():
    y = torch.full((6,), -1, dtype=torch.int32)
    countdown[(1,)](y, 2, 17, 5)
    assert y.tolist() == [2, 7, 12, -1, -1, -1]


@triton.jit
def nested_while(y_ptr):
    pid = tl.program_id(0)
    outer = pid
    count = 0
    while outer > 0:
        inner = outer
        while inner > 0:
            inner -= 2
            count += 1
        outer -= 1
    tl.store(y_ptr + pid, count)


def test_while_loops_nest():
    y = torch.zeros(6, dtype=torch.int32)
    nested_while[(6,)](y)
    assert y.tolist() == [sum((o + 1) // 2 for o in range(1, pid + 1)) for pid in range(6)]


@triton.jit
def conditional_expression(x_ptr, y_ptr, FAST: tl.constexpr):
    pid = tl.program_id(0)
    value = tl.load(x_ptr + pid)
    tl.store(y_ptr + pid, (value if value > 2 else -value) + (100 if FAST else 0))


def test_conditional_expressions_choose_per_program():
    x = torch.arange(5, dtype=torch.int32)
    y = torch.zeros_like(x)
    conditional_expression[(5,)](x, y, FAST=True)
    assert y.tolist() == [100, 99, 98, 103, 104]


@triton.jit
def chained_booleans(y_ptr, n):
    pid = tl.program_id(0)
    if (pid > 1 and pid < n) or pid == 0:
        tl.store(y_ptr + pid, 1)
    if not (pid > 1):
        tl.store(y_ptr + pid + 6, 1)


def test_and_or_and_not_work_on_scalars():
    y = torch.zeros(12, dtype=torch.int32)
    chained_booleans[(6,)](y, 4)
    assert y[:6].tolist() == [1, 0, 1, 1, 0, 0]
    assert y[6:].tolist() == [1, 1, 0, 0, 0, 0]


def test_a_small_batch_gives_what_a_large_one_gives(monkeypatch):
    from checker.vgpu import executor

    monkeypatch.setattr(executor, "_BATCH_ELEMENTS", 1)
    test_every_program_has_its_own_loop_bound()
    test_programs_take_different_branches()
    test_loops_and_branches_nest()
