# expect: K403
# The offsets of bias are taken in 32 bits, which a large stride leaves.
"""Layer norm, mended in the order of the layers: first what it computes, then how exactly, then how fast."""

import torch
import triton
import triton.language as tl

# A program holds a whole row in registers.
LONGEST_ROW = 65536

# The first axis of a grid ends there.
MOST_ROWS = 2**31 - 1


@triton.jit
def layer_norm_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    y_ptr,
    N,
    eps,
    stride_xm,
    stride_xn,
    stride_w,
    stride_b,
    stride_ym,
    stride_yn,
    BLOCK_SIZE: tl.constexpr,
):
    """Write one row of y: y[m, n] = (x[m, n] - mean) / sqrt(variance + eps) * weight[n] + bias[n], with m's own two.

    x_ptr       *T[M, N]  rows; T is float32, float16 or bfloat16
    weight_ptr  *T[N]     one factor a column
    bias_ptr    *T[N]     one summand a column
    y_ptr       *T[M, N]  normalised rows
    N           int       columns
    eps         float     keeps constant rows from being divided by 0
    stride_xm   int       elements from one row of x to the next
    stride_xn   int       elements from one column of x to the next
    stride_w    int       elements from one factor to the next
    stride_b    int       elements from one summand to the next
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

    # The mean of the row.
    x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / N

    # Its variance, and one over the deviation.
    # Lanes past the end hold 0 - mean, whose square would count: they must be 0 after the subtraction.
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / N
    scale = tl.rsqrt(variance + eps)

    # The normalised row, with the weight and the bias of each column.
    weight = tl.load(weight_ptr + offs_n * stride_w, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + offs_n.to(tl.int32) * stride_b, mask=mask).to(tl.float32)  # here
    y = centred * scale * weight + bias
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=mask)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    """Return each row of x with mean 0 and variance 1, times weight, plus bias, as a new contiguous tensor.

    Accepted: x of shape (M, N) with at most 65536 columns, weight and bias of shape (N,), all float32, float16 or
    bfloat16, of one dtype and on one device, with any strides; x may be empty. eps is above 0. Everything is computed
    in float32 and rounded once, to the dtype of x. The variance is that of the row itself: over N, not N - 1.
    Refused: other shapes, longer rows, more rows than a grid has programs, two devices or another eps (ValueError);
    other dtypes, or two of them (TypeError).
    """
    if x.dim() != 2 or weight.shape != x.shape[1:] or bias.shape != x.shape[1:]:
        shapes = f"{tuple(x.shape)}, {tuple(weight.shape)} and {tuple(bias.shape)}"
        raise ValueError(f"x, weight and bias must be (M, N), (N,) and (N,), not {shapes}")
    if not x.device == weight.device == bias.device:
        raise ValueError(f"all must be on the same device, not on {x.device}, {weight.device} and {bias.device}")
    if not eps > 0:
        raise ValueError(f"eps must be above 0, not {eps}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if not x.dtype == weight.dtype == bias.dtype:
        raise TypeError(f"all must have the same dtype, not {x.dtype}, {weight.dtype} and {bias.dtype}")
    M, N = x.shape
    if N > LONGEST_ROW:
        raise ValueError(f"x must have at most {LONGEST_ROW} columns, not {N}: a program holds a whole row")
    if M > MOST_ROWS:
        raise ValueError(f"x must have at most {MOST_ROWS} rows, not {M}: each takes a program")
    # Not empty_like: it would keep the swapped strides of an x that is a transposed view.
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch
    block_size = triton.next_power_of_2(N)

    # About 32 elements a thread: a longer row brings more threads, not more registers for each.
    num_warps = min(max(block_size // 1024, 4), 32)
    layer_norm_kernel[(M,)](
        x,
        weight,
        bias,
        y,
        N,
        eps,
        x.stride(0),
        x.stride(1),
        weight.stride(0),
        bias.stride(0),
        y.stride(0),
        y.stride(1),
        BLOCK_SIZE=block_size,
        num_warps=num_warps,
    )
    return y


def first_red(fault: str) -> str | None:
    """Predict the stage of the check that is the first to be red if the kernel has this fault and no other.

    fault is one of these names. Answer "memory", "values", "numerics" or "speed".
    "mean over the block"      the sum of the row is divided by BLOCK_SIZE
    "padded lanes counted"     x - mean is squared and added up without a mask; other is 0.0
    "scale overwritten"        the weight is loaded into the name that held one over the deviation
    "one-pass variance"        the variance is the mean of the squares less the square of the mean, in float32
    "stride of x for weight"   the weight's addresses go on by x's stride from column to column
    "row loaded again"         the output is made of a second load of the row
    """
    # A wrong stride leads out of the weight before a value is compared. What is right for easy rows and wrong for hard
    # ones is numerics; what is right for all rows is a matter of time.
    layers = {"stride of x for weight": "memory", "one-pass variance": "numerics", "row loaded again": "speed"}
    return layers.get(fault, "values")


def hides(first: str, second: str) -> bool | None:
    """Predict whether one fault hides another: whether results are the same with `first` alone and with both.

    first and second are names as in `first_red`. Results are compared bit by bit, on a row that needs a mask and whose
    mean is far from 0.
    """
    # Without the scale, nothing that only the variance feels can be seen.
    if first == "scale overwritten":
        return second in ("padded lanes counted", "one-pass variance")
    # The mean of the squares has no lanes that could count: 0 squared is 0.
    return first == "one-pass variance" and second == "padded lanes counted"
