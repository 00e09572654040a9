"""Finding places in the learner's file for the compiler's errors: a node of one function's source, a line, a launch."""

from __future__ import annotations

import ast
from typing import Any

from checker.source import dotted, jit_functions

Located = tuple[ast.FunctionDef, ast.AST]
"""A function of the learner's file and a node in it, with the file's own line numbers."""


def locate(error: Any, tree: ast.Module) -> Located | None:
    """The place of a compile error in the file, or None if it lies in another file (Triton's library)."""
    source, node = error.src, error.node
    if not source or not hasattr(node, "lineno"):
        return None
    try:
        compiled = ast.parse(source).body[0]
    except (SyntaxError, IndexError):
        return None
    if not isinstance(compiled, ast.FunctionDef):
        return None
    wanted = _shape(compiled)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name == compiled.name and _shape(function) == wanted:
            indent = function.col_offset
            line, column = node.lineno - 1 + function.lineno, node.col_offset + indent
            for child in ast.walk(function):
                at = (getattr(child, "lineno", None), getattr(child, "col_offset", None))
                if type(child) is type(node) and at == (line, column):
                    return function, child
            return function, function
    return None


def _shape(function: ast.FunctionDef) -> str:
    return ast.dump(ast.Module(body=[function.args, *function.body], type_ignores=[]))  # type: ignore[list-item]


def where(node: ast.AST) -> tuple[int | None, int | None]:
    """The 1-based line and column of a node, if it has any."""
    line, column = getattr(node, "lineno", None), getattr(node, "col_offset", None)
    return line, column + 1 if column is not None else None


def called_name(node: ast.AST) -> str:
    """The last part of the name of what a call calls; empty for anything else."""
    return dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def return_in_loop(function: ast.FunctionDef) -> ast.Return | None:
    """The first `return` inside a loop of a function."""
    for loop in ast.walk(function):
        if isinstance(loop, ast.For | ast.While):
            for child in ast.walk(loop):
                if isinstance(child, ast.Return):
                    return child
    return None


def function_at(tree: ast.Module, line: int) -> ast.FunctionDef | None:
    """The Triton function that a line belongs to."""
    return next((f for f in jit_functions(tree) if f.lineno <= line <= (f.end_lineno or f.lineno)), None)


def statement_at(tree: ast.Module, line: int) -> Located | None:
    """The innermost load, store, return or loop on a line, and its function."""
    function = function_at(tree, line)
    if function is None:
        return None
    on_line = [node for node in ast.walk(function) if getattr(node, "lineno", None) == line]
    for kind in (ast.While, ast.For, ast.Return, ast.If):
        if found := [node for node in on_line if isinstance(node, kind)]:
            return function, found[0]
    calls = [
        node for node in on_line if called_name(node) in ("load", "store") or called_name(node).startswith("atomic")
    ]
    return function, (calls or on_line or [function])[0]


def call_at(tree: ast.Module, line: int | None) -> ast.Call | None:
    """The kernel launch on a line: a call of a subscript."""
    if line is None:
        return None
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Subscript)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
        ):
            return node
    return None


def launched(tree: ast.Module, line: int | None) -> ast.FunctionDef | None:
    """The kernel that the launch on a line calls; the only kernel of the file if that cannot be told."""
    kernels = list(jit_functions(tree))
    launch = call_at(tree, line)
    if launch is not None and isinstance(launch.func, ast.Subscript):
        name = dotted(launch.func.value)
        return next((kernel for kernel in kernels if kernel.name == name), None)
    return kernels[0] if len(kernels) == 1 else None
