"""A fused linear layer as it could go into production: activation(x @ w + bias), in one launch, tuned to its sizes."""

import torch
import triton
import triton.language as tl


# TODO(1): the search space: what fits the chip, tiles for small and large products, the key of a choice
def fitting(configurations: list[triton.Config], named: dict, **_: object) -> list[triton.Config]:
    """Keep what fits into the chip's shared memory and is hardly larger than y; the first if nothing else is left."""
    return configurations


CONFIGURATIONS = [triton.Config({"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 16, "BLOCK_SIZE_K": 16, "GROUP_SIZE_M": 1})]
KEY: list[str] = []
# END TODO(1)


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
    # TODO(2): which tile this program owns, its offsets and masks, and the first tiles of x and w
    # END TODO(2)
    acc = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    # TODO(3): the sum over K
    # END TODO(3)

    # The epilogue: in float32, once, while the tile is still in registers.
    # TODO(4): bias, activation, store
    # END TODO(4)


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
    # TODO(5): keep the contract: refuse what the table refuses
    (M, K), N = x.shape, w.shape[1]
    # END TODO(5)

    # Not empty_like or x @ w's layout: contiguous, whatever x and w are.
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if y.numel() == 0:
        return y  # nothing to compute, nothing to launch

    # TODO(6): launch as many programs as the chosen tile asks for
    # END TODO(6)
    return y


# Which criteria of a production kernel each of four kernels of the ladder meets, as its solution stands.
# TODO(7): for each criterion the kernels that meet it
READINESS: dict[str, tuple[str, ...]] = {}
# END TODO(7)


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
