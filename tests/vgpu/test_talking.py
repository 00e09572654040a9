"""What a kernel says: tl.device_print, tl.device_assert, tl.static_print."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from checker.vgpu.errors import VirtualGpuError


@triton.jit
def chatty(x_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK))
    if pid == 1:
        tl.device_print("block", x)
    tl.device_print("pid and sum", pid, tl.sum(x))


def test_prints_tell_the_program_and_the_values(session):
    chatty[(2,)](torch.arange(8.0), BLOCK=4)
    text = "\n".join(session.launches[0].prints)
    assert "(1, 0, 0)" in text
    assert "[4. 5. 6. 7.]" in text
    assert "22." in text
    assert "(0, 0, 0) block" not in text


def test_prints_are_echoed_as_they_happen(gpu):
    lines = []
    with gpu.record(echo=lines.append) as session:
        chatty[(2,)](torch.arange(8.0), BLOCK=4)
    assert lines == session.launches[0].prints


@triton.jit
def asserting(x_ptr, limit):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    tl.device_assert(x < limit, "x is too large")
    tl.store(x_ptr + pid, x)


def test_an_assertion_that_fails_stops_the_launch_and_is_located(place):
    with pytest.raises(VirtualGpuError, match=r"program \(2, 0, 0\): x is too large") as caught:
        asserting[(4,)](torch.arange(4.0), 2.0, debug=True)
    assert caught.value.where.line == place(asserting, "device_assert")[1]


def test_an_assertion_that_holds_is_silent():
    asserting[(4,)](torch.arange(4.0), 10.0, debug=True)


def test_an_assertion_without_debug_is_compiled_away():
    asserting[(4,)](torch.arange(4.0), 2.0)


@triton.jit
def static(x_ptr, N: tl.constexpr):
    tl.static_assert(N > 2, "N must be larger")
    tl.static_print("N is", N)
    tl.store(x_ptr, N)


def test_static_assertions_are_the_compilers(capsys):
    out = torch.zeros(1)
    static[(1,)](out, N=3)
    assert out.item() == 3
    with pytest.raises(triton.CompilationError, match="N must be larger"):
        static[(1,)](out, N=2)
