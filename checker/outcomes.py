"""The lessons and what a learner can do after each, read from katas/outcomes.toml. Never imports torch."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from checker.errors import KataUsageError

__all__ = ["Lesson", "load_lessons"]


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson: its number, its title, and its outcomes in words by their id, such as "L3.1"."""

    number: int
    title: str
    outcomes: Mapping[str, str]


def load_lessons(root: Path) -> tuple[Lesson, ...]:
    """All lessons of a tree in their order; KataUsageError where the file cannot be read."""
    file = root / "katas" / "outcomes.toml"
    try:
        lessons = tomllib.loads(file.read_text(encoding="utf-8"))["lesson"]
        return tuple(Lesson(one["number"], one["title"], dict(one["outcomes"])) for one in lessons)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KataUsageError(
            f"{file} cannot be read: {error}.", next_step=f"Restore it with `git checkout -- {file}`."
        ) from error
