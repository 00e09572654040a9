"""What Triton and PyTorch raise, and which diagnosis that is: one wrong kernel or launch for each kind and more.

`# here` marks the line that the finding must point to.
"""
# ruff: noqa: E501 - a sample reads best on one line

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from checker.compiler_output import reading_compiler_output
from checker.diagnose import from_exception
from checker.findings import CATALOGUE, Finding
from checker.loading import load_kernel

triton = pytest.importorskip("triton", reason="Triton has wheels for Linux only")

VERSION = tuple(int(part) for part in triton.__version__.split(".")[:2])
OFFSETS = "offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nm = offs < n\n"
LOAD = OFFSETS + "v = tl.load(x_ptr + offs, mask=m)\n"
STORE = "tl.store(y_ptr + offs, v, mask=m)"
FRAME = """
import math

import numpy as np
import torch
import triton
import triton.language as tl

{above}
@triton.jit
def kernel({parameters}):
    {body}


def run():
    x = torch.ones(1000, dtype=torch.{dtype})
    y = torch.empty_like(x)
    n = x.numel()
    {launch}
    return y
"""


@dataclass(frozen=True)
class Sample:
    """A wrong file: the body of a kernel, what stands above it, its parameters and its launch."""

    code: str
    label: str
    body: str
    above: str = ""
    parameters: str = "x_ptr, y_ptr, n, BLOCK: tl.constexpr"
    launch: str = "kernel[(4,)](x, y, n, BLOCK=256)"
    dtype: str = "float32"
    # The first Triton that accepts it.
    until: tuple[int, int] = (99, 0)

    def text(self) -> str:
        body = self.body.strip("\n").replace("\n", "\n    ")
        return FRAME.format(**{**vars(self), "body": body})


