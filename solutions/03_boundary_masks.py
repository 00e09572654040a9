"""Shift: a copy to other places, in which the load and the store each need a mask of their own."""

import torch
import triton
import triton.language as tl

# Elements a program writes: enough that few programs move many bytes.
BLOCK_SIZE = 1024


@triton.jit
def shift_kernel(x_ptr, y_ptr, n, k, fill, BLOCK_SIZE: tl.constexpr):
    """Write one block of y, where y[i] = x[i - k] if x has such an element, else fill.

    x_ptr       *T[n]  source, contiguous; T is float32, float16 or bfloat16
    y_ptr       *T[n]  destination, contiguous
    n           int    number of elements of x, and of y
    k           int    places to shift by: towards larger indices if positive, smaller if negative
    fill        float  what stands where nothing was shifted to
    BLOCK_SIZE  int    elements of y a program writes, a power of two
    """
    pid = tl.program_id(0).to(tl.int64)

    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)

    source = offs - k
    # Parentheses, because & binds tighter than a comparison.
    load_mask = (source >= 0) & (source < n)

    # What a lane without a source holds is what it will store.
    values = tl.load(x_ptr + source, mask=load_mask, other=fill)

    # Every element of y is written, also those that have no source.
    store_mask = offs < n

    tl.store(y_ptr + offs, values, mask=store_mask)


def shift(x: torch.Tensor, k: int, fill: float) -> torch.Tensor:
    """Return y with y[i] = x[i - k] where x has an element i - k, and fill elsewhere.

    Accepted: x contiguous, of one dimension, in float32, float16 or bfloat16; it may be empty. Any 64-bit integer k,
    also one that shifts everything out. Any number as fill; it is rounded to the dtype of x.
    Refused: other dimensions, or an x that is not contiguous (ValueError); other dtypes, or a k that is no integer
    (TypeError).
    """
    if x.dim() != 1:
        raise ValueError(f"x must have 1 dimension, not {x.dim()} (shape {tuple(x.shape)})")
    if not x.is_contiguous():
        raise ValueError(f"x must be contiguous, but has strides {x.stride()}")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if not isinstance(k, int):
        raise TypeError(f"k must be an integer, not {k!r}")
    y = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return y  # nothing to compute, nothing to launch
    grid = (triton.cdiv(n, BLOCK_SIZE),)
    shift_kernel[grid](x, y, n, k, float(fill), BLOCK_SIZE=BLOCK_SIZE)
    return y


def masked_off(n: int, k: int, block: int) -> tuple[int, int] | None:
    """Predict how many lanes of the whole launch are held back: (by the mask of the load, by the mask of the store).

    n: elements of x. k: places to shift by. block: BLOCK_SIZE. The load's mask asks whether the source is an element
    of x, and nothing else; the store's whether the destination is an element of y.
    """
    lanes = triton.cdiv(n, block) * block
    # Lane i, of all lanes of the grid, has a source if k <= i < n + k.
    with_source = max(0, min(lanes, n + k) - max(0, k))
    return lanes - with_source, lanes - n
