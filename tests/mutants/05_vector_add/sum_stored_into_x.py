# expect: K406
# The sum goes into the caller's x.
"""Vector addition, from a blank page: the kernel, and the wrapper that makes it safe to call."""

import torch
import triton
import triton.language as tl

# Elements a program adds: enough that few programs move many bytes.
BLOCK_SIZE = 1024


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Add one block of x and y into z.

    x_ptr       *T[n]  first operand, contiguous
    y_ptr       *T[n]  second operand, contiguous
    z_ptr       *T[n]  sum, contiguous
    n           int    number of elements
    BLOCK_SIZE  int    elements a program adds, a power of two
    """
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(x_ptr + offs, x + y, mask=mask)  # here


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return x + y as a new contiguous tensor.

    Accepted: x and y of one shape, one dtype (float32, float16 or bfloat16) and one device, with any strides; they
    may be empty. A tensor that is not contiguous is made so first, with `.contiguous()`.
    Refused: shapes that differ, even if they could be broadcast, or tensors on two devices (ValueError); dtypes that
    differ (TypeError).
    """
    if x.shape != y.shape:
        raise ValueError(f"x and y must have the same shape, not {tuple(x.shape)} and {tuple(y.shape)}")
    if x.device != y.device:
        raise ValueError(f"x and y must be on the same device, not on {x.device} and {y.device}")
    if x.dtype != y.dtype:
        raise TypeError(f"x and y must have the same dtype, not {x.dtype} and {y.dtype}")
    x, y = x.contiguous(), y.contiguous()
    z = torch.empty_like(x)
    n = z.numel()
    if n == 0:
        return z  # nothing to compute, nothing to launch
    grid = (triton.cdiv(n, BLOCK_SIZE),)
    add_kernel[grid](x, y, z, n, BLOCK_SIZE=BLOCK_SIZE)
    return z


def bytes_moved(n: int, itemsize: int) -> int | None:
    """Predict the bytes that one call of vector_add loads and stores.

    n: elements of x. itemsize: bytes an element.
    """
    return 3 * n * itemsize


def break_even(itemsize: int, launch_us: float, gb_per_s: float) -> float | None:
    """Predict the number of elements below which the launch of vector_add costs more time than moving its bytes.

    itemsize: bytes an element. launch_us: what a launch costs, in microseconds. gb_per_s: the bandwidth of memory, in
    10^9 bytes a second.
    """
    bytes_during_launch = launch_us * 1e-6 * gb_per_s * 1e9
    return bytes_during_launch / (3 * itemsize)
