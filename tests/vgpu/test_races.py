"""Programs run in no order: what depends on one is found, what does not is left in peace."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl


def kinds(session):
    return [violation.kind for violation in session.launches[-1].violations]


@triton.jit
def store_scalar(y_ptr, SAME: tl.constexpr):
    tl.store(y_ptr, 7.0 if SAME else tl.program_id(0).to(tl.float32))


def test_two_programs_that_store_different_values_conflict(session, place):
    store_scalar[(4,)](torch.zeros(1), SAME=False)
    (violation,) = session.launches[0].violations
    assert (violation.kind, violation.argument, violation.indices) == ("store_conflict", "y_ptr", (0,))
    assert violation.program != violation.other_program
    assert violation.where.line == place(store_scalar, "tl.store")[1]


def test_the_same_bytes_from_several_programs_are_only_counted(session):
    store_scalar[(4,)](torch.zeros(1), SAME=True)
    assert kinds(session) == []
    assert session.launches[0].same_bytes == 3


@triton.jit
def overlapping(x_ptr, y_ptr, step, BLOCK: tl.constexpr, BY_PROGRAM: tl.constexpr):
    offs = tl.program_id(0) * step + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(y_ptr + offs, x + tl.program_id(0) if BY_PROGRAM else x)


def test_overlapping_blocks_conflict_only_where_their_values_differ(session):
    overlapping[(4,)](torch.randn(100), torch.zeros(100), 12, BLOCK=16, BY_PROGRAM=True)
    overlapping[(4,)](torch.randn(100), torch.zeros(100), 12, BLOCK=16, BY_PROGRAM=False)
    (violation,) = session.launches[0].violations
    assert (violation.kind, violation.count) == ("store_conflict", 3 * 4)
    assert kinds(session) == []


@triton.jit
def shift_the_last_block_back(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    start = tl.minimum(tl.program_id(0) * BLOCK, n - BLOCK)
    offs = start + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) * 2)


def test_shifting_the_last_block_back_is_right(session):
    x, y = torch.randn(100), torch.zeros(100)
    shift_the_last_block_back[(4,)](x, y, 100, BLOCK=32)
    assert torch.equal(y, 2 * x)
    assert kinds(session) == []
    assert session.launches[0].same_bytes == 28


def test_shifting_the_last_block_back_in_place_is_not(session):
    x = torch.randn(100)
    shift_the_last_block_back[(4,)](x, x, 100, BLOCK=32)
    assert kinds(session)


@triton.jit
def wrap_around(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) % n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) * 2)


def test_offsets_modulo_n_store_the_same_bytes(session):
    x, y = torch.randn(100), torch.zeros(100)
    wrap_around[(4,)](x, y, 100, BLOCK=32)
    assert torch.equal(y, 2 * x)
    assert kinds(session) == []


@triton.jit
def lanes_collide(y_ptr, BLOCK: tl.constexpr, SAME: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs // 2, (offs // 2 if SAME else offs).to(tl.float32))


def test_two_lanes_that_store_different_values_conflict(session):
    lanes_collide[(1,)](torch.zeros(8), BLOCK=16, SAME=False)
    (violation,) = session.launches[0].violations
    assert (violation.kind, violation.count) == ("lane_conflict", 8)


def test_two_lanes_that_store_one_value_do_not(session):
    lanes_collide[(1,)](torch.zeros(8), BLOCK=16, SAME=True)
    assert kinds(session) == []


@triton.jit
def all_lanes_store_the_sum(x_ptr, y_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(y_ptr + tl.zeros((BLOCK,), tl.int32), tl.broadcast_to(tl.sum(x, keep_dims=True), (BLOCK,)))


def test_a_scalar_stored_by_every_lane_is_right(session):
    all_lanes_store_the_sum[(1,)](torch.ones(16), torch.zeros(1), BLOCK=16)
    assert kinds(session) == []


@triton.jit
def shift_in_place(x_ptr, n, distance, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (offs < n) & (offs + distance >= 0) & (offs + distance < n)
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    tl.store(x_ptr + offs + distance, x, mask=mask)


def test_reading_what_an_earlier_program_wrote_is_a_race(session):
    shift_in_place[(8,)](torch.arange(512.0), 512, 64, BLOCK=64)
    assert "read_after_write" in kinds(session) or "write_after_read" in kinds(session)


def test_writing_what_another_program_reads_is_a_race(session):
    shift_in_place[(8,)](torch.arange(512.0), 512, -64, BLOCK=64)
    assert "write_after_read" in kinds(session)


def test_one_program_alone_may_do_both(session):
    shift_in_place[(1,)](torch.arange(64.0), 64, 1, BLOCK=64)
    assert kinds(session) == []


@triton.jit
def read_a_partner(x_ptr, out_ptr):
    pid = tl.program_id(0)
    tl.store(x_ptr + pid, pid.to(tl.float32) + 1)
    tl.store(out_ptr + pid, tl.load(x_ptr + (pid ^ 1)))


def test_both_ways_are_found_with_the_partner_named(session):
    read_a_partner[(2,)](torch.zeros(2), torch.zeros(2))
    violations = session.launches[0].violations
    assert {v.kind for v in violations} <= {"read_after_write", "write_after_read"}
    assert violations
    assert {violations[0].program, violations[0].other_program} == {(0, 0, 0), (1, 0, 0)}


@triton.jit
def producer_and_consumer(x_ptr, out_ptr, PRODUCER: tl.constexpr):
    if tl.program_id(0) == PRODUCER:
        tl.store(x_ptr, 5.0)
    else:
        tl.store(out_ptr + tl.program_id(0), tl.load(x_ptr))


@pytest.mark.parametrize(("producer", "kind"), [(0, "read_after_write"), (3, "write_after_read")])
def test_a_race_is_found_whichever_program_comes_first(producer, kind, gpu, monkeypatch):
    from checker.vgpu import executor

    monkeypatch.setattr(executor, "_BATCH_ELEMENTS", 1)
    with gpu.record() as session:
        producer_and_consumer[(4,)](torch.zeros(1), torch.zeros(4), PRODUCER=producer)
    assert kinds(session) == [kind]


@triton.jit
def lost_updates(x_ptr, total_ptr, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(total_ptr, tl.load(total_ptr) + tl.sum(x))


def test_read_modify_write_without_an_atomic_is_a_race(session):
    lost_updates[(4,)](torch.rand(64), torch.zeros(1), BLOCK=16)
    assert set(kinds(session)) & {"store_conflict", "write_after_read", "read_after_write"}


@triton.jit
def in_place(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


def test_an_update_in_place_by_the_owner_is_right(session):
    x = torch.zeros(1000)
    in_place[(4,)](x, 1000, BLOCK=256)
    assert (x == 1).all()
    assert kinds(session) == []


def test_two_launches_are_ordered(session):
    x = torch.zeros(64)
    shift_in_place[(1,)](x, 64, 1, BLOCK=64)
    in_place[(4,)](x, 64, BLOCK=16)
    shift_in_place[(1,)](x, 64, -1, BLOCK=64)
    assert [launch.violations for launch in session.launches] == [[], [], []]


@triton.jit
def reads_neighbours(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    left = tl.load(x_ptr + offs - 1, mask=offs > 0, other=0.0)
    right = tl.load(x_ptr + offs + 1, mask=offs + 1 < n, other=0.0)
    tl.store(y_ptr + offs, left + right, mask=offs < n)


def test_reading_what_others_read_too_is_right(session):
    reads_neighbours[(4,)](torch.randn(64), torch.zeros(64), 64, BLOCK=16)
    assert kinds(session) == []


def test_a_stencil_in_place_is_a_race(session):
    x = torch.randn(64)
    reads_neighbours[(4,)](x, x, 64, BLOCK=16)
    assert kinds(session)


@triton.jit
def store_then_load_own(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) * 2)
    tl.debug_barrier()
    tl.store(y_ptr + offs, tl.load(y_ptr + offs) + 1)


def test_a_program_may_read_back_what_it_stored(session):
    x, y = torch.randn(64), torch.zeros(64)
    store_then_load_own[(4,)](x, y, BLOCK=16)
    assert torch.equal(y, x * 2 + 1)
    assert kinds(session) == []


def test_races_between_views_of_one_storage_are_found(session):
    x = torch.randn(128)
    overlapping[(4,)](x[:64], x[8:72], 16, BLOCK=16, BY_PROGRAM=True)
    assert {"read_after_write", "write_after_read"} & set(kinds(session))


def test_races_are_not_looked_for_when_told_so(gpu):
    with gpu.record(check_races=False) as session:
        store_scalar[(4,)](torch.zeros(1), SAME=False)
    assert kinds(session) == []


@triton.jit
def clear_then_add(x_ptr, out_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(out_ptr, 0.0)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK))))


def test_clearing_in_one_program_what_all_add_to_is_a_race(session):
    clear_then_add[(4,)](torch.ones(64), torch.ones(1), BLOCK=16)
    assert "store_conflict" in kinds(session)


def test_one_program_may_clear_and_add(session):
    clear_then_add[(1,)](torch.ones(16), torch.ones(1), BLOCK=16)
    assert kinds(session) == []


@triton.jit
def read_then_add(out_ptr, seen_ptr):
    tl.store(seen_ptr + tl.program_id(0), tl.load(out_ptr))
    tl.atomic_add(out_ptr, 1.0)


def test_reading_what_others_add_to_later_is_a_race(session):
    read_then_add[(4,)](torch.zeros(1), torch.zeros(4))
    assert set(kinds(session)) & {"write_after_read", "read_after_write"}
