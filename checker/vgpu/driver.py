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
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch
import triton
from triton import knobs
from triton.backends.compiler import GPUTarget

from checker.vgpu import parser, places, resources, specs, ttir
from checker.vgpu.analysis import Analysis, analyse
from checker.vgpu.authors import Authors
from checker.vgpu.clock import Estimate, estimate
from checker.vgpu.errors import VirtualGpuError
from checker.vgpu.executor import Executor
from checker.vgpu.floats import NUMPY
from checker.vgpu.memory import LaunchMemory
from checker.vgpu.profile import Profiler, UntrackedMemory
from checker.vgpu.replay import Replays
from checker.vgpu.shadow import Shadows
from checker.vgpu.specs import GpuSpec
from checker.vgpu.timeline import L2, Clock, Duration
from checker.vgpu.trace import LaunchTrace
from checker.vgpu.views import Buffer

__all__ = ["Session", "VirtualGpu", "active"]

# Each chip is a device of its own to Triton, whose caches are keyed by device number; no real one is this high.
_FIRST_DEVICE = 4096

_GRID_LIMIT = (2**31 - 1, 65535, 65535)

# Columns in TTIR count from 0 before Triton 3.9 and from 1 since.
_COLUMN_BASE = 0 if tuple(int(p) for p in triton.__version__.split(".")[:2]) < (3, 9) else 1


@dataclass
class Session:
    """What one use of the virtual GPU collects, and how it is to behave meanwhile.

    `poison` is what undefined lanes read; `poison_only` restricts it to some source places. `tuning` is "first"
    (an autotuner takes the first configuration that runs) or "all" (it times every one on the modelled clock).
    `authors`, where given, learns who stored what; `before_launch` is told of each launch before it runs.
    """

    launches: list[LaunchTrace] = field(default_factory=list)
    shadows: Shadows = field(default_factory=Shadows)
    poison: str = "nan"
    poison_only: frozenset[tuple[str, int, int]] | None = None
    count_sectors: bool = False
    check_races: bool = True
    tuning: str = "first"
    timing: bool = False
    sample: int = 3
    clock: Clock = field(default_factory=Clock)
    l2: L2 = field(default_factory=L2)
    timed: dict[Any, Estimate] = field(default_factory=dict)
    on_compile: Callable[[bool], None] | None = None
    echo: Callable[[str], None] | None = None
    replays: Replays = field(default_factory=Replays)
    authors: Authors | None = None
    before_launch: Callable[[Session, LaunchTrace, list[Buffer]], None] | None = None


@dataclass
class _Kernel:
    """A loaded binary and what is known of it."""

    name: str
    files: dict[str, str] = field(default_factory=dict)
    registers: int = 0
    stack_bytes: int = 0
    module: ttir.Module | None = None
    analyses: dict[str, Analysis] = field(default_factory=dict)
    fusion: bool = True

    def text(self, ending: str) -> str:
        """The intermediate representation whose file name ends so ("ttir", "ptx", …)."""
        for name, path in self.files.items():
            if name.endswith("." + ending):
                return Path(path).read_text()
        return ""

    def parsed(self, file: str = "") -> ttir.Module:
        """The TTIR, parsed and analysed on first use; `file` is where the kernel's source stands now."""
        if self.module is None:
            self.module = parser.parse(self.text("ttir"), column_base=_COLUMN_BASE)
            if file:
                self.module.moved_to(file)
            if _COLUMN_BASE == 0:
                places.mend(self.module)
            self.analyses = {n: analyse(f, fusion=self.fusion) for n, f in self.module.functions.items()}
        return self.module


