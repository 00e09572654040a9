"""The virtual GPU as Triton sees it: a driver.

`VirtualGpu(...).activate()` makes it Triton's active driver. From then on Triton itself specialises, compiles and
caches every launch for the chosen chip, tunes and benchmarks through it, and hands it the compiled kernel; only
the running is ours: the kernel's TTIR, in numpy, on CPU tensors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Any

import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget

from checker.vgpu import specs
from checker.vgpu.binding import bind, checked_grid, require_allocator
from checker.vgpu.brief import Brevity, complete
from checker.vgpu.clock import Estimate, estimate
from checker.vgpu.errors import VirtualGpuError
from checker.vgpu.executor import Executor
from checker.vgpu.kernels import Kernel, Utilities, attach
from checker.vgpu.memory import LaunchMemory
from checker.vgpu.profile import Profiler, UntrackedMemory
from checker.vgpu.session import Session
from checker.vgpu.specs import GpuSpec
from checker.vgpu.timeline import Clock, Duration
from checker.vgpu.trace import LaunchTrace
from checker.vgpu.views import Buffer

__all__ = ["Session", "VirtualGpu", "active", "line_in"]

# Each chip is a device of its own to Triton, whose caches are keyed by device number; no real one is this high.
_FIRST_DEVICE = 4096


class _Launcher:
    """Made once per compiled kernel; called for every launch of it."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self.source = source
        self.metadata = metadata

    def __call__(
        self,
        x: int,
        y: int,
        z: int,
        stream: int,
        kernel: Kernel,
        packed: Any,
        launch_metadata: Any,
        enter_hook: Any,
        exit_hook: Any,
        *args: Any,
    ) -> None:
        active().launch(self.source, self.metadata, kernel, (x, y, z), args)


class _Event:
    """A mark on the device's clock."""

    def __init__(self, enable_timing: bool = True, **_: Any) -> None:
        self.at_us = 0.0

    def record(self, *_: Any) -> None:
        self.at_us = active().clock.now_us

    def elapsed_time(self, later: _Event) -> float:
        """Milliseconds from this mark to `later`."""
        return (later.at_us - self.at_us) / 1e3

    def synchronize(self) -> None:
        """The host's clock waits for the device's."""
        active().clock.synchronize()

    wait = query = synchronize


class _DeviceInterface:
    """The few names of torch.cuda that benchmarks use."""

    Event = _Event

    @staticmethod
    def synchronize(*_: Any) -> None:
        """The host's clock waits for the device's."""
        active().clock.synchronize()

    @staticmethod
    def current_device() -> int:
        return active().device


