"""Tensor descriptors, made on the host and on the device."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from checker.vgpu.driver import VirtualGpu, active


@pytest.fixture
def scratch():
    """Device-side descriptors need an allocator, as on a real GPU."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8))
    yield
    triton.set_allocator(triton.runtime._allocation.NullAllocator())


@triton.jit
def double_tiles(source, target, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    m, n = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    target.store([m, n], source.load([m, n]) * 2)


def doubled(x, block=(16, 32)):
    y = torch.full_like(x, -1.0)
    grid = (triton.cdiv(x.shape[0], block[0]), triton.cdiv(x.shape[1], block[1]))
    source, target = (TensorDescriptor.from_tensor(t, list(block)) for t in (x, y))
    double_tiles[grid](source, target, BLOCK_M=block[0], BLOCK_N=block[1])
    return y


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("shape", [(16, 32), (40, 72), (3, 8)])
def test_tiles_are_loaded_and_stored_by_a_descriptor_of_the_host(shape, dtype, session):
    x = torch.randn(shape).to(dtype)
    assert torch.equal(doubled(x), x * 2)
    assert session.launches[0].violations == []


@triton.jit
def copy_vector(source, target, BLOCK: tl.constexpr):
    start = tl.program_id(0) * BLOCK
    target.store([start], source.load([start]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int32, torch.int8])
def test_a_descriptor_of_one_axis_takes_every_type(dtype, session):
    x = torch.arange(1, 101).to(dtype)
    y = torch.zeros_like(x)
    copy_vector[(2,)](*(TensorDescriptor(t, [100], [1], [64]) for t in (x, y)), BLOCK=64)
    assert torch.equal(x, y)
    assert session.launches[0].violations == []


@triton.jit
def load_at(source, out_ptr, m, n):
    tile = source.load([m, n])
    offs = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out_ptr + offs, tile)


@pytest.mark.parametrize(("m", "n"), [(-3, 0), (0, -5), (6, 12), (100, 100)])
def test_what_lies_outside_a_descriptor_reads_as_zero(m, n, session):
    x = torch.randn(10, 20) + 10
    out = torch.empty(8, 16)
    load_at[(1,)](TensorDescriptor.from_tensor(x, [8, 16]), out, m, n)
    expected = torch.zeros(8, 16)
    for i in range(8):
        for j in range(16):
            if 0 <= m + i < 10 and 0 <= n + j < 20:
                expected[i, j] = x[m + i, n + j]
    assert torch.equal(out, expected)
    assert session.launches[0].violations == []


def test_a_descriptor_may_pad_with_nan():
    x, out = torch.randn(10, 20), torch.empty(8, 16)
    load_at[(1,)](TensorDescriptor.from_tensor(x, [8, 16], padding="nan"), out, 6, 12)
    assert torch.equal(out.isnan(), ~((torch.arange(8)[:, None] < 4) & (torch.arange(16)[None, :] < 8)))


def test_lanes_outside_a_descriptor_are_counted_as_masked(session):
    x, out = torch.randn(10, 20), torch.empty(8, 16)
    load_at[(1,)](TensorDescriptor.from_tensor(x, [8, 16]), out, 6, 12)
    access = session.launches[0].loads[0]
    assert (access.argument, access.lanes, access.masked, access.bytes) == ("source", 32, 96, 128)


def test_a_descriptor_of_a_view_reaches_the_view_only():
    x = torch.randn(20, 64)
    view = x[2:12, 32:52]
    assert torch.equal(doubled(view), view * 2)


