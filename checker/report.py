"""A Report as text for a terminal or as a JSON document. Nothing is printed here.

The text answers, in this order: did it pass, how far it came, what is wrong and where, what to do next, and what the
verdict rests on. It is plain where `color` is off, and ASCII where the terminal cannot show more.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import click

from checker import speed_rows
from checker.findings import Finding
from checker.verdict import Report, Stage

SCHEMA = 1
"""Version of the JSON document; it grows when a field changes its meaning or goes."""

MARKS = {
    "passed": ("✓", "ok", "green"),
    "failed": ("✗", "XX", "red"),
    "not_run": ("·", "..", None),
    "skipped": ("–", "--", "yellow"),
}
NOT_RUN = {"not_run": "not run", "skipped": "skipped"}


@dataclass(frozen=True, slots=True)
class Look:
    """How to write: columns, colour, plain ASCII marks, every finding instead of those of the red stage."""

    width: int = 100
    color: bool = False
    ascii: bool = False
    verbose: bool = False

    def paint(self, text: str, fg: str | None = None, *, bold: bool = False, dim: bool = False) -> str:
        """The text in a colour, or as it is."""
        if not self.color or not (fg or bold or dim):
            return text
        return click.style(text, fg=fg, bold=bold or None, dim=dim or None)

    def fill(self, text: str, indent: str = "") -> str:
        """The text wrapped into the columns. A path, and what stands in backticks, stays whole."""
        if "\n" in text or text[:1].isspace():
            # Laid out already: a traceback, a compiler's own lines.
            return textwrap.indent(text.rstrip(), indent)
        # A no-break space holds a command together while it is wrapped.
        whole = re.sub(r"`[^`]*`", lambda quoted: quoted[0].replace(" ", "\u00a0"), text)
        return textwrap.fill(
            whole,
            self.width,
            initial_indent=indent,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ).replace("\u00a0", " ")


def render(
    report: Report,
    look: Look,
    *,
    next_step: str = "",
    path: str | None = None,
    sources: Mapping[str, str] | None = None,
) -> str:
    """The report as text.

    `next_step` is the command's own last word, for it knows the ladder. `path` is the file as the learner would type
    it. `sources` may hold the text of files by name; otherwise they are read from disk to show the line.
    """
    shown = path or report.file
    findings = report.findings + (report.later if look.verbose else ())
    parts = [_headline(report, look), "\n".join(_stage_lines(report.stages, look))]
    if _untouched(report):
        parts.append(_welcome(report, shown, look))
    parts += [_finding(finding, report.file, shown, look, sources or {}) for finding in findings]
    parts.append("\n".join(_speed_lines(report, look)))
    parts.append("\n".join(_summary(report, look)))
    parts.append(_evidence(report, look))
    if next_step:
        parts.append(look.paint(look.fill(next_step), bold=True))
    return "\n\n".join(part for part in parts if part)


def _headline(report: Report, look: Look) -> str:
    if report.passed:
        return look.paint(report.kata, bold=True) + "  " + look.paint("passed", "green", bold=True)
    red = report.red
    where = f", stopped at {red.name}" if red else ""
    return look.paint(report.kata, bold=True) + "  " + look.paint("does not pass yet", "red", bold=True) + where


def _stage_lines(stages: Sequence[Stage], look: Look) -> Iterator[str]:
    """A line a stage; neighbours that did not run for the same reason share theirs."""
    for (status, reason), group in groupby(stages, key=lambda stage: (stage.status, stage.reason)):
        names = [stage.name for stage in group]
        mark, plain, colour = MARKS[status]
        start = f"  {look.paint(plain if look.ascii else mark, colour)} "
        if status in ("passed", "failed"):
            for name in names:
                yield start + (f"{name:<11} {look.paint(reason, dim=True)}" if reason else name)
        else:
            text = f"{NOT_RUN[status]}: {', '.join(names)}" + (f" ({reason})" if reason else "")
            first, *rest = look.fill(text, "     " if look.ascii else "    ").split("\n")
            yield start + look.paint(first.lstrip(), dim=True)
            yield from (look.paint(line, dim=True) for line in rest)


def _speed_lines(report: Report, look: Look) -> Iterator[str]:
    """What each speed case took: a line each where it is fast enough, all that is known where it is not, or with -v."""
    for basis, rows in groupby(report.performance, key=speed_rows.basis):
        yield look.paint(f"Speed, {basis}", bold=True)
        for row in rows:
            first, *more = speed_rows.lines(row)
            status = "not_run" if not row["decides"] else "passed" if row["enough"] else "failed"
            mark, plain, colour = MARKS[status]
            yield f"  {look.paint(plain if look.ascii else mark, colour)} {row['case']}"
            yield look.fill(first, "      ")
            shown = more if look.verbose or not row["enough"] else more[:1]
            yield from (look.paint(look.fill(line, "      "), dim=True) for line in shown)


def _untouched(report: Report) -> bool:
    return bool(report.todos) and not report.passed and all(todo.untouched for todo in report.todos)


def _welcome(report: Report, path: str, look: Look) -> str:
    count = len(report.todos)
    many = "one TODO is" if count == 1 else f"{count} TODOs are"
    return look.fill(
        f"This is how every kata begins: the file runs and fails by design, because {many} left for you. "
        f"What follows is what the check sees in {path} as it stands; it will say the same kind of thing about yours."
    )


def finding_text(finding: Finding, file: str, path: str, look: Look) -> str:
    """One finding alone, as a report shows it. `path` is how the learner would type `file`."""
    return _finding(finding, file, path, look, {})


def _finding(finding: Finding, file: str, path: str, look: Look, sources: Mapping[str, str]) -> str:
    lines = [look.paint(f"{finding.code} {finding.title}", "red", bold=True)]
    if finding.file:
        name = path if Path(finding.file).absolute() == Path(file).absolute() else _near(finding.file)
        place = [name, *(str(part) for part in (finding.line, finding.column) if part is not None)]
        lines.append("  " + look.paint(":".join(place), "cyan"))
        lines += _source_line(finding, look, sources)
    facts = [f"case {finding.case}"] if finding.case else []
    facts += [f"launch {finding.launch}"] if finding.launch else []
    lines += [look.fill(fact, "  ") for fact in (*facts, *finding.details)]
    lines += ["", look.fill(_sentence(finding.message), "  ")]
    if finding.advice:
        lines.append(look.fill(_sentence(finding.advice), "  "))
    lines.append("  " + look.paint(f"More: kata explain {finding.code}", dim=True))
    return "\n".join(lines)


def _near(file: str) -> str:
    """A path as one would type it from here, where that is shorter."""
    try:
        return str(Path(file).relative_to(Path.cwd()))
    except ValueError:
        return file


def _source_line(finding: Finding, look: Look, sources: Mapping[str, str]) -> list[str]:
    if finding.file is None or finding.line is None:
        return []
    text = sources.get(finding.file)
    if text is None:
        try:
            text = Path(finding.file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return []
    lines = text.splitlines()
    if not 1 <= finding.line <= len(lines):
        return []
    line = lines[finding.line - 1].rstrip()
    gutter = f"  {finding.line:>5} | "
    shown = [gutter + line.expandtabs(4)]
    if finding.column is not None and finding.column <= len(line):
        before = line[: finding.column - 1].expandtabs(4)
        shown.append(" " * (len(gutter) - 2) + "| " + " " * len(before) + look.paint("^", "red", bold=True))
    return shown


def _sentence(text: str) -> str:
    text = text.strip()
    if not text:
        return text
    start = text[0].upper() if text.split(maxsplit=1)[0].isalpha() else text[0]
    return start + text[1:] + ("" if text[-1] in ".!?:" else ".")


def _summary(report: Report, look: Look) -> Iterator[str]:
    if not report.passed and report.cases_total:
        smallest = f", smallest failing {report.smallest_failing}" if report.smallest_failing else ""
        noun = "case" if report.cases_total == 1 else "cases"
        yield look.fill(f"{report.cases_green} of {report.cases_total} {noun} green{smallest}")
    if not report.passed and report.todos:
        yield "TODOs in the file:"
        yield from (
            look.fill(f"  {todo.number}  line {todo.line}: {todo.text}" + ("" if todo.untouched else " (begun)"))
            for todo in report.todos
        )
    hidden = len(report.later)
    if hidden and not look.verbose:
        yield f"{hidden} more {'finding' if hidden == 1 else 'findings'} in later stages: -v shows them."
    yield from (look.fill(f"Note: {note}") for note in report.notes)


def _evidence(report: Report, look: Look) -> str:
    device = report.device
    how = "on a virtual" if device.get("kind") == "virtual" else "on"
    target = f" ({device['target']})" if device.get("target") else ""
    versions = _versions(report.versions)
    text = f"Checked {how} {device.get('name', 'unknown device')}{target}{versions}; {report.seconds:.1f} s."
    repeat = f"Seed {report.seed}: repeat this run with --seed {report.seed}."
    return "\n".join(look.paint(look.fill(line), dim=True) for line in (text, repeat))


def _versions(versions: Mapping[str, str]) -> str:
    names = {"triton": "Triton", "torch": "PyTorch", "python": "Python"}
    return "".join(f", {label} {versions[key]}" for key, label in names.items() if versions.get(key))


def document(report: Report) -> dict[str, Any]:
    """The report as a JSON-able document of version `SCHEMA`."""
    return {
        "schema": SCHEMA,
        "kata": report.kata,
        "file": report.file,
        "passed": report.passed,
        "device": dict(report.device),
        "versions": dict(report.versions),
        "seed": report.seed,
        "seconds": round(report.seconds, 3),
        "stages": [asdict(stage) for stage in report.stages],
        "findings": [finding.to_dict() for finding in report.findings],
        "cases": {
            "green": report.cases_green,
            "total": report.cases_total,
            "smallest_failing": report.smallest_failing,
        },
        "todos": [asdict(todo) for todo in report.todos],
        "notes": list(report.notes),
        "performance": [dict(row) for row in report.performance],
    }


def documents(reports: Sequence[Report]) -> dict[str, Any]:
    """Several reports as one JSON-able document."""
    return {
        "schema": SCHEMA,
        "passed": all(report.passed for report in reports),
        "katas": [document(report) for report in reports],
    }
