# expect: K651
# Knows the H200's figures by heart, and does not ask which chip it is.
"""A loop of multiply-adds between one load and one store: a dial that turns a copy into arithmetic."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl

# Elements a program computes: enough that few programs move many bytes.
BLOCK_SIZE = 1024


@triton.jit
def repeat_fma_kernel(x_ptr, y_ptr, n, repeats, BLOCK_SIZE: tl.constexpr):
    """Start with y = x and compute y = y * x + x `repeats` times, for one block.

    x_ptr       *T[n]  contiguous; T is float32, float16 or bfloat16
    y_ptr       *T[n]  contiguous
    n           int    number of elements
    repeats     int    multiply-adds an element, 0 or more
    BLOCK_SIZE  int    elements a program computes, a power of two
    """
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask).to(tl.float32)

    # Both x and y stay in registers: however often this turns, no byte moves.
    y = x
    for _ in range(repeats):
        y = tl.fma(y, x, x)

    # Rounded once, after the whole chain.
    tl.store(y_ptr + offs, y.to(y_ptr.dtype.element_ty), mask=mask)


def repeat_fma(x: torch.Tensor, repeats: int) -> torch.Tensor:
    """Return y, which starts as x and becomes y * x + x `repeats` times, as a new contiguous tensor.

    | argument | accepted                                 | refused                             | exception  |
    |----------|------------------------------------------|-------------------------------------|------------|
    | x        | float32, float16 or bfloat16             | other dtypes                        | TypeError  |
    |          | any shape, also empty                    | -                                   |            |
    |          | contiguous                               | not contiguous: a hidden copy would | ValueError |
    |          |                                          | be timed with the kernel            |            |
    | repeats  | an int from 0 on                         | anything but an int                 | TypeError  |
    |          |                                          | an int below 0                      | ValueError |
    """
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise TypeError(f"x must be float32, float16 or bfloat16, not {x.dtype}")
    if not isinstance(repeats, int):
        raise TypeError(f"repeats must be an int, not {type(repeats).__name__}")
    if repeats < 0:
        raise ValueError(f"repeats must not be negative, but is {repeats}")
    if not x.is_contiguous():
        raise ValueError(f"x must be contiguous, but has strides {x.stride()}: call .contiguous() on it first")
    y = torch.empty_like(x)
    n = y.numel()
    if n == 0:
        return y  # nothing to compute, nothing to launch
    grid = (triton.cdiv(n, BLOCK_SIZE),)
    repeat_fma_kernel[grid](x, y, n, repeats, BLOCK_SIZE=BLOCK_SIZE)
    return y


class Chip(NamedTuple):
    """What a data sheet says of a chip, and what a launch on it costs."""

    name: str
    dram_gb_per_s: float  # 10^9 bytes a second
    fp32_tflop_per_s: float  # 10^12 floating-point operations a second; a multiply-add counts as two
    launch_us: float


H200 = Chip("NVIDIA H200", dram_gb_per_s=4800, fp32_tflop_per_s=67, launch_us=3.3)


def intensity(repeats: int, itemsize: int) -> float | None:
    """Predict the arithmetic intensity of repeat_fma: floating-point operations for each byte loaded or stored.

    repeats: multiply-adds an element. itemsize: bytes an element.
    """
    # A multiply-add is a multiplication and an addition; an element comes in once and goes out once.
    return 2 * repeats / (2 * itemsize)


def limiter(n: int, repeats: int, gpu: Chip) -> str | None:
    """Predict what one call of repeat_fma spends its time on: "launch", "memory" or "arithmetic".

    n: float32 elements. repeats: multiply-adds an element. gpu: the chip it runs on, such as H200.
    """
    bytes_moved = 2 * n * 4
    times = {
        "launch": 3.3,
        "memory": bytes_moved / (4800 * 1e3),
        "arithmetic": bytes_moved * intensity(repeats, 4) / (67 * 1e6),
    }
    # They overlap: the longest hides the others.
    return max(times, key=lambda what: times[what])


def diagnose(snippet: str) -> tuple[str, bool] | None:
    """Say what an eager snippet spends its time on, and whether a fused kernel would save a quarter of that time.

    Returns ("launch", "memory" or "arithmetic"; True or False) on an H200. snippet is one of these names. a, b: float32
    of shape (8192, 8192); s, t: float32 with 2000 elements; m, k: float16 of shape (8192, 8192); r: float16 of shape
    (4, 8192).
    "mix"     relu(a * b + a)
    "clone"   a.clone()
    "tiny"    relu(s * t + s)
    "lone"    relu(s)
    "gemm"    m @ k
    "act"     relu(m @ k)
    "thin"    r @ m
    "power"   (a * a).sum(1)
    """
    labels: dict[str, tuple[str, bool]] = {
        # Results that go out to memory only to come back.
        "mix": ("memory", True),
        "power": ("memory", True),
        # One operation each: it reads its operands and writes its result, as any kernel must.
        "clone": ("memory", False),
        "thin": ("memory", False),
        # Three launches for what one could do, and one that no kernel can do without.
        "tiny": ("launch", True),
        "lone": ("launch", False),
        # 2 * 8192 FLOP for each element of the result: a trip through memory hardly shows beside them.
        "gemm": ("arithmetic", False),
        "act": ("arithmetic", False),
    }
    return labels.get(snippet)
