"""A product of tiles: the tile of b has n along its first axis, and tl.trans turns it."""

import torch
import triton
import triton.language as tl

# The sides differ on purpose: a size or a stride in the wrong place does not fit, instead of fitting by chance.
BLOCK_SIZE_M = 32
BLOCK_SIZE_N = 128
# The longest K that is accepted: all of it lies in one tile.
BLOCK_SIZE_K = 64


@triton.jit
def tile_dot_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
):
    """Compute one tile of c = a @ b, where no row of a is longer than a tile.

    a_ptr         *T[M, K]  left operand; T is float16 or bfloat16
    b_ptr         *T[K, N]  right operand
    c_ptr         *T[M, N]  product
    M, N, K       int       sizes
    stride_am     int       elements from one row of a to the next
    stride_ak     int       elements from one column of a to the next
    stride_bk     int       elements from one row of b to the next
    stride_bn     int       elements from one column of b to the next
    stride_cm     int       elements from one row of c to the next
    stride_cn     int       elements from one column of c to the next
    BLOCK_SIZE_M  int       rows of a tile of c, a power of two
    BLOCK_SIZE_N  int       columns of a tile of c, a power of two
    BLOCK_SIZE_K  int       K or more, a power of two and at least 16
    """
    pid = tl.program_id(0).to(tl.int64)
    tiles_n = tl.cdiv(N, BLOCK_SIZE_N)
    pid_m = pid // tiles_n
    pid_n = pid % tiles_n

    # int64: any of these times a stride can pass 2^31.
    offs_m = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    offs_k = tl.arange(0, BLOCK_SIZE_K).to(tl.int64)

    # k runs along the second axis of the one tile and along the first of the other.
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_n[:, None] * stride_bn + offs_k[None, :] * stride_bk

    # 0 is the identity of the sum that the product is, but 0 times a NaN is none: both sides need it.
    a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & (offs_k[None, :] < K), other=0.0)
    b = tl.load(b_ptrs, mask=(offs_n[:, None] < N) & (offs_k[None, :] < K), other=0.0)

    # Summed in float32, rounded once.
    c = tl.dot(a, tl.trans(b)).to(c_ptr.dtype.element_ty)

    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, c, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


def tile_dot(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the matrix product a @ b as a new contiguous tensor of a's dtype. K may be 64 at most.

    | argument | accepted                           | refused                    | exception  |
    |----------|------------------------------------|----------------------------|------------|
    | a        | (M, K), any strides, also empty    | other numbers of axes      | ValueError |
    |          | K up to 64; K = 0 gives zeros      | a longer K                 | ValueError |
    |          | float16 or bfloat16                | other dtypes               | TypeError  |
    | b        | (K, N), any strides, also empty    | another shape              | ValueError |
    |          | the device of a                    | another device             | ValueError |
    |          | the dtype of a                     | another dtype              | TypeError  |
    """
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a and b must be (M, K) and (K, N), not {tuple(a.shape)} and {tuple(b.shape)}")
    if a.shape[1] > BLOCK_SIZE_K:
        raise ValueError(f"K must be {BLOCK_SIZE_K} at most, but is {a.shape[1]}: a longer one needs a loop")
    if a.device != b.device:
        raise ValueError(f"a and b must be on the same device, not on {a.device} and {b.device}")
    if a.dtype != b.dtype or a.dtype not in (torch.float16, torch.bfloat16):
        raise TypeError(f"a and b must both be float16 or both bfloat16, not {a.dtype} and {b.dtype}")
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel() == 0:
        return c  # nothing to compute, nothing to launch
    # One axis, because the second and third axis of a grid end at 65535.
    grid = (triton.cdiv(M, BLOCK_SIZE_M) * triton.cdiv(N, BLOCK_SIZE_N),)
    tile_dot_kernel[grid](
        a,
        b,
        c,
        M,
        N,
        K,
        a.stride(0),
        a.stride(1),
        b.stride(0),
        b.stride(1),
        c.stride(0),
        c.stride(1),
        BLOCK_SIZE_M=BLOCK_SIZE_M,
        BLOCK_SIZE_N=BLOCK_SIZE_N,
        BLOCK_SIZE_K=BLOCK_SIZE_K,
    )
    return c


def compiles(block_size_m: int, block_size_n: int, block_size_k: int, dtype: torch.dtype) -> bool | None:
    """Predict whether the kernel compiles with this tile, for operands of this dtype, on this Triton and chip.

    block_size_m, block_size_n, block_size_k: the tile, each up to 128. dtype: float16, bfloat16 or int8.
    """
    # A tensor core takes 32 bytes along K at the least; the other two sides are padded for it.
    sides = (block_size_m, block_size_n, block_size_k)
    return all(side == triton.next_power_of_2(side) for side in sides) and block_size_k * dtype.itemsize >= 32
