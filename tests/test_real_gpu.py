"""The path over a real GPU, with a stand-in for the GPU where there is none: values after memory, times by events."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from checker import judge, onchip, realgpu, speed
from checker.catalog import SpeedCase
from checker.judge import Subject
from checker.loading import load_module
from checker.vgpu.specs import CHIPS, chip

pytest.importorskip("triton", reason="Triton has wheels for Linux only")

ROOT = Path(__file__).parents[1]
SMALL = SpeedCase("2^14", {"shape": (1 << 14,), "dtype": "float32"}, "bound", 1e-9, "", "", "")


class WallMark:
    """A mark by the host's clock."""

    def __init__(self) -> None:
        self.at = time.perf_counter()

    def __sub__(self, earlier: WallMark) -> float:
        return self.at - earlier.at


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """The virtual GPU in the place of a real one: its driver stays active, and its device is the CPU."""

    @contextmanager
    def active() -> Iterator[torch.device]:
        yield torch.device("cpu")

    monkeypatch.setattr(realgpu, "active", active)
    monkeypatch.setattr(realgpu, "usable", lambda: True)
    monkeypatch.setattr(realgpu, "describe", lambda: {"kind": "cuda", "name": "NVIDIA Test", "target": "sm_90"})
    monkeypatch.setattr(realgpu, "chip", lambda like: replace(like, name="NVIDIA Test"))
    monkeypatch.setattr(realgpu, "free_bytes", lambda: 10**10)
    monkeypatch.setattr(realgpu, "_Mark", WallMark)
    monkeypatch.setattr(realgpu, "_FLUSH_BYTES", 1024)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)


@pytest.fixture
def learner() -> Subject:
    """The solution of kata 01, checked on a real GPU."""
    file = ROOT / "solutions" / "01_vector_copy.py"
    judge.open_gpu("h200").activate()
    module = load_module(file)
    spec = load_module(ROOT / "katas" / "01_vector_copy" / "spec.py")
    return Subject(module, spec, module.vector_copy, file, "h200", device="cuda")


@pytest.mark.usefixtures("stand_in")
def test_values_are_compared_on_the_chip(learner: Subject) -> None:
    for case in learner.spec.CASES:
        assert onchip.check_case(learner, case, 1) == []

    def off_by_one(x: torch.Tensor) -> torch.Tensor:
        return learner.module.vector_copy(x) + 1

    (finding,) = onchip.check_case(replace(learner, entry=off_by_one), learner.spec.CASES[0], 1)
    assert finding.code == "K601"
    assert "NVIDIA Test" in finding.details[-1]


@pytest.mark.usefixtures("stand_in")
def test_what_is_raised_there_is_told(learner: Subject) -> None:
    def raising(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered")

    (finding,) = onchip.check_case(replace(learner, entry=raising), learner.spec.CASES[0], 1)
    assert finding.case == learner.spec.CASES[0].id
    assert "illegal memory access" in finding.message + " ".join(finding.details)


def test_a_gpu_that_pytorch_cannot_use_is_the_environments_fault(
    learner: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(realgpu, "usable", lambda: False)
    (finding,) = onchip.check_case(learner, learner.spec.CASES[0], 1)
    assert finding.code == "K006"


@pytest.mark.usefixtures("stand_in")
def test_times_are_measured_facts_are_counted(learner: Subject) -> None:
    calls: list[float] = []
    entry = learner.entry

    def watched(x: torch.Tensor) -> torch.Tensor:
        calls.append(float(x[0]))
        return entry(x)

    result = speed.measure(replace(learner, entry=watched), SMALL, 1)
    assert result.measured
    assert result.decides
    assert result.basis == "measured on NVIDIA Test"
    assert result.counted.bytes == result.least_bytes
    assert result.torch_measured
    assert result.torch_us is not None
    assert result.verified > 0
    assert result.low <= result.us <= result.high
    # Fresh inputs each time.
    assert len(set(calls)) >= 4


@pytest.mark.usefixtures("stand_in")
def test_a_timed_call_that_is_wrong_there_is_refused(learner: Subject) -> None:
    right = learner.entry

    def wrong_on_the_chip(x: torch.Tensor) -> torch.Tensor:
        y = right(x)
        return y if torch.utils._python_dispatch._len_torch_dispatch_stack() else y + 1

    replaced = replace(learner, entry=wrong_on_the_chip)
    (finding,) = speed.judge(replaced, speed.measure(replaced, SMALL, 1))
    assert (finding.code, finding.stage) == ("K601", "speed")


@pytest.mark.usefixtures("stand_in")
def test_the_solution_is_timed_there_too_where_the_threshold_asks(learner: Subject) -> None:
    result = speed.measure(learner, replace(SMALL, to="reference"), 1)
    assert result.reference_us is not None
    assert result.reference_us > 0


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA A100-SXM4-80GB", "a100"),
        ("Tesla T4", "t4"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"),
        ("NVIDIA GeForce RTX 3060", None),
        ("AMD Instinct MI300X", "mi300x"),
    ],
)
def test_a_gpu_is_recognised_by_its_name(name: str, key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realgpu, "_name", lambda: name)
    assert realgpu.key() == key


def test_an_unknown_gpu_is_taken_at_the_bandwidth_it_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(realgpu, "_name", lambda: "NVIDIA H200")
    realgpu.chip.cache_clear()
    assert realgpu.chip(chip("a100")) is CHIPS["h200"]
    realgpu.chip.cache_clear()


@pytest.mark.skipif(not realgpu.usable(), reason="there is no real GPU")
def test_a_real_gpu_agrees_and_is_fast_enough(learner: Subject) -> None:
    for case in learner.spec.CASES:
        assert onchip.check_case(learner, case, 1) == []
    timed = SpeedCase("2^26", {"shape": (1 << 26,), "dtype": "float32"}, "bound", 0.7, "", "", "")
    result = speed.measure(learner, timed, 1)
    assert result.basis.startswith("measured on ")
    assert speed.judge(learner, result) == []
