"""Errors on the host: a launch that does not fit its kernel (K301 to K304), or a wrapper that raised (K308)."""

from __future__ import annotations

import ast
import difflib
import itertools
import re
import traceback
from bdb import BdbQuit
from collections.abc import Iterator
from pathlib import Path

from checker.findings import Finding
from checker.lint_devices import is_device_error
from checker.source import dotted, frames_in, jit_functions

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
_PACKAGE = str(Path(__file__).resolve().parent)


def host_finding(exc: BaseException, file: Path, tree: ast.Module) -> Finding:
    """The finding for an exception that did not come from the compiler."""
    frames = frames_in(exc, file)
    line = frames[-1].lineno if frames else None
    column = frames[-1].colno + 1 if frames and frames[-1].colno is not None else None
    code, message, advice, details = _judge(exc, frames, tree)
    if code == "K007":
        details = tuple(text.strip() for text in traceback.format_exception(exc)[-3:])
    return Finding(code, message, advice, file=str(file), line=line, column=column, details=details)


_Verdict = tuple[str, str, str, tuple[str, ...]]


def _judge(exc: BaseException, frames: list[traceback.FrameSummary], tree: ast.Module) -> _Verdict:
    text = str(exc)
    last = traceback.extract_tb(exc.__traceback__)[-1:] or [traceback.FrameSummary("", 0, "")]
    where = last[0].filename.replace("\\", "/")
    if is_device_error(text):
        return "K106", "this asks for a CUDA device, and there is none here", _DEVICE, ()
    if not frames or (_is_ours(exc, frames[-1].filename) and not isinstance(exc, RecursionError)):
        return "K007", f"the checker itself failed: {type(exc).__name__}: {text}", _REPORT, ()
    launch = _launch_at(tree, frames[-1].lineno or 0)
    in_triton = "/triton/" in where
    through_triton = in_triton or any("/triton/" in frame.filename for frame in _after(exc, frames[-1]))
    if through_triton and (isinstance(exc, OSError) or "Failed to find C compiler" in text):
        return "K006", f"Triton cannot work here: {text}", _CACHE, ()
    for verdict in (
        _grid(exc, text, where, in_triton, frames, launch, tree),
        _arguments(exc, text, in_triton, launch, tree),
        _options(exc, text, in_triton, launch),
        _not_a_kernel(exc, text, in_triton, frames),
    ):
        if verdict is not None:
            return verdict
    kind = type(exc).__name__
    said = f"{kind}: {text.strip().splitlines()[0]}" if text.strip() else kind
    return "K308", f"the wrapper raised {said[:300]}", _advice(exc, text), ()


_BETWEEN = ("loading.py", "observe.py", "aten.py", "sweep.py")
"""Modules that stand between the learner's call and what it calls: what passes through them is not theirs."""


def _is_ours(exc: BaseException, file: str) -> bool:
    """Whether the checker raised or called what raised: the innermost frame that is the learner's or ours is ours."""
    for frame in reversed(traceback.extract_tb(exc.__traceback__)):
        if frame.filename == file:
            return False
        if frame.filename.startswith(_PACKAGE) and Path(frame.filename).name not in _BETWEEN:
            return True
    return True


_REPORT = "this is a fault of the checker: please report it with the command and the seed"
_DEVICE = "take the device of an input (x.device), or triton.runtime.driver.active.get_active_torch_device()"
_CACHE = (
    "look at TRITON_CACHE_DIR (by default ~/.triton): it must be a folder that can be written to, on a disk with room"
)
_GRID = (
    "a grid is a tuple of one to three integers, such as (triton.cdiv(n, BLOCK_SIZE),), or a function that returns one"
)


def _after(exc: BaseException, frame: traceback.FrameSummary) -> list[traceback.FrameSummary]:
    """The frames that a frame called, outermost first."""
    every = list(traceback.extract_tb(exc.__traceback__))
    last = max((index for index, other in enumerate(every) if other == frame), default=len(every))
    return every[last + 1 :]


