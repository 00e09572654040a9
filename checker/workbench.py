"""Runs what `kata compare` and `kata inspect` ask for in a child process, as a check does, and brings back a document.

The learner's code never runs in the parent, which never imports torch. The child sends records over a pipe of its own:
what it is doing (a step), what is wrong with the file (a finding) or with the question (usage), and the answer (a
document for the command to print). Supervision, limits and endings are those of a check.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from checker.catalog import Kata, load
from checker.child import PR_SET_PDEATHSIG, Request, finish, limit_address_space, prepare
from checker.errors import KataUsageError
from checker.findings import Finding
from checker.lint import lint
from checker.supervise import Child, supervise

__all__ = ["Answer", "Bench", "FileAtFault", "ask", "find_case"]

STEP_LIMIT = 60.0
"""Seconds one step may take, compiling excluded: a step is one kernel at one size, sampled."""

TASKS = {"compare": "checker.comparison:compare", "inspect": "checker.inspection:inspect"}
"""What can be asked: a function of the bench that returns a JSON-able document."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: the document, or the finding that stands in its way; and what the file printed."""

    document: dict[str, Any] | None
    finding: Finding | None
    output: str


class FileAtFault(Exception):
    """The learner's file stands in the way; `finding` says how."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.message)
        self.finding = finding


def ask(
    task: str,
    kata: Kata,
    *,
    file: Path,
    gpu: str,
    options: Mapping[str, Any],
    device: str = "virtual",
    seed: int | None = None,
    on_record: Callable[[Mapping[str, Any]], None] | None = None,
) -> Answer:
    """Do a task of `TASKS` on a file. KataUsageError for an unknown chip and for a question the task refuses."""
    from checker.runner import environment
    from checker.vgpu import specs

    try:
        specs.chip(gpu)
    except ValueError as error:
        raise KataUsageError(str(error)) from error
    subject = file.absolute()
    source = lint(subject, entry=kata.entry, signature=kata.signature, skeleton=kata.skeleton)
    if source.fatal:
        return Answer(None, source.fatal[0], "")
    request = Request(
        folder=str(kata.folder),
        file=str(subject),
        gpu=gpu,
        device=device,
        seed=random.SystemRandom().randrange(2**31) if seed is None else seed,
        quick=False,
        reveal=False,
        limit=STEP_LIMIT,
        nonce=secrets.token_hex(8),
    )
    rest = {"task": task, "entry": kata.entry, "solution": str(kata.solution), "options": dict(options)}

    def start(request: Request, records: int, output: int) -> Child:
        package = str(Path(__file__).resolve().parent.parent)
        code = "import sys; sys.path.append(sys.argv[1]); from checker.workbench import main; main()"
        order = json.dumps({**asdict(request), "records": records})
        return subprocess.Popen(
            [sys.executable, "-P", "-B", "-W", "ignore", "-c", code, package, order, json.dumps(rest)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[records],
            start_new_session=True,
            env=environment(),
        )

    ended = supervise(start, request, on_record=on_record)
    last = {record["kind"]: record for record in ended.records}
    if "usage" in last:
        said = last["usage"]
        raise KataUsageError(said["given"], needed=said["needed"], next_step=said["next_step"])
    finding = Finding.from_dict(last["finding"]["finding"]) if "finding" in last else ended.finding
    return Answer(last.get("result", {}).get("document"), finding, ended.output)


# --- The child. ---


class Bench:
    """What a task works with: the kata's spec, the files as judged subjects, steps under limits, and the options."""

    def __init__(self, request: Request, entry: str, solution: str, options: Mapping[str, Any]) -> None:
        from checker import judge, speed
        from checker.loading import load_module

        self.request = request
        self.options = options
        self.file = Path(request.file)
        self.solution = Path(solution)
        self.entry = entry
        # Activated anew: in a test's process another chip may have been used in between.
        self.gpu = judge.open_gpu(request.gpu).activate()
        self.kata = next(kata for kata in load(self.solution.parent.parent) if str(kata.folder) == request.folder)
        self.spec: ModuleType = load_module(self.kata.spec)
        timed = [speed.timed_case(case, self.spec, self.gpu.spec.memory_bytes) for case in self.kata.speed]
        self.timed = [case for case, _ in timed]
        self.notes = {case.id: note for case, note in timed if note}

    def emit(self, **record: Any) -> None:
        """Write one record, at once."""
        data = (json.dumps({**record, "nonce": self.request.nonce}) + "\n").encode()
        while data:
            data = data[os.write(self.request.records, data) :]

    def subject(self, file: Path, *, mine: bool) -> Any:
        """A file as a subject of the judge. FileAtFault if it does not load or lacks the entry point."""
        from checker import judge
        from checker.loading import LoadError, load_kernel, load_module

        try:
            module = load_kernel(file) if mine else load_module(file)
        except LoadError as error:
            raise FileAtFault(error.finding) from error
        entry = getattr(module, self.entry, None)
        if not callable(entry):
            text, advice = f"the file defines no function `{self.entry}`", f"name the wrapper `{self.entry}`"
            raise FileAtFault(Finding("K103", text, advice, file=str(file)))
        return judge.Subject(module, self.spec, entry, file, self.request.gpu)

    @property
    def eager(self) -> Callable[..., Any]:
        """What one would write in PyTorch: the spec's `eager`, where the yardstick `torch_op` is something else."""
        function: Callable[..., Any] = getattr(self.spec, "eager", None) or self.spec.torch_op
        return function

    def eager_on(self, case: Any) -> Callable[..., Any]:
        """The function of the spec that a timed case is held against, or `eager`."""
        named = next((one.against for one in self.kata.speed if one.id == case.id and one.to == "torch"), "eager")
        function: Callable[..., Any] = getattr(self.spec, named, None) or self.eager
        return function

    def case(self, wanted: str | None) -> Any:
        """The case called so among those that are timed and those that are judged; by default the largest timed one."""
        if wanted is not None:
            return find_case([*self.timed, *self.spec.CASES], wanted)
        return max(self.timed, key=self.spec.least_bytes) if self.timed else self.judged_like(None)

    def judged_like(self, case: Any) -> Any:
        """The largest judged case, of the same dtype if there is one: all of its result is computed and compared."""
        if not self.spec.CASES:
            raise KataUsageError(
                "This kata has no kernel of yours to run: its lesson is on the host.",
                next_step="`kata check` tells what its probes find.",
            )
        sizes: dict[int, Any] = {}
        for one in self.spec.CASES:
            # A case whose size is drawn has no least bytes.
            with suppress(TypeError, ValueError, AttributeError):
                alike = case is None or one.params.get("dtype") == case.params.get("dtype")
                if one.stage == "values":
                    sizes.setdefault(int(self.spec.least_bytes(one)) + alike * 2**40, one)
        return sizes[max(sizes)] if sizes else self.spec.CASES[0]

    def inputs(self, case: Any) -> tuple[Any, ...]:
        """The arguments of a judged case, on the CPU."""
        import torch

        from checker.cases import case_seed

        seed = case_seed(self.request.seed, case.id)
        return tuple(self.spec.make_inputs(case, seed=seed, device=torch.device("cpu")))

    @contextmanager
    def step(self, what: str, file: Path) -> Iterator[None]:
        """One piece of work, shown as `what`. What goes wrong in it is raised as FileAtFault with a line of `file`."""
        from checker import limits
        from checker.compiler_output import reading_compiler_output
        from checker.diagnose import from_exception

        self.emit(kind="start", test=what, name=what, stage="speed", case=None)
        with reading_compiler_output():
            try:
                with limits.no_exit(), limits.time_limit(STEP_LIMIT), limits.watch_compiling(self._compiling):
                    yield
            except (FileAtFault, KataUsageError):
                raise
            except (Exception, limits.LimitReachedError, SystemExit) as error:
                raise FileAtFault(from_exception(error, file)) from error
        self.emit(kind="end", test=what, outcome="passed", reason="", seconds=0.0)

    def _compiling(self, on: bool) -> None:
        self.emit(kind="compiling", on=on)


