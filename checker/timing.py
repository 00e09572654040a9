"""Times one call of a kata's entry point on the virtual GPU, in rounds, and keeps what its launches showed.

Timing mode: large inputs that cost nothing until they are read, a few sampled programs a launch, which really run and
store; L2 is flushed before each round, and what PyTorch does in the wrapper moves the clock too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from triton import knobs

from checker.cases import Case
from checker.vgpu.aten import Eager, Operation
from checker.vgpu.driver import VirtualGpu, line_in
from checker.vgpu.lazy import LazyDraw
from checker.vgpu.timeline import Duration
from checker.vgpu.trace import LaunchTrace

__all__ = ["LONG", "Call", "Rounds", "VirtualRounds", "Wrong", "check_elements", "plain_rounds"]

# A call that takes the host so many seconds is made once; its launches are then repeated on the clock alone.
_COSTLY = 0.5
# How many elements of a round's result are compared with the reference.
_COMPARED = 512
# The units in the last place, at the result's scale, that a timed result may be off: its exactness was judged before.
_UNITS = 8
LONG = 200
"""FLOPs a byte beyond which a program is long, and two of them must do as a sample."""

Rounds = Callable[[Callable[[], Any], Callable[..., Any], Callable[[], Any]], list[float]]
"""Runs rounds of setup, call and timer; returns the seconds of each call. `setup` returns (args, kwargs)."""


def plain_rounds(
    setup: Callable[[], Any], call: Callable[..., Any], timer: Callable[[], Any], count: int = 3
) -> list[float]:
    """Rounds without a benchmarking library: what pytest-benchmark's pedantic mode does."""
    seconds = []
    for _ in range(count):
        args, kwargs = setup()
        start = timer()
        call(*args, **kwargs)
        seconds.append(float(timer() - start))
    return seconds


@dataclass(frozen=True, slots=True)
class Wrong:
    """A timed call returned something wrong: the element's flat index, what it is and what it must be."""

    index: int
    actual: float
    expected: float


@dataclass
class Call:
    """What one call did: its launches with their profiles, PyTorch's operations with the learner's line, or 0."""

    launches: list[LaunchTrace] = field(default_factory=list)
    operations: list[tuple[Operation, int]] = field(default_factory=list)


