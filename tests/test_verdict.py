"""From records to a verdict: which stage is red, which findings are one, what never ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from checker.findings import Finding
from checker.verdict import Report, conclude

Record = dict[str, Any]
DEVICE = {"kind": "virtual", "name": "NVIDIA H200", "target": "sm_90"}


def start(test: str, stage: str = "values", case: str | None = None) -> Record:
    return {"kind": "start", "test": test, "name": f"says {test}", "stage": stage, "case": case}


def end(test: str, outcome: str = "passed", reason: str = "") -> Record:
    return {"kind": "end", "test": test, "outcome": outcome, "reason": reason, "seconds": 0.1}


def found(test: str | None, code: str, **place: Any) -> Record:
    return {"kind": "finding", "test": test, "finding": Finding(code, "what", "where", **place).to_dict()}


def case(name: str, *findings: Record, stage: str = "values") -> Iterator[Record]:
    yield start(name, stage, name)
    yield from findings
    yield end(name, "failed" if findings else "passed")


def conclusion(*records: Record, done: bool = True, ended: Finding | None = None) -> Report:
    everything = [*records, {"kind": "done"}] if done else list(records)
    return conclude(everything, kata="01_x", file="k.py", seed=1, device=DEVICE, ended=ended)


def statuses(report: Report) -> dict[str, str]:
    return {stage.name: stage.status for stage in report.stages}


def reasons(report: Report) -> dict[str, str]:
    return {stage.name: stage.reason for stage in report.stages}


def test_all_green_passes() -> None:
    report = conclusion(
        *case("n=1"), *case("n=2"), *case("large", stage="numerics"),
        start("predict", "predictions"), end("predict", reason="6 of 6 right"),
    )  # fmt: skip
    assert report.passed
    assert report.findings == ()
    assert statuses(report) == {
        "source": "passed", "compile": "passed", "memory": "passed", "values": "passed", "numerics": "passed",
        "predictions": "passed", "fairness": "not_run", "speed": "not_run",
    }  # fmt: skip
    assert reasons(report)["values"] == "2 cases"
    assert reasons(report)["numerics"] == "1 case"
    assert reasons(report)["predictions"] == "6 of 6 right"
    assert reasons(report)["speed"] == "this kata asks nothing here"
    assert (report.cases_green, report.cases_total, report.smallest_failing) == (3, 3, None)


def test_a_red_stage_stops_the_later_ones() -> None:
    report = conclusion(*case("n=1"), *case("n=257", found("n=257", "K402", file="k.py", line=9)))
    assert not report.passed
    assert statuses(report)["memory"] == "failed"
    later = ("values", "numerics", "predictions", "fairness", "speed")
    assert [reasons(report)[name] for name in later] == ["stopped by memory"] * len(later)
    assert statuses(report)["compile"] == "passed"


def test_the_earliest_red_stage_is_shown_whichever_case_met_it() -> None:
    report = conclusion(*case("n=1", found("n=1", "K601")), *case("n=257", found("n=257", "K402", file="k.py", line=9)))
    assert [finding.code for finding in report.findings] == ["K402"]
    assert [finding.code for finding in report.later] == ["K601"]


def test_one_root_cause_is_one_finding_and_names_its_other_cases() -> None:
    names = ["n=257", "n=300", "n=400", "n=500", "n=600"]
    report = conclusion(
        *(record for name in names for record in case(name, found(name, "K402", file="k.py", line=9, case=name)))
    )
    (finding,) = report.findings
    assert finding.case == "n=257"
    assert finding.details == ("also in 4 other cases: n=300; n=400; n=500; and 1 more",)


def test_what_a_line_shows_first_is_its_root() -> None:
    report = conclusion(
        *case("64 x 64", found("64 x 64", "K601", file="k.py", line=52, case="64 x 64")),
        *case("64 x 33", found("64 x 33", "K402", file="k.py", line=52, case="64 x 33")),
        *case("5 x 7", found("5 x 7", "K501", file="k.py", line=52, case="5 x 7")),
    )
    (finding,) = report.findings
    assert (finding.code, finding.case) == ("K601", "64 x 64")
    assert finding.details == ("also in 2 other cases: 64 x 33; 5 x 7",)


def test_different_lines_are_different_causes() -> None:
    records = case("n=3", found("n=3", "K401", file="k.py", line=8), found("n=3", "K402", file="k.py", line=9))
    assert [finding.line for finding in conclusion(*records).findings] == [8, 9]


def test_wrong_predictions_do_not_stop_speed_but_do_not_pass() -> None:
    report = conclusion(
        *case("n=1"), start("p", "predictions"), found("p", "K651"), end("p", "failed", "4 of 6 right"),
        start("fast", "speed"), end("fast"),
    )  # fmt: skip
    assert not report.passed
    assert statuses(report)["speed"] == "passed"
    assert reasons(report)["predictions"] == "4 of 6 right"


def test_a_source_finding_needs_no_test() -> None:
    report = conclusion(found(None, "K101", file="k.py", line=1))
    assert statuses(report)["source"] == "failed"
    assert reasons(report)["compile"] == "stopped by source"


def test_a_failure_that_names_no_reason_is_the_checkers_own() -> None:
    report = conclusion(start("n=1", case="n=1"), end("n=1", "failed", "AssertionError"))
    (finding,) = report.findings
    assert finding.code == "K007"
    assert "AssertionError" in finding.message


def test_no_test_at_all_is_no_pass() -> None:
    report = conclusion()
    assert not report.passed
    assert report.findings[0].code == "K007"


def test_records_that_stop_are_a_crash_in_the_running_case() -> None:
    report = conclusion(*case("n=1"), start("huge", "numerics", "huge"), done=False)
    (finding,) = report.findings
    assert (finding.code, finding.case, finding.stage) == ("K003", "huge", "numerics")
    assert statuses(report)["values"] == "passed"


def test_the_runner_knows_better_why_it_stopped() -> None:
    slow = Finding("K002", "it took 10 s", "look at the loop")
    report = conclusion(*case("n=1"), start("n=9", "values", "n=9"), done=False, ended=slow)
    assert [finding.code for finding in report.findings] == ["K002"]
    assert report.findings[0].case == "n=9"
    assert not report.passed


def test_a_crash_after_a_finding_does_not_hide_it() -> None:
    report = conclusion(start("n=1", case="n=1"), found("n=1", "K402"), done=False)
    assert {finding.code for finding in report.findings + report.later} == {"K402", "K003"}
    assert report.findings[0].code == "K402"


def test_cases_that_were_collected_but_never_reached_count() -> None:
    collected = {"kind": "collected", "tests": [start(f"n={n}", case=f"n={n}") for n in (1, 2, 3)]}
    report = conclusion(collected, *case("n=1"), start("n=2", case="n=2"), done=False)
    assert (report.cases_green, report.cases_total) == (1, 3)


def test_skipped_is_never_passed() -> None:
    report = conclusion(*case("n=1"), {"kind": "skip_stage", "stage": "numerics", "reason": "--quick"})
    assert statuses(report)["numerics"] == "skipped"
    assert reasons(report)["numerics"] == "--quick"
    skipped = conclusion(*case("n=1"), start("fast", "speed"), end("fast", "skipped", "no clock yet"))
    assert (statuses(skipped)["speed"], reasons(skipped)["speed"]) == ("skipped", "no clock yet")


def test_a_check_in_which_nothing_was_judged_is_no_pass() -> None:
    assert not conclusion(start("n=1"), end("n=1", "skipped", "no")).passed
    assert not conclusion(*case("n=1"), start("n=2"), end("n=2", "skipped", "no")).passed
    assert conclusion(*case("n=1"), start("none"), end("none", "skipped", "got empty parameter set")).passed


@pytest.mark.parametrize(
    ("names", "smallest"),
    [
        (["n=1000", "n=257"], "n=257"),
        (["64x64 float16", "33x5 float32"], "33x5 float32"),
        (["all -inf row", "n=5 bf16"], "n=5 bf16"),
        (["n=257, slope -0.5", "n=64, slope 2"], "n=64, slope 2"),
    ],
)
def test_the_smallest_failing_case_is_named(names: list[str], smallest: str) -> None:
    report = conclusion(*(record for name in names for record in case(name, found(name, "K601", case=name))))
    assert report.smallest_failing == smallest


def test_the_session_has_the_last_word_on_seed_device_and_versions() -> None:
    session = {"kind": "session", "kata": "01_x", "file": "k.py", "seed": 99, "device": {"kind": "cuda", "name": "L4"},
               "versions": {"triton": "3.9.0"}, "nonce": "x"}  # fmt: skip
    report = conclusion(session, *case("n=1"))
    assert (report.seed, report.device["name"], report.versions) == (99, "L4", {"triton": "3.9.0"})
