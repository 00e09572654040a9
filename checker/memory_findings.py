"""From what a launch did to memory to what the learner is told: one root cause, one finding."""

from __future__ import annotations

from typing import Any

from checker.findings import Finding
from checker.vgpu.trace import LaunchTrace, Violation

__all__ = ["first_violation", "input_stored", "undefined_lanes", "unwritten"]

_SEVERITY = {
    # A store that misses its tensor explains unwritten elements and wrong values alike: it comes first.
    "store_outside": 0,
    "load_outside": 1,
    "misaligned": 2,
    "load_unwritten": 3,
    "lane_conflict": 4,
    "store_conflict": 4,
    "read_after_write": 5,
    "write_after_read": 5,
}


def first_violation(launches: list[LaunchTrace], file: str, case: str) -> Finding | None:
    """The finding for the gravest violation of the first launch that has one; None where there is none.

    A load from a gap of a view is no finding by itself: it is one only if the result depends on it.
    """
    for launch in launches:
        found = [violation for violation in launch.violations if violation.kind in _SEVERITY]
        if not found:
            continue
        worst = min(found, key=lambda violation: _SEVERITY[violation.kind])
        others = len({v.where for v in found if v.kind == worst.kind}) - 1
        return _finding(worst, launch, file, case, others, found)
    return None


def _finding(
    worst: Violation, launch: LaunchTrace, file: str, case: str, others: int, found: list[Violation]
) -> Finding:
    code, message, advice = _words(worst, launch, found)
    where = worst.wrapped_at if code == "K403" and worst.wrapped_at else worst.where
    details = [f"program {_program(worst.program, launch)}", _indices(worst)]
    if others > 0:
        details.append(f"and {others} more line{'s' if others > 1 else ''} like this")
    return Finding(
        code,
        message,
        advice,
        file=where.file if where else file,
        line=where.line if where else None,
        column=where.column if where else None,
        case=case,
        launch=str(launch),
        details=tuple(details),
    )


def _program(program: tuple[int, int, int], launch: LaunchTrace) -> str:
    short = program[: len(launch.short_grid)]
    return f"({short[0]},)" if len(short) == 1 else str(tuple(short))


def _indices(violation: Violation) -> str:
    shown = ", ".join(map(str, violation.indices))
    more = violation.count - len(violation.indices)
    return f"first element offsets {shown}" + (f" and {more} more" if more > 0 else "")


def _extent(violation: Violation) -> str:
    return f"{violation.argument} has shape {violation.shape} and strides {violation.strides}"


