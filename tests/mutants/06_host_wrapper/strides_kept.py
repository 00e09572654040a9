# expect: K602
# out is allocated like the x that was handed in, whose strides it keeps.
"""A host wrapper with a contract: what it accepts it computes, what it does not it refuses, and nothing in between."""

import torch
import triton
import triton.language as tl

# Elements a program computes: enough that few programs move many bytes.
BLOCK_SIZE = 1024


@triton.jit
def saxpy_kernel(a, x_ptr, y_ptr, out_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Compute one block of out = a * x + y.

    a           float  factor
    x_ptr       *T[n]  contiguous; T is float32, float16 or bfloat16
    y_ptr       *T[n]  contiguous
    out_ptr     *T[n]  contiguous; may be x_ptr or y_ptr, because a program loads its elements before it stores them
    n           int    number of elements
    BLOCK_SIZE  int    elements a program computes, a power of two
    """
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    # Computed in float32 and rounded once.
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)
    y = tl.load(y_ptr + offs, mask=mask).to(tl.float32)
    out = a * x + y
    tl.store(out_ptr + offs, out.to(out_ptr.dtype.element_ty), mask=mask)


def saxpy(a: float, x: torch.Tensor, y: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return a * x + y: out if it was given, else a new contiguous tensor.

    | argument | accepted                                 | refused                             | exception  |
    |----------|------------------------------------------|-------------------------------------|------------|
    | a        | an int or a float                        | anything else, also a tensor        | TypeError  |
    | x, y     | tensors of any one shape, also empty     | shapes that differ, even if they    | ValueError |
    |          |                                          | could be broadcast                  |            |
    |          | both float32, float16 or bfloat16        | other dtypes, or two of them;       | TypeError  |
    |          |                                          | what is no tensor                   |            |
    |          | on one device                            | on two                              | ValueError |
    |          | with any strides: what is not contiguous | -                                   |            |
    |          | is copied first                          |                                     |            |
    | out      | None                                     | what is neither None nor a tensor   | TypeError  |
    |          | a tensor of x's shape and device         | another shape or device             | ValueError |
    |          | of x's dtype                             | another dtype                       | TypeError  |
    |          | contiguous: a copy of it would not do    | not contiguous                      | ValueError |
    |          | x or y itself, or memory of its own      | overlapping a part of x or y        | ValueError |
    """
    # A tensor as factor would make the host wait for the device to learn its value.
    if not isinstance(a, int | float):
        raise TypeError(f"a must be a number, not {type(a).__name__}")
    if not isinstance(x, torch.Tensor) or not isinstance(y, torch.Tensor):
        raise TypeError(f"x and y must be tensors, not {type(x).__name__} and {type(y).__name__}")
    if x.shape != y.shape:
        raise ValueError(f"x and y must have the same shape, not {tuple(x.shape)} and {tuple(y.shape)}")
    if x.device != y.device:
        raise ValueError(f"x and y must be on the same device, not on {x.device} and {y.device}")
    if x.dtype != y.dtype or x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x and y must both be float32, float16 or bfloat16, not {x.dtype} and {y.dtype}")

    # Costs nothing where they are contiguous already.
    given = x
    x, y = x.contiguous(), y.contiguous()

    if out is None:
        # Like the contiguous x: the strides of a transposed one would be kept.
        out = torch.empty_like(given)
    elif not isinstance(out, torch.Tensor):
        raise TypeError(f"out must be a tensor or None, not {type(out).__name__}")
    elif out.shape != x.shape or out.device != x.device:
        raise ValueError(
            f"out must have shape {tuple(x.shape)} on {x.device}, not {tuple(out.shape)} on {out.device}"
        )
    elif out.dtype != x.dtype:
        raise TypeError(f"out must be {x.dtype}, not {out.dtype}")
    elif not out.is_contiguous():
        raise ValueError(f"out must be contiguous, but has strides {out.stride()}: its copy would get the result")
    elif partly_overlap(out, x) or partly_overlap(out, y):
        raise ValueError("out must be x or y itself or have memory of its own, but overlaps a part of one")

    n = out.numel()
    if n == 0:
        return out  # nothing to compute, nothing to launch
    grid = (triton.cdiv(n, BLOCK_SIZE),)
    saxpy_kernel[grid](float(a), x, y, out, n, BLOCK_SIZE=BLOCK_SIZE)
    return out


def partly_overlap(s: torch.Tensor, t: torch.Tensor) -> bool:
    """Whether two contiguous tensors of one size share some bytes, but not each element with its like."""
    distance = abs(s.data_ptr() - t.data_ptr())
    return 0 < distance < s.numel() * s.element_size()


def unguarded(a: float, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """What saxpy would be without a contract. Only the prediction below is about it."""
    out = torch.empty_like(given)
    n = x.numel()
    saxpy_kernel[(triton.cdiv(n, BLOCK_SIZE),)](a, x, y, out, n, BLOCK_SIZE=BLOCK_SIZE)
    return out


def outcome(arguments: str) -> str | None:
    """Predict what becomes of a call of unguarded: "right", "silently wrong" or "fault".

    "right" is what PyTorch makes of a * x + y; where PyTorch refuses, nothing is right. "fault" means that an
    exception is raised, or that the kernel touches memory outside its tensors. The arguments are one of these:
    "y is shorter"          x has shape (1000,), y has shape (600,)
    "other shape"           x has shape (40, 60), y has shape (60, 40)
    "y is expanded"         y is a single number, expanded to (1000,) with stride 0
    "x is every second"     x is every second element of 2000, y has shape (1000,)
    "both are transposed"   x and y are transposed views of shape (40, 60)
    "x is transposed"       x is a transposed view of shape (40, 60), y a contiguous (40, 60)
    "y is float16"          x is float32, y is float16
    "y is elsewhere"        y is on another device
    """
    labels = {
        # Lanes beyond element 600 load what lies behind y.
        "y is shorter": "fault",
        "other shape": "silently wrong",
        # Its memory ends after one element.
        "y is expanded": "fault",
        # Loads the first 1000 of the 2000.
        "x is every second": "silently wrong",
        # All three lie in memory in the same order: empty_like kept it.
        "both are transposed": "right",
        "x is transposed": "silently wrong",
        # The kernel learns each pointer's type, and converts.
        "y is float16": "right",
        "y is elsewhere": "fault",
    }
    return labels[arguments]
