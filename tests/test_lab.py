"""The probes with which a question finds its truth."""

from __future__ import annotations

from types import ModuleType

import torch
import triton
import triton.language as tl

from checker.judge import open_gpu
from checker.lab import Lab


@triton.jit
def _total(x_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK_SIZE))
    tl.store(y_ptr, tl.sum(x, axis=0))


@triton.jit
def _copy(x_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))


def lab() -> Lab:
    return Lab(open_gpu("h200"), ModuleType("spec"))


def launch_total(x: torch.Tensor) -> torch.Tensor:
    y = torch.empty(1)
    _total[(1,)](x, y, BLOCK_SIZE=x.numel())
    return y


def test_texts_hold_each_readable_level_of_the_last_launch() -> None:
    texts = lab().texts(launch_total, torch.ones(256))
    assert list(texts) == ["ttir", "ttgir", "llir", "ptx"]
    assert "tt.reduce" in texts["ttir"]
    assert "#blocked" not in texts["ttir"]
    assert "#blocked" in texts["ttgir"]
    assert "shfl.sync" in texts["ptx"]


def test_eager_counts_what_each_operation_reads_and_writes() -> None:
    x = torch.ones(1000, dtype=torch.float16)
    found = lab().eager(lambda gate, up: torch.nn.functional.silu(gate) * up, x, x)
    assert [operation.name for operation in found.operations] == ["silu", "mul"]
    assert found.bytes == (2 + 3) * 1000 * 2


def test_launches_run_and_are_traced() -> None:
    (launch,) = lab().launches(launch_total, torch.ones(256))
    assert launch.bytes_loaded == 1024
    assert lab().result(launch_total, torch.ones(256)).item() == 256


def test_what_is_timed_runs_a_sample_and_tells_what_it_costs() -> None:
    def launch(x: torch.Tensor) -> None:
        _total[(1000,)](x, torch.empty(1), BLOCK_SIZE=256)

    (launch_of_many,) = lab().timed(launch, torch.ones(256))
    assert len(launch_of_many.sampled) < 10
    assert launch_of_many.estimate.us > 3
    assert launch_of_many.profile.programs == 1000


def test_the_first_wave_is_one_program_for_each_multiprocessor() -> None:
    def launch(x: torch.Tensor, y: torch.Tensor) -> None:
        _copy[(1000,)](x, y, BLOCK_SIZE=16)

    place = lab()
    (wave,) = place.first_wave(launch, torch.ones(16000), torch.empty(16000))
    stored = [offset for piece in wave.stored["y_ptr"] for offset in piece.tolist()]
    assert stored == list(range(16 * place.spec.multiprocessors))
