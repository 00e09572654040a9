"""Comparison, sweep and inspection: what they measure on a tiny kata, and what they print of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tiny

from checker.commands.compare import parse_sweep
from checker.comparison_text import curve, table
from checker.errors import KataUsageError
from checker.inspection_text import overview
from checker.report import Look
from checker.roofline import points
from checker.side_by_side import kernels, pairs

pytest.importorskip("triton", reason="Triton has wheels for Linux only")

GOLDEN = Path(__file__).parent / "golden"
SPEED = """
[[speed]]
case = "n=2^20"
params = {n = 1048576}
to = "bound"
at_least = 0.1
refuses = "slow.py 0.05"
passes = "the solution 0.2"
"""
TIMED = """

def timed_inputs(case, draw):
    return (draw((case.n,), torch.float32),)


def expected_at(indices, x):
    return x[indices].double() + 1
"""
CALLABLE_GRID = "lambda meta: (triton.cdiv(x.numel(), meta['BLOCK_SIZE']),)"


def rewrite(grid: str = "", block: str = "32") -> str:
    """The tiny kernel with another grid or block."""
    text = tiny.module()
    text = text.replace("(triton.cdiv(x.numel(), 32),)", grid) if grid else text
    return text.replace("BLOCK_SIZE=32", f"BLOCK_SIZE={block}")


class Bench:
    """A workbench in this process: its records are thrown away."""

    def __init__(self, root: Path, source: str, options: dict[str, Any], gpu: str = "h200") -> None:
        from checker import workbench
        from checker.child import Request

        kata = tiny.make(root, kernel=source, spec=tiny.SPEC + TIMED)
        (kata.folder / "kata.toml").write_text(tiny.TOML.format(id=kata.id) + SPEED)
        kata.solution.write_text(tiny.module())
        self.null = os.open(os.devnull, os.O_WRONLY)
        request = Request(str(kata.folder), str(kata.kernel), gpu, "virtual", 3, False, False, 20.0, "n", self.null)
        self.bench = workbench.Bench(request, kata.entry, str(kata.solution), options)


@pytest.fixture
def ask(tmp_path: Path) -> Iterator[Any]:
    """Runs a task on a kernel's text in this process."""
    from checker import comparison, inspection

    made: list[Bench] = []

    def run(task: str, source: str, gpu: str = "h200", **options: Any) -> dict[str, Any]:
        bench = Bench(tmp_path / str(len(made)), source, options, gpu)
        made.append(bench)
        function = {"compare": comparison.compare, "inspect": inspection.inspect}[task]
        document = function(bench.bench)
        # Everything travels as JSON.
        return dict(json.loads(json.dumps(document)))

    yield run
    for one in made:
        os.close(one.null)


def rows(document: dict[str, Any]) -> dict[int, str]:
    """What became of each value: "timed" or a code."""
    found = document["sweep"]["rows"]
    return {row["value"]: "timed" if row["us"] else row["finding"]["code"] for row in found}


class TestCompare:
    def test_the_same_kernel_has_the_same_figures(self, ask: Any) -> None:
        document = ask("compare", tiny.module())
        yours, reference, pytorch = document["columns"]
        # Where a tensor begins within a line of 128 bytes is the allocator's choice.
        assert yours["us"] == pytest.approx(reference["us"], rel=0.01)
        given = ("who", "us", "share_of_bound")
        assert {**yours, **dict.fromkeys(given)} == {**reference, **dict.fromkeys(given)}
        assert document["case"] == "n=2^20"
        assert document["error_case"] == "n=64"
        assert document["least_bytes"] == 8 << 20
        assert yours["bytes"] == document["least_bytes"]
        assert yours["fetched_per_useful_byte"] == 1
        assert yours["programs"] == 1 << 15
        assert yours["limiter"] == "starting programs"
        assert 0 < yours["share_of_bound"] < 1
        assert yours["error"] < 1e-6
        assert pytorch["operations"] == ["add"]
        assert document["basis"] == "modelled for NVIDIA H200"

    def test_a_wrong_kernel_has_a_finding_and_no_time(self, ask: Any) -> None:
        document = ask("compare", tiny.module("pass"))
        yours, reference, _ = document["columns"]
        assert yours["finding"]["code"] == "K601"
        assert "us" not in yours
        assert reference["us"] > 0

    def test_a_kernel_that_does_not_compile_has_its_finding(self, ask: Any) -> None:
        document = ask("compare", tiny.module("v = v + tl.arange(0, 33)"))
        assert document["columns"][0]["finding"]["code"] == "K201"

    def test_what_pytorch_does_in_the_wrapper_counts(self, ask: Any) -> None:
        document = ask("compare", tiny.module(wrapper="x = x * 1"), trusted=True)
        yours, reference, _ = document["columns"]
        assert yours["operations"] == ["mul"]
        assert yours["us"] > reference["us"] + 1
        assert yours["bytes"] == 2 * reference["bytes"]

    def test_a_judged_case_can_be_compared_too(self, ask: Any) -> None:
        document = ask("compare", tiny.module(), case="n=33")
        assert (document["case"], document["error_case"]) == ("n=33", "n=33")
        assert document["least_bytes"] == 8 * 33

    def test_an_unknown_case_lists_them(self, ask: Any) -> None:
        with pytest.raises(KataUsageError, match="n=2\\^20\\n  n=64"):
            ask("compare", tiny.module(), case="n=7")

    def test_a_chip_without_measurements_is_marked(self, ask: Any) -> None:
        document = ask("compare", tiny.module(), gpu="mi300x")
        assert document["basis"] == "modelled for AMD Instinct MI300X, not validated"
        assert document["columns"][2]["measured"] is False


