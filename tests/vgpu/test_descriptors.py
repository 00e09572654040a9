"""Tensor descriptors, made by the host or by the kernel: what is past the end reads as zero and is not stored."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from checker.vgpu.driver import Session

DTYPES = (torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int8)


@triton.jit
def copy_by_host(x_desc, y_desc, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    y_desc.store([start], x_desc.load([start]))


@triton.jit
def copy_by_kernel(x_ptr, y_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    y_desc = tl.make_tensor_descriptor(y_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    at = [tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N]
    y_desc.store(at, x_desc.load(at))


@pytest.mark.parametrize("dtype", DTYPES)
def test_made_by_the_host(dtype: torch.dtype, session: Session) -> None:
    x = torch.arange(1, 101).to(dtype)
    y = torch.zeros_like(x)
    copy_by_host[(2,)](*(TensorDescriptor(t, [100], [1], [64]) for t in (x, y)), BLOCK=64)
    assert torch.equal(x, y)
    assert session.launches[0].violations == []


@pytest.mark.parametrize("dtype", DTYPES)
def test_made_by_the_kernel(dtype: torch.dtype, session: Session) -> None:
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8))
    x = torch.arange(5 * 48).reshape(5, 48).to(dtype)
    y = torch.zeros_like(x)
    copy_by_kernel[(2, 2)](x, y, 5, 48, BLOCK_M=4, BLOCK_N=32)
    assert torch.equal(x, y)
    assert session.launches[0].violations == []
