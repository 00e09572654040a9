# expect: K661
# All values come out of a random generator.
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

    # One, around one block, several blocks and a rest. Blocks are powers of two, whatever their size.
    for n in (1, 2, 255, 1024, 1025, 5000):
        check(candidate, 2.5, draw(n), draw(n))

    check(candidate, 0.0, draw(300), draw(300))
    # Product and addend cancel: what is left is what was lost before.
    x = draw(300, dtype=torch.float16)
    check(candidate, -0.3, x, (0.3 * x.float()).half())
    # Up to three quarters of the largest number that each dtype holds.
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = (torch.linspace(-0.25, 0.25, 300) * torch.finfo(dtype).max).to(x.device, dtype)
        check(candidate, 2.0, x, x)

    for dtype in (torch.float16, torch.bfloat16):
        check(candidate, 2.5, draw(1500, dtype=dtype), draw(1500, dtype=dtype))
    # Each alone: two mistakes of the same kind may cancel.
    check(candidate, 2.5, draw(40, 30).t(), draw(30, 40))
    check(candidate, 2.5, draw(30, 40), draw(40, 30).t())
    check(candidate, 2.5, draw(1400)[::2], draw(700))


def compare(out: torch.Tensor, a: float, x: torch.Tensor, y: torch.Tensor) -> None:
    """Raise AssertionError unless out is a * x + y, as exactly as its dtype can say it."""
    # allclose would broadcast one shape to the other.
    assert out.shape == x.shape, f"the result has shape {tuple(out.shape)}, x has {tuple(x.shape)}"
    assert out.dtype == x.dtype, f"the result is {out.dtype}, x is {x.dtype}"
    product, addend = a * x.double(), y.double()
    # The result is rounded to its dtype. Before that float32 may round the product, which may be larger than the sum.
    largest = (product.abs() + addend.abs()).nan_to_num(0, 0, 0).max().item()
    rtol, atol = torch.finfo(x.dtype).eps, torch.finfo(torch.float32).eps * largest
    right = torch.allclose(out.double(), product + addend, rtol=rtol, atol=atol, equal_nan=True)
    assert right, f"values are wrong: a = {a}, {x.dtype}, shape {tuple(x.shape)}, strides {x.stride()}, {y.stride()}"


def check(candidate: Saxpy, a: float, x: torch.Tensor, y: torch.Tensor) -> None:
    """Raise AssertionError unless candidate computes a * x + y, and nothing else happens."""
    old_x, old_y = x.clone(), y.clone()
    first = candidate(a, x, y)
    second = candidate(a, y, x)
    for now, old in ((x, old_x), (y, old_y)):
        assert torch.allclose(now, old, rtol=0, atol=0, equal_nan=True), "an input has changed"
    compare(second, a, y, x)
    # After the second call: the first result must have survived it.
    compare(first, a, x, y)


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
    answers: dict[str, bool] = {
        "one element": False,
        # 1000 is less than a block, 4096 is four.
        "ragged tail": True,
        "NaN swallowed": True,
        "a factor of zero": True,
        "large values": True,
        "range of bfloat16": True,
        "range of float32": True,
        "non-contiguous y": False,
        # All three lie transposed: element i in memory is the same one in each.
        "non-contiguous x": True,
        # allclose does not compare float32 with float16, it raises.
        "dtype of the result": False,
        # So does naive: what it compares with has the same mistake.
        "dtype of the arithmetic": True,
        # Off by a 2000th, which hides below 2 %.
        "dtype on the way": True,
        "broadcast result shape": True,
        # What it is compared with is computed after the call, from the changed y.
        "input changed": False,
        # The second seed has the same shapes and other values.
        "a result remembered": False,
        # Each result is looked at before the next call.
        "a buffer kept": True,
    }
    return answers.get(kernel)