def _grid(
    exc: BaseException,
    text: str,
    where: str,
    in_triton: bool,
    frames: list[traceback.FrameSummary],
    launch: ast.Call | None,
    tree: ast.Module,
) -> _Verdict | None:
    if in_triton and (kind := re.search(r"object of type '(\w+)' has no len", text)):
        return "K301", f"the grid is of type {kind[1]}", _GRID, ()
    runtime = where.endswith("/runtime/jit.py")
    if runtime and isinstance(exc, IndexError):
        return "K301", "the grid is empty", _GRID, ()
    if runtime and isinstance(exc, AssertionError) and not text:
        return "K301", "the grid is None", _GRID, ()
    if isinstance(exc, KeyError) and len(frames) > 1 and frames[-1].name != frames[-2].name and _is_grid(exc, frames):
        names = _parameters(_kernel(tree, _launch_at(tree, frames[-2].lineno or 0)))
        near = difflib.get_close_matches(str(exc.args[0]), names, n=1, cutoff=0.4)
        advice = f"the kernel calls it `{near[0]}`" if near else f"the kernel's parameters are {', '.join(names)}"
        return "K301", f"the grid asks for {text}, which is no parameter of the kernel", advice, ()
    if in_triton and "Cannot call @triton.jit'd outside" in text:
        return (
            "K302",
            "the kernel is called like a function, without a grid",
            "launch it as kernel[grid](arguments...), with grid = (triton.cdiv(n, BLOCK_SIZE),)",
            (),
        )
    return None


def _is_grid(exc: BaseException, frames: list[traceback.FrameSummary]) -> bool:
    """Whether Triton called the innermost frame of the file: only a grid function is called back by a launch."""
    every = traceback.extract_tb(exc.__traceback__)
    callers = [outer.filename for outer, inner in itertools.pairwise(every) if inner == frames[-1]]
    return any("/triton/runtime/" in caller for caller in callers)


def _arguments(
    exc: BaseException, text: str, in_triton: bool, launch: ast.Call | None, tree: ast.Module
) -> _Verdict | None:
    kernel = _kernel(tree, launch)
    names = _parameters(kernel)
    given = [keyword.arg for keyword in launch.keywords if keyword.arg] if launch is not None else []
    unknown = [name for name in given if names and name not in names and name not in _OPTIONS]
    called = f"`{kernel.name}`" if kernel is not None else "the kernel"
    if missing := re.search(r"dynamic_func\(\) missing \d+ required positional arguments?: (.+)", text):
        wanted = re.findall(r"'(\w+)'", missing[1])
        listed = ", ".join(f"`{name}`" for name in wanted)
        message = f"the launch of {called} lacks {listed}"
        if unknown:
            pairs = [(name, difflib.get_close_matches(name, wanted, n=1, cutoff=0.3)) for name in unknown]
            near = next(((name, match[0]) for name, match in pairs if match), None)
            if near:
                return "K303", f"{message}; it has `{near[0]}`", f"write `{near[1]}=` in place of `{near[0]}=`", ()
        return "K303", message, f"pass {listed}: the parameters of {called} are {', '.join(names)}", ()
    if found := re.search(r"Keyword argument (\w+) was specified but unrecognised", text):
        near_names = difflib.get_close_matches(found[1], [*names, *_OPTIONS], n=1, cutoff=0.5)
        advice = f"write `{near_names[0]}=`" if near_names else f"the parameters are {', '.join(names)}"
        return "K303", f"{called} has no parameter `{found[1]}`", advice, ()
    if counts := re.search(r"dynamic_func\(\) takes (?:from \d+ to )?(\d+) positional arguments? but (\d+)", text):
        message = f"the launch passes {counts[2]} arguments, {called} has {counts[1]} parameters"
        return "K303", message, f"they are {', '.join(names)}" if names else "count them", ()
    if twice := re.search(r"dynamic_func\(\) got multiple values for argument '(\w+)'", text):
        return "K303", f"the launch passes `{twice[1]}` twice", "pass it once, by position or by keyword", ()
    if "dynamic_func()" in text:
        return "K303", f"the arguments do not fit {called}", f"its parameters are {', '.join(names)}", ()
    if found := re.search(r"failed to specialize argument of type: ([\w.]+)", text):
        return "K304", f"an argument of the launch is of type {found[1]}", _KINDS.get(found[1], _KIND), ()
    if in_triton and re.search(r"cannot be accessed from Triton \(cpu tensor", text):
        return "K305", "a tensor of the launch is not on the GPU", "allocate it with device=x.device", ()
    return None


