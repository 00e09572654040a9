"""Nothing is made contiguous: the kernel finds each element by the strides of up to two dimensions."""

import torch
import triton
import triton.language as tl

# Elements a program adds: enough that few programs move many bytes.
BLOCK_SIZE = 1024


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, columns, stride_xm, stride_xn, stride_ym, stride_yn, BLOCK_SIZE: tl.constexpr):
    """Add one block of x and y into z.

    x_ptr       *T[n]  first operand, any strides
    y_ptr       *T[n]  second operand, any strides
    z_ptr       *T[n]  sum, contiguous
    n           int    number of elements
    columns     int    elements of a row
    stride_*    int    elements between rows (m) and columns (n)
    BLOCK_SIZE  int    elements a program adds, a power of two
    """
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n

    row, column = offs // columns, offs % columns
    x = tl.load(x_ptr + row * stride_xm + column * stride_xn, mask=mask)
    y = tl.load(y_ptr + row * stride_ym + column * stride_yn, mask=mask)
    tl.store(z_ptr + offs, x + y, mask=mask)


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
    z = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    n = z.numel()
    if n == 0:
        return z  # nothing to compute, nothing to launch
    grid = (triton.cdiv(n, BLOCK_SIZE),)
    if x.dim() > 2:
        x, y = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1])
    x, y = (t.reshape(1, -1) if t.dim() < 2 else t for t in (x, y))
    add_kernel[grid](x, y, z, n, x.shape[1], *x.stride(), *y.stride(), BLOCK_SIZE=BLOCK_SIZE)
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