class VirtualGpu:
    """One chip. `session` collects what happens and is replaced by `record()`."""

    launcher_cls = _Launcher

    def __init__(self, name: str = specs.DEFAULT_CHIP) -> None:
        self.spec: GpuSpec = specs.chip(name)
        self.device = _FIRST_DEVICE + list(specs.CHIPS).index(self.spec.key)
        self.utils = Utilities(self.spec)
        self.session = Session()
        self.brevity = Brevity()
        self._tuned = False
        self._tuning = False

    @contextmanager
    def instead(self) -> Iterator[VirtualGpu]:
        """Triton's active driver inside the block; the one before takes the launches again afterwards."""
        before = triton.runtime.driver.active
        try:
            yield self.activate()
        finally:
            triton.runtime.driver.set_active(before)

    def activate(self) -> VirtualGpu:
        """Becomes Triton's active driver for the rest of the process."""
        if os.environ.get("TRITON_INTERPRET"):
            raise VirtualGpuError(
                "K006",
                "TRITON_INTERPRET is set, so Triton bypasses every driver",
                "Unset it: the virtual GPU needs no environment variable.",
            )
        # Triton 3.9 warns unless this is chosen; contraction is what its compiled code has done so far.
        os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
        triton.runtime.driver.set_active(self)
        if attach not in knobs.runtime.kernel_load_end_hook.calls:
            knobs.runtime.kernel_load_end_hook.add(attach)
        return self

    @contextmanager
    def record(self, **options: Any) -> Iterator[Session]:
        """A fresh session for the length of a `with` block; `options` are fields of `Session`."""
        before = self.session
        self.session = Session(**options)
        try:
            yield self.session
        finally:
            self.session = before

    @property
    def clock(self) -> Clock:
        """The clocks of the current session."""
        return self.session.clock

    # What Triton calls.

    def get_current_target(self) -> GPUTarget:
        """What to compile for."""
        return GPUTarget(self.spec.backend, self.spec.arch, self.spec.warp_size)

    def get_current_device(self) -> int:
        """The chip's own number."""
        return self.device

    def set_current_device(self, device: int) -> None:
        """One chip at a time."""

    def get_current_stream(self, device: int | None = None) -> int:
        """The only one."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """(major, minor), as torch.cuda answers it."""
        arch = self.spec.arch
        return divmod(arch, 10) if isinstance(arch, int) else (9, 4)

    def get_active_torch_device(self) -> torch.device:
        """Where this GPU's tensors live."""
        return torch.device("cpu")

    def get_device_interface(self) -> type[_DeviceInterface]:
        """Stands in for torch.cuda in benchmarks."""
        return _DeviceInterface

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """A small tensor: there is no cache to fill."""
        return torch.empty(16, dtype=torch.int32)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Empties L2 of what launches left there."""
        self.session.l2.flush()
        self.clock.flush_l2()

    def map_python_to_cpp_type(self, kind: str) -> str:
        """No C++ launcher is generated, so types keep their names."""
        return kind

    @classmethod
    def is_active(cls) -> bool:
        """Whether Triton may choose this driver by itself."""
        return True

    def get_benchmarker(self) -> Callable[..., Any]:
        """What an autotuner times configurations with."""
        return self._benchmark

    def _benchmark(self, call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **_: Any) -> Any:
        """Times a configuration for an autotuner by running it twice: a kernel that must not be repeated shows it."""
        if self.session.tuning == "first" and self._tuned:
            elapsed = float("inf")
        else:
            # The first is taken whatever it needs: not worth compiling it to the end to learn how long that is.
            brief = self.session.tuning == "first" and self.brevity.on
            self._tuning = True
            try:
                call()
                start = 0.0 if brief else self.clock.now_us
                call()
                elapsed = 1.0 if brief else (self.clock.now_us - start) / 1e3
            finally:
                self._tuning = False
            self._tuned = True
        return [elapsed] * len(quantiles) if quantiles else elapsed

    # Launching.

    def launch(
        self, source: Any, metadata: Any, kernel: Kernel, grid: tuple[int, int, int], args: tuple[Any, ...]
    ) -> None:
        """Runs one launch and appends its trace to the session."""
        if not self._tuning:
            self._tuned = False
        if kernel.brief and self.brevity.on:
            self.brevity.owe(kernel, source, metadata)
        elif kernel.brief:
            complete(kernel, source, metadata)
        names = list(source.signature)
        bound = dict(zip(names, args, strict=False))
        function = source.fn.fn if hasattr(source.fn, "fn") else source.fn
        trace = LaunchTrace(
            kernel=getattr(function, "__name__", kernel.name),
            grid=checked_grid(grid),
            scalars={name: value for name, value in bound.items() if isinstance(value, (bool, int, float))},
            num_warps=metadata.num_warps,
            num_stages=getattr(metadata, "num_stages", 1),
            registers=kernel.registers,
            spills=kernel.stack_bytes,
            shared_bytes=kernel.shared_bytes,
            file=function.__code__.co_filename if hasattr(function, "__code__") else "",
            line=function.__code__.co_firstlineno if hasattr(function, "__code__") else 0,
        )
        trace.called_at = line_in(trace.file)
        trace.kernel_handle = kernel
        self.session.launches.append(trace)
        if 0 in trace.grid:
            return
        kernel.fusion = bool(getattr(metadata, "enable_fp_fusion", True))
        module = kernel.parsed(trace.file)
        entry = module.functions[module.entry]
        require_allocator(metadata)
        values, buffers = bind(entry, source.signature, bound)
        trace.tensors = {buffer.name: buffer.tensor for buffer in buffers}
        layouts = tuple((buffer.element, buffer.shape, buffer.strides) for buffer in buffers)
        key = (id(kernel), trace.grid, tuple(trace.scalars.items()), layouts)
        if self.session.timing:
            self._time(kernel, values, buffers, trace, (*key, tuple(b.tensor.data_ptr() for b in buffers)))
            return
        if self.session.before_launch is not None:
            self.session.before_launch(self.session, trace, buffers)
        replays = self.session.replays
        state = replays.state([buffer.tensor for buffer in buffers])
        # A kernel that changes what it reads gives other bytes each time: only a benchmark may stop caring.
        last = replays.find(key, state, whatever=_in_do_bench())
        if last is not None:
            trace.repeat(last.trace)
            self.session.l2.touch(buffers, self.spec)
            self.clock.launch(last.duration)
            return
        self.session.shadows.begin_launch()
        memory = LaunchMemory(
            buffers,
            self.session.shadows,
            trace.grid,
            poison=self.session.poison,
            poison_only=self.session.poison_only,
            check_races=self.session.check_races,
            authors=self.session.authors,
            launch=len(self.session.launches),
            read_only=_read_only(kernel, buffers),
        )
        executor = Executor(
            module,
            kernel.analyses,
            memory,
            trace,
            values,
            count_sectors=self.session.count_sectors,
            echo=self.session.echo,
        )
        executor.run()
        trace.same_bytes = memory.races.same_bytes
        warm = self.session.l2.touch(buffers, self.spec)

        def elapsed() -> float:
            if kernel.brief:
                complete(kernel, source, metadata)
            return self._profile(kernel, values, buffers, trace, warm).us

        duration = Duration(elapsed)
        self.clock.launch(duration)
        replays.keep(key, state, trace, duration, [buffers[number].tensor for number in memory.changed])

    def _time(self, kernel: Kernel, values: list[Any], buffers: list[Buffer], trace: LaunchTrace, key: Any) -> None:
        """Timing mode: sampled programs run and store; a launch like an earlier one only moves the clock."""
        warm = self.session.l2.touch(buffers, self.spec)
        known = self.session.timed.get((key, warm))
        if known is None:
            known = self.session.timed[key, warm] = self._profile(kernel, values, buffers, trace, warm, stores=True)
        trace.estimate = known
        self.clock.launch(Duration(lambda: known.us))

    def _profile(
        self,
        kernel: Kernel,
        values: list[Any],
        buffers: list[Buffer],
        trace: LaunchTrace,
        warm: bool,
        *,
        stores: bool = False,
    ) -> Estimate:
        """Counts on a few programs what the launch costs, and makes a time of it."""
        memory = UntrackedMemory(buffers, self.session.shadows, trace.grid)
        memory.stores = stores
        trace.registers, trace.spills, trace.shared_bytes = kernel.registers, kernel.stack_bytes, kernel.shared_bytes
        counted = replace(trace, accesses=[], violations=[], notes=[], prints=[])
        profiler = Profiler(kernel.parsed(), kernel.analyses, memory, counted, values)
        sampled = _sample(trace.programs, self.session.sample)
        if self.session.first is not None:
            sampled = range(min(self.session.first, trace.programs))
        profiler.run(sampled)
        profile = profiler.profile()
        trace.profile = profile
        trace.sampled = sampled if sampled is not None else range(trace.programs)
        trace.stored = memory.stored
        found = trace.estimate = estimate(profile, self.spec, warm=warm)
        return found


def _read_only(kernel: Kernel, buffers: list[Buffer]) -> frozenset[int]:
    """Numbers of the buffers into whose storage the kernel cannot store."""
    entry = kernel.parsed().entry
    stored: set[int] = set()
    for name, analysis in kernel.analyses.items():
        stored |= analysis.stored_arguments if name == entry or not analysis.stored_arguments else {-1}
    if -1 in stored:
        return frozenset()
    storages = {buffer.tensor.untyped_storage().data_ptr() for buffer in buffers if buffer.argument in stored}
    return frozenset(buffer.number for buffer in buffers if buffer.tensor.untyped_storage().data_ptr() not in storages)


def _in_do_bench() -> bool:
    """Whether `triton.testing.do_bench` is calling."""
    code = triton.testing.do_bench.__code__
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


def line_in(file: str) -> int | None:
    """The line of a file that is being executed, nearest to the caller; None if none is."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != file:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else None


def active() -> VirtualGpu:
    """The virtual GPU that is Triton's active driver; an error where a real one is."""
    driver = triton.runtime.driver.active
    if not isinstance(driver, VirtualGpu):
        raise VirtualGpuError("K007", "the virtual GPU is not Triton's active driver", "Activate it first.")
    return driver


def _sample(total: int, limit: int | None) -> Sequence[int] | None:
    """All programs, or `limit` of them: the middles of as many equal parts.

    The first and the last program are often unlike the others, and each would count as a third of them.
    """
    if limit is None or total <= limit:
        return None
    return [(2 * i + 1) * total // (2 * limit) for i in range(limit)]
