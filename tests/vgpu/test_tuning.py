"""Autotuning, heuristics and benchmarks run on the virtual GPU unchanged."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
import triton.testing
from torch.multiprocessing.reductions import StorageWeakRef

CONFIGS = [triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64}, num_warps=2)]


def add_one(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1.0, mask=mask)


plain = triton.jit(add_one)
tuned = triton.autotune(CONFIGS, key=["n"])(triton.jit(add_one))
restoring = triton.autotune(CONFIGS, key=["n"], restore_value=["x_ptr"])(triton.jit(add_one))


@triton.autotune(CONFIGS, key=["n"], reset_to_zero=["out_ptr"])
@triton.jit
def total(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0)))


def only_the_largest(configs, named_args, **keywords):
    return configs[-1:]


@triton.autotune(CONFIGS, key=[], prune_configs_by={"early_config_prune": only_the_largest})
@triton.jit
def pruned(out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, BLOCK)


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"]), "EVEN": lambda args: args["n"] % 2 == 0})
@triton.jit
def guessed(out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    tl.store(out_ptr, BLOCK)
    tl.store(out_ptr + 1, EVEN)


def grid(n):
    return lambda META: (triton.cdiv(n, META["BLOCK"]),)


def test_the_first_configuration_that_runs_is_taken(session):
    total[grid(1000)](torch.ones(1000), torch.zeros(1), 1000)
    assert session.launches[-1].scalars["BLOCK"] == 32


def test_reset_to_zero_keeps_a_sum_right():
    out = torch.zeros(1)
    total[grid(900)](torch.ones(900), out, 900)
    assert out.item() == 900


def test_restore_value_keeps_an_update_in_place_right():
    x = torch.zeros(100)
    restoring[grid(100)](x, 100)
    assert torch.equal(x, torch.ones(100))


def test_an_update_in_place_that_is_not_restored_shows(session):
    x = torch.zeros(101)
    tuned[grid(101)](x, 101)
    assert x[0] > 1


def test_all_configurations_run_when_tuning_is_asked_for(gpu):
    with gpu.record(tuning="all") as session:
        total[grid(1100)](torch.ones(1100), torch.zeros(1), 1100)
    assert {launch.scalars["BLOCK"] for launch in session.launches} == {32, 64}


def test_a_second_call_with_the_same_key_does_not_tune_again(session):
    x = torch.zeros(102)
    restoring[grid(102)](x, 102)
    before = len(session.launches)
    restoring[grid(102)](x, 102)
    assert len(session.launches) == before + 1


def test_pruned_configurations_do_not_run(session):
    out = torch.zeros(1)
    pruned[(1,)](out)
    assert out.item() == 64


def test_heuristics_fill_in_constants():
    out = torch.zeros(2, dtype=torch.int32)
    guessed[(1,)](out, 100)
    assert out.tolist() == [128, 1]


def test_do_bench_measures_on_the_clock_of_the_chip():
    x, y = torch.zeros(1 << 20), torch.zeros(1 << 20)

    def ms(blocks):
        return triton.testing.do_bench(lambda: copy[(blocks,)](x, y), warmup=1, rep=1)

    assert 0 < ms(16) < ms(1 << 14)


def test_do_bench_stops_running_a_kernel_that_updates_in_place():
    x = torch.zeros(64)
    triton.testing.do_bench(lambda: plain[(1,)](x, 64, BLOCK=64), warmup=1, rep=1)
    assert 5 <= x[0] <= 32


def test_do_bench_keeps_no_memory_of_a_wrapper_that_allocates():
    x, allocated = torch.zeros(64), []

    def wrapper():
        y = torch.empty_like(x)
        allocated.append(StorageWeakRef(y.untyped_storage()))
        copy[(1,)](x, y)

    triton.testing.do_bench(wrapper, warmup=5, rep=5)
    assert sum(not storage.expired() for storage in allocated) < 50 < len(allocated)


def test_a_repeated_launch_that_changes_nothing_is_only_timed(gpu, session):
    out = torch.zeros(2, dtype=torch.int32)
    guessed[(1,)](out, 100)
    guessed[(1,)](out, 100)
    before = gpu.clock.now_us
    guessed[(1,)](out, 100)
    assert gpu.clock.now_us > before
    assert [launch.replayed for launch in session.launches] == [False, False, True]
    assert session.launches[2].bytes_stored == session.launches[0].bytes_stored == 8


def test_two_buffers_that_swap_roles_are_never_replayed():
    a, b = torch.zeros(64), torch.zeros(64)
    for _ in range(20):
        plus_one[(1,)](a, b)
        plus_one[(1,)](b, a)
    assert a[0] == 40


@triton.jit
def plus_one(x_ptr, y_ptr):
    offs = tl.arange(0, 64)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs) + 1)


def test_a_launch_is_not_replayed_once_its_input_has_changed():
    source, out = torch.zeros(64), torch.zeros(64)
    for turn in range(60):
        source.fill_(turn)
        copy[(1,)](source, out)
    assert torch.equal(out, source)


@triton.jit
def copy(x_ptr, y_ptr):
    offs = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))


def test_a_chain_of_two_kernels_is_replayed_only_as_a_whole():
    a, b = torch.zeros(64), torch.zeros(64)
    for _ in range(100):
        plain[(1,)](a, 64, BLOCK=64)
        copy[(1,)](a, b)
    assert torch.equal(a, b)
