"""An access outside a tensor is found, told apart, located, and touches nothing."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def copy(x_ptr, y_ptr, n_load, n_store, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n_load, other=7.0)
    tl.store(y_ptr + offs, x, mask=offs < n_store)


def only(session):
    """The one violation of the last launch."""
    assert len(session.launches[-1].violations) == 1, session.launches[-1].violations
    return session.launches[-1].violations[0]


def test_a_store_past_the_end_is_located(session, place):
    x, storage = torch.randn(256), torch.zeros(300)
    copy[(4,)](x, storage[:250], 250, 256, BLOCK=64)
    violation = only(session)
    assert (violation.kind, violation.argument) == ("store_outside", "y_ptr")
    assert violation.program == (3, 0, 0)
    assert violation.indices == tuple(range(250, 256))
    assert violation.count == 6
    assert (violation.where.file, violation.where.line) == place(copy, "tl.store")[:2]
    assert violation.where.column == place(copy, "tl.store")[2]


def test_a_load_past_the_end_is_located(session, place):
    x, y = torch.randn(250), torch.zeros(256)
    copy[(4,)](x, y, 256, 256, BLOCK=64)
    violation = only(session)
    assert (violation.kind, violation.argument, violation.indices[0]) == ("load_outside", "x_ptr", 250)
    assert (violation.where.line, violation.where.column) == place(copy, "tl.load")[1:]
    assert torch.equal(y[:250], x)
    assert y[250:].isnan().all()


def test_a_store_outside_leaves_the_neighbours_alone(session):
    x, storage = torch.ones(256), torch.zeros(300)
    copy[(4,)](x, storage[10:260], 256, 256, BLOCK=64)
    assert storage[:10].tolist() == [0.0] * 10
    assert storage[10:260].tolist() == [1.0] * 250
    assert storage[260:].tolist() == [0.0] * 40


def test_the_first_program_speaks_for_all(session):
    copy[(8,)](torch.ones(512), torch.zeros(100), 512, 512, BLOCK=64)
    violation = only(session)
    assert violation.program == (1, 0, 0)
    assert violation.indices[0] == 100
    assert violation.count == 512 - 100


@triton.jit
def many_lines(
    x_ptr,
    y_ptr,
    BLOCK: tl.constexpr,
):
    offs = tl.arange(0, BLOCK)
    x = tl.load(
        x_ptr + offs,
    )
    tl.store(
        y_ptr + offs,
        tl.load(x_ptr + offs + 1) + x,
    )


def test_an_access_over_several_lines_is_located_where_it_begins(session, place):
    many_lines[(1,)](torch.randn(40), torch.zeros(10), BLOCK=32)
    assert only(session).where.line == place(many_lines, "tl.store(")[1]
    many_lines[(1,)](torch.randn(10), torch.zeros(32), BLOCK=32)
    lines = [violation.where.line for violation in session.launches[-1].violations]
    assert lines == [place(many_lines, "x = tl.load(")[1], place(many_lines, "        tl.load(x_ptr + offs + 1)")[1]]


@triton.jit
def _store_at(y_ptr, offs, value):
    tl.store(y_ptr + offs, value)


@triton.jit(noinline=True)
def _store_scalar(y_ptr, at, value):
    tl.store(y_ptr + at, value)


@triton.jit
def through_helpers(y_ptr, BLOCK: tl.constexpr):
    _store_at(y_ptr, tl.arange(0, BLOCK), 1.0)
    _store_scalar(y_ptr, BLOCK, 2.0)


def test_an_access_in_a_helper_is_located_there(session, place):
    through_helpers[(1,)](torch.zeros(10), BLOCK=16)
    inlined, called = session.launches[0].violations
    assert inlined.where.line == place(_store_at, "tl.store")[1]
    assert called.where.line == place(_store_scalar, "tl.store")[1]
    assert called.indices == (16,)


@triton.jit
def before_the_start(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs - 1))


def test_an_offset_below_zero_is_outside(session):
    before_the_start[(2,)](torch.arange(16.0), torch.zeros(16), BLOCK=8)
    violation = only(session)
    assert (violation.kind, violation.indices, violation.count) == ("load_outside", (-1,), 1)


@triton.jit
def from_nowhere(y_ptr, BLOCK: tl.constexpr):
    wild = tl.full((BLOCK,), 4096, tl.int64).to(tl.pointer_type(tl.float32))
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.load(wild))


def test_an_invented_address_belongs_to_no_tensor(session):
    y = torch.zeros(16)
    from_nowhere[(1,)](y, BLOCK=16)
    violation = only(session)
    assert (violation.kind, violation.argument, violation.count) == ("load_outside", "", 16)
    assert y.isnan().all()


@triton.jit
def wrong_base(x_ptr, y_ptr, distance, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + distance + offs))


@pytest.mark.parametrize("distance", [2**20, 2**30, -(2**30), 2**31 - 64])
def test_far_outside_is_still_blamed_on_the_right_tensor(distance, session):
    wrong_base[(1,)](torch.zeros(16), torch.zeros(16), distance, BLOCK=16)
    violation = only(session)
    assert (violation.argument, violation.indices[0]) == ("x_ptr", distance)


@triton.jit
def rows_in_int32(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0) + 3
    start = row * stride
    offs = start + tl.arange(0, BLOCK)
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + offs))


@triton.jit
def rows_in_int64(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) + 3
    offs = row * stride + tl.arange(0, BLOCK)
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.load(x_ptr + offs))


def sparse_rows():
    """Four rows that lie 2^30 elements apart: the last begins beyond 2^31. Pages nobody touches cost nothing."""
    return torch.empty(3 * 2**30 + 64, dtype=torch.int8).as_strided((4, 64), (2**30, 1))


def test_a_wrapped_offset_is_named_with_the_line_of_the_multiplication(session, place):
    x, y = sparse_rows(), torch.zeros(64, dtype=torch.int8)
    rows_in_int32[(1,)](x, y, x.stride(0), BLOCK=64)
    violation = only(session)
    assert violation.kind == "load_outside"
    assert violation.wrapped_at.line == place(rows_in_int32, "row * stride")[1]


def test_an_offset_in_int64_reaches_far_rows(session):
    x, y = sparse_rows(), torch.zeros(64, dtype=torch.int8)
    x[3] = torch.arange(64, dtype=torch.int8)
    rows_in_int64[(1,)](x, y, x.stride(0), BLOCK=64)
    assert session.launches[0].violations == []
    assert y.tolist() == list(range(64))


def test_an_access_that_is_merely_outside_is_not_called_wrapped(session):
    x, y = torch.zeros(3, 64), torch.zeros(64)
    rows_in_int32[(1,)](x, y, 64, BLOCK=64)
    assert only(session).wrapped_at is None


@triton.jit
def hash_lookup(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    hashed = (offs * 1103515245 + 12345) & 1023
    tl.store(y_ptr + offs, tl.load(x_ptr + hashed, mask=hashed < 1024))


def test_a_product_that_wraps_on_purpose_is_no_violation(session):
    hash_lookup[(1,)](torch.zeros(1024), torch.zeros(64), BLOCK=64)
    assert session.launches[0].violations == []


@triton.jit
def bytes_not_elements(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    shifted = (x_ptr.to(tl.int64) + 2).to(tl.pointer_type(tl.float32))
    tl.store(y_ptr + offs, tl.load(shifted + offs))


def test_an_address_between_two_elements_is_misaligned(session):
    bytes_not_elements[(1,)](torch.zeros(64), torch.zeros(16), BLOCK=16)
    assert "misaligned" in [violation.kind for violation in session.launches[0].violations]


@triton.jit
def both_wrong(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(y_ptr + offs, x)
    tl.store(y_ptr + offs + 1, x)


def test_violations_come_in_the_order_of_programs_then_of_the_source(session):
    both_wrong[(3,)](torch.zeros(40), torch.zeros(40), BLOCK=16)
    kinds = [(v.kind, v.program[0], v.where.line) for v in session.launches[0].violations]
    assert [program for _, program, _ in kinds] == sorted(program for _, program, _ in kinds)
    outside = [v for v in session.launches[0].violations if v.kind.endswith("outside")]
    assert [v.where.line for v in outside] == sorted(v.where.line for v in outside)


@triton.jit
def by_program(y_ptr, x, y, z, stride):
    offset = tl.program_id(0) * x + tl.program_id(1) * y + tl.program_id(2) * z
    tl.store(y_ptr + offset * stride, 1.0)


def test_the_program_is_named_by_its_place_in_the_grid(session):
    by_program[(2, 3, 4)](torch.zeros(2 * 3 * 4 - 1), 1, 2, 6, 1)
    assert only(session).program == (1, 2, 3)


@triton.jit
def reads_four(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) * 2)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int16, torch.int64, torch.uint8]
)
def test_bounds_count_elements_of_any_type(dtype, session):
    x, y = torch.ones(16, dtype=dtype), torch.zeros(12, dtype=dtype)
    reads_four[(1,)](x, y, BLOCK=16)
    assert only(session).indices == (12, 13, 14, 15)
    assert (y == 2).all()


def test_a_boolean_tensor_has_bounds_too(session):
    x, y = torch.tensor([True, False] * 8), torch.zeros(12, dtype=torch.bool)
    copy_plainly[(1,)](x, y, BLOCK=16)
    assert only(session).indices == (12, 13, 14, 15)
    assert y.tolist() == [True, False] * 6


@triton.jit
def copy_plainly(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))
