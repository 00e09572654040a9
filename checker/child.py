"""The process that runs the learner's code: limits first, then the kata's own tests under pytest.

A check starts it fresh (`python -P -c ... child.main()`), or the warm process forks it. Either way `run` is the same.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import resource
import signal
import sys
import traceback
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["PR_SET_PDEATHSIG", "Request", "finish", "limit_address_space", "main", "prepare", "run"]

_ADDRESS_SPACE = 64 * 2**30
"""Bytes of address space on top of what the imports map. Sparse tensors reserve much and touch little; what is really
used is watched by the parent."""

PR_SET_PDEATHSIG = 1
"""Linux's prctl option: the signal a process gets when its parent ends."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to check, in values that travel as JSON. `records` is the descriptor to write records to."""

    folder: str
    file: str
    gpu: str
    device: str
    seed: int
    quick: bool
    reveal: bool
    limit: float
    nonce: str
    records: int = -1

    def dumps(self) -> str:
        """The request as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> Request:
        """The inverse of `dumps`."""
        return cls(**json.loads(text))


def main() -> None:
    """Entry of a fresh process: the request is the last argument."""
    # The parent may be killed before it can end this process.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    request = Request.loads(sys.argv[-1])
    prepare()
    finish(run(request))


def prepare() -> None:
    """Import what every check needs. Runs no torch operation: a process that did cannot fork children that do."""
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    import numpy  # noqa: F401 - imported here so that a warm process has it
    import pytest  # noqa: F401 - imported here so that a warm process has it
    import pytest_benchmark.plugin  # noqa: F401 - imported here so that a warm process has it
    import triton  # noqa: F401 - imported here so that a warm process has it

    from checker import judge, kata_session  # noqa: F401 - imported here so that a warm process has them


def run(request: Request) -> int:
    """Run the kata's tests with records going to the request's descriptor; returns pytest's exit code."""
    import pytest
    import torch

    from checker import limits, loading

    torch.set_num_threads(1)
    os.environ.pop("PYTEST_ADDOPTS", None)
    faulthandler.enable(os.fdopen(os.dup(2), "w"))
    limits.on_memory_signal()
    if request.device != "cuda":
        # CUDA reserves hundreds of gigabytes of addresses; there the parent watches what is really used.
        limit_address_space()
    folder = Path(request.folder)
    loading.protect(Path(request.file).parent)
    loading.block_solutions()
    try:
        code = int(pytest.main(_arguments(request, folder)))
    except BaseException as error:
        _emit(request, kind="fault", text="".join(traceback.format_exception(error))[-2000:])
        return 70
    _emit(request, kind="returned", code=code)
    return code


def _arguments(request: Request, folder: Path) -> list[str]:
    """Pytest's arguments: these tests and nothing of the learner's (no conftest, no ini file, no other plugin)."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # Some get in the way of the learner's output or leave files behind, and unraisableexception collects garbage
    # five times; none is needed.
    blocked = ["cacheprovider", "terminal", "warnings", "doctest", "junitxml", "faulthandler", "pastebin", "stepwise"]
    blocked += ["unraisableexception", "threadexception", "logging", "debugging", "unittest", "setuponly", "setupplan"]
    arguments = [
        str(folder / "test_correctness.py"),
        *([] if request.quick else [str(folder / "test_performance.py")]),
        *(part for name in blocked for part in ("-p", f"no:{name}")),
        "-p",
        "checker.plugin",
        "-p",
        "pytest_benchmark.plugin",
        # It would make a folder for results that nobody saves.
        f"--benchmark-storage=file://{os.devnull}",
        "--capture=no",
        "--assert=plain",
        "--noconftest",
        "--import-mode=importlib",
        "-c",
        os.devnull,
        f"--rootdir={folder}",
        f"--kata-file={request.file}",
        f"--kata-seed={request.seed}",
        f"--kata-limit={request.limit}",
        f"--kata-device={request.device}",
        f"--kata-records={request.records}",
        f"--kata-nonce={request.nonce}",
        f"--gpu={request.gpu}",
    ]
    arguments += ["--kata-quick"] * request.quick + ["--kata-reveal"] * request.reveal
    return arguments


def limit_address_space() -> None:
    """Bound the address space of this process from now on, and leave no core file."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + _ADDRESS_SPACE
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    # A crash is told by its signal and its traceback; a core file of gigabytes would help nobody.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _emit(request: Request, **record: Any) -> None:
    os.write(request.records, (json.dumps({**record, "nonce": request.nonce}) + "\n").encode())


def finish(code: int) -> None:
    """End the process at once: unloading torch takes longer than some checks."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)
