"""Devices written into the source (K106). On the virtual GPU tensors live on the CPU, so "cuda" is never right here.

Only code counts: docstrings, comments, Triton functions and the `__main__` block may say cuda, and so may a test of
the compile target's backend, which really is "cuda" for an NVIDIA chip.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from checker.findings import Finding
from checker.source import dotted, is_jit, place

_CUDA = re.compile(r"cuda(:\d+)?")
_ACTIVE = "triton.runtime.driver.active.get_active_torch_device()"


def device_findings(file: Path, tree: ast.Module) -> Iterator[Finding]:
    """One K106 for each place that names a device, outermost expression only."""
    for node, written, tensor in _devices(tree, None, []):
        line, column = place(node)
        replacement = f"{tensor}.device" if tensor else _ACTIVE
        yield Finding(
            "K106",
            f"`{written}` is written into the code, but tensors may live anywhere: on the virtual GPU, on the CPU",
            _advice(written, replacement),
            file=str(file),
            line=line,
            column=column,
        )


def is_device_error(text: str) -> bool:
    """Whether an exception's text is PyTorch's way of saying that there is no CUDA device here."""
    return bool(re.search(r"not compiled with CUDA|No CUDA GPUs|Found no NVIDIA driver|CUDA driver", text))


def _advice(written: str, replacement: str) -> str:
    if "is_cuda" in written:
        return "drop this test; to check that two tensors are together, compare `x.device == y.device`"
    if "synchronize" in written or "torch.cuda" in written:
        return f"leave this out; where a device is needed, take `{replacement}`"
    return f"take the device of an input: `{replacement}`"


def _devices(
    node: ast.AST, tensor: str | None, parents: list[ast.AST]
) -> Iterator[tuple[ast.expr | ast.stmt, str, str | None]]:
    if isinstance(node, ast.FunctionDef):
        if is_jit(node):
            return
        tensor = _first_tensor(node) or tensor
    if isinstance(node, ast.If) and "__name__" in ast.dump(node.test):
        return
    written = _written(node, parents)
    if written and isinstance(node, ast.expr | ast.stmt):
        yield node, written, tensor
        return
    for child in ast.iter_child_nodes(node):
        yield from _devices(child, tensor, [*parents, node])


def _first_tensor(function: ast.FunctionDef) -> str | None:
    """The parameter most likely to be a tensor: the first used like one, or else the first."""
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    for node in ast.walk(function):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id in names
            and node.attr in ("device", "shape", "numel", "dtype", "stride", "is_cuda", "is_contiguous")
        ):
            return node.value.id
    return names[0] if names else None


def _written(node: ast.AST, parents: list[ast.AST]) -> str | None:
    """The device as written, if this node names one."""
    if isinstance(node, ast.Import) and any(alias.name.startswith("torch.cuda") for alias in node.names):
        return "torch.cuda"
    if isinstance(node, ast.ImportFrom):
        names = {alias.name for alias in node.names}
        if (node.module or "").startswith("torch.cuda") or (node.module == "torch" and "cuda" in names):
            return "torch.cuda"
    if isinstance(node, ast.Attribute):
        name = dotted(node)
        if name.startswith("torch.cuda"):
            return name
        if node.attr == "is_cuda" and "target_info" not in name:
            return name or ".is_cuda"
        called = parents and isinstance(parents[-1], ast.Call) and parents[-1].func is node
        if node.attr == "cuda" and called:
            return f"{name or '.cuda'}()"
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CUDA.fullmatch(node.value):
        return f'"{node.value}"' if _names_device(node, parents) else None
    return None


def _names_device(node: ast.expr, parents: list[ast.AST]) -> bool:
    """Whether a string "cuda" stands where a device does, rather than as a label or a backend."""
    parent = parents[-1] if parents else None
    if isinstance(parent, ast.keyword):
        return parent.arg == "device"
    if isinstance(parent, ast.Call):
        called = dotted(parent.func) or (parent.func.attr if isinstance(parent.func, ast.Attribute) else "")
        return called.rpartition(".")[2] in ("to", "device", "type", "Event", "Stream", "autocast")
    if isinstance(parent, ast.Compare):
        others = [parent.left, *parent.comparators]
        text = " ".join(ast.unparse(other) for other in others if other is not node)
        return "backend" not in text and ("device" in text or text.endswith(".type"))
    if isinstance(parent, ast.Assign | ast.AnnAssign):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        return any("dev" in ast.unparse(target).lower() for target in targets)
    if isinstance(parent, ast.arguments):
        names = [argument.arg for argument in (*parent.posonlyargs, *parent.args)]
        defaults = dict(zip(reversed(names), reversed(parent.defaults), strict=False))
        keyword_only = zip(parent.kwonlyargs, parent.kw_defaults, strict=True)
        defaults.update({argument.arg: default for argument, default in keyword_only if default is not None})
        return any("dev" in name.lower() for name, default in defaults.items() if default is node)
    if isinstance(parent, ast.BoolOp | ast.IfExp):
        return _names_device(parent, parents[:-1])
    return False