def _words(worst: Violation, launch: LaunchTrace, found: list[Violation]) -> tuple[str, str, str]:
    """(code, cause, where to look)."""
    kind = worst.kind
    name = worst.argument or "a pointer"
    if kind in ("store_outside", "load_outside"):
        verb = "stores" if kind == "store_outside" else "loads"
        if worst.wrapped_at:
            return (
                "K403",
                f"an int32 offset passed 2^31 and wrapped, so the kernel {verb} far outside {name}",
                "Cast to int64 before multiplying: tl.program_id(0).to(tl.int64), or the offsets before the stride.",
            )
        if not worst.argument:
            return (
                "K402" if kind == "store_outside" else "K401",
                f"the kernel {verb} at an address that belongs to none of its tensors",
                "Check that every address is built from a pointer argument plus element offsets.",
            )
        in_gap = kind == "store_outside" and bool(worst.indices) and 0 <= worst.indices[0] < _span(worst)
        place = "in a gap between the rows of" if in_gap else "outside"
        return (
            "K402" if kind == "store_outside" else "K401",
            f"the kernel {verb} {place} {name}: {_extent(worst)}",
            _where_to_look(worst, launch, in_gap),
        )
    if kind == "misaligned":
        return (
            "K409",
            f"the kernel accesses {name} at an address that is not a multiple of its element size",
            "Offsets count elements, not bytes: do not multiply them by the element size.",
        )
    if kind == "load_unwritten":
        return (
            "K405",
            f"the kernel loads elements of {name} that nothing has written yet",
            "Look at what you load from: an output from torch.empty holds garbage until the kernel stores to it.",
        )
    other = f" (program {_program(worst.other_program, launch)})" if worst.other_program else ""
    if kind == "lane_conflict":
        return (
            "K502",
            f"two lanes of one program store different values to one element of {name}; which one stays is chance",
            "Check the offsets of the store: each lane needs an element of its own.",
        )
    reads_too = any(access.kind == "load" and access.argument == worst.argument for access in launch.accesses)
    if reads_too and kind in ("store_conflict", "write_after_read", "read_after_write"):
        read_lines = {a.where for a in launch.accesses if a.kind == "load" and a.argument == worst.argument}
        shared = any(v.kind in ("store_conflict", "write_after_read") for v in found)
        if shared and read_lines and _adds_up(launch, worst.argument):
            return (
                "K504",
                f"several programs load, change and store the same elements of {name}{other}: updates get lost",
                "Use tl.atomic_add, or give each program elements of its own.",
            )
    if kind == "store_conflict":
        return (
            "K501",
            f"two programs store different values to one element of {name}{other}; which one stays is chance",
            "Check the grid and the offsets: does every program know its program_id, and own its elements alone?",
        )
    if kind == "read_after_write":
        return (
            "K503",
            f"a program loads elements of {name} that another program{other} stores in the same launch",
            "Programs run in no order: split the work into two launches, or let one program do both.",
        )
    return (
        "K503",
        f"a program stores to elements of {name} that another program{other} reads in the same launch",
        "Programs run in no order: store to another tensor, or let one program do both.",
    )


def _adds_up(launch: LaunchTrace, argument: str) -> bool:
    """Whether some line loads and some line stores as many lanes of one argument: load, change, store."""
    loads = sum(a.lanes for a in launch.accesses if a.kind == "load" and a.argument == argument)
    stores = sum(a.lanes for a in launch.accesses if a.kind == "store" and a.argument == argument)
    return loads > 0 and loads == stores


def _span(violation: Violation) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(violation.shape, violation.strides, strict=True) if n > 0)


_STRIDE_BLIND = (
    "The kernel is told no strides, so it takes this tensor for contiguous: make it so in the wrapper with "
    ".contiguous(), or pass the strides and use them."
)


def _stride_blind(launch: LaunchTrace, argument: str) -> bool:
    """Whether a tensor with gaps or in another order is walked over by a kernel that no stride is passed to."""
    tensor: Any = launch.tensors.get(argument)
    return tensor is not None and not tensor.is_contiguous() and not any("stride" in name for name in launch.scalars)


def _where_to_look(violation: Violation, launch: LaunchTrace, in_gap: bool) -> str:
    if _stride_blind(launch, violation.argument):
        return _STRIDE_BLIND
    if in_gap:
        return "Use the tensor's strides for its addresses, and mask each axis by its own extent."
    first = violation.indices[0] if violation.indices else 0
    if first < 0:
        return "The offset is negative: check the sign, and the lower bound in the mask."
    if len(violation.shape) > 1:
        return "Check the mask, and that each offset is multiplied by the stride of its own axis."
    return "Check the mask of this access: it must be False where the offset is past the end of this tensor."


def input_stored(launches: list[LaunchTrace], inputs: dict[int, str], allowed: set[int], case: str) -> Finding | None:
    """A store into a tensor the caller handed in for reading. `inputs` maps storage addresses to names."""
    for launch in launches:
        for access in launch.accesses:
            if access.kind == "load" or access.lanes == 0:
                continue
            tensor: Any = launch.tensors.get(access.argument)
            if tensor is None:
                continue
            storage = tensor.untyped_storage().data_ptr()
            if storage in inputs and storage not in allowed:
                where = access.where
                return Finding(
                    "K406",
                    f"the kernel stores into {access.argument}, which is the caller's input {inputs[storage]}",
                    "Allocate an output in the wrapper and store there; check the order of the launch's arguments.",
                    file=where.file if where else None,
                    line=where.line if where else None,
                    column=where.column if where else None,
                    case=case,
                    launch=str(launch),
                )
    return None


