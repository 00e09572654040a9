"""Promises to the compiler: true ones change nothing, false ones are named."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from checker.vgpu.errors import VirtualGpuError


@triton.jit
def hinted(x_ptr, y_ptr, stride, MULTIPLE: tl.constexpr, RUN: tl.constexpr, BLOCK: tl.constexpr):
    start = tl.program_id(0) * stride
    offs = start + tl.arange(0, BLOCK)
    offs = tl.max_contiguous(tl.multiple_of(offs, MULTIPLE), RUN)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))


@triton.jit
def hinted_scalar(x_ptr, y_ptr, start, MULTIPLE: tl.constexpr, BLOCK: tl.constexpr):
    begin = tl.multiple_of(start * tl.program_id(0), MULTIPLE)
    offs = begin + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))


@triton.jit
def wrapped_hint(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)) % n
    offs = tl.max_contiguous(tl.multiple_of(offs, BLOCK), BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))


def test_true_hints_change_nothing(session):
    x, y = torch.randn(64), torch.zeros(64)
    hinted[(4,)](x, y, 16, MULTIPLE=16, RUN=16, BLOCK=16)
    assert torch.equal(x, y)


def test_a_false_multiple_of_is_named(place):
    with pytest.raises(VirtualGpuError, match="multiple_of 16") as caught:
        hinted[(4,)](torch.randn(64), torch.zeros(64), 12, MULTIPLE=16, RUN=16, BLOCK=16)
    assert caught.value.code == "K409"
    assert caught.value.where.line == place(hinted, "start + ")[1]


def test_a_false_max_contiguous_is_named():
    with pytest.raises(VirtualGpuError, match="max_contiguous 16") as caught:
        wrapped_hint[(4,)](torch.randn(48), torch.zeros(48), 40, BLOCK=16)
    assert caught.value.code == "K409"


def test_hints_on_wrapped_offsets_are_true_where_the_size_divides(session):
    x, y = torch.randn(48), torch.zeros(48)
    wrapped_hint[(4,)](x, y, 48, BLOCK=16)
    assert torch.equal(x, y)


def test_a_scalar_may_be_hinted():
    x, y = torch.randn(64), torch.zeros(64)
    hinted_scalar[(4,)](x, y, 16, MULTIPLE=8, BLOCK=16)
    assert torch.equal(x, y)
    with pytest.raises(VirtualGpuError, match="multiple_of 8"):
        hinted_scalar[(4,)](x, y, 12, MULTIPLE=8, BLOCK=16)


@triton.jit
def assumed(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    tl.assume(stride > 0)
    offs = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, eviction_policy="evict_last"), cache_modifier=".cs")


def test_assumptions_and_cache_hints_change_nothing():
    x, y = torch.randn(64), torch.zeros(64)
    assumed[(4,)](x, y, 16, BLOCK=16)
    assert torch.equal(x, y)


def test_a_false_assumption_is_named(place):
    with pytest.raises(VirtualGpuError, match=r"tl\.assume .* program \(0, 0, 0\)") as caught:
        assumed[(4,)](torch.randn(64), torch.zeros(64), -16, BLOCK=16)
    assert caught.value.code == "K409"
    assert caught.value.where.line == place(assumed, "tl.assume")[1]


@triton.jit
def two_dimensional(x_ptr, y_ptr, BLOCK: tl.constexpr):
    m = tl.arange(0, BLOCK)[:, None]
    n = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)[None, :]
    offs = m * BLOCK + n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))


def test_hints_on_one_axis_of_a_tile_are_true():
    x, y = torch.randn(16, 16), torch.zeros(16, 16)
    two_dimensional[(1,)](x, y, BLOCK=16)
    assert torch.equal(x, y)


@triton.jit
def hinted_in_a_branch(x_ptr, y_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    if pid % 2 == 0:
        start = tl.multiple_of(pid * BLOCK // 2, BLOCK)
        offs = start + tl.arange(0, BLOCK)
        tl.store(y_ptr + offs, tl.load(x_ptr + offs))


def test_a_hint_binds_only_the_programs_that_reach_it():
    x, y = torch.randn(64), torch.zeros(64)
    hinted_in_a_branch[(4,)](x, y, BLOCK=16)
    assert torch.equal(y[:32], x[:32])
