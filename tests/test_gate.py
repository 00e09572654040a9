"""The gate: skeletons fail as they should, solutions and variants pass, mutants are refused for the right reason.

Everything goes the way of `kata check`, in children of one warm process, on one fixed seed; the checks run beside the
other tests (`gate_process.py`), and these tests, which run last, collect the reports. A mutant's first line names
the code it must be refused with, by Triton version where versions differ, and `passes` where a version takes it:

    # expect: K111 [<3.9], K402 [>=3.9]

Its second line says what is wrong; a third one, `# lacks: L4.2`, may say that it lacks this outcome and nothing else,
which makes it one of those in docs/outcomes.md. Lines that end in `# here` are those its finding may point at. What
ties a skeleton to its solution, and hints to TODOs, is text alone and stands in `test_katas.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
from gate_process import RUNNING

from checker import report as reports
from checker.catalog import Kata, load
from checker.findings import CATALOGUE
from checker.verdict import Report

pytest.importorskip("triton", reason="Triton has wheels for Linux only")

ROOT = Path(__file__).parents[1]
KATAS = load(ROOT)

# Small enough for every run, and for the oldest Triton: at least one wrong kernel of each stage of the check, and right
# ones that lean on what changes between versions (descriptors, tuning, atomics, `and` on blocks).
SUBSET = {
    "01_vector_copy": (
        "mutants/store_mask_missing",
        "mutants/pointers_assigned",
        "mutants/constexpr_forgotten",
        "mutants/meta_argument_misspelt",
        "mutants/device_written_down",
        "mutants/method_not_called",
        "mutants/prediction_raises",
        "variants/last_block_shifted_back",
        "variants/autotuned",
        "variants/descriptors_made_by_the_host",
    ),
    "05_vector_add": (
        "mutants/and_without_parentheses",
        "mutants/chained_comparison",
        "mutants/strides_ignored",
        "mutants/atomic_add_on_empty",
        "mutants/nan_swallowed",
        "variants/constexpr_global_and_and",
        "variants/descriptors_made_by_the_kernel",
        "variants/heuristics",
    ),
    "13_transpose": (
        "mutants/offsets_in_int32",
        "mutants/lanes_share_an_element",
        "mutants/second_axis_too_long",
        "variants/two_dimensional_grid",
    ),
    "16_softmax": (
        "mutants/other_missing",
        "mutants/other_is_zero_for_the_maximum",
        "mutants/exp_of_float16",
        "mutants/sum_read_before_it_is_complete",
        "variants/online",
    ),
    "21_matmul": (
        "mutants/k_tail_unmasked",
        "mutants/accumulator_in_float16",
        "mutants/step_of_eight",
        "mutants/false_contiguity",
        "variants/grouped_and_wrapped",
    ),
}

# Mutants that do not get their code yet. An entry goes as soon as the fault is mended: a pass here is a failure.
OPEN: dict[str, str] = {}


def triton_version() -> tuple[int, ...]:
    """Major and minor, (3, 9); without importing Triton, because this runs while tests are collected."""
    try:
        return tuple(int(part) for part in version("triton").split(".")[:2])
    except PackageNotFoundError:
        return (0, 0)


def expected_code(text: str) -> str:
    """The code that a mutant's first line names for this Triton, or "passes"."""
    first = text.partition("\n")[0]
    assert first.startswith("# expect:"), f"the first line is {first!r}"
    for part in first.removeprefix("# expect:").split(","):
        named = re.fullmatch(r"\s*(K\d{3}|passes)(?: \[(<|>=)(\d+)\.(\d+)\])?\s*", part)
        assert named is not None, f"{part!r} is no expectation"
        code, relation, *bound = named.groups()
        if relation is None or (triton_version() < tuple(map(int, bound))) == (relation == "<"):
            return code
    raise AssertionError(f"no expectation for Triton {triton_version()} in {first!r}")


def files(rung: Kata, kind: str) -> list[Path]:
    """The mutants or variants of a kata. A second solution beside the first is a variant too."""
    second = sorted((ROOT / "solutions").glob(f"{rung.id}_*.py")) if kind == "variants" else []
    return sorted((ROOT / "tests" / kind / rung.id).glob("*.py")) + second


