"""What a learner reads: golden texts, one a kind of verdict. KATA_WRITE_GOLDEN=1 writes them anew, for review."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from checker.findings import Finding
from checker.report import Look, document, documents, render
from checker.verdict import Report, Stage, Todo

GOLDEN = Path(__file__).parent / "golden"
KERNEL = "katas/01_vector_copy/kernel.py"
SOURCE = """\
@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x)
"""
PASSED = Report(
    kata="01_vector_copy",
    file=KERNEL,
    passed=True,
    device={"kind": "virtual", "name": "NVIDIA H200", "target": "sm_90"},
    seed=20260,
    stages=(
        Stage("source", "passed"),
        Stage("compile", "passed"),
        Stage("memory", "passed"),
        Stage("values", "passed", "9 cases"),
        Stage("numerics", "passed", "2 cases"),
        Stage("predictions", "passed", "8 of 8 right"),
        Stage("fairness", "not_run", "comes with the next release"),
        Stage("speed", "not_run", "comes with the next release"),
    ),
    findings=(),
    cases_green=11,
    cases_total=11,
    seconds=2.345,
    versions={"python": "3.11.7", "torch": "2.13.0", "triton": "3.9.0"},
)
STORE = Finding(
    "K402",
    "24 lanes of the store reach past the end of y, which has 1000 elements",
    "mask the store as the load is masked: the last block hangs over the end",
    file=KERNEL,
    line=5,
    column=5,
    case="n=1000",
    launch="copy_kernel[(4,)](n=1000, BLOCK_SIZE=256)",
    details=("program (3,)", "first indices 1000, 1001, 1002 and 21 more"),
)
STOPPED = tuple(
    Stage(name, "not_run", "stopped by memory") for name in ("values", "numerics", "predictions", "fairness", "speed")
)
RED = replace(
    PASSED,
    passed=False,
    stages=(*PASSED.stages[:2], Stage("memory", "failed"), *STOPPED),
    findings=(STORE,),
    later=(Finding("K601", "row 3 differs", "look at the offsets", case="n=64"),),
    cases_green=5,
    cases_total=9,
    smallest_failing="n=257",
    todos=(Todo(2, 5, "store the block", untouched=False),),
    notes=("two programs stored the same values to 24 elements of y",),
)
UNTOUCHED = replace(
    RED,
    findings=(Finding("K404", "none of the 1000 elements of y was written", "store what was loaded", case="n=1000"),),
    later=(),
    cases_green=1,
    smallest_failing="n=1",
    notes=(),
    todos=(Todo(1, 4, "load the block", untouched=True), Todo(2, 5, "store the block", untouched=True)),
)
NEXT = "Next: open katas/01_vector_copy/kernel.py, line 5. `kata hint 01` helps, `kata check 01` checks again."
TEXTS = {
    "passed": (PASSED, Look(), "Next: `kata next` unlocks the next kata."),
    "red": (RED, Look(), NEXT),
    "red_verbose": (RED, Look(verbose=True), NEXT),
    "red_narrow_ascii": (RED, Look(width=60, ascii=True), NEXT),
    "red_colour": (RED, Look(color=True), NEXT),
    "untouched": (UNTOUCHED, Look(), NEXT),
}


def text_of(name: str) -> str:
    report, look, next_step = TEXTS[name]
    return render(report, look, next_step=next_step, sources={KERNEL: SOURCE}) + "\n"


@pytest.mark.parametrize("name", TEXTS)
def test_text_is_as_agreed(name: str) -> None:
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("KATA_WRITE_GOLDEN"):
        golden.write_text(text_of(name), encoding="utf-8")
    assert text_of(name) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["passed", "red"])
def test_document_is_as_agreed(name: str) -> None:
    golden = GOLDEN / f"{name}.json"
    text = json.dumps(document(TEXTS[name][0]), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("KATA_WRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_nothing_is_wider_than_the_terminal() -> None:
    assert max(len(line) for line in text_of("red_narrow_ascii").splitlines() if " | " not in line) <= 60
    assert text_of("red_narrow_ascii").isascii()


def test_the_caret_stands_under_the_column_even_after_tabs() -> None:
    finding = replace(STORE, line=1, column=2)
    text = render(replace(RED, findings=(finding,)), Look(), sources={KERNEL: "\ttl.store(y_ptr, x)\n"})
    code = next(line for line in text.splitlines() if "tl.store" in line)
    caret = next(line for line in text.splitlines() if line.rstrip().endswith("^"))
    assert caret.index("^") == code.index("tl.store")


@pytest.mark.parametrize("line", [0, 6, 99])
def test_a_line_that_is_not_there_is_left_out(line: int) -> None:
    text = render(replace(RED, findings=(replace(STORE, line=line),)), Look(), sources={KERNEL: SOURCE})
    assert f"{KERNEL}:{line}" in text
    assert " | " not in text


def test_a_file_that_cannot_be_read_costs_only_its_line(tmp_path: Path) -> None:
    text = render(replace(RED, findings=(replace(STORE, file=str(tmp_path / "gone.py")),)), Look())
    assert "gone.py:5:5" in text


def test_skipped_is_never_shown_as_passed() -> None:
    report = replace(PASSED, stages=(Stage("numerics", "skipped", "--quick"),))
    assert "– skipped: numerics (--quick)" in render(report, Look())


def test_several_reports_are_one_document() -> None:
    both = documents([PASSED, RED])
    assert both["passed"] is False
    assert [one["passed"] for one in both["katas"]] == [True, False]
