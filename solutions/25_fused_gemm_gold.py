"""The fused linear layer of kata 25, with what lies beyond the ladder: it stands beside the vendor's library.

Three ways, by what x and w are like:
- large and laid out for it: tensor descriptors, which the chip's copy engine reads by itself, in a persistent kernel,
  whose programs begin to load the next tile while they store the last one;
- few rows: each tile is cut along K among several programs (split-K), so that enough of them pull w from memory, and
  the product is computed transposed, because tensor cores want 64 rows and take 8 columns;
- everything else: the kernel of the reference.
"""

from functools import cache

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


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
        bias = tl.load(bias_ptr + offs_n * stride_bn, mask=mask_n, other=0.0)
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


@cache
def chip(number: int) -> tuple[int, int]:
    """Multiprocessors, and bytes of shared memory a program. The driver takes a millisecond to tell: ask it once."""
    properties = triton.runtime.driver.active.utils.get_device_properties(number)
    return properties["multiprocessor_count"], properties["max_shared_mem"]


def large_fitting(configurations: list[triton.Config], named: dict, **_: object) -> list[triton.Config]:
    """Keep what fits into the chip's shared memory, with the tile of y beside the stages, and suits the size of y.

    With too few large tiles for all multiprocessors, small ones; with more, large ones in a loop. What remains differs
    by less than a tuner's noise costs where it may choose among all.
    """
    y = named["y_desc"].base
    programs, shared_bytes = chip(triton.runtime.driver.active.get_current_device())
    busy = triton.cdiv(y.shape[0], 128) * triton.cdiv(y.shape[1], 256) >= programs

    def bytes_needed(configuration: triton.Config) -> int:
        m, n, k, parts = (configuration.kwargs[name] for name in (*BLOCKS, "PARTS"))
        return y.element_size() * ((m + n) * k * configuration.num_stages + m * n // parts)

    kept = [c for c in configurations if bytes_needed(c) <= shared_bytes]
    return [c for c in kept if c.kwargs["LOOP"] == busy] or kept or configurations[:1]


def shape_descriptors(arguments: dict) -> None:
    """A descriptor knows its tile: give it that of the configuration, on both sides of a transposition."""
    m, n, k = (arguments[name] for name in BLOCKS)
    for name, tile in (("x_desc", [m, k]), ("w_desc", [k, n]), ("y_desc", [m, n // arguments["PARTS"]])):
        in_order = name == "y_desc" or arguments["X_BY_ROWS" if name == "x_desc" else "W_BY_ROWS"]
        arguments[name].block_shape = tile if in_order else tile[::-1]


BLOCKS = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K")
LARGE_CONFIGURATIONS = [
    triton.Config(
        {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": group, "PARTS": parts, "LOOP": loop},
        num_warps=warps, num_stages=stages, pre_hook=shape_descriptors,
    )
    for m, n, k, group, parts, loop, warps, stages in (
        (64, 64, 64, 8, 1, False, 4, 3),
        (64, 128, 64, 8, 1, False, 4, 7),
        (64, 128, 128, 8, 1, False, 4, 4),
        (128, 128, 64, 8, 1, True, 4, 3),
        (128, 256, 64, 16, 1, True, 8, 3),
        (128, 256, 64, 16, 2, True, 8, 4),
    )
]  # fmt: skip


@triton.jit
def activate(v, ACTIVATION: tl.constexpr):
    """Return the activation of a float32 block."""
    if ACTIVATION == "relu":
        v = tl.where(v < 0, 0.0, v)
    elif ACTIVATION == "gelu":
        v = 0.5 * v * (1.0 + tl.erf(v * 0.7071067811865476))
    elif ACTIVATION == "silu":
        v = v / (1.0 + tl.exp(-v))
    return v


@triton.autotune(
    LARGE_CONFIGURATIONS,
    key=["M", "N", "K", "X_BY_ROWS", "W_BY_ROWS"],
    prune_configs_by={"early_config_prune": large_fitting},
)
@triton.jit
def large_kernel(
    x_desc,
    w_desc,
    bias_ptr,
    y_desc,
    M,
    N,
    K,
    stride_bn,
    X_BY_ROWS: tl.constexpr,
    W_BY_ROWS: tl.constexpr,
    HAS_BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
    PARTS: tl.constexpr,
    LOOP: tl.constexpr,
):
    """Compute tiles of y = activation(x @ w + bias), every program several of them if LOOP.

    x_desc, w_desc  descriptors of x and w, of their transposes where X_BY_ROWS or W_BY_ROWS is False
    bias_ptr        *T[N] | None  one number a column, stride_bn elements apart
    y_desc          descriptor of y, with tiles of BLOCK_SIZE_N / PARTS columns
    M, N, K         int   sizes, each below 2^31
    PARTS           int   1 or 2: how many stores a tile is cut into, each of which needs less shared memory
    """
    tiles_m = tl.cdiv(M, BLOCK_SIZE_M)
    tiles_n = tl.cdiv(N, BLOCK_SIZE_N)
    tiles = tiles_m * tiles_n
    programs_in_group = GROUP_SIZE_M * tiles_n
    step = tl.num_programs(0) if LOOP else tiles
    for tile in tl.range(tl.program_id(0), tiles, step, flatten=LOOP):
        first_m = tile // programs_in_group * GROUP_SIZE_M
        rows = min(tiles_m - first_m, GROUP_SIZE_M)
        start_m = (first_m + tile % programs_in_group % rows) * BLOCK_SIZE_M
        start_n = tile % programs_in_group // rows * BLOCK_SIZE_N
        acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_SIZE_K):
            # What lies past an end reads as 0.
            x = x_desc.load([start_m, k]) if X_BY_ROWS else x_desc.load([k, start_m]).T
            w = w_desc.load([k, start_n]) if W_BY_ROWS else w_desc.load([start_n, k]).T
            acc = tl.dot(x, w, acc)
        if HAS_BIAS:
            offs_n = start_n.to(tl.int64) + tl.arange(0, BLOCK_SIZE_N)
            bias = tl.load(bias_ptr + offs_n * stride_bn, mask=offs_n < N, other=0.0)
            acc += bias.to(tl.float32)[None, :]
        y = activate(acc, ACTIVATION).to(y_desc.dtype)
        if PARTS == 1:
            y_desc.store([start_m, start_n], y)
        else:
            halves = tl.permute(tl.reshape(y, (BLOCK_SIZE_M, 2, BLOCK_SIZE_N // 2)), (0, 2, 1))
            left, right = tl.split(halves)
            y_desc.store([start_m, start_n], left)
            y_desc.store([start_m, start_n + BLOCK_SIZE_N // 2], right)


SPLIT_CONFIGURATIONS = [
    triton.Config({"BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "SPLIT_K": split}, num_warps=warps, num_stages=stages)
    for n, k, split, warps, stages in (
        (64, 64, 4, 4, 4),
        (64, 64, 4, 4, 8),
        (64, 128, 2, 4, 8),
        (64, 128, 4, 4, 4),
        (128, 128, 4, 4, 4),
    )
]
# The most rows that the split kernel takes: one tile's.
FEW_ROWS = 16


def split_fitting(configurations: list[triton.Config], named: dict, **_: object) -> list[triton.Config]:
    """Keep what fits into the chip's shared memory; the first where nothing does."""
    _, shared_bytes = chip(triton.runtime.driver.active.get_current_device())
    itemsize = named["x_ptr"].element_size()

    def bytes_needed(configuration: triton.Config) -> int:
        n, k = configuration.kwargs["BLOCK_SIZE_N"], configuration.kwargs["BLOCK_SIZE_K"]
        return (FEW_ROWS + n) * k * itemsize * configuration.num_stages

    return [c for c in configurations if bytes_needed(c) <= shared_bytes] or configurations[:1]


@triton.autotune(
    SPLIT_CONFIGURATIONS,
    key=["N", "K", "stride_xm", "stride_xk", "stride_wk", "stride_wn"],
    prune_configs_by={"early_config_prune": split_fitting},
)
@triton.jit
def split_kernel(
    x_ptr,
    w_ptr,
    bias_ptr,
    y_ptr,
    partial_ptr,
    arrived_ptr,
    M,
    N,
    K,
    stride_xm,
    stride_xk,
    stride_wk,
    stride_wn,
    stride_bn,
    HAS_BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    SPLIT_K: tl.constexpr,
):
    """Add up one share of K for one tile of the transposed y. Who arrives last at a tile adds the shares and stores.

    The sum of the shares has one order, whoever comes last: the same call gives the same bits.
    partial_ptr  *float32  SPLIT_K tiles for each tile of y
    arrived_ptr  *int32    how many shares of a tile are done: 0 before and after each launch
    ROWS         int       rows of x in a tile, at least M
    """
    tile = tl.program_id(0).to(tl.int64)
    share = tl.program_id(1)
    offs_m = tl.arange(0, ROWS).to(tl.int64)
    offs_n = tile * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    mask_m = offs_m < M
    mask_n = offs_n < N
    steps = tl.cdiv(tl.cdiv(K, BLOCK_SIZE_K), SPLIT_K)
    offs_k = share.to(tl.int64) * steps * BLOCK_SIZE_K + tl.arange(0, BLOCK_SIZE_K)
    x_ptrs = x_ptr + offs_k[:, None] * stride_xk + offs_m[None, :] * stride_xm
    w_ptrs = w_ptr + offs_n[:, None] * stride_wn + offs_k[None, :] * stride_wk
    acc = tl.zeros((BLOCK_SIZE_N, ROWS), dtype=tl.float32)
    for step in range(steps):
        mask_k = offs_k < K - step * BLOCK_SIZE_K
        w = tl.load(w_ptrs, mask=mask_n[:, None] & mask_k[None, :], other=0.0)
        x = tl.load(x_ptrs, mask=mask_k[:, None] & mask_m[None, :], other=0.0)
        acc = tl.dot(w, x, acc)
        w_ptrs += BLOCK_SIZE_K * tl.cast(stride_wk, tl.int64)
        x_ptrs += BLOCK_SIZE_K * tl.cast(stride_xk, tl.int64)

    size: tl.constexpr = BLOCK_SIZE_N * ROWS
    inner = tl.arange(0, BLOCK_SIZE_N)[:, None] * ROWS + tl.arange(0, ROWS)[None, :]
    shares_ptr = partial_ptr + tile * SPLIT_K * size
    tl.store(shares_ptr + share * size + inner, acc)
    # All threads have stored before one of them says so; who reads the count sees what was stored before.
    tl.debug_barrier()
    arrived = tl.atomic_add(arrived_ptr + tile, 1, sem="acq_rel")
    if arrived == SPLIT_K - 1:
        tl.store(arrived_ptr + tile, 0)
        total = tl.load(shares_ptr + inner, cache_modifier=".cg")
        for other in tl.static_range(1, SPLIT_K):
            total += tl.load(shares_ptr + other * size + inner, cache_modifier=".cg")
        if HAS_BIAS:
            bias = tl.load(bias_ptr + offs_n * stride_bn, mask=mask_n, other=0.0)
            total += bias.to(tl.float32)[:, None]
        y = activate(total, ACTIVATION).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + offs_m[None, :] * N + offs_n[:, None], y, mask=mask_n[:, None] & mask_m[None, :])


# Counters of the split kernel, by device: launches that share them must follow one another on one stream.
_arrived: dict[torch.device, torch.Tensor] = {}


def counters(tiles: int, device: torch.device) -> torch.Tensor:
    """At least so many zeros, which every launch leaves as zeros."""
    if device not in _arrived or _arrived[device].numel() < tiles:
        _arrived[device] = torch.zeros(max(1024, triton.next_power_of_2(tiles)), dtype=torch.int32, device=device)
    return _arrived[device]


def described(t: torch.Tensor) -> bool:
    """Whether a descriptor can be made of a matrix that is stored by rows: dense rows on multiples of 16 bytes."""
    row_bytes = t.stride(0) * t.element_size()
    return t.stride(1) == 1 and row_bytes >= 16 and row_bytes % 16 == 0 and t.data_ptr() % 16 == 0


def by_rows(t: torch.Tensor) -> bool | None:
    """Whether t can be described by rows (True), by columns (False) or not at all (None)."""
    if max(t.shape) >= 2**31:
        return None
    return True if described(t) else False if described(t.t()) else None


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

    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch
    epilogue = {"HAS_BIAS": bias is not None, "ACTIVATION": activation}
    stride_bn = 0 if bias is None else bias.stride(0)

    if M <= FEW_ROWS and K >= 512:
        partial = torch.empty(4 * (N + 128) * FEW_ROWS, dtype=torch.float32, device=x.device)
        arrived = counters(triton.cdiv(N, 64), x.device)
        split_kernel[lambda meta: (triton.cdiv(N, meta["BLOCK_SIZE_N"]), meta["SPLIT_K"])](
            x, w, bias, y, partial, arrived, M, N, K, *x.stride(), *w.stride(), stride_bn,
            **epilogue, ROWS=FEW_ROWS,
        )  # fmt: skip
        return y

    x_by_rows, w_by_rows = by_rows(x), by_rows(w)
    if min(M, N, K) >= 64 and x.element_size() == 2 and by_rows(y) and None not in (x_by_rows, w_by_rows):
        programs, _ = chip(triton.runtime.driver.active.get_current_device())

        def enough(meta: dict[str, int]) -> tuple[int]:
            tiles = triton.cdiv(M, meta["BLOCK_SIZE_M"]) * triton.cdiv(N, meta["BLOCK_SIZE_N"])
            return (min(tiles, programs) if meta["LOOP"] else tiles,)

        # The tuner sets the real tiles.
        x_desc, w_desc, y_desc = (
            TensorDescriptor.from_tensor(t if rows else t.t(), [16, 16])
            for t, rows in ((x, x_by_rows), (w, w_by_rows), (y, True))
        )
        large_kernel[enough](
            x_desc, w_desc, bias, y_desc, M, N, K, stride_bn, X_BY_ROWS=x_by_rows, W_BY_ROWS=w_by_rows, **epilogue
        )
        return y

    def grid(meta: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(M, meta["BLOCK_SIZE_M"]) * triton.cdiv(N, meta["BLOCK_SIZE_N"]),)

    fused_linear_kernel[grid](x, w, bias, y, M, N, K, *x.stride(), *w.stride(), stride_bn, *y.stride(), **epilogue)
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
