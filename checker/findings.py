"""The catalogue of diagnoses and the `Finding`: one mistake, at one place, in the learner's file.

A finding is a fact with a place. Which findings are shown is `checker.verdict`'s business, how they look is
`checker.report`'s. This module imports neither torch nor Triton.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from checker.diagnoses.model import STAGES, Diagnosis

__all__ = ["CATALOGUE", "FAMILIES", "STAGES", "Diagnosis", "Finding"]

_TITLES = {
    "source": {
        "K001": "the kernel file is missing or cannot be read",
        "K002": "time limit reached",
        "K003": "the process crashed",
        "K004": "memory limit reached",
        "K005": "the file ended the process",
        "K006": "the environment lacks something",
        "K007": "an error of the checker itself",
        "K008": "not modelled by the virtual GPU",
        "K101": "the file does not parse",
        "K103": "the entry point is missing",
        "K104": "the entry point has another signature",
        "K105": "importing the file raised an exception",
        "K106": "a device is written into the code",
        "K107": "a method is named but not called",
        "K108": "a pointer argument is overwritten",
        "K110": "a forbidden import",
        "K111": "comparisons joined by & without parentheses",
    },
    "compile": {
        "K200": "the kernel does not compile",
        "K201": "the length of a block is not a power of two",
        "K202": "a shape needs a compile-time constant",
        "K203": "a block has more than 2^20 elements",
        "K204": "a global that is not tl.constexpr",
        "K205": "if or while on a block",
        "K206": "and, or, not on blocks",
        "K207": "a chained comparison on blocks",
        "K208": "break, continue or return inside a loop",
        "K209": "a loop changes the type of a variable",
        "K210": "NumPy-style indexing or assignment",
        "K211": "a function that Triton cannot compile",
        "K212": "an undefined name",
        "K213": "other without mask",
        "K214": "a block mask or value with a scalar pointer",
        "K215": "shapes do not broadcast",
        "K216": "the operation needs another dtype",
        "K217": "the operands of a dot differ in dtype",
        "K218": "the tiles of a dot are too small or do not match",
        "K220": "num_warps or num_stages is not allowed",
        "K221": "out of shared memory",
        "K222": "too many threads or registers",
        "K224": "Python that is outside the kernel language",
        "K301": "the grid is of the wrong kind",
        "K302": "a kernel called without a grid",
        "K303": "the arguments of the launch do not match the kernel",
        "K304": "an argument of the launch is of the wrong kind",
        "K305": "a tensor is on another device",
        "K306": "the grid is empty or too large",
        "K307": "no kernel was launched",
        "K308": "the wrapper raised an exception",
    },
    "memory": {
        "K401": "load outside the tensor",
        "K402": "store outside the tensor",
        "K403": "an int32 offset overflowed",
        "K404": "elements that were never written",
        "K405": "load of memory that nothing has written",
        "K406": "store into an input",
        "K407": "masked-off lanes reach the result",
        "K409": "a false alignment hint",
        "K410": "the gap of a view reaches the result",
        "K501": "two programs store different values to one element",
        "K502": "two lanes store different values to one element",
        "K503": "a program reads what another one stored in the same launch",
        "K504": "read-modify-write of shared memory without an atomic",
        "K505": "waiting for a program that has not run",
    },
    "values": {
        "K601": "wrong values",
        "K602": "wrong shape",
        "K603": "wrong dtype",
        "K604": "the function did not return a tensor",
        "K605": "the same call gives another result",
        "K606": "a bad input was accepted",
        "K607": "a good input was refused",
        "K608": "the result shares memory with an input",
    },
    "predictions": {
        "K651": "a prediction is wrong",
        "K652": "a prediction is missing or of the wrong kind",
        "K653": "a prediction raised an exception",
    },
    "numerics": {
        "K701": "less exact than it must be",
        "K702": "overflow with large values",
        "K703": "wrong with -inf or NaN",
        "K704": "wrong with tiny values",
    },
    "fairness": {
        "K901": "PyTorch did the work",
        "K902": "the result was not stored by a kernel of this file",
        "K903": "the result of an earlier call was returned",
    },
}

CATALOGUE: Mapping[str, Diagnosis] = MappingProxyType(
    {code: Diagnosis(code, stage, title, "") for stage, titles in _TITLES.items() for code, title in titles.items()}
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
        from dataclasses import replace

        return replace(finding, stage_override=stage)
