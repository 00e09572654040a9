"""What eager PyTorch operations cost on the chip: each is a kernel that somebody else compiled, and a launch.

A dispatch mode sees the operations with their shapes, dtypes and layouts. The time of each comes from measurements on
a real chip (`eager_table.py`), interpolated between shapes; where there is none, or for another chip, it is an
estimate from bytes and FLOPs, marked `measured=False`, on which no threshold may rest. The tensors may be on the
device "meta", so that nothing is allocated or computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from checker.vgpu import eager_times
from checker.vgpu.shapes import infer
from checker.vgpu.specs import GpuSpec

__all__ = ["Cost", "Eager", "Operation", "cost"]

# Composites that are one kernel on CUDA and several operations elsewhere.
_FUSED = {"rms_norm": "rms_norm"}

_ALLOCATIONS = frozenset(["empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided"])
_FILLS = frozenset(["fill_", "zero_", "zeros", "ones", "full", "zeros_like", "ones_like", "full_like", "new_zeros",
                    "new_ones", "new_full"])  # fmt: skip
_COPIES = frozenset(["copy_", "clone", "_to_copy", "contiguous"])
_PRODUCTS = frozenset(["mm", "addmm", "_addmm_activation", "bmm"])
_ROWS = {"_softmax": "softmax", "sum": "sum", "amax": "amax", "max": "max", "native_layer_norm": "layer_norm",
         "_fused_rms_norm": "rms_norm"}  # fmt: skip
# Kernels of one template, all bound by memory: ATen's element-wise loop over two operands.
_LIKE_ADD = {"sub": "add", "div": "add", "add_": "add", "sub_": "add", "mul_": "mul", "div_": "add"}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation that costs a kernel: its name in ATen, how its operands lie, and what it takes.

    `layout` is "contiguous", "cast", "transposed", "a row" or "a column" (broadcast operand), or "strided". `bytes`
    counts each operand read and each result written once. `us` includes the launch on the device, not the host.
    """

    name: str
    layout: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    flops: int
    us: float
    measured: bool


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call of eager PyTorch takes: device microseconds, bytes through memory, the kernels it consists of."""

    us: float
    bytes: int
    operations: tuple[Operation, ...]

    @property
    def measured(self) -> bool:
        """Whether every operation rests on a measurement; no threshold may rest on another."""
        return all(operation.measured for operation in self.operations)


@dataclass
class _State:
    operations: list[Operation] = field(default_factory=list)
    paused: int = 0


class Eager(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves __init_subclass__ untyped
    """Active around a call: runs its operations and notes what each would cost on the chip.

    `on_operation` is told of each, for instance to move a clock.
    """

    def __init__(self, spec: GpuSpec, on_operation: Callable[[Operation], None] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.spec = spec
        self.on_operation = on_operation
        self.state = _State()
        self._functions = _Composites(self)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # PyTorch's documented switch. Its default imports torch._dynamo, more than a second, at the first operation.
        return False

    @property
    def operations(self) -> list[Operation]:
        """What cost a kernel, in order. Views and allocations do not."""
        return self.state.operations

    def __enter__(self) -> Eager:
        self._functions.__enter__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        super().__enter__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self._functions.__exit__(*error)  # type: ignore[no-untyped-call]  # torch leaves it untyped

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = infer(func.overloadpacket.__name__, args, kwargs)
        if result is None:
            result = func(*args, **kwargs)
        if not self.state.paused and not _is_view(func):
            self.note(func.overloadpacket.__name__, [*args, *kwargs.values()], result)
        return result

    def note(self, name: str, arguments: list[Any], result: Any) -> None:
        """Adds an operation with these operands and this result; nothing where it costs no kernel."""
        dims = [value for value in arguments if isinstance(value, (int, list)) and not isinstance(value, bool)]
        operation = _operation(name, list(_tensors(arguments)), list(_tensors(result)), dims[:1], self.spec)
        if operation is None:
            return
        self.state.operations.append(operation)
        if self.on_operation is not None:
            self.on_operation(operation)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Operations inside are parts of one that is noted as a whole."""
        self.state.paused += 1
        try:
            yield
        finally:
            self.state.paused -= 1


class _Composites(TorchFunctionMode):
    """Catches functions that are one kernel on CUDA before PyTorch takes them apart."""

    def __init__(self, eager: Eager) -> None:
        super().__init__()
        self._eager = eager

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = _FUSED.get(getattr(func, "__name__", ""))
        if name is None:
            return func(*args, **kwargs)
        if args[0].device.type == "meta":
            result = torch.empty_like(args[0])
        else:
            with self._eager.paused():
                result = func(*args, **kwargs)
        if not self._eager.state.paused:
            self._eager.note(name, [*args, *kwargs.values()], result)
        return result