SAMPLES = [
    Sample("K201", "arange100", "offs = tl.arange(0, 100)  # here\nv = tl.load(x_ptr+offs)\ntl.store(y_ptr+offs, v)"),
    Sample(
        "K201",
        "blocksize",
        "offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # here\nm = offs < n\nv = tl.load(x_ptr + offs, mask=m)\n"
        + STORE,
        launch="kernel[(4,)](x, y, n, BLOCK=100)",
    ),
    Sample("K201", "zeros", "v = tl.zeros((100,), tl.float32)  # here"),
    Sample("K201", "full", "v = tl.full((3,), 1.0, tl.float32)  # here"),
    Sample("K201", "reshape", LOAD + "v = tl.reshape(v, (3, 5))  # here"),
    Sample(
        "K202",
        "forgot constexpr",
        "offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)  # here\nm = offs < n\nv = tl.load(x_ptr + offs, mask=m)\n"
        + STORE,
        parameters="x_ptr, y_ptr, n, BLOCK",
    ),
    Sample("K202", "arange n", "offs = tl.arange(0, n)  # here\nv = tl.load(x_ptr+offs)"),
    Sample("K202", "zeros n", "v = tl.zeros((n,), tl.float32)  # here"),
    Sample("K202", "full n", "v = tl.full((n,), 0.0, tl.float32)  # here"),
    Sample("K202", "reshape n", LOAD + "v = tl.reshape(v, (n, 1))  # here"),
    Sample("K202", "zeros bare n", "v = tl.zeros(n, tl.float32)  # here"),
    Sample("K202", "static_range", LOAD + "for i in tl.static_range(n):  # here\n    v += i"),
    Sample("K202", "broadcast_to", LOAD + "v = tl.broadcast_to(v[:, None], (BLOCK, n))  # here"),
    Sample("K203", "big", "offs = tl.arange(0, 2097152)  # here\nv=tl.load(x_ptr+offs)\ntl.store(y_ptr+offs,v)"),
    Sample("K203", "2d", "a = tl.arange(0, 2048)\nv=a[:, None] + a[None, :]  # here"),
    Sample("K203", "zeros", "v = tl.zeros((2048,2048), tl.float32)  # here"),
    Sample("K204", "global", LOAD + "v = v * SCALE  # here\n" + STORE, above="SCALE = 2.0\n"),
    Sample("K204", "global block", "offs = tl.arange(0, SIZE)  # here", above="SIZE = 256\n"),
    Sample("K205", "if", LOAD + "if v > 0:  # here\n    v = -v\n" + STORE),
    Sample("K205", "while", LOAD + "while offs < n:  # here\n    offs += 1\n" + STORE),
    Sample("K205", "ifexp", LOAD + "v = v if v > 0 else 0.0  # here\n" + STORE),
    Sample("K206", "and", LOAD + "v = tl.where(v and m, v, 0.0)  # here\n" + STORE),
    Sample("K206", "or", LOAD + "v = tl.where(m or v, v, 0.0)  # here\n" + STORE),
    Sample(
        "K207", "chain", OFFSETS + "m = 0 <= offs < n  # here\nv=tl.load(x_ptr+offs,mask=m)\n" + STORE, until=(3, 9)
    ),
    Sample("K207", "chain scalar", LOAD + "if 0 <= n < 5:  # here\n    v += 1.0\n" + STORE, until=(3, 9)),
    Sample(
        "K111",
        "prec",
        OFFSETS + "m = offs >= 0 & offs < n  # here\nv=tl.load(x_ptr+offs,mask=m)\n" + STORE,
        until=(3, 9),
    ),
    Sample(
        "K111",
        "prec2",
        OFFSETS + "m = offs < n & offs >= 0  # here\nv=tl.load(x_ptr+offs,mask=m)\n" + STORE,
        until=(3, 9),
    ),
    Sample("K208", "break", LOAD + "for i in range(n):\n    if i > 3:\n        break  # here\n    v += 1.0\n" + STORE),
    Sample(
        "K208", "continue", LOAD + "for i in range(n):\n    if i > 3:\n        continue  # here\n    v += 1.0\n" + STORE
    ),
    Sample(
        "K208", "return", LOAD + "for i in range(n):\n    if i > 3:\n        return  # here\n    v += 1.0\n" + STORE
    ),
    Sample(
        "K209",
        "acc int",
        LOAD + "acc = 0\nfor i in range(n):\n    acc += 1.5  # here\ntl.store(y_ptr+offs, v+acc, mask=m)",
    ),
    Sample(
        "K209",
        "acc block",
        LOAD
        + "acc = 0\nfor i in range(0, n, BLOCK):\n    acc += tl.load(x_ptr+offs+i, mask=m)  # here\ntl.store(y_ptr+offs, v+acc, mask=m)",
    ),
    Sample(
        "K209",
        "acc block f",
        LOAD
        + "acc = 0.0\nfor i in range(0, n, BLOCK):\n    acc += tl.load(x_ptr+offs+i, mask=m)  # here\ntl.store(y_ptr+offs, v+acc, mask=m)",
    ),
    Sample(
        "K209",
        "dtype",
        LOAD
        + "acc = tl.zeros((BLOCK,), tl.float16)\nfor i in range(0, n, BLOCK):\n    acc = acc + tl.load(x_ptr+offs+i, mask=m)  # here\ntl.store(y_ptr+offs, v+acc, mask=m)",
    ),
    Sample("K209", "while", LOAD + "i = 0\nacc = 0\nwhile i < n:\n    acc += 1.5  # here\n    i += 1\n" + STORE),
    Sample("K209", "if", LOAD + "if n > 5:\n    w = 1.0\nelse:\n    w = v\ntl.store(y_ptr+offs, v+w, mask=m)"),
    Sample("K209", "if2", LOAD + "w = 1\nif n > 5:\n    w = 1.5\ntl.store(y_ptr+offs, v+w, mask=m)"),
    Sample("K209", "ifshape", LOAD + "w = v\nif n > 5:\n    w = tl.sum(v, 0)\ntl.store(y_ptr+offs, v+w, mask=m)"),
    Sample("K210", "index", LOAD + "w = v[0]  # here\n" + STORE),
    Sample("K210", "index2", LOAD + "w = v[n]  # here\n" + STORE),
    Sample("K210", "slice", LOAD + "w = v[0:4]  # here\n" + STORE),
    Sample("K210", "boolindex", LOAD + "w = v[m]  # here\n" + STORE),
    Sample("K210", "set", LOAD + "v[0] = 1.0  # here\n" + STORE),
    Sample("K210", "augset", LOAD + "v[0] += 1.0  # here\n" + STORE),
    Sample("K210", "ptrindex", LOAD + "w = x_ptr[0]  # here\n" + STORE),
    Sample("K210", "ptrindexoffs", LOAD + "w = x_ptr[offs]  # here\n" + STORE),
    Sample("K210", "ptrset", LOAD + "y_ptr[offs] = v  # here"),
    Sample("K211", "helper", LOAD + "v = helper(v)  # here\n" + STORE, above="def helper(v):\n    return v * 2.0\n"),
    Sample("K211", "math", LOAD + "v = math.exp(v)  # here\n" + STORE),
    Sample("K211", "torch", LOAD + "v = torch.exp(v)  # here\n" + STORE),
    Sample("K211", "torch.relu", LOAD + "v = torch.relu(v)  # here\n" + STORE),
    Sample("K211", "np", LOAD + "v = np.exp(v)  # here\n" + STORE),
    Sample("K211", "tritoncdiv", LOAD + "v = v + triton.cdiv(n, 3)  # here\n" + STORE),
    Sample("K211", "nextpow2", LOAD + "v = v + triton.next_power_of_2(n)  # here\n" + STORE),
    Sample("K211", "sum", LOAD + "v = v + sum(v)  # here\n" + STORE),
    Sample("K211", "tl.nope", LOAD + "v = tl.relu(v)  # here\n" + STORE),
    Sample("K211", "method", LOAD + "v = v.exp2x()  # here\n" + STORE),
    Sample("K211", "float", LOAD + "v = v * float(n)  # here\n" + STORE),
    Sample("K211", "int", LOAD + "v = v * int(n)  # here\n" + STORE),
    Sample("K224", "print", LOAD + "print(v)\n" + STORE),
    Sample("K224", "print f", LOAD + "print(f'{v}')  # here\n" + STORE),
    Sample("K211", "len", LOAD + "v = v * len(v)  # here\n" + STORE),
    Sample("K211", "isinstance", LOAD + "v = v * x_ptr.numel()  # here\n" + STORE),
    Sample("K211", "shape", LOAD + "v = v * x_ptr.shape[0]  # here\n" + STORE),
    Sample("K212", "undefined", LOAD + "w = v + u  # here\n" + STORE),
    Sample("K212", "oneb", LOAD + "if n > 3:\n    w = v * 2.0\ntl.store(y_ptr+offs, w, mask=m)  # here"),
    Sample("K212", "for", LOAD + "for i in range(n):\n    w = v * 2.0\ntl.store(y_ptr+offs, w, mask=m)  # here"),
    Sample("K212", "tl missing", "offs = tl.program_id(0) * BLOCK + arange(0, BLOCK)  # here\n" + STORE),
    Sample("K213", "other", OFFSETS + "v = tl.load(x_ptr+offs, other=0.0)  # here\n" + STORE),
    Sample("K214", "scalar mask", OFFSETS + "v = tl.load(x_ptr, mask=m)  # here\n" + STORE),
    Sample("K214", "store", LOAD + "tl.store(y_ptr, v)  # here"),
    Sample("K214", "store mask", LOAD + "tl.store(y_ptr, v, mask=m)  # here"),
    Sample("K214", "store mask only", LOAD + "tl.store(y_ptr, 1.0, mask=m)  # here"),
    Sample("K214", "other", OFFSETS + "v = tl.load(x_ptr, mask=True, other=m)  # here"),
    Sample("K214", "atomic", LOAD + "tl.atomic_add(y_ptr, v)  # here"),
    Sample("K216", "load non ptr", OFFSETS + "v = tl.load(offs, mask=m)  # here\n" + STORE),
    Sample("K216", "store value as ptr", LOAD + "tl.store(v, y_ptr+offs, mask=m)  # here"),
    Sample("K215", "bcast", LOAD + "w = tl.arange(0, 128)\nv = v + w  # here\n" + STORE),
    Sample("K215", "rank", LOAD + "w = v[:, None] + tl.arange(0, 128)[:, None]  # here\n" + STORE),
    Sample("K215", "storeshape", LOAD + "w = tl.zeros((128,), tl.float32)\ntl.store(y_ptr+offs, w, mask=m)  # here"),
    Sample("K215", "mask", OFFSETS + "m = tl.arange(0,128) < n\nv = tl.load(x_ptr+offs, mask=m)  # here\n" + STORE),
    Sample("K215", "where", LOAD + "v = tl.where(tl.arange(0,128) < 5, v, 0.0)  # here\n" + STORE),
    Sample("K215", "trans 1d", LOAD + "v = tl.trans(v)  # here\n" + STORE),
    Sample("K215", "dims", LOAD + "v = tl.sum(v, 1)  # here\n" + STORE),
    Sample("K215", "expand", LOAD + "v = v[:, None, :]\n" + STORE),
    Sample("K216", "exp", LOAD + "v = tl.exp(v)  # here\n" + STORE, dtype="float16"),
    Sample("K216", "sigmoid", LOAD + "v = tl.sigmoid(v)  # here\n" + STORE, dtype="float16"),
    Sample("K216", "log", LOAD + "v = tl.log(v)  # here\n" + STORE, dtype="bfloat16"),
    Sample("K216", "rsqrt int", LOAD + "v = tl.rsqrt(v)  # here\n" + STORE, dtype="int32"),
    Sample("K216", "exp int", LOAD + "v = tl.exp(offs)  # here\n" + STORE),
    Sample("K216", "float and", LOAD + "v = v & 1  # here\n" + STORE),
    Sample("K216", "float shift", LOAD + "v = v << 1  # here\n" + STORE),
    Sample("K216", "mod", LOAD + "m2 = (offs < n) & v  # here\n" + STORE),
    Sample("K216", "fmask", OFFSETS + "v = tl.load(x_ptr+offs, mask=offs*1.0)  # here\n" + STORE),
    Sample("K216", "imask", OFFSETS + "v = tl.load(x_ptr+offs, mask=offs)  # here\n" + STORE),
    Sample("K216", "ptr float", OFFSETS + "v = tl.load(x_ptr+offs*1.0, mask=m)  # here\n" + STORE),
    Sample("K216", "ptrptr", OFFSETS + "v = tl.load(x_ptr+y_ptr, mask=m)  # here\n" + STORE),
    Sample("K216", "ptrmul", OFFSETS + "v = tl.load(x_ptr*offs, mask=m)  # here\n" + STORE),
    Sample("K216", "ptrval", OFFSETS + "v = x_ptr + 1.5  # here"),
    Sample("K202", "addfloatdiv", "offs = tl.arange(0, BLOCK/2)  # here"),
    Sample("K216", "range float", LOAD + "for i in range(n / 2):  # here\n    v += 1.0\n" + STORE),
    Sample("K215", "tl.max axis", LOAD + "v = tl.max(v, axis=2)  # here\n" + STORE),
    Sample("K216", "tofloat", LOAD + "v = v.to(float)  # here\n" + STORE),
    Sample("K216", "to torch", LOAD + "v = v.to(torch.float32)  # here\n" + STORE),
    Sample("K216", "astype str", LOAD + "v = v.to('float32')  # here\n" + STORE),
    Sample(
        "K217",
        "dt",
        "a = tl.zeros((16, 16), tl.float16)\nb = tl.zeros((16, 16), tl.float32)\nc = tl.dot(a, b)  # here\no = tl.arange(0,16)[:,None]*16+tl.arange(0,16)[None,:]\ntl.store(y_ptr+o, c)",
    ),
    Sample(
        "K217",
        "bf",
        "a = tl.zeros((16, 16), tl.bfloat16)\nb = tl.zeros((16, 16), tl.float16)\nc = tl.dot(a, b)  # here\no = tl.arange(0,16)[:,None]*16+tl.arange(0,16)[None,:]\ntl.store(y_ptr+o, c)",
    ),
    Sample(
        "K217",
        "int",
        "a = tl.zeros((16, 16), tl.int32)\nb = tl.zeros((16, 16), tl.int32)\nc = tl.dot(a, b)  # here\no = tl.arange(0,16)[:,None]*16+tl.arange(0,16)[None,:]\ntl.store(y_ptr+o, c)",
    ),
    Sample(
        "K218",
        "small",
        "a = tl.zeros((16, 8), tl.float16)\nb = tl.zeros((8, 16), tl.float16)\nc = tl.dot(a, b)  # here\no = tl.arange(0,16)[:,None]*16+tl.arange(0,16)[None,:]\ntl.store(y_ptr+o, c)",
    ),
    Sample(
        "K218",
        "tiny",
        "a = tl.zeros((16, 1), tl.float16)\nb = tl.zeros((1, 16), tl.float16)\nc = tl.dot(a, b)  # here\no = tl.arange(0,16)[:,None]*16+tl.arange(0,16)[None,:]\ntl.store(y_ptr+o, c)",
    ),
    Sample(
        "K218",
        "mismatch",
        "a = tl.zeros((16, 16), tl.float16)\nb = tl.zeros((32, 16), tl.float16)\nc = tl.dot(a, b)  # here\no = tl.arange(0,16)[:,None]*16+tl.arange(0,16)[None,:]\ntl.store(y_ptr+o, c)",
    ),
    Sample("K218", "1d", "a = tl.zeros((16,), tl.float16)\nb = tl.zeros((16,), tl.float16)\nc = tl.dot(a, b)  # here"),
    Sample(
        "K218",
        "accshape",
        "a = tl.zeros((16,16), tl.float16)\nacc = tl.zeros((32,16), tl.float32)\nc = tl.dot(a, a, acc)  # here",
    ),
    Sample("K224", "matmulop", "a = tl.zeros((16,16), tl.float16)\nc = a @ a"),
    Sample("K220", "w3", LOAD + STORE, launch="kernel[(4,)](x, y, n, BLOCK=256, num_warps=3)  # here"),
    Sample("K222", "w64", LOAD + STORE, launch="kernel[(4,)](x, y, n, BLOCK=256, num_warps=64)  # here"),
    Sample("K220", "w0", LOAD + STORE, launch="kernel[(4,)](x, y, n, BLOCK=256, num_warps=0)  # here"),
    Sample("K220", "float", LOAD + STORE, launch="kernel[(4,)](x, y, n, BLOCK=256, num_warps=4.0)  # here"),
    Sample(
        "K221",
        "smem",
        "offs_m = tl.arange(0,128)\nacc = tl.zeros((128,128), tl.float32)\nfor i in range(0, n, 256):\n    a = tl.load(x_ptr+offs_m[:,None]*256+i+tl.arange(0,256)[None,:])\n    b = tl.load(x_ptr+i+tl.arange(0,256)[:,None]*128+offs_m[None,:])\n    acc = tl.dot(a, b, acc)\ntl.store(y_ptr+offs_m[:,None]*128+offs_m[None,:], acc)",
        launch="kernel[(4,)](x, y, n, BLOCK=256, num_stages=4)  # here",
        dtype="float16",
    ),
    Sample("K224", "list", LOAD + "w = [v, v]\nw.append(v)  # here\n" + STORE),
    Sample("K224", "listcomp", LOAD + "w = [v for i in range(3)]  # here\n" + STORE),
    Sample("K224", "dict", LOAD + "w = {}  # here\n" + STORE),
    Sample("K224", "try", LOAD + "try:  # here\n    v = v + 1\nexcept Exception:\n    pass\n" + STORE),
    Sample("K211", "with", LOAD + "with open('x') as f:  # here\n    v = v + 1\n" + STORE),
    Sample("K224", "lambda", LOAD + "f = lambda a: a  # here\n" + STORE),
    Sample("K224", "nested def", LOAD + "def f(a):  # here\n    return a\n" + STORE),
    Sample("K224", "raise", LOAD + "raise ValueError('x')  # here\n" + STORE),
    Sample(
        "K224",
        "import",
        "import math  # here\noffs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nm = offs < n\nv = tl.load(x_ptr + offs, mask=m)\n"
        + STORE,
    ),
    Sample("K224", "del", LOAD + "del v  # here"),
    Sample(
        "K224",
        "global",
        "global Q  # here\noffs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nm = offs < n\nv = tl.load(x_ptr + offs, mask=m)\n"
        + STORE,
    ),
    Sample("K224", "for in block", LOAD + "for i in v:  # here\n    pass\n" + STORE),
    Sample("K211", "for zip", LOAD + "for i in zip((1,2),(3,4)):  # here\n    pass\n" + STORE),
    Sample("K211", "enumerate", LOAD + "for i, j in enumerate((1,2)):  # here\n    pass\n" + STORE),
    Sample("K224", "for tuple", LOAD + "for i in (1, 2):  # here\n    pass\n" + STORE),
    Sample("K224", "set", LOAD + "w = {1, 2}  # here\n" + STORE),
    Sample("K224", "yield", LOAD + "yield v  # here\n" + STORE),
    Sample("K224", "in", LOAD + "w = n in (1, 2)  # here\n" + STORE),
    Sample(
        "K200",
        "static assert",
        "tl.static_assert(BLOCK == 128)  # here\noffs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nm = offs < n\nv = tl.load(x_ptr + offs, mask=m)\n"
        + STORE,
    ),
    Sample(
        "K200",
        "static assert2",
        "tl.static_assert(BLOCK == 128, 'block must be 128')  # here\noffs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nm = offs < n\nv = tl.load(x_ptr + offs, mask=m)\n"
        + STORE,
    ),
    Sample("K224", "pow", LOAD + "v = v ** 2  # here\n" + STORE),
    Sample("K224", "ret value", LOAD + "tl.store(y_ptr + offs, v, mask=m)\nreturn v  # here"),
    Sample("K215", "matrix T", LOAD + "v = v.T  # here\n" + STORE),
    Sample("K200", "argcount", LOAD + "v = tl.load(x_ptr)\ntl.store(y_ptr + offs)  # here"),
    Sample("K200", "kwarg", LOAD + "v = tl.load(x_ptr + offs, masks=m)  # here"),
    Sample(
        "K200",
        "program_id",
        "pid = tl.program_id(3)  # here\noffs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nm = offs < n\nv = tl.load(x_ptr + offs, mask=m)\n"
        + STORE,
    ),
    Sample(
        "K200",
        "program_id noarg",
        "pid = tl.program_id()  # here\noffs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nm = offs < n\nv = tl.load(x_ptr + offs, mask=m)\n"
        + STORE,
    ),
    Sample("K224", "callint", LOAD + "v = n(v)  # here\n" + STORE),
    Sample(
        "K200",
        "arange1",
        "offs = tl.arange(BLOCK)  # here\noffs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nm = offs < n\nv = tl.load(x_ptr + offs, mask=m)\n"
        + STORE,
    ),
    Sample(
        "K200",
        "arangeneg",
        "offs = tl.arange(BLOCK, 0)  # here\noffs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nm = offs < n\nv = tl.load(x_ptr + offs, mask=m)\n"
        + STORE,
    ),
    Sample("K224", "fstring", LOAD + "w = f'{v}'  # here\n" + STORE),
    Sample(
        "K212",
        "helper in helper",
        LOAD + "v = h1(v)\n" + STORE,
        above="@triton.jit\ndef h2(v):\n    return v + undefined_name  # here\n\n@triton.jit\ndef h1(v):\n    return h2(v)\n",
    ),
    Sample(
        "K201",
        "in helper",
        "offs = h1()\noffs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\nm = offs < n\nv = tl.load(x_ptr + offs, mask=m)\n"
        + STORE,
        above="@triton.jit\ndef h1():\n    return tl.arange(0, 100)  # here\n",
    ),
    Sample(
        "K200",
        "helper args",
        LOAD + "v = h1(v)  # here\n" + STORE,
        above="@triton.jit\ndef h1(v, w):\n    return v + w\n",
    ),
    Sample("K301", "int", LOAD + STORE, launch="kernel[4](x, y, n, BLOCK=256)  # here"),
    Sample("K301", "float", LOAD + STORE, launch="kernel[(n / 256,)](x, y, n, BLOCK=256)  # here"),
    Sample("K301", "empty", LOAD + STORE, launch="kernel[()](x, y, n, BLOCK=256)  # here"),
    Sample("K301", "lambda int", LOAD + STORE, launch="kernel[lambda m: 4](x, y, n, BLOCK=256)  # here"),
    Sample(
        "K301",
        "lambda key",
        LOAD + STORE,
        launch="kernel[lambda m: (triton.cdiv(n, m['BLOCK_SIZE']),)](x, y, n, BLOCK=256)  # here",
    ),
    Sample("K301", "tensor", LOAD + STORE, launch="kernel[(torch.tensor(4),)](x, y, n, BLOCK=256)  # here"),
    Sample("K301", "str", LOAD + STORE, launch="kernel['4'](x, y, n, BLOCK=256)  # here"),
    Sample("K301", "none", LOAD + STORE, launch="kernel[None](x, y, n, BLOCK=256)  # here"),
    Sample("K306", "neg", LOAD + STORE, launch="kernel[(-1,)](x, y, n, BLOCK=256)  # here"),
    Sample("K302", "no grid", LOAD + STORE, launch="kernel(x, y, n, BLOCK=256)  # here"),
    Sample("K303", "missing", LOAD + STORE, launch="kernel[(4,)](x, y, BLOCK=256)  # here"),
    Sample("K303", "missing ce", LOAD + STORE, launch="kernel[(4,)](x, y, n)  # here"),
    Sample("K303", "unknown", LOAD + STORE, launch="kernel[(4,)](x, y, n, BLOCK_SIZE=256)  # here"),
    Sample("K303", "unknown2", LOAD + STORE, launch="kernel[(4,)](x, y, n, BLOCK=256, num_warp=4)  # here"),
    Sample("K303", "too many", LOAD + STORE, launch="kernel[(4,)](x, y, n, 256, 3)  # here"),
    Sample("K303", "twice", LOAD + STORE, launch="kernel[(4,)](x, y, n, 256, BLOCK=256)  # here"),
    Sample("K304", "numpy", LOAD + STORE, launch="kernel[(4,)](x.numpy(), y, n, BLOCK=256)  # here"),
    Sample("K304", "data_ptr", LOAD + STORE, launch="kernel[(4,)](x.data_ptr(), y, n, BLOCK=256)  # here"),
    Sample("K304", "0d", LOAD + STORE, launch="kernel[(4,)](x, y, torch.tensor(1000), BLOCK=256)  # here"),
    Sample("K304", "npint", LOAD + STORE, launch="kernel[(4,)](x, y, np.int64(1000), BLOCK=256)  # here"),
    Sample("K304", "shape", LOAD + STORE, launch="kernel[(4,)](x, y, x.shape, BLOCK=256)  # here"),
    Sample("K304", "list", LOAD + STORE, launch="kernel[(4,)](x, y, [1], BLOCK=256)  # here"),
    Sample("K304", "none", LOAD + STORE, launch="kernel[(4,)](x, None, n, BLOCK=256)  # here"),
    Sample("K304", "str", LOAD + STORE, launch="kernel[(4,)](x, 'y', n, BLOCK=256)  # here"),
    Sample("K304", "dtype", LOAD + STORE, launch="kernel[(4,)](x, y, x.dtype, BLOCK=256)  # here"),
    Sample("K202", "float ce", LOAD + STORE, launch="kernel[(4,)](x, y, n, BLOCK=256.0)"),
    Sample("K304", "tensor ce", LOAD + STORE, launch="kernel[(4,)](x, y, n, BLOCK=torch.tensor(256))  # here"),
    Sample("K304", "none ce", LOAD + STORE, launch="kernel[(4,)](x, y, n, BLOCK=None)  # here"),
    Sample("K304", "int for ptr", LOAD + STORE, launch="kernel[(4,)](n, y, n, BLOCK=256)"),
    Sample("K305", "meta", LOAD + STORE, launch="kernel[(4,)](x.to('meta'), y, n, BLOCK=256)  # here"),
    Sample("K308", "raise", LOAD + STORE, launch="x.foo()  # here"),
    Sample("K308", "assert", LOAD + STORE, launch="assert x.is_cuda, 'x must be on the GPU'  # here"),
    Sample("K106", "cuda", LOAD + STORE, launch="torch.empty(5, device='cuda')  # here"),
    Sample("K106", "cuda dev", LOAD + STORE, launch="torch.cuda.current_device()  # here"),
    Sample("K302", "helper as host", LOAD + STORE, launch="tl.arange(0, 4)  # here"),
    Sample("K302", "tlload host", LOAD + STORE, launch="tl.load(x)  # here"),
    Sample(
        "K302",
        "jit deco forgot",
        "v = 1",
        above="def nojit(x_ptr, y_ptr, n, BLOCK):\n    v = tl.load(x_ptr)\n",
        launch="nojit[(4,)](x, y, n, BLOCK=256)  # here",
    ),
    Sample(
        "K302",
        "jit deco forgot2",
        "v = 1",
        above="def nojit(x_ptr, y_ptr, n, BLOCK):\n    v = tl.load(x_ptr)  # here\n",
        launch="nojit(x, y, n, BLOCK=256)",
    ),
    Sample(
        "K220",
        "do_bench",
        LOAD + STORE,
        launch="triton.testing.do_bench(lambda: kernel[(4,)](x, y, n, BLOCK=256, num_warps=3))",
    ),
]


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    from checker.judge import open_gpu

    open_gpu("h200")