@triton.jit
def scale_on_device(x_ptr, y_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    target = tl.make_tensor_descriptor(y_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    m = tl.program_id(0) * BLOCK_M
    for n in range(0, N, BLOCK_N):
        target.store([m, n], source.load([m, n]) + 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int32, torch.int8])
def test_descriptors_made_on_the_device(scratch, session, dtype):
    x = torch.randint(-5, 5, (40, 80)).to(dtype)
    y = torch.full_like(x, -1)
    scale_on_device[(3,)](x, y, 40, 80, BLOCK_M=16, BLOCK_N=32)
    assert torch.equal(y, x + 1)
    assert session.launches[0].violations == []


def test_a_descriptor_on_the_device_needs_an_allocator():
    with pytest.raises(RuntimeError, match="no allocator was set"):
        scale_on_device[(1,)](torch.randn(16, 32), torch.randn(16, 32), 16, 32, BLOCK_M=16, BLOCK_N=32)


@triton.jit
def too_large_on_device(x_ptr, y_ptr, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, shape=[M + 8, N], strides=[N, 1], block_shape=[BLOCK, BLOCK])
    offs = tl.arange(0, BLOCK)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(y_ptr + offs, source.load([8, 0]))


def test_a_descriptor_that_claims_more_than_the_tensor_is_found_out(scratch, session):
    too_large_on_device[(1,)](torch.randn(16, 16), torch.empty(16, 16), 16, 16, BLOCK=16)
    violation = session.launches[0].violations[0]
    assert (violation.kind, violation.argument, violation.indices[0]) == ("load_outside", "x_ptr", 16 * 16)


@triton.jit
def matmul(a, b, c, K, BLOCK: tl.constexpr):
    m, n = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, K, BLOCK):
        acc = tl.dot(a.load([m, k]), b.load([k, n]), acc)
    c.store([m, n], acc.to(tl.float16))


def test_a_matrix_product_through_descriptors():
    a, b, c = torch.randn(48, 40).half(), torch.randn(40, 64).half(), torch.empty(48, 64).half()
    matmul[(3, 4)](*(TensorDescriptor.from_tensor(t, [16, 16]) for t in (a, b, c)), 40, BLOCK=16)
    torch.testing.assert_close(c.float(), a.float() @ b.float(), atol=1e-2, rtol=1e-3)


@triton.jit
def three_axes(source, out_ptr):
    tile = source.load([tl.program_id(0), 0, 0])
    offs = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out_ptr + tl.program_id(0) * 128 + offs, tl.reshape(tile, (8, 16)))


def test_a_descriptor_of_three_axes():
    x, out = torch.randn(3, 8, 16), torch.empty(3, 8, 16)
    three_axes[(3,)](TensorDescriptor.from_tensor(x, [1, 8, 16]), out)
    assert torch.equal(out, x)


@triton.jit
def add_atomically(source, target):
    m = tl.program_id(0) * 8
    target.atomic_add([0, 0], source.load([m, 0]))


def test_a_descriptor_adds_atomically():
    x, out = torch.randn(24, 16), torch.zeros(8, 16)
    add_atomically[(3,)](TensorDescriptor.from_tensor(x, [8, 16]), TensorDescriptor.from_tensor(out, [8, 16]))
    torch.testing.assert_close(out, x.reshape(3, 8, 16).sum(0))


@triton.jit
def copy_padded(x_ptr, out_ptr, M, N):
    source = tl.make_tensor_descriptor(x_ptr, [M, N], [N, 1], [8, 16], padding_option="nan")
    tl.store(out_ptr + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :], source.load([6, 12]))


def test_a_descriptor_made_on_the_device_may_pad_with_nan(scratch):
    out = torch.empty(8, 16)
    copy_padded[(1,)](torch.randn(10, 20), out, 10, 20)
    assert out.isnan().sum() == 8 * 16 - 4 * 8


@triton.jit
def dot_of(a, b, out_ptr):
    offs = tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]
    tl.store(out_ptr + offs, tl.dot(a.load([0, 0]), b.load([0, 0])))


def test_a_descriptor_may_round_to_tf32_where_this_triton_can():
    try:
        options = {"round_f32_to_tf32": True}
        a = torch.full((32, 32), 1 + 2.0**-10 - 2.0**-20)
        left, right = (TensorDescriptor.from_tensor(t, [32, 32], **options) for t in (a, torch.eye(32)))
    except TypeError:
        pytest.skip("this Triton's descriptors have no round_f32_to_tf32")
    out = torch.empty(32, 32)
    dot_of[(1,)](left, right, out)
    assert (out == 1 + 2.0**-10).all()


def test_a_descriptor_on_a_chip_without_tma_means_the_same(h200):
    VirtualGpu("a100").activate()
    test_tiles_are_loaded_and_stored_by_a_descriptor_of_the_host((40, 72), torch.float32, active().session)
    test_a_descriptor_may_pad_with_nan()
