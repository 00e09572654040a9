"""The vocabulary in which a kata's `spec.py` is written: a case, a refusal, a question.

Values only. What is done with them stands in `judge.py`; where the truth of a question comes from, in `lab.py`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from checker.lab import Lab

__all__ = ["Case", "Fault", "Probe", "Question", "Refusal", "case_seed"]


@dataclass(frozen=True, init=False)
class Case:
    """One input on which a kernel is judged: a readable id and the parameters that make it.

    `stage` says what the case is for: "values" cases ask whether the kernel computes the right thing at all,
    "numerics" cases whether it still does on data that breaks careless arithmetic. Parameters are read as
    attributes: `Case("n=257", n=257).n == 257`.
    """

    id: str
    params: Mapping[str, Any]
    stage: str = "values"
    quick: bool = True

    def __init__(self, id: str, *, stage: str = "values", quick: bool = True, **params: Any) -> None:
        if stage not in ("values", "numerics"):
            raise ValueError(f"case {id!r}: stage is {stage!r}; it must be 'values' or 'numerics'")
        object.__setattr__(self, "id", id)
        object.__setattr__(self, "params", MappingProxyType(dict(params)))
        object.__setattr__(self, "stage", stage)
        object.__setattr__(self, "quick", quick)

    def __getattr__(self, name: str) -> Any:
        params = self.__dict__.get("params", {})
        if name in params:
            return params[name]
        raise AttributeError(f"case {self.__dict__.get('id')!r} has no parameter {name!r}; it has {sorted(params)}")


@dataclass(frozen=True)
class Refusal:
    """A call that the learner's wrapper must refuse before it launches anything.

    `make` takes a `torch.device` and returns the positional arguments; any of `exceptions` is a right answer.
    """

    id: str
    make: Callable[[Any], tuple[Any, ...]]
    exceptions: tuple[type[BaseException], ...] = (ValueError, TypeError)


@dataclass(frozen=True)
class Fault:
    """What a probe found: a code of the catalogue, what is wrong, what to do; `line` is one of the learner's file."""

    code: str
    message: str
    advice: str
    line: int | None = None
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Probe:
    """Something that is tried on the learner's module as a whole, where the lesson is on the host.

    `examine` takes the loaded module and a `Lab`, and returns the fault it found, or None. What her code raises passes
    through. A probe counts as a case of its stage.
    """

    id: str
    examine: Callable[[ModuleType, Lab], Fault | None]
    stage: str = "values"


@dataclass(frozen=True)
class Question:
    """A prediction the learner writes as the function `entry`; `truth` finds the right answer by running something.

    An answer within `tolerance` (relative) of the truth is right; 0 asks for equality.
    """

    entry: str
    args: tuple[Any, ...]
    truth: Callable[[Lab], Any]
    text: str = ""
    tolerance: float = 0.0
    extra: Mapping[str, Any] = field(default_factory=dict)


def case_seed(seed: int, case_id: str) -> int:
    """The seed of one case, so that a case repeats alone with the seed of the whole check."""
    return (seed * 1_000_003 + zlib.crc32(case_id.encode())) % 2**31
