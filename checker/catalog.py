"""The ladder of katas, read from each folder's kata.toml. Never imports torch, so that listing is instant."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from checker.errors import KataUsageError

STARTS = ("blank", "slow", "faulty")
"""What a skeleton's TODO blocks hold: nothing yet, code to make faster, or code to mend."""


AGAINST = ("bound", "bytes", "reference", "torch")
"""What a threshold may refer to: the physical bound, the least bytes, the solution, or eager PyTorch."""


@dataclass(frozen=True, slots=True)
class SpeedCase:
    """One input on which a kernel is timed, and the one threshold that binds there.

    `params` are those of the spec's cases, dtypes by name. The ratio that must be `at_least` so large is the figure
    named by `to` over the kernel's own: the bound's time, the least bytes over those requested, the solution's time,
    or the time of the spec's function `against` as eager PyTorch. `refuses` and `passes` name a slow and a plain
    kernel with their ratios, so that a reader sees what the threshold tells apart.
    """

    id: str
    params: Mapping[str, Any]
    to: str
    at_least: float
    against: str
    refuses: str
    passes: str


@dataclass(frozen=True, slots=True)
class TodoText:
    """One TODO of a kata: its number, what to do, and a ladder of hints that never holds the code."""

    number: int
    text: str
    hints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kata:
    """One kata. `requires` holds ids of katas on lower rungs; `fails_at` is the stage its skeleton fails.

    `fairness` is False where the lesson is on the host, so that nobody asks which kernel stored the result.
    """

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
    speed: tuple[SpeedCase, ...] = ()
    fairness: bool = True

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
        speed=tuple(_speed_case(case) for case in data.get("speed", ())),
        fairness=_flag(data, "fairness", default=True),
    )


def _flag(data: dict[str, Any], name: str, *, default: bool) -> bool:
    value = data.get(name, default)
    if not isinstance(value, bool):
        raise ValueError(f"{name} is {value!r}; it must be true or false")
    return value


def _speed_case(data: dict[str, Any]) -> SpeedCase:
    if data["to"] not in AGAINST:
        raise ValueError(
            f"speed case {data['case']!r} refers to {data['to']!r}; it must be one of {', '.join(AGAINST)}"
        )
    if not data["at_least"] > 0:
        raise ValueError(f"speed case {data['case']!r} has at_least = {data['at_least']}; it must be above 0")
    return SpeedCase(
        id=data["case"],
        params={name: tuple(value) if isinstance(value, list) else value for name, value in data["params"].items()},
        to=data["to"],
        at_least=float(data["at_least"]),
        against=data.get("against", "eager" if data["to"] == "torch" else ""),
        refuses=data["refuses"],
        passes=data["passes"],
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
