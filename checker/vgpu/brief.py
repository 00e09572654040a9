"""Compiling no further than values need: to TTIR, where the same kernel was compiled to the end once.

A kata's cases call one kernel with a dozen shapes, and Triton compiles it anew for each pattern of what it may assume
(an argument divisible by 16, an argument that is 1) and for each block size. What is computed shows in TTIR, and so
does what the language refuses; nearly all the time is spent behind it, on code that is not run here. So inside
`briefly()` only the first specialisation of a kernel goes all the way. `settle()` makes up for the others before a
verdict: of those with the same types, constants and options it compiles the ones that assume most, because what
assumes less needs no more of the chip. A kernel that is wrong never comes so far.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import triton
from triton import knobs

from checker.vgpu.kernels import BRIEF, Kernel

__all__ = ["POSSIBLE", "Brevity", "complete"]

Assumptions = frozenset[tuple[Any, ...]]

POSSIBLE = "add_stages_inspection_hook" in triton.compile.__code__.co_names
"""Whether this Triton asks the hook for a key of its cache on disk. Where not (3.6), all is compiled to the end."""


class Brevity:
    """What one chip compiled to the end, and what it still owes."""

    def __init__(self) -> None:
        self.on = False
        self._known: set[int] = set()
        self._complete: dict[Any, list[Assumptions]] = defaultdict(list)
        self._owed: dict[int, tuple[Kernel, Any, Any]] = {}
        self._name = ""
        """The kernel that is to be compiled next, if not to the end."""

    @contextmanager
    def briefly(self) -> Iterator[None]:
        """Inside the block only a kernel's first specialisation is compiled to the end."""
        if not POSSIBLE:
            yield
            return
        runtime = knobs.runtime
        before, stages = runtime.jit_cache_hook, runtime.add_stages_inspection_hook

        def decide(*args: Any, **kwargs: Any) -> Any:
            self._decide(**kwargs)
            return before(*args, **kwargs) if before is not None else None

        runtime.jit_cache_hook, runtime.add_stages_inspection_hook = decide, self._stages
        self.on = True
        try:
            yield
        finally:
            self.on, self._name = False, ""
            runtime.jit_cache_hook, runtime.add_stages_inspection_hook = before, stages

    def owe(self, kernel: Kernel, source: Any, metadata: Any) -> None:
        """Remember a kernel that runs without having been compiled to the end."""
        self._owed[id(kernel)] = kernel, source, metadata

    def settle(self) -> None:
        """Compile to the end what may need more than what was; raises what the compiler or the chip refuses."""
        owed = []
        for kernel, source, metadata in self._owed.values():
            group, assumed = _specialisation(source.fn, source.signature, source.constants, source.attrs, metadata)
            owed.append((group, assumed, kernel, source, metadata))
        self._owed = {}
        for group, assumed, kernel, source, metadata in sorted(owed, key=lambda one: -len(one[1])):
            if not any(assumed <= done for done in self._complete[group]):
                complete(kernel, source, metadata)
                self._complete[group].append(assumed)

    def _decide(self, *, fn: Any, compile: dict[str, Any], is_manual_warmup: bool, **_: Any) -> None:  # Triton's names
        function = fn.jit_function
        options = _Options(compile)
        group, assumed = _specialisation(
            function, compile["signature"], compile["constants"], compile["configs"][0], options
        )
        first = is_manual_warmup or id(function) not in self._known
        if first:
            self._known.add(id(function))
            self._complete[group].append(assumed)
        self._name = "" if first else fn.name

    def _stages(self, *of: Any) -> Any:
        """Triton's hook. Without arguments it is asked for two keys, else to change the stages.

        The first key tells apart results on disk, while one is compiled; the second those in memory, at each launch.
        """
        name = self._name
        if not of:
            return "brief" if name else "", "brief"
        backend, stages = of[:2]
        if name:
            for stage in [stage for stage in stages if stage != "ttir"]:
                del stages[stage]

            def nothing(module: Any, metadata: dict[str, Any]) -> bytes:
                metadata |= {"name": name, "shared": 0}
                return BRIEF

            stages[backend.binary_ext] = nothing
        return None


class _Options:
    """What Triton's hook says of the options, under the names that a compiled kernel's metadata has."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.__dict__.update(told)


def _specialisation(
    function: Any, signature: dict[str, str], constants: dict[Any, Any], attrs: dict[Any, Any], options: Any
) -> tuple[Any, Assumptions]:
    """(what must be equal for two specialisations to be compared, what this one assumes about its arguments)."""
    units, fixed = set(), []
    for place, value in constants.items():
        number = place[0] if isinstance(place, tuple) else place
        # An argument that happens to be 1 becomes a constant, too.
        if value == 1 and len(place) == 1 and not function.params[number].is_constexpr:
            units.add(number)
        else:
            fixed.append((place, repr(value)))
    types = tuple("i32" if number in units else kind for number, kind in enumerate(signature.values()))
    group = (
        id(function), types, tuple(sorted(fixed, key=repr)), options.num_warps, options.num_ctas, options.num_stages,
        options.enable_fp_fusion,
    )  # fmt: skip
    divisible = {(place, repr(hint)) for place, hint in attrs.items() if hint}
    return group, frozenset(divisible | {(number, "is 1") for number in units})


def complete(kernel: Kernel, source: Any, metadata: Any) -> None:
    """Compile a brief kernel to the end, as Triton would have; its handle then knows its resources."""
    options = {name: value for name, value in metadata._asdict().items() if isinstance(value, (bool, int, float, str))}
    before = knobs.runtime.add_stages_inspection_hook
    knobs.runtime.add_stages_inspection_hook = None
    try:
        compiled = triton.compile(source, target=metadata.target, options=options)
        compiled[(1, 1, 1)]  # loads it
    finally:
        knobs.runtime.add_stages_inspection_hook = before
    kernel.take(compiled.function)
