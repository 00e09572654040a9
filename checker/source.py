"""Places in the learner's source: its text, its traceback frames, its Triton functions. Pure ast, no torch."""

from __future__ import annotations

import ast
import keyword
import re
import tokenize
import traceback
from collections.abc import Iterator
from pathlib import Path

from checker.findings import Finding

__all__ = [
    "Place",
    "frames_in",
    "jit_functions",
    "read_source",
    "syntax_finding",
]

Place = tuple[int, int]
"""A 1-based line and a 1-based column."""


def read_source(path: Path) -> str:
    """The text of a Python file, in the encoding it declares, with newlines as Python sees them."""
    with tokenize.open(path) as stream:
        return stream.read()


def frames_in(error: BaseException, path: Path) -> list[traceback.FrameSummary]:
    """The frames of an exception that belong to a file, outermost first."""
    return [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]


def is_jit(function: ast.FunctionDef) -> bool:
    """Whether a function is decorated with `triton.jit`, in any of its spellings."""
    for decorator in function.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if (isinstance(target, ast.Name) and target.id == "jit") or (
            isinstance(target, ast.Attribute) and target.attr == "jit"
        ):
            return True
    return False


def jit_functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """Every Triton function of a file, kernels and helpers alike, in order."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and is_jit(node):
            yield node


def place(node: ast.expr | ast.stmt) -> Place:
    """The 1-based line and column of a node."""
    return node.lineno, node.col_offset + 1


def dotted(node: ast.AST) -> str:
    """`a.b.c` as text, or an empty string for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


_HINTS = (
    (r"expected ':'", "a colon is missing at the end of this line"),
    (r"was never closed", "close this bracket"),
    (r"unmatched|does not match opening", "one bracket too many, or of another kind than the one it closes"),
    (r"unexpected indent|unindent does not match", "align this line with its neighbours; use four spaces a level"),
    (r"expected an indented block", "the block above is empty: write its body, or `pass`"),
    (r"inconsistent use of tabs", "indent with spaces only"),
    (r"unterminated", "close the string with the quote it began with"),
    (r"invalid character|invalid non-printable", "a character that Python does not know, perhaps from a copied text"),
    (r"Maybe you meant '=='", "compare with `==`; a single `=` assigns"),
    (r"Perhaps you forgot a comma", "a comma is missing in this line"),
)


def syntax_finding(path: Path, error: SyntaxError) -> Finding:
    """K101 with line and column, and a kind word for the usual slips."""
    said = (error.msg or "invalid syntax").rstrip(".")
    hint = next((hint for pattern, hint in _HINTS if re.search(pattern, said)), "")
    if not hint:
        word = (error.text or "").strip().partition(" ")[0]
        hint = (
            f"`{word}` begins this line; look for what is missing before it"
            if keyword.iskeyword(word)
            else "look at this line and at the end of the one above"
        )
    column = error.offset if error.offset and error.offset > 0 else None
    return Finding(
        "K101", f"Python cannot read this line: {said}", hint, file=str(path), line=error.lineno, column=column
    )
