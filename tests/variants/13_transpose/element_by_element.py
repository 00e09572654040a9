"""Each program makes a run of y's elements and fetches each from where it lies in x: right, but slow."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_kernel(
    x_ptr,
    y_ptr,
    M,
    N,
    stride_xm,
    stride_xn,
    BLOCK_SIZE: tl.constexpr,
):
    """Fill one block of y, counted in memory order, where y[n, m] = x[m, n].

    x_ptr         *T[M, N]  source
    y_ptr         *T[N, M]  destination
    M, N          int       rows and columns of x
    stride_xm     int       elements from one row of x to the next
    stride_xn     int       elements from one column of x to the next
    BLOCK_SIZE    int       elements of y a program fills, a power of two
    """
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < M * N
    n, m = offs // M, offs % M
    tl.store(y_ptr + offs, tl.load(x_ptr + m * stride_xm + n * stride_xn, mask=mask), mask=mask)


def transpose(x: torch.Tensor) -> torch.Tensor:
    """Return the transpose of x as a new contiguous tensor.

    Accepted: a 2D tensor of any shape, strides (also expanded or sliced) and dtype that Triton has; it may be empty.
    Refused: any other number of dimensions (ValueError).
    """
    if x.dim() != 2:
        raise ValueError(f"x must have 2 dimensions, not {x.dim()} (shape {tuple(x.shape)})")
    M, N = x.shape
    # Not empty_like: it would keep the swapped strides of an x that is itself a transposed view.
    y = torch.empty((N, M), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch

    grid = (triton.cdiv(M * N, 512),)
    transpose_kernel[grid](
        x,
        y,
        M,
        N,
        x.stride(0),
        x.stride(1),
        BLOCK_SIZE=512,
    )
    return y


def fetched_per_useful_byte(block_size_m: int, block_size_n: int, itemsize: int) -> tuple[float, float] | None:
    """Predict how many bytes the memory moves for each byte the kernel asked for, on the load and on the store.

    Memory moves whole sectors of 32 bytes. Think of one program on a tile of block_size_m x block_size_n elements of
    itemsize bytes, in the middle of a large contiguous x; x, y and every row of them begin on a sector's edge.
    Returns (load side, store side); 1.0 is perfect.
    """
    run_in_x = block_size_n * itemsize
    run_in_y = block_size_m * itemsize
    return max(32, run_in_x) / run_in_x, max(32, run_in_y) / run_in_y
