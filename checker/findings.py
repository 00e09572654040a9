"""The catalogue of diagnoses and the `Finding`: one mistake, at one place, in the learner's file.

A finding is a fact with a place. Which findings are shown is `checker.verdict`'s business, how they look is
`checker.report`'s. This module imports neither torch nor Triton.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from checker.diagnoses import (
    environment,
    fairness,
    host,
    language,
    launching,
    memory,
    numerics,
    races,
    shapes,
    source,
    speed,
    values,
)
from checker.diagnoses.model import STAGES, Diagnosis

__all__ = ["CATALOGUE", "FAMILIES", "STAGES", "Diagnosis", "Finding"]

CATALOGUE: Mapping[str, Diagnosis] = MappingProxyType(
    {
        entry.code: entry
        for entry in sorted(
            (
                *environment.ENTRIES,
                *source.ENTRIES,
                *language.ENTRIES,
                *shapes.ENTRIES,
                *launching.ENTRIES,
                *memory.ENTRIES,
                *races.ENTRIES,
                *values.ENTRIES,
                *host.ENTRIES,
                *numerics.ENTRIES,
                *fairness.ENTRIES,
                *speed.ENTRIES,
            ),
            key=lambda entry: entry.code,
        )
    }
)
"""Every diagnosis by its code."""

FAMILIES: Mapping[str, str] = MappingProxyType(
    {
        "K0": "environment and limits",
        "K1": "source",
        "K2": "compile",
        "K3": "launch",
        "K4": "memory",
        "K5": "races",
        "K6": "values and predictions",
        "K7": "numerics",
        "K8": "speed",
        "K9": "fairness",
    }
)
"""What the first digit of a code says."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake at one place.

    `line` and `column` are 1-based; the column is that of the expression the finding is about. `message` says what
    happened, `advice` where to look. `details` are short facts in the order they should be read ("program (3,)").
    `stage_override` is for codes that can turn up in any stage, such as the time limit.
    """

    code: str
    message: str
    advice: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    case: str | None = None
    launch: str | None = None
    details: tuple[str, ...] = ()
    stage_override: str | None = None

    def __post_init__(self) -> None:
        if self.code not in CATALOGUE:
            raise ValueError(f"no diagnosis has the code {self.code!r}; checker/diagnoses/ holds those that exist")
        if self.stage_override is not None and self.stage_override not in STAGES:
            raise ValueError(f"no stage is called {self.stage_override!r}; stages are {', '.join(STAGES)}")

    @property
    def title(self) -> str:
        """The diagnosis in a few words, from the catalogue."""
        return CATALOGUE[self.code].title

    @property
    def stage(self) -> str:
        """The stage that this finding turns red."""
        return self.stage_override or CATALOGUE[self.code].stage

    def root(self) -> tuple[str, str | None, int | None]:
        """What makes two findings one: the same kind of mistake on the same line."""
        return (self.code, self.file, self.line)

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able form; `from_dict` is its inverse."""
        return {
            "code": self.code,
            "title": self.title,
            "stage": self.stage,
            "message": self.message,
            "advice": self.advice,
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "case": self.case,
            "launch": self.launch,
            "details": list(self.details),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Finding:
        """Rebuild a finding from `to_dict`. An unknown code raises ValueError."""
        finding = cls(
            code=data["code"],
            message=data["message"],
            advice=data["advice"],
            file=data.get("file"),
            line=data.get("line"),
            column=data.get("column"),
            case=data.get("case"),
            launch=data.get("launch"),
            details=tuple(data.get("details", ())),
        )
        stage = data.get("stage")
        if stage is None or stage == finding.stage:
            return finding
        return replace(finding, stage_override=stage)
