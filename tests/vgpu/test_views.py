"""A tensor is what its shape and strides say, not what its storage holds."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def copy_tile(x_ptr, y_ptr, M, N, x_m, x_n, y_m, y_n, BLOCK: tl.constexpr):
    offs_m, offs_n = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    mask = (offs_m < M) & (offs_n < N)
    x = tl.load(x_ptr + offs_m * x_m + offs_n * x_n, mask=mask)
    tl.store(y_ptr + offs_m * y_m + offs_n * y_n, x, mask=mask)


def copied(x):
    y = torch.zeros(x.shape, dtype=x.dtype)
    copy_tile[(1,)](x, y, *x.shape, *x.stride(), *y.stride(), BLOCK=16)
    return y


BASE = torch.arange(40 * 40.0).reshape(40, 40)
VIEWS = {
    "sliced": BASE[3:10, 5:15],
    "transposed": BASE[:7, :12].t(),
    "every second column": BASE[:8, ::2][:, :9],
    "every third row": BASE[::3],
    "offset": BASE.reshape(-1)[17 : 17 + 60].reshape(6, 10),
    "expanded rows": BASE[0, :10].expand(5, 10),
    "expanded columns": BASE[:5, :1].expand(5, 10),
    "one element": BASE[5:6, 7:8],
    "overlapping windows": BASE.as_strided((6, 8), (2, 1)),
    "diagonal": BASE.as_strided((10, 1), (41, 1)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_is_copied_by_its_strides(name, session):
    x = VIEWS[name][:16, :16]
    assert torch.equal(copied(x), x)
    assert session.launches[0].violations == []


@pytest.mark.parametrize("name", [name for name in VIEWS if "expanded" not in name and "overlapping" not in name])
def test_a_view_is_filled_by_its_strides_and_nothing_else_is(name, session):
    storage = torch.zeros(40, 40)
    view = storage.as_strided(VIEWS[name].shape, VIEWS[name].stride(), VIEWS[name].storage_offset())[:16, :16]
    ones = torch.ones(view.shape)
    copy_tile[(1,)](ones, view, *view.shape, *ones.stride(), *view.stride(), BLOCK=16)
    assert (view == 1).all()
    assert storage.sum() == view.numel()
    assert session.launches[0].violations == []


@triton.jit
def copy_flat(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))


def test_a_load_from_the_gap_between_rows_is_told_apart(session):
    x, y = torch.randn(4, 16)[:, :8], torch.zeros(32)
    copy_flat[(1,)](x, y, BLOCK=32)
    (violation,) = session.launches[0].violations
    assert (violation.kind, violation.argument) == ("load_gap", "x_ptr")
    assert violation.indices == (8, 9, 10, 11, 12, 13)
    assert (violation.shape, violation.strides) == ((4, 8), (16, 1))
    assert y[8:16].isnan().all()


def test_a_store_into_the_gap_between_rows_is_outside(session):
    storage = torch.zeros(4, 16)
    copy_flat[(1,)](torch.ones(32), storage[:, :8], BLOCK=32)
    (violation,) = session.launches[0].violations
    assert (violation.kind, violation.count) == ("store_outside", 16)
    assert storage[:, 8:].abs().sum() == 0
    assert storage[0, :8].tolist() == [1.0] * 8


def test_one_tensor_passed_twice_is_one_memory(session):
    x = torch.arange(32.0)
    copy_flat[(1,)](x, x, BLOCK=32)
    assert session.launches[0].violations == []
    assert x.tolist() == list(range(32))


@triton.jit
def write_then_read(x_ptr, y_ptr, out_ptr):
    tl.store(x_ptr + 4, 99.0)
    tl.store(out_ptr, tl.load(y_ptr))


def test_a_tensor_and_a_view_of_it_are_one_memory(session):
    x, out = torch.zeros(16), torch.zeros(1)
    write_then_read[(1,)](x, x[4:], out)
    assert out.item() == 99


def test_a_view_and_its_tensor_have_bounds_of_their_own(session):
    x = torch.zeros(64)
    copy_flat[(1,)](x, x[48:], BLOCK=32)
    (violation,) = session.launches[0].violations
    assert (violation.argument, violation.shape, violation.indices[0]) == ("y_ptr", (16,), 16)


def test_a_row_of_a_sparse_tensor_costs_no_more_than_its_elements(session):
    x = torch.empty(2**30 + 16, dtype=torch.int8).as_strided((2, 16), (2**30, 1))
    x[0], x[1] = 5, 7
    assert torch.equal(copied(x), x)
    assert session.launches[0].violations == []


def test_an_empty_view_has_no_element_that_could_be_loaded(session):
    copy_flat[(1,)](torch.randn(8)[:0], torch.zeros(16), BLOCK=16)
    (violation,) = session.launches[0].violations
    assert (violation.kind, violation.count) == ("load_outside", 16)


def test_a_scalar_tensor_is_one_element(session):
    x, y = torch.tensor(5.0), torch.tensor(0.0)
    copy_flat[(1,)](x, y, BLOCK=1)
    assert y.item() == 5
    assert session.launches[0].violations == []


def test_a_tensor_of_three_axes_in_another_memory_order(session):
    x = torch.randn(4, 4, 4).to(memory_format=torch.contiguous_format).permute(2, 0, 1)
    flat = torch.zeros(64)
    gather_3d[(1,)](x, flat, *x.stride())
    assert torch.equal(flat.reshape(4, 4, 4), x)
    assert session.launches[0].violations == []


@triton.jit
def gather_3d(x_ptr, y_ptr, s0, s1, s2):
    i = tl.arange(0, 4)
    offs = i[:, None, None] * s0 + i[None, :, None] * s1 + i[None, None, :] * s2
    place = i[:, None, None] * 16 + i[None, :, None] * 4 + i[None, None, :]
    tl.store(y_ptr + place, tl.load(x_ptr + offs))
