"""Plain pytest on a kata says what `kata check` says; a session without katas does not notice the plugin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny

import checker
from checker import runner
from checker.verdict import Report
from checker.warm import Warm

pytest.importorskip("triton", reason="Triton has wheels for Linux only")

BROKEN = "raise RuntimeError('a broken spec')"
HERE = str(Path(checker.__file__).resolve().parent.parent)


def plain(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Plain pytest in a fresh process, with the plugin and none of this project's settings."""
    environment = {**os.environ, "PYTHONPATH": HERE, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-B", "-m", "pytest", "-p", "checker.plugin", "-p", "no:cacheprovider"]
    command += ["--import-mode=importlib", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, timeout=200, check=False)


def test_a_session_without_katas_imports_nothing_heavy(tmp_path: Path) -> None:
    names = "('torch', 'triton', 'numpy', 'checker.kata_session', 'checker.judge')"
    test = f"import sys\ndef test_it():\n    assert not [name for name in {names} if name in sys.modules]\n"
    (tmp_path / "test_plain.py").write_text(test)
    done = plain("-q", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_several_katas_in_one_session_are_told_apart(tmp_path: Path) -> None:
    tiny.make(tmp_path, "01_add_one", kernel=tiny.module())
    tiny.make(tmp_path, "02_add_one", kernel=tiny.module("v = v + 2"))
    # The third has no kernel.py: its skeleton is judged.
    tiny.make(tmp_path, "03_add_one")
    done = plain("katas", "--kata-seed=9", cwd=tmp_path)
    text = done.stdout
    assert done.returncode == 1, text
    assert text.count("--seed 9") == 3, text
    assert "01_add_one  passed" in text or "01_add_one passes" in text or "01_add_one" in text
    assert text.count("K601") >= 2
    # No traceback of ours.
    assert "kata_session.py" not in text
    assert "Traceback" not in text
    assert "skeleton.py" in text
    order = [line for line in text.splitlines() if "test_correctness.py" in line and "%" in line]
    assert order


def test_stages_come_in_order_and_a_red_one_stops_the_later(tmp_path: Path) -> None:
    tiny.make(tmp_path, kernel=tiny.module("v = v + 2"))
    done = plain("katas/01_add_one", "-v", "-rs", cwd=tmp_path)
    lines = [line for line in done.stdout.splitlines() if "::" in line and "[" in line and "%" in line]
    stages = ["numerics" if "keeps_large" in line else "speed" if "is_fast" in line else "values" for line in lines]
    assert stages == sorted(stages, key=["values", "numerics", "speed"].index)
    assert "stopped by values" in done.stdout


@pytest.mark.slow
def test_records_can_go_to_a_file(tmp_path: Path) -> None:
    tiny.make(tmp_path, kernel=tiny.module("v = v + 2"))
    target = tmp_path / "records.jsonl"
    plain("katas/01_add_one/test_correctness.py", f"--kata-records={target}", "--kata-nonce=n1", cwd=tmp_path)
    records = [json.loads(line) for line in target.read_text().splitlines()]
    assert all(record["nonce"] == "n1" for record in records)
    kinds = [record["kind"] for record in records]
    assert kinds[:3] == ["session", "collected", "todos"]
    assert kinds[-1] == "done"
    # A test's finding stands between its start and its end.
    first = kinds.index("finding")
    assert "start" in kinds[:first]
    assert kinds.index("end") > first
    assert records[first]["finding"]["code"] == "K601"
    assert records[first]["finding"]["case"] == "n=64"


def broken_spec(tmp_path: Path, spec: str, warm: Warm) -> Report:
    kata = tiny.make(tmp_path, kernel=tiny.module(), spec=spec)
    return runner.check(kata, root=tmp_path, start=warm.start)


@pytest.mark.parametrize(
    "spec",
    [
        "raise RuntimeError('a broken spec')\n",
        tiny.SPEC.replace("return x.double() + 1", "raise RuntimeError('a broken spec')"),
    ],
    ids=["while it is imported", "while it is used"],
)
def test_a_fault_of_ours_is_never_the_learners(tmp_path: Path, spec: str, warm: Warm) -> None:
    report = broken_spec(tmp_path, spec, warm)
    assert [finding.code for finding in report.findings] == ["K007"], report.findings
    assert any("a broken spec" in detail for detail in report.findings[0].details) or (
        "a broken spec" in report.findings[0].message
    )
    assert not report.passed


def options(**values: Any) -> list[str]:
    return [f"--kata-{name}={value}" for name, value in values.items()]


@pytest.mark.slow
def test_a_file_of_another_name_is_judged_in_place(tmp_path: Path) -> None:
    tiny.make(tmp_path, kernel=tiny.module("v = v + 2"))
    other = tmp_path / "attempt 2.py"
    other.write_text(tiny.module())
    done = plain("katas/01_add_one", *options(file=other), cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_slips_are_notes_when_all_is_well_and_words_when_not(tmp_path: Path, warm: Warm) -> None:
    slip = "ok = not x.is_contiguous"
    right = runner.check(
        tiny.make(tmp_path / "a", kernel=tiny.module(wrapper=slip)), root=tmp_path / "a", start=warm.start
    )
    assert right.passed
    assert any("K107" in note for note in right.notes)
    wrong = runner.check(
        tiny.make(tmp_path / "b", kernel=tiny.module("pass", wrapper=slip)), root=tmp_path / "b", start=warm.start
    )
    assert any("names a method without calling it" in detail for detail in wrong.findings[0].details)
