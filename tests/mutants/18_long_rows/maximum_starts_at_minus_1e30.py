# expect: K702
# The maximum starts at a large negative number, which is no identity: rows may lie below it.
"""Softmax of rows of any length: the maximum and the sum are kept up to date from chunk to chunk."""

import torch
import triton
import triton.language as tl

# Elements of a chunk: enough bytes on their way to keep memory busy where there are few rows.
LONGEST_CHUNK = 8192

# The first axis of a grid ends there.
MOST_ROWS = 2**31 - 1


@triton.jit
def softmax_long_kernel(
    x_ptr,
    y_ptr,
    N,
    stride_xm,
    stride_xn,
    stride_ym,
    stride_yn,
    BLOCK_SIZE: tl.constexpr,
):
    """Write the softmax of one row of x to the same row of y, chunk by chunk.

    x_ptr       *T[M, N]  logits; T is float32, float16 or bfloat16
    y_ptr       *T[M, N]  probabilities
    N           int       columns
    stride_xm   int       elements from one row of x to the next
    stride_xn   int       elements from one column of x to the next
    stride_ym   int       elements from one row of y to the next
    stride_yn   int       elements from one column of y to the next
    BLOCK_SIZE  int       elements of a chunk, a power of two
    """
    # int64: a row or column number times a stride can pass 2^31.
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE).to(tl.int64)
    x_row = x_ptr + row * stride_xm
    y_row = y_ptr + row * stride_ym

    # First pass. row_max is the maximum so far, row_sum the sum of exp(x - row_max) so far.
    row_max = -1e30
    row_sum = 0.0
    for start in range(0, N, BLOCK_SIZE):
        offs_n = start + offs
        # -inf is the identity of the maximum, and exp turns it into 0, the identity of the sum.
        x = tl.load(x_row + offs_n * stride_xn, mask=offs_n < N, other=-float("inf")).to(tl.float32)

        new_max = tl.maximum(row_max, tl.max(x, axis=0))

        # Nothing but -inf so far: -inf - (-inf) would be NaN, so 0 is taken away instead.
        shift = tl.where(new_max == -float("inf"), 0.0, new_max)
        # What was summed under the old maximum is brought under the new one, before anything is added.
        row_sum = row_sum * tl.exp(row_max - shift) + tl.sum(tl.exp(x - shift), axis=0)
        row_max = new_max

    # Second pass: the row is read again, now that its maximum and its sum are known.
    for start in range(0, N, BLOCK_SIZE):
        offs_n = start + offs
        mask = offs_n < N
        x = tl.load(x_row + offs_n * stride_xn, mask=mask).to(tl.float32)
        y = tl.exp(x - row_max) / row_sum
        tl.store(y_row + offs_n * stride_yn, y.to(y_ptr.dtype.element_ty), mask=mask)


def softmax_long(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of each row of x as a new contiguous tensor of x's dtype.

    Accepted: a 2D tensor of float32, float16 or bfloat16 with any strides and any number of columns; it may be empty.
    Refused: another number of dimensions, or more rows than a grid has programs (ValueError); another dtype
    (TypeError).
    """
    if x.dim() != 2:
        raise ValueError(f"x must have 2 dimensions, not {x.dim()} (shape {tuple(x.shape)})")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    M, N = x.shape
    if M > MOST_ROWS:
        raise ValueError(f"x must have at most {MOST_ROWS} rows, not {M}: each takes a program")
    # Not empty_like: it would keep the swapped strides of an x that is a transposed view.
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch
    block_size = min(triton.next_power_of_2(N), LONGEST_CHUNK)
    num_warps = min(max(block_size // 512, 4), 16)
    softmax_long_kernel[(M,)](
        x,
        y,
        N,
        x.stride(0),
        x.stride(1),
        y.stride(0),
        y.stride(1),
        BLOCK_SIZE=block_size,
        num_warps=num_warps,
    )
    return y


def rescalings(maxima: list[float]) -> int | None:
    """Predict how many chunks change a sum that is not 0, because their maximum is above all before them.

    maxima: the largest number of each chunk of a row, in order; -inf for a chunk of nothing but -inf.
    """
    highest, count = -float("inf"), 0
    for value in maxima:
        # The first finite maximum rescales a sum of 0: that changes nothing.
        count += value > highest > -float("inf")
        highest = max(highest, value)
    return count


def bytes_of_x(M: int, N: int, block_size: int, itemsize: int) -> int | None:
    """Predict the bytes of x that softmax_long asks for in all.

    block_size: elements of a chunk. itemsize: bytes an element.
    """
    return 2 * M * N * itemsize
