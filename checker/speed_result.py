"""One case, timed: the figures, the ratio that its threshold asks for, and the record of both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from checker import slowness
from checker.bounds import Bound
from checker.catalog import SpeedCase
from checker.cost import Counted
from checker.timing import Wrong

__all__ = ["MARGIN", "SpeedResult"]

MARGIN = 0.05
"""A ratio this near its threshold is "close": another driver, Triton or chip may decide otherwise."""


@dataclass(frozen=True, slots=True)
class SpeedResult:
    """One case, timed. Times in microseconds; `low` and `high` are the fastest and the slowest round.

    `ratio` is what the threshold asks for, None if it could not be formed; `decides` whether the threshold is applied:
    not on a chip whose model was not validated, nor against PyTorch where it was not measured.
    """

    case: str
    us: float
    low: float
    high: float
    rounds: int
    basis: str
    measured: bool
    bound: Bound
    least_bytes: int
    counted: Counted
    ratio: float | None
    threshold: SpeedCase
    decides: bool
    reference_us: float | None = None
    torch_us: float | None = None
    torch_measured: bool = False
    wrong: Wrong | None = None
    verified: int = 0
    causes: tuple[slowness.Cause, ...] = ()
    note: str = ""

    @property
    def share_of_bound(self) -> float:
        """The bound over the time: 1 is perfect."""
        return self.bound.us / self.us

    @property
    def enough(self) -> bool:
        """Whether the threshold is met, or does not apply."""
        return not self.decides or self.ratio is None or self.ratio >= self.threshold.at_least

    @property
    def close(self) -> bool:
        """Whether the ratio is within the margin around its threshold."""
        return self.ratio is not None and abs(self.ratio / self.threshold.at_least - 1) <= MARGIN

    def row(self) -> dict[str, Any]:
        """The figures as a JSON-able record, for the report."""
        counted, worst = self.counted, self.counted.worst
        return {
            "case": self.case,
            "us": _short(self.us),
            "low": _short(self.low),
            "high": _short(self.high),
            "rounds": self.rounds,
            "basis": self.basis,
            "measured": self.measured,
            "bound_us": _short(self.bound.us),
            "bound_by": self.bound.by,
            "share_of_bound": _short(self.share_of_bound),
            "least_bytes": self.least_bytes,
            "bytes": round(counted.bytes),
            "dram_bytes": round(counted.dram_bytes),
            "limiter": counted.limiter,
            "worst": None
            if worst is None
            else {
                "kind": worst.kind,
                "argument": worst.argument,
                "file": worst.file,
                "line": worst.line,
                "column": worst.column,
                "ratio": _short(worst.ratio),
            },
            "launches": counted.launches,
            "pytorch_operations": [name for name, _ in counted.operations],
            "registers": counted.registers,
            "spilled_bytes": counted.spilled_bytes,
            "shared_bytes": counted.shared_bytes,
            "occupancy": _short(counted.occupancy),
            "to": self.threshold.to,
            "at_least": self.threshold.at_least,
            "ratio": None if self.ratio is None else _short(self.ratio),
            "enough": self.enough,
            "close": self.close,
            "decides": self.decides,
            "reference_us": None if self.reference_us is None else _short(self.reference_us),
            "torch_us": None if self.torch_us is None else _short(self.torch_us),
            "torch_measured": self.torch_measured,
            "verified": self.verified,
            "note": self.note,
        }


def _short(value: float) -> float:
    return float(f"{value:.4g}")
