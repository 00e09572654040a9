"""The speed stage: what it measures, what its thresholds refuse, and why it says a kernel is slow. Ratios only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import tiny
import torch

import checker
from checker import bounds, devices, judge, speed, speed_rows, timing
from checker.cases import Case
from checker.catalog import SpeedCase, load
from checker.loading import load_module
from checker.speed import SpeedResult
from checker.timed_cases import halved, timed_case
from checker.verdict import conclude
from checker.vgpu.lazy import LazyDraw
from checker.vgpu.specs import chip

pytest.importorskip("triton", reason="Triton has wheels for Linux only")

ROOT = Path(__file__).parents[1]
HERE = str(Path(checker.__file__).resolve().parent.parent)
H200 = chip("h200")
# Other tests fork: a child hangs at its first parallel operation if its parent has started torch's threads.
torch.set_num_threads(1)

SPEC = """
import torch

def timed_inputs(case, draw):
    return (draw(case.shape, case.dtype),)

def expected_at(indices, x):
    return x.reshape(-1)[indices].double()

def eager(x):
    return x.clone()

def least_bytes(case):
    return 2 * torch.Size(case.shape).numel() * case.dtype.itemsize

def flops(case):
    return 0
"""
KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    offs = tl.program_id(0).to(tl.int64) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


def vector_copy(x):
    y = torch.empty_like(x)
    n = x.numel()
    {before}
    copy_kernel[(triton.cdiv(n, {block}),)](x, y, n, BLOCK_SIZE={block})
    {after}
    return y
"""


def case(power: int = 26, to: str = "bound", at_least: float = 0.8, **more: Any) -> SpeedCase:
    given = {"against": "eager", "refuses": "", "passes": "", **more}
    return SpeedCase(f"2^{power}", {"shape": (1 << power,), "dtype": "float32"}, to, at_least, **given)


@pytest.fixture
def subject(tmp_path: Path) -> Callable[..., judge.Subject]:
    """A copy kernel with lines of its wrapper replaced, as a subject."""

    def make(block: int = 1024, before: str = "pass", after: str = "pass", gpu: str = "h200") -> judge.Subject:
        folder = tmp_path / "katas" / "01_copy"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "spec.py").write_text(SPEC)
        (tmp_path / "solutions").mkdir(exist_ok=True)
        (tmp_path / "solutions" / "01_copy.py").write_text(KERNEL.format(block=1024, before="pass", after="pass"))
        file = folder / f"kernel{len(list(folder.iterdir()))}.py"
        file.write_text(KERNEL.format(block=block, before=before, after=after))
        # Activated anew: another test may have used another chip.
        judge.open_gpu(gpu).activate()
        module = load_module(file)
        return judge.Subject(module, load_module(folder / "spec.py"), module.vector_copy, file, gpu, device="virtual")

    return make


Make = Callable[..., judge.Subject]


def found(subject: judge.Subject, timed: SpeedCase) -> tuple[SpeedResult, list[str]]:
    result = speed.measure(subject, timed, 1)
    return result, [finding.code for finding in speed.judge(subject, result)]


# --- the bound ---


def test_the_bound_is_the_larger_of_memory_and_arithmetic() -> None:
    memory = bounds.bound(H200, least_bytes=10**9, written_bytes=0, flops=10**9, dtype="float16")
    arithmetic = bounds.bound(H200, least_bytes=10**8, written_bytes=0, flops=10**12, dtype="float16")
    assert (memory.by, arithmetic.by) == ("memory", "arithmetic")
    assert memory.us == pytest.approx(1e9 / (H200.copy_gb_per_s * 1e3))
    assert arithmetic.us == pytest.approx(1e12 / (H200.fp16_tensor_tflop_per_s * 1e6))
    exact = bounds.bound(H200, least_bytes=10**8, written_bytes=0, flops=10**12, dtype="float32")
    assert exact.us > 10 * arithmetic.us
    shortened = bounds.bound(H200, least_bytes=10**8, written_bytes=0, flops=10**12, dtype="tf32")
    assert arithmetic.us < shortened.us < exact.us


def test_float32_is_bound_by_the_rate_of_tf32_where_a_case_asks_for_it() -> None:
    assert bounds.arithmetic_of(Case("exact", dtype=torch.float32, precision="ieee")) == "float32"
    assert bounds.arithmetic_of(Case("shortened", dtype=torch.float32, precision="tf32")) == "tf32"


