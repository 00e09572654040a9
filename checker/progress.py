"""How far the learner has come, kept in .kata/progress.json so that nothing ends it: no kill, no second process.

Every change is read, made and renamed into place under one lock. A damaged file is set aside, never deleted, and what
the folders show is rebuilt from them. Where nothing can be written, reading still works and the change is reported
as not saved: a check must not depend on this file.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from checker.catalog import Kata

VERSION = 1
REVEAL_AFTER = 3
"""On this try at a kata's predictions, the truth is shown."""
LOCK_SECONDS = 10.0


@dataclass(slots=True)
class Progress:
    """What is known about a learner. Keys are kata ids; hashes are sha256 of the file that passed or was tried.

    `hints` counts, per kata, how many hints of each TODO (as text, for JSON) were shown. `tries` holds, per kata, how
    many different files had wrong predictions, and the hash of the last one.
    """

    unlocked: list[str] = field(default_factory=list)
    passed: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    hints: dict[str, dict[str, int]] = field(default_factory=dict)
    tries: dict[str, tuple[int, str]] = field(default_factory=dict)

    def state(self, kata: Kata) -> str:
        """passed, changed (passed, but the file is another one now), skipped, open or locked."""
        if kata.id in self.passed:
            return "passed" if self.passed[kata.id] == digest(kata.kernel) else "changed"
        if kata.id in self.skipped:
            return "skipped"
        return "open" if kata.id in self.unlocked else "locked"

    def current(self, katas: Sequence[Kata]) -> Kata:
        """The kata to work on: the first that is open, else the highest that is unlocked, else the first."""
        unlocked = [kata for kata in katas if kata.id in self.unlocked]
        waiting = [kata for kata in unlocked if kata.id not in self.passed and kata.id not in self.skipped]
        if waiting:
            return waiting[0]
        return unlocked[-1] if unlocked else katas[0]

    def following(self, katas: Sequence[Kata]) -> Kata | None:
        """The kata that `kata next` unlocks: the lowest locked rung."""
        return next((kata for kata in katas if kata.id not in self.unlocked), None)

    def unbroken(self, katas: Sequence[Kata]) -> int:
        """How many katas from the first one on have passed without a gap."""
        return next((count for count, kata in enumerate(katas) if kata.id not in self.passed), len(katas))

    def reveals(self, kata: Kata, sha: str | None) -> bool:
        """Whether the check of the file with this hash may show the truth behind the predictions."""
        count, last = self.tries.get(kata.id, (0, ""))
        return kata.id in self.passed or count + (sha != last) >= REVEAL_AFTER

    def passes(self, kata: Kata, sha: str) -> None:
        """Record that the file with this hash passed."""
        self.passed[kata.id] = sha
        if kata.id in self.skipped:
            self.skipped.remove(kata.id)

    def tried(self, kata: Kata, sha: str) -> None:
        """Count a try at the predictions, once for each different file."""
        count, last = self.tries.get(kata.id, (0, ""))
        if sha != last:
            self.tries[kata.id] = (count + 1, sha)

    def unlocks(self, kata: Kata) -> None:
        """Record that a kata is unlocked."""
        if kata.id not in self.unlocked:
            self.unlocked.append(kata.id)

    def skips(self, kata: Kata) -> None:
        """Record that a kata was skipped."""
        if kata.id not in self.skipped:
            self.skipped.append(kata.id)

    def next_hint(self, kata: Kata, todo: int, available: int) -> int:
        """The 1-based number of the next hint of a TODO, counted as shown; the last one again when all were shown."""
        shown = self.hints.setdefault(kata.id, {})
        shown[str(todo)] = min(shown.get(str(todo), 0) + 1, available)
        return shown[str(todo)]


class ProgressNotSaved(Exception):
    """The change could not be written; the message says why and what still works."""


