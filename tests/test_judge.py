"""What the judge says about a function with several results: which of them is wrong, and the line that stored it."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
import torch

from checker.cases import Case
from checker.findings import Finding
from checker.judge import Subject, check_case
from checker.loading import load_kernel

FILE = """
import torch
import triton
import triton.language as tl


@triton.jit
def both_kernel(x_ptr, s_ptr, d_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs)
    tl.store(s_ptr + offs, {square})
    tl.store(d_ptr + offs, {double}{mask})


def both(x):
    s, d = torch.empty_like(x), torch.empty_like(x)
    both_kernel[(1,)](x, s, d, BLOCK_SIZE=16)
    return s, d
"""


def judged(tmp_path: Path, square: str = "x * x", double: str = "x + x", mask: str = "") -> list[Finding]:
    spec = ModuleType("spec")
    vars(spec).update(
        make_inputs=lambda case, *, seed, device: (torch.arange(16.0) + 3,),
        reference=lambda x: (x.double() ** 2, x.double() * 2),
        torch_op=lambda x: (x * x, x * 2),
    )
    file = tmp_path / "kernel.py"
    file.write_text(FILE.format(square=square, double=double, mask=mask))
    module = load_kernel(file)
    return check_case(Subject(module, spec, module.both, file, "h200"), Case("16 numbers"), seed=1)


def test_both_right(tmp_path: Path) -> None:
    assert judged(tmp_path) == []


@pytest.mark.parametrize(
    ("wrong", "number", "line", "element"),
    [
        ({"square": "x"}, 1, 11, "element 0 is 3; it must be 9"),
        ({"double": "x"}, 2, 12, "element 0 is 3; it must be 6"),
    ],
)
def test_a_wrong_result_is_named_with_its_own_store(
    tmp_path: Path, wrong: dict[str, str], number: int, line: int, element: str
) -> None:
    (found,) = judged(tmp_path, **wrong)
    assert found.code == "K601"
    assert found.message.startswith(f"result {number} of 2: {element}")
    assert found.line == line


def test_an_unwritten_result_is_named(tmp_path: Path) -> None:
    (found,) = judged(tmp_path, mask=", mask=offs < 0")
    assert found.code == "K404"
    assert found.message.startswith("result 2 of 2: no element of the result was written")


INTO = """
import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, BLOCK_SIZE: tl.constexpr):
    offs = tl.arange(0, BLOCK_SIZE)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) * 2)


def double(x, out):
    result = {result}
    double_kernel[(1,)](x, result, BLOCK_SIZE=16)
    return {returned}
"""


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(
    ("result", "returned", "codes"),
    [
        ("out", "out", []),
        ("torch.empty_like(x)", "result", ["K601"]),
        ("out", "out.clone()", ["K601"]),
    ],
)
def test_a_tensor_handed_in_for_the_result_is_the_result(
    tmp_path: Path, in_place: bool, result: str, returned: str, codes: list[str]
) -> None:
    def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.arange(16.0) + 3
        return x, (x if in_place else torch.zeros(16))

    spec = ModuleType("spec")
    vars(spec).update(make_inputs=make_inputs, reference=lambda x, out: x.double() * 2, INOUT=(1,), RESULT=1)
    file = tmp_path / "kernel.py"
    file.write_text(INTO.format(result=result, returned=returned))
    module = load_kernel(file)
    found = check_case(Subject(module, spec, module.double, file, "h200"), Case("16 numbers"), seed=1)
    assert [finding.code for finding in found] == codes


@pytest.mark.parametrize(("promised", "codes"), [(True, ["K602"]), (False, [])])
def test_a_result_that_must_be_contiguous(tmp_path: Path, promised: bool, codes: list[str]) -> None:
    spec = ModuleType("spec")
    vars(spec).update(
        make_inputs=lambda case, *, seed, device: ((torch.arange(16.0) + 3).view(2, 8).t(),),
        reference=lambda x: x.double() * 2,
        CONTIGUOUS=promised,
    )
    file = tmp_path / "kernel.py"
    kernel = INTO.format(result="torch.empty_like(x)", returned="result").replace("double(x, out)", "double(x)")
    file.write_text(kernel)
    module = load_kernel(file)
    found = check_case(Subject(module, spec, module.double, file, "h200"), Case("a transposed view"), seed=1)
    assert [finding.code for finding in found] == codes
