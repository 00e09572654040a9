"""The learner's own files: made from the skeleton, put back to it, and never lost.

`kernel.py` is only ever created where there is none, or replaced after a backup was written and flushed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from checker.catalog import Kata
from checker.progress import replace_file


def create_kernel(kata: Kata) -> bool:
    """Make the learner's file from the skeleton unless there is one; says whether it was made. Raises OSError."""
    if kata.kernel.exists() or kata.kernel.is_symlink():
        return False
    return _create(kata.kernel, kata.skeleton.read_bytes())


def reset_kernel(kata: Kata) -> Path | None:
    """Put the skeleton in place of the learner's file; returns where the backup is, or None if none was needed.

    Raises OSError before anything is changed if the file cannot be read or the backup cannot be written.
    """
    skeleton = kata.skeleton.read_bytes()
    try:
        mine = kata.kernel.read_bytes()
    except FileNotFoundError:
        _create(kata.kernel, skeleton)
        return None
    if mine == skeleton:
        return None
    backup = _back_up(kata, mine)
    replace_file(kata.kernel, skeleton)
    return backup


def _back_up(kata: Kata, content: bytes) -> Path:
    folder = kata.root / ".kata" / "backups" / kata.id
    folder.mkdir(parents=True, exist_ok=True)
    number = 1
    while not _create(folder / f"kernel.py.bak-{number}", content):
        number += 1
    return folder / f"kernel.py.bak-{number}"


def _create(file: Path, content: bytes) -> bool:
    """Create a file whole or not at all, and never over another one."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        return _link(temporary, file, content)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def _link(temporary: Path, file: Path, content: bytes) -> bool:
    try:
        # A hard link fails where the name is taken, which a rename would not.
        os.link(temporary, file)
    except FileExistsError:
        return False
    except OSError:
        # Some file systems know no hard links: the exclusive open is the next best.
        try:
            with open(file, "xb") as stream:
                stream.write(content)
        except FileExistsError:
            return False
    return True
