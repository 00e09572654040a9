"""What the virtual GPU does not model fails by name, with the line; it is never silently wrong."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from checker.vgpu.errors import NotModelled


@triton.jit
def to_float8(x_ptr, y_ptr):
    offs = tl.arange(0, 16)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs).to(tl.float8e5).to(tl.float32))


@triton.jit
def load_float8(x_ptr, y_ptr):
    offs = tl.arange(0, 16)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs).to(tl.float32))


@triton.jit
def assembly(x_ptr, y_ptr):
    offs = tl.arange(0, 16)
    x = tl.load(x_ptr + offs)
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(y_ptr + offs, y)


@triton.jit
def toward_zero(x_ptr, y_ptr):
    offs = tl.arange(0, 16)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs).to(tl.float16, fp_downcast_rounding="rtz"))


@triton.jit
def unusual_library(x_ptr, y_ptr):
    offs = tl.arange(0, 16)
    tl.store(y_ptr + offs, tl.extra.cuda.libdevice.j0(tl.load(x_ptr + offs)))


@pytest.mark.parametrize(
    ("kernel", "dtypes", "name", "marker"),
    [
        (to_float8, (torch.float32, torch.float32), "f8E5M2", "float8e5"),
        (load_float8, (torch.float8_e5m2, torch.float32), "f8E5M2", "tl.load"),
        (assembly, (torch.float32, torch.float32), "elementwise_inline_asm", "tl.inline_asm"),
        (toward_zero, (torch.float32, torch.float16), "rounding toward zero", "rtz"),
        (unusual_library, (torch.float32, torch.float32), "__nv_j0f", "j0"),
    ],
    ids=["fp8 cast", "fp8 tensor", "inline asm", "rtz", "rare libdevice"],
)
def test_it_is_named_with_its_line(kernel, dtypes, name, marker, place):
    x, y = (torch.zeros(16).to(dtype) for dtype in dtypes)
    with pytest.raises(NotModelled, match=name) as caught:
        kernel[(1,)](x, y)
    assert caught.value.code == "K008"
    assert caught.value.where.line == place(kernel, marker)[1]


@triton.jit
def scaled(a_ptr, b_ptr, s_ptr, c_ptr):
    m, k, n = tl.arange(0, 128), tl.arange(0, 64), tl.arange(0, 128)
    a = tl.load(a_ptr + m[:, None] * 64 + k[None, :])
    b = tl.load(b_ptr + k[:, None] * 128 + n[None, :])
    s = tl.load(s_ptr + m[:, None] * 2 + tl.arange(0, 2)[None, :])
    t = tl.load(s_ptr + n[:, None] * 2 + tl.arange(0, 2)[None, :])
    tl.store(c_ptr + m[:, None] * 128 + n[None, :], tl.dot_scaled(a, s, "e5m2", b, t, "e5m2"))


def test_a_scaled_dot_is_named():
    a, b = torch.zeros(128, 64).to(torch.float8_e5m2), torch.zeros(64, 128).to(torch.float8_e5m2)
    with pytest.raises(NotModelled, match=r"f8E5M2|dot_scaled"):
        scaled[(1,)](a, b, torch.zeros(128, 2, dtype=torch.uint8), torch.zeros(128, 128))
