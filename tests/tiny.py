"""A kata as small as can be that is really run: `add_one(x) -> y`. Used by the tests of the plugin and the runner."""

from __future__ import annotations

from pathlib import Path

from checker.catalog import Kata, load

TOML = """
id = "{id}"
title = "Add one"
lesson = 1
minutes = 1
outcomes = ["L1.1"]
entry = "add_one"
signature = "add_one(x) -> y"
requires = []
start = "blank"
fails_at = "memory"
[[todo]]
number = 1
text = "add one"
hints = ["plus"]
"""

SPEC = '''
"""Cases of add_one."""
import torch
from checker.cases import Case, Refusal

CASES = [
    Case("n=64", n=64),
    Case("n=33", n=33),
    Case("n=1", n=1, quick=False),
    Case("large values", stage="numerics", n=40),
]


def make_inputs(case, *, seed, device):
    draw = torch.Generator().manual_seed(seed)
    return (torch.randn(case.n, generator=draw).to(device),)


def reference(x):
    return x.double() + 1


def torch_op(x):
    return x + 1


def least_bytes(case):
    return 8 * case.n


def flops(case):
    return case.n


REFUSED = [Refusal("a strided view", lambda device: (torch.ones(8, device=device)[::2],))]


def questions(draw):
    return []
'''

TESTS = '''
"""Right means: one more."""
import pytest


@pytest.mark.stage("numerics")
def test_keeps_large_values(kata, case):
    kata.check(case)


def test_adds_one(kata, case):
    kata.check(case)


def test_refuses_strided_input(kata, refusal):
    kata.check_refusal(refusal)
'''

HEAD = '''"""One more."""
import os
import sys
import time

import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    v = tl.load(x_ptr + offs, mask=mask)
    # TODO(1): add one
    {kernel}
    # END TODO(1)
    tl.store(y_ptr + offs, v, mask=mask)


def add_one(x):
    if not x.is_contiguous():
        raise ValueError("x must be contiguous")
    y = torch.empty_like(x)
    {wrapper}
    add_kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK_SIZE=32)
    return y
'''


def module(kernel: str = "v = v + 1", wrapper: str = "pass") -> str:
    """The learner's file with a line of the kernel and a line of the wrapper replaced."""
    return HEAD.format(kernel=kernel, wrapper=wrapper)


def line_of(text: str, part: str) -> int:
    """The 1-based line on which a part of a text stands."""
    return next(number for number, line in enumerate(text.splitlines(), 1) if part in line)


def make(root: Path, id: str = "01_add_one", **files: str) -> Kata:
    """Make the kata below `root` and return it; `kernel` and others replace or add files (`kernel=...`)."""
    folder = root / "katas" / id
    folder.mkdir(parents=True)
    (root / "solutions").mkdir(exist_ok=True)
    texts = {
        "kata.toml": TOML.format(id=id),
        "spec.py": SPEC,
        "test_correctness.py": TESTS,
        "test_performance.py": '"""Fast."""\n\n\ndef test_is_fast(speed):\n    speed.check()\n',
        "skeleton.py": module("pass"),
        "README.md": "# Add one\n",
    }
    texts.update({f"{name}.py": text for name, text in files.items()})
    for name, text in texts.items():
        (folder / name).write_text(text)
    return next(kata for kata in load(root) if kata.folder == folder)
