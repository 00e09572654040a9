"""Time as it passes: the host's clock, the device's, and what lies in L2 meanwhile.

A launch returns at once and the device works through its queue, so a benchmark that forgets to synchronise, to warm
up or to flush L2 is wrong here in the way it is wrong on a real GPU.
"""

from __future__ import annotations

from collections.abc import Callable

from checker.vgpu.calibration import H200
from checker.vgpu.specs import GpuSpec
from checker.vgpu.views import Buffer

__all__ = ["L2", "Clock", "Duration"]

# Host time of one launch through Triton, and of the fill that flushes L2 on the device: 256 MiB at DRAM's rate.
_HOST_LAUNCH = 6.0
_FLUSH = 58.0


class Duration:
    """A time in microseconds that is worked out when somebody asks for it: profiling a launch costs real time."""

    def __init__(self, work_out: Callable[[], float]) -> None:
        self._work_out: Callable[[], float] | None = work_out
        self._us = 0.0

    @property
    def us(self) -> float:
        """The time, worked out on first use."""
        if self._work_out is not None:
            self._us = self._work_out()
            self._work_out = None
        return self._us


class L2:
    """Which storages lie in L2 after the launches so far: the last ones, as far as they fit together."""

    def __init__(self) -> None:
        self._held: dict[int, int] = {}

    def flush(self) -> None:
        """Empties it."""
        self._held.clear()

    def touch(self, buffers: list[Buffer], spec: GpuSpec) -> bool:
        """Notes that a launch uses `buffers`; returns whether all of them were there before."""
        sizes = {b.tensor.untyped_storage().data_ptr(): b.numel * b.itemsize for b in buffers}
        warm = bool(sizes) and all(self._held.get(key) == size for key, size in sizes.items())
        for key, size in sizes.items():
            self._held.pop(key, None)
            self._held[key] = size
        while self._held and sum(self._held.values()) > spec.l2_bytes * H200.l2_usable:
            del self._held[next(iter(self._held))]
        return warm


class Clock:
    """Two clocks, in microseconds: the host's, and the device's, which runs behind it until they synchronise.

    A launch returns at once: the host goes on after a few microseconds while the device works through its queue.
    `noise`, where measuring is the lesson, makes of a launch's time and its beginning the time that it takes today.
    """

    def __init__(self) -> None:
        self.host_us = 0.0
        self.noise: Callable[[float, float], float] | None = None
        self._device_us = 0.0
        self._queue: list[tuple[float, Duration]] = []

    def launch(self, duration: Duration) -> None:
        """Queues work on the device, as it stands on the host's clock."""
        self.host_us += _HOST_LAUNCH
        self._queue.append((self.host_us, duration))

    def flush_l2(self) -> None:
        """Queues the fill that benchmarks use to empty L2."""
        self.launch(Duration(lambda: _FLUSH))

    @property
    def device_us(self) -> float:
        """When the device will have done all that is queued."""
        for queued, duration in self._queue:
            begins = max(self._device_us, queued)
            self._device_us = begins + (duration.us if self.noise is None else self.noise(duration.us, begins))
        self._queue.clear()
        return self._device_us

    def synchronize(self) -> None:
        """The host waits for the device."""
        self.host_us = max(self.host_us, self.device_us)

    @property
    def now_us(self) -> float:
        """The mark an event makes: behind all queued work, and not before the host asked for it."""
        return max(self.device_us, self.host_us)
