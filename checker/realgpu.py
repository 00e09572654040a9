"""The real GPU of this machine: Triton's own driver beside the virtual one, and device time by events.

Both drivers take turns in one process: a kernel's launches go to whichever is active, and their caches are keyed by
device. CUDA, and ROCm through the same names of torch.cuda.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from types import ModuleType
from typing import Any

import torch
import triton

from checker.cases import Case
from checker.timing import Wrong, check_elements
from checker.vgpu import specs
from checker.vgpu.specs import GpuSpec

__all__ = ["ROUNDS", "RealRounds", "active", "chip", "describe", "free_bytes", "key", "stood_for", "usable"]

ROUNDS = 11
"""Rounds on a real GPU, where times scatter."""

# Bytes that are overwritten before each round: more than any L2.
_FLUSH_BYTES = 1 << 30
# How often. Once takes an H200 0.4 ms, and a host that has just compiled may take as long to launch a kernel; the gap
# would be measured as the device's time.
_FLUSHES = 8
_COMPARED = 4096
# A bandwidth that is not known is measured by copying so much.
_PROBE_BYTES = 1 << 28


@lru_cache
def usable() -> bool:
    """Whether this process has a GPU that torch and Triton can both use."""
    try:
        return bool(torch.cuda.is_available()) and torch.cuda.device_count() > 0
    except RuntimeError:
        return False


def _name() -> str:
    return str(torch.cuda.get_device_name(0))


def describe() -> dict[str, str]:
    """The GPU as records name a device: kind, name, compilation target such as sm_90."""
    if torch.version.hip:
        target = str(torch.cuda.get_device_properties(0).gcnArchName).split(":")[0]
    else:
        target = "sm_{}{}".format(*torch.cuda.get_device_capability(0))
    return {"kind": "cuda", "name": _name(), "target": target}


def key() -> str | None:
    """The chip in `specs.CHIPS` that this GPU is, if it is one of them."""
    words = set(_name().lower().replace("-", " ").split())
    for spec in specs.CHIPS.values():
        if set(spec.name.lower().split()[1:2]) <= words and (spec.key != "rtx4090" or "4090" in words):
            return spec.key
    return None


def stood_for(gpu: str) -> str:
    """The chip that the virtual GPU is to be: the real one if it is known, unless another than the default is given."""
    return (key() or gpu) if usable() and gpu == specs.DEFAULT_CHIP else gpu


@contextmanager
def active() -> Iterator[torch.device]:
    """Triton's own driver takes the launches inside the block; the one before takes them again afterwards."""
    before = triton.runtime.driver.active
    triton.runtime.driver.set_active(triton.runtime.driver.default)
    try:
        yield torch.device("cuda", torch.cuda.current_device())
    finally:
        triton.runtime.driver.set_active(before)


@contextmanager
def _own_tuning(entry: Callable[..., Any]) -> Iterator[None]:
    """What a tuner found on the virtual GPU does not count here, nor the other way round: its cache knows no device."""
    tuners = [value for value in getattr(entry, "__globals__", {}).values() if type(value).__name__ == "Autotuner"]

    def forget() -> None:
        for tuner in tuners:
            tuner.cache.clear()
            # The driver's way of timing, which a tuner looks up once.
            tuner.__dict__.pop("do_bench", None)

    forget()
    try:
        yield
    finally:
        forget()


def free_bytes() -> int:
    """Memory that a case may take: nine tenths of what is free, less the flush."""
    free, _ = torch.cuda.mem_get_info()
    return max(0, int(0.9 * free) - _FLUSH_BYTES)


@lru_cache
def chip(like: GpuSpec) -> GpuSpec:
    """The figures of this GPU: those of the known chip, else `like` with the bandwidth that a plain copy reaches."""
    known = key()
    if known is not None:
        return specs.CHIPS[known]
    x = torch.empty(_PROBE_BYTES, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    milliseconds = triton.testing.do_bench(lambda: y.copy_(x), warmup=5, rep=20)
    reached = 2 * _PROBE_BYTES / milliseconds / 1e6
    properties = torch.cuda.get_device_properties(0)
    # Nothing is known of the data sheet: a time is impossible only far beyond what a copy reaches.
    return replace(
        like, key="real", name=_name(), multiprocessors=properties.multi_processor_count, dram_gb_per_s=1.5 * reached,
        measured_dram_gb_per_s=reached, memory_bytes=properties.total_memory, validated=False,
    )  # fmt: skip


class _Mark:
    """A place in the device's queue. The difference of two is the seconds between them: only then the host waits."""

    def __init__(self) -> None:
        self.event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.event.record()

    def __sub__(self, earlier: _Mark) -> float:
        self.event.synchronize()
        return float(earlier.event.elapsed_time(self.event)) * 1e-3


class RealRounds:
    """The rounds of one entry point on one case on the real GPU; the counterpart of `VirtualRounds`."""

    def __init__(
        self, entry: Callable[..., Any], spec: ModuleType, case: Case, seed: int, *, verify: bool = True
    ) -> None:
        self.entry, self.spec, self.case, self.seed, self.verify = entry, spec, case, seed, verify
        self.wrong: Wrong | None = None
        self.verified = 0
        self._inputs: tuple[Any, ...] = ()
        self._result: Any = None
        self._round = 0

    @contextmanager
    def running(self) -> Iterator[RealRounds]:
        """The real driver is active around all rounds. The first call compiles and tunes, and is not timed."""
        with active() as self._device, _own_tuning(self.entry):
            self._flush = torch.empty(_FLUSH_BYTES // 4, dtype=torch.int32, device=self._device)
            args, _ = self.setup()
            self.run(*args)
            yield self
            self._check()
            self._inputs, self._result, self._flush = (), None, torch.empty(0)
        gc.collect()
        torch.cuda.empty_cache()

    def _draw(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        if dtype.is_floating_point:
            return torch.randn(shape, dtype=dtype, device=self._device, generator=self._generator)
        return torch.randint(-100, 100, shape, dtype=dtype, device=self._device, generator=self._generator)

    def setup(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Fresh inputs, and an L2 that holds none of them. Checks the result of the round before."""
        self._check()
        self._result, self._inputs = None, ()
        self._generator = torch.Generator(self._device).manual_seed(self.seed + self._round)
        self._inputs = tuple(self.spec.timed_inputs(self.case, self._draw))
        torch.cuda.synchronize()
        for _ in range(_FLUSHES):
            self._flush.zero_()
        return self._inputs, {}

    def run(self, *args: Any) -> None:
        """The call that is timed."""
        self._result = self.entry(*args)
        self._round += 1

    def timer(self) -> _Mark:
        """A mark behind all that is queued."""
        return _Mark()

    def _check(self) -> None:
        """Compares elements drawn over the whole result with the reference."""
        if not self.verify or self._result is None or self.wrong is not None:
            return
        outputs = list(self._result) if isinstance(self._result, (tuple, list)) else [self._result]
        for number, output in enumerate(outputs):
            indices = torch.randint(output.numel(), (_COMPARED,), device=output.device)
            self.verified += _COMPARED
            self.wrong = self.wrong or check_elements(self.spec, self._inputs, output, number, indices)
