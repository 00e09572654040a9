"""One virtual GPU is one chip: its compiler target, its limits, its caches."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.errors import OutOfResources

from checker.vgpu import specs
from checker.vgpu.driver import VirtualGpu, active


@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr):
    m, n = tl.arange(0, M), tl.arange(0, N)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


def multiply(m, n, block_k, stages, k=128, warps=8):
    a, b, c = torch.randn(m, k).half(), torch.randn(k, n).half(), torch.empty(m, n)
    matmul[(1,)](a, b, c, k, M=m, N=n, BLOCK_K=block_k, num_stages=stages, num_warps=warps)
    return a, b, c


@pytest.mark.parametrize("name", specs.CHIPS)
def test_a_kernel_compiles_and_runs_for_every_chip(name):
    gpu = VirtualGpu(name).activate()
    x, y = torch.randn(100), torch.empty(100)
    with gpu.record() as session:
        add[(2,)](x, y, 100, BLOCK=64)
    assert torch.equal(y, x + 1)
    trace = session.launches[0]
    assert trace.registers > 0
    assert trace.spills == 0
    assert trace.kernel_handle.text("ptx" if gpu.spec.backend == "cuda" else "amdgcn").find(gpu.spec.target) > 0


@pytest.mark.parametrize("name", specs.CHIPS)
def test_a_dot_compiles_and_runs_for_every_chip(name):
    VirtualGpu(name).activate()
    a, b, c = multiply(32, 32, 32, 2, k=64, warps=4)
    torch.testing.assert_close(c, a.float() @ b.float(), atol=1e-3, rtol=1e-3)


def test_shared_memory_is_that_of_the_chip(session):
    multiply(128, 256, 64, 4)
    assert 64 * (128 + 256) * 2 * 3 <= session.launches[0].shared_bytes <= 227 * 1024
    VirtualGpu("rtx4090").activate()
    with pytest.raises(OutOfResources, match="shared memory"):
        multiply(128, 256, 64, 4)


def test_the_tile_of_the_tutorial_fits_an_h200_and_not_an_a100_with_one_more_stage(session):
    multiply(128, 256, 64, 4, k=256)
    VirtualGpu("a100").activate()
    with pytest.raises(OutOfResources, match="shared memory"):
        multiply(128, 256, 64, 5, k=320)


@pytest.mark.parametrize("name", ["h200", "mi300x"])
def test_more_threads_than_a_block_may_have_are_refused(name):
    gpu = VirtualGpu(name).activate()
    warps = 2 * gpu.spec.threads_per_block // gpu.spec.warp_size
    with pytest.raises((OutOfResources, RuntimeError)):
        add[(1,)](torch.zeros(8), torch.zeros(8), 8, BLOCK=8192, num_warps=warps)


def test_two_chips_in_one_process_do_not_share_kernels():
    x, y = torch.randn(64), torch.empty(64)
    handles = []
    for name in ("h200", "t4", "h200"):
        gpu = VirtualGpu(name).activate()
        with gpu.record() as session:
            add[(1,)](x, y, 64, BLOCK=64)
        handles.append(session.launches[0].kernel_handle)
    assert handles[0] is handles[2]
    assert "sm_75" in handles[1].text("ptx")
    assert "sm_90" in handles[0].text("ptx")


def test_the_limits_of_one_chip_are_not_asked_of_another():
    properties = [VirtualGpu(name).utils.get_device_properties(0)["max_shared_mem"] for name in ("t4", "h200")]
    assert properties == [64 * 1024, 227 * 1024]
    devices = {VirtualGpu(name).get_current_device() for name in specs.CHIPS}
    assert len(devices) == len(specs.CHIPS)


@pytest.mark.parametrize(("typed", "meant"), [("H-200", "h200"), ("rtx 4090", "rtx4090"), ("MI300X", "mi300x")])
def test_a_chip_may_be_spelt_in_any_way(typed, meant):
    assert specs.chip(typed).key == meant


@pytest.mark.parametrize(("typed", "meant"), [("h20", "h200"), ("a10", "a100"), ("mi300", "mi300x")])
def test_an_unknown_chip_is_answered_with_the_nearest_and_with_all(typed, meant):
    with pytest.raises(ValueError, match=f"Did you mean {meant}.*t4, a100, l4, rtx4090"):
        specs.chip(typed)


def test_the_active_device_is_where_tensors_live():
    assert triton.runtime.driver.active.get_active_torch_device() == torch.device("cpu")
    assert active().get_device_capability() == (9, 0)
    assert triton.runtime.driver.active.get_current_target().arch == 90


def test_properties_are_those_a_tuned_kernel_asks_for():
    properties = triton.runtime.driver.active.utils.get_device_properties(active().get_current_device())
    assert properties["multiprocessor_count"] == 132
    assert properties["max_num_regs"] == 65536
    assert properties["warpSize"] == 32


def test_an_environment_that_asks_for_the_interpreter_is_refused(monkeypatch):
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    with pytest.raises(RuntimeError, match="TRITON_INTERPRET"):
        VirtualGpu("h200").activate()


def test_the_fusion_knob_is_set_so_that_no_version_warns(recwarn):
    add[(1,)](torch.zeros(3), torch.zeros(3), 3, BLOCK=4)
    assert not [warning for warning in recwarn if "FP_FUSION" in str(warning.message)]
