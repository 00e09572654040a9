"""tl.dot in every precision the chip has: operands, accumulation, result."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for start in range(0, K, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        a_mask = (offs_m[:, None] < M) & (offs_k[None, :] < K)
        b_mask = (offs_k[:, None] < K) & (offs_n[None, :] < N)
        a = tl.load(a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak, mask=a_mask, other=0)
        b = tl.load(b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn, mask=b_mask, other=0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC)
    c = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c, acc, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def product(a, b, dtype=torch.float32, acc=tl.float32, precision=None, block=(32, 32, 32)):
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, dtype=dtype)
    grid = (triton.cdiv(m, block[0]), triton.cdiv(n, block[1]))
    matmul[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), *block, PRECISION=precision, ACC=acc)
    return c


def tf32(x):
    return (x.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_operands_are_multiplied_exactly_and_summed_in_float32(dtype):
    a, b = torch.randn(33, 70).to(dtype), torch.randn(70, 50).to(dtype)
    exact = a.double() @ b.double()
    assert (product(a, b) - exact).abs().max() < 1e-5 * exact.abs().max()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_result_may_be_stored_narrow(dtype):
    a, b = torch.randn(32, 32).to(dtype), torch.randn(32, 32).to(dtype)
    assert torch.equal(product(a, b, dtype=dtype), product(a, b).to(dtype))


def test_float32_operands_lose_their_low_13_bits():
    a, b = torch.randn(32, 64), torch.randn(64, 32)
    chip = product(a, b)
    truncated = tf32(a).double() @ tf32(b).double()
    assert (chip - truncated).abs().max() < 1e-5 * truncated.abs().max()
    assert (chip - a.double() @ b.double()).abs().max() > 1e-4


@pytest.mark.parametrize("precision", ["ieee", "tf32x3"])
def test_float32_precision_may_be_asked_for(precision):
    a, b = torch.randn(32, 64), torch.randn(64, 32)
    exact = a.double() @ b.double()
    assert (product(a, b, precision=precision) - exact).abs().max() < 1e-5 * exact.abs().max()


def test_float16_accumulation_is_rounded_to_float16():
    a, b = torch.randn(32, 64).half(), torch.randn(64, 32).half()
    c = product(a, b, dtype=torch.float32, acc=tl.float16)
    assert torch.equal(c, c.half().float())
    torch.testing.assert_close(c, (a.double() @ b.double()).float(), atol=0.05, rtol=0.01)


def test_a_float16_sum_is_rounded_by_each_instruction():
    """An instruction takes 16 places along K: a sum that passes 65504 on the way does not come back."""
    a = torch.ones(32, 64).half()
    b = torch.full((64, 32), 2000.0).half()
    b[32:] = -2000
    assert (product(a, b, block=(32, 32, 64)) == 0).all()
    within = product(a, b, acc=tl.float16, block=(32, 32, 64))
    assert (within == 0).all()
    beyond = product(a, 2 * b, acc=tl.float16, block=(32, 32, 64))
    assert not beyond.isfinite().any()


def test_int8_operands_are_summed_in_int32():
    a = torch.randint(-128, 128, (40, 70), dtype=torch.int8)
    b = torch.randint(-128, 128, (70, 33), dtype=torch.int8)
    assert torch.equal(product(a, b, dtype=torch.int32, acc=tl.int32), a.int() @ b.int())


def test_strided_operands_give_the_same_product():
    a, b = torch.randn(64, 32).t(), torch.randn(64, 128)[:, ::2].t()
    exact = tf32(a).double() @ tf32(b).double()
    assert (product(a, b) - exact).abs().max() < 1e-5 * exact.abs().max()


@triton.jit
def batched(a_ptr, b_ptr, c_ptr, B: tl.constexpr, N: tl.constexpr):
    plane = tl.arange(0, B)[:, None, None] * N * N
    offs = plane + tl.arange(0, N)[None, :, None] * N + tl.arange(0, N)[None, None, :]
    tl.store(c_ptr + offs, tl.dot(tl.load(a_ptr + offs), tl.load(b_ptr + offs), input_precision="ieee"))


def test_a_dot_of_three_axes_is_batched():
    a, b, c = torch.randn(2, 16, 16), torch.randn(2, 16, 16), torch.empty(2, 16, 16)
    batched[(1,)](a, b, c, B=2, N=16)
    torch.testing.assert_close(c, a @ b)


def test_every_program_has_its_own_tile():
    a, b = torch.eye(64), torch.arange(64.0 * 64).reshape(64, 64)
    assert torch.equal(product(a, b, block=(16, 16, 16)), tf32(b))