def load(folder: Path, text: str) -> ModuleType:
    file = folder / "kernel.py"
    file.write_text(text)
    return load_kernel(file)


def diagnosed(folder: Path, text: str) -> Finding:
    module = load(folder, text)
    with reading_compiler_output(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            module.run()
        except Exception as error:
            return from_exception(error, folder / "kernel.py", launch="kernel[(4,)]")
    pytest.fail("nothing was raised")


def here(text: str) -> int | None:
    return next((number for number, line in enumerate(text.splitlines(), 1) if "# here" in line), None)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.code} {sample.label}")
def test_the_diagnosis_and_the_line(tmp_path: Path, sample: Sample, capfd: pytest.CaptureFixture[str]) -> None:
    text = sample.text()
    if sample.until <= VERSION:
        load(tmp_path, text).run()
        return
    finding = diagnosed(tmp_path, text)
    assert finding.code == sample.code, finding
    expected = here(text)
    if expected is not None:
        assert finding.line == expected, finding
    assert finding.line is not None
    assert finding.column is not None
    assert finding.column <= len(text.splitlines()[finding.line - 1])
    assert finding.advice
    assert "{" not in finding.message
    assert (finding.launch is not None) == (finding.stage == "compile")
    # What the compiler dumps is not the learner's to read.
    assert "tt.func" not in capfd.readouterr().out


