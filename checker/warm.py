"""A process that has everything imported and forks one child per check.

Importing torch, Triton and pytest takes seconds, a fork milliseconds. The warm process runs no torch operation itself:
a child forked after the parent's thread pool has started hangs at its first parallel operation. Requests and the
children's exit statuses travel over a socket; the pipes of a check are handed over with its request.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from checker import child
from checker.child import Request

__all__ = ["Warm", "serve"]

_MESSAGE = 1 << 16


class Warm:
    """A warm process and the children it forks; a context manager. `start` is what `runner.check(start=...)` takes.

    Threads may share one. If the process dies, the next check starts another.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._statuses: dict[int, int] = {}

    def __enter__(self) -> Warm:
        with self._lock:
            self._launch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the warm process; children that still run end with it."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
            if self._process is not None:
                self._process.kill()
                self._process.wait()
            self._socket = self._process = None

    def _launch(self) -> None:
        from checker.runner import environment

        if self._socket is not None:
            self._socket.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        code = "import sys; sys.path.append(sys.argv[1]); from checker.warm import serve; serve(int(sys.argv[2]))"
        here = str(Path(__file__).resolve().parent.parent)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-B", "-W", "ignore", "-c", code, here, str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env=environment(),
        )
        theirs.close()
        self._socket = ours

    def start(self, request: Request, records: int, output: int) -> _Forked:
        """Fork a child for a request. Raises ChildProcessError if the warm process cannot."""
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._launch()
            assert self._socket is not None
            try:
                socket.send_fds(self._socket, [request.dumps().encode()], [records, output])
                while "forked" not in (message := self._receive()):
                    pass
            except OSError as error:
                raise ChildProcessError("the warm process ended before it could start a check") from error
            # The number may have been another child's before.
            self._statuses.pop(message["forked"], None)
            return _Forked(self, message["forked"])

    def _receive(self, timeout: float | None = None) -> dict[str, int]:
        """The next message; an exit status is kept as well. Raises TimeoutError, or ConnectionError at the end."""
        assert self._socket is not None
        self._socket.settimeout(timeout)
        data = self._socket.recv(_MESSAGE)
        if not data:
            raise ConnectionError("the warm process ended")
        message: dict[str, int] = json.loads(data)
        if "ended" in message:
            self._statuses[message["ended"]] = message["status"]
        return message

    def status(self, pid: int, timeout: float) -> int | None:
        """The exit status of a child as Popen gives it, or None if it still runs after `timeout` seconds."""
        with self._lock:
            while pid not in self._statuses:
                if self._socket is None:
                    return -signal.SIGKILL
                try:
                    self._receive(max(timeout, 1e-4))
                except (TimeoutError, BlockingIOError):
                    return None
                except OSError:
                    return -signal.SIGKILL
            return self._statuses[pid]


class _Forked:
    """A child of the warm process, with the part of Popen's interface that supervision needs."""

    def __init__(self, warm: Warm, pid: int) -> None:
        self._warm = warm
        self.pid = pid

    def poll(self) -> int | None:
        return self._warm.status(self.pid, 0.0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._warm.status(self.pid, 10.0 if timeout is None else timeout)
        if status is None:
            raise subprocess.TimeoutExpired("a check", timeout or 10.0)
        return status


def serve(descriptor: int) -> None:
    """The warm process itself: fork on each request, tell each exit status, end when the other side closes."""
    # Ctrl-C is for the one who asked; he ends this process by closing the socket.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child.prepare()
    _compile_once()
    with socket.socket(fileno=descriptor) as line, selectors.DefaultSelector() as selector:
        selector.register(line, selectors.EVENT_READ)
        running: dict[int, int] = {}
        while True:
            for key, _ in selector.select():
                if key.fileobj is not line:
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    pid = running.pop(key.fd)
                    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                    line.send(json.dumps({"ended": pid, "status": status}).encode())
                    continue
                data, descriptors, _, _ = socket.recv_fds(line, _MESSAGE, 2)
                if not data:
                    for pid in running.values():
                        os.kill(pid, signal.SIGKILL)
                    return
                records, output = descriptors
                pid = os.fork()
                if pid == 0:
                    _become_child(Request.loads(data.decode()), records, output, line)
                for handed in descriptors:
                    os.close(handed)
                pidfd = os.pidfd_open(pid)
                running[pidfd] = pid
                selector.register(pidfd, selectors.EVENT_READ)
                line.send(json.dumps({"forked": pid}).encode())


def _compile_once() -> None:
    """Specialise and compile a kernel, so that children inherit the loaded compiler and Triton's hash of itself."""
    import torch
    import triton

    from checker.judge import open_gpu

    def nothing(pointer, n):  # type: ignore[no-untyped-def]  # Triton reads it, nobody calls it
        pass

    open_gpu("h200")
    # A dtype stands for a tensor of it: no torch operation runs.
    triton.jit(nothing).warmup(torch.float32, 16, grid=(1,))


def _become_child(request: Request, records: int, output: int, line: socket.socket) -> None:
    """In the forked child: own session, own pipes, the signals of a fresh process; never returns."""
    code = 70
    try:
        os.setsid()
        ctypes.CDLL(None).prctl(child.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        line.close()
        for number in (1, 2):
            os.dup2(output, number)
        os.close(output)
        code = child.run(replace(request, records=records))
    finally:
        child.finish(code)
