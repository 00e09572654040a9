"""Pointers that are computed, chosen, or loaded from memory still belong to the tensor they lead into."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def from_either(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    source = x_ptr
    if pid % 2 == 1:
        source = y_ptr
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + pid * BLOCK + offs, tl.load(source + offs))


def test_programs_may_read_from_different_tensors(session):
    x, y, out = torch.zeros(16), torch.ones(16), torch.empty(4, 16)
    from_either[(4,)](x, y, out, BLOCK=16)
    assert out[:, 0].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert session.launches[0].violations == []


def test_a_load_past_one_of_them_is_blamed_on_that_one(session):
    from_either[(4,)](torch.zeros(16), torch.ones(10), torch.empty(4, 16), BLOCK=16)
    (violation,) = session.launches[0].violations
    assert (violation.kind, violation.argument, violation.program) == ("load_outside", "y_ptr", (1, 0, 0))
    assert violation.indices == tuple(range(10, 16))
    assert violation.count == 12


@triton.jit
def lanes_choose(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    source = tl.where(offs % 2 == 0, x_ptr + offs, y_ptr + offs)
    tl.store(out_ptr + offs, tl.load(source, mask=offs < n, other=-1.0))


def test_lanes_may_read_from_different_tensors(session):
    x, y, out = torch.zeros(16), torch.ones(16), torch.empty(16)
    lanes_choose[(1,)](x, y, out, 12, BLOCK=16)
    assert out.tolist() == [0.0, 1.0] * 6 + [-1.0] * 4
    assert session.launches[0].violations == []


@triton.jit
def to_either(x_ptr, y_ptr, n, BLOCK: tl.constexpr, ADD: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    target = tl.where(offs < n, x_ptr + offs, y_ptr + offs - n)
    if ADD:
        tl.atomic_add(target, offs.to(tl.float32))
    else:
        tl.store(target, offs.to(tl.float32))


def test_lanes_may_store_to_different_tensors(session):
    for add in (False, True):
        x, y = torch.zeros(10), torch.zeros(22)
        to_either[(2,)](x, y, 10, BLOCK=16, ADD=add)
        assert torch.equal(torch.cat([x, y]), torch.arange(32.0))
    assert [launch.violations for launch in session.launches] == [[], []]


@triton.jit
def through_a_table(table_ptr, sizes_ptr, out_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    source = tl.load(table_ptr + pid).to(tl.pointer_type(tl.float32))
    n = tl.load(sizes_ptr + pid)
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + pid, tl.sum(tl.load(source + offs, mask=offs < n, other=0.0)))


def test_an_address_taken_on_the_host_leads_nowhere(session):
    """Real addresses are not those of the virtual GPU: no memory is touched."""
    x, out = torch.ones(16), torch.zeros(1)
    table = torch.tensor([x.data_ptr()], dtype=torch.int64)
    through_a_table[(1,)](table, torch.tensor([16], dtype=torch.int32), out, BLOCK=16)
    (violation,) = session.launches[0].violations
    assert (violation.kind, violation.argument) == ("load_outside", "")


@triton.jit
def walking(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = x_ptr + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(n):
        total += tl.load(at)
        at += BLOCK
    tl.store(out_ptr + tl.arange(0, BLOCK), total)


def test_a_pointer_that_is_carried_through_a_loop_keeps_its_tensor(session):
    x, out = torch.ones(60), torch.empty(16)
    walking[(1,)](x, out, 4, BLOCK=16)
    (violation,) = session.launches[0].violations
    assert (violation.argument, violation.indices) == ("x_ptr", (60, 61, 62, 63))
    assert session.launches[0].accesses[0].argument == "x_ptr"
