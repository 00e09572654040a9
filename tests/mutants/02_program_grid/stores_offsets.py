# expect: K601
# Stores where an element is, not whose it is.
"""The grid: a launch starts many programs that differ in one number, and from it each finds the elements it owns."""

import torch
import triton
import triton.language as tl


@triton.jit
def tag_kernel(ids_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Write the number of this program into every element of its block.

    ids_ptr     *int32[n]  destination, contiguous
    n           int        number of elements
    BLOCK_SIZE  int        elements a program owns, a power of two
    """
    # int64, because a program's number times the size of a block can pass 2^31.
    pid = tl.program_id(0).to(tl.int64)

    first = pid * BLOCK_SIZE

    offs = first + tl.arange(0, BLOCK_SIZE)
    # The last block may hang over the end of ids: those lanes must touch nothing.
    mask = offs < n

    # One number for all lanes: the store spreads it over the block.
    value = offs

    tl.store(ids_ptr + offs, value, mask=mask)  # here


def tag_programs(n: int, block: int) -> torch.Tensor:
    """Return ids, an int32 tensor of n elements: each holds the number of the program that owns it.

    Accepted: n >= 0; block, the elements a program owns, a power of two of at most 2^20.
    Refused: other values of n and block (ValueError).
    """
    if n < 0:
        raise ValueError(f"n must not be negative, but is {n}")
    if not 1 <= block <= 2**20 or block != triton.next_power_of_2(block):
        raise ValueError(f"block must be a power of two of at most 2^20, but is {block}")
    # No argument is a tensor that would say where to allocate, so ask Triton on which device kernels run.
    ids = torch.empty(n, dtype=torch.int32, device=triton.runtime.driver.active.get_active_torch_device())
    if n == 0:
        return ids  # nothing to compute, nothing to launch

    grid = (triton.cdiv(n, block),)

    tag_kernel[grid](ids, n, BLOCK_SIZE=block)
    return ids


def programs(n: int, block: int) -> int | None:
    """Predict how many programs tag_programs(n, block) launches."""
    return triton.cdiv(n, block)


def owner(i: int, block: int) -> int | None:
    """Predict the number of the program that stores element i, if each program owns block elements."""
    return i // block


def lives_in(expression: str) -> str | None:
    """Say where an expression makes sense: "host", "kernel", "both" or "neither".

    On the host, x is a PyTorch tensor of one dimension: torch.tensor([3.0, 1.0, 4.0, 1.0]).
    In a kernel, x is the block that a load of those four elements gives: x = tl.load(x_ptr + tl.arange(0, 4)).
    The expressions are the keys below; "makes sense" means that it runs on the host, or compiles in the kernel.
    """
    labels = {
        "x.shape": "both",
        "x.device": "host",
        "x.stride(0)": "host",
        "x[0]": "host",
        "x[:, None]": "both",
        "x.to(tl.float16)": "kernel",
        "tl.sum(x, axis=0)": "kernel",
        "tl.load(x)": "neither",
    }
    return labels[expression]
