"""What `kata explain` teaches about compiling is what the compiler says: each K2 example fails, each mend compiles."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path
from types import ModuleType

import pytest

from checker.findings import CATALOGUE

triton = pytest.importorskip("triton", reason="Triton has wheels for Linux only")

PRELUDE = """
import math

import triton
import triton.language as tl
"""
# Every name that a fragment of a kernel may take for granted.
KERNEL = """
@triton.jit
def kernel(x_ptr, y_ptr, a_ptr, b_ptr, half_ptr, n, M, N, K, stride_m, stride_n, BLOCK_SIZE: tl.constexpr):
    BLOCK_K: tl.constexpr = 32
    pid = tl.program_id(0)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    offs_m = tl.arange(0, 32)
    offs_n = tl.arange(0, 32)
    offs_k = tl.arange(0, BLOCK_K)
    mask = offs < n
"""
SETUP = {
    "K205": "x = tl.load(x_ptr + offs)",
    "K208": "acc = tl.zeros((BLOCK_K,), dtype=tl.float32)",
    "K216": "x_ptr = half_ptr",
    "K217": (
        "scores = tl.zeros((32, 32), dtype=tl.float32)\n"
        "acc = tl.zeros((32, 32), dtype=tl.float32)\n"
        "v = tl.load(half_ptr + offs_k[:, None] * 32 + offs_n[None, :])"
    ),
    "K218": "a_ptr = half_ptr\nb_ptr = half_ptr",
}
SIGNATURE = {
    "x_ptr": "*fp32", "y_ptr": "*fp32", "a_ptr": "*fp32", "b_ptr": "*fp32", "half_ptr": "*fp16",
    "n": "i32", "M": "i32", "N": "i32", "K": "i32", "stride_m": "i32", "stride_n": "i32", "BLOCK_SIZE": "constexpr",
}  # fmt: skip
ACCEPTED_SINCE = {"K207": (3, 9)}
"""Mistakes that a newer Triton compiles, rightly."""
FRAGMENTS = (
    "K205",
    "K206",
    "K207",
    "K208",
    "K209",
    "K210",
    "K212",
    "K213",
    "K214",
    "K215",
    "K216",
    "K217",
    "K218",
    "K224",
)
WHOLE = ("K202", "K204", "K211")


def compile_kernel(module: ModuleType) -> None:
    """Compile the last kernel of a module for sm_90. A parameter that SIGNATURE does not know is an int32."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    kernels = [value for value in vars(module).values() if isinstance(value, triton.runtime.JITFunction)]
    kernel = kernels[-1]
    signature = {name: SIGNATURE.get(name, "i32") for name in kernel.arg_names}
    last = kernel.params[-1]
    constexprs = {last.name: 128} if last.is_constexpr else {}
    if not last.is_constexpr:
        # The mistake of K202 is just this: a block size at run time.
        signature[last.name] = "i32"
    source = ASTSource(fn=kernel, signature=signature, constexprs=constexprs)
    triton.compile(source, target=GPUTarget("cuda", 90, 32))


def load(text: str, folder: Path, name: str) -> ModuleType:
    """Import a text from a file, which is where Triton reads a kernel's source."""
    file = folder / f"{name}.py"
    file.write_text(text)
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def module_of(code: str, text: str) -> str:
    """A whole module around an example."""
    if code in WHOLE:
        return PRELUDE + text + "\n"
    body = "\n".join(part for part in (SETUP.get(code, ""), text) if part)
    return PRELUDE + KERNEL + textwrap.indent(body, "    ") + "\n"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code", sorted((*FRAGMENTS, *WHOLE)))
def test_example_fails_and_mend_compiles(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    version = tuple(int(part) for part in triton.__version__.split(".")[:2])
    if code not in ACCEPTED_SINCE or version < ACCEPTED_SINCE[code]:
        with pytest.raises(Exception, match=r"."):
            compile_kernel(load(module_of(code, CATALOGUE[code].example), tmp_path, f"wrong_{code}"))
    compile_kernel(load(module_of(code, CATALOGUE[code].mend), tmp_path, f"right_{code}"))
