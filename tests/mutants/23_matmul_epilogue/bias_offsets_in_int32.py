# expect: K403
# The offsets of bias are taken in 32 bits, which a large stride leaves.
"""A linear layer in one kernel: bias and activation are applied while the product is still in registers."""

import torch
import triton
import triton.language as tl

# From large to small: (BLOCK_SIZE_M, BLOCK_SIZE_N, bytes along K, num_warps, num_stages).
# A large tile uses each loaded value often; a small one gives a small y enough programs to keep the chip busy.
TILES = (
    (128, 256, 128, 8, 3),
    (64, 128, 128, 4, 3),
    (32, 64, 256, 4, 3),
)
# About one program for each multiprocessor of a large GPU.
ENOUGH_PROGRAMS = 128
# Rows of tiles in a group. With 16 columns beside them they are about one program for each multiprocessor.
GROUP_SIZE_M = 8
ACTIVATIONS = ("none", "relu", "silu", "gelu")
PRECISIONS = ("ieee", "tf32")


@triton.jit
def linear_act_kernel(
    x_ptr,
    w_ptr,
    bias_ptr,
    y_ptr,
    M,
    N,
    K,
    stride_xm,
    stride_xk,
    stride_wk,
    stride_wn,
    stride_bn,
    stride_ym,
    stride_yn,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Compute one tile of y = activation(x @ w + bias).

    x_ptr         *T[M, K]  inputs, a row each; T is float16, bfloat16 or float32
    w_ptr         *T[K, N]  weights
    bias_ptr      *T[N]     one number a column
    y_ptr         *T[M, N]  outputs
    M, N, K       int       sizes
    stride_xm     int       elements from one row of x to the next
    stride_xk     int       elements from one column of x to the next
    stride_wk     int       elements from one row of w to the next
    stride_wn     int       elements from one column of w to the next
    stride_bn     int       elements from one number of bias to the next
    stride_ym     int       elements from one row of y to the next
    stride_yn     int       elements from one column of y to the next
    BLOCK_SIZE_M  int       rows of a tile of y, a power of two
    BLOCK_SIZE_N  int       columns of a tile of y, a power of two
    BLOCK_SIZE_K  int       step along K, a power of two and at least 16
    GROUP_SIZE_M  int       rows of tiles that a group of programs takes together
    ACTIVATION    str       one of ACTIVATIONS
    PRECISION     str       one of PRECISIONS; it matters to float32 only
    """
    # The order of kata 22.
    pid = tl.program_id(0).to(tl.int64)
    tiles_m = tl.cdiv(M, BLOCK_SIZE_M)
    tiles_n = tl.cdiv(N, BLOCK_SIZE_N)
    group = pid // (GROUP_SIZE_M * tiles_n)
    first_row = group * GROUP_SIZE_M
    rows = min(tiles_m - first_row, GROUP_SIZE_M)
    place = pid % (GROUP_SIZE_M * tiles_n)
    pid_m = first_row + place % rows
    pid_n = place // rows

    # int64: any of these times a stride can pass 2^31.
    offs_m = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    offs_k = tl.arange(0, BLOCK_SIZE_K).to(tl.int64)
    mask_m = offs_m < M
    mask_n = offs_n < N

    # The first tile of each operand along K.
    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk
    w_ptrs = w_ptr + offs_k[:, None] * stride_wk + offs_n[None, :] * stride_wn

    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_SIZE_K)):
        # 0 is the identity of the sum that the product adds to.
        mask_k = offs_k < K - step * BLOCK_SIZE_K
        x = tl.load(x_ptrs, mask=mask_m[:, None] & mask_k[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=mask_k[:, None] & mask_n[None, :], other=0.0)

        # Without a word of ours, float32 would be shortened to tf32.
        acc = tl.dot(x, w, acc, input_precision=PRECISION)

        # A step times a stride can pass 2^31 as well.
        x_ptrs += BLOCK_SIZE_K * tl.cast(stride_xk, tl.int64)
        w_ptrs += BLOCK_SIZE_K * tl.cast(stride_wk, tl.int64)

    # Once a tile, and in float32: what is narrower than that comes last.
    bias = tl.load(bias_ptr + offs_n.to(tl.int32) * stride_bn, mask=mask_n, other=0.0).to(tl.float32)  # here
    acc += bias[None, :]

    # The compiler knows which it is: the others leave no trace in the binary.
    if ACTIVATION == "relu":
        # Not tl.maximum, which would hide a NaN.
        acc = tl.where(acc < 0.0, 0.0, acc)
    elif ACTIVATION == "silu":
        acc = acc / (1.0 + tl.exp(-acc))
    elif ACTIVATION == "gelu":
        # 0.7071... is the square root of a half.
        acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))

    # Rounded once, after all of it.
    y_ptrs = y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :] * stride_yn
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n[None, :])


def launch_parameters(M: int, N: int, itemsize: int) -> dict[str, int]:
    """Choose the largest tile that still cuts an M x N product into enough programs, else the smallest tile."""
    fitting = (tile for tile in TILES if triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1]) >= ENOUGH_PROGRAMS)
    block_size_m, block_size_n, bytes_along_k, num_warps, num_stages = next(fitting, TILES[-1])
    return {
        "BLOCK_SIZE_M": block_size_m,
        "BLOCK_SIZE_N": block_size_n,
        # In bytes, because shared memory is counted in bytes: a float32 tile is half as long.
        "BLOCK_SIZE_K": bytes_along_k // itemsize,
        "num_warps": num_warps,
        "num_stages": num_stages,
    }


def linear_act(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor, activation: str, precision: str = "ieee"
) -> torch.Tensor:
    """Return activation(x @ w + bias) as a new contiguous tensor of x's dtype. Everything in between is float32.

    | argument   | accepted                             | refused                   | exception  |
    |------------|--------------------------------------|---------------------------|------------|
    | x          | (M, K), any strides, also empty      | other numbers of axes     | ValueError |
    |            | float16, bfloat16 or float32         | other dtypes              | TypeError  |
    | w          | (K, N), any strides, also empty      | another shape             | ValueError |
    | bias       | (N,), any stride, also expanded      | another shape             | ValueError |
    | w, bias    | the device of x                      | another device            | ValueError |
    |            | the dtype of x                       | another dtype             | TypeError  |
    | activation | "none", "relu", "silu" or "gelu",    | any other                 | ValueError |
    |            | gelu by the error function           |                           |            |
    | precision  | "ieee" or "tf32", of float32 factors | any other                 | ValueError |
    """
    if x.dim() != 2 or w.dim() != 2 or x.shape[1] != w.shape[0] or bias.shape != w.shape[1:]:
        shapes = f"{tuple(x.shape)}, {tuple(w.shape)} and {tuple(bias.shape)}"
        raise ValueError(f"x, w and bias must be (M, K), (K, N) and (N,), not {shapes}")
    if not x.device == w.device == bias.device:
        raise ValueError(f"x, w and bias must be on one device, not on {x.device}, {w.device} and {bias.device}")
    if not x.dtype == w.dtype == bias.dtype or x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        raise TypeError(
            f"x, w and bias must all be float16, bfloat16 or float32, not {x.dtype}, {w.dtype} and {bias.dtype}"
        )
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, not {activation!r}")
    if precision not in PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")
    M, K = x.shape
    N = w.shape[1]
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch
    parameters = launch_parameters(M, N, x.element_size())
    # One axis, because the second and third axis of a grid end at 65535.
    tiles_m = triton.cdiv(M, parameters["BLOCK_SIZE_M"])
    tiles_n = triton.cdiv(N, parameters["BLOCK_SIZE_N"])
    linear_act_kernel[(tiles_m * tiles_n,)](
        x,
        w,
        bias,
        y,
        M,
        N,
        K,
        x.stride(0),
        x.stride(1),
        w.stride(0),
        w.stride(1),
        bias.stride(0),
        y.stride(0),
        y.stride(1),
        GROUP_SIZE_M=GROUP_SIZE_M,
        ACTIVATION=activation,
        PRECISION=precision,
        **parameters,
    )
    return y


def bytes_saved(first: str, second: str, tokens: int, width: int, hidden: int) -> int | None:
    """Predict the bytes of DRAM traffic that one kernel saves which does `second` at the end of `first`, on its tile.

    0 if that cannot be done, because an element of the result needs more of `first` than the same element. The steps
    are those of a block of a language model, all in float16; x: (tokens, width), h: (tokens, hidden).
    "norm"     rms_norm(x)                      "scores"   norm @ keys.t(), (tokens, tokens)
    "gate"     norm @ w_gate, like h            "scale"    scores * 0.125
    "up"       norm @ w_up, like h              "softmax"  softmax(scale) of each row
    "silu"     silu(gate)                       "mix"      softmax @ values, like x
    "product"  silu * up                        "bias"     down + a row of numbers
    "down"     product @ w_down, like x         "residual" bias + x
    """
    # Products, norms and softmax need whole rows of what they read.
    if second not in ("silu", "product", "bias", "residual", "scale"):
        return 0
    sizes = {
        "gate": tokens * hidden,
        "up": tokens * hidden,
        "silu": tokens * hidden,
        "down": tokens * width,
        "bias": tokens * width,
        "scores": tokens * tokens,
    }
    # The result of `first` is neither written nor read again, at two bytes an element.
    return 2 * 2 * sizes[first]
