"""One parameter of a kernel's launches at many values: which compile, which fit, which are right, how fast each is.

The learner's own wrapper makes each launch; only the one argument is replaced on its way to Triton. A grid that is a
function of the launch's arguments follows by itself. One that was computed before is stretched by the same factor, if
that is what makes half the value right on a small case. Otherwise the kernel does not tile the problem by this
parameter (BLOCK_SIZE_K), or it works for one value only (a row in one block).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from types import ModuleType
from typing import TYPE_CHECKING, Any

from checker.cost import count
from checker.errors import KataUsageError
from checker.findings import Finding
from checker.timed import Timed, as_timed, time_call
from checker.workbench import FileAtFault

if TYPE_CHECKING:
    from checker.judge import Subject
    from checker.workbench import Bench

__all__ = ["OPTIONS", "Launches", "sweep"]

OPTIONS = {"num_warps": 4, "num_stages": 3}
"""Launch options that any kernel takes, with Triton's defaults."""
_TIED = -1


class Launches:
    """Stands between a module's kernels and Triton while `replaced` is active. `seen` holds the module's own values."""

    def __init__(self, module: ModuleType, name: str) -> None:
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        self.name = name
        self.kernels = [one for one in vars(module).values() if isinstance(one, JITFunction)]
        self.tuned = any(isinstance(one, Autotuner) for one in vars(module).values())
        self.seen: list[Any] = []
        self.callable_grid = False
        self.axes = 1
        self.constants: set[str] = set()
        self._value: int | None = None
        self._axis: int | None = None

    @contextmanager
    def replaced(self, value: int | None, axis: int | None = None) -> Iterator[None]:
        """Launch with `value` (None: only watch); `axis` of a computed grid is stretched so that it covers as much."""
        self._value, self._axis, self.seen = value, axis, []
        for kernel in self.kernels:
            kernel.run = self._runner(kernel, kernel.run)
        try:
            yield
        finally:
            for kernel in self.kernels:
                vars(kernel).pop("run", None)

    def _runner(self, kernel: Any, run: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(run)
        def launch(*args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> Any:
            parameters = {one.name: one for one in kernel.params}
            self.constants |= {one.name for one in kernel.params if one.is_constexpr}
            if self.name in parameters or self.name in OPTIONS:
                args, own = self._replace(kernel, parameters, args, kwargs)
                self.seen.append(own)
                self.callable_grid = callable(grid)
                if not callable(grid):
                    grid = self._stretched(tuple(grid), own)
            return run(*args, grid=grid, warmup=warmup, **kwargs)

        return launch

    def _replace(
        self, kernel: Any, parameters: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], Any]:
        """Positional arguments with the value in place (keywords are changed where they are), and the module's own."""
        position = list(parameters).index(self.name) if self.name in parameters else len(args)
        if self.name in parameters and not parameters[self.name].is_constexpr:
            raise KataUsageError(
                f"{self.name} of {kernel.fn.__name__} is no tl.constexpr: its value comes from the input.",
                needed=f"What can be swept: {', '.join(sorted(self.constants) + list(OPTIONS))}.",
            )
        if position < len(args):
            own = _plain(args[position])
            if self._value is not None:
                args = (*args[:position], self._value, *args[position + 1 :])
            return args, own
        own = kwargs.get(self.name, parameters[self.name].default if self.name in parameters else OPTIONS[self.name])
        if self._value is not None:
            kwargs[self.name] = self._value
        return args, _plain(own)

    def _stretched(self, grid: tuple[Any, ...], own: Any) -> tuple[Any, ...]:
        self.axes = len(grid)
        if self._value is None or self._axis is None or not isinstance(own, int):
            return grid
        stretched = math.ceil(grid[self._axis] * own / self._value)
        return (*grid[: self._axis], stretched, *grid[self._axis + 1 :])


def _plain(value: Any) -> Any:
    """The number in a tl.constexpr."""
    return getattr(value, "value", value)


def sweep(bench: Bench, subject: Subject, case: Any, judged: Any, name: str, values: Sequence[int]) -> dict[str, Any]:
    """Rows of value, time or finding. Each value is checked on the small case `judged`, then timed on `case`.

    KataUsageError if no launch takes the parameter.
    """
    launches = Launches(subject.module, name)
    whole = _stored_bytes(_timed(bench, subject, launches, case, None, None))
    own = launches.seen[-1] if launches.seen else None
    if not launches.seen:
        can = ", ".join([*sorted(launches.constants), *OPTIONS])
        why = " (a kernel under @triton.autotune sets its own)" if launches.tuned else ""
        raise KataUsageError(f"No launch of this file takes {name!r}{why}.", needed=f"What can be swept: {can}.")
    axis = None if launches.callable_grid or name in OPTIONS else _axis(bench, subject, launches, judged)
    tied = axis == _TIED
    rows = []
    for value in values:
        row: dict[str, Any] = {"value": value, "own": value == own, "us": None, "limiter": None, "finding": None}
        try:
            # More is never wrong on a grid that was cut for less; what is left over is masked off.
            checked = None if isinstance(own, int) and value > own else axis
            if value != own and not tied and (found := _check(bench, subject, launches, judged, value, checked)):
                raise FileAtFault(found)
            done = _timed(bench, subject, launches, case, value, None if tied else axis)
            if done.finding is not None:
                raise FileAtFault(done.finding)
            if tied and _stored_bytes(done) < whole:
                text = f"{_stored_bytes(done):.0f} of {whole:.0f} bytes of the result are stored with {name}={value}"
                raise FileAtFault(Finding("K404", text, "The blocks do not cover the input.", file=str(bench.file)))
            row["us"] = round(done.us, 3)
            row["limiter"] = count(done.call, bench.gpu.spec).limiter
        except FileAtFault as error:
            row["finding"] = error.finding.to_dict()
        rows.append(row)
    return {"name": name, "own": own, "rows": rows, "tied": tied}


def _timed(bench: Bench, subject: Subject, launches: Launches, case: Any, value: int | None, axis: int | None) -> Timed:
    """One call on the modelled clock, in which a few programs really run and what they store is compared."""
    what = f"{launches.name} as it is" if value is None else f"{launches.name}={value}"
    seed = bench.request.seed
    with bench.step(what, bench.file), launches.replaced(value, axis):
        spec = as_timed(bench.spec, case, seed)
        return time_call(subject.entry, bench.file, spec, case, seed, bench.gpu)


def _stored_bytes(done: Timed) -> float:
    """Bytes that all programs of a call store; what the sampled ones stored is known to be right, but not to be all."""
    launches = [one for one in done.call.launches if one.profile is not None]
    stored = [one.programs * site.bytes for one in launches for site in one.profile.sites if site.kind != "load"]
    return float(sum(stored))


def _axis(bench: Bench, subject: Subject, launches: Launches, judged: Any) -> int | None:
    """Which axis of a computed grid counts blocks of this size; None if none does, _TIED if half the value is wrong.

    Tried on a small case with half its own value, since twice the value is right with too many programs as well.
    """
    with bench.step(f"{launches.name} as it is", bench.file), launches.replaced(None), bench.gpu.record():
        subject.entry(*bench.inputs(judged))
    own = launches.seen[-1] if launches.seen else 1
    if not isinstance(own, int) or own < 2:
        return None
    axes: list[int | None] = [None, *range(launches.axes)]
    for axis in axes:
        if _check(bench, subject, launches, judged, own // 2, axis) is None:
            return axis
    return _TIED


def _check(
    bench: Bench, subject: Subject, launches: Launches, judged: Any, value: int, axis: int | None
) -> Finding | None:
    """The first finding of the small case with this value."""
    from checker import judge

    @wraps(subject.entry)
    def entry(*args: Any) -> Any:
        with launches.replaced(value, axis):
            return subject.entry(*args)

    try:
        with bench.step(f"{launches.name}={value}: is it right?", bench.file):
            found = judge.check_case(replace(subject, entry=entry), judged, bench.request.seed)
    except FileAtFault as error:
        return error.finding
    return found[0] if found else None
