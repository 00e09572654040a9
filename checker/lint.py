"""What the learner's source says before anything runs: pure ast, no torch.

Two kinds of result. `fatal` findings are certain and answer the check at once. `slips` are suspicions that only word a
finding of the run, or stand as a note beside it: a suspicion alone never turns a kata red.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from checker.findings import Finding
from checker.lint_devices import device_findings
from checker.lint_slips import slips
from checker.loading import FORBIDDEN, unreadable
from checker.source import place, read_source, syntax_finding
from checker.todos import open_todos
from checker.verdict import Todo

__all__ = ["LintResult", "lint"]


@dataclass(frozen=True, slots=True)
class LintResult:
    """What was seen in the source: certain mistakes, suspicions, and the TODO blocks that are still there."""

    fatal: tuple[Finding, ...] = ()
    slips: tuple[Finding, ...] = ()
    todos: tuple[Todo, ...] = ()


def lint(file: Path, *, entry: str, signature: str, skeleton: Path | None = None) -> LintResult:
    """Read a kernel file. `signature` is the one promised by the kata, such as `saxpy(a, x, y, out=None) -> out`."""
    try:
        source = read_source(file)
    except SyntaxError as error:
        # tokenize reports a bad encoding declaration this way.
        return LintResult(fatal=(unreadable(file, ValueError(str(error))),))
    except (OSError, UnicodeDecodeError) as error:
        return LintResult(fatal=(unreadable(file, error),))
    todos = open_todos(source, _text(skeleton))
    try:
        tree = ast.parse(source, filename=str(file))
    except SyntaxError as error:
        return LintResult(fatal=(syntax_finding(file, error),), todos=todos)
    except (ValueError, RecursionError, MemoryError) as error:
        finding = Finding("K101", f"Python cannot read this file: {error}", "look for stray bytes", file=str(file))
        return LintResult(fatal=(finding,), todos=todos)
    fatal = (*_imports(file, tree), *_entry_point(file, tree, entry, signature), *device_findings(file, tree))
    return LintResult(fatal=fatal, slips=tuple(slips(file, tree, source)), todos=todos)


def _text(file: Path | None) -> str:
    try:
        return read_source(file) if file is not None else ""
    except (OSError, SyntaxError, UnicodeDecodeError):
        return ""


def _imports(file: Path, tree: ast.Module) -> Iterator[Finding]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            if name.partition(".")[0] in FORBIDDEN:
                line, column = place(node)  # type: ignore[arg-type]  # only imports reach this line
                yield Finding(
                    "K110",
                    f"the module {name} may not be imported here",
                    "solve the kata with torch and triton alone; the answers and the checks are off limits",
                    file=str(file),
                    line=line,
                    column=column,
                )


def _entry_point(file: Path, tree: ast.Module, entry: str, signature: str) -> Iterator[Finding]:
    bound = dict(_bound_names(tree))
    if entry not in bound:
        if "*" in bound:
            return
        functions = [name for name, node in bound.items() if isinstance(node, ast.FunctionDef)]
        near = difflib.get_close_matches(entry, functions, n=1, cutoff=0.6)
        node = bound[near[0]] if near else None
        yield Finding(
            "K103",
            f"the file defines no function `{entry}`" + (f"; it has `{near[0]}`" if near else ""),
            f"name the wrapper `{entry}`: the checks call `{signature}`",
            file=str(file),
            line=node.lineno if node else None,
            column=node.col_offset + 1 if node else None,
        )
        return
    function = bound[entry]
    if isinstance(function, ast.FunctionDef):
        yield from _signature(file, function, signature)


def _signature(file: Path, function: ast.FunctionDef, signature: str) -> Iterator[Finding]:
    expected = _promised(signature)
    if expected is None:
        return
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    names = [argument.arg for argument in positional]
    wanted = [argument.arg for argument in expected.args]
    optional = set(names[len(names) - len(arguments.defaults) :]) if arguments.defaults else set()
    extra = [name for name in names[len(wanted) :] if name not in optional]
    extra += [
        argument.arg
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    shown = f"{function.name}({', '.join(names + [a.arg for a in arguments.kwonlyargs])})"
    line, column = place(function)
    if names[: len(wanted)] != wanted:
        message = f"the function is `{shown}`, the checks call `{signature}`"
        missing = [name for name in wanted if name not in names]
        advice = (
            f"add the missing parameter{'s' if len(missing) > 1 else ''} {', '.join(f'`{name}`' for name in missing)}"
            if missing
            else "give the parameters these names, in this order"
        )
    elif extra:
        message = f"`{function.name}` needs {', '.join(f'`{name}`' for name in extra)}, which no check passes"
        advice = "give each extra parameter a default"
    else:
        return
    yield Finding("K104", message, advice, file=str(file), line=line, column=column)


def _promised(signature: str) -> ast.arguments | None:
    """The parameters in `name(a, b=None) -> result`; None where the text promises nothing that can be read."""
    head, closed, _ = signature.partition(")")
    try:
        function = ast.parse(f"def {head}): pass").body[0] if closed else None
    except SyntaxError:
        return None
    return function.args if isinstance(function, ast.FunctionDef) else None


def _bound_names(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Names that the module's body binds, `*` for a star import; branches of if, try and with count too."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                yield (alias.asname or alias.name.partition(".")[0]), node
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name):
                        yield name.id, node
        else:
            for field in ("body", "orelse", "finalbody"):
                waiting.extend(getattr(node, field, ()))
            for handler in getattr(node, "handlers", ()):
                waiting.extend(handler.body)
