"""The kernel itself. It has a module of its own because Triton is imported at the top here, and nowhere else."""

import triton
import triton.language as tl


@triton.jit  # type: ignore[untyped-decorator]  # Triton ships no types
def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):  # type: ignore[no-untyped-def]  # Triton reads it
    """Copy one block of x into y.

    x_ptr       *f32[n]  source, contiguous
    y_ptr       *f32[n]  destination, contiguous
    n           int      number of elements
    BLOCK_SIZE  int      elements a program copies, a power of two
    """
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)
