"""Memory nobody wrote is known as such, per element, across launches and host operations."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def fill(y_ptr, start, n, BLOCK: tl.constexpr):
    offs = start + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, offs.to(tl.float32), mask=offs < n)


@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


def fresh(session, *shape):
    tensor = torch.empty(*shape)
    session.shadows.mark_uninitialised(tensor)
    return tensor


def test_elements_that_no_program_stored_are_listed(session):
    y = fresh(session, 20)
    fill[(1,)](y, 4, 10, BLOCK=16)
    assert session.shadows.unwritten(y).tolist() == [0, 1, 2, 3, *range(10, 20)]


def test_several_launches_write_together(session):
    y = fresh(session, 20)
    fill[(1,)](y, 0, 10, BLOCK=16)
    fill[(1,)](y, 10, 20, BLOCK=16)
    assert session.shadows.unwritten(y).tolist() == []


def test_a_view_is_asked_for_its_own_elements(session):
    y = fresh(session, 4, 8)
    fill[(1,)](y, 0, 12, BLOCK=16)
    assert session.shadows.unwritten(y[:, :4]).tolist() == list(range(8, 16))
    turned = [column * 4 + row for column in range(8) for row in range(4) if row * 8 + column >= 12]
    assert session.shadows.unwritten(y.t()).tolist() == turned


def test_a_load_of_what_nobody_wrote_is_reported(session, place):
    x, y = fresh(session, 16), torch.zeros(16)
    fill[(1,)](x, 0, 12, BLOCK=16)
    copy[(1,)](x, y, 16, BLOCK=16)
    (violation,) = session.launches[1].violations
    assert (violation.kind, violation.argument, violation.indices) == ("load_unwritten", "x_ptr", (12, 13, 14, 15))
    assert violation.where.line == place(copy, "tl.load")[1]


def test_what_an_earlier_launch_wrote_may_be_loaded(session):
    x, y = fresh(session, 16), fresh(session, 16)
    fill[(1,)](x, 0, 16, BLOCK=16)
    copy[(1,)](x, y, 16, BLOCK=16)
    assert [launch.violations for launch in session.launches] == [[], []]
    assert session.shadows.unwritten(y).tolist() == []


def test_tensors_the_host_filled_are_written(session):
    y = torch.zeros(16)
    assert session.shadows.unwritten(y).tolist() == []


def test_a_host_operation_in_place_counts_as_a_write(session):
    y = fresh(session, 16)
    y.zero_()
    session.shadows.mark_written(y)
    copy[(1,)](y, torch.zeros(16), 16, BLOCK=16)
    assert session.launches[0].violations == []


def test_a_masked_store_writes_only_what_the_mask_lets_through(session):
    y = fresh(session, 16)
    fill[(1,)](y, 0, 5, BLOCK=16)
    assert session.shadows.unwritten(y).tolist() == list(range(5, 16))


def test_memory_that_is_freed_and_used_again_has_no_history(session):
    for _ in range(5):
        y = fresh(session, 1000)
        fill[(1,)](y, 0, 16, BLOCK=16)
        assert session.shadows.unwritten(y).size == 984
        del y
        x = torch.ones(1000)
        copy[(1,)](x, torch.zeros(16), 16, BLOCK=16)
        assert session.launches[-1].violations == []
        del x


def test_an_empty_tensor_has_nothing_unwritten(session):
    assert session.shadows.unwritten(torch.empty(0)).size == 0
