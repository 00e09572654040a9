"""The laboratory in which the truth of a prediction is found: by running, tracing or compiling, never by looking up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from checker.loading import load_module
from checker.vgpu import aten
from checker.vgpu.driver import VirtualGpu
from checker.vgpu.noise import Noise
from checker.vgpu.session import Session
from checker.vgpu.specs import GpuSpec
from checker.vgpu.trace import LaunchTrace

__all__ = ["Lab"]


class Lab:
    """What a question's `truth` may use. Nothing here sees the learner's file."""

    def __init__(self, gpu: VirtualGpu, spec: ModuleType) -> None:
        self._gpu = gpu
        self._spec = spec
        self._reference: ModuleType | None = None

    @property
    def spec(self) -> GpuSpec:
        """The chip's figures."""
        return self._gpu.spec

    @property
    def reference_module(self) -> ModuleType:
        """The solved module of this kata, loaded fresh from `solutions/`."""
        if self._reference is None:
            folder = Path(str(self._spec.__file__)).resolve().parent
            self._reference = load_module(folder.parent.parent / "solutions" / f"{folder.name}.py")
        return self._reference

    def launches(self, function: Callable[..., Any], *args: Any) -> list[LaunchTrace]:
        """Runs `function(*args)` and returns what its launches did, sectors counted."""
        with self._gpu.record(count_sectors=True) as session:
            function(*args)
        return session.launches

    def timed(self, function: Callable[..., Any], *args: Any) -> list[LaunchTrace]:
        """Runs a sample of the programs of each launch, and returns what they did with `profile` and `estimate`.

        Tensors of gigabytes may be given, as `torch.empty` makes them: only what the sample touches is read.
        """
        with self._gpu.record(timing=True) as session:
            function(*args)
        return session.launches

    def first_wave(self, function: Callable[..., Any], *args: Any) -> list[LaunchTrace]:
        """Runs as many programs of each launch as there are multiprocessors; `stored` holds what they wrote, in order.

        They are the ones that start together. Tensors of gigabytes may be given, as to `timed`.
        """
        with self._gpu.record(timing=True, first=self.spec.multiprocessors) as session:
            function(*args)
        return session.launches

    @contextmanager
    def stopwatch(self, noise: Noise | None = None) -> Iterator[Session]:
        """A session in timing mode, whose clock and L2 a benchmark may use; `noise` disturbs its times."""
        with self._gpu.record(timing=True) as session:
            session.clock.noise = noise
            yield session

    def result(self, function: Callable[..., Any], *args: Any) -> Any:
        """What `function(*args)` returns, or the exception it raises."""
        with self._gpu.record():
            try:
                return function(*args)
            except Exception as error:  # the exception is the answer
                return error

    def compiles(self, function: Callable[..., Any], *args: Any) -> bool:
        """Whether `function(*args)`, which launches something, compiles and fits the chip."""
        return not isinstance(self.result(function, *args), Exception)

    def texts(self, function: Callable[..., Any], *args: Any) -> dict[str, str]:
        """What the compiler wrote for the last launch of `function(*args)`: the levels that are text, in order."""
        kernel: Any = self.launches(function, *args)[-1].kernel_handle
        return {name: kernel.text(name) for name in self.levels() if name not in ("cubin", "hsaco")}

    def eager(self, function: Callable[..., Any], *args: Any) -> aten.Cost:
        """What the PyTorch operations in `function(*args)` cost on the chip. Shapes count, values are not computed."""
        return aten.cost(function, *args, spec=self.spec)

    def levels(self) -> tuple[str, ...]:
        """The intermediate representations of this Triton, in the order in which it makes them."""
        from triton.backends.compiler import Language
        from triton.compiler import make_backend

        backend = make_backend(self._gpu.get_current_target())
        stages: dict[str, Any] = {}
        backend.add_stages(stages, backend.parse_options({}), Language.TRITON)
        return tuple(stages)
