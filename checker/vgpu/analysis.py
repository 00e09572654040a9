"""Static facts about a TTIR function, found once per compiled kernel.

Which argument a pointer comes from, which operations an address depends on, which multiplications the compiler
contracts into fused multiply-adds, and whether programs must run one at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from checker.vgpu.ttir import Function, Op, Region

__all__ = ["ATOMICS", "POLLS", "Analysis", "Contraction", "analyse"]

_POINTER_STEPS = frozenset(
    {
        "tt.addptr",
        "tt.splat",
        "tt.broadcast",
        "tt.expand_dims",
        "tt.reshape",
        "tt.trans",
        "tt.bitcast",
        "tt.make_tensor_descriptor",
    }
)
ATOMICS = frozenset(["tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store", "tt.atomic_poll"])
_ACCESSES = frozenset(["tt.load", "tt.store", *ATOMICS])
_STORES = frozenset(["tt.store", "tt.descriptor_store", "tt.descriptor_reduce", "tt.descriptor_scatter", *ATOMICS])
# What a loop that waits for another program looks at memory with.
POLLS = frozenset(["tt.load", *ATOMICS])


@dataclass(frozen=True, slots=True)
class Contraction:
    """An addition fused with the product of slots `left` and `right`; `addend` is its other operand."""

    left: int
    right: int
    addend: int
    negate_product: bool


@dataclass(slots=True)
class Analysis:
    """The facts; keys are slots of values or `Op.index`.

    `origin` gives the one argument a pointer leads into, and has no entry where there are several or none is known;
    `stored_arguments` holds all that may be stored into, and -1 if that is not known.
    """

    origin: dict[int, int] = field(default_factory=dict)
    address_ops: dict[int, frozenset[int]] = field(default_factory=dict)
    wraps: frozenset[int] = frozenset()
    contractions: dict[int, Contraction] = field(default_factory=dict)
    used: frozenset[int] = frozenset()
    sequential: bool = False
    largest_block: int = 1
    stored_arguments: frozenset[int] = frozenset()


def analyse(function: Function, *, fusion: bool) -> Analysis:
    """Runs every analysis; `fusion` is whether the kernel was compiled with floating-point contraction."""
    result = Analysis()
    ops = list(function.ops())
    producers: dict[int, Op] = {slot: op for op in ops for slot in op.results}
    sources = _sources(function, ops)
    origins = _origins(function, ops, sources)
    result.origin = {slot: next(iter(found)) for slot, found in origins.items() if len(found) == 1}
    wraps: set[int] = set()
    for op in ops:
        if op.name in _ACCESSES or op.name.startswith("tt.descriptor"):
            slice_ops = _slice(op.operands[0], producers, sources)
            result.address_ops[op.index] = slice_ops
            wraps |= slice_ops
    narrow = {
        op.index
        for op in ops
        if op.name in ("arith.muli", "arith.addi", "arith.subi") and op.type.element == "i32" and op.index in wraps
    }
    result.wraps = frozenset(narrow)
    result.used = frozenset(slot for op in ops for slot in (*op.operands, *(s for _, a in op.successors for s in a)))
    if fusion:
        _contract(function.body, producers, result)
    in_loops = [op for outer in ops if outer.name == "scf.while" for region in outer.regions for op in _ops(region)]
    polls = any(op.name in ATOMICS or "isVolatile" in op.attrs for op in in_loops)
    result.sequential = polls or any(
        (op.name in ATOMICS and op.name != "tt.atomic_rmw") or (op.name in ATOMICS and set(op.results) & result.used)
        for op in ops
    )
    result.largest_block = max((kind.numel for op in ops for kind in op.types), default=1)
    stores = [op for op in ops if op.name in _STORES]
    result.stored_arguments = frozenset(number for op in stores for number in origins.get(op.operands[0], {-1}))
    return result


def _origins(function: Function, ops: list[Op], sources: dict[int, tuple[int, ...]]) -> dict[int, set[int]]:
    """The arguments that each pointer may lead into; -1 stands for an address from elsewhere."""
    origins: dict[int, set[int]] = {slot: {number} for number, (slot, _) in enumerate(function.args)}
    feeds = dict(sources)
    for op in ops:
        if op.name in _POINTER_STEPS:
            feeds[op.results[0]] = (op.operands[0],)
        elif op.name == "arith.select":
            feeds[op.results[0]] = op.operands[1:3]
        elif op.name not in ("scf.for", "scf.if", "scf.while") and any(t.element in ("ptr", "desc") for t in op.types):
            origins |= {slot: {-1} for slot in op.results}
    changed = True
    while changed:
        changed = False
        for target, feeding in feeds.items():
            found = set().union(*(origins.get(slot, set()) for slot in feeding))
            if not found <= origins.get(target, set()):
                origins[target] = origins.get(target, set()) | found
                changed = True
    return origins


def _ops(region: Region) -> list[Op]:
    return [
        op for block in region.blocks for top in block.ops for op in (top, *(o for r in top.regions for o in _ops(r)))
    ]


def _sources(function: Function, ops: list[Op]) -> dict[int, tuple[int, ...]]:
    """For block arguments and results of control flow: the slots a value may come from."""
    sources: dict[int, list[int]] = {}

    def feed(targets: list[int], values: list[int]) -> None:
        for target, value in zip(targets, values, strict=False):
            sources.setdefault(target, []).append(value)

    for op in ops:
        if op.name == "scf.for":
            body = op.regions[0].blocks[0]
            carried = [slot for slot, _ in body.args[1:]]
            yielded = list(body.ops[-1].operands)
            feed([body.args[0][0]], [op.operands[0]])
            feed(carried, list(op.operands[3:]))
            feed(carried, yielded)
            feed(list(op.results), list(op.operands[3:]))
            feed(list(op.results), yielded)
        elif op.name == "scf.if":
            for region in op.regions:
                feed(list(op.results), list(region.blocks[0].ops[-1].operands))
        elif op.name == "scf.while":
            before, after = (region.blocks[0] for region in op.regions)
            passed = list(before.ops[-1].operands[1:])
            feed([slot for slot, _ in before.args], list(op.operands))
            feed([slot for slot, _ in before.args], list(after.ops[-1].operands))
            feed([slot for slot, _ in after.args], passed)
            feed(list(op.results), passed)
        for label, args in op.successors:
            for block in function.body.blocks:
                if block.label == label:
                    feed([slot for slot, _ in block.args], list(args))
    return {target: tuple(values) for target, values in sources.items()}


def _slice(slot: int, producers: dict[int, Op], sources: dict[int, tuple[int, ...]]) -> frozenset[int]:
    """Indices of all operations that the value in `slot` depends on, memory excepted."""
    seen: set[int] = set()
    found: set[int] = set()
    todo = [slot]
    while todo:
        current = todo.pop()
        if current in seen:
            continue
        seen.add(current)
        todo += sources.get(current, ())
        producer = producers.get(current)
        if producer is not None and producer.index not in found:
            found.add(producer.index)
            if producer.name != "tt.load":
                todo += producer.operands
    return frozenset(found)


def _contract(region: Region, producers: dict[int, Op], result: Analysis) -> None:
    """Marks additions that the backend fuses with a product of the same basic block, first operand first.

    Seen in the PTX of Triton 3.6 to 3.9 for sm_90: a product is fused into every addition it feeds, also where it
    has other uses, and also through a splat, which costs no instruction.
    """
    for block in region.blocks:
        here = {op.index for op in block.ops}
        for op in block.ops:
            for inner in op.regions:
                if op.name not in ("tt.reduce", "tt.scan"):
                    _contract(inner, producers, result)
            if op.name not in ("arith.addf", "arith.subf") or op.type.element == "f64":
                continue
            for position in (0, 1):
                producer = producers.get(op.operands[position])
                while producer is not None and producer.name == "tt.splat" and producer.index in here:
                    producer = producers.get(producer.operands[0])
                if producer is None or producer.name != "arith.mulf" or producer.index not in here:
                    continue
                left, right = producer.operands
                negate = op.name == "arith.subf" and position == 1
                result.contractions[op.index] = Contraction(left, right, op.operands[1 - position], negate)
                break