_KIND = "pass tensors, ints, floats or bools"
_KINDS = {
    "ndarray": "pass a torch tensor; torch.from_numpy makes one",
    "int64": "pass a Python int: int(n)",
    "int32": "pass a Python int: int(n)",
    "float32": "pass a Python float: float(a)",
    "float64": "pass a Python float: float(a)",
    "list": "pass the elements one by one, or a tensor",
    "Size": "pass the sizes one by one: x.shape[0], x.shape[1]",
    "str": "a string is for the compiler alone: mark its parameter with tl.constexpr, or pass a value",
    "dtype": "a kernel takes a dtype from its pointers, or as a constexpr such as tl.float32",
}


def _options(exc: BaseException, text: str, in_triton: bool, launch: ast.Call | None) -> _Verdict | None:
    given = {keyword.arg for keyword in launch.keywords if keyword.arg} if launch is not None else set()
    if in_triton and "num_warps must be a power of 2" in text:
        return "K220", "num_warps is not a power of two", "use 1, 2, 4, 8, 16 or 32", ()
    options = sorted(given & set(_OPTIONS))
    if in_triton and options and isinstance(exc, TypeError | ValueError | AssertionError):
        what = " or ".join(options)
        return "K220", f"{what} is not allowed: {text or type(exc).__name__}", f"pass {what} as a plain int", ()
    return None


def _not_a_kernel(
    exc: BaseException, text: str, in_triton: bool, frames: list[traceback.FrameSummary]
) -> _Verdict | None:
    """A function that lacks its decorator, or whose tl functions are called on the host."""
    if "Unsupported function referenced" in text and in_triton:
        return None
    if "'function' object is not subscriptable" in text:
        return (
            "K302",
            "this function is not a kernel: it lacks @triton.jit",
            "put @triton.jit on the line above its def",
            (),
        )
    if in_triton and "Did you forget to add @triton.jit" in text:
        return (
            "K302",
            "a function of triton.language is called on the host",
            "tl functions work only inside a function decorated with @triton.jit, launched as kernel[grid](...)",
            (),
        )
    return None


def _advice(exc: BaseException, text: str) -> str:
    if isinstance(exc, BdbQuit):
        return "a check cannot stop at breakpoint(); `kata debug` does"
    if isinstance(exc, NameError):
        return "look for a misspelt name"
    if isinstance(exc, RecursionError):
        return "this function calls itself without end"
    if isinstance(exc, NotImplementedError):
        return "this part is still to be written"
    if isinstance(exc, AttributeError | TypeError | IndexError | KeyError):
        return "look at this line of the wrapper"
    return "look at this line: the input of this case is one the function must accept"


def _launch_at(tree: ast.Module, line: int) -> ast.Call | None:
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    launches = [call for call in calls if isinstance(call.func, ast.Subscript)]
    return next(iter(launches or calls), None)


def _kernel(tree: ast.Module, launch: ast.Call | None) -> ast.FunctionDef | None:
    if launch is None:
        return None
    target = launch.func.value if isinstance(launch.func, ast.Subscript) else launch.func
    return next((function for function in jit_functions(tree) if function.name == dotted(target)), None)


def _parameters(kernel: ast.FunctionDef | None) -> list[str]:
    return [argument.arg for argument in kernel.args.args] if kernel is not None else []


def unsupported_reference(text: str, tree: ast.Module) -> Iterator[ast.Call]:
    """Calls in Triton functions of what Triton named as unsupported, such as `<built-in method exp of type ...>`."""
    found = re.search(
        r"Unsupported function referenced: <(?:built-in )?(?:function|method|ufunc|class) '?([\w.]+)", text
    )
    name = found[1].rpartition(".")[2] if found else ""
    for function in jit_functions(tree):
        for node in ast.walk(function):
            called = dotted(node.func) if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and called.rpartition(".")[2] == name and not called.startswith("tl."):
                yield node
