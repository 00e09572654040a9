"""Runs a kernel as Python, one program at a time, so that `print` and `breakpoint()` in it work.

For looking inside, not for judging: this is Triton's own interpreter, whose arithmetic differs from the chip's in
places (docs/virtual-gpu.md). It is the only module that touches the interpreter's private names. What it patches
it restores, and a name that a Triton version lacks is reported as such. Lanes outside every tensor of the launch
are masked off with a word, because the interpreter would read and write the process's own memory there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton import knobs
from triton.runtime.jit import JITFunction

from checker.vgpu.errors import VirtualGpuError
from checker.vgpu.views import Buffer

__all__ = ["run"]

_NEEDED = ("InterpretedFunction", "GridExecutor", "interpreter_builder", "_patch_lang", "_implicit_cvt")


def run(
    load: Callable[[], Callable[..., Any]],
    args: tuple[Any, ...],
    program: int | None = None,
    *,
    say: Callable[[str], None] = print,
) -> Any:
    """Calls `load()(*args)` with every kernel interpreted; `load` imports the file, since `@triton.jit` decides then.

    `program` is a linear program number (x fastest): only that one runs. `say` gets the words about lanes that were
    held back. Returns what the call returns. VirtualGpuError K006 if this Triton lacks a name the stepper needs.
    """
    interpreter = _interpreter()
    guard = _Guard(interpreter, program, say)
    with _interpreting(interpreter, guard):
        return load()(*args)


def _interpreter() -> Any:
    from triton.runtime import interpreter

    missing = [name for name in _NEEDED if not hasattr(interpreter, name)]
    if missing:
        raise VirtualGpuError(
            "K006",
            f"Triton {triton.__version__} has no triton.runtime.interpreter.{missing[0]}, which stepping needs",
            "Use a Triton version from 3.6 to 3.9 for `kata debug`; checks do not need it.",
        )
    return interpreter


@contextmanager
def _interpreting(interpreter: Any, guard: _Guard) -> Iterator[None]:
    builder = interpreter.interpreter_builder
    run_before = interpreter.InterpretedFunction.run
    call_before = JITFunction.__call__
    flag_before = knobs.runtime.interpret
    knobs.runtime.interpret = True
    interpreter.InterpretedFunction.run = guard.launch
    # Triton's own library (tl.cdiv, tl.sum, …) was decorated before and holds compiled functions.
    JITFunction.__call__ = lambda helper, *args, **kwargs: guard.call(helper, *args, **kwargs)
    builder.create_masked_load = guard.load
    builder.create_masked_store = guard.store
    try:
        yield
    finally:
        del builder.create_masked_load, builder.create_masked_store
        interpreter.InterpretedFunction.run = run_before
        JITFunction.__call__ = call_before
        knobs.runtime.interpret = flag_before


class _Guard:
    """Stands between the interpreter and memory for the length of one run."""

    def __init__(self, interpreter: Any, program: int | None, say: Callable[[str], None]) -> None:
        self.interpreter = interpreter
        self.builder = interpreter.interpreter_builder
        self.program = program
        self.say = say
        self.regions: list[tuple[int, int]] = []
        self.helpers: dict[Any, Any] = {}
        self.plain_load = self.builder.create_masked_load
        self.plain_store = self.builder.create_masked_store

    @property
    def launch(self) -> Callable[..., Any]:
        """What replaces `InterpretedFunction.run`: a method of the interpreted kernel, hence the closure."""
        guard = self

        def launch(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
            if not warmup:
                guard.run_grid(kernel, grid, args, kwargs)

        return launch

    def call(self, helper: Any, *args: Any, **kwargs: Any) -> Any:
        """Calls a library helper as Python, with the language patched as its own module sees it."""
        # Keyed by the plain function: hashing a JITFunction would inspect the patched language.
        if helper.fn not in self.helpers:
            self.helpers[helper.fn] = self.interpreter.InterpretedFunction(helper.fn)
        function = self.helpers[helper.fn].rewrite()
        scope = self.interpreter._patch_lang(function)
        try:
            return function(*args, **kwargs)
        finally:
            scope.restore()

    def run_grid(self, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Runs the chosen programs of one launch, x fastest."""
        function = kernel.rewrite()
        accepted = inspect.signature(function).parameters
        bound = inspect.getcallargs(function, *args, **{k: v for k, v in kwargs.items() if k in accepted})
        extent = grid(bound) if callable(grid) else grid
        extent = tuple(extent) + (1,) * (3 - len(extent))
        self.regions = [region for value in bound.values() if (region := _region(value)) is not None]
        constants = set(self.interpreter.GridExecutor(function, kernel.arg_names, extent).constexprs)
        scope = self.interpreter._patch_lang(function)
        try:
            # Triton 3.6 converts with int(array), which numpy 2.4 refuses for one-element arrays (triton#9171).
            scope.set_attr(tl.core.tensor, "__index__", lambda value: int(value.handle.data.squeeze()))
            values = {
                name: value if name in constants else self.interpreter._implicit_cvt(value)
                for name, value in bound.items()
            }
            self.builder.set_grid_dim(*extent)
            for linear in range(extent[0] * extent[1] * extent[2]):
                if self.program is None or linear == self.program:
                    x, y = linear % extent[0], linear // extent[0] % extent[1]
                    self.builder.set_grid_idx(x, y, linear // (extent[0] * extent[1]))
                    function(**values)
        finally:
            scope.restore()

    def load(self, pointers: Any, mask: Any, *rest: Any) -> Any:
        """A load whose lanes outside every tensor are masked off."""
        return self.plain_load(pointers, self._held(pointers, mask, "load"), *rest)

    def store(self, pointers: Any, value: Any, mask: Any, *rest: Any) -> Any:
        """A store whose lanes outside every tensor are masked off."""
        return self.plain_store(pointers, value, self._held(pointers, mask, "store"), *rest)

    def _held(self, pointers: Any, mask: Any, verb: str) -> Any:
        addresses = pointers.data
        legal = np.zeros(addresses.shape, dtype=np.bool_)
        for low, high in self.regions:
            legal |= (addresses >= low) & (addresses < high)
        wanted = np.broadcast_to(mask.data, addresses.shape)
        lost = int(np.count_nonzero(wanted & ~legal))
        if lost:
            self.say(f"[kata debug] {lost} lanes of this {verb} lie outside every tensor; they were masked off")
        return type(mask)(wanted & legal, mask.dtype)


def _region(value: Any) -> tuple[int, int] | None:
    """First and one-past-last address of a tensor argument, or of a descriptor's tensor."""
    value = getattr(value, "base", value)
    if not hasattr(value, "data_ptr"):
        return None
    buffer = Buffer(value, "", 0)
    return value.data_ptr(), value.data_ptr() + buffer.span * buffer.itemsize
