"""What disturbs a measurement on a real chip, drawn from a seed: for lessons in which measuring is what is learned.

Off by default. A clock whose `noise` is one of these gives times that differ from round to round, though what is
measured is the same; the undisturbed time is known, so that what a benchmark makes of it can be judged.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

__all__ = ["Noise"]


@dataclass
class Noise:
    """Called with a launch's undisturbed microseconds and the device's clock; returns what it takes.

    `jitter` is the relative spread (sigma) around the undisturbed time, which stays the median. One launch in
    `1 / outliers` takes three to eight times as long. For the first `ramp_us` of the device's clock all takes `ramp`
    times as long: an idle chip runs slowly, and needs load to speed up. The first `burst` launches after `begin()` take
    `burst_factor` times as long: somebody else used the chip meanwhile.
    """

    seed: int = 0
    jitter: float = 0.0
    outliers: float = 0.0
    ramp: float = 1.0
    ramp_us: float = 0.0
    burst: int = 0
    burst_factor: float = 1.3
    _draw: random.Random = field(init=False, repr=False)
    _begun: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)  # noqa: S311  # noise, not secrets

    def begin(self) -> None:
        """From here on launches belong to the measurement."""
        self._begun = True

    def __call__(self, us: float, at_us: float) -> float:
        """The time that a launch of `us` takes which begins at `at_us`."""
        factor = self._draw.lognormvariate(0.0, self.jitter) if self.jitter else 1.0
        if self.outliers and self._draw.random() < self.outliers:
            factor *= self._draw.uniform(3.0, 8.0)
        if at_us < self.ramp_us:
            factor *= self.ramp
        if self._begun and self.burst > 0:
            self.burst -= 1
            factor *= self.burst_factor
        return us * factor
