"""Matrix multiplication whose programs are numbered so that those which run together share what they load."""

import torch
import triton
import triton.language as tl

# From large to small: (BLOCK_SIZE_M, BLOCK_SIZE_N, BLOCK_SIZE_K, num_warps, num_stages).
# A large tile uses each loaded value often; a small one gives a small c enough programs to keep the chip busy.
TILES = (
    (128, 256, 64, 8, 3),
    (64, 128, 64, 4, 3),
    (32, 64, 128, 4, 3),
)
# About one program for each multiprocessor of a large GPU.
ENOUGH_PROGRAMS = 128
# Rows of tiles in a group. With 16 columns beside them they are about one program for each multiprocessor.
GROUP_SIZE_M = 8


@triton.jit
def matmul_kernel(
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
    GROUP_SIZE_M: tl.constexpr,
):
    """Compute one tile of c = a @ b.

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
    BLOCK_SIZE_K  int       step along K, a power of two and at least 16
    GROUP_SIZE_M  int       rows of tiles that a group of programs takes together
    """
    pid = tl.program_id(0).to(tl.int64)
    tiles_m = tl.cdiv(M, BLOCK_SIZE_M)
    tiles_n = tl.cdiv(N, BLOCK_SIZE_N)

    # TODO(1): the number of this program's group, and the first row of tiles in it
    # END TODO(1)

    # TODO(2): how many rows of tiles the group has
    # END TODO(2)

    # TODO(3): the tile of this program: down the columns of its group, not along the rows of c
    pid_m = pid // tiles_n
    pid_n = pid % tiles_n
    # END TODO(3)

    # int64: any of these times a stride can pass 2^31.
    offs_m = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_n = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    offs_k = tl.arange(0, BLOCK_SIZE_K).to(tl.int64)
    mask_m = offs_m < M
    mask_n = offs_n < N

    # The first tile of each operand along K.
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn

    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)

    steps = tl.cdiv(K, BLOCK_SIZE_K)
    for step in range(steps):
        # 0 is the identity of the sum that the product adds to.
        mask_k = offs_k < K - step * BLOCK_SIZE_K
        a = tl.load(a_ptrs, mask=mask_m[:, None] & mask_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=mask_k[:, None] & mask_n[None, :], other=0.0)
        acc = tl.dot(a, b, acc)

        # A step times a stride can pass 2^31 as well.
        a_ptrs += BLOCK_SIZE_K * tl.cast(stride_ak, tl.int64)
        b_ptrs += BLOCK_SIZE_K * tl.cast(stride_bk, tl.int64)

    # Rounded once, after the whole sum.
    c = acc.to(c_ptr.dtype.element_ty)
    c_ptrs = c_ptr + offs_m[:, None] * stride_cm + offs_n[None, :] * stride_cn
    tl.store(c_ptrs, c, mask=mask_m[:, None] & mask_n[None, :])


def launch_parameters(M: int, N: int) -> dict[str, int]:
    """Choose the largest tile that still cuts an M x N product into enough programs, else the smallest tile."""
    fitting = (tile for tile in TILES if triton.cdiv(M, tile[0]) * triton.cdiv(N, tile[1]) >= ENOUGH_PROGRAMS)
    block_size_m, block_size_n, block_size_k, num_warps, num_stages = next(fitting, TILES[-1])
    return {
        "BLOCK_SIZE_M": block_size_m,
        "BLOCK_SIZE_N": block_size_n,
        "BLOCK_SIZE_K": block_size_k,
        "num_warps": num_warps,
        "num_stages": num_stages,
    }


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return the matrix product a @ b as a new contiguous tensor of a's dtype.

    | argument | accepted                          | refused               | exception  |
    |----------|-----------------------------------|-----------------------|------------|
    | a        | (M, K), any strides, also empty   | other numbers of axes | ValueError |
    |          | float16 or bfloat16               | other dtypes          | TypeError  |
    | b        | (K, N), any strides, also empty   | another shape         | ValueError |
    |          | the device of a                   | another device        | ValueError |
    |          | the dtype of a                    | another dtype         | TypeError  |
    """
    if a.dim() != 2 or b.dim() != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a and b must be (M, K) and (K, N), not {tuple(a.shape)} and {tuple(b.shape)}")
    if a.device != b.device:
        raise ValueError(f"a and b must be on the same device, not on {a.device} and {b.device}")
    if a.dtype != b.dtype or a.dtype not in (torch.float16, torch.bfloat16):
        raise TypeError(f"a and b must both be float16 or both bfloat16, not {a.dtype} and {b.dtype}")
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    if c.numel() == 0:
        return c  # nothing to compute, nothing to launch
    parameters = launch_parameters(M, N)
    # One axis, because the second and third axis of a grid end at 65535.
    tiles_m = triton.cdiv(M, parameters["BLOCK_SIZE_M"])
    tiles_n = triton.cdiv(N, parameters["BLOCK_SIZE_N"])
    matmul_kernel[(tiles_m * tiles_n,)](
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
        GROUP_SIZE_M=GROUP_SIZE_M,
        **parameters,
    )
    return c


def first_wave(tiles_m: int, tiles_n: int, programs: int, group_size_m: int) -> int | None:
    """Predict how many tiles of a and b the first programs of a launch load together in one step, each tile once.

    tiles_m, tiles_n: rows and columns of tiles that c is cut into. programs: how many run at a time. group_size_m: rows
    of tiles in a group, either 1, which is the order of kata 21, or so many that all those programs are of one group.
    """
    # TODO(4): how many rows of tiles have been begun, and how many columns?
    return None
    # END TODO(4)
