# expect: K804
# Blocks of 32: the chip is busy starting programs.
"""Vector copy: the smallest kernel that proves an installation.

A copy computes nothing. If it fails, look at the machine; if it works, a failing kernel is the kernel's own fault.
"""

import torch
import triton
import triton.language as tl

# Elements a program copies: enough that few programs move many bytes.
BLOCK_SIZE = 32


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Copy one block of x into y.

    x_ptr       *T[n]  source, contiguous
    y_ptr       *T[n]  destination, contiguous
    n           int    number of elements
    BLOCK_SIZE  int    elements a program copies, a power of two
    """
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    # The last block hangs over the end of x and y: those lanes must touch nothing.
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask)

    tl.store(y_ptr + offs, x, mask=mask)


def vector_copy(x: torch.Tensor) -> torch.Tensor:
    """Return a copy of x.

    Accepted: a contiguous tensor of any shape and dtype that Triton has, on the device kernels run on; it may be
    empty.
    Refused: a tensor that is not contiguous (ValueError), because the kernel counts elements in memory order.
    """
    if not x.is_contiguous():
        raise ValueError(f"x must be contiguous, but has shape {tuple(x.shape)} and strides {x.stride()}")
    y = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return y  # nothing to compute, nothing to launch
    grid = (triton.cdiv(n, BLOCK_SIZE),)
    copy_kernel[grid](x, y, n, BLOCK_SIZE=BLOCK_SIZE)
    return y


def triage(failure: str) -> str | None:
    """Say whose fault a failure is: "environment" or "kernel".

    failure is one of these names; beside each, what its victim sees.
    "no compiler"      RuntimeError: Failed to find C compiler. Please specify via CC environment variable
    "unwritable cache" an OSError that names a path under ~/.triton/cache
    "no driver"        RuntimeError: 0 active drivers ([]). There should only be one
    "unmasked store"   y is right, but a tensor beside it has changed
    "short grid"       the last elements of y hold whatever was in memory before
    "misspelt meta"    a TypeError or KeyError: BLOK_SIZE was specified but unrecognised
    """
    labels = {
        "no compiler": "environment",
        "unwritable cache": "environment",
        "no driver": "environment",
        "unmasked store": "kernel",
        "short grid": "kernel",
        "misspelt meta": "kernel",
    }
    return labels.get(failure)


def compile_order(levels: tuple[str, ...]) -> tuple[str, ...] | None:
    """Put some levels of compilation in order, from the one nearest to your source to what the chip executes.

    levels: some of "ttir", "ttgir", "llir", "ptx" and "cubin", shuffled.
    """
    return tuple(sorted(levels, key=("ttir", "ttgir", "llir", "ptx", "cubin").index))
