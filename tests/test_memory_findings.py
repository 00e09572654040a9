"""What is said about elements that nothing wrote: the words must lead to the cause, be it the grid or the offsets."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from checker import memory_findings  # noqa: E402  # after the skip
from checker.findings import Finding  # noqa: E402
from checker.vgpu.errors import SourceLine  # noqa: E402
from checker.vgpu.trace import Access, LaunchTrace  # noqa: E402

STORE = SourceLine("kernel.py", 30, 5)


def unwritten(grid: int, lanes: int, missing: range) -> Finding:
    """The finding for a launch whose store let `lanes` lanes through and left `missing` of 100 elements."""
    y = torch.empty(100)
    accesses = [Access("store", "y_ptr", STORE, lanes=lanes)] if lanes else []
    launch = LaunchTrace("copy_kernel", (grid, 1, 1), {}, file="kernel.py", line=20, accesses=accesses)
    launch.tensors = {"y_ptr": y}
    return memory_findings.unwritten(list(missing), 100, (100,), [launch], y, "kernel.py", "n=100")


def test_a_grid_too_small() -> None:
    finding = unwritten(3, 96, range(96, 100))
    assert (finding.code, finding.line) == ("K404", 30)
    assert "cover 96 of 100" in finding.message
    assert "cdiv" in finding.advice


def test_a_grid_without_programs() -> None:
    finding = unwritten(0, 0, range(100))
    assert "the grid (0,) has no programs" in finding.message
    assert "cdiv" in finding.advice


def test_programs_that_store_to_the_same_elements() -> None:
    finding = unwritten(4, 128, range(32, 100))
    assert "more than once (128 stores to 32 elements)" in finding.message
    assert "program id" in finding.advice


def test_no_store_at_all() -> None:
    assert "no kernel stores to it" in unwritten(4, 0, range(100)).message


def test_no_launch_at_all() -> None:
    finding = memory_findings.unwritten([0, 1], 2, (2,), [], torch.empty(2), "kernel.py", "K=0")
    assert "no kernel was launched" in finding.message
    assert "torch.empty" in finding.advice
