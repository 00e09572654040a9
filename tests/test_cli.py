"""What holds for every command: colour, pipes, terminals, Ctrl-C, read-only folders. Each in a process of its own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pty
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

KATA = [sys.executable, "-m", "checker"]
CAP_DAC_OVERRIDE, PR_CAPBSET_DROP = 1, 24
# Stands in for checker.runner in the child, so that no test here needs Triton: a check that never ends.
ENDLESS = """
import sys, time, types
fake = types.ModuleType("checker.runner")
def check(kata, **options):
    print("checking", flush=True)
    time.sleep(60)
fake.check = check
import checker
checker.runner = sys.modules["checker.runner"] = fake
from checker.cli import main
sys.argv = ["kata", "check"]
main()
"""


def kata(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*KATA, *arguments], capture_output=True, text=True, check=False, **options)  # type: ignore[call-overload,no-any-return]


def on_a_terminal(*arguments: str, **variables: str) -> str:
    """What a command writes to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*KATA, *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **variables},
    )
    os.close(theirs)
    written = b""
    # Linux reports the end of a terminal's other side as an input error.
    with contextlib.suppress(OSError):
        while part := os.read(ours, 4096):
            written += part
    os.close(ours)
    assert process.wait(30) == 0
    return written.decode()


def test_a_terminal_gets_colour_and_a_pipe_none(tree: Path) -> None:
    assert "\x1b[" in on_a_terminal("list", NO_COLOR="")
    assert "\x1b[" not in kata("list").stdout


def test_no_color_is_respected(tree: Path) -> None:
    assert "\x1b[" not in on_a_terminal("list", NO_COLOR="1")
    assert "\x1b[" not in on_a_terminal("explain", "K402", NO_COLOR="1")


def test_a_reader_that_has_seen_enough_gets_no_traceback(tree: Path) -> None:
    with subprocess.Popen([*KATA, "explain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_terminal_without_utf8_serves(tree: Path) -> None:
    done = kata("list", env={**os.environ, "PYTHONIOENCODING": "ascii:backslashreplace"})
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_ctrl_c_in_the_middle_loses_nothing(tree: Path) -> None:
    kata("list")
    before = (tree / ".kata" / "progress.json").read_bytes()
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "checking\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.strip()) == (130, "Interrupted. Nothing was lost.")
    assert (tree / ".kata" / "progress.json").read_bytes() == before


@pytest.fixture
def read_only(tree: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Runs commands in a tree where nothing may be written, root or not."""
    folders = [tree, *(path for path in tree.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(stat.S_IRUSR | stat.S_IXUSR)

    def obey_modes() -> None:
        # Root ignores modes unless it gives up the right to.
        if os.getuid() == 0:
            ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE)

    probe = "import pathlib; pathlib.Path('probe').touch()"
    if (
        subprocess.run(
            [sys.executable, "-c", probe], preexec_fn=obey_modes, capture_output=True, check=False
        ).returncode
        == 0
    ):
        pytest.skip("this user may write into any folder")
    yield lambda *arguments: kata(*arguments, preexec_fn=obey_modes)
    for folder in folders:
        folder.chmod(stat.S_IRWXU)


def test_a_read_only_folder_is_said_and_reading_works(
    read_only: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    for arguments in ([], ["list"], ["hint", "1"], ["explain", "K402"]):
        done = read_only(*arguments)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    done = read_only("hint")
    assert "Progress is not saved" in done.stderr
    assert "Hint 1 of 2" in done.stdout


def test_a_read_only_folder_stops_what_must_write(
    read_only: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    done = read_only("next", "--skip")
    assert done.returncode == 3
    assert "Progress is not saved" in done.stderr
    done = read_only("reset")
    assert done.returncode == 3
    assert "was not reset" in done.stderr
