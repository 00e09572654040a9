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
