"""The catalogue is complete and teaches; a finding survives JSON."""

from __future__ import annotations

import ast
import json

import pytest

from checker.findings import CATALOGUE, FAMILIES, STAGES, Diagnosis, Finding

# Codes whose mistake is no piece of code, or is the compiler's or the checker's own words.
WITHOUT_EXAMPLE = {"K001", "K003", "K006", "K007", "K008", "K200", "K653"}


@pytest.mark.parametrize("diagnosis", CATALOGUE.values(), ids=lambda one: one.code)
def test_diagnosis_is_complete(diagnosis: Diagnosis) -> None:
    assert diagnosis.code[:2] in FAMILIES
    assert diagnosis.stage in STAGES
    assert len(diagnosis.explanation.split()) >= 20
    assert diagnosis.title == diagnosis.title.rstrip(".")
    assert bool(diagnosis.example) == bool(diagnosis.mend) == (diagnosis.code not in WITHOUT_EXAMPLE)
    assert diagnosis.example != diagnosis.mend or not diagnosis.example


@pytest.mark.parametrize("diagnosis", CATALOGUE.values(), ids=lambda one: one.code)
def test_examples_are_python(diagnosis: Diagnosis) -> None:
    # A `return` outside a function parses, which is all that a fragment needs.
    ast.parse(diagnosis.mend)
    if diagnosis.code == "K101":
        with pytest.raises(SyntaxError):
            ast.parse(diagnosis.example)
    else:
        ast.parse(diagnosis.example)


def test_codes_are_in_order_and_families_name_them_all() -> None:
    assert list(CATALOGUE) == sorted(CATALOGUE)


def test_finding_survives_json() -> None:
    finding = Finding(
        "K002", "it took 10 s", "look at the loop", file="k.py", line=3, column=5, case="n=1", launch="k[(1,)]()",
        details=("program (3,)",), stage_override="numerics",
    )  # fmt: skip
    assert Finding.from_dict(json.loads(json.dumps(finding.to_dict()))) == finding
    assert finding.stage == "numerics"
    plain = Finding("K402", "m", "a")
    assert Finding.from_dict(plain.to_dict()) == plain


def test_an_unknown_code_or_stage_is_refused() -> None:
    with pytest.raises(ValueError, match="K999"):
        Finding("K999", "m", "a")
    with pytest.raises(ValueError, match="nowhere"):
        Finding("K402", "m", "a", stage_override="nowhere")
