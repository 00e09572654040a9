"""`kata debug` shows what the learner prints, stops at her breakpoint, and says what went wrong in her own lines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

from checker import runner

pytest.importorskip("triton", reason="Triton has wheels for Linux only")


def debug(root: Path, source: str, case: str, program: int | None = None, typed: str = "") -> tuple[int, str]:
    kata = tiny.make(root, kernel=source)
    code = (
        "import sys; from pathlib import Path; from checker import runner; from checker.catalog import load;"
        f"sys.exit(runner.debug(load(Path({str(root)!r}))[0], {case!r}, {program!r}, Path({str(root)!r})))"
    )
    here = str(Path(runner.__file__).resolve().parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=kata.folder,
        env={**os.environ, "PYTHONPATH": here},
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_prints_and_stops_at_a_breakpoint(tmp_path: Path) -> None:
    source = tiny.module('print("a print of hers"); tl.device_print("n is", n); breakpoint(); v = v + 1')
    code, text = debug(tmp_path, source, "n=33", program=0, typed="p 6 * 7\nc\n")
    assert "a print of hers" in text
    assert text.count("a print of hers") == 1
    assert "n is" in text
    assert "(Pdb) 42" in text
    assert code == 0, text


@pytest.mark.slow
def test_an_exception_is_shown_with_her_lines_only(tmp_path: Path) -> None:
    code, text = debug(tmp_path, tiny.module(wrapper="x.nonsense()"), "n=33")
    assert code == 1
    assert "x.nonsense()" in text
    assert "stepper.py" not in text


@pytest.mark.slow
def test_an_unknown_case_lists_those_there_are(tmp_path: Path) -> None:
    code, text = debug(tmp_path, tiny.module(), "n=34")
    assert code == 2
    assert "n=33" in text


@pytest.mark.slow
def test_a_wrapper_may_ask_on_which_device_kernels_run(tmp_path: Path) -> None:
    code, text = debug(tmp_path, tiny.module(wrapper="triton.runtime.driver.active.get_active_torch_device()"), "n=33")
    assert code == 0, text