def each(kind: str) -> Iterator[Any]:
    """A parameter for each file: the subset marked `oldest`, the rest `slow`, what is open as a strict xfail."""
    for rung in KATAS:
        for path in files(rung, kind):
            known = f"{kind}/{path.stem}" in SUBSET.get(rung.id, ())
            marks = [pytest.mark.oldest if known else pytest.mark.slow]
            reason = OPEN.get(f"{rung.id}/{path.stem}")
            marks += [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
            yield pytest.param(rung, path, id=f"{rung.number:02}-{path.stem}", marks=marks)


def every_rung() -> Iterator[Any]:
    for rung in KATAS:
        yield pytest.param(rung, id=rung.id, marks=[pytest.mark.oldest] if rung.id in SUBSET else [pytest.mark.slow])


Check = Callable[[Kata, Path], Report]


@pytest.fixture
def check(request: pytest.FixtureRequest) -> Check:
    """Waits for the check of a file; all that the selected tests ask for were started when they were collected."""
    process = request.config.stash[RUNNING]
    return lambda rung, path: process.report(path)


@pytest.mark.parametrize("rung", list(every_rung()))
def test_a_skeleton_fails_by_design(rung: Kata, check: Check) -> None:
    """At the stage its kata.toml says, by a fault of its own and not the checker's, with each TODO named as open."""
    report = check(rung, rung.skeleton)
    assert not report.passed
    assert report.red is not None
    assert report.red.name == rung.fails_at, report.findings
    assert not {finding.code for finding in report.findings} & {"K002", "K003", "K006", "K007", "K008"}
    if rung.start == "blank":
        assert [(todo.number, todo.text, todo.untouched) for todo in report.todos] == [
            (todo.number, todo.text, True) for todo in rung.todos
        ]
    assert "TODO" in reports.render(report, reports.Look(color=False))


@pytest.mark.parametrize("rung", list(every_rung()))
def test_a_solution_passes(rung: Kata, check: Check) -> None:
    report = check(rung, rung.solution)
    assert report.passed, report.findings
    assert report.cases_green == report.cases_total > 0


@pytest.mark.parametrize(("rung", "path"), list(each("mutants")))
def test_a_mutant_is_refused_for_its_reason(rung: Kata, path: Path, check: Check) -> None:
    text = path.read_text()
    wanted = expected_code(text)
    report = check(rung, path)
    if wanted == "passes":
        assert report.passed, report.findings
        return
    assert not report.passed
    first = report.findings[0]
    assert first.code == wanted, report.findings
    assert first.file in (None, str(path)), "the finding names another file"
    marked = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here")]
    assert not marked or first.line in marked, first


@pytest.mark.parametrize(("rung", "path"), list(each("variants")))
def test_a_variant_passes(rung: Kata, path: Path, check: Check) -> None:
    report = check(rung, path)
    assert report.passed, report.findings


@pytest.mark.parametrize("rung", KATAS, ids=lambda rung: rung.id)
def test_a_kata_has_mutants_and_variants(rung: Kata) -> None:
    """Eight wrong kernels that say what is wrong with them, three right ones; none is the solution itself."""
    mutants, variants = files(rung, "mutants"), files(rung, "variants")
    assert len(mutants) >= 8
    assert len(variants) >= 3
    solution = rung.solution.read_text()
    for path in mutants:
        text = path.read_text()
        code = expected_code(text)
        assert code == "passes" or code in CATALOGUE, path
        assert re.match(r"# \S.{10,}", text.splitlines()[1]), f"{path}: the second line says what is wrong"
        assert re.sub(r"\A(#.*\n)+", "", text) != solution, path
    assert all(path.read_text() != solution for path in variants)


def test_names_in_the_lists_exist() -> None:
    """A renamed mutant must not fall out of the subset, nor an open fault be forgotten."""
    names = [
        f"{kind}/{rung}/{stem}" for rung, chosen in SUBSET.items() for kind, stem in (c.split("/") for c in chosen)
    ]
    names += [f"mutants/{name}" for name in OPEN]
    assert [name for name in names if not (ROOT / "tests" / f"{name}.py").exists()] == []
