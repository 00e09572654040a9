"""Loads a kata's files by path: the learner's kernel, the spec, the solution.

By path and under private names, because five katas have a `kernel.py` each, because a test session may hold several
of them, and because the learner's file must not be importable under a name that another file could shadow. The source
is compiled here, so that no .pyc is left behind, and handed to `linecache`, because Triton reads a kernel's source
when it compiles it: what runs and what is read are the same bytes even if the file is saved in between.
"""

from __future__ import annotations

import builtins
import importlib.abc
import linecache
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from checker.findings import Finding
from checker.limits import LimitReachedError
from checker.source import frames_in, read_source, syntax_finding

__all__ = ["FORBIDDEN", "ForbiddenImportError", "LoadError", "block_solutions", "load_kernel", "load_module", "protect"]

FORBIDDEN = frozenset({"solutions", "katas", "spec", "checker", "tests", "test_correctness", "test_performance"})
"""Top-level modules that the learner's file may not import: they hold the answers or the judge."""


class ForbiddenImportError(ImportError):
    """The learner's file asked for a module that holds the answers or judges them."""


class LoadError(Exception):
    """A file could not be loaded; `finding` says why, for the report."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def load_module(path: Path, name: str | None = None) -> types.ModuleType:
    """Run a Python file as a fresh module and return it. Whatever the file raises passes through."""
    return _execute(path, read_source(path), name or _private_name(path), {})


def load_kernel(path: Path, name: str | None = None) -> types.ModuleType:
    """Run the learner's file as a fresh module, with imports of the answers refused.

    The refusal holds for the file's whole life, its functions included, and for nothing else in the process: the
    module has its own `__builtins__`. Anything that goes wrong raises LoadError with a finding: K001 unreadable,
    K101 does not parse, K105 raised, K110 forbidden import, K005 ended the process, K004 out of memory.
    """
    try:
        source = read_source(path)
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        raise LoadError(unreadable(path, error)) from error
    try:
        return _execute(path, source, name or _private_name(path), {"__builtins__": _guarded_builtins()})
    except SyntaxError as error:
        if error.filename == str(path):
            raise LoadError(syntax_finding(path, error)) from error
        raise LoadError(_import_finding(path, error)) from error
    except (KeyboardInterrupt, LimitReachedError):
        raise
    except BaseException as error:
        raise LoadError(_import_finding(path, error)) from error


def unreadable(path: Path, error: Exception) -> Finding:
    """The finding for a file that cannot be read as Python text."""
    if isinstance(error, FileNotFoundError):
        message, advice = f"there is no file {path.name}", "`kata reset` makes it anew from the skeleton"
    elif isinstance(error, IsADirectoryError):
        message, advice = f"{path.name} is a folder", "move it away; `kata reset` makes the file from the skeleton"
    elif isinstance(error, OSError):
        message = f"{path.name} cannot be read: {error.strerror or error}"
        advice = "look at the permissions of the file and of its folder"
    else:
        message, advice = f"{path.name} is not UTF-8 text: {error}", "save it as UTF-8 in your editor"
    return Finding("K001", message, advice, file=str(path))


def protect(folder: Path) -> None:
    """Take a kata's folder off the import path, so that a `torch.py` beside the kernel shadows nothing."""
    folder = folder.resolve()
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != folder]


def block_solutions() -> None:
    """Refuse the packages `solutions` and `katas` to every importer of this process. Only for a check's own child."""
    sys.meta_path.insert(0, _Blocker())


class _Blocker(importlib.abc.MetaPathFinder):
    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in ("solutions", "katas"):
            raise ForbiddenImportError(f"{fullname} cannot be imported in a check")
        return None


def _private_name(path: Path) -> str:
    return f"_kata_{path.resolve().parent.name}_{path.stem}"


def _execute(path: Path, source: str, name: str, extra: dict[str, Any]) -> types.ModuleType:
    filename = str(path)
    code = compile(source, filename, "exec", dont_inherit=True)
    # A modification time of None tells linecache to keep these lines whatever happens to the file.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    module = types.ModuleType(name)
    module.__file__ = filename
    module.__dict__.update(extra)
    # dataclasses and inspect look a module up by name while its body is still running.
    sys.modules[name] = module
    try:
        exec(code, module.__dict__)  # noqa: S102 - running the learner's file is what a check is for
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _guarded_builtins() -> dict[str, Any]:
    original = builtins.__import__

    def guarded_import(
        name: str,
        globals: dict[str, Any] | None = None,
        locals: dict[str, Any] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> types.ModuleType:
        if name.partition(".")[0] in FORBIDDEN:
            raise ForbiddenImportError(f"the module {name} may not be imported here")
        return original(name, globals, locals, fromlist, level)

    return {**vars(builtins), "__import__": guarded_import}


def _import_finding(path: Path, error: BaseException) -> Finding:
    frames = frames_in(error, path)
    line = frames[-1].lineno if frames else None
    if isinstance(error, ForbiddenImportError):
        return Finding("K110", str(error), _FORBIDDEN_ADVICE, file=str(path), line=line)
    if isinstance(error, SystemExit):
        return Finding(
            "K005", "importing the file ended the process (sys.exit)", "remove that call", file=str(path), line=line
        )
    if isinstance(error, MemoryError):
        return Finding("K004", "importing the file ran out of memory", "allocate less", file=str(path), line=line)
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return Finding("K105", f"importing the file raised {said}", _advice(error, path), file=str(path), line=line)


_FORBIDDEN_ADVICE = "solve the kata with torch and triton alone; the answers and the checks are off limits here"


def _advice(error: BaseException, path: Path) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        if (path.parent / f"{error.name}.py").exists():
            return f"a kata is one file: move what you need from {error.name}.py into {path.name}"
        return "katas need only torch and triton; remove the import, or install what it names"
    if isinstance(error, NameError):
        return "look for a misspelt name or an import that is missing at the top of the file"
    return "look at this line: it runs when the file is imported, before any kernel"
