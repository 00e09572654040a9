"""Results of common PyTorch operations on "meta" tensors: shape and dtype, worked out here.

PyTorch can do the same, but its own meta kernels import sympy and 900 modules, which takes longer than a check.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["infer"]

_POINTWISE = frozenset(["add", "sub", "mul", "div", "exp", "exp2", "log", "relu", "silu", "gelu", "sigmoid", "tanh",
                        "neg", "abs", "sqrt", "rsqrt", "maximum", "minimum", "pow", "leaky_relu"])  # fmt: skip
_COMPARISONS = frozenset(["gt", "ge", "lt", "le", "eq", "ne"])
_PRODUCTS = frozenset(["mm", "addmm", "_addmm_activation"])
_REDUCTIONS = frozenset(["sum", "amax", "amin", "mean"])


def infer(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the ATen operation, or None where PyTorch must be asked."""
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    if not tensors or any(value.device.type != "meta" for value in tensors):
        return None
    x = tensors[0]
    if name == "where" and len(tensors) == 3:
        # The mask has a dtype of its own; the result has that of what is chosen from.
        return _pointwise(tensors[1:], tensors)
    if name in _POINTWISE:
        return _pointwise(tensors, tensors)
    if name in _COMPARISONS:
        return _pointwise(tensors, tensors, torch.bool)
    if name in _PRODUCTS:
        return _like(x, (tensors[-2].shape[0], tensors[-1].shape[1]))
    if not x.is_contiguous():
        return None
    if name == "_softmax":
        return _like(x, x.shape)
    if name in _REDUCTIONS and len(args) > 1 and x.is_floating_point() and not kwargs:
        dims = args[1] if isinstance(args[1], (list, tuple)) else [args[1]]
        return _like(x, _reduced(x, dims, keep=len(args) > 2 and bool(args[2])))
    if name == "max" and len(args) > 1 and isinstance(args[1], int):
        shape = _reduced(x, [args[1]], keep=len(args) > 2 and bool(args[2]))
        return torch.return_types.max((_like(x, shape), _like(x, shape, torch.int64)))
    return None


def _pointwise(values: list[torch.Tensor], operands: list[torch.Tensor], dtype: torch.dtype | None = None) -> Any:
    """One element from each operand; None where dtypes differ or the layout of the result is not plain."""
    x = values[0]
    if not x.is_floating_point() or any(value.dtype != x.dtype for value in values):
        return None
    shape = _broadcast([tuple(value.shape) for value in operands])
    plain = all(value.is_contiguous() for value in operands if value.shape == shape)
    return _like(x, shape, dtype) if plain else None


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The common shape, aligned at the last dimension. PyTorch's own function imports its tracer."""
    longest = max(len(shape) for shape in shapes)
    aligned = [(1,) * (longest - len(shape)) + shape for shape in shapes]
    return tuple(next((extent for extent in extents if extent != 1), 1) for extents in zip(*aligned, strict=True))


def _reduced(x: torch.Tensor, dims: Any, *, keep: bool) -> tuple[int, ...]:
    gone = {dim % x.dim() for dim in dims} or set(range(x.dim()))
    if keep:
        return tuple(1 if axis in gone else extent for axis, extent in enumerate(x.shape))
    return tuple(extent for axis, extent in enumerate(x.shape) if axis not in gone)


def _like(x: torch.Tensor, shape: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype or x.dtype, device="meta")
