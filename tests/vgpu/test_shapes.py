"""Blocks are cut, joined, turned and gathered as the language says."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def through(x_ptr, y_ptr, N_IN: tl.constexpr, N_OUT: tl.constexpr, F: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N_IN))
    tl.store(y_ptr + tl.arange(0, N_OUT), tl.reshape(F(x), (N_OUT,)))


def apply(function, x, count=None):
    """The block that `function` makes of the vector x, flattened."""
    y = torch.empty(count or x.numel(), dtype=x.dtype)
    through[(1,)](x, y, N_IN=x.numel(), N_OUT=y.numel(), F=function)
    return y


@triton.jit
def _reshape_and_permute(x):
    return tl.permute(tl.reshape(x, (2, 4, 8)), (2, 0, 1))


@triton.jit
def _trans(x):
    return tl.trans(tl.reshape(x, (4, 16)))


@triton.jit
def _trans_twice(x):
    return tl.reshape(x, (4, 4, 4)).trans(1, 2, 0)


@triton.jit
def _expand(x):
    row = tl.expand_dims(x, 0)
    return tl.broadcast_to(row, (4, 8)) + tl.arange(0, 4)[:, None] * 100


@triton.jit
def _none_axes(x):
    return x[:, None] * 10 + x[None, :]


@triton.jit
def _join(x):
    return tl.join(x, x + 100)


@triton.jit
def _split(x):
    left, right = tl.split(tl.reshape(x, (8, 2)))
    return left * 1000 + right


@triton.jit
def _interleave(x):
    return tl.interleave(x, -x)


@triton.jit
def _flip(x):
    return tl.flip(tl.reshape(x, (4, 4)), 1)


@triton.jit
def _ravel(x):
    return tl.ravel(tl.trans(tl.reshape(x, (4, 4))))


@triton.jit
def _where(x):
    return tl.where(x[:, None] > x[None, :], x[:, None], -1)


@triton.jit
def _full(x):
    return tl.full((4, 4), 7, tl.int32) + tl.zeros_like(tl.reshape(x, (4, 4)))


@triton.jit
def _view(x):
    return x.reshape(4, 4).T


COUNT = torch.arange(64, dtype=torch.int32)
EIGHT, SIXTEEN = COUNT[:8].clone(), COUNT[:16].clone()
ARE_WHAT_TORCH_GIVES = {
    "reshape and permute": (_reshape_and_permute, COUNT, COUNT.reshape(2, 4, 8).permute(2, 0, 1)),
    "trans of a matrix": (_trans, COUNT, COUNT.reshape(4, 16).t()),
    "trans of three axes": (_trans_twice, COUNT, COUNT.reshape(4, 4, 4).permute(1, 2, 0)),
    "expand_dims and broadcast_to": (_expand, EIGHT, EIGHT[None, :] + 100 * torch.arange(4)[:, None]),
    "None as an axis": (_none_axes, EIGHT, EIGHT[:, None] * 10 + EIGHT[None, :]),
    "join": (_join, EIGHT, torch.stack([EIGHT, EIGHT + 100], -1)),
    "split": (_split, SIXTEEN, SIXTEEN.reshape(8, 2)[:, 0] * 1000 + SIXTEEN.reshape(8, 2)[:, 1]),
    "interleave": (_interleave, EIGHT, torch.stack([EIGHT, -EIGHT], -1)),
    "flip": (_flip, SIXTEEN, SIXTEEN.reshape(4, 4).flip(1)),
    "ravel": (_ravel, SIXTEEN, SIXTEEN.reshape(4, 4).t()),
    "where": (_where, EIGHT, torch.where(EIGHT[:, None] > EIGHT[None, :], EIGHT[:, None], -1)),
    "full and zeros_like": (_full, SIXTEEN, torch.full((16,), 7)),
    "reshape and T": (_view, SIXTEEN, SIXTEEN.reshape(4, 4).t()),
}


@pytest.mark.parametrize("name", ARE_WHAT_TORCH_GIVES)
def test_a_change_of_shape_gives_what_torch_gives(name):
    function, x, expected = ARE_WHAT_TORCH_GIVES[name]
    assert apply(function, x, expected.numel()).tolist() == expected.reshape(-1).tolist()


@triton.jit
def concatenate(x_ptr, y_ptr, N: tl.constexpr, REORDER: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(y_ptr + tl.arange(0, 2 * N), tl.cat(x, x + 100, can_reorder=REORDER))


def test_cat_holds_all_elements_of_both():
    y = torch.empty(16, dtype=torch.int32)
    # Triton asks for leave to reorder until 3.8, and from then on deprecates giving it.
    old = tuple(map(int, triton.__version__.split(".")[:2])) < (3, 8)
    concatenate[(1,)](EIGHT, y, N=8, REORDER=old)
    assert sorted(y.tolist()) == [*range(8), *range(100, 108)]


@triton.jit
def pick(x_ptr, index_ptr, y_ptr, AXIS: tl.constexpr):
    offs = tl.program_id(0) * 16 + tl.arange(0, 4)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.store(y_ptr + offs, tl.gather(tl.load(x_ptr + offs), tl.load(index_ptr + offs), AXIS))


@pytest.mark.parametrize("axis", [0, 1])
def test_gather_picks_along_an_axis(axis):
    x = torch.randn(2, 4, 4)
    index = torch.randint(0, 4, (2, 4, 4), dtype=torch.int32)
    y = torch.empty_like(x)
    pick[(2,)](x, index, y, AXIS=axis)
    assert torch.equal(y, torch.gather(x, axis + 1, index.long()))


@triton.jit
def count_values(x_ptr, y_ptr, limit, N: tl.constexpr, BINS: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N))
    offs = tl.program_id(0) * BINS + tl.arange(0, BINS)
    tl.store(y_ptr + offs, tl.histogram(x, BINS))


def test_histogram_counts_every_program_for_itself():
    x = torch.randint(0, 8, (3, 64), dtype=torch.int32)
    y = torch.empty(3, 8, dtype=torch.int32)
    count_values[(3,)](x, y, 8, N=64, BINS=8)
    assert y.tolist() == [torch.bincount(row, minlength=8).tolist() for row in x]


@triton.jit
def transpose_tiles(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offs_n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (offs_m[:, None] < rows) & (offs_n[None, :] < columns)
    tile = tl.load(x_ptr + offs_m[:, None] * columns + offs_n[None, :], mask=mask)
    out = y_ptr + offs_n[:, None] * rows + offs_m[None, :]
    tl.store(out, tl.trans(tile), mask=tl.trans(mask))


@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (33, 17), (5, 70)])
def test_a_transpose_by_tiles(shape):
    x = torch.randn(shape)
    y = torch.empty(shape[::-1])
    transpose_tiles[(triton.cdiv(shape[0], 16), triton.cdiv(shape[1], 16))](x, y, *shape, BLOCK=16)
    assert torch.equal(y, x.t())


@triton.jit
def swizzled(y_ptr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, GROUP: tl.constexpr):
    i, j = tl.swizzle2d(tl.program_id(0), tl.program_id(1), ROWS, COLUMNS, GROUP)
    tl.store(y_ptr + i * COLUMNS + j, tl.program_id(0) * COLUMNS + tl.program_id(1))


def test_swizzle2d_visits_every_tile_once():
    y = torch.full((4, 6), -1, dtype=torch.int32)
    swizzled[(4, 6)](y, ROWS=4, COLUMNS=6, GROUP=2)
    assert sorted(y.reshape(-1).tolist()) == list(range(24))
    assert y[:2, 0].tolist() == [0, 1]