def test_every_code_of_the_compile_stage_has_a_sample() -> None:
    raised_elsewhere = {"K307": "found by the judge"}
    codes = {code for code, diagnosis in CATALOGUE.items() if diagnosis.stage == "compile"}
    assert codes - {sample.code for sample in SAMPLES} == set(raised_elsewhere)


def test_helpers_of_the_same_file_are_pointed_into(tmp_path: Path) -> None:
    above = "@triton.jit\ndef helper():\n    return tl.arange(0, 100)  # here\n"
    text = Sample("", "", "offs = helper()", above=above).text()
    assert diagnosed(tmp_path, text).line == here(text)


def test_an_unusable_cache_is_the_environments_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "taken").write_text("a file where the cache should be")
    monkeypatch.setattr(triton.knobs.cache, "dir", str(tmp_path / "taken"))
    finding = diagnosed(tmp_path, Sample("", "", LOAD + "v += 1.25\n" + STORE).text())
    assert finding.code == "K006"
    assert "TRITON_CACHE_DIR" in finding.advice


def test_an_error_of_the_checker_is_no_error_of_hers(tmp_path: Path) -> None:
    module = load(tmp_path, "def run(callback):\n    callback()\n")

    def broken() -> None:
        raise KeyError("ours")

    # This test file stands for foreign code that her file calls: the innermost frame that counts is hers.
    with pytest.raises(KeyError) as hers:
        module.run(broken)
    assert from_exception(hers.value, tmp_path / "kernel.py").code == "K308"
    with pytest.raises(KeyError) as ours:
        broken()
    ours_too = from_exception(ours.value.with_traceback(ours.value.__traceback__), tmp_path / "other.py")
    assert ours_too.code == "K007"
    assert ours_too.details


def test_right_idioms_are_not_refused(tmp_path: Path) -> None:
    body = LOAD + "m2 = (offs >= 0) and (offs < n)\nv = tl.where(m2, v, 0.0)\n" + STORE
    with warnings.catch_warnings():
        # Triton says on the first compilation that `and` is deprecated for blocks; a cached binary says nothing.
        warnings.simplefilter("ignore")
        load(tmp_path, Sample("", "", body).text()).run()
