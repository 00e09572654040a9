"""Vector addition, from a blank page: the kernel, and the wrapper that makes it safe to call."""

import torch
import triton
import triton.language as tl

# Elements a program adds: enough that few programs move many bytes.
BLOCK_SIZE = 1024


@triton.jit
def add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Add one block of x and y into z.

    x_ptr       *T[n]  first operand, contiguous
    y_ptr       *T[n]  second operand, contiguous
    z_ptr       *T[n]  sum, contiguous
    n           int    number of elements
    BLOCK_SIZE  int    elements a program adds, a power of two
    """
    # TODO(1): which elements belong to this program, and which of them exist
    # END TODO(1)

    # TODO(2): load both blocks, add them, store the sum
    # END TODO(2)


def vector_add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return x + y as a new contiguous tensor.

    Accepted: x and y of one shape, one dtype (float32, float16 or bfloat16) and one device, with any strides; they
    may be empty. A tensor that is not contiguous is made so first, with `.contiguous()`.
    Refused: shapes that differ, even if they could be broadcast, or tensors on two devices (ValueError); dtypes that
    differ (TypeError).
    """
    # TODO(3): check, allocate, launch
    return torch.empty_like(x)
    # END TODO(3)


def bytes_moved(n: int, itemsize: int) -> int | None:
    """Predict the bytes that one call of vector_add loads and stores.

    n: elements of x. itemsize: bytes an element.
    """
    # TODO(4): count what is read and what is written
    return None
    # END TODO(4)


def break_even(itemsize: int, launch_us: float, gb_per_s: float) -> float | None:
    """Predict the number of elements below which the launch of vector_add costs more time than moving its bytes.

    itemsize: bytes an element. launch_us: what a launch costs, in microseconds. gb_per_s: the bandwidth of memory, in
    10^9 bytes a second.
    """
    # TODO(5): at how many elements do the two times meet?
    return None
    # END TODO(5)
