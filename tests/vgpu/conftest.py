"""One virtual GPU for all contract tests, and a fresh session for each."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from checker.vgpu.driver import Session, VirtualGpu


@pytest.fixture(scope="session")
def h200() -> VirtualGpu:
    return VirtualGpu("h200")


@pytest.fixture(autouse=True)
def gpu(h200: VirtualGpu) -> VirtualGpu:
    """The H200, active; a test that needs another chip activates it for itself."""
    return h200.activate()


@pytest.fixture(autouse=True)
def session(gpu: VirtualGpu) -> Iterator[Session]:
    """What the test's launches did, and what the virtual GPU knows of their memory."""
    with gpu.record() as fresh:
        yield fresh


@pytest.fixture
def place() -> Callable[[Any, str], tuple[str, int, int]]:
    """(file, line, column) at which a text stands in the source of a kernel."""

    def find(kernel: Any, text: str) -> tuple[str, int, int]:
        lines, first = inspect.getsourcelines(kernel.fn)
        for number, line in enumerate(lines):
            if text in line:
                return inspect.getsourcefile(kernel.fn) or "", first + number, line.index(text) + 1
        raise AssertionError(f"{text!r} does not stand in {kernel}")

    return find