def test_what_l2_may_still_hold_is_only_left_out_of_the_physical_bound() -> None:
    small = bounds.bound(H200, least_bytes=2 * 10**7, written_bytes=10**7, flops=0, dtype="float32")
    twice = bounds.bound(H200, least_bytes=3 * 10**9, written_bytes=0, again_bytes=10**9, flops=0, dtype="float32")
    once = bounds.bound(H200, least_bytes=2 * 10**9, written_bytes=0, flops=0, dtype="float32")
    assert twice.physical_us == once.physical_us
    assert twice.us > once.us
    large = bounds.bound(H200, least_bytes=2 * 10**9, written_bytes=10**9, flops=0, dtype="float32")
    assert small.physical_us == pytest.approx(1e7 / (H200.dram_gb_per_s * 1e3))
    assert 0.8 < large.physical_us / large.us < 0.9


# --- inputs ---


def test_large_inputs_are_random_differ_by_seed_and_are_private() -> None:
    x, again, other = (LazyDraw(seed)((1 << 24,), torch.float32) for seed in (1, 1, 2))
    part = x[: 1 << 18]
    assert abs(float(part.mean())) < 0.02
    assert abs(float(part.std()) - 1) < 0.02
    assert torch.equal(part, again[: 1 << 18])
    assert not torch.equal(part, other[: 1 << 18])
    again[0] = 7.0
    assert float((again == 7.0).sum()) == 1
    assert float(x[0]) != 7.0


def test_neighbouring_rows_of_a_large_input_differ() -> None:
    x = LazyDraw(1)((8192, 1024), torch.bfloat16)
    assert x.shape == (8192, 1024)
    assert len({tuple(row.tolist()) for row in x[::512, :8]}) == 16


def test_an_input_that_does_not_fit_shrinks_and_says_so() -> None:
    spec: Any = SimpleNamespace(least_bytes=lambda case: 8 * case.shape[0] * case.shape[1])
    timed = SpeedCase("8192 x 4096", {"shape": (8192, 4096), "dtype": "float32"}, "bound", 0.8, "", "", "")
    whole, nothing = timed_case(timed, spec, 10**12)
    assert (whole.shape, nothing) == ((8192, 4096), "")
    smaller, note = timed_case(timed, spec, 3 * 8 * 8192 * 1024)
    assert smaller.shape == (2048, 4096)
    assert "8192 x 4096" in note
    assert "(2048, 4096)" in note


def test_the_largest_extent_is_halved_first() -> None:
    smaller = halved(Case("a", n=64, dtype=torch.float32))
    assert smaller is not None
    assert smaller.n == 32
    assert halved(Case("b", n=1)) is None


# --- measuring ---


def test_a_plain_copy_is_near_the_bound_and_verified(subject: Make) -> None:
    result, codes = found(subject(), case())
    assert codes == []
    assert 0.9 < result.share_of_bound < 1.0
    assert result.ratio == result.share_of_bound
    assert result.counted.bytes == result.least_bytes
    assert result.counted.limiter == "memory"
    assert result.counted.worst is None
    assert result.verified > 0
    assert result.basis == "modelled for NVIDIA H200"
    assert (result.rounds, result.measured) == (3, False)


def test_each_round_gets_fresh_inputs_and_a_cold_l2(subject: Make) -> None:
    # A tensor that L2 could hold: warm, it would take a third of the time.
    learner = subject()
    seen: list[float] = []
    entry = learner.entry

    def watched(x: torch.Tensor) -> torch.Tensor:
        seen.append(float(x[0]))
        return entry(x)

    result = speed.measure(replace(learner, entry=watched), case(21), 1)
    assert len(set(seen[-3:])) == 3
    assert result.high <= 1.02 * result.low


@pytest.mark.parametrize("to", ["bound", "bytes", "reference", "torch"])
def test_each_kind_of_threshold_passes_a_plain_copy_and_refuses_a_double_one(subject: Make, to: str) -> None:
    timed = case(to=to, at_least=0.8)
    double = "copy_kernel[(triton.cdiv(n, 1024),)](x, torch.empty_like(x), n, BLOCK_SIZE=1024)"
    good, nothing = found(subject(), timed)
    bad, codes = found(subject(before=double), timed)
    assert nothing == []
    assert codes == ["K801"]
    assert good.ratio is not None
    assert bad.ratio is not None
    assert bad.ratio == pytest.approx(good.ratio / 2, rel=0.05)


