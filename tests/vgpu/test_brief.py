"""Compiling no further than values need: what is left out, what makes up for it, and that nobody is told less."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources

from checker.vgpu.brief import POSSIBLE
from checker.vgpu.driver import Session, VirtualGpu

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="this Triton compiles all to the end")


@pytest.fixture
def copy() -> Iterator[triton.JITFunction]:
    """A kernel that nothing has compiled yet in this process."""

    @triton.jit
    def kernel(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
        offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + offs, tl.load(x_ptr + offs * stride, mask=offs < n), mask=offs < n)

    return kernel


@triton.jit
def product(x_ptr, y_ptr, K):
    """Keeps as many pairs of tiles of 8 KiB in shared memory as the launch has stages."""
    m, n = tl.arange(0, 64)[:, None], tl.arange(0, 64)[None, :]
    total = tl.zeros((64, 64), dtype=tl.float32)
    for k in range(0, K, 64):
        total = tl.dot(tl.load(x_ptr + m * K + k + n), tl.load(x_ptr + (k + m) * 64 + n), total)
    tl.store(y_ptr + m * 64 + n, total)


def run(kernel: triton.JITFunction, n: int, stride: int, block: int = 64) -> None:
    x = torch.randn(n * stride)
    y = torch.full((n,), -1.0)
    kernel[(triton.cdiv(n, block),)](x, y, n, stride, BLOCK=block)
    assert torch.equal(y, x[::stride])


def whole(session: Session) -> list[bool]:
    """For each launch whether its kernel was compiled to the end."""
    return [bool(trace.kernel_handle.text("ptx")) for trace in session.launches]


def test_only_the_first_goes_all_the_way_and_all_are_right(copy, gpu: VirtualGpu, session: Session) -> None:
    with gpu.brevity.briefly():
        run(copy, 64, 16)
        run(copy, 63, 16)
        run(copy, 63, 1)
        run(copy, 63, 3, block=32)
        run(copy, 63, 3, block=32)
    assert whole(session) == [True, False, False, False, False]
    assert session.launches[3].kernel_handle is session.launches[4].kernel_handle
    assert session.launches[0].registers > 0
    assert [trace.kernel_handle.text("ttir") != "" for trace in session.launches] == [True] * 5


def test_settling_compiles_what_assumes_more(copy, gpu: VirtualGpu, session: Session) -> None:
    with gpu.brevity.briefly():
        run(copy, 64, 16)
        run(copy, 63, 16)  # assumes less than the first
        run(copy, 63, 1)  # a stride of 1 is something new
        run(copy, 62, 1)  # assumes the same
        run(copy, 63, 3, block=32)  # another constant
    gpu.brevity.settle()
    assert whole(session) == [True, False, True, True, True]
    gpu.brevity.settle()


def test_settling_tells_what_does_not_fit_the_chip(gpu: VirtualGpu) -> None:
    x, y = torch.zeros(64, 128, dtype=torch.float16), torch.empty(64, 64)
    with gpu.brevity.briefly():
        for stages in (2, 20):
            product[(1,)](x, y, 128, num_stages=stages)
    with pytest.raises(OutOfResources, match="shared memory"):
        gpu.brevity.settle()


def test_a_launch_elsewhere_gets_the_whole_kernel(copy, gpu: VirtualGpu, session: Session) -> None:
    with gpu.brevity.briefly():
        run(copy, 64, 16)
        run(copy, 63, 3)
    run(copy, 63, 3)
    assert whole(session) == [True, False, True]
    assert session.launches[-1].registers > 0


def test_a_time_is_that_of_the_whole_kernel(copy, gpu: VirtualGpu, session: Session) -> None:
    with gpu.brevity.briefly():
        run(copy, 64, 16)
        run(copy, 63, 3)
        assert gpu.clock.now_us > 0
    assert session.launches[-1].registers > 0


def test_who_asks_for_a_binary_gets_one(copy, gpu: VirtualGpu) -> None:
    with gpu.brevity.briefly():
        run(copy, 64, 16)
        compiled = copy.warmup(torch.float32, torch.float32, 63, 3, BLOCK=64, grid=(1,))
    assert "ptx" in compiled.asm


def test_the_hooks_are_put_back(copy, gpu: VirtualGpu) -> None:
    runtime = triton.knobs.runtime
    before = runtime.jit_cache_hook, runtime.add_stages_inspection_hook
    with pytest.raises(ZeroDivisionError), gpu.brevity.briefly():
        raise ZeroDivisionError
    assert (runtime.jit_cache_hook, runtime.add_stages_inspection_hook) == before
