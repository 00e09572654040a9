"""Suspicions in the source: slips that run without complaint and then give a wrong result (K107, K108, K111).

They never decide. A run that fails is worded with them, a run that passes shows them as a note.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from checker.findings import Finding
from checker.source import jit_functions, place

_METHODS = frozenset(
    {"is_contiguous", "numel", "dim", "stride", "size", "element_size", "is_floating_point", "nelement"}
)
"""Tensor methods that look like attributes; a bound method is always true."""


def slips(file: Path, tree: ast.Module, source: str) -> Iterator[Finding]:
    """All slips of a file, in the order K107, K108, K111."""
    yield from _uncalled(file, tree)
    for function in jit_functions(tree):
        yield from _overwritten(file, function)
        yield from _precedence(file, function, source)


def precedence_at(source: str, line: int) -> bool:
    """Whether a `&` without parentheses between comparisons stands on a line: it words what the compiler says there."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    lines = source.splitlines()
    return any(
        node.lineno <= line <= (node.end_lineno or node.lineno) and _slipped(node, lines)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
    )


def _uncalled(file: Path, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        tests: list[ast.expr] = []
        if isinstance(node, ast.Assert | ast.If | ast.While | ast.IfExp):
            tests = [node.test]
        elif isinstance(node, ast.BoolOp):
            tests = node.values
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            tests = [node.operand]
        elif isinstance(node, ast.Compare):
            tests = [node.left, *node.comparators]
        for test in tests:
            if isinstance(test, ast.Attribute) and test.attr in _METHODS:
                line, column = place(test)
                name = ast.unparse(test)
                yield Finding(
                    "K107",
                    f"`{name}` names a method without calling it, and a method is always true",
                    f"call it: `{name}()`",
                    file=str(file),
                    line=line,
                    column=column,
                )


def _overwritten(file: Path, function: ast.FunctionDef) -> Iterator[Finding]:
    pointers = {argument.arg for argument in function.args.args if argument.arg.endswith("_ptr")}
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign):
            continue
        used = {name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)}
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in pointers and target.id not in used:
                line, column = place(target)
                yield Finding(
                    "K108",
                    f"the pointer argument `{target.id}` is overwritten by `{ast.unparse(node.value)}`",
                    f"this changes a local name and moves no data; `{target.id}` no longer points to its tensor",
                    file=str(file),
                    line=line,
                    column=column,
                )


def _precedence(file: Path, function: ast.FunctionDef, source: str) -> Iterator[Finding]:
    lines = source.splitlines()
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and _slipped(node, lines):
            line, column = place(node)
            written = ast.get_source_segment(source, node) or ast.unparse(node)
            yield Finding(
                "K111",
                f"in `{written}` the `&` binds tighter than the comparisons",
                "put each comparison in parentheses: `(a < b) & (c < d)`",
                file=str(file),
                line=line,
                column=column,
            )


def _slipped(node: ast.Compare, lines: list[str]) -> bool:
    """`a < b & c < d` reads as `a < (b & c) < d`: a bare `&` or `|` as operand of a comparison joins comparisons."""
    for operand in (node.left, *node.comparators):
        if not (isinstance(operand, ast.BinOp) and isinstance(operand.op, ast.BitAnd | ast.BitOr)):
            continue
        if _in_parentheses(operand, lines):
            continue
        if len(node.ops) > 1 or any(isinstance(side, ast.Compare) for side in (operand.left, operand.right)):
            return True
    return False


def _in_parentheses(node: ast.expr, lines: list[str]) -> bool:
    before = lines[node.lineno - 1].encode()[: node.col_offset].decode(errors="replace").rstrip()
    after = (
        lines[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset :].decode(errors="replace").lstrip()
    )
    return before.endswith("(") and after.startswith(")")
