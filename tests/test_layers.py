"""Imports point one way, and nothing that only reads pays for torch."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import checker

PACKAGE = Path(checker.__file__).parent
LAYERS: tuple[set[str], ...] = (
    {"vgpu"},
    {"diagnoses"},
    {"errors", "findings"},
    {"catalog", "progress", "verdict", "todos", "workspace"},
    # Everything that is not named: reading, loading and judging a learner's file.
    set(),
    # Below the plugin, since a plain pytest run says the same as `kata check`.
    {"report", "comparison_text", "inspection_text"},
    {"plugin", "kata_session"},
    {"runner", "child", "supervise", "warm", "watch"},
    # What the workbench is asked for, in a child process of its own.
    {"workbench", "sweep", "comparison", "inspection"},
    # Above the runner, whose children's environment it takes.
    {"doctor"},
    {"commands"},
    {"cli", "__main__"},
)
"""From the lowest to the highest: a module imports from its own layer and from those before it."""
JUDGING = LAYERS.index(set())
WITHOUT_TORCH = ("cli", "catalog", "progress", "findings", "verdict", "report", "lint", "todos", "workspace")
# Reading commands print plain text, so they need not pay for rich either.
HEAVY = {"torch", "triton", "numpy", "pytest", "rich"}


def modules() -> Iterator[Path]:
    yield from sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def unit(path: Path) -> str:
    """The module or subpackage of `checker` that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Each module of `checker` that a file imports, with the line, those inside functions and for typing included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = "checker" if node.level else node.module or ""
            names = [f"{base}.{alias.name}" for alias in node.names] if base == "checker" else [base]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "checker" and len(parts) > 1 and not parts[1].startswith("__"):
                yield node.lineno, parts[1]


def layer(name: str) -> int:
    return next((index for index, names in enumerate(LAYERS) if name in names), JUDGING)


@pytest.mark.parametrize("path", list(modules()), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    own = unit(path)
    upwards = [f"line {line}: {name}" for line, name in imports(path) if layer(name) > layer(own)]
    assert not upwards, f"{own} imports from a higher layer"


def test_the_virtual_gpu_knows_nothing_of_katas() -> None:
    foreign = {name for path in modules() if unit(path) == "vgpu" for _, name in imports(path) if name != "vgpu"}
    assert not foreign


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_reading_modules_import_nothing_heavy(name: str) -> None:
    assert loaded_after(f"import checker.{name}") == set()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["list"],
        ["hint"],
        ["next", "--help"],
        ["--help"],
        ["explain", "K402"],
        ["check", "--help"],
        ["doctor", "--help"],
    ],
)
def test_commands_that_only_read_import_nothing_heavy(tree: Path, arguments: list[str]) -> None:
    code = f"from checker.cli import run; assert run({arguments!r}) == 0"
    assert loaded_after(code) == set()


def loaded_after(code: str) -> set[str]:
    """Which heavy modules a fresh interpreter holds after running some code."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return HEAVY & set(json.loads(done.stdout.splitlines()[-1]))