def test_what_pytorch_does_in_the_wrapper_counts(subject: Make) -> None:
    plain, _ = found(subject(), case())
    result, codes = found(subject(before="x = x.clone()"), case())
    assert codes == ["K801"]
    assert 1.8 < result.us / plain.us < 2.2
    assert result.counted.bytes == 2 * plain.counted.bytes
    (finding,) = speed.judge(subject(), result)
    assert "clone" in finding.message


def test_the_diagnosis_names_the_cause_and_what_its_absence_would_save(subject: Make) -> None:
    learner = subject(block=32)
    result = speed.measure(learner, case(), 1)
    (finding,) = speed.judge(learner, result)
    assert finding.code == "K804"
    assert finding.stage == "speed"
    assert finding.line is not None
    assert "copy_kernel" in str(finding.launch)
    assert result.causes[0].us < 0.2 * result.us


def test_a_result_that_is_wrong_only_at_the_timed_size_is_refused(subject: Make) -> None:
    learner = subject(after="y[:] = 0 if n > 1 << 20 else y")
    wrong = speed.measure(learner, case(22), 1)
    assert wrong.wrong is not None
    (finding,) = speed.judge(learner, wrong)
    assert (finding.code, finding.stage) == ("K601", "speed")


def test_launches_in_place_that_only_moved_the_clock_are_no_wrong_result(subject: Make) -> None:
    again = "[copy_kernel[(triton.cdiv(n, 1024),)](y, y, n, BLOCK_SIZE=1024) for _ in range(3)]"
    learner = subject(after=again)
    doubling = learner.file.read_text().replace(
        "tl.load(x_ptr + offs, mask=mask)", "2 * tl.load(x_ptr + offs, mask=mask)"
    )
    learner.file.write_text(doubling)
    learner.spec.expected_at = lambda indices, x: 16 * x[indices].double()  # type: ignore[attr-defined]  # of the spec
    module = load_module(learner.file)
    result = speed.measure(replace(learner, module=module, entry=module.vector_copy), case(22), 1)
    assert result.wrong is None
    assert result.verified == 0


def test_a_sample_that_reads_what_no_sampled_program_stored_is_no_wrong_result(subject: Make) -> None:
    through = "t = torch.empty_like(x); copy_kernel[(triton.cdiv(n, 512),)](x, t, n, BLOCK_SIZE=512); x = t"
    result, codes = found(subject(before=through), case(22))
    assert result.wrong is None
    assert "K601" not in codes
    assert result.counted.launches == 2


def test_half_of_the_work_in_half_of_the_time_is_impossible(subject: Make) -> None:
    assert found(subject(before="n = n if n < 1 << 20 else n // 2"), case())[1] == ["K811"]


def test_a_time_below_the_physical_bound_is_refused(subject: Make) -> None:
    learner = subject()
    result = speed.measure(learner, case(), 1)
    (finding,) = speed.judge(learner, replace(result, us=0.5 * result.bound.physical_us))
    assert finding.code == "K811"
    assert speed.judge(learner, replace(result, us=result.bound.us)) == []


def test_work_that_was_done_before_the_clock_started_is_impossibly_fast(subject: Make) -> None:
    learner = subject()
    kept: dict[torch.Size, torch.Tensor] = {}
    entry = learner.entry

    def remembering(x: torch.Tensor) -> torch.Tensor:
        return kept.setdefault(x.shape, entry(x)) if x.shape not in kept else kept[x.shape]

    result = speed.measure(replace(learner, entry=remembering), case(), 1)
    assert [finding.code for finding in speed.judge(learner, result)] == ["K811"]


def test_a_ratio_near_its_threshold_is_called_close(subject: Make) -> None:
    result = speed.measure(subject(), case(), 1)
    assert not result.close
    assert result.ratio is not None
    for at_least, enough in ((0.98 * result.ratio, True), (1.02 * result.ratio, False)):
        near = replace(result, threshold=case(at_least=at_least))
        assert near.close
        assert near.enough == enough
        assert any("close" in note for note in speed.notes(near))
        assert "(close)" in next(iter(speed_rows.lines(near.row())))


