"""Probes: what a kata tries on the learner's module as a whole, where the lesson is on the host."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny

from checker import runner
from checker.verdict import Report

pytest.importorskip("triton", reason="Triton has wheels for Linux only")

SPEC = '''
"""A protocol is to refuse the kernel that is wrong, and to take the right one."""
import torch
from checker.cases import Fault, Probe

CASES = []


def right(x):
    return x + 1


def wrong(x):
    return x + 2


def accepts(module, lab):
    try:
        module.add_one(right)
    except AssertionError:
        return Fault("K662", "it refuses the right one", "compare less strictly")


def refuses(module, lab):
    try:
        module.add_one(wrong)
    except AssertionError:
        return None
    return Fault("K661", "it takes the wrong one", "compare at all", line=3)


def probes(draw):
    return [Probe("the right one", accepts), Probe("the wrong one", refuses)]


def questions(draw):
    return []
'''
TESTS = '''
"""Right means: it tells right from wrong."""


def test_tells_right_from_wrong(kata, probe):
    kata.check_probe(probe)
'''


def check(root: Path, body: str) -> Report:
    text = f"import torch\n\ndef add_one(x):\n    {body}\n"
    kata = tiny.make(root, spec=SPEC, test_correctness=TESTS, skeleton=text)
    toml = kata.folder / "kata.toml"
    toml.write_text(toml.read_text().replace('start = "blank"', 'start = "blank"\nfairness = false'))
    return runner.check(kata, root=root, file=kata.skeleton, seed=1)


def test_a_protocol_that_tells_right_from_wrong_passes(tmp_path: Path) -> None:
    report = check(tmp_path, "assert x(torch.ones(1)) == 2")
    assert report.passed, report.findings
    assert (report.cases_green, report.cases_total) == (2, 2)


@pytest.mark.parametrize(
    ("body", "code", "case", "line"),
    [
        ("x(torch.ones(1))", "K661", "the wrong one", 3),
        ("assert False", "K662", "the right one", 3),
        ("return torch.ones(3) + torch.ones(2)", "K308", "the right one", 4),
    ],
)
def test_a_fault_is_a_finding_of_its_case(tmp_path: Path, body: str, code: str, case: str, line: int) -> None:
    report = check(tmp_path, body)
    first = report.findings[0]
    assert (first.code, first.line) == (code, line), report.findings
    assert first.case == case
    assert report.red is not None
