"""How far a result may be from the truth, and where it is not.

The truth is computed in float64. A kernel may err twice as much as PyTorch's own operation does in the same dtype,
and always by one unit in the last place at the scale of the output: no tolerance here is a constant somebody
liked. The rule of twice PyTorch's error is flash-attention's (`tests/test_flash_attn.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

__all__ = ["Mismatch", "compare", "unit_in_last_place"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Where a result leaves its tolerance.

    `kind` is "nan", "infinite" or "value"; `index` the first such element; `gross` whether the error is beyond what
    rounding in this dtype could explain; `pattern` a sentence about where the mismatches lie, or "".
    """

    kind: str
    index: tuple[int, ...]
    actual: float
    expected: float
    error: float
    allowed: float
    count: int
    total: int
    gross: bool
    pattern: str = ""


def unit_in_last_place(scale: float, dtype: torch.dtype) -> float:
    """Distance between neighbouring numbers of `dtype` at magnitude `scale`; 0 for integers."""
    if not dtype.is_floating_point:
        return 0.0
    limits = torch.finfo(dtype)
    smallest = limits.smallest_normal * limits.eps
    if not math.isfinite(scale) or scale < limits.smallest_normal:
        return smallest
    return max(smallest, 2.0 ** math.floor(math.log2(scale)) * limits.eps)


def compare(
    actual: torch.Tensor,
    expected: torch.Tensor,
    yardstick: torch.Tensor | None,
    *,
    rows: bool = False,
    units: float = 1.0,
) -> Mismatch | None:
    """The first element of `actual` outside its tolerance, or None.

    expected: the truth, float64 (or integer or bool), of actual's shape. yardstick: PyTorch's own result in the
    dtype of `actual`, whose error sets the tolerance; None allows one unit in the last place. rows: take error
    and scale per last dimension instead of over the whole tensor. units: how many units in the last place are always
    allowed to a float32 result; more than one where the chip's own instructions (ex2.approx, div.full) err by more,
    which PyTorch on a CPU does not show.
    """
    if actual.numel() == 0:
        return None
    if not actual.dtype.is_floating_point:
        wrong = actual != expected.to(actual.dtype)
        return _report("value", wrong, actual.double(), expected.double(), 0.0, gross=True) if wrong.any() else None
    got = actual.double()
    # What the dtype can hold of the truth: beyond its range that is an infinity.
    rounded = expected.to(actual.dtype).double()
    for kind, test in (("nan", torch.isnan), ("infinite", torch.isinf)):
        wrong = test(got) != test(rounded)
        if kind == "infinite":
            wrong |= torch.isinf(rounded) & (got != rounded) & ~torch.isnan(got)
        if yardstick is not None:
            # At the edge of the range rounding may go either way, if PyTorch's did too.
            wrong &= ~((yardstick.double() == got) & torch.isinf(got))
        if wrong.any():
            return _report(kind, wrong, got, rounded, 0.0, gross=True)
    finite = torch.isfinite(rounded)
    truth = torch.where(finite, expected.double(), torch.zeros_like(got))
    error = torch.where(finite, (got - truth).abs(), torch.zeros_like(got))
    own = torch.zeros_like(error)
    if yardstick is not None:
        own = torch.where(finite, (yardstick.double() - truth).abs(), own)
        own = torch.where(torch.isfinite(own), own, torch.zeros_like(own))
    keep = rows and actual.dim() > 0
    scale = truth.abs().amax(-1, keepdim=True) if keep else truth.abs().max()
    largest_own = own.amax(-1, keepdim=True) if keep else own.max()
    unit = torch.tensor(
        [unit_in_last_place(s, actual.dtype) for s in scale.reshape(-1).tolist()], dtype=torch.float64
    ).reshape(scale.shape)
    floor = unit * units if actual.dtype == torch.float32 else unit
    allowed = torch.maximum(2 * largest_own, floor)
    wrong = error > allowed
    if not wrong.any():
        return None
    coarse = torch.maximum(allowed, math.sqrt(torch.finfo(actual.dtype).eps) * scale)
    gross_at = error > coarse
    gross = bool(gross_at.any())
    return _report("value", gross_at if gross else wrong, got, truth, allowed.expand_as(error), gross=gross)


def _report(
    kind: str,
    wrong: torch.Tensor,
    actual: torch.Tensor,
    expected: torch.Tensor,
    allowed: torch.Tensor | float,
    *,
    gross: bool,
) -> Mismatch:
    flat = int(wrong.reshape(-1).to(torch.uint8).argmax())
    index = _unravel(flat, tuple(wrong.shape))
    got, want = float(actual.reshape(-1)[flat]), float(expected.reshape(-1)[flat])
    limit = float(allowed.reshape(-1)[flat]) if isinstance(allowed, torch.Tensor) else allowed
    return Mismatch(
        kind=kind,
        index=index,
        actual=got,
        expected=want,
        error=abs(got - want),
        allowed=limit,
        count=int(wrong.sum()),
        total=wrong.numel(),
        gross=gross,
        pattern=_pattern(wrong, actual, expected),
    )


def _unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index = []
    for extent in reversed(shape):
        index.append(flat % extent)
        flat //= extent
    return tuple(reversed(index))


def _pattern(wrong: torch.Tensor, actual: torch.Tensor, expected: torch.Tensor) -> str:
    """One sentence on what the wrong elements have in common, where something is worth saying."""
    if wrong.all() and wrong.numel() > 1:
        if (actual == actual.reshape(-1)[0]).all():
            return f"every element is {actual.reshape(-1)[0]:g}"
        finite = torch.isfinite(actual) & torch.isfinite(expected) & (expected != 0)
        ratio = (actual / expected)[finite]
        if ratio.numel() > 1 and (ratio - ratio[0]).abs().max() <= 1e-3 * ratio[0].abs() and ratio[0] != 1:
            return f"every element is {ratio[0]:.4g} times what it should be"
    if wrong.dim() == 2 and wrong.shape[0] == wrong.shape[1] > 1 and torch.equal(actual, expected.t().to(actual.dtype)):
        return "the result is the transpose of what it should be"
    for axis in range(wrong.dim()):
        others = [d for d in range(wrong.dim()) if d != axis]
        lines = wrong.amax(others) if others else wrong
        hit = torch.nonzero(lines).reshape(-1)
        extent = wrong.shape[axis]
        if 0 < hit.numel() < extent and hit.numel() == extent - int(hit[0]) and extent > 1:
            name = "index" if wrong.dim() == 1 else f"axis {axis}"
            return f"all wrong elements lie at {name} {int(hit[0])} and beyond, of {extent}"
    return ""