def find_case(cases: Sequence[Any], wanted: str) -> Any:
    """The case with this id, or the only one with it as a part; KataUsageError lists the cases there are."""
    near = [case for case in cases if case.id == wanted] or [c for c in cases if wanted.lower() in c.id.lower()]
    if len(near) == 1:
        return near[0]
    what = "fits more than one case" if near else "is no case of this kata"
    listed = "\n".join(f"  {case.id}" for case in near or cases)
    raise KataUsageError(f"{wanted!r} {what}.", needed=f"Cases:\n{listed}")


def main() -> None:
    """Entry of the child: the request and the rest of the question are the last two arguments."""
    # The parent may be killed before it can end this process.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    request = Request.loads(sys.argv[-2])
    rest = json.loads(sys.argv[-1])
    prepare()
    finish(_run(request, **rest))


def _run(request: Request, task: str, entry: str, solution: str, options: Mapping[str, Any]) -> int:
    from checker import limits, loading

    faulthandler.enable(os.fdopen(os.dup(2), "w"))
    limits.on_memory_signal()
    if request.device != "cuda":
        # CUDA maps far more address space than it uses.
        limit_address_space()
    loading.protect(Path(request.file).parent)
    loading.block_solutions()
    bench = Bench(request, entry, solution, options)
    module, _, function = TASKS[task].partition(":")
    try:
        document = getattr(import_module(module), function)(bench)
    except FileAtFault as error:
        bench.emit(kind="finding", test=None, finding=error.finding.to_dict())
    except KataUsageError as error:
        bench.emit(kind="usage", given=error.given, needed=error.needed, next_step=error.next_step)
    except Exception as error:
        bench.emit(kind="fault", text="".join(traceback.format_exception(error))[-2000:])
        return 70
    else:
        bench.emit(kind="result", document=document)
    bench.emit(kind="done")
    return 0
