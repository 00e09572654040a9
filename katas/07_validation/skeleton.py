"""A protocol that tells right kernels from wrong ones: sizes, values, layouts and dtypes, and what may be lost."""

from collections.abc import Callable

import torch
import triton

Saxpy = Callable[[float, torch.Tensor, torch.Tensor], torch.Tensor]


def validate(candidate: Saxpy) -> None:
    """Raise AssertionError unless candidate(a, x, y) is a right saxpy, in at most 40 calls and 2^22 elements in all.

    What a right one does:
    - a is a number; x and y have one shape, any, and one dtype: float32, float16 or bfloat16; their strides are any.
    - It returns a new tensor of that shape and dtype, with a * x + y, computed in float32 or better and then rounded.
      Whether the compiler fuses the product and the sum is its own affair.
    - NaN and infinities go in and come out as everywhere in floating point.
    - x and y stay as they are, and so do results of earlier calls.
    """
    torch.manual_seed(0)

    # TODO(1): sizes: at which ones do kernels go wrong?
    for n in (1024, 4096):
        check(candidate, 2.5, draw(n), draw(n))
    # END TODO(1)

    # TODO(2): values: special ones, large ones, ones that cancel
    # END TODO(2)

    # TODO(3): layouts and dtypes
    # END TODO(3)


def compare(out: torch.Tensor, a: float, x: torch.Tensor, y: torch.Tensor) -> None:
    """Raise AssertionError unless out is a * x + y, as exactly as its dtype can say it."""
    # TODO(4): against float64: what must be equal, and what may a right result have lost?
    assert torch.allclose(out, a * x + y, rtol=0.01, atol=0.01)
    # END TODO(4)


def check(candidate: Saxpy, a: float, x: torch.Tensor, y: torch.Tensor) -> None:
    """Raise AssertionError unless candidate computes a * x + y, and nothing else happens."""
    # TODO(5): what else must a call not do, to its inputs and to earlier results?
    compare(candidate(a, x, y), a, x, y)
    # END TODO(5)


def draw(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random numbers, most of them between -5 and 7, on the device that runs kernels."""
    device = triton.runtime.driver.active.get_active_torch_device()
    return (torch.randn(shape) * 3 + 1).to(device, dtype)


def naive(candidate: Saxpy) -> None:
    """What one writes in a hurry. Only the prediction below is about it."""
    for seed in (0, 1):
        torch.manual_seed(seed)
        for dtype in (torch.float32, torch.float16):
            for n in (1, 1000, 4096):
                x, y = draw(n, dtype=dtype), draw(n, dtype=dtype)
                assert torch.allclose(candidate(2.5, x, y), 2.5 * x + y, rtol=0.02, atol=0.02)
        x, y = draw(48, 64).t(), draw(48, 64).t()
        assert torch.allclose(candidate(2.5, x, y), 2.5 * x + y, rtol=0.02, atol=0.02)


def passes(kernel: str) -> bool | None:
    """Predict whether a wrong kernel passes naive().

    Whatever naive() raises, the kernel does not pass. The wrong kernels:
    "one element"              for n <= 1 the result is 0
    "ragged tail"              blocks of 1024, max(1, n // 1024) programs; what they do not write is 0
    "NaN swallowed"            where the result is NaN, it is 0
    "a factor of zero"         computes a * (x + y / a)
    "large values"             float16 results are clipped at -30000 and 30000
    "range of bfloat16"        a bfloat16 x is converted to float16 on its way
    "range of float32"         float32 results beyond 1e30 or -1e30 become infinite
    "non-contiguous y"         y is read in memory order, x is made contiguous
    "non-contiguous x"         x and y are read in memory order, the result is an empty_like(x)
    "dtype of the result"      returns float32 always
    "dtype of the arithmetic"  computes in the dtype of x
    "dtype on the way"         a float32 x is rounded to float16
    "broadcast result shape"   returns out[None]
    "input changed"            stores the result into y, which it returns
    "a result remembered"      returns what the first call with the same a, shape and dtype returned
    "a buffer kept"            stores all results of one shape and dtype in the same tensor
    """
    # TODO(6): which of them pass?
    answers: dict[str, bool] = {}
    # END TODO(6)
    return answers.get(kernel)
