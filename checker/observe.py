"""Watches PyTorch during a learner's call: what was allocated, copied, read back, and what did work.

A dispatch mode sees every operation that PyTorch runs in this thread. Allocations from `torch.empty` are filled with
poison and known to be unwritten, so that a kernel which does not write everything shows it. Where the session keeps
authors, each operation becomes the author of what it wrote.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
import torch._tensor_str
import triton
from torch.utils._python_dispatch import TorchDispatchMode

from checker.vgpu.authors import Authors
from checker.vgpu.shadow import Shadows

__all__ = ["HostOperation", "Observer", "classify"]

_EMPTY = frozenset(["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"])
_METADATA = frozenset(["is_pinned", "is_same_size", "is_set_to", "result_type", "can_cast", "size", "stride", "numel"])
# Views whose schema does not say so, and what only changes where a tensor points.
_VIEWS = frozenset(["_unsafe_view", "_reshape_alias", "lift", "set_"])
# Views that compute when they are read.
_LAZY = frozenset(["_neg_view", "_conj", "conj"])
_COPIES = frozenset(["clone", "_to_copy", "copy_", "copy", "contiguous", "lift_fresh_copy"])
_FILLS = frozenset(["fill_", "zero_"])
_READS = frozenset(["_local_scalar_dense", "item"])

# Converting so few elements is about a parameter, not about the data.
_FEW = 64

# Storages beyond this are not filled: a sparse view of a huge one would touch all of it.
_POISON_LIMIT_BYTES = 1 << 26

_NAN = {
    torch.float16: (torch.int16, 0x7E5A),
    torch.bfloat16: (torch.int16, 0x7FDA),
    torch.float32: (torch.int32, 0x7FDA5A5A),
    torch.float64: (torch.int64, 0x7FFA5A5A5A5A5A5A),
}

_TUNER = str(Path(triton.__file__).parent / "runtime") + "/"
_DISPLAY = torch._tensor_str.__file__


@dataclass(frozen=True, slots=True)
class HostOperation:
    """One PyTorch operation: its name ("aten.add.Tensor"), what it is, and the learner's line that asked for it.

    `kind` is "allocation" (a constant, or nothing yet), "view", "metadata", "copy", "fill", "read" (a value handed to
    Python) or "compute". `data` says whether an operand may derive from the caller's data; `asker` is "file", "tuner"
    (Triton's own) or "display" (a tensor was printed). `elements` is the size of the largest result.
    """

    name: str
    kind: str
    file: str
    line: int
    data: bool = False
    asker: str = "file"
    elements: int = 0

    @property
    def short(self) -> str:
        """The name without overload: "aten.add"."""
        return ".".join(self.name.split(".")[:2])


@dataclass
class _Log:
    operations: list[HostOperation] = field(default_factory=list)
    copies: list[tuple[int, torch.Tensor]] = field(default_factory=list)


class Observer(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves __init_subclass__ untyped
    """Active around a learner's call. `file` is hers: operations are attributed to its innermost frame."""

    def __init__(self, shadows: Shadows, file: str, authors: Authors | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.shadows = shadows
        self.file = file
        self.authors = authors
        self.log = _Log()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # PyTorch's documented switch. Its default imports torch._dynamo, more than a second, at the first operation.
        return False

    @property
    def operations(self) -> list[HostOperation]:
        """What ran, in order."""
        return self.log.operations

    @property
    def copies(self) -> list[tuple[int, torch.Tensor]]:
        """What each copy of the caller's data held when it was made: (index of the operation, contiguous elements)."""
        return self.log.copies

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        operands = list(_tensors([*args, *kwargs.values()]))
        sources = operands[1:] if name in ("copy_", "fill_", "zero_") else operands
        # `y[0] = 1.0` copies from a tensor that PyTorch makes of the number, unseen: only known data counts there.
        number = name in ("copy_", "fill_") and all(tensor.numel() == 1 for tensor in sources)
        data = self._hold_data(sources, unknown=not number)
        empty = name == "resize_" and not operands[0].numel()
        result = func(*args, **kwargs)
        outputs = [tensor for tensor in _tensors(result) if tensor.device.type == "cpu"]
        kind = "allocation" if empty else _kind(func, operands, sources, outputs, data)
        data = data and kind not in ("allocation", "metadata", "fill")
        asker, line = _asker(self.file)
        if kind == "allocation" and (empty or name in _EMPTY):
            for tensor in outputs:
                _poison(tensor)
                self.shadows.mark_uninitialised(tensor)
        elif kind not in ("view", "metadata", "read"):
            for tensor in outputs:
                self.shadows.mark_written(tensor)
        self._attribute(kind, outputs, data, asker)
        elements = max((tensor.numel() for tensor in outputs), default=0)
        self.log.operations.append(
            HostOperation(str(func), kind, self.file if line else "", line, data, asker, elements)
        )
        return result

    def _hold_data(self, tensors: list[torch.Tensor], *, unknown: bool) -> bool:
        if self.authors is None:
            return False
        return any(self.authors.holds_data(tensor, unknown=unknown) for tensor in tensors if _has(tensor))

    def _attribute(self, kind: str, outputs: list[torch.Tensor], data: bool, asker: str) -> None:
        # What printing makes stays without an author: nothing may come of it.
        if self.authors is None or kind in ("view", "metadata", "read") or asker == "display":
            return
        for tensor in filter(_has, outputs):
            self.authors.wrote(tensor, len(self.log.operations), data=data)
            if kind == "copy" and data and tensor.numel() * tensor.element_size() <= _POISON_LIMIT_BYTES:
                held = tensor.detach().clone(memory_format=torch.contiguous_format)
                self.log.copies.append((len(self.log.operations), held))


def _kind(
    func: Any, operands: list[torch.Tensor], sources: list[torch.Tensor], outputs: list[torch.Tensor], data: bool
) -> str:
    """`classify`, held against what came of it: an operation is what it does, whatever it calls itself.

    A fill by data is a copy. A copy that converts more than a few elements is work, and so is one that does not hold
    what it copied, or a view of memory that is none of its operands'.
    """
    kind = classify(func)
    if kind == "fill" and data:
        return "copy"
    if func.overloadpacket.__name__ == "copy_" and not data and sources[0].numel() == 1:
        return "fill"
    if kind == "copy" and outputs and outputs[0].numel():
        if {tensor.dtype for tensor in sources} <= {outputs[0].dtype}:
            return "copy" if _alike(sources[0], outputs[0]) else "compute"
        return "copy" if outputs[0].numel() <= _FEW else "compute"
    if kind == "view" and operands:
        known = {tensor.untyped_storage()._cdata for tensor in operands if _has(tensor)}
        mine = {tensor.untyped_storage()._cdata for tensor in outputs if _has(tensor)}
        return "view" if mine <= known else "compute"
    return kind


def _alike(source: torch.Tensor, result: torch.Tensor) -> bool:
    """Whether a copy holds the bytes of what it was made from; too large ones are believed."""
    if result.untyped_storage().nbytes() > _POISON_LIMIT_BYTES or not _has(source):
        return True
    bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}.get(result.element_size())
    return bits is None or torch.equal(source.view(bits).expand(result.shape), result.view(bits))


def classify(func: Any) -> str:
    """From the operation's name and schema alone: the `kind` of a HostOperation."""
    schema = func._schema
    name = func.overloadpacket.__name__
    if func.namespace not in ("aten", "prim"):
        return "compute"
    for kind, names in (
        ("metadata", _METADATA),
        ("compute", _LAZY),
        ("copy", _COPIES),
        ("fill", _FILLS),
        ("read", _READS),
        ("view", _VIEWS),
    ):
        if name in names:
            return kind
    if name == "resize_":
        return "view"
    if any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments):
        return "compute"
    if any(value.alias_info is not None for value in schema.returns):
        return "view"
    constant = name.startswith("new_") or name.endswith("_like")
    if constant or not any("Tensor" in str(argument.type) for argument in schema.arguments):
        return "allocation"
    return "compute"


