# expect: K602
# empty_like keeps the strides of a transposed view, and the kernel stores as if y were contiguous.
"""Row softmax in five steps that are a pattern for every reduction: load, reduce, map, reduce, store."""

import math

import torch
import triton
import triton.language as tl

# A program holds a whole row in registers; longer rows need the loop of kata 18.
LONGEST_ROW = 65536

# The first axis of a grid ends there.
MOST_ROWS = 2**31 - 1


@triton.jit
def softmax_kernel(
    x_ptr,
    y_ptr,
    N,
    stride_xm,
    stride_xn,
    stride_ym,
    stride_yn,
    BLOCK_SIZE: tl.constexpr,
):
    """Write the softmax of one row of x to the same row of y.

    x_ptr       *T[M, N]  logits; T is float32, float16 or bfloat16
    y_ptr       *T[M, N]  probabilities
    N           int       columns
    stride_xm   int       elements from one row of x to the next
    stride_xn   int       elements from one column of x to the next
    stride_ym   int       elements from one row of y to the next
    stride_yn   int       elements from one column of y to the next
    BLOCK_SIZE  int       lanes of a program, a power of two and at least N
    """
    # int64: a row or column number times a stride can pass 2^31.
    row = tl.program_id(0).to(tl.int64)
    offs_n = tl.arange(0, BLOCK_SIZE).to(tl.int64)
    mask = offs_n < N
    x_ptrs = x_ptr + row * stride_xm + offs_n * stride_xn
    y_ptrs = y_ptr + row * stride_ym + offs_n * stride_yn

    # Step 1, load.
    # -inf is the identity of the maximum, and exp turns it into 0, the identity of the sum.
    x = tl.load(x_ptrs, mask=mask, other=-float("inf")).to(tl.float32)

    # Step 2, maximum.
    x_max = tl.max(x, axis=0)

    # Step 3, subtract and exponentiate.
    numerator = tl.exp(x - x_max)

    # Step 4, sum.
    denominator = tl.sum(numerator, axis=0)

    # Step 5, divide and store.
    y = numerator / denominator
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of each row of x as a new contiguous tensor of x's dtype.

    Accepted: a 2D tensor of float32, float16 or bfloat16 with any strides and at most 65536 columns; it may be empty.
    Refused: another number of dimensions, longer rows, or more rows than a grid has programs (ValueError); another
    dtype (TypeError).
    """
    if x.dim() != 2:
        raise ValueError(f"x must have 2 dimensions, not {x.dim()} (shape {tuple(x.shape)})")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    M, N = x.shape
    if N > LONGEST_ROW:
        raise ValueError(f"x must have at most {LONGEST_ROW} columns, not {N}: a program holds a whole row")
    if M > MOST_ROWS:
        raise ValueError(f"x must have at most {MOST_ROWS} rows, not {M}: each takes a program")
    # Not empty_like: it would keep the swapped strides of an x that is a transposed view.
    y = torch.empty_like(x)
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch
    block_size = triton.next_power_of_2(N)
    # About 32 elements a thread: a longer row brings more threads, not more registers for each.
    num_warps = min(max(block_size // 1024, 4), 32)
    softmax_kernel[(M,)](
        x,
        y,
        N,
        x.stride(0),
        x.stride(1),
        N,
        1,
        BLOCK_SIZE=block_size,
        num_warps=num_warps,
    )
    return y


def smallest_breaking_logit(logits: str, kept_in: str) -> float | None:
    """Predict where a softmax without the maximum breaks: the smallest L for which the row (L, 0, 0, 0) is not finite.

    That kernel stores exp(x) / sum(exp(x)). logits is the dtype of the row, kept_in the dtype that exp's results and
    their sum are kept in: "float32", "float16" or "bfloat16". One percent is close enough.
    """
    # Only the exponentials overflow, so only the dtype they are kept in matters, not that of the logits.
    return math.log(torch.finfo(getattr(torch, kept_in)).max)
