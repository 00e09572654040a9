# expect: K403
# The offsets of bias are taken in 32 bits, which a large stride leaves.
"""Bias add: one vector, broadcast over the rows of a tile."""

import torch
import triton
import triton.language as tl

# The sides differ on purpose: a vector along the wrong side does not fit, instead of fitting by chance.
BLOCK_SIZE_M = 32
BLOCK_SIZE_N = 128


@triton.jit
def bias_add_kernel(
    x_ptr,
    bias_ptr,
    y_ptr,
    M,
    N,
    stride_xm,
    stride_xn,
    stride_bn,
    stride_ym,
    stride_yn,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
):
    """Add bias to each row of one tile: y[m, n] = x[m, n] + bias[n].

    x_ptr         *T[M, N]  matrix; T is float32, float16 or bfloat16
    bias_ptr      *T[N]     one number a column
    y_ptr         *T[M, N]  sum
    M, N          int       rows and columns
    stride_xm     int       elements from one row of x to the next
    stride_xn     int       elements from one column of x to the next
    stride_bn     int       elements from one number of bias to the next
    stride_ym     int       elements from one row of y to the next
    stride_yn     int       elements from one column of y to the next
    BLOCK_SIZE_M  int       rows in a tile, a power of two
    BLOCK_SIZE_N  int       columns in a tile, a power of two
    """
    pid = tl.program_id(0).to(tl.int64)
    tiles_n = tl.cdiv(N, BLOCK_SIZE_N)
    pid_m = pid // tiles_n
    pid_n = pid % tiles_n

    # int64, as pid is: a row or column number times a stride can pass 2^31.
    offs_m = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)

    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tile = tl.load(x_ptrs, mask=mask)

    # A column's number is the number's place in bias, whatever the row.
    bias_ptrs = bias_ptr + offs_n.to(tl.int32) * stride_bn  # here

    # Only the columns matter here: bias has no rows that could end.
    mask_n = offs_n < N
    bias = tl.load(bias_ptrs, mask=mask_n)

    # As a row of one, bias broadcasts over the rows of the tile.
    y = tile + bias[None, :]
    y_ptrs = y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :] * stride_yn
    tl.store(y_ptrs, y, mask=mask)


def bias_add(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return x with bias added to each of its rows, as a new contiguous tensor of x's dtype.

    Accepted: x of shape (M, N) and bias of shape (N,), of one dtype (float32, float16 or bfloat16) and on one device,
    both with any strides, also expanded (stride 0) or sliced; x may be empty.
    Refused: other shapes, even if they could be broadcast, or two devices (ValueError); dtypes that differ or are
    none of the three (TypeError).
    """
    if x.dim() != 2 or bias.dim() != 1 or bias.shape[0] != x.shape[1]:
        raise ValueError(f"x and bias must be (M, N) and (N,), not {tuple(x.shape)} and {tuple(bias.shape)}")
    if x.device != bias.device:
        raise ValueError(f"x and bias must be on the same device, not on {x.device} and {bias.device}")
    if x.dtype != bias.dtype or x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x and bias must both be float32, float16 or bfloat16, not {x.dtype} and {bias.dtype}")
    M, N = x.shape
    # Not empty_like: it would keep the swapped strides of an x that is a transposed view.
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch
    # One axis, because the second and third axis of a grid end at 65535.
    grid = (triton.cdiv(M, BLOCK_SIZE_M) * triton.cdiv(N, BLOCK_SIZE_N),)
    bias_add_kernel[grid](
        x,
        bias,
        y,
        M,
        N,
        x.stride(0),
        x.stride(1),
        bias.stride(0),
        y.stride(0),
        y.stride(1),
        BLOCK_SIZE_M=BLOCK_SIZE_M,
        BLOCK_SIZE_N=BLOCK_SIZE_N,
    )
    return y


def wrong_axis(M: int, N: int, constant: bool) -> str | None:
    """Predict what becomes of a kernel that takes the wrong axis: it adds bias[m], for all m < M, instead of bias[n].

    M, N: the shape of x; bias has N numbers. constant: whether they are all the same, as in a layer whose bias is
    still zero. Returns "passes" if every element is right and every access inside its tensor, "out of bounds" if the
    kernel reads outside bias, and "wrong values" if it does neither.
    """
    if M > N:
        return "out of bounds"
    # The numbers added are those of rows 0 to M - 1 where those of columns 0 to N - 1 belong.
    return "passes" if constant or N == 1 else "wrong values"
