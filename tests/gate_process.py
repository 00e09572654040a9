"""Checks files for the gate in a process of its own, beside the other tests and behind them.

The gate is most of what the whole test run costs, and all other tests keep one core busy. So its checks begin as soon
as the tests are collected, two at a time and at low priority; `test_gate.py`, which runs last, collects the reports.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from checker.verdict import Report

ROOT = Path(__file__).parents[1]
SEED = 1
WORKERS = 2
_NICE = 10
# A variant, or a second solution, shows another right way: how slow a kernel may be is what the slow mutants show. A
# wrong prediction stands beside a right kernel, and its finding comes before any of the speed stage, which it would not
# stop.
_PREDICTS = "# expect: K65"


class GateProcess:
    """The process, from the side of the tests. Ends with the `with` block, or with pytest, however that ends."""

    def __init__(self, files: Iterable[tuple[str, Path]]) -> None:
        """Start the checks of these files, each with the id of its kata, in their order."""
        named = list(dict.fromkeys(files))
        self._numbers = {path: number for number, (_, path) in enumerate(named)}
        self._folder = tempfile.TemporaryDirectory()
        jobs = json.dumps([(kata, str(path)) for kata, path in named])
        self._process = subprocess.Popen(
            [sys.executable, __file__, self._folder.name], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        assert self._process.stdin is not None
        self._process.stdin.write(jobs.encode() + b"\n")
        self._process.stdin.flush()

    def report(self, path: Path) -> Report:
        """Wait for the check of a file. Raises what the check raised."""
        answer = Path(self._folder.name, str(self._numbers[path]))
        while not answer.exists():
            if self._process.poll() is not None and not answer.exists():
                raise RuntimeError(f"the gate's process ended with status {self._process.returncode}")
            time.sleep(0.01)
        found = pickle.loads(answer.read_bytes())
        if isinstance(found, BaseException):
            raise found
        return cast(Report, found)

    def close(self) -> None:
        """End the process and what it started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._folder.cleanup()


RUNNING = pytest.StashKey[GateProcess]()
"""Where pytest's configuration holds the process of this run."""


def wanted(items: Iterable[Any]) -> Iterator[tuple[str, Path]]:
    """What some tests ask the check about, if they take the gate's fixture `check`: a kata's id and a file."""
    for item in items:
        if item.path.name != "test_gate.py" or "check" not in item.fixturenames:
            continue
        given = item.callspec.params
        rung = given["rung"]
        own = {"test_a_skeleton_fails_by_design": rung.skeleton, "test_a_solution_passes": rung.solution}
        yield rung.id, given["path"] if "path" in given else own[item.originalname]


def main(folder: Path) -> None:
    """Check the files that stdin names, in their order; write each report, or what was raised, into a file."""
    from checker import runner
    from checker.catalog import load
    from checker.warm import Warm

    # Whatever else runs on this machine comes first: tests that measure time, above all.
    os.nice(_NICE)
    jobs = json.loads(sys.stdin.readline())
    katas = {kata.id: kata for kata in load(ROOT)}

    def check(number: int, kata: str, path: Path) -> None:
        try:
            second = path.parent.name == "solutions" and path.stem != kata
            quick = second or "variants" in path.parts or path.read_text(encoding="utf-8").startswith(_PREDICTS)
            found: object = runner.check(katas[kata], root=ROOT, file=path, seed=SEED, start=warm.start, quick=quick)
        except Exception as error:
            found = error
        unfinished = folder / f"{number}.part"
        unfinished.write_bytes(pickle.dumps(found))
        unfinished.rename(folder / str(number))

    with Warm() as warm, ThreadPoolExecutor(WORKERS) as pool:
        for number, (kata, path) in enumerate(jobs):
            pool.submit(check, number, kata, Path(path))
        # Those who asked close this end, or are gone; nobody waits for the rest.
        sys.stdin.read()
        warm.close()
        os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
