# expect: K601
# y is addressed by the strides of x.
"""A copy in two dimensions, which follows the strides of its source wherever they lead."""

import torch
import triton
import triton.language as tl

# Rows and columns of a tile: long along the rows, whose elements are usually neighbours in memory.
BLOCK_SIZE_M = 16
BLOCK_SIZE_N = 128


@triton.jit
def copy_kernel(
    x_ptr,
    y_ptr,
    M,
    N,
    stride_xm,
    stride_xn,
    stride_ym,
    stride_yn,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
):
    """Copy one tile of x to the same place in y.

    x_ptr         *T[M, N]  source
    y_ptr         *T[M, N]  destination
    M, N          int       rows and columns
    stride_xm     int       elements from one row of x to the next
    stride_xn     int       elements from one column of x to the next
    stride_ym     int       elements from one row of y to the next
    stride_yn     int       elements from one column of y to the next
    BLOCK_SIZE_M  int       rows of a tile, a power of two
    BLOCK_SIZE_N  int       columns of a tile, a power of two
    """
    # The tiles are numbered row by row.
    pid = tl.program_id(0)
    tiles_n = tl.cdiv(N, BLOCK_SIZE_N)
    pid_m = pid // tiles_n
    pid_n = pid % tiles_n

    # int64, because a row or column number times a stride can pass 2^31.
    offs_m = pid_m.to(tl.int64) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = pid_n.to(tl.int64) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)

    # A column of row addresses plus a row of column addresses: a block of both.
    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn
    y_ptrs = y_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn

    # An element exists if both its row and its column do.
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)

    tile = tl.load(x_ptrs, mask=mask)
    tl.store(y_ptrs, tile, mask=mask)


def copy_2d(x: torch.Tensor) -> torch.Tensor:
    """Return a contiguous copy of x.

    Accepted: a 2D tensor of any shape, strides (also expanded or sliced) and dtype that Triton has; it may be empty.
    Refused: any other number of dimensions (ValueError).
    """
    if x.dim() != 2:
        raise ValueError(f"x must have 2 dimensions, not {x.dim()} (shape {tuple(x.shape)})")
    M, N = x.shape
    # Not empty_like: it would keep the swapped strides of an x that is a transposed view.
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch
    # One axis, because the second and third axis of a grid end at 65535.
    grid = (triton.cdiv(M, BLOCK_SIZE_M) * triton.cdiv(N, BLOCK_SIZE_N),)
    copy_kernel[grid](
        x,
        y,
        M,
        N,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        y.stride(1),
        BLOCK_SIZE_M=BLOCK_SIZE_M,
        BLOCK_SIZE_N=BLOCK_SIZE_N,
    )
    return y


def stride_blind_is_right(M: int, N: int, stride_m: int, stride_n: int) -> bool | None:
    """Predict whether a kernel that ignores strides copies a view correctly.

    That kernel reads element (m, n) at x_ptr + m * N + n, whatever the strides. The view has shape (M, N) and the
    strides given, in elements; all elements in memory differ from one another.
    """
    # A stride is never used if there is only one row, or one column.
    return (M == 1 or stride_m == N) and (N == 1 or stride_n == 1)
