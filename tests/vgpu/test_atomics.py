"""Atomics of every kind, and what programs build from them."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from checker.vgpu.errors import VirtualGpuError


@triton.jit
def fold(x_ptr, out_ptr, old_ptr, F: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # Lane i of every program meets lane i of the others.
    F(out_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + offs))


@triton.jit
def _add(p, v):
    tl.atomic_add(p, v)


@triton.jit
def _max(p, v):
    tl.atomic_max(p, v)


@triton.jit
def _min(p, v):
    tl.atomic_min(p, v)


@triton.jit
def _and(p, v):
    tl.atomic_and(p, v)


@triton.jit
def _or(p, v):
    tl.atomic_or(p, v)


@triton.jit
def _xor(p, v):
    tl.atomic_xor(p, v)


@triton.jit
def _xchg(p, v):
    tl.atomic_xchg(p, v)


def bitwise(operator):
    def run(rows):
        result = rows[0].clone()
        for row in rows[1:]:
            result = operator(result, row)
        return result

    return run


FOLDS = {
    "add": (_add, 0, lambda rows: rows.sum(0).to(rows.dtype)),
    "max": (_max, -(2**20), lambda rows: rows.amax(0)),
    "min": (_min, 2**20, lambda rows: rows.amin(0)),
    "and": (_and, -1, bitwise(torch.bitwise_and)),
    "or": (_or, 0, bitwise(torch.bitwise_or)),
    "xor": (_xor, 0, bitwise(torch.bitwise_xor)),
    "xchg": (_xchg, 0, lambda rows: rows[-1]),
}


@pytest.mark.parametrize("name", FOLDS)
def test_an_atomic_folds_the_values_of_all_programs(name, session):
    function, start, expected = FOLDS[name]
    rows = torch.randint(-1000, 1000, (5, 16), dtype=torch.int32)
    out = torch.full((16,), start, dtype=torch.int32)
    fold[(5,)](rows, out, out, F=function, BLOCK=16)
    assert torch.equal(out, expected(rows))
    assert session.launches[0].violations == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int64])
def test_atomic_add_takes_every_type(dtype):
    rows = torch.randint(-8, 8, (5, 16)).to(dtype)
    out = torch.zeros(16, dtype=dtype)
    fold[(5,)](rows, out, out, F=_add, BLOCK=16)
    assert torch.equal(out, rows.sum(0).to(dtype))


@pytest.mark.parametrize(("name", "expected"), [("max", "amax"), ("min", "amin")])
def test_atomic_max_and_min_take_floats_of_either_sign(name, expected):
    rows = torch.randn(6, 16)
    out = torch.full((16,), -100.0 if name == "max" else 100.0)
    fold[(6,)](rows, out, out, F=FOLDS[name][0], BLOCK=16)
    assert torch.equal(out, getattr(rows, expected)(0))


def test_atomic_max_compares_unsigned_values_as_unsigned():
    rows = torch.tensor([[1, 2**31 + 5, 7, 0], [2**32 - 1, 3, 9, 0]], dtype=torch.uint32)
    out = torch.zeros(4, dtype=torch.uint32)
    fold[(2,)](rows, out, out, F=_max, BLOCK=4)
    assert out.tolist() == [2**32 - 1, 2**31 + 5, 9, 0]


@triton.jit
def histogram(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.atomic_add(out_ptr + tl.load(x_ptr + offs, mask=mask, other=0), 1, mask=mask)


def test_lanes_of_one_program_may_meet_in_one_element():
    x = torch.randint(0, 7, (1000,), dtype=torch.int32)
    out = torch.zeros(7, dtype=torch.int32)
    histogram[(4,)](x, out, 1000, BLOCK=256)
    assert out.tolist() == torch.bincount(x, minlength=7).tolist()


@triton.jit
def tickets(counter_ptr, order_ptr):
    ticket = tl.atomic_add(counter_ptr, 1)
    tl.store(order_ptr + ticket, tl.program_id(0))


def test_an_atomic_returns_the_value_before():
    counter, order = torch.zeros(1, dtype=torch.int32), torch.full((8,), -1, dtype=torch.int32)
    tickets[(8,)](counter, order)
    assert counter.item() == 8
    assert sorted(order.tolist()) == list(range(8))


@triton.jit
def swap_if(ptr, old_ptr, expected, fresh):
    tl.store(old_ptr + tl.program_id(0), tl.atomic_cas(ptr, expected, fresh))


def test_compare_and_swap_writes_only_what_it_expected():
    value, old = torch.tensor([5], dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
    swap_if[(3,)](value, old, 5, 9)
    assert value.item() == 9
    assert old.tolist() == [5, 9, 9]


@triton.jit
def add_under_lock(lock_ptr, x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + offs)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(out_ptr + offs, tl.load(out_ptr + offs) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def test_a_spin_lock_orders_programs_and_is_no_race(session):
    x, out, lock = torch.randn(6, 16), torch.zeros(16), torch.zeros(1, dtype=torch.int32)
    add_under_lock[(6,)](lock, x, out, BLOCK=16)
    torch.testing.assert_close(out, x.sum(0))
    assert session.launches[0].violations == []


@triton.jit
def last_one_sums(x_ptr, partial_ptr, counter_ptr, out_ptr, BLOCK: tl.constexpr, PROGRAMS: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(partial_ptr + pid, tl.sum(tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK))))
    if tl.atomic_add(counter_ptr, 1) == PROGRAMS - 1:
        tl.store(out_ptr, tl.sum(tl.load(partial_ptr + tl.arange(0, PROGRAMS))))


def test_the_last_program_to_arrive_may_read_what_all_wrote(session):
    x, partial = torch.randn(8, 32), torch.empty(8)
    counter, out = torch.zeros(1, dtype=torch.int32), torch.empty(1)
    last_one_sums[(8,)](x, partial, counter, out, BLOCK=32, PROGRAMS=8)
    torch.testing.assert_close(out, x.sum()[None])
    assert session.launches[0].violations == []


@triton.jit
def wait_for_next(flag_ptr):
    pid = tl.program_id(0)
    while tl.atomic_add(flag_ptr + pid + 1, 0) == 0:
        pass
    tl.atomic_xchg(flag_ptr + pid, 1)


@triton.jit
def wait_for_previous(flag_ptr, out_ptr):
    pid = tl.program_id(0)
    while tl.atomic_add(flag_ptr + pid, 0) == 0:
        pass
    tl.store(out_ptr + pid, pid)
    tl.atomic_xchg(flag_ptr + pid + 1, 1)


def test_waiting_for_a_program_that_comes_later_is_named(place):
    with pytest.raises(VirtualGpuError, match=r"program \(0, 0, 0\) waits") as caught:
        wait_for_next[(3,)](torch.zeros(4, dtype=torch.int32))
    assert caught.value.code == "K505"
    assert caught.value.where.line == place(wait_for_next, "while")[1]


def test_waiting_for_an_earlier_program_works():
    flags, out = torch.tensor([1, 0, 0, 0, 0], dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    wait_for_previous[(4,)](flags, out)
    assert out.tolist() == [0, 1, 2, 3]


@triton.jit
def poll_plainly(flag_ptr):
    while tl.load(flag_ptr, volatile=True) == 0:
        pass


def test_polling_with_plain_loads_is_named_too():
    with pytest.raises(VirtualGpuError) as caught:
        poll_plainly[(2,)](torch.zeros(1, dtype=torch.int32))
    assert caught.value.code == "K505"


@triton.jit
def scatter_add(out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + offs, 1.0)


def test_an_atomic_outside_is_a_store_outside(session):
    storage = torch.zeros(30)
    scatter_add[(2,)](storage[:20], 20, BLOCK=16)
    violation = session.launches[0].violations[0]
    assert (violation.kind, violation.argument, violation.program) == ("store_outside", "out_ptr", (1, 0, 0))
    assert violation.indices[0] == 20
    assert storage.tolist() == [1.0] * 20 + [0.0] * 10


@triton.jit
def counted(out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr + offs % 4, 1, mask=offs < n, sem="relaxed", scope="cta")


def test_masked_off_lanes_of_an_atomic_do_nothing(session):
    out = torch.zeros(4, dtype=torch.int32)
    counted[(1,)](out, 10, BLOCK=16)
    assert out.tolist() == [3, 3, 2, 2]
    assert session.launches[0].accesses[0].masked == 6


@triton.jit
def old_of_masked(out_ptr, old_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(old_ptr + offs, tl.atomic_add(out_ptr + offs, 1, mask=offs % 2 == 0))


def test_old_values_come_back_lane_by_lane():
    out, old = torch.arange(8, dtype=torch.int32), torch.empty(8, dtype=torch.int32)
    old_of_masked[(1,)](out, old, BLOCK=8)
    assert old[::2].tolist() == [0, 2, 4, 6]
    assert out.tolist() == [1, 1, 3, 3, 5, 5, 7, 7]


@triton.jit
def on_unwritten(out_ptr):
    tl.atomic_add(out_ptr, 1.0)


def test_an_atomic_on_memory_nobody_wrote_is_reported(session):
    out = torch.empty(1)
    session.shadows.mark_uninitialised(out)
    on_unwritten[(1,)](out)
    assert [v.kind for v in session.launches[0].violations] == ["load_unwritten"]


def test_an_exchange_writes_without_reading(session):
    out = torch.empty(16, dtype=torch.int32)
    session.shadows.mark_uninitialised(out)
    fold[(1,)](torch.arange(16, dtype=torch.int32), out, out, F=_xchg, BLOCK=16)
    assert session.launches[0].violations == []
