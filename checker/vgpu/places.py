"""Where an operation stands, for Triton before 3.9: there a call's place is that of its last argument.

The learner's source tells which call that argument belongs to, so that every version points at the same character.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from checker.vgpu.errors import SourceLine
from checker.vgpu.ttir import Module, Op

__all__ = ["mend"]

# What the call that made an operation is called in the source, or ends with.
_CALLED = {
    "tt.load": "load",
    "tt.store": "store",
    "tt.descriptor_load": "load",
    "tt.descriptor_store": "store",
    "tt.atomic_cas": "atomic_cas",
    "tt.assert": "device_assert",
    "tt.print": "device_print",
}
_OPERATORS: dict[str, type[ast.operator]] = {"arith.muli": ast.Mult, "arith.addi": ast.Add, "arith.subi": ast.Sub}

Place = tuple[int, int]


def mend(module: Module) -> None:
    """Moves the places of accesses and of integer arithmetic to the beginning of their expressions."""
    files: dict[str, tuple[ast.expr, ...]] = {}
    for function in module.functions.values():
        for op in function.ops():
            if op.where is None:
                continue
            if op.where.file not in files:
                files[op.where.file] = _expressions(op.where.file, _saved(op.where.file))
            op.where = _begin(op, op.where, files[op.where.file])


def _begin(op: Op, where: SourceLine, nodes: tuple[ast.expr, ...]) -> SourceLine:
    at = (where.line, where.column - 1)
    found: list[ast.expr]
    if op.name in _OPERATORS:
        found = [
            node
            for node in nodes
            if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS[op.name]) and _start(node.right) == at
        ]
    else:
        called = "atomic_" if op.name.startswith("tt.atomic_rmw") else _CALLED.get(op.name)
        calls = [node for node in nodes if isinstance(node, ast.Call) and called and called in _name(node)]
        found = [call for call in calls if call.args and _start(call.args[-1]) == at]
        found = found or [call for call in calls if _start(call) <= at < _end(call)]
    if not found:
        return where
    line, column = max(map(_start, found))
    return replace(where, line=line, column=column + 1)


def _saved(file: str) -> int:
    try:
        return Path(file).stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=16)
def _expressions(file: str, saved: int) -> tuple[ast.expr, ...]:
    """Every call and every binary operation of a file as it was at the time `saved`."""
    try:
        tree = ast.parse(Path(file).read_text())
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, (ast.Call, ast.BinOp)))


def _name(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _start(node: ast.expr) -> Place:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> Place:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
