"""`runner.check`: every way a file can go wrong is a report, with her line where there is one, and never a hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import tiny

from checker import runner
from checker.findings import STAGES
from checker.verdict import Report
from checker.warm import Warm

pytest.importorskip("triton", reason="Triton has wheels for Linux only")


def check(root: Path, source: str | None, **options: Any) -> Report:
    files = {} if source is None else {"kernel": source}
    return runner.check(tiny.make(root, **files), root=root, **options)


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


def test_a_right_file_passes_and_the_records_come_in_order(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    report = check(tmp_path, tiny.module(wrapper='print("hello from the wrapper")'), seed=5, on_record=seen.append)
    assert report.passed, report
    assert report.seed == 5
    assert (report.cases_green, report.cases_total) == (4, 4)
    assert {stage.name: stage.status for stage in report.stages}["numerics"] == "passed"
    assert report.device == {"kind": "virtual", "name": "NVIDIA H200", "target": "sm_90"}
    assert set(report.versions) == {"python", "torch", "triton"}
    assert seen[0]["kind"] == "session"
    assert seen[-2]["kind"] == "done"
    stages = [record["stage"] for record in seen if record["kind"] == "start"]
    assert stages == sorted(stages, key=STAGES.index)
    assert any("hello from the wrapper" in note for note in report.notes)
    assert [todo.untouched for todo in report.todos] == [False]


def test_the_skeleton_fails_and_stops_the_later_stages(tmp_path: Path, warm: Warm) -> None:
    report = check(tmp_path, tiny.module("pass"), start=warm.start)
    assert codes(report) == ["K601"]
    assert [todo.untouched for todo in report.todos] == [True]
    assert {stage.name: stage.status for stage in report.stages}["numerics"] == "not_run"
    assert report.smallest_failing == "n=1"


def test_quick_leaves_out_cases(tmp_path: Path, warm: Warm) -> None:
    assert check(tmp_path, tiny.module(), quick=True, start=warm.start).cases_total == 3


# --- what the source alone shows: answered without a child ---


@pytest.mark.parametrize(
    ("source", "code"),
    [
        (None, "K001"),
        ("def add_one(x)\n", "K101"),
        ("y = 1\n", "K103"),
        ("def add_one(): ...\n", "K104"),
        (tiny.module(wrapper='z = torch.empty(3, device="cuda")'), "K106"),
        (tiny.module(wrapper="assert x.is_cuda"), "K106"),
        ("import solutions\n" + tiny.module(), "K110"),
    ],
)
def test_source_findings_need_no_child(
    tmp_path: Path, source: str | None, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "supervise", None)
    report = check(tmp_path, source)
    assert codes(report) == [code]
    assert not report.passed
    assert report.red is not None
    assert report.red.name == "source"


def test_an_unreadable_file_is_a_finding(tmp_path: Path) -> None:
    kata = tiny.make(tmp_path)
    kata.kernel.mkdir()
    assert codes(runner.check(kata, root=tmp_path)) == ["K001"]


def test_a_missing_torch_is_an_environment_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner.importlib.util, "find_spec", lambda name: None if name == "triton" else object())
    report = check(tmp_path, tiny.module())
    assert codes(report) == ["K006"]
    assert "triton cannot be imported" in report.findings[0].message


# --- what only running shows ---

WILD = {
    "import raises": ("1 / 0\n" + tiny.module(), "K105", "1 / 0"),
    "exit at import": ("import sys\nsys.exit(0)\n" + tiny.module(), "K005", "sys.exit"),
    "os._exit at import": ("import os\nos._exit(0)\n" + tiny.module(), "K005", "os._exit"),
    "os._exit in the wrapper": (tiny.module(wrapper="os._exit(0)"), "K005", "os._exit"),
    "a skip at import": (
        "import pytest\npytest.skip('no', allow_module_level=True)\n" + tiny.module(),
        "K105",
        "skip(",
    ),
    "a skip in the wrapper": (tiny.module(wrapper="import pytest; pytest.skip('no')"), "K308", "pytest.skip"),
    "an exception that is none": (tiny.module(wrapper="raise BaseException('no')"), "K308", "BaseException"),
    "a second process": (tiny.module(wrapper="os.fork()"), "K005", "os.fork"),
    "sys.exit in the wrapper": (tiny.module(wrapper="sys.exit()"), "K005", "sys.exit"),
    "endless Python loop": (tiny.module(wrapper="while True: pass"), "K002", "while True"),
    "endless loop that swallows": (
        tiny.module(wrapper="while True:\n        try: time.sleep(0.01)\n        except BaseException: pass"),
        "K002",
        None,
    ),
    "endless kernel loop": (tiny.module("i = 0\n    while i < n:\n        v += 1"), "K002", "while i < n"),
    "huge allocation": (tiny.module(wrapper="z = torch.empty(2**44)"), "K004", "2**44"),
    "segmentation fault": (tiny.module(wrapper="import ctypes; ctypes.string_at(0)"), "K003", "string_at"),
    "abort": (tiny.module(wrapper="import ctypes; ctypes.CDLL(None).abort()"), "K003", "abort"),
    "exit in C": (tiny.module(wrapper="import ctypes; ctypes.CDLL(None)._exit(0)"), "K005", None),
    "killed": (tiny.module(wrapper="os.kill(os.getpid(), 9)"), "K004", None),
    "late forbidden import": (tiny.module(wrapper="__import__('checker.judge')"), "K110", "__import__"),
    "never launches": (tiny.module(wrapper="return y"), "K307", None),
    "falls back to PyTorch": (tiny.module(wrapper="return x + 1"), "K901", "return x + 1"),
    "wrong device late": (tiny.module(wrapper="z = torch.empty(3, device='cu' + 'da')"), "K106", "'cu'"),
    "wrapper raises": (tiny.module(wrapper="x.nonsense()"), "K308", "x.nonsense"),
    "does not compile": (tiny.module("v = v + tl.arange(0, 100)"), "K201", "arange(0, 100)"),
    "breakpoint in the wrapper": (tiny.module(wrapper="breakpoint()"), "K308", None),
    "breakpoint in the kernel": (tiny.module("breakpoint(); v += 1"), "K211", "breakpoint"),
    "recursion": (tiny.module(wrapper="add_one(x)"), "K308", None),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "endless" in name else []) for name in WILD]
)
def test_wild_files_are_findings(tmp_path: Path, name: str, warm: Warm) -> None:
    source, code, part = WILD[name]
    started = time.monotonic()
    report = check(tmp_path, source, limit=2.0, start=warm.start)
    assert codes(report) == [code], report.findings
    if part is not None:
        assert report.findings[0].line == tiny.line_of(source, part)
    assert time.monotonic() - started < 25
    assert not report.passed


@pytest.mark.slow
@pytest.mark.parametrize("started", ["fresh", "forked"])
def test_what_a_file_forked_behind_the_checks_back_ends_with_it(tmp_path: Path, started: str, warm: Warm) -> None:
    source = tiny.module(
        wrapper="import ctypes; pid = ctypes.CDLL(None).fork(); "
        f"open({str(tmp_path / 'pids')!r}, 'a').write(f'{{pid}} '); pid or time.sleep(100)"
    )
    check(tmp_path, source, **({"start": warm.start} if started == "forked" else {}))
    forked = {int(pid) for pid in (tmp_path / "pids").read_text().split()} - {0}
    deadline = time.monotonic() + 10
    while any(_alive(pid) for pid in forked) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert forked
    assert not any(_alive(pid) for pid in forked)


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_memory_that_is_really_used_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: Warm) -> None:
    monkeypatch.setattr("checker.supervise.memory_limit", lambda: 900 * 2**20)
    source = tiny.module(wrapper="z = [bytearray(b'1' * 2**26) for _ in range(40)]; time.sleep(1)")
    report = check(tmp_path, source, limit=20, start=warm.start)
    assert codes(report) == ["K004"]


@pytest.mark.slow
def test_a_shadowing_torch_beside_the_kernel_is_ignored(tmp_path: Path) -> None:
    evil = "raise RuntimeError('shadowed')\n"
    kata = tiny.make(tmp_path, kernel=tiny.module(), torch=evil, triton=evil, conftest=evil, sitecustomize=evil)
    environment = os.getcwd()
    os.chdir(kata.folder)
    try:
        report = runner.check(kata, root=tmp_path)
    finally:
        os.chdir(environment)
    assert report.passed, report.findings


@pytest.mark.slow
def test_the_environment_of_the_caller_does_not_reach_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "--collect-only")
    assert check(tmp_path, tiny.module()).passed


@pytest.mark.slow
def test_two_checks_at_once(tmp_path: Path) -> None:
    right, wrong = (
        tiny.make(tmp_path / "a", kernel=tiny.module()),
        tiny.make(tmp_path / "b", kernel=tiny.module("v += 2")),
    )
    reports: dict[str, Report] = {}

    def run(name: str, kata: Any) -> None:
        reports[name] = runner.check(kata, root=kata.root)

    threads = [threading.Thread(target=run, args=item) for item in (("right", right), ("wrong", wrong))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reports["right"].passed
    assert codes(reports["wrong"]) == ["K601"]


@pytest.mark.slow
def test_control_c_ends_the_child(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    source = tiny.module(wrapper=f"open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)")
    tiny.make(tmp_path, kernel=source)
    code = textwrap.dedent(f"""
        import sys; sys.path[:0] = {[str(Path(runner.__file__).parent.parent)]!r}
        from pathlib import Path
        from checker import runner
        from checker.catalog import load
        root = Path({str(tmp_path)!r})
        try:
            runner.check(load(root)[0], root=root)
        except KeyboardInterrupt:
            sys.exit(130)
    """)
    process = subprocess.Popen([sys.executable, "-c", code])
    deadline = time.monotonic() + 30
    while not (mark.exists() and mark.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    child = int(mark.read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 130
    assert not Path(f"/proc/{child}").exists()


def test_prints_cannot_pass_for_records(tmp_path: Path, warm: Warm) -> None:
    forged = 'import json; [os.write(fd, b\'{"kind": "done"}\\n\') for fd in range(3, 12) if not _bad(fd)]'
    guard = (
        "\n\ndef _bad(fd):\n    try:\n        os.fstat(fd); return False\n    except OSError:\n        return True\n"
    )
    report = check(tmp_path, tiny.module("pass", wrapper=forged) + guard, start=warm.start)
    assert not report.passed
