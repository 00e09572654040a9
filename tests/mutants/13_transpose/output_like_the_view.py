# expect: K602
# empty_like keeps the strides of x.t(), and the kernel stores as if y were contiguous.
"""Matrix transpose: the same tile, read with one pair of strides and written with another."""

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
    stride_yn,
    stride_ym,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
):
    """Copy one tile of x to its place in y, where y[n, m] = x[m, n].

    x_ptr         *T[M, N]  source
    y_ptr         *T[N, M]  destination
    M, N          int       rows and columns of x
    stride_xm     int       elements from one row of x to the next
    stride_xn     int       elements from one column of x to the next
    stride_yn     int       elements from one row of y to the next
    stride_ym     int       elements from one column of y to the next
    BLOCK_SIZE_M  int       rows of x in a tile, a power of two
    BLOCK_SIZE_N  int       columns of x in a tile, a power of two
    """
    pid = tl.program_id(0).to(tl.int64)
    tiles_n = tl.cdiv(N, BLOCK_SIZE_N)
    pid_m = pid // tiles_n
    pid_n = pid % tiles_n

    # int64, as pid is: a row number times a stride can pass 2^31.
    offs_m = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)

    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn
    x_mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tile = tl.load(x_ptrs, mask=x_mask)

    # The tile keeps its shape; only the strides change. Element (m, n) of it goes to row n, column m of y.
    y_ptrs = y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :] * stride_yn

    # The tile still has the shape of x's tile, so the same lanes exist.
    tl.store(y_ptrs, tile, mask=x_mask)


def transpose(x: torch.Tensor) -> torch.Tensor:
    """Return the transpose of x as a new contiguous tensor.

    Accepted: a 2D tensor of any shape, strides (also expanded or sliced) and dtype that Triton has; it may be empty.
    Refused: any other number of dimensions (ValueError).
    """
    if x.dim() != 2:
        raise ValueError(f"x must have 2 dimensions, not {x.dim()} (shape {tuple(x.shape)})")
    M, N = x.shape
    # Not empty_like: it would keep the swapped strides of an x that is itself a transposed view.
    y = torch.empty_like(x.t())
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch

    block_size_m, block_size_n = 64, 64

    # One axis, because the second and third axis of a grid end at 65535.
    grid = (triton.cdiv(M, block_size_m) * triton.cdiv(N, block_size_n),)
    transpose_kernel[grid](
        x,
        y,
        M,
        N,
        x.stride(0),
        x.stride(1),
        M,
        1,
        BLOCK_SIZE_M=block_size_m,
        BLOCK_SIZE_N=block_size_n,
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
