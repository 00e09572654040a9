"""Watching: every kind of save gives a verdict, a save ends a check that runs, Ctrl-C ends it all."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import tiny

import checker
from checker import runner
from checker.catalog import Kata
from checker.verdict import Report
from checker.warm import Warm

pytest.importorskip("triton", reason="Triton has wheels for Linux only")

from checker import watch


@dataclass
class Watched:
    kata: Kata
    reports: queue.Queue[Report] = field(default_factory=queue.Queue)

    def codes(self, timeout: float = 30) -> list[str]:
        """The codes of the next verdict."""
        return [finding.code for finding in self.reports.get(timeout=timeout).findings]

    def save(self, text: str) -> None:
        self.kata.kernel.write_text(text)

    def replace(self, text: str) -> None:
        """Save as many editors do: a new file in the old one's place."""
        new = self.kata.folder / "kernel.py.swp"
        new.write_text(text)
        new.replace(self.kata.kernel)


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    root = tmp_path_factory.mktemp("watch")
    item = Watched(tiny.make(root, kernel=tiny.module()))
    stop = threading.Event()
    thread = threading.Thread(
        target=watch.watch, args=(item.kata, root), kwargs={"on_report": item.reports.put, "stop": stop}
    )
    thread.start()
    assert item.codes(60) == []
    yield item
    stop.set()
    thread.join(20)
    assert not thread.is_alive()


def settle(watched: Watched, wanted: list[str], timeout: float = 20) -> None:
    """Wait for a verdict: an editor that writes in steps may be seen in between."""
    deadline = time.monotonic() + timeout
    seen = []
    while time.monotonic() < deadline:
        try:
            seen.append(watched.codes(max(deadline - time.monotonic(), 0.1)))
        except queue.Empty:
            break
        if seen[-1] == wanted:
            return
    pytest.fail(f"saw {seen}, wanted {wanted}")


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (tiny.module("v = v + 2"), ["K601"]),
        ("def add_one(x\n", ["K101"]),
        (tiny.module(wrapper="os._exit(1)"), ["K005"]),
        (tiny.module(), []),
    ],
)
@pytest.mark.parametrize("way", ["save", "replace"])
def test_a_save_gives_a_verdict(watched: Watched, text: str, codes: list[str], way: str) -> None:
    getattr(watched, way)(text)
    settle(watched, codes)


def test_a_deleted_file_is_told_and_its_return_is_seen(watched: Watched) -> None:
    watched.kata.kernel.unlink()
    settle(watched, ["K001"])
    watched.save(tiny.module())
    settle(watched, [])


def test_a_save_ends_the_check_that_runs(watched: Watched) -> None:
    watched.save(tiny.module(wrapper="while True: pass"))
    time.sleep(1)
    began = time.monotonic()
    watched.save(tiny.module())
    settle(watched, [], timeout=runner.CASE_LIMIT - 5)
    assert time.monotonic() - began < runner.CASE_LIMIT - 5


def test_other_files_of_the_folder_are_no_saves(watched: Watched) -> None:
    (watched.kata.folder / "notes.txt").write_text("to do")
    with pytest.raises(queue.Empty):
        watched.codes(1)


@pytest.mark.slow
def test_control_c_ends_it_kindly_and_leaves_no_process(tmp_path: Path) -> None:
    tiny.make(tmp_path, kernel=tiny.module())
    here = str(Path(checker.__file__).resolve().parent.parent)
    code = textwrap.dedent(f"""
        import sys; sys.path.insert(0, {here!r})
        from pathlib import Path
        from checker import watch
        from checker.catalog import load
        root = Path({str(tmp_path)!r})
        watch.watch(load(root)[0], root, on_report=lambda report: print("verdict", report.passed, flush=True))
        print("goodbye", flush=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("verdict True")
    children = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid="], capture_output=True, text=True).stdout
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert "goodbye" in out
    assert "Traceback" not in err
    assert not [pid for pid in children.split() if Path(f"/proc/{pid}").exists()]


@pytest.mark.slow
def test_the_warm_process_outlives_its_children_and_starts_again(tmp_path: Path) -> None:
    kata = tiny.make(tmp_path, kernel=tiny.module())
    with Warm() as warm:
        kata.kernel.write_text(tiny.module(wrapper="import ctypes; ctypes.string_at(0)"))
        assert [f.code for f in runner.check(kata, root=tmp_path, start=warm.start).findings] == ["K003"]
        kata.kernel.write_text(tiny.module())
        assert runner.check(kata, root=tmp_path, start=warm.start).passed
        assert warm._process is not None
        os.kill(warm._process.pid, signal.SIGKILL)
        warm._process.wait()
        assert runner.check(kata, root=tmp_path, start=warm.start).passed


@pytest.mark.slow
def test_a_warm_check_says_the_same_as_a_cold_one(tmp_path: Path) -> None:
    kata = tiny.make(tmp_path, kernel=tiny.module("v = v + 2"))
    with Warm() as warm:
        warmly = runner.check(kata, root=tmp_path, seed=3, start=warm.start)
    coldly = runner.check(kata, root=tmp_path, seed=3)
    assert warmly.findings == coldly.findings
    assert warmly.stages == coldly.stages


@pytest.mark.slow
def test_several_checks_share_one_warm_process(tmp_path: Path) -> None:
    katas = [
        tiny.make(tmp_path / str(number), kernel=tiny.module(f"v = v + {added}"))
        for number, added in enumerate((1, 2, 1, 2))
    ]
    passed: dict[int, bool] = {}
    with Warm() as warm:

        def run(number: int) -> None:
            passed[number] = runner.check(katas[number], root=katas[number].root, start=warm.start).passed

        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert passed == {0: True, 1: False, 2: True, 3: False}
