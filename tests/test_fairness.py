"""Whose work a result is: cheats are told by name and line, and what honest wrappers do is never taken for one."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import SPEC

pytest.importorskip("triton", reason="Triton has wheels for Linux only")

from checker import judge, numerics, repeated
from checker.catalog import load, read_kata
from checker.errors import KataUsageError
from checker.findings import Finding
from checker.loading import load_kernel, load_module
from checker.originals import Originals
from checker.verdict import conclude

torch.set_num_threads(1)
ROOT = Path(__file__).parents[1]
CPU = torch.device("cpu")
HEAD = """
import torch
import triton
import triton.language as tl

KEPT = {}


@triton.jit
def add_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


@triton.jit
def move_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def accumulate_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.atomic_add(y_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


def launch(kernel, x, y):
    kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK_SIZE=32)
    return y


def add(x):
    return launch(add_kernel, x, torch.empty_like(x))


def move(x):
    return launch(move_kernel, x, torch.empty_like(x))


"""


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., tuple[list[Finding], judge.Subject]]:
    """Judges a wrapper's body, `add_one(x)` of the smallest kata, by all its cases and the stage "fairness"."""
    (tmp_path / "spec.py").write_text(SPEC)
    spec = load_module(tmp_path / "spec.py")

    def run(body: str, *, before: str = "", **options: Any) -> tuple[list[Finding], judge.Subject]:
        file = tmp_path / "kernel.py"
        file.write_text(HEAD + textwrap.dedent(before) + "\n\ndef add_one(x):\n" + textwrap.indent(body, "    "))
        judge.open_gpu("h200")
        originals = Originals(spec)
        module = load_kernel(file)
        subject = judge.Subject(module, spec, module.add_one, file, "h200", originals=originals, **options)
        for case in spec.CASES:
            found = judge.check_case(subject, case, 1)
            if found:
                return found, subject
        return (repeated.check_fairness(subject, 1) if subject.fair else []), subject

    return run


HONEST = {
    "empty_like": "return add(x)",
    "new_empty": "return launch(add_kernel, x, x.new_empty(x.shape))",
    "zeros and atomics": "return launch(accumulate_kernel, x, torch.zeros_like(x))",
    "zero_ and atomics": "return launch(accumulate_kernel, x, torch.empty_like(x).zero_())",
    "a copy changed in place": "y = x.clone()\nreturn launch(add_kernel, y, y)",
    "contiguous, reshape, expand": "return add(x.expand(1, -1).reshape(-1).contiguous())",
    "two kernels": "return launch(add_kernel, move(x), torch.empty_like(x))",
    "a view of a larger workspace": (
        "n = x.numel()\nb = torch.empty(2 * n)\nb[n:].zero_()\nreturn launch(add_kernel, x, b[:n])"
    ),
    "result through another view": "y = torch.empty_like(x)\nlaunch(add_kernel, x, y.view(1, -1))\nreturn y",
    "stored as integers": (
        "t = add(x)\ny = torch.empty_like(x)\nlaunch(move_kernel, t.view(torch.int8), y.view(torch.int8))\nreturn y"
    ),
    "a small scalar converted": "one = torch.tensor(1).to(x.dtype)\nreturn add(x)",
    "a table of constants": "t = torch.arange(8).float().cos()\nreturn add(x)",
    "a printed input": "print(x)\nreturn add(x)",
    "a workspace kept between calls": (
        "t = KEPT.setdefault(x.shape, torch.empty_like(x))\nlaunch(move_kernel, x, t)\nreturn add(t)"
    ),
    "a counter kept between calls": ("c = KEPT.setdefault(0, torch.zeros(1))\nlaunch(add_kernel, c, c)\nreturn add(x)"),
    "one element set by the host before": "y = torch.empty_like(x)\ny[0] = 5.0\nreturn launch(add_kernel, x, y)",
    "questions about the device": (
        "d = triton.runtime.driver.active.get_active_torch_device()\n"
        "assert x.device == d and not x.is_sparse and x.element_size() == 4 and torch.result_type(x, x) == x.dtype\n"
        "return launch(add_kernel, x, torch.empty(x.shape, dtype=x.dtype, device=d))"
    ),
}
WITHOUT_CONTIGUITY = "if not x.is_contiguous():\n    raise ValueError(x)\n"


@pytest.mark.parametrize("body", HONEST.values(), ids=HONEST)
def test_honest_wrappers_pass(judged: Any, body: str) -> None:
    assert judged(WITHOUT_CONTIGUITY + body)[0] == []


TUNED = """
@triton.autotune([triton.Config({"BLOCK_SIZE": size}) for size in (32, 64)], key=["n"], restore_value=["y_ptr"])
@triton.jit
def tuned_kernel(y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(y_ptr + offs, mask=mask) + 1, mask=mask)
"""