class TestSweep:
    @pytest.mark.parametrize("grid", ["", CALLABLE_GRID])
    def test_the_grid_follows_the_block(self, ask: Any, grid: str) -> None:
        sweep = {"name": "BLOCK_SIZE", "values": [16, 32, 48, 1024]}
        document = ask("compare", rewrite(grid), sweep=sweep)
        assert rows(document) == {16: "timed", 32: "timed", 48: "K201", 1024: "timed"}
        times = {row["value"]: row["us"] for row in document["sweep"]["rows"]}
        # Four times the elements a program is a quarter of the programs: a grid left as it was would show.
        assert times[16] > 1.5 * times[32] > 3 * times[1024]
        assert document["sweep"]["own"] == 32
        assert not document["sweep"]["tied"]

    def test_a_block_tied_to_the_input_says_so(self, ask: Any) -> None:
        source = rewrite("(1,)", "triton.next_power_of_2(x.numel())").replace("tl.program_id(0) * BLOCK_SIZE + ", "")
        document = ask("compare", source, case="n=64", sweep={"name": "BLOCK_SIZE", "values": [16, 64, 128]})
        assert document["sweep"]["tied"]
        assert rows(document) == {16: "K404", 64: "timed", 128: "timed"}

    def test_options_of_a_launch_can_be_swept(self, ask: Any) -> None:
        document = ask("compare", tiny.module(), sweep={"name": "num_warps", "values": [1, 3, 8, 64]})
        assert rows(document) == {1: "timed", 3: "K220", 8: "timed", 64: "K222"}
        assert document["sweep"]["own"] == 4

    def test_a_wrong_kernel_is_timed_at_no_value(self, ask: Any) -> None:
        document = ask("compare", tiny.module("pass"), sweep={"name": "num_warps", "values": [1, 2]})
        assert rows(document) == {1: "K601", 2: "K601"}

    def test_a_parameter_of_no_launch_lists_those_there_are(self, ask: Any) -> None:
        with pytest.raises(KataUsageError, match="No launch of this file takes 'BLOCK'") as caught:
            ask("compare", tiny.module(), sweep={"name": "BLOCK", "values": [1]})
        assert caught.value.needed == "What can be swept: BLOCK_SIZE, num_warps, num_stages."

    def test_a_run_time_argument_is_refused(self, ask: Any) -> None:
        with pytest.raises(KataUsageError, match=r"n of add_kernel is no tl\.constexpr"):
            ask("compare", tiny.module(), sweep={"name": "n", "values": [1]})

    def test_nothing_is_left_behind(self, ask: Any, tmp_path: Path) -> None:
        from checker.loading import load_module
        from checker.sweep import Launches

        file = tmp_path / "k.py"
        file.write_text(tiny.module())
        module = load_module(file)
        with pytest.raises(ZeroDivisionError), Launches(module, "BLOCK_SIZE").replaced(64):
            raise ZeroDivisionError
        assert "run" not in vars(module.add_kernel)


class TestInspect:
    def test_every_level_and_what_it_uses(self, ask: Any) -> None:
        document = ask("inspect", tiny.module())
        assert list(document["texts"]) == ["eager", "python", "ttir", "ttgir", "llir", "ptx", "sass"]
        assert document["texts"]["eager"].startswith("aten.add")
        line = tiny.line_of(tiny.module(), "v = tl.load")
        assert [(one["kind"], one["line"]) for one in document["accesses"]] == [("load", line), ("store", line + 4)]
        assert document["tensor_instructions"] == {}
        assert document["registers"] > 0
        assert document["occupancy"]["programs"] * 4 == document["occupancy"]["warps"]
        text = "\n".join(overview("01_add_one", document, Look(width=80)))
        assert max(len(row) for row in text.splitlines()) <= 80
        assert f"{line:6} |     v = tl.load(x_ptr + offs, mask=mask)" in text
        assert "Layouts first appear in TTGIR; thread ids first appear in LLVM IR." in text

    def test_another_vendor_has_its_own_assembly(self, ask: Any) -> None:
        document = ask("inspect", tiny.module(), gpu="mi300x")
        assert "amdgcn" in document["texts"]
        assert "ptx" not in document["texts"]
        assert document["time"]["basis"].endswith("not validated")
        assert {one["kind"] for one in document["accesses"]} == {"load", "store"}

    def test_a_wrapper_that_launches_nothing(self, ask: Any) -> None:
        from checker.workbench import FileAtFault

        with pytest.raises(FileAtFault) as caught:
            ask("inspect", tiny.module(wrapper="return y"))
        assert caught.value.finding.code == "K307"


