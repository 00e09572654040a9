"""What a kernel says to whoever debugs it: prints, assertions, assumptions."""

from __future__ import annotations

import numpy as np

from checker.vgpu.errors import VirtualGpuError
from checker.vgpu.machine import Handler, Machine
from checker.vgpu.ttir import Op

__all__ = ["HANDLERS"]


def _print(run: Machine, op: Op) -> None:
    for value_number, slot in enumerate(op.operands or (None,)):
        value = None if slot is None else np.broadcast_to(run.env[slot], (run.programs.size, *run.env[slot].shape[1:]))
        for row, program in enumerate(run.programs.tolist()):
            if run.active is not None and not run.active[row]:
                continue
            shown = "" if value is None else np.array2string(value[row], threshold=16, edgeitems=4)
            operand = f"operand {value_number}: " if len(op.operands) > 1 else ""
            line = f"pid {run.memory.program(program)}{op.words[0]}{operand}{shown}"
            run.trace.prints.append(line)
            if run.echo:
                run.echo(line)


def _assert(run: Machine, op: Op) -> None:
    condition = run.env[op.operands[0]]
    rows = np.broadcast_to(condition.reshape(condition.shape[0], -1).all(axis=1), (run.programs.size,))
    failed = ~rows if run.active is None else ~rows & run.active
    if failed.any():
        program = run.memory.program(int(run.programs[int(np.argmax(failed))]))
        raise VirtualGpuError(
            "K309",
            f"device_assert failed in program {program}: {op.words[0] if op.words else ''}",
            "The condition is yours: print its operands with tl.device_print, or run `kata debug`.",
            where=op.where,
        )


def _assume(run: Machine, op: Op) -> None:
    holds = np.broadcast_to(run.env[op.operands[0]].reshape(-1), (run.programs.size,))
    broken = ~holds if run.active is None else ~holds & run.active
    if broken.any():
        program = run.memory.program(int(run.programs[int(np.argmax(broken))]))
        raise VirtualGpuError(
            "K409",
            f"what tl.assume promises is not true in program {program}",
            "The compiler builds on this promise; assume only what holds for every program.",
            where=op.where,
        )


HANDLERS: dict[str, Handler] = {
    "tt.print": _print,
    "tt.assert": _assert,
    "llvm.intr.assume": _assume,
}