class Store:
    """The progress file of one tree. `notices` holds what the learner must be told about it."""

    def __init__(self, root: Path, katas: Sequence[Kata]) -> None:
        self.folder = root / ".kata"
        self.file = self.folder / "progress.json"
        self.notices: list[str] = []
        self._katas = katas

    def read(self) -> Progress:
        """The progress now. A damaged file is set aside and rebuilt; an unreadable one counts as empty."""
        try:
            return _decode(self.file.read_bytes())
        except FileNotFoundError:
            return Progress()
        except OSError as error:
            self._notice(f"{self.file} cannot be read ({error.strerror}), so your progress is not shown.")
            return self._from_folders()
        except ValueError as error:
            return self._mend(error)

    def update(self, change: Callable[[Progress], None]) -> Progress:
        """Read, change and write the progress as one step. Raises ProgressNotSaved where it cannot be written."""
        try:
            with self._locked():
                progress = self._read_locked()
                change(progress)
                self._write(progress)
                return progress
        except OSError as error:
            raise ProgressNotSaved(
                f"Progress is not saved: {error.filename or self.folder} cannot be written "
                f"({error.strerror or error}). Checks still run; make the folder writable to keep your progress."
            ) from error

    def _read_locked(self) -> Progress:
        try:
            return _decode(self.file.read_bytes())
        except FileNotFoundError:
            return Progress()
        except ValueError as error:
            return self._set_aside(error)

    def _mend(self, error: ValueError) -> Progress:
        try:
            with self._locked():
                progress = self._read_locked()
                self._write(progress)
                return progress
        except OSError:
            self._notice(f"{self.file} is damaged ({error}) and cannot be replaced: the folder is not writable.")
            return self._from_folders()

    def _set_aside(self, error: ValueError) -> Progress:
        number = 1
        while (aside := self.folder / f"progress.json.damaged-{number}").exists():
            number += 1
        os.rename(self.file, aside)
        self._notice(
            f"{self.file} was damaged ({error}). It is kept as {aside.name}; what is unlocked was read from the "
            "folders. `kata check --all` finds out again what passes."
        )
        return self._from_folders()

    def _from_folders(self) -> Progress:
        return Progress(unlocked=[kata.id for kata in self._katas if kata.kernel.exists()])

    def _write(self, progress: Progress) -> None:
        # Under the lock one name is enough, and what a kill leaves behind is overwritten by the next write.
        replace_file(self.file, json.dumps({"version": VERSION, **asdict(progress)}, indent=1).encode() + b"\n")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        # Here, because it is only needed to write, and the commands that only read must answer at once.
        from filelock import FileLock, Timeout

        self.folder.mkdir(exist_ok=True)
        try:
            with FileLock(self.folder / "lock", timeout=LOCK_SECONDS):
                yield
        except Timeout as error:
            raise OSError(None, f"another `kata` has held the lock for {LOCK_SECONDS:.0f} s", str(self.file)) from error

    def _notice(self, text: str) -> None:
        if text not in self.notices:
            self.notices.append(text)


def _decode(raw: bytes) -> Progress:
    """The progress in a file's bytes; ValueError says in a few words what is wrong with them."""
    try:
        data = json.loads(raw)
    except ValueError as error:
        raise ValueError("not JSON") from error
    if not isinstance(data, dict):
        raise ValueError("not a JSON object")
    if data.get("version") != VERSION:
        raise ValueError(f"version {data.get('version')!r}, not {VERSION}")
    try:
        return Progress(
            unlocked=[_text(item) for item in data["unlocked"]],
            passed={_text(kata): _text(sha) for kata, sha in data["passed"].items()},
            skipped=[_text(item) for item in data["skipped"]],
            hints={
                _text(kata): {_text(todo): int(count) for todo, count in shown.items()}
                for kata, shown in data["hints"].items()
            },
            tries={_text(kata): (int(count), _text(sha)) for kata, (count, sha) in data["tries"].items()},
        )
    except KeyError as error:
        raise ValueError(f"without {error}") from error
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError("with a field of the wrong kind") from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def digest(file: Path) -> str | None:
    """The sha256 of a file in hexadecimal, or None where it cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return None


def replace_file(file: Path, content: bytes) -> None:
    """Put new content in place of a file so that a reader, or a kill, meets the old or the new, never a part."""
    temporary = file.with_name(file.name + ".tmp")
    with open(temporary, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(temporary, file)
