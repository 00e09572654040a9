"""One kata in one pytest run: its spec, the learner's module, what has been found so far, and the records of it.

The plugin's hooks know pytest; this knows katas. Heavy imports happen here, when the first test needs them.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from checker import devices, limits
from checker.catalog import Kata, load
from checker.compiler_output import reading_compiler_output
from checker.diagnose import from_exception
from checker.findings import Finding
from checker.lint import LintResult, lint
from checker.loading import LoadError, load_kernel, load_module, protect
from checker.records import Records, versions

__all__ = ["KataSession"]

_BUDGET_AFTER_RED = 5.0
"""Seconds of further cases in a stage that is red already: enough to count what is green, not to try patience."""


_ENDS_THE_CHECK = frozenset({"K002", "K004", "K005", "K006"})
"""Codes after which no further case is tried: each would cost as much again and say the same."""


class KataSession:
    """The state of one kata's check. Every method that judges writes its records first, so that a crash leaves them."""

    def __init__(self, folder: Path, config: pytest.Config) -> None:
        option = config.getoption
        self.kata: Kata = next(kata for kata in load(folder.parent.parent) if kata.folder == folder)
        named = option("--kata-file")
        own = self.kata.kernel if self.kata.kernel.exists() else self.kata.skeleton
        self.file = Path(named).absolute() if named else own
        seed = option("--kata-seed")
        self.seed: int = random.SystemRandom().randrange(2**31) if seed is None else seed
        self.gpu: str = option("--gpu")
        self.device: str = devices.choose(option("--kata-device"))
        if self.device == "cuda":
            from checker import realgpu

            self.gpu = realgpu.stood_for(self.gpu)
        self.quick: bool = option("--kata-quick")
        self.reveal: bool = option("--kata-reveal")
        self.limit: float = option("--kata-limit")
        self._log = Records(option("--kata-records"), option("--kata-nonce"))
        self.records = self._log.kept
        self.emit = self._log.write
        self._spec: ModuleType | None = None
        self._subject: Any = None
        self._stopped = ""
        self._faulty = False
        self._lint: LintResult | None = None
        self._red: str | None = None
        self._red_since = 0.0
        self._reasons: dict[str, str] = {}
        self._undecided = ""
        self._started = time.monotonic()
        protect(folder)

    # --- records ---

    def collected(self, tests: Sequence[dict[str, Any]]) -> None:
        """Say what will run, and look at the source."""
        self.emit(
            kind="session",
            kata=self.kata.id,
            file=str(self.file),
            seed=self.seed,
            device=self._device(),
            versions=versions(),
        )
        self.emit(kind="collected", tests=list(tests))
        self._lint = lint(self.file, entry=self.kata.entry, signature=self.kata.signature, skeleton=self.kata.skeleton)
        todos = [
            {"number": todo.number, "line": todo.line, "text": todo.text, "untouched": todo.untouched}
            for todo in self._lint.todos
        ]
        self.emit(kind="todos", todos=todos)
        if self.quick and (self.kata.speed or self.probes("speed")):
            self.emit(kind="skip_stage", stage="speed", reason="left out by --quick")

    def _device(self) -> dict[str, str]:
        if self.device == "cuda":
            from checker import realgpu

            if realgpu.usable():
                return realgpu.describe()
        return devices.describe(self.gpu)

    # --- the course of the run ---

    def stopped(self, stage: str) -> str:
        """Why a test of this stage need not run; empty if it must."""
        if self._stopped:
            return self._stopped
        if self._red is None or self._red == "predictions":
            return ""
        if stage != self._red:
            return f"stopped by {self._red}"
        if time.monotonic() - self._red_since > _BUDGET_AFTER_RED:
            return "enough cases are red already"
        return ""

    def start(self, test: dict[str, Any]) -> None:
        """Say that a test starts."""
        self.emit(kind="start", **test)

    def end(self, nodeid: str, stage: str, report: pytest.TestReport) -> None:
        """Say how a test ended, and remember the first red stage."""
        reason = self._reasons.get(nodeid, "")
        if report.skipped and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
        elif report.failed and not reason:
            reason = str(report.longrepr)[-2000:]
        if report.failed and (self._red is None or self._red == "predictions") and stage != "predictions":
            self._red, self._red_since = stage, time.monotonic()
        self.emit(kind="end", test=nodeid, outcome=report.outcome, reason=reason, seconds=round(report.duration, 4))

    def fault(self, message: str, text: str) -> None:
        """Record a fault that is not the learner's, with the end of what was said about it."""
        self._faulty = True
        advice = "this is a fault of the checker: please report it with the command and the seed"
        finding = Finding("K007", message, advice, details=tuple(text.strip().splitlines()[-4:]))
        self.emit(kind="finding", test=None, finding=finding.to_dict())

    def finish(self, exitstatus: int) -> None:
        """Close the records, unless the run was interrupted."""
        if self._faulty or exitstatus not in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR):
            self.emit(kind="done")

    def report_text(self, color: bool) -> str:
        """The report of a plain run; empty where the records go to somebody else, who makes the report."""
        if self._log.elsewhere:
            return ""
        from checker import report as reports
        from checker.verdict import conclude

        verdict = conclude(
            self.records,
            kata=self.kata.id,
            file=str(self.file),
            seed=self.seed,
            device=self._device(),
            seconds=time.monotonic() - self._started,
        )
        return reports.render(verdict, reports.Look(color=color))

    # --- the spec ---

    @property
    def spec(self) -> ModuleType:
        """The kata's spec, loaded by path."""
        if self._spec is None:
            self._spec = load_module(self.kata.spec)
        return self._spec

    def cases(self, stage: str) -> list[Any]:
        """The cases of a stage, the quick ones only if that was asked."""
        return [case for case in self.spec.CASES if case.stage == stage and (case.quick or not self.quick)]

    def speed_cases(self) -> list[Any]:
        """The inputs on which the kernel is timed, from kata.toml; none in a quick check."""
        return [] if self.quick else list(self.kata.speed)

    def refusals(self) -> list[Any]:
        """The calls that must be refused."""
        return list(getattr(self.spec, "REFUSED", ()))

    def probes(self, stage: str) -> list[Any]:
        """What is tried on the module as a whole, drawn by the seed of the check."""
        make = getattr(self.spec, "probes", None)
        found = make(random.Random(self.seed)) if make else getattr(self.spec, "PROBES", ())  # noqa: S311  # no secrets
        return [probe for probe in found if probe.stage == stage]

    # --- judging ---

    def judge(self, nodeid: str, kind: str, what: Any) -> None:
        """Judge one case, refusal or the predictions. Findings fail the test with a short text."""
        findings: list[Finding] = []
        self._undecided = ""
        with reading_compiler_output():
            try:
                with (
                    limits.no_exit(),
                    limits.time_limit(limits.of_stage(kind, self.limit)),
                    limits.watch_compiling(self._compiling),
                ):
                    findings = self._judge(nodeid, kind, what)
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # also what pytest would take for a skip
                findings = [from_exception(error, self.file)]
        if kind in ("probe", "speed"):
            asked, stage = (what, what.stage) if kind == "probe" else (what[0], "speed")
            findings = [replace(f, case=f.case or asked.id) for f in findings]
            if stage == "speed":
                # What shows at the timed size alone is found by this stage, whatever it is.
                findings = [replace(f, stage_override=stage) for f in findings]
        if not findings:
            self._tell_slips()
            if self._undecided:
                pytest.skip(self._undecided)
            return
        findings[0] = self._worded(findings[0])
        if any(finding.code in _ENDS_THE_CHECK for finding in findings):
            self._stopped = f"stopped by {findings[0].title}"
        for finding in findings:
            self.emit(kind="finding", test=nodeid, finding=finding.to_dict())
        shown = "\n".join(
            f"{f.code} {f.title}: {f.message}" + (f" (line {f.line})" if f.line else "") for f in findings
        )
        pytest.fail(shown, pytrace=False)

    def _compiling(self, on: bool) -> None:
        self.emit(kind="compiling", on=on)

    def _judge(self, nodeid: str, kind: str, what: Any) -> list[Finding]:
        from checker import judge

        if self._lint is not None and self._lint.fatal:
            self._stopped = "stopped by source"
            return list(self._lint.fatal)
        try:
            subject = self._loaded(judge)
        except BaseException:
            self._stopped = "the file does not load"
            raise
        if kind == "case":
            return list(judge.check_case(subject, what, self.seed)) or self._on_chip(subject, what)
        if kind == "refusal":
            return list(judge.check_refusal(subject, what))
        if self._red is None:
            self._settle(judge, subject)
        if kind == "probe":
            return list(judge.check_probe(subject, what))
        if kind == "fairness":
            return self._fairness(nodeid, subject)
        if kind == "speed":
            return self._speed(subject, *what)
        predictions = judge.check_predictions(subject, self.seed)
        self._reasons[nodeid] = f"{predictions.right} of {predictions.total} right"
        return list(predictions.findings)

    def _settle(self, judge: ModuleType, subject: Any) -> None:
        """Compile to the end what the cases left out, on the compiler's time and not on that of the test at hand."""
        limits.compiling(True, self._compiling)
        judge.settle(subject)
        limits.compiling(False, self._compiling)

    def _on_chip(self, subject: Any, case: Any) -> list[Finding]:
        """The values of a case that passed on the virtual GPU, computed on the real one where that was asked for."""
        if self.device != "cuda":
            return []
        from checker import onchip

        return onchip.check_case(subject, case, self.seed)

    def _speed(self, subject: Any, case: Any, rounds: Any) -> list[Finding]:
        from checker import speed

        findings, self._undecided = speed.check(subject, case, self.seed, rounds, self.emit)
        return findings

    def _fairness(self, nodeid: str, subject: Any) -> list[Finding]:
        from checker import repeated

        findings = repeated.check_fairness(subject, self.seed)
        if not findings:
            self._reasons[nodeid] = f"every result was stored by {', '.join(sorted(subject.storers))}"
            for note in subject.notes:
                self.emit(kind="note", text=note)
        return findings

    def _loaded(self, judge: ModuleType) -> Any:
        from checker.originals import Originals

        if self._subject is None:
            # Before her file is imported: a tuner's decorator asks for the active driver.
            judge.open_gpu(self.gpu)
            originals = Originals(self.spec)
            module = load_kernel(self.file)
            entry = getattr(module, self.kata.entry, None)
            if not callable(entry):
                raise LoadError(
                    Finding(
                        "K103",
                        f"the file defines no function `{self.kata.entry}`",
                        f"name the wrapper `{self.kata.entry}`: the checks call `{self.kata.signature}`",
                        file=str(self.file),
                    )
                )
            self._subject = judge.Subject(
                module,
                self.spec,
                entry,
                self.file,
                self.gpu,
                reveal=self.reveal,
                device=self.device,
                fair=self.kata.fairness,
                originals=originals,
            )
        return self._subject

    def _worded(self, finding: Finding) -> Finding:
        """Add a suspicion from the source to what the run found; a suspicion on the very line comes first."""
        slips = self._lint.slips if self._lint is not None else ()
        if not slips or finding.code in {slip.code for slip in slips}:
            return finding
        slip = min(slips, key=lambda slip: abs((slip.line or 0) - (finding.line or 0)))
        detail = f"line {slip.line}: {slip.message}; {slip.advice}"
        return replace(finding, details=(*finding.details, detail))

    def _tell_slips(self) -> None:
        for slip in self._lint.slips if self._lint is not None else ():
            text = f"line {slip.line}: {slip.message}; {slip.advice} ({slip.code})"
            if not any(record.get("text") == text for record in self.records):
                self.emit(kind="note", text=text)
