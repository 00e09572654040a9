"""Registers and stack are read from the binary as the vendor's own tool reads them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from checker.vgpu import resources
from checker.vgpu.driver import VirtualGpu


@triton.jit
def light(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)


@triton.jit
def heavy(x_ptr, y_ptr, N: tl.constexpr):
    """Needs more registers than the launch below grants: some of it spills onto the stack."""
    m, n = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + m * N + n)
    y = tl.trans(tl.load(x_ptr + n * N + m))
    tl.store(y_ptr + m * N + n, x / tl.sum(x) + tl.exp(y) * tl.max(x, 0)[None, :])


def cuobjdump():
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        pytest.skip("this Triton ships no cuobjdump")
    return str(tool)


@pytest.mark.parametrize("chip", ["t4", "a100", "l4", "h100"])
def test_registers_and_stack_agree_with_cuobjdump(chip, tmp_path):
    gpu = VirtualGpu(chip).activate()
    with gpu.record() as session:
        light[(1,)](torch.zeros(64), torch.zeros(64), 64, BLOCK=64)
        heavy[(1,)](torch.zeros(64, 64), torch.zeros(64, 64), N=64, num_warps=1, maxnreg=64)
    for trace in session.launches:
        path = next(path for name, path in trace.kernel_handle.files.items() if name.endswith(".cubin"))
        text = subprocess.run([cuobjdump(), "-res-usage", path], capture_output=True, text=True, check=True).stdout
        registers, stack = re.search(r"REG:(\d+) STACK:(\d+)", text).groups()
        assert resources.from_cubin(Path(path).read_bytes()) == resources.Resources(int(registers), int(stack))
        assert (trace.registers, trace.spills) == (int(registers), int(stack))
    assert session.launches[1].spills > 0


def test_what_is_no_cubin_has_no_resources():
    assert resources.from_cubin(b"not an elf file") == resources.Resources(0, 0)


def test_the_amd_assembly_states_the_same_facts():
    text = ".vgpr_count:     37\n.private_segment_fixed_size: 16\n"
    assert resources.from_amdgcn(text) == resources.Resources(37, 16)
