"""What a diagnosis is: a code that names a kind of mistake, and the words that teach about it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

STAGES = ("source", "compile", "memory", "values", "numerics", "predictions", "fairness", "speed")
"""The stages of a check, in the order of the craft: semantics, then numerics, then performance."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One kind of mistake.

    `code` is stable and never reused. `stage` is the stage that a finding of this kind turns red unless the finding
    says otherwise. `explanation` is a few sentences, `example` the mistake in a few lines of real code, `mend` the
    same lines made right; both may be empty where code would teach nothing.
    """

    code: str
    stage: str
    title: str
    explanation: str
    example: str = ""
    mend: str = ""


def diagnosis(code: str, stage: str, title: str, explanation: str, example: str = "", mend: str = "") -> Diagnosis:
    """A diagnosis from indented literals: prose is joined into paragraphs, code is dedented."""
    paragraphs = [" ".join(part.split()) for part in explanation.strip().split("\n\n")]
    return Diagnosis(code, stage, title, "\n\n".join(paragraphs), _code(example), _code(mend))


def _code(text: str) -> str:
    return textwrap.dedent(text).strip("\n")
