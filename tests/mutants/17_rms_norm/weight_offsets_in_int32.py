# expect: K403
# The offsets of weight are taken in 32 bits, which a large stride leaves.
"""RMS norm: one pass over a row for its mean square, a second one that scales it."""

import torch
import triton
import triton.language as tl

# Elements of a row that a program holds at a time; longer rows take several chunks.
LONGEST_CHUNK = 4096

# The first axis of a grid ends there.
MOST_ROWS = 2**31 - 1


@triton.jit
def rms_norm_kernel(
    x_ptr,
    weight_ptr,
    y_ptr,
    N,
    eps,
    stride_xm,
    stride_xn,
    stride_w,
    stride_ym,
    stride_yn,
    BLOCK_SIZE: tl.constexpr,
):
    """Write one row of y: y[m, n] = x[m, n] / sqrt(mean of x[m]^2 + eps) * weight[n].

    x_ptr       *T[M, N]  rows; T is float32, float16 or bfloat16
    weight_ptr  *W[N]     one factor a column; W is T or float32
    y_ptr       *T[M, N]  scaled rows
    N           int       columns
    eps         float     keeps rows of zeros from being divided by 0
    stride_xm   int       elements from one row of x to the next
    stride_xn   int       elements from one column of x to the next
    stride_w    int       elements from one factor to the next
    stride_ym   int       elements from one row of y to the next
    stride_yn   int       elements from one column of y to the next
    BLOCK_SIZE  int       elements of a chunk, a power of two
    """
    # int64: a row or column number times a stride can pass 2^31.
    row = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK_SIZE).to(tl.int64)
    x_row = x_ptr + row * stride_xm
    y_row = y_ptr + row * stride_ym

    # First pass. Each lane adds up the squares it meets; the lanes are added once, after the loop.
    squares = tl.zeros((BLOCK_SIZE,), dtype=tl.float32)
    for start in range(0, N, BLOCK_SIZE):
        offs_n = start + offs
        mask = offs_n < N
        # 0 is the identity of the sum. In float16 a square would end at 65504: widen before multiplying.
        # evict_last asks the cache to keep it: the second pass wants it again.
        x = tl.load(x_row + offs_n * stride_xn, mask=mask, other=0.0, eviction_policy="evict_last").to(tl.float32)
        squares += x * x

    # Over the N elements that exist, however many lanes took part.
    mean_square = tl.sum(squares, axis=0) / N
    scale = tl.rsqrt(mean_square + eps)

    # Second pass: the row is read again, most of it from the cache.
    for start in range(0, N, BLOCK_SIZE):
        offs_n = start + offs
        mask = offs_n < N
        # The weight is widened, the product rounded: once, at the end.
        x = tl.load(x_row + offs_n * stride_xn, mask=mask).to(tl.float32)
        weight = tl.load(weight_ptr + offs_n.to(tl.int32) * stride_w, mask=mask).to(tl.float32)  # here
        y = x * scale * weight
        tl.store(y_row + offs_n * stride_yn, y.to(y_ptr.dtype.element_ty), mask=mask)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Return each row of x over its root mean square, times weight, as a new contiguous tensor of x's dtype.

    Accepted: x of shape (M, N), float32, float16 or bfloat16, and weight of shape (N,), of x's dtype or float32, on one
    device, with any strides; x may be empty. eps is above 0. Everything is computed in float32 and rounded once.
    Refused: other shapes, more rows than a grid has programs, two devices or another eps (ValueError); other dtypes
    (TypeError).
    """
    if x.dim() != 2 or weight.dim() != 1 or weight.shape[0] != x.shape[1]:
        raise ValueError(f"x and weight must be (M, N) and (N,), not {tuple(x.shape)} and {tuple(weight.shape)}")
    if x.device != weight.device:
        raise ValueError(f"x and weight must be on the same device, not on {x.device} and {weight.device}")
    if not eps > 0:
        raise ValueError(f"eps must be above 0, not {eps}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if weight.dtype not in (x.dtype, torch.float32):
        raise TypeError(f"weight must be {x.dtype} as x is, or float32, not {weight.dtype}")
    M, N = x.shape
    if M > MOST_ROWS:
        raise ValueError(f"x must have at most {MOST_ROWS} rows, not {M}: each takes a program")
    # Not empty_like: it would keep the swapped strides of an x that is a transposed view.
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch
    # Two chunks where the row allows it: while one is added up, the next is on its way.
    block_size = min(max(triton.next_power_of_2(N) // 2, 128), LONGEST_CHUNK)
    num_warps = min(max(block_size // 256, 4), 16)
    rms_norm_kernel[(M,)](
        x,
        weight,
        y,
        N,
        eps,
        x.stride(0),
        x.stride(1),
        weight.stride(0),
        y.stride(0),
        y.stride(1),
        BLOCK_SIZE=block_size,
        num_warps=num_warps,
    )
    return y


def eager_over_fused(way: str, itemsize: int) -> float | None:
    """Predict how many times the bytes of one fused kernel an RMS norm in eager PyTorch moves, for a large x.

    A fused kernel reads x once and writes y once. itemsize: bytes an element of x, y and weight; 4 is float32. Vectors
    as long as a row or a column count nothing. way is one of these names.
    "in float32"      h = x.float(); h = h * rsqrt(h.pow(2).mean(-1, keepdim=True) + eps); y = weight * h.to(x.dtype)
    "in x's dtype"    y = x * rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight
    "library"         y = functional.rms_norm(x, x.shape[-1:], weight, eps)
    """
    if way == "library":
        # One kernel, written by someone else.
        return 1.0
    # pow reads and writes, mean reads, the product with the scale reads and writes: all of this in the dtype of h.
    width = 4 if way == "in float32" else itemsize
    moved = 5 * width
    if width != itemsize:
        # The casts to float32 and back. A tensor that is float32 already is not cast, so nothing moves.
        moved += 2 * (itemsize + width)
    # The product with the weight.
    moved += 2 * itemsize
    return moved / (2 * itemsize)
