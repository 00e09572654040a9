# expect: K651
# Takes the number of bytes for n: of an int the number itself counts.
"""Scale or ReLU: two kernels in one text, of which the compiler keeps the one that a constant names."""

import torch
import triton
import triton.language as tl

# Elements a program owns.
# A power of two, as the length of every block. Fixed, because one made to fit each n would be a binary for each n.
BLOCK_SIZE = 1024


@triton.jit
def scale_or_relu_kernel(
    x_ptr,
    y_ptr,
    n,
    slope,
    mode: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    """Write one block of y: slope * x everywhere, or, if mode is "relu", only where x is not positive.

    x_ptr       *T[n]  source, contiguous; T is float32, float16 or bfloat16
    y_ptr       *T[n]  destination, contiguous
    n           int    number of elements of x, and of y
    slope       float  any number
    mode        str    "scale" or "relu"
    BLOCK_SIZE  int    elements a program owns
    """
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)

    # The compiler knows mode, so the binary for "scale" has no trace of the other.
    y = slope * x
    if mode == "relu":
        y = tl.where(x > 0, x, y)

    tl.store(y_ptr + offs, y, mask=mask)


def scale_or_relu(x: torch.Tensor, slope: float, mode: str) -> torch.Tensor:
    """Return y with y[i] = slope * x[i]; if mode is "relu", positive elements stay as they are.

    Accepted: x contiguous, of one dimension, in float32, float16 or bfloat16; it may be empty. Any int or float as
    slope that float32 has room for; it is rounded to that. "scale" or "relu" as mode.
    Refused: other dimensions, an x that is not contiguous, or another mode (ValueError); other dtypes, or a slope that
    is neither int nor float (TypeError).
    """
    if x.dim() != 1:
        raise ValueError(f"x must have 1 dimension, not {x.dim()} (shape {tuple(x.shape)})")
    if not x.is_contiguous():
        raise ValueError(f"x must be contiguous, but has strides {x.stride()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if not isinstance(slope, (int, float)):
        raise TypeError(f"slope must be an int or a float, not {slope!r}")
    if mode not in ("scale", "relu"):
        raise ValueError(f'mode must be "scale" or "relu", not {mode!r}')
    y = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return y  # nothing to compute, nothing to launch
    grid = (triton.cdiv(n, BLOCK_SIZE),)

    # Always a float: an int would be another type, and so another binary, and 1 would be a constant.
    scale_or_relu_kernel[grid](x, y, n, float(slope), mode=mode, BLOCK_SIZE=BLOCK_SIZE)

    return y


def binaries(calls: tuple[tuple[int, int, float, str], ...]) -> int | None:
    """Predict how many binaries Triton compiles for some calls of scale_or_relu, one after the other.

    Each call is (n, start, slope, mode) and means scale_or_relu(memory[start : start + n], slope, mode). `memory` is
    a float32 tensor whose own address is a multiple of 16 bytes, as every fresh tensor's is, y included. n is less
    than 2^31.
    """
    # What the compiler was told of a call: the constant mode, n = 1 as another one, and what 16 divides.
    # The slope is no part of it, and y is always aligned.
    return len({(mode, n == 1, n * 4 % 16 == 0, start * 4 % 16 == 0) for n, start, _, mode in calls if n > 0})


def compiles(line: str) -> bool | None:
    """Say whether a kernel that holds this line compiles.

    There n is an int at run time, and BLOCK_SIZE is a tl.constexpr of 64. The kernel is launched with n = 64.
    """
    # Shapes are constants and powers of two; values may be anything.
    labels = {
        "tl.arange(0, n)": False,
        "n + tl.arange(0, BLOCK_SIZE)": True,
        "tl.arange(0, BLOCK_SIZE + 1)": False,
        "tl.arange(BLOCK_SIZE, 2 * BLOCK_SIZE)": True,
        "tl.zeros((n,), dtype=tl.float32)": False,
        "tl.full((BLOCK_SIZE,), n, dtype=tl.int32)": True,
        "tl.zeros((BLOCK_SIZE, 3), dtype=tl.float32)": False,
        "tl.arange(0, BLOCK_SIZE if BLOCK_SIZE > 32 else n)": True,
    }
    return labels[line]
