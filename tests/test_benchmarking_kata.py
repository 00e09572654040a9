"""Kata 10 tells bad timers apart: each is refused where it is exposed to its own mistake, and in its own words."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from checker.judge import open_gpu
from checker.lab import Lab
from checker.loading import load_module

pytest.importorskip("triton", reason="Triton has wheels for Linux only")

ROOT = Path(__file__).parents[1]
MUTANTS = ROOT / "tests" / "mutants" / "10_benchmarking"
SPEC = load_module(ROOT / "katas" / "10_benchmarking" / "spec.py")

TOLD = {
    "clock_of_the_host": ("the device works on while the host goes on", "goes on while the device works"),
    "clock_of_the_host_and_waiting": ("data that L2 could hold", "waited for the host to launch"),
    "events_read_too_early": ("the device works on while the host goes on", "has not reached yet"),
    "fastest_round": ("rounds that differ", "the fastest of many was lucky"),
    "flush_inside_the_marks": ("the device works on while the host goes on", "lies between the marks"),
    "flushed_once": ("data that L2 could hold", "left in L2"),
    "mean_of_all_rounds": ("one round in ten is disturbed", "moved the result"),
    "milliseconds_for_microseconds": ("the device works on while the host goes on", "milliseconds"),
    "no_warm_up": ("a chip that was idle", "at a low clock"),
    "seven_rounds": ("eight rounds in a row are disturbed", "all 7 rounds"),
    "spread_from_end_to_end": ("rounds that differ", "the spread is said to be"),
    "waits_after_the_flush": ("data that L2 could hold", "waited for the host to launch"),
    "warm_cache": ("data that L2 could hold", "left in L2"),
    "warm_up_counted": ("a chip that was idle", "at a low clock"),
}


@pytest.mark.parametrize("name", TOLD)
def test_each_mistake_is_told_apart(name: str) -> None:
    lab, module = Lab(open_gpu("h200"), SPEC), load_module(MUTANTS / f"{name}.py")
    for probe in SPEC.probes(random.Random(1)):
        fault = probe.examine(module, lab)
        if fault is not None:
            break
    where, words = TOLD[name]
    assert probe.id == where
    assert words in fault.message


def test_the_reference_is_right_whatever_is_drawn() -> None:
    lab, solution = Lab(open_gpu("h200"), SPEC), load_module(ROOT / "solutions" / "10_benchmarking.py")
    found = [probe.examine(solution, lab) for seed in range(5) for probe in SPEC.probes(random.Random(seed))]
    assert found == [None] * len(found)
