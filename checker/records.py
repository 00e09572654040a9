"""The records of a check: one JSON object a line, written as each thing happens, so that a crash leaves them."""

from __future__ import annotations

import contextlib
import json
import os
import platform
from importlib import metadata
from typing import Any

__all__ = ["Records", "versions"]


class Records:
    """Keeps records and writes them to `target`: a descriptor's number, a path to append to, or nowhere."""

    def __init__(self, target: str | None, nonce: str) -> None:
        self.kept: list[dict[str, Any]] = []
        self._nonce = nonce
        self._descriptor: int | None = None
        if target:
            self._descriptor = (
                int(target) if target.isdigit() else os.open(target, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            )

    @property
    def elsewhere(self) -> bool:
        """Whether somebody else reads the records and makes the report."""
        return self._descriptor is not None

    def write(self, **record: Any) -> None:
        """Write one record, at once."""
        self.kept.append(record)
        if self._descriptor is not None:
            data = (json.dumps({**record, "nonce": self._nonce}) + "\n").encode()
            while data:
                data = data[os.write(self._descriptor, data) :]


def versions() -> dict[str, str]:
    """Versions of Python, torch and Triton, read without importing them."""
    found = {"python": platform.python_version()}
    for name in ("torch", "triton"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found
