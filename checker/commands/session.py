"""What every command starts from: the tree, its katas and the learner's progress. Never imports torch."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click

from checker.catalog import Kata, find_root, load, resolve
from checker.errors import EnvironmentProblem
from checker.progress import Progress, ProgressNotSaved, Store
from checker.workspace import create_kernel


@dataclass(slots=True)
class Session:
    """One run of a command. `progress` is kept as it was last read or written."""

    root: Path
    katas: tuple[Kata, ...]
    store: Store
    progress: Progress

    def kata(self, query: str | None) -> Kata:
        """The kata that was named, else the current one."""
        return resolve(query, self.katas) if query else self.progress.current(self.katas)

    def update(self, change: Callable[[Progress], None]) -> bool:
        """Change the progress; where it cannot be saved, say so, keep the change for this run, and return False."""
        try:
            self.progress = self.store.update(change)
        except ProgressNotSaved as error:
            change(self.progress)
            notice(str(error))
            return False
        finally:
            self._tell()
        return True

    def unlock(self, kata: Kata) -> bool:
        """Give the learner the kata: its kernel.py first, then the record of it. Returns False if it cannot be made."""
        if self.make_kernel(kata) is None:
            return False
        return self.update(lambda progress: progress.unlocks(kata))

    def make_kernel(self, kata: Kata) -> bool | None:
        """Make the learner's file unless there is one: True if it was made, None (and a notice) if it cannot be."""
        try:
            return create_kernel(kata)
        except OSError as error:
            notice(
                f"{self.path(kata.kernel)} cannot be made from the skeleton ({error.strerror}): "
                "make the folder writable to work on this kata."
            )
            return None

    def file_of(self, kata: Kata) -> Path:
        """The file that stands for a kata: the learner's, else the skeleton, as plain pytest has it.

        Where the learner's file of an unlocked kata is gone, it is made again and she is told.
        """
        if kata.kernel.exists() or kata.kernel.is_symlink():
            return kata.kernel
        if self.progress.state(kata) != "locked" and self.make_kernel(kata):
            notice(f"{self.path(kata.kernel)} was missing: it is the skeleton again.")
            return kata.kernel
        notice(f"{self.path(kata.skeleton)} is checked, since there is no kernel.py.")
        return kata.skeleton

    def path(self, file: Path) -> str:
        """A path as the learner would type it: relative where it lies below the working directory or the tree."""
        for folder in (Path.cwd(), self.root):
            if file.is_relative_to(folder):
                return str(file.relative_to(folder))
        return str(file)

    def say_if_locked(self, kata: Kata) -> None:
        """One line on stderr where a command works on a kata that is not unlocked yet."""
        if self.progress.state(kata) == "locked":
            notice(f"{kata.id} is still locked: you may look, and `kata next` unlocks katas in their order.")

    def _tell(self) -> None:
        for text in self.store.notices:
            notice(text)
        self.store.notices.clear()


def open_session() -> Session:
    """Find the tree, read the progress, and on the very first command unlock the first kata."""
    root = find_root()
    katas = load(root)
    store = Store(root, katas)
    session = Session(root, katas, store, store.read())
    session._tell()
    if katas[0].id not in session.progress.unlocked and not session.unlock(katas[0]):
        # Nothing can be written here. The first kata is open all the same, so that it can be looked at and checked.
        session.progress.unlocks(katas[0])
    return session


def notice(text: str) -> None:
    """Something the learner should know beside the answer: on stderr, so that pipes and --json stay clean."""
    click.echo(text, err=True)


def width() -> int:
    """Columns to write in: the terminal's, between 60 and 120; 100 where there is none."""
    return max(60, min(shutil.get_terminal_size((100, 24)).columns, 120))


def require_linux(what: str) -> None:
    """Triton has wheels for Linux only; elsewhere say what to do instead of failing at an import."""
    if sys.platform != "linux":
        raise EnvironmentProblem(
            f"{what} needs Triton, which exists for Linux only; this is {sys.platform}.\n"
            "Open the folder in its dev container (.devcontainer/), or clone it on a Linux machine or in WSL.\n"
            "Reading works here: kata, kata list, kata hint and kata explain."
        )