def test_times_of_a_chip_without_measurements_decide_nothing_but_bytes_do(subject: Make) -> None:
    slow = subject(block=32, gpu="a100")
    result, codes = found(slow, case())
    assert result.basis.endswith("not validated")
    assert (result.decides, codes) == (False, [])
    assert any("not validated" in note for note in speed.notes(result))
    torch_case, nothing = found(slow, case(to="torch"))
    assert (torch_case.decides, nothing) == (False, [])
    double = "copy_kernel[(triton.cdiv(n, 1024),)](x, torch.empty_like(x), n, BLOCK_SIZE=1024)"
    assert found(subject(before=double, gpu="a100"), case(to="bytes"))[1] == ["K801"]


@pytest.mark.slow
def test_a_program_that_walks_over_everything_is_timed_on_a_part(tmp_path: Path) -> None:
    root = ROOT / "katas" / "01_vector_copy"
    file = ROOT / "tests" / "mutants" / "01_vector_copy" / "slow_one_program.py"
    judge.open_gpu("h200").activate()
    module = load_module(file)
    learner = judge.Subject(module, load_module(root / "spec.py"), module.vector_copy, file, "h200", device="virtual")
    result, codes = found(learner, case(28))
    assert codes == ["K803"]
    assert "single program" in result.note


