# expect: K667
# A long K wants other tiles than a short one.
"""Autotuning: configurations worth trying, a key that says when to try again, and a kernel that updates in place."""

import torch
import triton
import triton.language as tl

# (BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K, num_warps, num_stages), from small tiles to large ones. A small c needs
# small tiles to make enough programs, a large one large tiles to use each loaded value often; a flat one needs flat
# tiles, a tall one tall tiles. All of them fit the 99 KB of an L4.
TILES = (
    (16, 64, 128, 4, 4),
    (16, 128, 64, 4, 4),
    (64, 16, 128, 4, 4),
    (32, 64, 128, 4, 3),
    (64, 64, 64, 4, 4),
    (64, 128, 64, 4, 3),
    (128, 64, 64, 4, 3),
    (128, 128, 32, 4, 4),
    (128, 128, 64, 8, 3),
    (128, 256, 64, 8, 3),
)
CONFIGS = [
    triton.Config(
        {"BLOCK_SIZE_M": block_m, "BLOCK_SIZE_N": block_n, "BLOCK_SIZE_K": block_k, "GROUP_SIZE_M": 8},
        num_warps=num_warps,
        num_stages=num_stages,
    )
    for block_m, block_n, block_k, num_warps, num_stages in TILES
]


def worth_trying(configs: list[triton.Config], arguments: dict[str, object], **_: object) -> list[triton.Config]:
    """Of all configurations those that are worth a compilation for these arguments of the kernel, by name."""
    # A tile that is more than twice as long as the matrix computes mostly what its mask throws away.
    rows = max(16, triton.next_power_of_2(arguments["M"]))
    columns = max(16, triton.next_power_of_2(arguments["N"]))
    fitting = [c for c in configs if c.kwargs["BLOCK_SIZE_M"] <= rows and c.kwargs["BLOCK_SIZE_N"] <= columns]
    return fitting or configs[:1]


# What a choice of configuration depends on. The dtypes of the tensors are part of the key without being named.
KEY = ["M", "N"]

# Tuning runs the kernel many times: what it updates has to be put back after each.
RESTORED = ["c_ptr"]


@triton.autotune(
    configs=CONFIGS,
    key=KEY,
    prune_configs_by={"early_config_prune": worth_trying},
    restore_value=RESTORED,
)
@triton.jit
def matmul_add_kernel(
    c_ptr,
    a_ptr,
    b_ptr,
    M,
    N,
    K,
    stride_cm,
    stride_cn,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
):
    """Add one tile of a @ b to the same tile of c.

    c_ptr         *T[M, N]  updated; T is float16 or bfloat16
    a_ptr         *T[M, K]  left operand
    b_ptr         *T[K, N]  right operand
    M, N, K       int       sizes
    stride_cm     int       elements from one row of c to the next
    stride_cn     int       elements from one column of c to the next
    stride_am     int       elements from one row of a to the next
    stride_ak     int       elements from one column of a to the next
    stride_bk     int       elements from one row of b to the next
    stride_bn     int       elements from one column of b to the next
    BLOCK_SIZE_M  int       rows of a tile of c, a power of two
    BLOCK_SIZE_N  int       columns of a tile of c, a power of two
    BLOCK_SIZE_K  int       step along K, a power of two and at least 16
    GROUP_SIZE_M  int       rows of tiles that are walked over together
    """
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(M, BLOCK_SIZE_M)
    tiles_n = tl.cdiv(N, BLOCK_SIZE_N)
    group = pid // (GROUP_SIZE_M * tiles_n)
    first_m = group * GROUP_SIZE_M
    height = tl.minimum(tiles_m - first_m, GROUP_SIZE_M)
    within = pid % (GROUP_SIZE_M * tiles_n)
    pid_m = first_m + within % height
    pid_n = within // height

    # int64: any of these times a stride can pass 2^31.
    offs_m = pid_m.to(tl.int64) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = pid_n.to(tl.int64) * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    offs_k = tl.arange(0, BLOCK_SIZE_K).to(tl.int64)
    mask_m = offs_m < M
    mask_n = offs_n < N

    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for step in range(tl.cdiv(K, BLOCK_SIZE_K)):
        mask_k = offs_k < K - step * BLOCK_SIZE_K
        a = tl.load(a_ptrs, mask=mask_m[:, None] & mask_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=mask_k[:, None] & mask_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_SIZE_K * tl.cast(stride_ak, tl.int64)
        b_ptrs += BLOCK_SIZE_K * tl.cast(stride_bk, tl.int64)

    # Added in float32, rounded once.
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    mask = mask_m[:, None] & mask_n[None, :]
    c = tl.load(c_ptrs, mask=mask).to(tl.float32) + acc
    tl.store(c_ptrs, c.to(c_ptr.dtype.element_ty), mask=mask)


def matmul_add_(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Add the matrix product a @ b to c, in place, and return c.

    Accepted: a of shape (M, K), b of shape (K, N) and c of shape (M, N), all float16 or all bfloat16, on one device,
    with any strides, c without two elements in one place; any size may be 0. Sums are kept in float32, rounded once.
    Refused: other shapes, two devices, an expanded c, or a c in the memory of a or b (ValueError); dtypes that differ
    or are neither of the two (TypeError).
    """
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0] or c.shape != (a.shape[0], b.shape[1]):
        shapes = f"{tuple(c.shape)}, {tuple(a.shape)} and {tuple(b.shape)}"
        raise ValueError(f"c, a and b must be (M, N), (M, K) and (K, N), not {shapes}")
    if not c.device == a.device == b.device:
        raise ValueError(f"all must be on the same device, not on {c.device}, {a.device} and {b.device}")
    if not c.dtype == a.dtype == b.dtype or a.dtype not in (torch.float16, torch.bfloat16):
        raise TypeError(f"all must be float16 or all bfloat16, not {c.dtype}, {a.dtype} and {b.dtype}")
    if any(stride == 0 and size > 1 for stride, size in zip(c.stride(), c.shape, strict=True)):
        raise ValueError(f"c must have a place for each element, but has strides {c.stride()}")
    memory = [t.untyped_storage().data_ptr() for t in (c, a, b) if t.numel()]
    if c.numel() and memory[0] in memory[1:]:
        raise ValueError("c must not lie in the memory of a or b: it changes while they are read")
    M, N = c.shape
    K = a.shape[1]
    if c.numel() == 0:
        return c  # nothing to compute, nothing to launch

    # One axis, because the second and third axis of a grid end at 65535. The tuner fills in the sizes of tiles.
    def grid(meta: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(M, meta["BLOCK_SIZE_M"]) * triton.cdiv(N, meta["BLOCK_SIZE_N"]),)

    matmul_add_kernel[grid](
        c, a, b, M, N, K, c.stride(0), c.stride(1), a.stride(0), a.stride(1), b.stride(0), b.stride(1)
    )
    return c


def fits(block_m: int, block_n: int, block_k: int, num_stages: int, gpu: str) -> bool | None:
    """Predict whether a float16 kernel with these tiles and stages fits the shared memory that a program may have.

    gpu: "a100" (sm_80, 163 KB a program), "l4" (sm_89, 99 KB) or "h200" (sm_90, 227 KB). num_stages is 2 or more.
    """
    stage = (block_m * block_k + block_k * block_n) * 2
    # Before sm_90 the tiles of one stage are in registers by the time the next ones are fetched.
    buffers = num_stages if gpu == "h200" else num_stages - 1
    most = {"a100": 163, "l4": 99, "h200": 227}[gpu] * 1024
    return buffers * stage <= most
