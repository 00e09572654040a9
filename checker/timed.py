"""Times a function on any case of a kata, a judged one as well as a timed one, for `compare`, `inspect` and its sweeps.

`speed.py` judges a learner's kernel against its threshold; here nothing is judged, so a case needs none.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from checker.cases import Case, case_seed
from checker.findings import Finding
from checker.timing import Call, VirtualRounds, plain_rounds

if TYPE_CHECKING:
    from checker.vgpu.driver import VirtualGpu

__all__ = ["Timed", "as_timed", "drawn", "real_us", "time_call"]

_REAL_ROUNDS = 11


@dataclass(frozen=True, slots=True)
class Timed:
    """Modelled microseconds of a call, what it did, and the finding if what it stored is wrong."""

    us: float
    call: Call
    finding: Finding | None


def as_timed(spec: ModuleType, case: Case, seed: int) -> ModuleType:
    """The spec as the timing code wants it: where `case` is a judged one, its inputs are drawn as for judging."""
    if not any(case is one for one in spec.CASES):
        return spec
    own_seed = case_seed(seed, case.id)
    adapted = ModuleType("judged_case")
    vars(adapted).update(vars(spec))

    def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> tuple[Any, ...]:
        made: tuple[Any, ...] = spec.make_inputs(case, seed=own_seed, device=torch.device("cpu"))
        device = draw((1,), torch.float32).device
        if device.type == "meta":
            return tuple(_meta(value) for value in made)
        return tuple(value.to(device) if isinstance(value, torch.Tensor) else value for value in made)

    def expected_at(indices: torch.Tensor, *inputs: Any) -> tuple[torch.Tensor, ...]:
        truths = spec.reference(*inputs)
        flat = [truth.reshape(-1) for truth in (truths if isinstance(truths, (tuple, list)) else (truths,))]
        return tuple(truth[indices.clamp(max=max(0, truth.numel() - 1))] for truth in flat)

    def counted(function: Callable[[Case], int]) -> Callable[[Case], int]:
        def count(case: Case) -> int:
            # A case whose size is drawn has no figures.
            with suppress(TypeError, ValueError, AttributeError):
                return int(function(case))
            return 0

        return count

    vars(adapted).update(
        timed_inputs=timed_inputs,
        expected_at=expected_at,
        least_bytes=counted(spec.least_bytes),
        flops=counted(spec.flops),
    )
    return adapted


def _meta(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")


def drawn(spec: ModuleType, case: Case) -> tuple[Any, ...]:
    """The arguments of a case as "meta" tensors: shapes, dtypes and layouts without memory."""
    inputs: Sequence[Any] = spec.timed_inputs(case, lambda shape, dtype: torch.empty(shape, dtype=dtype, device="meta"))
    return tuple(inputs)


def time_call(entry: Callable[..., Any], file: Path, spec: ModuleType, case: Case, seed: int, gpu: VirtualGpu) -> Timed:
    """One call on the modelled clock. `spec` as `as_timed` gives it."""
    rounds = VirtualRounds(entry, file, spec, case, case_seed(seed, case.id), gpu)
    with rounds.running():
        us = plain_rounds(rounds.setup, rounds.run, rounds.timer, 1)[0] * 1e6
    wrong = rounds.wrong
    if wrong is None:
        return Timed(us, rounds.first, None)
    message = f"element {wrong.index} is {wrong.actual:.6g}; it must be {wrong.expected:.6g}"
    advice = "Look for what depends on the size: an offset, a loop that ends early, a block that covers too little."
    return Timed(us, rounds.first, Finding("K601", message, advice, file=str(file), case=case.id))


def real_us(entry: Callable[..., Any], spec: ModuleType, case: Case, seed: int) -> float:
    """The median device time of a call on the real GPU."""
    from checker.realgpu import RealRounds

    with RealRounds(entry, spec, case, case_seed(seed, case.id), verify=False).running() as real:
        return statistics.median(plain_rounds(real.setup, real.run, real.timer, _REAL_ROUNDS)) * 1e6