class TestInAChild:
    """The way from the command to the child and back, once each."""

    def kata(self, root: Path, source: str) -> Any:
        kata = tiny.make(root, kernel=source)
        kata.solution.write_text(tiny.module())
        return kata

    @pytest.mark.slow
    def test_a_document_comes_back_and_steps_are_told(self, tmp_path: Path) -> None:
        from checker import workbench

        kata = self.kata(tmp_path, tiny.module(wrapper='print("hello")'))
        seen: list[dict[str, Any]] = []
        answer = workbench.ask(
            "inspect", kata, file=kata.kernel, gpu="h200", options={"case": "n=33"}, on_record=seen.append
        )
        assert answer.finding is None
        assert answer.document is not None
        assert answer.document["case"] == "n=33"
        assert answer.output == "hello"
        assert "compiling for NVIDIA H200" in [record.get("name") for record in seen]

    @pytest.mark.slow
    def test_endings_are_findings_and_questions_are_errors(self, tmp_path: Path) -> None:
        from checker import workbench

        kata = self.kata(tmp_path, tiny.module(wrapper="os.kill(os.getpid(), 11)"))
        answer = workbench.ask("inspect", kata, file=kata.kernel, gpu="h200", options={})
        assert answer.finding is not None
        assert answer.finding.code == "K003"
        with pytest.raises(KataUsageError, match="Did you mean h200"):
            workbench.ask("inspect", kata, file=kata.kernel, gpu="h20", options={})
        with pytest.raises(KataUsageError, match="is no case of this kata"):
            workbench.ask("inspect", kata, file=kata.kernel, gpu="h200", options={"case": "n=9999"})

    def test_a_file_that_does_not_parse_starts_no_child(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from checker import workbench

        monkeypatch.setattr(workbench, "supervise", None)
        kata = self.kata(tmp_path, "def add_one(x:\n")
        answer = workbench.ask("compare", kata, file=kata.kernel, gpu="h200", options={})
        assert answer.finding is not None
        assert answer.finding.code == "K101"


# --- Words: from a document made by hand, without a compiler. ---

OCCUPANCY = {"programs": 9, "warps": 36, "warps_possible": 64, "limiter": "registers", "limits": {}, "share": 0.5625}
WORST = {"kind": "store", "argument": "y_ptr", "file": "kernel.py", "line": 50, "column": 5, "ratio": 8.0}


def column(who: str, us: float, **more: Any) -> dict[str, Any]:
    return {
        "who": who, "finding": None, "error": 1.2e-7, "us": us, "share_of_bound": 62.4 / us, "limiter": "memory",
        "launches": 1, "bytes": 268435456, "dram_bytes": 268435456, "fetched_per_useful_byte": 1.0, "worst": None,
        "operations": [], "programs": 8192, "num_warps": 4, "registers": 48, "spilled_bytes": 0, "shared_bytes": 16,
        "occupancy": OCCUPANCY, **more,
    }  # fmt: skip


def document(**more: Any) -> dict[str, Any]:
    pytorch = {"who": "PyTorch", "finding": None, "error": 2.4e-7, "us": 109.4, "share_of_bound": 0.57, "launches": 1,
               "bytes": 268435456, "dram_bytes": 268435456, "operations": ["_softmax"], "measured": True}  # fmt: skip
    yours = column("yours", 1164.0, fetched_per_useful_byte=4.5, worst=WORST, operations=["clone"], limiter="L2")
    return {
        "gpu": {"key": "h200", "name": "NVIDIA H200", "target": "sm_90", "validated": True},
        "case": "8192 x 4096", "error_case": "8 x 5000, long rows", "note": "", "basis": "modelled for NVIDIA H200",
        "counted": "modelled for NVIDIA H200", "measured": False, "least_bytes": 268435456, "flops": 167772160,
        "bound_us": 62.4, "bound_by": "memory", "peak_gb_per_s": 4300, "peak_tflop_per_s": 67.0,
        "columns": [yours, column("reference", 67.5), pytorch], **more,
    }  # fmt: skip


def swept(**more: Any) -> dict[str, Any]:
    found = {"code": "K221", "message": "a program needs 294912 bytes of shared memory; the chip has 232448",
             "advice": "smaller blocks"}  # fmt: skip
    rows = [
        {"value": 32, "own": False, "us": 1340.2, "limiter": "starting programs", "finding": None},
        {"value": 512, "own": False, "us": 131.0, "limiter": "memory", "finding": None},
        {"value": 1024, "own": True, "us": 129.1, "limiter": "memory", "finding": None},
        {"value": 4096, "own": False, "us": None, "limiter": None, "finding": found},
    ]
    return document(sweep={"name": "BLOCK_SIZE", "own": 1024, "rows": rows, "tied": False, **more})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compare.txt", lambda: table("16_softmax", document(), Look(width=80))),
        ("sweep.txt", lambda: curve("01_vector_copy", swept(), Look(width=80))),
        ("sweep_ascii.txt", lambda: curve("01_vector_copy", swept(tied=True), Look(width=80, ascii=True))),
    ],
)
def test_what_is_printed(name: str, text: Any) -> None:
    found = "\n".join(text()) + "\n"
    if os.environ.get("KATA_WRITE_GOLDEN"):
        (GOLDEN / name).write_text(found, encoding="utf-8")
    assert found == (GOLDEN / name).read_text(encoding="utf-8")
    assert max(len(row) for row in found.splitlines()) <= 80


