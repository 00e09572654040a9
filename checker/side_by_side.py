"""The kernels of two files beside each other, for `kata compare --source`. Reads text only; needs rich.

Docstrings are left out: they are the same in both. Where the terminal is too narrow for two columns of code the files
follow each other line by line, as in a diff.
"""

from __future__ import annotations

import ast
import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

__all__ = ["kernels", "pairs", "show"]

_TWO_COLUMNS = 110
"""Columns from which two listings stand beside each other."""


def kernels(source: str) -> list[str]:
    """The lines of all functions under a decorator of triton, docstrings and decorators left out."""
    rows = source.splitlines()
    kept: list[str] = []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.FunctionDef) or not any("jit" in ast.unparse(one) for one in node.decorator_list):
            continue
        docstring = node.body[0] if ast.get_docstring(node) is not None else None
        gone = range(docstring.lineno, (docstring.end_lineno or 0) + 1) if docstring else range(0)
        lines = [rows[number - 1] for number in range(node.lineno, (node.end_lineno or 0) + 1) if number not in gone]
        kept += [*([""] if kept else []), *lines]
    return kept


def pairs(left: list[str], right: list[str]) -> Iterator[tuple[str | None, str | None, bool]]:
    """Lines that belong beside each other, None where one side has none, and whether they are the same."""
    # autojunk would take lines that occur often, such as blank ones, out of the comparison.
    for tag, a, b, c, d in difflib.SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        for offset in range(max(b - a, d - c)):
            one = left[a + offset] if a + offset < b else None
            other = right[c + offset] if c + offset < d else None
            yield one, other, tag == "equal"


def show(mine: Path, solution: Path) -> None:
    """Print the two to stdout, in colour where stdout shows it."""
    plain = bool(os.environ.get("NO_COLOR")) or not sys.stdout.isatty()
    console = Console(no_color=plain, highlight=False, soft_wrap=False)
    left, right = (kernels(file.read_text(encoding="utf-8")) for file in (mine, solution))
    if console.width >= _TWO_COLUMNS:
        console.print(_beside(left, right))
    else:
        console.print(Text("- yours   + the reference", style="bold"))
        for text, style in _below(left, right):
            console.print(Text(text, style=style), soft_wrap=True)


def _beside(left: list[str], right: list[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, expand=True)
    for name in ("yours", "the reference"):
        table.add_column(name, ratio=1, overflow="fold")
    for one, other, same in pairs(left, right):
        styles = ("", "") if same else ("yellow", "green")
        table.add_row(*(Text(text or "", style=style) for text, style in zip((one, other), styles, strict=True)))
    return table


def _below(left: list[str], right: list[str]) -> Iterator[tuple[str, str]]:
    """Lines as in a diff: those of one change together, yours first."""
    waiting: list[str] = []
    for one, other, same in [*pairs(left, right), ("", "", True)]:
        if not same:
            if one is not None:
                yield f"- {one}", "yellow"
            waiting += [other] if other is not None else []
            continue
        yield from ((f"+ {text}", "green") for text in waiting)
        waiting.clear()
        yield f"  {one}", ""
