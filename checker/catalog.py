"""The ladder of katas, read from each folder's kata.toml. Never imports torch, so that listing is instant."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checker.errors import KataUsageError

STARTS = ("blank", "slow", "faulty")
"""What a skeleton's TODO blocks hold: nothing yet, code to make faster, or code to mend."""


@dataclass(frozen=True, slots=True)
class TodoText:
    """One TODO of a kata: its number, what to do, and a ladder of hints that never holds the code."""

    number: int
    text: str
    hints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kata:
    """One kata. `requires` holds ids of katas on lower rungs; `fails_at` is the stage its skeleton fails."""

    id: str
    title: str
    lesson: int
    minutes: int
    outcomes: tuple[str, ...]
    entry: str
    signature: str
    requires: tuple[str, ...]
    start: str
    fails_at: str
    aliases: tuple[str, ...]
    todos: tuple[TodoText, ...]
    folder: Path

    @property
    def number(self) -> int:
        """Its place on the ladder, from the id."""
        return int(self.id.split("_", 1)[0])

    @property
    def root(self) -> Path:
        """The folder that holds katas/ and solutions/."""
        return self.folder.parent.parent

    @property
    def kernel(self) -> Path:
        """The learner's file."""
        return self.folder / "kernel.py"

    @property
    def skeleton(self) -> Path:
        """What the learner's file starts as."""
        return self.folder / "skeleton.py"

    @property
    def spec(self) -> Path:
        """Cases, inputs and reference."""
        return self.folder / "spec.py"

    @property
    def readme(self) -> Path:
        """The text to read first."""
        return self.folder / "README.md"

    @property
    def solution(self) -> Path:
        """The same module, solved."""
        return self.root / "solutions" / f"{self.id}.py"


def find_root(start: Path | None = None) -> Path:
    """The folder that holds katas/ and solutions/.

    KATA_ROOT wins; then the nearest such folder at or above `start` (the working directory); then the tree this
    package was installed from. Otherwise KataUsageError, naming what was tried.
    """
    named = os.environ.get("KATA_ROOT")
    if named:
        root = Path(named).expanduser().resolve()
        if _is_root(root):
            return root
        raise KataUsageError(
            f"KATA_ROOT is {named}, which holds no katas/ and solutions/.",
            next_step="Set KATA_ROOT to the folder of your clone, or unset it.",
        )
    here = (start or Path.cwd()).resolve()
    installed = Path(__file__).resolve().parent.parent
    for folder in (here, *here.parents, installed):
        if _is_root(folder):
            return folder
    raise KataUsageError(
        f"No kata folder found: neither {here} nor a folder above it holds katas/ and solutions/, "
        f"nor does {installed}.",
        next_step="Run `kata` inside your clone, or set KATA_ROOT to its folder.",
    )


def _is_root(folder: Path) -> bool:
    return (folder / "katas").is_dir() and (folder / "solutions").is_dir()


def load(root: Path) -> tuple[Kata, ...]:
    """All katas of a tree in ladder order."""
    files = sorted((root / "katas").glob("[0-9][0-9]_*/kata.toml"))
    if not files:
        raise KataUsageError(
            f"{root / 'katas'} holds no katas.", next_step="Restore the folder with `git checkout -- katas`."
        )
    return tuple(read_kata(file.parent) for file in files)


def read_kata(folder: Path) -> Kata:
    """The kata of one folder. A kata.toml that cannot be read raises KataUsageError, naming the file."""
    file = folder / "kata.toml"
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        kata = _kata(data, folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise KataUsageError(
            f"{file} cannot be read: {what}.", next_step=f"Restore it with `git checkout -- {file}`."
        ) from error
    return kata


def _kata(data: dict[str, Any], folder: Path) -> Kata:
    if data["id"] != folder.name:
        raise ValueError(f"its id is {data['id']!r} but its folder is {folder.name!r}")
    if data["start"] not in STARTS:
        raise ValueError(f"start is {data['start']!r}; it must be one of {', '.join(STARTS)}")
    return Kata(
        id=data["id"],
        title=data["title"],
        lesson=data["lesson"],
        minutes=data["minutes"],
        outcomes=tuple(data["outcomes"]),
        entry=data["entry"],
        signature=data["signature"],
        requires=tuple(data["requires"]),
        start=data["start"],
        fails_at=data["fails_at"],
        aliases=tuple(data.get("aliases", ())),
        todos=tuple(TodoText(todo["number"], todo["text"], tuple(todo["hints"])) for todo in data.get("todo", ())),
        folder=folder,
    )


def resolve(query: str, katas: Sequence[Kata]) -> Kata:
    """The kata meant by a number, an id, an alias or a part of either that fits one kata only.

    Otherwise KataUsageError: with the candidates if several fit, with the nearest name if none does.
    """
    wanted = query.strip().lower().rstrip("/").rsplit("/", 1)[-1]
    if wanted.isdigit():
        matches = [kata for kata in katas if kata.number == int(wanted)]
    else:
        plain = wanted.replace("-", "_").replace(" ", "_")
        exact = [kata for kata in katas if plain in (kata.id, kata.id.partition("_")[2], *kata.aliases)]
        matches = exact or [kata for kata in katas if any(plain in name for name in _names(kata))]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise KataUsageError(
            f"{query!r} fits more than one kata: {', '.join(kata.id for kata in matches)}.",
            next_step="Give its number or more of its name.",
        )
    owners = {name: kata for kata in katas for name in _names(kata)}
    near = difflib.get_close_matches(wanted, owners, n=1, cutoff=0.4)
    raise KataUsageError(
        f"There is no kata {query!r}." + (f" Did you mean {owners[near[0]].id}?" if near else ""),
        needed="A kata is named by its number, its id or a part of it.",
        next_step="`kata list` shows them all.",
    )


def _names(kata: Kata) -> tuple[str, ...]:
    return (kata.id, kata.id.partition("_")[2], *kata.aliases)