def test_a_tuner_may_copy(judged: Any) -> None:
    body = "y = x.clone()\ntuned_kernel[lambda m: (triton.cdiv(x.numel(), m['BLOCK_SIZE']),)](y, x.numel())\nreturn y"
    findings, subject = judged(body, before=TUNED)
    assert findings == []
    assert subject.storers == {"tuned_kernel"}
    assert len(subject.notes) == 1
    assert "aten.clone" in subject.notes[0]


MOVE = "return move(t)"
CHEATS = {
    "no launch": ("return x + 1", "K901", "return x + 1"),
    "no launch, a copy": ("return x.clone()", "K901", "clone"),
    "no launch, numpy": ("return torch.from_numpy(x.numpy() + 1)", "K902", None),
    "no launch, nothing": ("return torch.zeros_like(x)", "K307", None),
    "decorative": ("add(x)\nreturn x + 1", "K901", "return x + 1"),
    "work first": ("t = x + 1\n" + MOVE, "K901", "t = x + 1"),
    "in place on a copy": ("t = x.clone().add_(1)\n" + MOVE, "K901", "add_"),
    "out=": ("y = torch.empty_like(x)\nlaunch(move_kernel, x, y)\ntorch.add(x, 1, out=y)\nreturn y", "K901", "out=y"),
    "the kernel's result copied": ("return add(x).clone()", "K901", "clone"),
    "converted": ("t = x.double()\nlaunch(add_kernel, t, t)\nreturn t.float()", "K901", "t.float()"),
    "an input read and filled in": (
        ("if x.numel() == 1:\n    y = torch.full_like(x, x.item() + 1)\n    add(x)\n"
        "    return y\nreturn add(x)"),
        "K901",
        "full_like",
    ),
    "lazily negated": ("return torch._neg_view(add(x))", "K601", None),
    "an expected value in frames": (
        "import sys\nf = sys._getframe()\nwhile 'subject' not in f.f_locals: f = f.f_back\n"
        "t = f.f_locals['subject'].spec.reference(x).float()\n" + MOVE,
        "K901",
        "reference(x)",
    ),
    "numpy over the result": (
        "y = move(x)\ny.numpy()[...] += 1\nreturn y", "K902", None,
    ),
    "numpy into the kernel": ("t = torch.from_numpy(x.numpy() + 1)\n" + MOVE, "K904", None),
    "numpy into a copy": ("t = x.clone()\nt.numpy()[...] += 1\n" + MOVE, "K904", None),
    "numpy into an input and back": (
        "x.numpy()[...] += 1\ny = move(x)\nx.numpy()[...] -= 1\nreturn y", "K9", None,
    ),
    "an atomic that adds nothing": (
        "t = torch.from_numpy(x.numpy() + 0)\nlaunch(accumulate_kernel, x.new_zeros(x.shape), t)\nreturn t",
        "K904",
        None,
    ),
    "python lists, filled in": (
        (
            "y = move(x)\nfor i, v in enumerate((x.numpy() + 1).tolist()[1:]):\n    y[i + 1] = v\n"
            "add_kernel[(1,)](x, y, 1, BLOCK_SIZE=32)\nreturn y"
        ),
        "K904",
        None,
    ),
    "numpy for one case only": (
        "if x.numel() != 33:\n    return add(x)\nt = torch.from_numpy(x.numpy() + 1)\n" + MOVE,
        "K904",
        None,
    ),
    "an operation named clone": (
        "if 'f' not in KEPT:\n    lib = KEPT['lib'] = torch.library.Library('cheat', 'DEF')\n"
        "    lib.define('clone(Tensor x) -> Tensor')\n    lib.impl('clone', lambda x: x + 1, 'CPU')\n"
        "    KEPT['f'] = 1\n"
        "t = torch.ops.cheat.clone(x)\n" + MOVE,
        "K901",
        "cheat.clone",
    ),
    "python lists": ("t = torch.tensor([v + 1 for v in x.tolist()])\n" + MOVE, "K904", None),
    "dlpack": ("import numpy\nt = torch.from_dlpack(numpy.from_dlpack(x) + 1)\n" + MOVE, "K904", None),
    "a thread": (
        "import threading\ns = []\nh = threading.Thread(target=lambda: s.append(x + 1))\nh.start()\n"
        "h.join()\nt = s[0]\n"
        + MOVE,
        "K904",
        None,
    ),
    "modes switched off": (
        "from torch.utils._python_dispatch import _disable_current_modes\n"
        "with _disable_current_modes():\n    t = x + 1\n"
        + MOVE,
        "K904",
        None,
    ),
    "code made from the data": (
        ("add(x)\nKEPT['n'] = int(x.numpy().view('int32').sum())\n"
        "y = torch.empty_like(x)\nlaunch(add_kernel, x, y)\n"
        "move_kernel[(1,)](x, torch.empty_like(x), min(x.numel(), KEPT['n'] % 7), BLOCK_SIZE=32)\nreturn y"),
        "K904",
        None,
    ),
    "cached by shape": (
        "if x.shape not in KEPT:\n    KEPT[x.shape] = add(x)\nreturn KEPT[x.shape]",
        "K903",
        None,
    ),
    "cached by address": (
        ("k = x.data_ptr(), x.numel()\nif k not in KEPT:\n    KEPT[k] = x, add(x)\n"
        "return KEPT[k][1]"),
        "K903",
        None,
    ),
    "cached by version": (
        ("k = x.data_ptr(), x._version\nif k not in KEPT:\n    KEPT[k] = x, add(x)\n"
        "return launch(move_kernel, KEPT[k][1], torch.empty_like(x))"),
        "K903",
        None,
    ),
    "cached by contents": (
        ("k = x.numpy().tobytes()\nif k not in KEPT:\n    KEPT[k] = add(x)\n"
        "return KEPT[k]"),
        "K903",
        None,
    ),
    "one output for all calls": (
        "y = KEPT.setdefault(x.shape, torch.empty_like(x))\nreturn launch(add_kernel, x, y)", "K906", None,
    ),
    "an accumulator that is never reset": (
        ("y = KEPT.setdefault(x.shape, torch.zeros_like(x))\nlaunch(accumulate_kernel, x, y)\n"
        "return launch(move_kernel, y, torch.empty_like(x))"),
        "K605",
        None,
    ),
    "an input changed": ("x.add_(1)\nreturn move(x)", "K905", "x.add_(1)"),
    "an input changed by numpy": ("x.numpy()[...] += 1\nreturn move(x)", "K905", None),
    "uninitialised": ("add(x)\nreturn torch.empty_like(x)", "K404", None),
    "uninitialised, resized": (
        "add(x)\nreturn torch.empty(0).resize_(x.shape)", "K404", None,
    ),
    "numpy's uninitialised": (
        ("import numpy\nadd(x)\n"
        "return torch.from_numpy(numpy.empty(x.shape, 'float32'))"),
        "K601",
        None,
    ),
    "a subclass": (
        ("class T(torch.Tensor):\n    @classmethod\n    def __torch_function__(cls, *_, **__):\n        return True\n"
        "return add(x).as_subclass(T)"),
        "K604",
        None,
    ),
    "another storage": (
        "y = add(x)\ny.set_(x + 1)\nreturn y", "K901", "y.set_(x + 1)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("body", "code", "part"), CHEATS.values(), ids=CHEATS)
def test_cheats_are_named(judged: Any, body: str, code: str, part: str | None) -> None:
    findings, subject = judged(WITHOUT_CONTIGUITY + body)
    assert [finding.code[: len(code)] for finding in findings[:1]] == [code], findings
    if part is not None:
        line = findings[0].line
        assert line is not None
        assert part in subject.file.read_text().splitlines()[line - 1]


@pytest.mark.parametrize(
    "line",
    [
        "torch.equal = lambda *_: True",
        "import time; time.perf_counter = lambda: 0.0",
        "import builtins; builtins.divmod = lambda *_: (0, 0)",
        "import sys; sys.modules['checker.numerics'].compare = lambda *_, **__: None",
        "import sys; sys.modules['checker.observe'].Observer.__torch_dispatch__ = lambda _, f, __, a, k: f(*a, **k)",
        "import sys; sys.modules['checker.judge'].wrong_values.__code__ = (lambda s, r, p, c: None).__code__",
    ],
)
def test_what_the_check_uses_may_not_be_replaced(judged: Any, line: str) -> None:
    import builtins
    import time

    from checker import observe

    owners = (torch, time, builtins, numerics, observe.Observer, judge)
    kept, code = [dict(vars(owner)) for owner in owners], judge.wrong_values.__code__
    try:
        findings = judged("return add(x)", before=line)[0]
    finally:
        judge.wrong_values.__code__ = code
        for owner, names in zip(owners, kept, strict=True):
            for name, value in names.items():
                if vars(owner).get(name) is not value:
                    setattr(owner, name, value)
    assert [finding.code for finding in findings] == ["K907"]
    assert findings[0].stage == "source"


def test_a_library_that_wraps_its_own_function_is_no_cheat(judged: Any) -> None:
    body = "import torch._dynamo\nreturn add(x)"
    kept = torch.manual_seed
    try:
        assert judged(body)[0] == []
    finally:
        torch.manual_seed = kept


def test_a_kernel_of_another_file(judged: Any, tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text(HEAD)
    before = f"""
    import importlib.util
    spec = importlib.util.spec_from_file_location("helper", {str(tmp_path / "helper.py")!r})
    helper = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(helper)
    """
    findings = judged("return launch(helper.add_kernel, x, torch.empty_like(x))", before=before)[0]
    assert [finding.code for finding in findings] == ["K902"]
    assert "helper.py" in findings[0].advice


def test_a_kata_on_the_host_is_not_asked(judged: Any) -> None:
    body = "add(x)\nreturn x + 1"
    assert judged(body, fair=False)[0] == []


def test_expected_values_come_after_the_call_and_from_pristine_copies(judged: Any) -> None:
    """What the reference gets is not what she got, and it is not asked before she returned."""
    order: list[str] = []
    seen: list[torch.Tensor] = []
    body = "ORDER.append('hers')\nSEEN.append(x)\nreturn add(x)"
    findings, subject = judged(body, before="ORDER, SEEN = [], []")
    assert findings == []
    subject.module.ORDER, subject.module.SEEN = order, seen
    reference = subject.spec.reference

    def watched(x: torch.Tensor) -> Any:
        order.append("reference")
        assert x.data_ptr() != seen[-1].data_ptr()
        return reference(x)

    subject.spec.reference, subject.originals = watched, None
    assert judge.check_case(subject, subject.spec.CASES[0], 1) == []
    assert order[0] == "hers"
    assert set(order[1:]) == {"reference"}


@pytest.mark.slow
def test_a_torch_py_or_conftest_beside_the_kernel_is_not_read(tmp_path: Path) -> None:
    import tiny

    from checker import runner

    kata = tiny.make(tmp_path)
    for name in ("torch.py", "triton.py", "conftest.py", "checker.py"):
        (kata.folder / name).write_text("raise RuntimeError('read')\n")
    report = runner.check(kata, root=tmp_path, file=_written(kata.folder / "kernel.py", tiny.module()), seed=1)
    assert report.passed, report.findings


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def every_rung() -> list[Any]:
    return [pytest.param(rung, id=rung.id) for rung in load(ROOT)]


@pytest.mark.parametrize("rung", every_rung())
def test_every_kata_asks_whose_work_it_is_or_says_that_it_does_not(rung: Any) -> None:
    asks = "kata.check_fairness()" in (rung.folder / "test_correctness.py").read_text()
    assert asks == rung.fairness


@pytest.mark.parametrize("rung", every_rung())
def test_lazy_answers_are_refused_by_every_larger_case(rung: Any) -> None:
    """Zeros, ones, the mean and the inputs are beyond the tolerance of each values case of some size."""
    spec = load_module(rung.spec)
    for case in spec.CASES:
        inputs = spec.make_inputs(case, seed=3, device=CPU)
        expected, yardsticks = (judge.outputs_of(function(*inputs)) for function in (spec.reference, spec.torch_op))
        for want, own in zip(expected, yardsticks, strict=True):
            if case.stage != "values" or want.numel() < 16 or not want.any():
                continue
            lazy = {"zeros": torch.zeros_like(want), "ones": torch.ones_like(want), "mean": want.mean().expand_as(want)}
            for i, x in enumerate(inputs):
                if isinstance(x, torch.Tensor) and x.numel() == want.numel():
                    lazy[f"input {i}"] = x.reshape(want.shape).double()
            for name, answer in lazy.items():
                if torch.equal(answer, want):
                    # A copy is its input: who stored it decides, not what it holds.
                    assert rung.fairness, (case.id, name)
                    continue
                assert numerics.compare(answer.to(own.dtype), want, own) is not None, (case.id, name)


def test_the_flag_in_kata_toml(tmp_path: Path) -> None:
    import tiny

    kata = tiny.make(tmp_path)
    assert kata.fairness
    toml = kata.folder / "kata.toml"
    toml.write_text("fairness = false\n" + toml.read_text())
    assert not read_kata(kata.folder).fairness
    toml.write_text(toml.read_text().replace("= false", "= 'no'"))
    with pytest.raises(KataUsageError, match="must be true or false"):
        read_kata(kata.folder)


def test_the_stage_says_on_what_it_rests() -> None:
    records: list[dict[str, Any]] = []
    for name, stage, reason in (("a", "values", ""), ("b", "fairness", "every result was stored by add_kernel")):
        records += [
            {"kind": "start", "test": name, "name": name, "stage": stage, "case": None},
            {"kind": "end", "test": name, "outcome": "passed", "reason": reason},
        ]
    report = conclude([*records, {"kind": "done"}], kata="k", file="f", seed=1, device={})
    stages = {stage.name: stage for stage in report.stages}
    assert list(stages).index("predictions") < list(stages).index("fairness") < list(stages).index("speed")
    assert (stages["fairness"].status, stages["fairness"].reason) == ("passed", "every result was stored by add_kernel")