def test_costly_calls_are_made_once_and_repeated_on_the_clock(subject: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_COSTLY", 0.0)
    learner = subject()
    calls: list[int] = []
    entry = learner.entry

    def counted(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.numel())
        return entry(x)

    result = speed.measure(replace(learner, entry=counted), case(), 1)
    assert calls.count(1 << 26) == 1
    assert result.rounds == 3
    assert result.high <= 1.02 * result.low


def test_the_call_that_tunes_is_not_the_one_that_is_timed(subject: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    import triton

    monkeypatch.setattr(timing, "_COSTLY", 0.0)
    plain, learner = subject(), subject()
    learner.module.tuned = triton.autotune([triton.Config({})], key=[])(learner.module.copy_kernel)
    assert speed.measure(learner, case(), 1).us == pytest.approx(speed.measure(plain, case(), 1).us, rel=0.02)


# --- the row and its lines ---


def test_the_row_is_json_and_its_lines_say_what_rests_on_what(subject: Make) -> None:
    row = speed.measure(subject(block=32), case(), 1).row()
    assert json.loads(json.dumps(row)) == row
    text = "\n".join(speed_rows.lines(row))
    assert "of the bound" in text
    assert "needs 0.80" in text
    assert "limited by starting programs" in text
    assert "is the least" in text
    assert speed_rows.basis(row) == "modelled for NVIDIA H200"


# --- in a check ---

TOML = (
    tiny.TOML.format(id="01_add_one")
    + """
[[speed]]
case = "2^24"
params = { n = 16777216 }
to = "bound"
at_least = 0.7
refuses = "blocks of 32: 0.2"
passes = "blocks of 1024: 0.8"
"""
)
TIMED = (
    tiny.SPEC
    + '''

def timed_inputs(case, draw):
    """One large tensor."""
    return (draw((case.n,), torch.float32),)


def expected_at(indices, x):
    """One more, at some places."""
    return x[indices].double() + 1
'''
)
PERFORMANCE = '"""Fast."""\n\n\ndef test_is_fast(speed, case):\n    speed.check(case)\n'


def timed_kata(root: Path, block: int) -> Path:
    kata = tiny.make(root, spec=TIMED, kernel=tiny.module().replace("32", str(block)), test_performance=PERFORMANCE)
    (kata.folder / "kata.toml").write_text(TOML)
    return kata.folder


def plain(root: Path, *arguments: str) -> tuple[int, str, list[dict[str, Any]]]:
    """Plain pytest on the kata, with pytest-benchmark: exit code, output, records."""
    records = root / "records.jsonl"
    environment = {**os.environ, "PYTHONPATH": HERE, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-B", "-m", "pytest", "-p", "checker.plugin", "-p", "pytest_benchmark.plugin"]
    command += ["-p", "no:cacheprovider", "--import-mode=importlib", f"--kata-records={records}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment, timeout=200, check=False)
    rows = [json.loads(line) for line in records.read_text().splitlines()] if records.exists() else []
    return done.returncode, done.stdout + done.stderr, rows


def stage(rows: list[dict[str, Any]], name: str) -> Any:
    report = conclude(rows, kata="01_add_one", file="", seed=1, device={})
    return next(stage for stage in report.stages if stage.name == name)


@pytest.mark.slow
def test_plain_pytest_shows_the_modelled_time_in_the_table_of_pytest_benchmark(tmp_path: Path) -> None:
    timed_kata(tmp_path, 1024)
    code, out, rows = plain(tmp_path, "katas")
    assert code == 0, out
    assert "test_is_fast[2^24]" in out
    assert "benchmark: 1 tests" in out
    (row,) = [record["row"] for record in rows if record["kind"] == "performance"]
    assert row["enough"]
    # The table's figure is the clock's: tens of microseconds, which no run of this takes on a CPU.
    assert row["rounds"] == 3
    assert stage(rows, "speed").status == "passed"


@pytest.mark.slow
def test_a_slow_kernel_turns_the_speed_stage_red(tmp_path: Path) -> None:
    timed_kata(tmp_path, 32)
    code, out, rows = plain(tmp_path, "katas", "--benchmark-disable-gc")
    assert code == 1, out
    assert [record["finding"]["code"] for record in rows if record["kind"] == "finding"] == ["K804"]
    assert stage(rows, "values").status == "passed"
    assert stage(rows, "speed").status == "failed"


@pytest.mark.parametrize("option", ["--benchmark-disable", "--kata-quick"])
@pytest.mark.slow
def test_the_stage_can_be_left_out_and_says_so(tmp_path: Path, option: str) -> None:
    timed_kata(tmp_path, 32)
    code, out, rows = plain(tmp_path, "katas", option)
    assert code == 0, out
    assert stage(rows, "speed").status == "skipped"
    assert stage(rows, "speed").reason


@pytest.mark.slow
def test_a_red_stage_before_it_leaves_no_time(tmp_path: Path) -> None:
    folder = timed_kata(tmp_path, 1024)
    (folder / "kernel.py").write_text(tiny.module("v = v + 2").replace("32", "1024"))
    _, _, rows = plain(tmp_path, "katas")
    assert not [record for record in rows if record["kind"] == "performance"]
    assert stage(rows, "speed").reason == "stopped by values"


def test_every_speed_case_can_be_drawn_and_has_its_cost(subject: Make) -> None:
    """For all katas: the case's parameters are the spec's, and PyTorch's cost is known where a threshold needs it."""
    from checker.vgpu.aten import cost

    for kata in load(ROOT):
        spec: ModuleType = load_module(kata.spec)
        for timed in kata.speed:
            found_case, note = timed_case(timed, spec, H200.memory_bytes)
            assert not note
            inputs = spec.timed_inputs(found_case, lambda shape, dtype: torch.empty(shape, dtype=dtype, device="meta"))
            assert spec.least_bytes(found_case) > 0
            if timed.to == "torch":
                assert cost(getattr(spec, timed.against), *inputs, spec=H200).measured, (kata.id, timed.id)


# --- devices ---


def test_a_device_is_chosen_without_torch_and_its_absence_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "problem", lambda: "there is none")
    assert [devices.choose(name) for name in ("auto", "virtual", "cuda")] == ["virtual", "virtual", "cuda"]
    monkeypatch.setattr(devices, "problem", lambda: "")
    assert devices.choose("auto") == "cuda"


@pytest.mark.skipif(not devices.problem(), reason="there is a GPU")
def test_without_a_gpu_the_environment_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "checker", "check", "01", "--file", "solutions/01_vector_copy.py"]
    done = subprocess.run(
        [*command, "--device", "cuda"], capture_output=True, text=True, cwd=ROOT, timeout=100, check=False
    )
    assert done.returncode == 3
    assert "K006" in done.stdout
    assert devices.problem() in " ".join(done.stdout.split())


@pytest.mark.slow
def test_a_cold_check_with_its_speed_stage_takes_at_most_four_times_importing_torch(tmp_path: Path) -> None:
    def cpu_seconds(*command: str) -> float:
        script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)\n"
        script += "used = resource.getrusage(resource.RUSAGE_CHILDREN); print(used.ru_utime + used.ru_stime)"
        environment = {**os.environ, "TRITON_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", script, *command],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
            check=True,
        )
        return float(done.stdout.split()[-1])

    check = cpu_seconds(sys.executable, "-m", "checker", "check", "01", "--file", "solutions/01_vector_copy.py")
    imports = min(cpu_seconds(sys.executable, "-c", "import torch") for _ in range(2))
    assert check <= 4 * imports
