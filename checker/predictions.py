"""Compares a learner's predictions with what running, tracing or compiling shows."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from checker.attempt import Subject
from checker.cases import Question
from checker.findings import Finding
from checker.lab import Lab
from checker.limits import LimitReachedError

__all__ = ["Predictions", "check_predictions"]


@dataclass
class Predictions:
    """What became of the learner's predictions."""

    findings: list[Finding]
    right: int
    total: int


def check_predictions(subject: Subject, seed: int) -> Predictions:
    """Asks every drawn question and compares the answers with what running, tracing or compiling shows."""
    make: Callable[[random.Random], list[Question]] | None = getattr(subject.spec, "questions", None)
    questions = make(random.Random(seed)) if make else []  # noqa: S311  # questions are drawn, not secrets
    lab = Lab(subject.vgpu, subject.spec)
    right = 0
    first: Finding | None = None
    wrong: list[str] = []
    for question in questions:
        problem, answer = _ask(subject, question)
        if problem is not None:
            first = first or problem
            continue
        truth = question.truth(lab)
        if not _same_kind(answer, truth):
            kind, wanted = type(answer).__name__, type(truth).__name__
            message = (
                f"{question.entry}{_arguments(question)} is {answer!r}, of type {kind}; the answer is of type {wanted}"
            )
            first = first or Finding(
                "K652", message, "Its annotation says what to return.", **_defined(subject, question)
            )
            continue
        if _agrees(answer, truth, question.tolerance):
            right += 1
            continue
        shown = f"{question.entry}({', '.join(map(repr, question.args))}) -> {answer!r}"
        wrong.append(shown + (f"; the truth is {truth!r}" if subject.reveal else ""))
        if first is None:
            first = Finding(
                "K651",
                f"{question.entry}{_arguments(question)} is not {answer!r}"
                + (f": it is {truth!r}" if subject.reveal else ""),
                _advice(answer, subject.reveal),
                **_defined(subject, question),
            )
    if first is not None:
        details = (f"{right} of {len(questions)} predictions are right", *(f"not {line}" for line in wrong[:4]))
        first = replace(first, details=details)
    return Predictions([first] if first else [], right, len(questions))


def _advice(answer: Any, reveal: bool) -> str:
    if reveal:
        return "Find where your reasoning and the truth part ways."
    if isinstance(answer, (int, float)) and not isinstance(answer, bool):
        return "Work it out on paper for a small case, then in general; the lesson has all that is needed."
    return "Say in a sentence why it must be so: where the sentence fails, the answer does. See the lesson."


def _arguments(question: Question) -> str:
    return f"({', '.join(map(repr, question.args))})"


def _defined(subject: Subject, question: Question) -> dict[str, Any]:
    """Where the prediction is defined, as arguments of a finding."""
    code = getattr(getattr(subject.module, question.entry, None), "__code__", None)
    return {"file": str(subject.file), "line": code.co_firstlineno if code else None}


def _ask(subject: Subject, question: Question) -> tuple[Finding | None, Any]:
    function = getattr(subject.module, question.entry, None)
    place = _defined(subject, question)
    if not callable(function):
        message = f"the file has no function {question.entry}, which holds a prediction"
        return Finding("K652", message, "Take its frame from the skeleton.", **place), None
    try:
        answer = function(*question.args)
    except LimitReachedError:
        raise
    except Exception as error:  # a prediction that raises is a wrong prediction
        message = f"{question.entry}{_arguments(question)} raised {type(error).__name__}: {error}"
        return Finding("K653", message, "A prediction is a plain function of its arguments.", **place), None
    if answer is None:
        message = f"{question.entry}{_arguments(question)} is not answered yet"
        return Finding("K652", message, question.text or "The lesson asks this question.", **place), None
    return None, answer


def _same_kind(answer: Any, truth: Any) -> bool:
    """Whether an answer can be compared with the truth at all: a number with a number, a sequence with a sequence."""
    kinds = ((int, float), (list, tuple), (str,))
    return all(isinstance(answer, kind) for kind in kinds if isinstance(truth, kind))


def _agrees(answer: Any, truth: Any, tolerance: float) -> bool:
    if isinstance(truth, (list, tuple)) and isinstance(answer, (list, tuple)):
        pairs = list(zip(answer, truth, strict=False))
        return len(answer) == len(truth) and all(_agrees(a, t, tolerance) for a, t in pairs)
    if isinstance(truth, bool) or isinstance(answer, bool):
        return bool(isinstance(answer, (bool, int)) and answer == truth)
    if isinstance(truth, (int, float)) and isinstance(answer, (int, float)):
        return bool(answer == truth or abs(answer - truth) <= tolerance * abs(truth))
    if isinstance(truth, str) and isinstance(answer, str):
        return answer.strip().lower() == truth.strip().lower()
    return bool(answer == truth)