def _poison(tensor: torch.Tensor) -> None:
    """NaN, or a large odd number, in every element of a fresh allocation."""
    if tensor.untyped_storage().nbytes() > _POISON_LIMIT_BYTES:
        return
    if tensor.dtype in _NAN:
        # A NaN that no arithmetic makes: memory that still holds it was not written, not even with NaN.
        bits, value = _NAN[tensor.dtype]
        tensor.view(bits).fill_(value)
    elif tensor.dtype.is_floating_point:
        tensor.fill_(float("nan"))
    elif tensor.dtype != torch.bool and not tensor.dtype.is_complex:
        tensor.fill_(torch.iinfo(tensor.dtype).max - 4)


def _asker(file: str) -> tuple[str, int]:
    """Who asked for the operation (the nearest of the file, Triton's tuner, a printed tensor), and the file's line."""
    asker = ""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name == file:
            return asker or "file", frame.f_lineno
        if not asker and name.startswith(_TUNER):
            asker = "tuner"
        elif not asker and name == _DISPLAY:
            asker = "display"
        frame = frame.f_back
    return asker or "file", 0


def _has(tensor: torch.Tensor) -> bool:
    """Whether the tensor lies in memory that can be looked at."""
    return tensor.layout == torch.strided and tensor.device.type == "cpu"


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)
