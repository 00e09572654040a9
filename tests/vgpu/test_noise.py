"""Noise on the clock: seeded, of the strength that was asked for, and none where none was asked for."""

from __future__ import annotations

import statistics

import pytest

from checker.vgpu.noise import Noise
from checker.vgpu.timeline import Clock, Duration


def times(noise: Noise, count: int = 4000, us: float = 100.0) -> list[float]:
    return [noise(us, 0.0) for _ in range(count)]


def test_without_a_reason_nothing_is_disturbed() -> None:
    assert times(Noise(seed=1), 10) == [100.0] * 10


def test_the_seed_decides() -> None:
    assert times(Noise(1, jitter=0.1), 20) == times(Noise(1, jitter=0.1), 20) != times(Noise(2, jitter=0.1), 20)


def test_jitter_leaves_the_median_where_it_is() -> None:
    found = times(Noise(3, jitter=0.05))
    low, middle, high = statistics.quantiles(found, n=4)
    assert middle == pytest.approx(100, rel=0.01)
    assert high - low == pytest.approx(1.35 * 5, rel=0.1)


def test_outliers_are_as_many_as_asked_for_and_only_ever_longer() -> None:
    found = times(Noise(4, outliers=0.1))
    far = [us for us in found if us > 200]
    assert len(far) == pytest.approx(400, rel=0.2)
    assert min(found) == 100
    assert max(found) <= 800


def test_the_chip_is_slow_until_it_has_been_busy_for_a_while() -> None:
    noise = Noise(ramp=1.5, ramp_us=1000)
    assert (noise(10, 999), noise(10, 1000)) == (15, 10)


def test_a_burst_begins_with_the_measurement() -> None:
    noise = Noise(burst=2, burst_factor=2.0)
    before = noise(10, 0)
    noise.begin()
    assert [before, *times(noise, 3, 10)] == [10, 20, 20, 10]


def test_a_clock_passes_through_its_noise_and_the_host_does_not() -> None:
    clock = Clock()
    clock.noise = Noise(ramp=3.0, ramp_us=1e6)
    clock.launch(Duration(lambda: 50.0))
    assert clock.now_us - clock.host_us == 150
    assert clock.host_us == 6
