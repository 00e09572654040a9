"""What masked-off lanes and gaps hold is undefined on a chip; here it is chosen, so that a dependence shows."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

LARGEST = {
    torch.float32: torch.finfo(torch.float32).max,
    torch.float16: 65504.0,
    torch.bfloat16: torch.finfo(torch.bfloat16).max,
    torch.int32: 2**31 - 1,
    torch.int8: 127,
}


@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n))


@triton.jit
def copy_with_other(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=offs < n, other=5))


def masked_off(gpu, poison, dtype=torch.float32):
    x, y = torch.ones(4, dtype=dtype), torch.zeros(8, dtype=dtype)
    with gpu.record(poison=poison):
        copy[(1,)](x, y, 4, BLOCK=8)
    assert y[:4].tolist() == [1] * 4
    return y[4:]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_masked_off_floats_read_as_chosen(dtype, gpu):
    assert masked_off(gpu, "nan", dtype).isnan().all()
    assert (masked_off(gpu, "zero", dtype) == 0).all()
    assert (masked_off(gpu, "largest", dtype) == LARGEST[dtype]).all()
    assert (masked_off(gpu, "smallest", dtype) == -LARGEST[dtype]).all()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int8])
def test_masked_off_integers_read_as_chosen(dtype, gpu):
    assert (masked_off(gpu, "nan", dtype) == LARGEST[dtype]).all()
    assert (masked_off(gpu, "zero", dtype) == 0).all()
    assert (masked_off(gpu, "largest", dtype) == LARGEST[dtype]).all()
    assert (masked_off(gpu, "smallest", dtype) == -LARGEST[dtype] - 1).all()


def test_masked_off_booleans_read_as_both(gpu):
    assert {bool(masked_off(gpu, poison, torch.bool)[0]) for poison in ("nan", "zero")} == {True, False}


def test_lanes_with_an_other_are_not_poisoned(gpu):
    for poison in ("nan", "zero", "largest", "smallest"):
        y = torch.zeros(8)
        with gpu.record(poison=poison) as session:
            copy_with_other[(1,)](torch.ones(4), y, 4, BLOCK=8)
        assert y.tolist() == [1.0] * 4 + [5.0] * 4
        assert session.launches[0].poisoned_lanes == 0


def test_poisoned_lanes_are_counted(session):
    copy[(1,)](torch.ones(4), torch.zeros(8), 4, BLOCK=8)
    copy[(1,)](torch.ones(8), torch.zeros(8), 8, BLOCK=8)
    assert [launch.poisoned_lanes for launch in session.launches] == [4, 0]


@triton.jit
def sum_of(x_ptr, out_ptr, n, F: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr, F(tl.load(x_ptr + offs, mask=offs < n), offs < n))


@triton.jit
def _sum(x, mask):
    return tl.sum(x)


@triton.jit
def _max(x, mask):
    return tl.max(x)


@triton.jit
def _count_positive(x, mask):
    return tl.sum((x > 0).to(tl.float32))


@triton.jit
def _sum_of_relu(x, mask):
    return tl.sum(tl.maximum(x, 0.0))


@triton.jit
def _sum_of_negative_part(x, mask):
    return tl.sum(tl.where(x < 0, x, 0.0))


@triton.jit
def _guarded(x, mask):
    return tl.sum(tl.where(mask, x, 0.0))


@triton.jit
def _times_mask(x, mask):
    return tl.sum(x * mask.to(tl.float32))


def results(gpu, function):
    """The bytes of the result under each poison."""
    x = torch.tensor([1.0, -2.0, 3.0, 0.5])
    found = set()
    for poison in ("nan", "zero", "largest", "smallest"):
        out = torch.zeros(1)
        with gpu.record(poison=poison):
            sum_of[(1,)](x, out, 4, F=function, BLOCK=8)
        found.add(out.view(torch.int32).item())
    return found


@pytest.mark.parametrize("function", [_sum, _max, _count_positive, _sum_of_relu, _sum_of_negative_part, _times_mask])
def test_a_result_that_depends_on_undefined_lanes_changes_with_the_poison(function, gpu):
    assert len(results(gpu, function)) > 1


def test_a_result_that_does_not_stays_the_same(gpu):
    assert len(results(gpu, _guarded)) == 1


@triton.jit
def copy_two(x_ptr, z_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    z = tl.load(z_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x)
    tl.store(y_ptr + BLOCK + offs, z)


def test_poison_may_be_given_to_one_load_only(gpu, place):
    file, line, column = place(copy_two, "tl.load(z_ptr")
    y = torch.zeros(16)
    with gpu.record(poison="zero", poison_only=frozenset([(file, line, column)])):
        copy_two[(1,)](torch.ones(4), torch.ones(4), y, 4, BLOCK=8)
    assert y[4:8].isnan().all()
    assert y[12:].tolist() == [0.0] * 4


@triton.jit
def copy_flat(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, tl.load(x_ptr + offs))


def test_gaps_are_poisoned_and_counted_too(gpu):
    x, y = torch.ones(2, 8)[:, :4], torch.zeros(12)
    with gpu.record(poison="largest") as session:
        copy_flat[(1,)](x, y[:8], BLOCK=8)
    assert y[4:8].tolist() == [LARGEST[torch.float32]] * 4
    assert session.launches[0].poisoned_lanes == 4


@triton.jit
def half_masked(x_ptr, y_ptr, n):
    pid = tl.program_id(0)
    if pid < n:
        tl.store(y_ptr + pid, tl.load(x_ptr + pid))


def test_programs_that_skip_a_load_draw_no_poison(session):
    half_masked[(8,)](torch.ones(4), torch.zeros(8), 4)
    assert session.launches[0].poisoned_lanes == 0
    assert session.launches[0].violations == []


def test_no_warning_escapes_from_arithmetic_on_poison(gpu):
    x, y = torch.ones(4), torch.zeros(8)
    for poison in ("nan", "largest", "smallest"):
        with gpu.record(poison=poison):
            square[(1,)](x, y, 4, BLOCK=8)


@triton.jit
def square(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, tl.exp(x * x) / (x - x))
