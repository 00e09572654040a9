"""Checks a kata on every save, until Ctrl-C.

The folder is watched, not the file: many editors save by putting a new file in the old one's place. A save during a
check ends that check and begins the next. Checks run in children of one warm process, so that a verdict takes a moment.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from checker import runner
from checker.catalog import Kata
from checker.supervise import CancelledError
from checker.verdict import Report
from checker.warm import Warm

__all__ = ["watch"]

_DEBOUNCE_MS = 60
"""Long enough for an editor that deletes, writes and renames; short enough not to be felt."""


def watch(
    kata: Kata,
    root: Path,
    *,
    on_report: Callable[[Report], None],
    file: Path | None = None,
    gpu: str = "h200",
    limit: float = runner.CASE_LIMIT,
    stop: threading.Event | None = None,
) -> None:
    """Check now and after every save, calling `on_report` in this thread; returns after Ctrl-C or at `stop`."""
    subject = (file or kata.kernel).absolute()
    saved, over = threading.Event(), stop or threading.Event()
    saved.set()
    done = threading.Event()
    watcher = threading.Thread(target=_follow, args=(subject, saved, done), daemon=True)
    watcher.start()
    try:
        with Warm() as warm:
            while not over.is_set():
                if not saved.wait(0.2):
                    continue
                saved.clear()
                try:
                    report = runner.check(
                        kata,
                        root=root,
                        file=subject,
                        gpu=gpu,
                        limit=limit,
                        start=warm.start,
                        cancelled=lambda: saved.is_set() or over.is_set(),
                    )
                except CancelledError:
                    continue
                on_report(report)
    except KeyboardInterrupt:
        pass
    finally:
        done.set()
        watcher.join(2)


def _follow(file: Path, saved: threading.Event, done: threading.Event) -> None:
    """Set `saved` whenever the file is written, replaced or removed."""
    from watchfiles import watch as changes

    for batch in changes(
        file.parent,
        watch_filter=lambda _, path: Path(path).name == file.name,
        debounce=_DEBOUNCE_MS,
        step=20,
        rust_timeout=200,
        yield_on_timeout=True,
        stop_event=done,
        recursive=False,
        raise_interrupt=False,
    ):
        if batch:
            saved.set()
