"""Timing mode counts a few programs for all: what is true of the first alone must not be taken for a third of them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def shifted(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    # The first program has nothing to load.
    x = tl.load(x_ptr + offs - BLOCK, mask=offs >= BLOCK, other=0.0)
    tl.store(y_ptr + offs, x, mask=offs < n)


def test_a_first_program_unlike_the_others_does_not_count_for_many(gpu):
    x, y = torch.empty(1 << 20), torch.empty(1 << 20)
    with gpu.record(timing=True) as session:
        shifted[(1024,)](x, y, 1 << 20, BLOCK=1024)
    (launch,) = session.launches
    assert launch.profile.bytes_requested == 2 * x.nbytes
    assert len(launch.sampled) == 3


@triton.jit
def scaled(x_ptr, weight_ptr, y_ptr, N, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    at = tl.program_id(0) * N + offs
    weight = tl.load(weight_ptr + offs, mask=offs < N)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=offs < N) * weight, mask=offs < N)


def test_a_small_tensor_that_programs_share_counts_once(gpu):
    x, y, weight = torch.empty(4096, 512), torch.empty(4096, 512), torch.empty(512)
    with gpu.record(timing=True) as session:
        scaled[(4096,)](x, weight, y, 512, BLOCK=512)
    assert session.launches[0].profile.bytes_requested == 2 * x.nbytes + weight.nbytes