def unwritten(
    indices: list[int],
    numel: int,
    shape: tuple[int, ...],
    launches: list[LaunchTrace],
    output: Any,
    file: str,
    case: str,
) -> Finding:
    """The finding for elements of the result that no kernel stored. `indices` are flattened and logical."""
    launch = launches[-1] if launches else None
    storage = output.untyped_storage().data_ptr()
    place = None
    stored = held_back = 0
    for trace in launches:
        for access in trace.accesses:
            tensor: Any = trace.tensors.get(access.argument)
            if access.kind != "load" and tensor is not None and tensor.untyped_storage().data_ptr() == storage:
                place, launch = access.where, trace
                stored += access.lanes
                held_back += access.masked
    count = len(indices)
    too_few = launch is not None and launch.programs == 0
    if launch is None:
        message = "no element of the result was written, and no kernel was launched"
        advice = "Memory from torch.empty holds what was there before: launch a kernel for this case too, or fill it."
    elif launch.programs == 0:
        message = f"nothing was written: the grid {launch.short_grid} has no programs"
        advice = "Round the grid up with triton.cdiv(n, BLOCK_SIZE): n // BLOCK_SIZE is 0 for a small n."
    elif count == numel:
        message = "no element of the result was written" + ("" if stored else ": no kernel stores to it")
        advice = "Check that the kernel stores to the output pointer, and that the mask lets some lanes through."
    elif stored > numel - count:
        message = (
            f"{count} of {numel} elements of the result were never written, "
            f"while others were written more than once ({stored} stores to {numel - count} elements)"
        )
        advice = "Check how the offsets depend on the program id: each program needs elements of its own."
    else:
        first = indices[0]
        tail = first + count == numel
        message = f"{count} of {numel} elements of the result were never written"
        too_few = tail and not held_back and stored > launch.programs
        if tail:
            message += f": the programs cover {first} of {numel}"
            advice = (
                "Round the grid up with triton.cdiv(n, BLOCK_SIZE), and mask the last block; n // BLOCK_SIZE drops it."
            )
        else:
            advice = "Check the offsets and the mask of the store: which elements does no program own?"
    shown = ", ".join(str(_unravel(i, shape)) for i in indices[:4])
    line = launch.line if launch else 0
    if too_few and launch is not None and launch.called_at is not None:
        # Whole blocks, each stored where it should be: there are too few of them.
        place, line = None, launch.called_at
    return Finding(
        "K404",
        message,
        advice,
        file=place.file if place else (launch.file if launch and launch.file else file),
        line=place.line if place else (line or None),
        column=place.column if place else None,
        case=case,
        launch=str(launch) if launch else None,
        details=(f"first unwritten indices {shown}",),
    )


def _unravel(flat: int, shape: tuple[int, ...]) -> int | tuple[int, ...]:
    if len(shape) < 2:
        return flat
    index: list[int] = []
    for extent in reversed(shape):
        index.append(flat % extent)
        flat //= extent
    return tuple(reversed(index))


def undefined_lanes(launch: LaunchTrace, where: Any, argument: str, gap: bool, case: str) -> Finding:
    """The finding for a result that depends on what masked-off lanes, or the gap of a view, happen to hold."""
    if gap:
        code = "K410"
        message = f"the result depends on what lies between the rows of {argument}, which is not part of the tensor"
        advice = "Mask each axis by its own extent, so that nothing outside the view is loaded."
        if _stride_blind(launch, argument):
            advice = _STRIDE_BLIND
    else:
        code = "K407"
        message = f"the result depends on what masked-off lanes of this load from {argument} happen to hold"
        advice = (
            "If these lanes hold no element, give tl.load an `other=` that the following step ignores: "
            "0 for a sum, -inf for a maximum, 1 for a product. If they do, the mask is too narrow."
        )
    return Finding(
        code,
        message,
        advice,
        file=where.file if where else None,
        line=where.line if where else None,
        column=where.column if where else None,
        case=case,
        launch=str(launch),
    )
