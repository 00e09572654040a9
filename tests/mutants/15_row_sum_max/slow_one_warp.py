# expect: K805
# One warp for each row: a long row does not fit its registers.
"""Row sum and row maximum: two reductions of a row that is loaded once."""

import torch
import triton
import triton.language as tl

# A program holds a whole row in registers; longer rows need the loop of kata 18.
LONGEST_ROW = 65536

# The first axis of a grid ends there.
MOST_ROWS = 2**31 - 1


@triton.jit
def row_sum_max_kernel(
    x_ptr,
    s_ptr,
    m_ptr,
    N,
    stride_xm,
    stride_xn,
    BLOCK_SIZE: tl.constexpr,
):
    """Reduce one row of x to its sum and its maximum.

    x_ptr       *T[M, N]  matrix; T is float32, float16 or bfloat16
    s_ptr       *T[M]     sum of each row, contiguous
    m_ptr       *T[M]     maximum of each row, contiguous
    N           int       columns
    stride_xm   int       elements from one row of x to the next
    stride_xn   int       elements from one column of x to the next
    BLOCK_SIZE  int       lanes of a program, a power of two and at least N
    """
    # int64: a row or column number times a stride can pass 2^31.
    row = tl.program_id(0).to(tl.int64)
    offs_n = tl.arange(0, BLOCK_SIZE).to(tl.int64)
    mask = offs_n < N
    x_ptrs = x_ptr + row * stride_xm + offs_n * stride_xn

    # 0 is the identity of the sum: lanes past the end add nothing.
    x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
    row_sum = tl.sum(x, axis=0)

    # -inf is the identity of the maximum: 0 would be the largest number of a negative row.
    row_max = tl.max(tl.where(mask, x, -float("inf")), axis=0)

    # One number a program, so one address and no mask. The store rounds to the dtype of s and m.
    tl.store(s_ptr + row, row_sum)
    tl.store(m_ptr + row, row_max)


def row_sum_max(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the sum and the maximum of each row of x, as two new tensors of shape (M,) and of x's dtype.

    Accepted: x of shape (M, N) with 1 to 65536 columns, float32, float16 or bfloat16, with any strides; M may be 0.
    Sums are kept in float32 and rounded once. x holds no NaN: what becomes of one is not promised.
    Refused: another number of dimensions, no columns, longer rows, or more rows than a grid has programs
    (ValueError); another dtype (TypeError).
    """
    if x.dim() != 2:
        raise ValueError(f"x must have 2 dimensions, not {x.dim()} (shape {tuple(x.shape)})")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    M, N = x.shape
    if not 1 <= N <= LONGEST_ROW:
        raise ValueError(f"x must have 1 to {LONGEST_ROW} columns, not {N}: nothing has no maximum")
    if M > MOST_ROWS:
        raise ValueError(f"x must have at most {MOST_ROWS} rows, not {M}: each takes a program")
    s = torch.empty(M, dtype=x.dtype, device=x.device)
    m = torch.empty(M, dtype=x.dtype, device=x.device)
    if M == 0:
        return s, m  # nothing to compute, nothing to launch

    block_size = triton.next_power_of_2(N)

    # About 32 elements a thread: a longer row brings more threads, not more registers for each.
    num_warps = 1
    row_sum_max_kernel[(M,)](
        x,
        s,
        m,
        N,
        x.stride(0),
        x.stride(1),
        BLOCK_SIZE=block_size,
        num_warps=num_warps,
    )
    return s, m


def exchanges(kernel: str, num_warps: int) -> tuple[bool, bool, bool] | None:
    """Predict how the threads of a program exchange values: by shuffles, at barriers, through shared memory.

    kernel: "copy", "sum" or "max" of a block of 1024 numbers, one program. num_warps: how many warps of 32 threads
    share the block. Returns (shuffles, barriers, shared memory), True for what the compiled program contains.
    """
    reduces = kernel != "copy"
    # A warp's threads read each other's registers. Only warps among themselves must meet, in shared memory.
    across_warps = reduces and num_warps > 1
    return reduces, across_warps, across_warps