@pytest.mark.parametrize(
    ("text", "values"),
    [("BLOCK_SIZE=64..512", [64, 128, 256, 512]), ("B=100..600", [128, 256, 512]), (" num_warps = 1, 2,4", [1, 2, 4])],
)
def test_a_sweep_is_powers_of_two_or_a_list(text: str, values: list[int]) -> None:
    assert parse_sweep(text)["values"] == values


@pytest.mark.parametrize("text", ["BLOCK_SIZE", "=1,2", "B=", "B=a..b", "B=65..127", "B=0,1", "B=-4", "B=1..2..3"])
def test_a_sweep_that_cannot_be_read(text: str) -> None:
    with pytest.raises(KataUsageError) as caught:
        parse_sweep(text)
    assert "BLOCK_SIZE=64..4096" in caught.value.needed


def test_too_many_values() -> None:
    with pytest.raises(KataUsageError, match="has 17 values"):
        parse_sweep("B=" + ",".join(map(str, range(1, 18))))


def test_points_of_the_roofline() -> None:
    found = {who: (round(x, 3), round(y, 3)) for who, x, y in points(document())}
    assert found == {"yours": (0.625, 0.144), "reference": (0.625, 2.486), "PyTorch": (0.625, 1.534)}
    # Without arithmetic: the least bytes over the time.
    assert [round(rate) for _, _, rate in points(document(flops=0))] == [231, 3977, 2454]
    broken = {"who": "yours", "finding": {"code": "K601"}}
    assert [who for who, _, _ in points(document(columns=[broken, *document()["columns"][1:]]))] == [
        "reference",
        "PyTorch",
    ]


def test_kernels_without_docstrings_and_their_pairs() -> None:
    left = kernels(tiny.module('"""Docstring."""'))
    right = kernels(tiny.module())
    assert left[0].startswith("def add_kernel(")
    assert not any("add_one" in line for line in left)
    changed = [(one, other) for one, other, same in pairs(left, right) if not same]
    assert changed == [('    """Docstring."""', "    v = v + 1")]


@pytest.mark.parametrize(("width", "needle"), [("80", "+     v = v + 1"), ("140", "the reference")])
def test_source_fits_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: str, needle: str
) -> None:
    from checker.side_by_side import show

    monkeypatch.setenv("COLUMNS", width)
    mine, solution = tmp_path / "mine.py", tmp_path / "solution.py"
    mine.write_text(tiny.module("pass"))
    solution.write_text(tiny.module())
    show(mine, solution)
    out = capsys.readouterr().out
    assert needle in out
    assert max(len(row) for row in out.splitlines()) <= int(width)


def test_a_picture_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in for matplotlib, which is an extra: what is asked of it."""
    asked: list[Any] = []

    class Anything:
        def __getattr__(self, name: str) -> Any:
            return lambda *args, **kwargs: asked.append((name, args)) or Anything()

    module = ModuleType("matplotlib.figure")
    module.Figure = lambda **_: Anything()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "matplotlib", ModuleType("matplotlib"))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", module)
    from checker.roofline import draw

    for flops in (167772160, 0):
        asked.clear()
        draw(document(flops=flops), "16_softmax", tmp_path / "roof.svg")
        names = [name for name, _ in asked]
        assert ("loglog" if flops else "bar") in names
        assert asked[-1] == ("savefig", (tmp_path / "roof.svg",))
