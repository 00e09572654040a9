"""Eager PyTorch costs what was measured where it was measured, and says so where it was not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from checker.loading import load_module
from checker.vgpu.aten import Cost, Eager, cost
from checker.vgpu.eager_table import MEASURED
from checker.vgpu.specs import chip

ROOT = Path(__file__).parents[1]
H200 = chip("h200")


def meta(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def of(function: object, *args: torch.Tensor) -> Cost:
    assert callable(function)
    return cost(function, *args, spec=H200)


def test_the_table_is_the_measurement() -> None:
    script = load_module(ROOT / "scripts" / "write_eager_table.py")
    assert script.TARGET.read_text(encoding="utf-8") == script.text()


def test_each_measured_shape_costs_what_it_took() -> None:
    eager = json.loads((ROOT / "docs" / "measured" / "h200.json").read_text(encoding="utf-8"))["eager"]
    x, half, row = meta(8192, 4096), meta(4096, 4096, dtype=torch.float16), meta(4096)
    for name, function, args in [
        ("softmax | 8192x4096 f32", lambda x: torch.softmax(x, 1), (x,)),
        ("sum | 8192x4096 f32", lambda x: x.sum(1), (x,)),
        ("max | 8192x4096 f32", lambda x: x.max(1), (x,)),
        ("sub | 8192x4096 f32, a column", lambda x: x - x[:, :1], (x,)),
        ("add | 8192x4096 f32, a row", torch.add, (x, row)),
        ("layer_norm | 8192x4096 f32", lambda x: functional.layer_norm(x, (4096,)), (x,)),
        ("rms_norm | 8192x4096 f32", lambda x: functional.rms_norm(x, (4096,)), (x,)),
        ("clone transposed | 8192x8192 f32", lambda x: x.t().contiguous(), (meta(8192, 8192),)),
        ("mm | 4096x4096x4096 f16", torch.mm, (half, half)),
        ("exp | 2^24 f32", torch.exp, (meta(1 << 24),)),
        ("fill_ | 2^28 f32", lambda x: x.zero_(), (meta(1 << 28),)),
    ]:
        found = of(function, *args)
        assert [operation.measured for operation in found.operations] == [True], name
        assert found.us == pytest.approx(eager[name]["us"], rel=0.05), name


@pytest.mark.parametrize(
    "function",
    [
        lambda x: functional.rms_norm(x, (1024,)),
        lambda x: functional.layer_norm(x, (1024,)),
        lambda x: torch.softmax(x, dim=-1),
        functional.gelu,
        functional.silu,
        lambda x: torch.addmm(x[0], x, x),
    ],
)
def test_what_is_one_kernel_on_cuda_is_one_here(function: object) -> None:
    assert len(of(function, meta(1024, 1024)).operations) == 1


def test_views_and_allocations_cost_nothing() -> None:
    assert of(lambda x: torch.empty_like(x).t()[:3].unsqueeze(0), meta(64, 64)).operations == ()


def test_a_chain_is_the_sum_of_its_operations_and_bytes() -> None:
    def silu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return functional.silu(gate) * up

    found = of(silu_mul, meta(1 << 24), meta(1 << 24))
    assert len(found.operations) == 2
    assert found.bytes == 5 * 4 * (1 << 24)
    assert found.us == pytest.approx(sum(operation.us for operation in found.operations))


def test_torch_transposes_much_slower_than_it_copies() -> None:
    x = meta(8192, 8192)
    assert of(lambda x: x.t().contiguous(), x).us > 3 * of(torch.clone, x).us


def test_between_measured_shapes_time_grows_with_the_work() -> None:
    times = [of(torch.exp, meta(1 << power)).us for power in range(18, 30)]
    assert times == sorted(times)
    products = [of(torch.mm, *(2 * [meta(n, n, dtype=torch.float16)])).us for n in (1024, 1536, 2048, 3072, 4096)]
    assert products == sorted(products)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (torch.sigmoid, (meta(1 << 20),)),
        (lambda x: torch.softmax(x, 0), (meta(8192, 8192),)),
        (torch.add, (meta(4096, 2048).t(), meta(2048, 4096))),
        (torch.exp, (meta(1 << 20, dtype=torch.float64),)),
        (lambda x: x.sum(0), (meta(8192, 8192),)),
    ],
)
def test_without_a_measurement_it_is_an_estimate(function: object, args: tuple[torch.Tensor, ...]) -> None:
    found = of(function, *args)
    assert not found.measured
    assert found.us > 0


def test_another_chip_has_no_measurement() -> None:
    found = cost(torch.clone, meta(1 << 24), spec=chip("a100"))
    assert not found.measured
    assert found.us > cost(torch.clone, meta(1 << 24), spec=H200).us


def test_no_element_is_touched() -> None:
    # Eight terabytes: only a shape.
    huge = torch.empty(1, device="meta").expand(1 << 41)
    assert of(torch.clone, huge).operations


def test_operations_are_told_as_they_run_and_really_run() -> None:
    told: list[str] = []
    with Eager(H200, lambda operation: told.append(operation.name)) as eager:
        x = torch.ones(8)
        result = x + x
    assert told == ["ones", "add"]
    assert [operation.layout for operation in eager.operations] == ["contiguous", "contiguous"]
    assert result.tolist() == [2.0] * 8


def test_every_row_of_the_table_is_positive_and_known() -> None:
    assert {layout for _, layout, *_ in MEASURED} == {"contiguous", "cast", "transposed", "a row", "a column"}
    assert all(us > 0 for *_, us in MEASURED)


def test_common_operations_need_none_of_torchs_own_shape_machinery() -> None:
    """Its meta kernels import sympy, which takes longer than a check."""
    code = """if True:
        import sys, torch
        from checker.vgpu.aten import cost
        from checker.vgpu.specs import chip
        def chain(x):
            e = torch.exp(x - x.max(1, keepdim=True).values)
            y = torch.softmax(e / e.sum(1, keepdim=True) @ x, 1) + x[0]
            return torch.where(y > 0, y, 0.1 * y) * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)
        x = torch.empty(64, 64, device="meta")
        assert len(cost(chain, x, spec=chip("h200")).operations) == 16
        assert "sympy" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_shapes_worked_out_here_are_torchs_own() -> None:
    def results(x: torch.Tensor) -> list[torch.Tensor]:
        row, column = x[0], x[:, :1]
        found = [x + row, x - column, x / 2, x.exp(), x.softmax(1), x.sum(1), x.sum(0, keepdim=True), x.amax(1)]
        found += [
            x.mean(-1, keepdim=True),
            *x.max(1),
            *x.max(0, keepdim=True),
            x @ x.t(),
            torch.addmm(x[0, :1], x, x.t()),
        ]
        found += [x.pow(2), x**0.5, functional.leaky_relu(x), x > 0, x == row, torch.where(x > 0, x, row)]
        return [*found, functional.silu(x), torch.rsqrt(x), torch.maximum(x, row)]

    def collect(x: torch.Tensor) -> None:
        seen[:] = results(x)

    seen: list[torch.Tensor] = []
    of(collect, meta(6, 5, dtype=torch.float16))
    real = results(torch.ones(6, 5, dtype=torch.float16))
    assert [(t.shape, t.dtype, t.stride()) for t in seen] == [(t.shape, t.dtype, t.stride()) for t in real]
