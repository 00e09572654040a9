"""Watches PyTorch during a learner's call: what was allocated, what was written by the host, what did work.

A dispatch mode sees every operation that PyTorch runs. Allocations from `torch.empty` are filled with poison and
known to be unwritten, so that a kernel which does not write everything shows it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from checker.vgpu.memory import Shadows

__all__ = ["HostOperation", "Observer"]

_EMPTY = frozenset(["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"])

# Storages beyond this are not filled: a sparse view of a huge one would touch all of it.
_POISON_LIMIT_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class HostOperation:
    """One PyTorch operation: its name ("aten.add.Tensor"), what it is, and the learner's line that asked for it.

    `kind` is "allocation", "view", "write" (in place) or "compute".
    """

    name: str
    kind: str
    file: str
    line: int


@dataclass
class _Log:
    operations: list[HostOperation] = field(default_factory=list)


class Observer(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves __init_subclass__ untyped
    """Active around a learner's call. `file` is hers: operations are attributed to its innermost frame."""

    def __init__(self, shadows: Shadows, file: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.shadows = shadows
        self.file = file
        self.log = _Log()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # PyTorch's documented switch. Its default imports torch._dynamo, more than a second, at the first operation.
        return False

    @property
    def operations(self) -> list[HostOperation]:
        """What ran, in order."""
        return self.log.operations

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        kind = classify(func)
        outputs = [item for item in _flatten(result) if isinstance(item, torch.Tensor) and item.device.type == "cpu"]
        if kind == "allocation" and func.overloadpacket.__name__ in _EMPTY:
            for tensor in outputs:
                _poison(tensor)
                self.shadows.mark_uninitialised(tensor)
        elif kind != "view":
            for tensor in outputs:
                self.shadows.mark_written(tensor)
        line = _line_in(self.file)
        self.log.operations.append(HostOperation(str(func), kind, self.file if line else "", line))
        return result


def classify(func: Any) -> str:
    """From the operation's schema: "allocation", "view", "write" or "compute"."""
    schema = func._schema
    name = func.overloadpacket.__name__
    if any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments):
        return "write"
    if any(value.alias_info is not None for value in schema.returns):
        return "view"
    tensors = any("Tensor" in str(argument.type) for argument in schema.arguments)
    if name in _EMPTY or (not tensors and name in ("zeros", "ones", "full", "scalar_tensor")):
        return "allocation"
    if name in ("zeros_like", "new_zeros", "new_full", "new_ones", "full_like", "ones_like"):
        return "allocation"
    return "compute"


def _poison(tensor: torch.Tensor) -> None:
    """NaN, or a large odd number, in every byte of a fresh allocation."""
    if tensor.untyped_storage().nbytes() > _POISON_LIMIT_BYTES:
        return
    if tensor.dtype.is_floating_point:
        tensor.fill_(float("nan"))
    elif tensor.dtype != torch.bool and not tensor.dtype.is_complex:
        tensor.fill_(torch.iinfo(tensor.dtype).max - 4)


def _line_in(file: str) -> int:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename == file:
            return frame.f_lineno
        frame = frame.f_back
    return 0


def _flatten(value: Any) -> list[Any]:
    if isinstance(value, (tuple, list)):
        return [item for part in value for item in _flatten(part)]
    return [value]