def cost(function: Callable[..., Any], *args: Any, spec: GpuSpec) -> Cost:
    """What `function(*args)` costs as eager PyTorch on the chip. Runs on "meta" copies: nothing is touched."""
    with Eager(spec) as eager:
        function(*(_meta(value) for value in args))
    operations = tuple(eager.operations)
    return Cost(sum(operation.us for operation in operations), sum(operation.bytes for operation in operations),
                operations)  # fmt: skip


def _meta(value: Any) -> Any:
    """A tensor of the same shape, strides and dtype that has no memory."""
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def _is_view(func: Any) -> bool:
    schema = func._schema
    if any(argument.alias_info is not None and argument.alias_info.is_write for argument in schema.arguments):
        return False
    return any(value.alias_info is not None for value in schema.returns) or schema.name == "aten::_unsafe_view"


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


def _operation(
    name: str, operands: list[torch.Tensor], results: list[torch.Tensor], dims: list[Any], spec: GpuSpec
) -> Operation | None:
    """The operation as its measurements call it, and its time. `dims` holds its first number or list, if any."""
    if name in _ALLOCATIONS or not results or results[0].numel() == 0:
        return None
    out = results[0]
    if name in _FILLS:
        operands = []
    elif name == "copy_":
        operands = operands[1:]
    largest = max([*operands, out], key=lambda tensor: tensor.numel())
    moved = sum(_bytes(tensor) for tensor in [*operands, *results])
    family, shape, layout, flops = name, tuple(largest.shape), _layout(operands, out), 0
    if name in _FILLS:
        family, layout = "fill", "contiguous" if out.is_contiguous() else "strided"
    elif name in _COPIES:
        family = "copy"
        if layout == "contiguous" and operands[0].dtype != out.dtype:
            layout = "cast"
    elif name in _PRODUCTS:
        family = {"_addmm_activation": "addmm_activation"}.get(name, name)
        a, b = operands[-2:]
        shape, layout = (a.shape[-2], b.shape[-1], a.shape[-1]), "contiguous"
        flops = 2 * math.prod(out.shape) * a.shape[-1]
    elif name in _ROWS:
        family, layout = _ROWS[name], _row_layout(operands[0], dims)
    elif layout in ("contiguous", "a row", "a column"):
        family = _binary(name, layout)
    dtype = eager_times.SHORT.get(operands[0].dtype if operands else out.dtype, str(out.dtype))
    us, measured = eager_times.time(family, layout, dtype, shape, moved, flops, spec)
    return Operation(name, layout, shape, dtype, moved, flops, us, measured)


def _binary(name: str, layout: str) -> str:
    """The measured operation whose kernel this one shares."""
    if layout == "a column":
        return "sub" if name in ("add", "sub", "mul", "div") else name
    if layout == "a row":
        return "add" if name in ("add", "sub", "mul", "div") else name
    return _LIKE_ADD.get(name, name)


def _bytes(tensor: torch.Tensor) -> int:
    """Bytes a tensor occupies; an expanded dimension counts once."""
    extents = [extent for extent, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride or extent < 2]
    return math.prod(extents) * tensor.element_size()


def _layout(operands: list[torch.Tensor], out: torch.Tensor) -> str:
    """How operands lie against the result."""
    full = [tensor for tensor in operands if tensor.shape == out.shape]
    if not out.is_contiguous() or not full:
        return "contiguous" if not operands and out.is_contiguous() else "strided"
    if any(not tensor.is_contiguous() for tensor in full):
        turned = len(operands) == 1 and out.dim() == 2 and operands[0].t().is_contiguous()
        return "transposed" if turned else "strided"
    rest = [tensor for tensor in operands if tensor.shape != out.shape and tensor.numel() > 1]
    if not rest:
        # A result read as a scalar costs nothing; a second operand of the same shape is the plain case.
        return "contiguous"
    if len(rest) > 1 or out.dim() != 2:
        return "strided"
    (other,) = rest
    if tuple(other.shape) in ((out.shape[1],), (1, out.shape[1])):
        return "a row"
    return "a column" if tuple(other.shape) == (out.shape[0], 1) else "strided"


def _row_layout(x: torch.Tensor, dims: list[Any]) -> str:
    """Whether an operation on rows runs over the last dimension of contiguous rows, as it was measured.

    `dims` holds a dimension, a list of them, or, for norms, the extents they span.
    """
    last = (-1, 1, [-1], [1], [x.shape[-1]])
    return "contiguous" if x.dim() == 2 and x.is_contiguous() and dims and dims[0] in last else "strided"
