"""A launch on the virtual GPU is written as on a real one, and means the same."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from checker.vgpu.errors import VirtualGpuError


@triton.jit
def scale(x_ptr, y_ptr, n, factor, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask) * factor, mask=mask)


def scaled(grid, x, factor=2.0, **keywords):
    y = torch.empty_like(x)
    scale[grid](x, y, x.numel(), factor, BLOCK_SIZE=64, **keywords)
    return y


def test_a_one_dimensional_grid_covers_a_vector():
    x = torch.randn(1000)
    assert torch.equal(scaled((16,), x), 2 * x)


def test_a_grid_may_be_a_function_of_the_constants():
    x = torch.randn(1000)
    assert torch.equal(scaled(lambda META: (triton.cdiv(1000, META["BLOCK_SIZE"]),), x), 2 * x)


def test_every_argument_may_be_given_by_name(session):
    x, y = torch.randn(100), torch.empty(100)
    scale[(2,)](BLOCK_SIZE=64, factor=3.0, n=100, y_ptr=y, x_ptr=x)
    assert torch.equal(y, 3 * x)
    assert session.launches[0].scalars == {"n": 100, "factor": 3.0, "BLOCK_SIZE": 64}


def test_the_trace_names_the_launch_as_the_source_does(session):
    scaled((16,), torch.randn(1000))
    assert str(session.launches[0]) == "scale[(16,)](n=1000, factor=2.0, BLOCK_SIZE=64)"


def test_the_trace_counts_lanes_and_bytes(session):
    scaled((16,), torch.randn(1000))
    trace = session.launches[0]
    assert (trace.bytes_loaded, trace.bytes_stored) == (4000, 4000)
    assert [access.masked for access in trace.accesses] == [24, 24]


@pytest.mark.parametrize("warps", [1, 2, 8])
def test_the_number_of_warps_reaches_the_trace(warps, session):
    x = torch.randn(100)
    assert torch.equal(scaled((2,), x, num_warps=warps, num_stages=2), 2 * x)
    assert (session.launches[0].num_warps, session.launches[0].num_stages) == (warps, 2)


@triton.jit
def whoami(out_ptr, stride_x, stride_y, stride_z):
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    count = tl.num_programs(0) * 100 + tl.num_programs(1) * 10 + tl.num_programs(2)
    tl.store(out_ptr + x * stride_x + y * stride_y + z * stride_z, count * 1000 + x * 100 + y * 10 + z)


@pytest.mark.parametrize("grid", [(4,), (4, 3), (4, 3, 2), (1, 1, 5)])
def test_programs_know_their_place_in_the_grid(grid):
    x, y, z = (*grid, 1, 1)[:3]
    out = torch.zeros(x, y, z, dtype=torch.int32)
    whoami[grid](out, *out.stride())
    expected = [
        [[(x * 100 + y * 10 + z) * 1000 + i * 100 + j * 10 + k for k in range(z)] for j in range(y)] for i in range(x)
    ]
    assert out.tolist() == expected


@triton.jit
def with_defaults(out_ptr, bias_ptr, first=7, second: tl.constexpr = 3, flag: tl.constexpr = True):
    value = first * second
    if flag:
        value += 1
    if bias_ptr is not None:
        value += tl.load(bias_ptr)
    tl.store(out_ptr, value)


def test_missing_arguments_take_their_defaults():
    out = torch.zeros(1, dtype=torch.int32)
    with_defaults[(1,)](out, None)
    assert out.item() == 22


def test_an_argument_may_be_none_or_a_tensor():
    out = torch.zeros(1, dtype=torch.int32)
    with_defaults[(1,)](out, torch.tensor([1000], dtype=torch.int32), 5, flag=False)
    assert out.item() == 1015


@triton.jit
def keep(out_ptr, value):
    tl.store(out_ptr, value)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, torch.bool),
        (False, torch.bool),
        (1, torch.int32),
        (0, torch.int64),
        (16, torch.int32),
        (-5, torch.int32),
        (-(2**31), torch.int64),
        (2**40 + 1, torch.int64),
        (-(2**40), torch.int64),
        (0.1, torch.float32),
        (-0.0, torch.float32),
        (float("inf"), torch.float32),
        (1.5, torch.float16),
    ],
)
def test_a_scalar_arrives_as_it_was_passed(value, dtype):
    out = torch.zeros(1, dtype=dtype)
    keep[(1,)](out, value)
    assert torch.equal(out, torch.tensor([value], dtype=dtype))


def test_a_scalar_of_2_to_the_63_arrives_as_unsigned():
    out = torch.zeros(1, dtype=torch.uint64)
    keep[(1,)](out, 2**63 + 5)
    assert out.item() == 2**63 + 5


@triton.jit
def sum_of_pair(out_ptr, pair, shape, n_terms: tl.constexpr):
    total = tl.load(pair[0]) * shape[0] + tl.load(pair[1]) * shape[1]
    for i in tl.static_range(n_terms):
        total += i
    tl.store(out_ptr, total)


def test_tuples_carry_tensors_and_scalars():
    a, b, out = torch.tensor([2.0]), torch.tensor([3.0]), torch.zeros(1)
    sum_of_pair[(1,)](out, (a, b), (10, 1), n_terms=4)
    assert out.item() == 2 * 10 + 3 * 1 + 0 + 1 + 2 + 3


@triton.jit
def _square(x):
    return x * x


@triton.jit
def _square_and_cube(x):
    square = _square(x)
    return square, square * x


@triton.jit(noinline=True)
def _collatz(x):
    if x % 2 == 0:
        return x // 2
    return 3 * x + 1


@triton.jit
def with_helpers(x_ptr, y_ptr, F: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    square, cube = _square_and_cube(x)
    tl.store(y_ptr + offs, F(square + cube))


@triton.jit
def with_calls(x_ptr, y_ptr, n):
    x = tl.load(x_ptr + tl.program_id(0))
    for _ in range(n):
        x = _collatz(x)
    tl.store(y_ptr + tl.program_id(0), x)


def test_helpers_are_called_and_may_be_passed_as_constants():
    x = torch.arange(8.0)
    y = torch.empty_like(x)
    with_helpers[(1,)](x, y, F=_square, BLOCK=8)
    assert torch.equal(y, (x**2 + x**3) ** 2)


def test_a_helper_that_is_not_inlined_may_stand_in_a_loop():
    x = torch.tensor([6, 7, 27], dtype=torch.int32)
    y = torch.empty_like(x)
    with_calls[(3,)](x, y, 5)
    assert y.tolist() == [8, 52, 31]


def test_an_empty_grid_runs_nothing(session):
    scale[(0,)](torch.randn(1), torch.empty(1), 0, 1.0, BLOCK_SIZE=64)
    assert session.launches[0].programs == 0
    assert session.launches[0].programs_run == 0


def test_an_empty_tensor_is_a_legal_argument(session):
    x = torch.empty(0)
    scale[(1,)](x, torch.empty(0), 0, 2.0, BLOCK_SIZE=64)
    assert session.launches[0].violations == []


@pytest.mark.parametrize(("grid", "axis"), [((2**31,), 0), ((1, 65536), 1), ((1, 1, 70000), 2)])
def test_a_grid_beyond_the_chip_is_refused(grid, axis):
    with pytest.raises(VirtualGpuError, match=f"grid axis {axis}") as caught:
        keep[grid](torch.zeros(1), 1.0)
    assert caught.value.code == "K306"


def test_a_grid_of_floats_is_refused_with_the_remedy():
    with pytest.raises(VirtualGpuError) as caught:
        keep[(4 / 2,)](torch.zeros(1), 1.0)
    assert caught.value.code == "K301"
    assert "triton.cdiv" in caught.value.advice


def test_a_tensor_on_another_device_is_refused():
    with pytest.raises(VirtualGpuError, match="out_ptr is on device meta") as caught:
        keep[(1,)](torch.zeros(1, device="meta"), 1.0)
    assert caught.value.code == "K305"


def test_a_real_number_where_a_tensor_belongs_does_not_compile():
    with pytest.raises(triton.CompilationError):
        keep[(1,)](3.0, 1.0)
