"""Launches that need not run again: a timing loop repeats one thousands of times.

A launch whose arguments hold the bytes they held when the same launch last began, and which changed none of them
then, would store the same bytes again: only the clock needs to advance. So a kernel that updates in place, a loop
whose input changes and a ping-pong between two buffers run every time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from checker.vgpu.timeline import Duration
from checker.vgpu.trace import LaunchTrace

__all__ = ["Last", "Replays"]

# A launch that ran this often in one session is somebody's timing loop.
_OFTEN = 32


@dataclass(slots=True)
class Last:
    """The last real run of a launch: what it did, how long it takes, the state of memory it began with."""

    trace: LaunchTrace
    duration: Duration
    state: tuple[Any, ...]
    runs: int


class Replays:
    """What one session knows of the launches it has run. A tensor's state is told by counters, not by its bytes."""

    def __init__(self) -> None:
        self._last: dict[Any, Last] = {}
        self._changes: Counter[int] = Counter()

    def state(self, tensors: list[Any]) -> tuple[Any, ...]:
        """Which memory, its changes by kernels and by the host; unequal to all others where the host's don't count."""
        keys = [_storage(tensor) for tensor in tensors]
        return tuple(
            (key, tensor.storage_offset(), self._changes[key], _version(tensor))
            for key, tensor in zip(keys, tensors, strict=True)
        )

    def find(self, key: Any, state: tuple[Any, ...], *, whatever: bool) -> Last | None:
        """The last real run of a launch, if running it in `state` would store what is in memory already.

        `whatever` also accepts a launch that has run often, whatever memory holds now: for a benchmark's loop.
        """
        last = self._last.get(key)
        if last is None:
            return None
        return last if last.state == state or (whatever and last.runs >= _OFTEN) else None

    def keep(
        self, key: Any, state: tuple[Any, ...], trace: LaunchTrace, duration: Duration, changed: list[Any]
    ) -> None:
        """Remembers a real run that began in `state` and changed bytes of the tensors `changed`."""
        for tensor in changed:
            self._changes[_storage(tensor)] += 1
        before = self._last.get(key)
        self._last[key] = Last(trace, duration, state, 1 + (before.runs if before else 0))


def _storage(tensor: Any) -> int:
    """A number of its own for each storage; not reused while a shadow remembers the storage, dead or alive."""
    return int(tensor.untyped_storage()._cdata)


def _version(tensor: Any) -> Any:
    """PyTorch counts changes in place, except of inference tensors."""
    return object() if tensor.is_inference() else tensor._version
