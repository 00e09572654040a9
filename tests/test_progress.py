"""Progress outlives kills, damage, a second process and a folder that cannot be written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from checker.catalog import load
from checker.progress import Progress, ProgressNotSaved, Store, digest

HAMMER = """
import sys
from pathlib import Path
from checker.catalog import load
from checker.progress import Store

root, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
store = Store(root, load(root))
for number in range(first, first + count):
    store.update(lambda progress: progress.skipped.append(f"{number}"))
"""


@pytest.fixture
def store(tree: Path) -> Store:
    return Store(tree, load(tree))


def test_progress_comes_back_as_it_was_written(store: Store, tree: Path) -> None:
    katas = load(tree)

    def change(progress: Progress) -> None:
        progress.unlocks(katas[0])
        progress.passes(katas[0], "abc")
        progress.tried(katas[1], "def")
        progress.next_hint(katas[0], 2, 3)

    assert store.read() == Progress()
    written = store.update(change)
    assert Store(tree, katas).read() == written
    assert written.hints == {"01_first_step": {"2": 1}}


def test_a_state_follows_the_file(store: Store, tree: Path) -> None:
    kata = load(tree)[0]
    kata.kernel.write_text("x = 1\n")
    progress = Progress()
    assert progress.state(kata) == "locked"
    progress.unlocks(kata)
    assert progress.state(kata) == "open"
    progress.skips(kata)
    assert progress.state(kata) == "skipped"
    sha = digest(kata.kernel)
    assert sha is not None
    progress.passes(kata, sha)
    assert progress.state(kata) == "passed"
    assert progress.skipped == []
    kata.kernel.write_text("x = 2\n")
    assert progress.state(kata) == "changed"


def test_the_way_up_the_ladder(tree: Path) -> None:
    first, second, third = katas = load(tree)
    progress = Progress()
    assert progress.current(katas) is first
    assert progress.following(katas) is first
    progress.unlocks(first)
    assert progress.following(katas) is second
    progress.passes(first, "a")
    assert progress.current(katas) is first
    assert progress.unbroken(katas) == 1
    progress.unlocks(second)
    assert progress.current(katas) is second
    progress.skips(second)
    progress.unlocks(third)
    assert progress.current(katas) is third
    progress.passes(third, "c")
    assert progress.unbroken(katas) == 1
    assert progress.following(katas) is None


def test_the_truth_is_shown_on_the_third_different_try_or_after_a_pass(tree: Path) -> None:
    kata = load(tree)[0]
    progress = Progress()
    for sha, reveals in (("a", False), ("a", False), ("b", False), ("c", True)):
        assert progress.reveals(kata, sha) is reveals
        progress.tried(kata, sha)
    assert progress.reveals(kata, "c")
    progress = Progress()
    progress.passes(kata, "a")
    assert progress.reveals(kata, "z")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[]", b"{}", b'{"version": 99}', b'{"version": 1, "unlocked": 3}',
     b'{"version": 1, "unlocked": [1], "passed": {}, "skipped": [], "hints": {}, "tries": {}}'],
)  # fmt: skip
def test_a_damaged_file_is_kept_reported_and_rebuilt(store: Store, tree: Path, content: bytes) -> None:
    katas = load(tree)
    katas[0].kernel.write_text("mine\n")
    store.folder.mkdir()
    store.file.write_bytes(content)
    assert store.read() == Progress(unlocked=["01_first_step"])
    assert (store.folder / "progress.json.damaged-1").read_bytes() == content
    (notice,) = store.notices
    assert "progress.json.damaged-1" in notice
    assert "kata check --all" in notice
    # It is whole again, and a second accident does not overwrite what the first one left.
    assert Store(tree, katas).read().unlocked == ["01_first_step"]
    store.file.write_bytes(b"again")
    store.read()
    assert (store.folder / "progress.json.damaged-2").read_bytes() == b"again"
    assert (store.folder / "progress.json.damaged-1").read_bytes() == content


def test_an_update_meets_a_damaged_file_too(store: Store) -> None:
    store.folder.mkdir()
    store.file.write_bytes(b"nonsense")
    store.update(lambda progress: progress.skipped.append("x"))
    assert store.read().skipped == ["x"]
    assert (store.folder / "progress.json.damaged-1").exists()


def test_what_cannot_be_written_is_said_and_reading_works(store: Store) -> None:
    # A file where the folder should be stops writing for every user, root included.
    store.folder.write_text("")
    assert store.read() == Progress()
    with pytest.raises(ProgressNotSaved, match="Checks still run"):
        store.update(lambda progress: progress.skipped.append("x"))


def test_a_file_that_cannot_be_read_is_said(store: Store, tree: Path) -> None:
    load(tree)[0].kernel.write_text("mine\n")
    store.file.mkdir(parents=True)
    assert store.read().unlocked == ["01_first_step"]
    assert "cannot be read" in store.notices[0]


def hammer(tree: Path, first: int, count: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", HAMMER, str(tree), str(first), str(count)])


def test_processes_that_write_at_once_lose_nothing(tree: Path) -> None:
    writers = [hammer(tree, 100 * number, 15) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    written = Store(tree, load(tree)).read().skipped
    assert sorted(map(int, written)) == [100 * number + n for number in range(3) for n in range(15)]


def test_a_kill_at_any_moment_leaves_a_whole_file(tree: Path) -> None:
    store = Store(tree, load(tree))
    store.update(lambda progress: progress.skipped.append("start"))
    for wait in (0.0, 0.003, 0.007, 0.013):
        before = len(store.read().skipped)
        writer = hammer(tree, 0, 100_000)
        deadline = time.monotonic() + 30
        while len(store.read().skipped) < before + 3 and writer.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        time.sleep(wait)
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        after = json.loads(store.file.read_bytes())
        assert len(after["skipped"]) >= before + 3
    # The dead process's lock is gone with it.
    store.update(lambda progress: progress.skipped.append("end"))
    assert store.read().skipped[-1] == "end"
    assert store.notices == []
