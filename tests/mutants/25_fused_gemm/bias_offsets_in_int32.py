# expect: K403
# The offsets of bias are taken in 32 bits, which a large stride leaves.
"""A fused linear layer as it could go into production: activation(x @ w + bias), in one launch, tuned to its sizes."""

import torch
import triton
import triton.language as tl


def fitting(configurations: list[triton.Config], named: dict, **_: object) -> list[triton.Config]:
    """Keep what fits into the chip's shared memory and is hardly larger than y; the first if nothing else is left."""
    driver = triton.runtime.driver.active
    shared_bytes = driver.utils.get_device_properties(driver.get_current_device())["max_shared_mem"]
    kept = []
    for configuration in configurations:
        m, n, k = (configuration.kwargs[f"BLOCK_SIZE_{axis}"] for axis in "MNK")
        # Each stage holds a tile of x and one of w.
        fits = (m + n) * k * named["x_ptr"].element_size() * configuration.num_stages <= shared_bytes
        small_enough = m < 2 * max(named["M"], 16) and n < 2 * max(named["N"], 64)
        if fits and small_enough:
            kept.append(configuration)
    return kept or configurations[:1]


# From small to large: (BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K, GROUP_SIZE_M, num_warps, num_stages). The first fits
# any chip.
TILES = (
    (16, 64, 64, 8, 4, 3),
    (16, 32, 128, 8, 4, 8),
    (64, 64, 64, 8, 4, 3),
    (64, 128, 128, 8, 4, 3),
    (128, 128, 64, 8, 4, 3),
    (128, 256, 64, 16, 8, 4),
)
CONFIGURATIONS = [
    triton.Config(
        {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": group},
        num_warps=warps,
        num_stages=stages,
    )
    for m, n, k, group, warps, stages in TILES
]
# What the best choice depends on. Triton adds the dtypes by itself.
KEY = ["M", "N", "K", "stride_xm", "stride_xk", "stride_wk", "stride_wn"]


@triton.autotune(CONFIGURATIONS, key=KEY, prune_configs_by={"early_config_prune": fitting})
@triton.jit
def fused_linear_kernel(
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
    HAS_BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
):
    """Compute one tile of y = activation(x @ w + bias).

    x_ptr         *T[M, K]      input; T is float16, bfloat16 or float32
    w_ptr         *T[K, N]      weight
    bias_ptr      *T[N] | None  one number a column
    y_ptr         *T[M, N]      output
    M, N, K       int           sizes
    stride_xm     int           elements from one row of x to the next
    stride_xk     int           elements from one column of x to the next
    stride_wk     int           elements from one row of w to the next
    stride_wn     int           elements from one column of w to the next
    stride_bn     int           elements from one number of bias to the next
    stride_ym     int           elements from one row of y to the next
    stride_yn     int           elements from one column of y to the next
    HAS_BIAS      bool          whether there is a bias to add
    ACTIVATION    str           "none", "relu", "gelu" or "silu"
    BLOCK_SIZE_M  int           rows of a tile of y, a power of two
    BLOCK_SIZE_N  int           columns of a tile of y, a power of two
    BLOCK_SIZE_K  int           step along K, a power of two and at least 16
    GROUP_SIZE_M  int           rows of tiles that are computed together, so that L2 holds what they share
    """
    pid = tl.program_id(0).to(tl.int64)
    tiles_m = tl.cdiv(M, BLOCK_SIZE_M)
    tiles_n = tl.cdiv(N, BLOCK_SIZE_N)
    # The order of kata 22: groups of rows of tiles, of which the last may be shorter.
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
    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + offs_k[None, :] * stride_xk
    w_ptrs = w_ptr + offs_k[:, None] * stride_wk + offs_n[None, :] * stride_wn

    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_SIZE_K)):
        # 0 is the identity of the sum that the product adds to.
        mask_k = offs_k < K - step * BLOCK_SIZE_K
        x = tl.load(x_ptrs, mask=mask_m[:, None] & mask_k[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=mask_k[:, None] & mask_n[None, :], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="tf32")
        x_ptrs += BLOCK_SIZE_K * tl.cast(stride_xk, tl.int64)
        w_ptrs += BLOCK_SIZE_K * tl.cast(stride_wk, tl.int64)

    # The epilogue: in float32, once, while the tile is still in registers.
    if HAS_BIAS:
        bias = tl.load(bias_ptr + offs_n.to(tl.int32) * stride_bn, mask=mask_n, other=0.0)  # here
        acc += bias.to(tl.float32)[None, :]
    if ACTIVATION == "relu":
        # Not tl.maximum, which would hide a NaN.
        acc = tl.where(acc < 0.0, 0.0, acc)
    elif ACTIVATION == "gelu":
        acc = 0.5 * acc * (1.0 + tl.erf(acc * 0.7071067811865476))
    elif ACTIVATION == "silu":
        acc = acc / (1.0 + tl.exp(-acc))
    y_ptrs = y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :] * stride_yn
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=mask_m[:, None] & mask_n[None, :])