class VirtualRounds:
    """The rounds of one entry point on one case.

    `first` holds what the first round showed, `seconds` what a round costs the host, `wrong` the first wrong element.
    """

    def __init__(
        self, entry: Callable[..., Any], file: Path, spec: ModuleType, case: Case, seed: int, gpu: VirtualGpu
    ) -> None:
        self.entry, self.file, self.spec, self.case, self.seed, self.gpu = entry, file, spec, case, seed, gpu
        self.first = Call()
        self.wrong: Wrong | None = None
        self.verified = 0
        self.tuned = any(type(value).__name__ == "Autotuner" for value in getattr(entry, "__globals__", {}).values())
        self._inputs: tuple[Any, ...] = ()
        self._result: Any = None
        self._round = 0
        self._seen = 0
        self.seconds = 0.0

    @contextmanager
    def running(self) -> Iterator[VirtualRounds]:
        """A session of the virtual GPU in timing mode around all rounds."""
        long = self.spec.flops(self.case) > LONG * self.spec.least_bytes(self.case)
        with self.gpu.record(timing=True, tuning="all", sample=2 if long else 3) as self.session:
            if self.tuned:
                # The first call tunes; the later ones are what a call costs.
                args, _ = self.setup()
                self.run(*args)
                # What tuning cost the host says nothing of a call.
                self._round, self.first, self.seconds = 0, Call(), 0.0
            yield self
            self._verify()
            self._inputs, self._result = (), None

    def setup(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Fresh inputs and an empty L2. Checks the result of the round before."""
        self._verify()
        self._result = None
        if not self._costly:
            self.session.timed.clear()
            self._inputs = tuple(self.spec.timed_inputs(self.case, LazyDraw(self.seed + self._round)))
        self._seen = len(self.session.launches)
        self.gpu.clear_cache(self.gpu.get_empty_cache_for_benchmark())
        return self._inputs, {}

    def run(self, *args: Any) -> None:
        """The call that is timed. One that costs the host much is called once, and repeated on the clock alone."""
        if self._costly:
            for us in self._durations():
                self.session.clock.launch(Duration(lambda us=us: us))  # type: ignore[misc]  # a default binds it
            return
        first = self.first if self._round == 0 else Call()

        def charge(operation: Operation) -> None:
            first.operations.append((operation, line_in(str(self.file)) or 0))
            self.session.clock.launch(Duration(lambda: operation.us))

        with Eager(self.gpu.spec, charge), _stopwatch() as watch:
            self._result = self.entry(*args)
        first.launches += self.session.launches[self._seen :]
        self._round += 1
        self.seconds = watch.seconds

    @property
    def _costly(self) -> bool:
        return self.seconds > _COSTLY

    def _durations(self) -> list[float]:
        operations = [operation.us for operation, _ in self.first.operations]
        return operations + [float(launch.estimate.us) for launch in self.first.launches if launch.estimate]

    def timer(self) -> float:
        """Seconds on the virtual device's clock, behind all that is queued."""
        return self.session.clock.now_us * 1e-6

    def _verify(self) -> None:
        """Compares what sampled programs wrote with the reference."""
        if self._result is None or self.wrong is not None:
            return
        outputs = list(self._result) if isinstance(self._result, (tuple, list)) else [self._result]
        for number, output in enumerate(outputs):
            indices = self._stored(output)
            if indices is None:
                continue
            self.verified += int(indices.numel())
            self.wrong = self.wrong or check_elements(self.spec, self._inputs, output, number, indices)

    def _stored(self, output: Any) -> torch.Tensor | None:
        """Some flat indices of an output that the launches of this round stored; None where none are known."""
        if not isinstance(output, torch.Tensor) or not output.is_contiguous():
            return None
        if _outdated(self.session.launches[self._seen :]):
            return None
        found = []
        for launch in self.session.launches[self._seen :]:
            for name, parts in (launch.stored or {}).items():
                tensor: Any = launch.tensors[name]
                if tensor.data_ptr() == output.data_ptr() and tensor.dtype == output.dtype:
                    found += [torch.from_numpy(part) for part in parts if part.size]
        if not found:
            return None
        every = torch.cat([part.reshape(-1) for part in found])
        draw = torch.Generator().manual_seed(self.seed)
        chosen = every[torch.randint(every.numel(), (min(_COMPARED, every.numel()),), generator=draw)]
        return chosen[(chosen >= 0) & (chosen < output.numel())]


def _outdated(launches: list[LaunchTrace]) -> bool:
    """Whether a launch of the round read what is not there.

    One that was repeated on the clock alone would have read what was stored meanwhile; one of which a sample ran may
    have read what of an earlier launch, of which a sample ran as well, was never stored.
    """
    written: set[int] = set()
    in_part: set[int] = set()
    read: dict[Any, set[int]] = {}
    for launch in launches:
        tensors: dict[str, Any] = launch.tensors
        storages = {name: tensor.untyped_storage().data_ptr() for name, tensor in tensors.items()}
        key = (id(launch.kernel_handle), tuple(tensor.data_ptr() for tensor in tensors.values()))
        if launch.stored is not None:
            arguments = launch.profile.arguments if launch.profile else {}
            read[key] = {storages[name] for name in storages if name in arguments and arguments[name].read_sectors}
            if read[key] & in_part:
                return True
            stored = {storages[name] for name, parts in launch.stored.items() if parts and name in storages}
            written |= stored
            if len(launch.sampled) < launch.programs:
                in_part |= stored
        elif read.get(key, set()) & written:
            return True
    return False


@dataclass
class _Stopwatch:
    seconds: float = 0.0


@contextmanager
def _stopwatch() -> Iterator[_Stopwatch]:
    """Wall time inside the block without what Triton compiles meanwhile. Uses Triton's public hooks, puts them back."""
    watch, marks = _Stopwatch(), [time.process_time()]
    before, after = knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook

    def begin(*args: Any, **kwargs: Any) -> Any:
        watch.seconds += time.process_time() - marks.pop() if marks else 0.0
        return before(*args, **kwargs) if before is not None else None

    def end(*args: Any, **kwargs: Any) -> Any:
        marks[:] = [time.process_time()]
        return after(*args, **kwargs) if after is not None else None

    knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook = begin, end
    try:
        yield watch
    finally:
        watch.seconds += time.process_time() - marks[0] if marks else 0.0
        knobs.runtime.jit_cache_hook, knobs.runtime.jit_post_compile_hook = before, after


def check_elements(
    spec: ModuleType, inputs: tuple[Any, ...], output: torch.Tensor, number: int, indices: torch.Tensor
) -> Wrong | None:
    """The first of the elements at flat `indices` that is not what the reference says, within a few units."""
    expected = spec.expected_at(indices, *inputs)
    want = (expected[number] if isinstance(expected, (tuple, list)) else expected).double()
    got = output.reshape(-1)[indices].double()
    if output.dtype.is_floating_point:
        unit = torch.finfo(output.dtype).eps * want.abs().nan_to_num(0.0, 0.0, 0.0).max()
        wrong = ~((got - want).abs() <= _UNITS * unit) & ~(got.isnan() & want.isnan()) & (got != want)
    else:
        wrong = got != want
    if not bool(wrong.any()):
        return None
    at = int(wrong.to(torch.uint8).argmax())
    return Wrong(int(indices[at]), float(got[at]), float(want[at]))