class _Utilities:
    """What Triton asks of a driver about devices and binaries."""

    def __init__(self, gpu: VirtualGpu) -> None:
        self.gpu = gpu

    def get_device_properties(self, device: int) -> dict[str, int]:
        spec = self.gpu.spec
        return {
            "max_shared_mem": spec.shared_bytes_per_block,
            "max_num_regs": spec.registers_per_sm,
            "multiprocessor_count": spec.multiprocessors,
            "warpSize": spec.warp_size,
            "sm_clock_rate": spec.clock_mhz * 1000,
            "mem_clock_rate": spec.clock_mhz * 1000,
            "mem_bus_width": 6144,
        }

    def load_binary(self, name: str, binary: Any, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        kernel = _Kernel(name)
        found = resources.from_cubin(binary) if isinstance(binary, bytes) else resources.Resources(0, 0)
        kernel.registers, kernel.stack_bytes = found.registers, found.stack_bytes
        spec = self.gpu.spec
        by_registers = spec.registers_per_sm // max(1, kernel.registers) // spec.warp_size * spec.warp_size
        threads = min(spec.threads_per_block, by_registers) if kernel.registers else spec.threads_per_block
        return kernel, kernel, kernel.registers, kernel.stack_bytes // 4, threads

    def unload_module(self, module: Any) -> None:
        """Nothing to unload."""


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
        kernel: _Kernel,
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
        self.utils = _Utilities(self)
        self.session = Session()
        self._tuned = False
        self._tuning = False

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
        if _attach not in knobs.runtime.kernel_load_end_hook.calls:
            knobs.runtime.kernel_load_end_hook.add(_attach)
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
            self._tuning = True
            try:
                call()
                start = self.clock.now_us
                call()
                elapsed = (self.clock.now_us - start) / 1e3
            finally:
                self._tuning = False
            self._tuned = True
        return [elapsed] * len(quantiles) if quantiles else elapsed

    # Launching.

    def launch(
        self, source: Any, metadata: Any, kernel: _Kernel, grid: tuple[int, int, int], args: tuple[Any, ...]
    ) -> None:
        """Runs one launch and appends its trace to the session."""
        if not self._tuning:
            self._tuned = False
        names = list(source.signature)
        bound = dict(zip(names, args, strict=False))
        function = source.fn.fn if hasattr(source.fn, "fn") else source.fn
        trace = LaunchTrace(
            kernel=getattr(function, "__name__", kernel.name),
            grid=_checked_grid(grid),
            scalars={name: value for name, value in bound.items() if isinstance(value, (bool, int, float))},
            num_warps=metadata.num_warps,
            num_stages=getattr(metadata, "num_stages", 1),
            registers=kernel.registers,
            spills=kernel.stack_bytes,
            shared_bytes=metadata.shared,
            file=function.__code__.co_filename if hasattr(function, "__code__") else "",
            line=function.__code__.co_firstlineno if hasattr(function, "__code__") else 0,
        )
        trace.kernel_handle = kernel
        self.session.launches.append(trace)
        if 0 in trace.grid:
            return
        kernel.fusion = bool(getattr(metadata, "enable_fp_fusion", True))
        module = kernel.parsed(trace.file)
        entry = module.functions[module.entry]
        _require_allocator(metadata)
        values, buffers = _bind(entry, source.signature, bound)
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
        duration = Duration(lambda: self._profile(kernel, values, buffers, trace, warm).us)
        self.clock.launch(duration)
        replays.keep(key, state, trace, duration, [buffers[number].tensor for number in memory.changed])

    def _time(self, kernel: _Kernel, values: list[Any], buffers: list[Buffer], trace: LaunchTrace, key: Any) -> None:
        """Timing mode: sampled programs run and store; a launch like an earlier one only moves the clock."""
        warm = self.session.l2.touch(buffers, self.spec)
        known = self.session.timed.get((key, warm))
        if known is None:
            known = self.session.timed[key, warm] = self._profile(kernel, values, buffers, trace, warm, stores=True)
        trace.estimate = known
        self.clock.launch(Duration(lambda: known.us))

    def _profile(
        self,
        kernel: _Kernel,
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
        counted = replace(trace, accesses=[], violations=[], notes=[], prints=[])
        profiler = Profiler(kernel.parsed(), kernel.analyses, memory, counted, values)
        sampled = _sample(trace.programs, self.session.sample)
        profiler.run(sampled)
        profile = profiler.profile()
        trace.profile = profile
        trace.sampled = sampled if sampled is not None else range(trace.programs)
        trace.stored = memory.stored
        found = trace.estimate = estimate(profile, self.spec, warm=warm)
        return found


def _in_do_bench() -> bool:
    """Whether `triton.testing.do_bench` is calling."""
    code = triton.testing.do_bench.__code__
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


def active() -> VirtualGpu:
    """The virtual GPU that is Triton's active driver; an error where a real one is."""
    driver = triton.runtime.driver.active
    if not isinstance(driver, VirtualGpu):
        raise VirtualGpuError("K007", "the virtual GPU is not Triton's active driver", "Activate it first.")
    return driver


def _attach(module: Any, function: Any, name: str, files: dict[str, str], digest: str) -> None:
    """Triton's hook after a binary is loaded: tells our handle where its intermediate representations lie."""
    if isinstance(function, _Kernel):
        function.files = dict(files)
        assembly = function.text("amdgcn")
        if assembly:
            found = resources.from_amdgcn(assembly)
            function.registers, function.stack_bytes = found.registers, found.stack_bytes


def _checked_grid(grid: tuple[Any, Any, Any]) -> tuple[int, int, int]:
    for axis, (extent, limit) in enumerate(zip(grid, _GRID_LIMIT, strict=True)):
        if isinstance(extent, bool) or not isinstance(extent, int):
            raise VirtualGpuError(
                "K301",
                f"grid axis {axis} is {extent!r} of type {type(extent).__name__}; a launch grid holds whole numbers",
                "Build the grid with triton.cdiv(n, BLOCK_SIZE), which returns an int.",
            )
        if extent < 0 or extent > limit:
            raise VirtualGpuError(
                "K306",
                f"grid axis {axis} has {extent} programs; a GPU takes 0 to {limit} there",
                "Put the largest dimension first: only axis 0 goes beyond 65535.",
            )
    return int(grid[0]), int(grid[1]), int(grid[2])


def _require_allocator(metadata: Any) -> None:
    """A kernel that makes tensor descriptors on the device needs scratch memory, as on a real GPU."""
    size = getattr(metadata, "global_scratch_size", 0)
    if size:
        triton.runtime._allocation._allocator.get()(size, metadata.global_scratch_align, 0)


def _bind(entry: ttir.Function, signature: dict[str, Any], bound: dict[str, Any]) -> tuple[list[Any], list[Buffer]]:
    """Values for the arguments of the TTIR function from those of the launch; tensors become buffers."""
    flat: list[tuple[str, Any]] = []
    for name, kind in signature.items():
        _flatten(name, kind, bound.get(name), flat)
    values: list[Any] = []
    buffers: list[Buffer] = []
    todo = iter(flat)
    pending: list[Any] = []
    for number, (_, kind) in enumerate(entry.args):
        if pending:
            values.append(_scalar(kind, pending.pop(0)))
            continue
        name, value = next(todo)
        if _is_descriptor(value):
            buffer = Buffer(_on_device(value.base, name), name, len(buffers), number)
            buffers.append(buffer)
            rest = [*value.shape, *value.strides]
            if kind.element == "desc":
                from checker.vgpu.machine import Descriptor

                base = np.array([buffer.base], dtype=np.int64)
                shape = [np.array([n], dtype=np.int64) for n in value.shape]
                strides = [np.array([n], dtype=np.int64) for n in value.strides]
                rounds = bool(getattr(value, "round_f32_to_tf32", False))
                padding = "nan" if value.padding == "nan" else "zero"
                values.append(Descriptor(base, shape, strides, kind, len(buffers) - 1, padding, rounds))
                pending = list(rest)
            else:
                values.append(np.array([buffer.base], dtype=np.int64))
                flags = sum(1 for _, k in entry.args[number + 1 + 2 * len(value.shape) :][:2] if k.element == "i1")
                settings = [value.padding == "nan", getattr(value, "round_f32_to_tf32", False)][:flags]
                pending = [*rest, *settings, *rest]
        elif kind.element == "ptr":
            if value is None or not hasattr(value, "data_ptr"):
                raise VirtualGpuError("K304", f"the argument {name} is {value!r}, not a tensor", "Pass a torch tensor.")
            buffers.append(Buffer(_on_device(value, name), name, len(buffers), number))
            values.append(np.array([buffers[-1].base], dtype=np.int64))
        else:
            values.append(_scalar(kind, value))
    return values, buffers


def _flatten(name: str, kind: Any, value: Any, out: list[tuple[str, Any]]) -> None:
    """Tuples become their members; constants do not reach the kernel's signature."""
    if isinstance(kind, (tuple, list)):
        for i, (inner, part) in enumerate(zip(kind, value, strict=False)):
            _flatten(f"{name}[{i}]", inner, part, out)
    elif kind != "constexpr":
        out.append((name, value))


def _is_descriptor(value: Any) -> bool:
    return all(hasattr(value, field) for field in ("base", "shape", "strides", "block_shape"))


def _scalar(kind: ttir.Type, value: Any) -> Any:
    if isinstance(value, int) and kind.element.startswith("i") and kind.element != "i1":
        bits = 8 * NUMPY[kind.element].itemsize
        value = (value + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))
    return np.array([value], dtype=NUMPY[kind.element])


def _on_device(tensor: Any, name: str) -> Any:
    device = getattr(tensor, "device", None)
    if device is not None and device.type != "cpu":
        raise VirtualGpuError(
            "K305",
            f"the tensor passed as {name} is on device {device}, and the kernel runs on "
            f"{active().get_active_torch_device()}",
            "Check the devices of all tensors in the wrapper before the launch, and allocate with device=x.device.",
        )
    return tensor


def _sample(total: int, limit: int | None) -> Sequence[int] | None:
    """All programs, or a spread of `limit` of them."""
    if limit is None or total <= limit:
        return None
    return sorted({round(i * (total - 1) / (limit - 1)) for i in range(limit)})