def fused_linear(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, activation: str) -> torch.Tensor:
    """Return activation(x @ w + bias) as a new contiguous tensor of x's dtype.

    | argument   | accepted                                  | refused                           | exception  |
    |------------|-------------------------------------------|-----------------------------------|------------|
    | x, w       | tensors of shapes (M, K) and (K, N); any  | other shapes                      | ValueError |
    |            | size may be 0                             |                                   |            |
    |            | both float16, bfloat16 or float32         | other dtypes, or two of them;     | TypeError  |
    |            |                                           | what is no tensor                 |            |
    |            | on one device                             | on two                            | ValueError |
    |            | with any strides, each for itself         | -                                 |            |
    | bias       | None, or a tensor of shape (N,), any      | another shape or device           | ValueError |
    |            | stride, on x's device                     |                                   |            |
    |            | of x's dtype                              | another dtype; what is neither    | TypeError  |
    | activation | "none", "relu", "gelu" (with erf), "silu" | anything else                     | ValueError |

    Sums and epilogue are float32, rounded once. float32 operands are multiplied as tf32, with 10 bits.
    """
    vectors = {} if bias is None else {"bias": bias}
    for name, value in {"x": x, "w": w, **vectors}.items():
        if not isinstance(value, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, not {type(value).__name__}")
        if value.device != x.device:
            raise ValueError(f"x and {name} must be on the same device, not on {x.device} and {value.device}")
        if value.dtype != x.dtype or x.dtype not in (torch.float16, torch.bfloat16, torch.float32):
            raise TypeError(f"x and {name} must share float16, bfloat16 or float32, not {x.dtype} and {value.dtype}")
    if x.dim() != 2 or w.dim() != 2 or x.shape[1] != w.shape[0]:
        raise ValueError(f"x and w must be (M, K) and (K, N), not {tuple(x.shape)} and {tuple(w.shape)}")
    (M, K), N = x.shape, w.shape[1]
    if bias is not None and bias.shape != (N,):
        raise ValueError(f"bias must be ({N},) as w has {N} columns, not {tuple(bias.shape)}")
    if activation not in ("none", "relu", "gelu", "silu"):
        raise ValueError(f'activation must be "none", "relu", "gelu" or "silu", not {activation!r}')

    # Not empty_like or x @ w's layout: contiguous, whatever x and w are.
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch

    def grid(meta: dict[str, int]) -> tuple[int]:
        # One axis, because the second and third axis of a grid end at 65535.
        return (triton.cdiv(M, meta["BLOCK_SIZE_M"]) * triton.cdiv(N, meta["BLOCK_SIZE_N"]),)

    fused_linear_kernel[grid](
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
        0 if bias is None else bias.stride(0),
        y.stride(0),
        y.stride(1),
        HAS_BIAS=bias is not None,
        ACTIVATION=activation,
    )
    return y


# Which criteria of a production kernel each of four kernels of the ladder meets, as its solution stands.
READINESS = {
    "any size": ("vector_copy", "saxpy", "matmul"),
    "any strides": ("saxpy", "softmax", "matmul"),
    "three dtypes": ("vector_copy", "saxpy", "softmax"),
    "clear errors": ("saxpy",),
    "nothing hidden": ("vector_copy", "softmax", "matmul"),
}


def ready(kernel: str, criterion: str) -> bool | None:
    """Claim whether a kernel of the ladder meets a criterion. The check puts each claim to the test.

    kernel: "vector_copy" (kata 01), "saxpy" (06), "softmax" (16) or "matmul" (21), as its solution stands. criterion:
    "any size"        right for 0, 1 and a ragged number of elements, and for a last axis of 100000
    "any strides"     right for a transposed view, for every second column, and for rows 2^30 elements apart
    "three dtypes"    right for float32, float16 and bfloat16
    "clear errors"    None or a list in place of a tensor, and a tensor of integers or of the wrong shape or device,
                      raises a ValueError or a TypeError of the wrapper's own, before anything is launched
    "nothing hidden"  on transposed views, where it computes at all, one launch does everything: PyTorch copies nothing
    """
    return kernel in READINESS[criterion] if criterion in READINESS else None
