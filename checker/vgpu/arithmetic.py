"""The arithmetic of TTIR in numpy: one function for each pure operation.

Every value is an array whose first axis is the program (length 1 where all programs agree) and whose other axes
are those of the block, any of which may have length 1 where the value does not vary. Integers wrap, division
truncates toward zero, max and min treat NaN as the operation's own name says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from checker.vgpu.errors import NotModelled
from checker.vgpu.floats import NUMPY, WIDTH, Array, fma, round_to, truncate_tf32
from checker.vgpu.ttir import Op, Type

__all__ = ["PURE", "constant", "dot", "fused_multiply_add"]

Pure = Callable[[Op, Sequence[Array]], Array]


def _unsigned(values: Array) -> Array:
    return values.view(np.dtype(f"u{values.dtype.itemsize}")) if values.dtype != np.bool_ else values.view(np.uint8)


def _float(op: Op, result: Any) -> Array:
    return round_to(op.type.element, np.asarray(result))


def _floating(function: Callable[..., Any]) -> Pure:
    return lambda op, values: _float(op, function(*values))


def _integer(function: Callable[..., Any]) -> Pure:
    def run(op: Op, values: Sequence[Array]) -> Array:
        if op.type.element == "i1":
            # A one-bit integer wraps like any other; numpy's booleans would saturate.
            wide = [value.astype(np.int8) for value in values]
            return np.asarray(function(*wide) & 1).astype(np.bool_)
        return np.asarray(function(*values)).astype(NUMPY[op.type.element], copy=False)

    return run


def _unsigned_integer(function: Callable[..., Any]) -> Pure:
    def run(op: Op, values: Sequence[Array]) -> Array:
        return np.asarray(function(*map(_unsigned, values))).astype(NUMPY[op.type.element], copy=False)

    return run


def _divide(left: Array, right: Array) -> Array:
    """Division truncating toward zero; by zero it gives -1, as a GPU gives garbage rather than a fault."""
    safe = np.where(right == 0, 1, right)
    quotient = left // safe
    quotient = quotient + ((left - quotient * safe != 0) & ((left < 0) != (safe < 0)))
    return np.where(right == 0, -1, quotient)


def _divide_fully(left: Array, right: Array) -> Array:
    """Division as div.full.f32 does it: times the reciprocal, after scaling a divisor whose reciprocal has no room.

    So a quotient may be off by 2 units in the last place, and x / x need not be 1 (PTX ISA, "div"). float64 is exact.
    """
    if np.result_type(left, right) == np.float64:
        return np.asarray(np.divide(left, right))
    size = np.abs(right)
    one = np.float32(1)
    scale = np.where(size > np.float32(2.0**126), np.float32(0.25), one)
    scale = np.where(size < np.float32(2.0**-126), np.float32(2.0**24), scale)
    return np.asarray((left * scale) * (one / (right * scale)))


def _remainder(left: Array, right: Array) -> Array:
    return np.where(right == 0, left, left - _divide(left, right) * np.where(right == 0, 1, right))


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


def _cmpi(op: Op, values: Sequence[Array]) -> Array:
    predicate = op.words[0]
    left, right = values
    if predicate.startswith("u"):
        left, right = _unsigned(left), _unsigned(right)
    return np.asarray(_COMPARE[predicate[-2:]](left, right))


def _cmpf(op: Op, values: Sequence[Array]) -> Array:
    predicate = op.words[0]
    left, right = values
    if predicate in ("true", "false"):
        return np.full(np.broadcast_shapes(left.shape, right.shape), predicate == "true")
    unordered = np.isnan(left) | np.isnan(right)
    if predicate in ("ord", "uno"):
        return ~unordered if predicate == "ord" else unordered
    holds = np.asarray(_COMPARE[predicate[1:]](left, right))
    return (holds | unordered) if predicate[0] == "u" else (holds & ~unordered)


def _shift(function: Callable[..., Any], signed: bool) -> Pure:
    def run(op: Op, values: Sequence[Array]) -> Array:
        value, amount = values if signed else map(_unsigned, values)
        bits = value.dtype.itemsize * 8
        inside = (amount >= 0) & (amount < bits)
        shifted = function(value, np.where(inside, amount, 0).astype(value.dtype))
        beyond = np.where(value < 0, -1, 0) if signed and function is np.right_shift else 0
        return np.asarray(np.where(inside, shifted, beyond)).astype(NUMPY[op.type.element])

    return run


def _extend_signed(op: Op, values: Sequence[Array]) -> Array:
    value = values[0]
    if value.dtype == np.bool_:
        return -value.astype(NUMPY[op.type.element])
    return value.astype(NUMPY[op.type.element])


def _truncate_integer(op: Op, values: Sequence[Array]) -> Array:
    if op.type.element == "i1":
        return (values[0] & 1).astype(np.bool_)
    return values[0].astype(NUMPY[op.type.element])


def _float_to_integer(unsigned: bool) -> Pure:
    """Toward zero, saturating at the ends of the type; NaN gives 0, as cvt.rzi does."""

    def run(op: Op, values: Sequence[Array]) -> Array:
        target = NUMPY[op.type.element]
        if op.type.element == "i1":
            return np.asarray(np.trunc(values[0]) != 0)
        info = np.iinfo(np.dtype(f"u{target.itemsize}") if unsigned else target)
        value = np.nan_to_num(np.trunc(values[0].astype(np.float64)), nan=0.0)
        # The largest 64-bit integers are no float64: what reaches beyond them is set afterwards.
        high, low = value >= float(info.max), value <= float(info.min)
        result = np.where(high | low, 0.0, value).astype(info.dtype)
        result[high], result[low] = info.max, info.min
        return result.view(target)

    return run


def _bitcast(op: Op, values: Sequence[Array]) -> Array:
    source, target = op.types[0].element, op.type.element
    if source == target or "ptr" in (source, target):
        return values[0].astype(NUMPY[target], copy=False)
    from checker.vgpu.floats import decode, encode, stored_dtype

    bits = np.ascontiguousarray(encode(source, values[0]))
    return decode(target, bits.view(stored_dtype(target)))


def _fp_to_fp(op: Op, values: Sequence[Array]) -> Array:
    if op.type.element not in WIDTH:
        raise NotModelled(f"the number format {op.type.element}", where=op.where)
    if "rtz" in op.attrs.values() or "rtz" in op.words:
        raise NotModelled("conversion rounding toward zero", where=op.where)
    return round_to(op.type.element, values[0])


def _erf(values: Array) -> Array:
    import torch
    from torch.utils._python_dispatch import _disable_current_modes

    # PyTorch is only a library here: who watches what the learner's wrapper asks of it must not see this.
    with _disable_current_modes():
        return np.asarray(torch.special.erf(torch.from_numpy(np.ascontiguousarray(values))).numpy())


def _clamp(op: Op, values: Sequence[Array]) -> Array:
    value, low, high = values
    clamped = np.fmin(np.fmax(value, low), high)
    if "all" in op.words or "all" in op.attrs.values():
        clamped = np.where(np.isnan(value), value, clamped)
    return _float(op, clamped)


_LIBDEVICE: dict[str, Callable[..., Any]] = {
    "tanh": np.tanh, "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2,
    "log10": np.log10, "log1p": np.log1p, "sqrt": np.sqrt, "fabs": np.abs, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "atan": np.arctan, "asin": np.arcsin, "acos": np.arccos, "sinh": np.sinh, "cosh": np.cosh, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint, "pow": np.power, "fmod": np.fmod, "atan2": np.arctan2,
    "hypot": np.hypot, "cbrt": np.cbrt, "erf": _erf, "rsqrt": lambda x: 1 / np.sqrt(x), "fmax": np.fmax,
    "fmin": np.fmin, "copysign": np.copysign, "isnan": np.isnan, "isinf": np.isinf, "finite": np.isfinite,
    "div_rn": np.divide, "fast_expf": np.exp, "fast_tanhf": np.tanh, "fast_dividef": lambda x, y: x * (1 / y),
    "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x), "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}  # fmt: skip


def _extern(op: Op, values: Sequence[Array]) -> Array:
    """A libdevice call, `__nv_tanhf` and the like, or its ROCm name."""
    symbol = op.attrs.get("symbol", "")
    name = re.sub(r"^__(nv|ocml)_", "", symbol)
    name = re.sub(r"_f(16|32|64)$", "", name)
    for candidate in (name, name.removesuffix("f"), name.removesuffix("f").removesuffix("d")):
        if candidate in _LIBDEVICE:
            result = np.asarray(_LIBDEVICE[candidate](*values))
            return result.astype(NUMPY[op.type.element]) if op.type.element.startswith("i") else _float(op, result)
    raise NotModelled(f"the library function {symbol}", where=op.where)


def _multiply_high(op: Op, values: Sequence[Array]) -> Array:
    left, right = (_unsigned(value) for value in values)
    if left.dtype.itemsize < 8:
        wide = left.astype(np.uint64) * right.astype(np.uint64)
        return (wide >> np.uint64(8 * left.dtype.itemsize)).astype(left.dtype).view(NUMPY[op.type.element])
    low = np.uint64(0xFFFFFFFF)
    half = np.uint64(32)
    a, b, c, d = left >> half, left & low, right >> half, right & low
    middle = (b * d >> half) + (a * d & low) + (b * c & low)
    high: Array = a * c + (a * d >> half) + (b * c >> half) + (middle >> half)
    return high.view(np.int64)


PURE: dict[str, Pure] = {
    "arith.addf": _floating(np.add),
    "arith.subf": _floating(np.subtract),
    "arith.mulf": _floating(np.multiply),
    "arith.divf": _floating(_divide_fully),
    "arith.remf": _floating(np.fmod),
    "arith.negf": _floating(np.negative),
    "arith.maxnumf": _floating(np.fmax),
    "arith.minnumf": _floating(np.fmin),
    "arith.maximumf": _floating(np.maximum),
    "arith.minimumf": _floating(np.minimum),
    "tt.precise_divf": _floating(np.divide),
    "tt.precise_sqrt": _floating(np.sqrt),
    "tt.clampf": _clamp,
    "math.exp": _floating(np.exp),
    "math.exp2": _floating(np.exp2),
    "math.log": _floating(np.log),
    "math.log2": _floating(np.log2),
    "math.sqrt": _floating(np.sqrt),
    "math.rsqrt": _floating(lambda x: 1 / np.sqrt(x)),
    "math.sin": _floating(np.sin),
    "math.cos": _floating(np.cos),
    "math.tanh": _floating(np.tanh),
    "math.erf": _floating(_erf),
    "math.floor": _floating(np.floor),
    "math.ceil": _floating(np.ceil),
    "math.absf": _floating(np.abs),
    "math.absi": _integer(np.abs),
    "math.fma": lambda op, v: fma(op.type.element, v[0], v[1], v[2]),
    "arith.addi": _integer(np.add),
    "arith.subi": _integer(np.subtract),
    "arith.muli": _integer(np.multiply),
    "arith.divsi": _integer(_divide),
    "arith.remsi": _integer(_remainder),
    "arith.divui": _unsigned_integer(lambda a, b: a // np.where(b == 0, 1, b)),
    "arith.remui": _unsigned_integer(lambda a, b: a % np.where(b == 0, 1, b)),
    "arith.andi": _integer(np.bitwise_and),
    "arith.ori": _integer(np.bitwise_or),
    "arith.xori": _integer(np.bitwise_xor),
    "arith.maxsi": _integer(np.maximum),
    "arith.minsi": _integer(np.minimum),
    "arith.maxui": _unsigned_integer(np.maximum),
    "arith.minui": _unsigned_integer(np.minimum),
    "arith.shli": _shift(np.left_shift, signed=False),
    "arith.shrui": _shift(np.right_shift, signed=False),
    "arith.shrsi": _shift(np.right_shift, signed=True),
    "tt.mulhiui": _multiply_high,
    "arith.cmpi": _cmpi,
    "arith.cmpf": _cmpf,
    "arith.extsi": _extend_signed,
    "arith.extui": lambda op, v: _unsigned(v[0]).astype(NUMPY[op.type.element]),
    "arith.trunci": _truncate_integer,
    "arith.index_cast": _extend_signed,
    "arith.sitofp": lambda op, v: round_to(op.type.element, _signed(v[0])),
    "arith.uitofp": lambda op, v: round_to(op.type.element, _unsigned(v[0])),
    "arith.fptosi": _float_to_integer(unsigned=False),
    "arith.fptoui": _float_to_integer(unsigned=True),
    "arith.extf": lambda op, v: v[0].astype(NUMPY[op.type.element]),
    "arith.truncf": lambda op, v: round_to(op.type.element, v[0]),
    "arith.bitcast": _bitcast,
    "tt.bitcast": _bitcast,
    "tt.int_to_ptr": _bitcast,
    "tt.ptr_to_int": _bitcast,
    "tt.fp_to_fp": _fp_to_fp,
    "tt.extern_elementwise": _extern,
}


def _signed(values: Array) -> Array:
    return -values.astype(np.int8) if values.dtype == np.bool_ else values


def fused_multiply_add(op: Op, product: tuple[Array, Array], addend: Array, *, negate_product: bool) -> Array:
    """An addition or subtraction contracted with the multiplication that feeds it, as the compiled code does.

    `addf` gives a*b + c; `subf` gives a*b - c, or c - a*b where the product is the second operand.
    """
    left, right = product
    if negate_product:
        left = -left
    elif op.name == "arith.subf":
        addend = -addend
    return fma(op.type.element, left, right, addend)


def dot(op: Op, values: Sequence[Array]) -> Array:
    """`tt.dot`: a (…, M, K) times b (…, K, N) plus c, in the precision the chip uses.

    fp16 and bf16 products are exact and summed in float32. A sum kept in fp16 is rounded by each instruction, which
    takes 16 places along K. fp32 operands lose their low 13 bits (tf32) unless `ieee` is asked for; tf32x3 is close
    enough to float32 to be computed there.
    """
    left, right, start = values
    kind = op.types[0].element
    # The default of the operation, ieee, is not printed; the language asks for tf32 unless told otherwise.
    precision = op.attrs.get("inputPrecision", "ieee")
    if kind not in ("f16", "bf16", "f32", "f64", "i8"):
        raise NotModelled(f"a dot of {kind} operands", where=op.where)
    if kind == "f32" and precision == "tf32":
        left, right = truncate_tf32(left), truncate_tf32(right)
    elif kind == "f32" and precision in ("bf16x3", "bf16x6"):
        raise NotModelled(f"a dot with input_precision={precision!r}", where=op.where)
    if kind == "i8":
        # Exact: products of bytes stay far below 2^53 in sum, and numpy multiplies floating-point matrices faster.
        total = np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64) + start
        return np.asarray(total).astype(np.int32)
    if op.type.element != "f16":
        return round_to(op.type.element, np.matmul(left, right) + start)
    total = start
    for k in range(0, left.shape[-1], _INSTRUCTION_K):
        step = slice(k, k + _INSTRUCTION_K)
        total = round_to("f16", np.matmul(left[..., step], right[..., step, :]) + total)
    return total


# Places along K that one tensor-core instruction takes of fp16 operands (PTX ISA, "wgmma.mma_async": K is 16).
_INSTRUCTION_K = 16

_DENSE = re.compile(r"^dense<(.*)>$", re.DOTALL)


def constant(op: Op) -> Array:
    """The value of `arith.constant`, with a leading program axis of length 1."""
    text = op.words[0]
    kind = op.type
    match = _DENSE.match(text)
    body = match[1] if match else text
    if body.startswith("["):
        items = [_scalar(part, kind) for part in re.sub(r"[\[\]\s]", "", body).split(",")]
        return round_to(kind.element, np.array(items)).reshape((1, *kind.shape))
    # The text holds just enough digits to tell the constant from its neighbours in its own format.
    return round_to(kind.element, np.array(_scalar(body, kind))).reshape((1,) * (1 + len(kind.shape)))


def _scalar(text: str, kind: Type) -> Any:
    text = text.strip()
    if text in ("true", "false"):
        return text == "true"
    if text.startswith("0x") and kind.element in ("f16", "bf16", "f32", "f64"):
        bits = int(text, 16)
        if kind.element == "bf16":
            return np.array(bits << 16, dtype=np.uint32).view(np.float32)
        width = WIDTH[kind.element]
        return np.array(bits, dtype=f"u{width}").view(f"f{width}")
    if kind.element in ("f16", "bf16", "f32", "f64"):
        return float(text)
    value = int(text, 0)
    if kind.element == "i1":
        return bool(value & 1)
    bits = 8 * NUMPY[kind.element].itemsize
    return (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
