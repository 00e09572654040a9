"""Every command, over a small tree: what it prints, how it exits, what it keeps."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from checker.findings import Finding
from checker.progress import Progress, Store

if TYPE_CHECKING:
    from checker.catalog import Kata

Command = Callable[..., Any]
RIGHT = "# right\n"


def kernel(tree: Path, name: str = "01_first_step") -> Path:
    return tree / "katas" / name / "kernel.py"


def progress(tree: Path) -> Progress:
    return Store(tree, ()).read()


class TestFirstCommand:
    @pytest.mark.parametrize("arguments", [(), ("list",), ("hint",)])
    def test_the_first_kata_appears(self, kata: Command, tree: Path, arguments: tuple[str, ...]) -> None:
        assert kata(*arguments).code == 0
        assert kernel(tree).exists()
        assert not kernel(tree, "05_second").exists()
        assert progress(tree).unlocked == ["01_first_step"]

    def test_what_is_there_is_left_alone(self, kata: Command, tree: Path) -> None:
        kernel(tree).write_text("mine")
        kata()
        assert kernel(tree).read_text() == "mine"


class TestStatusAndList:
    def test_status_says_where_and_what_next(self, kata: Command) -> None:
        out = kata().out
        assert "You are at 01_first_step (lesson 1, about 15 min)" in out
        assert "Edit katas/01_first_step/kernel.py" in out
        assert "kata check" in out

    def test_status_after_a_pass_points_to_next(self, kata: Command, tree: Path, runner: object) -> None:
        kernel(tree).write_text(RIGHT)
        kata("check")
        assert "kata next" in kata().out
        kernel(tree).write_text(RIGHT * 2)
        assert "has changed since" in kata().out

    def test_list_shows_lessons_and_states(self, kata: Command, tree: Path, runner: object) -> None:
        kernel(tree).write_text(RIGHT)
        kata("next")
        lines = kata("list").out.splitlines()
        assert [line for line in lines if line.startswith("Lesson")] == [
            "Lesson 1  What it is",
            "Lesson 2  What it does",
        ]
        assert next(line for line in lines if "01_first" in line).endswith("passed")
        assert next(line for line in lines if "05_second" in line).startswith("> ")
        assert next(line for line in lines if "13_third" in line).endswith("15 min")
        assert lines[-1] == "1 of 3 passed in a row; about 30 minutes to go."

    def test_list_says_what_each_kata_teaches(self, kata: Command, tree: Path, runner: object) -> None:
        lines = kata("list").out.splitlines()
        at = next(number for number, line in enumerate(lines) if "01_first" in line)
        assert lines[at + 1] == "    - say what it is"
        assert "    - say what it is" not in kata("list", "--short").out.splitlines()

    def test_a_lesson_that_comes_back_is_continued(self, kata: Command, tree: Path, runner: object) -> None:
        toml = tree / "katas" / "13_third" / "kata.toml"
        toml.write_text(toml.read_text().replace("lesson = 2", "lesson = 1"))
        assert "Lesson 1  What it is, continued" in kata("list").out.splitlines()

    def test_lessons_that_cannot_be_read_are_said(self, kata: Command, tree: Path, runner: object) -> None:
        (tree / "katas" / "outcomes.toml").write_text("[[lesson]]\n")
        outcome = kata("list")
        assert outcome.code == 2
        assert "git checkout" in outcome.err


class TestCheck:
    def test_a_pass_is_kept_and_unlocks_nothing(self, kata: Command, tree: Path, runner: object) -> None:
        kernel(tree).write_text(RIGHT)
        outcome = kata("check")
        assert outcome.code == 0
        assert "Next: `kata next`" in outcome.out
        assert list(progress(tree).passed) == ["01_first_step"]
        assert progress(tree).unlocked == ["01_first_step"]

    def test_a_failure_exits_1_and_says_what_to_open(self, kata: Command, tree: Path, runner: object) -> None:
        kata()
        outcome = kata("check", "1")
        assert outcome.code == 1
        assert "K601 wrong values" in outcome.out
        assert "Next: open katas/01_first_step/kernel.py, line 4" in outcome.out
        assert progress(tree).passed == {}

    def test_json_is_one_document_and_nothing_else(self, kata: Command, tree: Path, runner: object) -> None:
        document = json.loads(kata("check", "--json").out)
        assert document["schema"] == 1
        assert document["kata"] == "01_first_step"
        assert document["findings"][0]["line"] == 4

    def test_another_file_is_checked_but_not_kept(self, kata: Command, tree: Path, runner: Any) -> None:
        other = tree / "other.py"
        other.write_text(RIGHT)
        assert kata("check", "01", "--file", "other.py").code == 0
        assert runner.calls[-1]["file"] == other
        assert progress(tree).passed == {}

    def test_a_quick_pass_is_said_and_not_kept(self, kata: Command, tree: Path, runner: Any) -> None:
        kernel(tree).write_text(RIGHT)
        outcome = kata("check", "--quick")
        assert outcome.code == 0
        assert "`kata check 01` asks everything" in outcome.out
        assert progress(tree).passed == {}

    def test_options_reach_the_runner(self, kata: Command, runner: Any) -> None:
        kata("check", "--seed", "5", "--gpu", "a100", "--device", "virtual", "-v")
        call = runner.calls[-1]
        assert (call["seed"], call["gpu"], call["device"], call["verbose"]) == (5, "a100", "virtual", True)
        assert call["reveal"] is False

    def test_a_locked_kata_is_checked_and_said(self, kata: Command, tree: Path, runner: Any) -> None:
        outcome = kata("check", "05")
        assert outcome.code == 1
        assert "05_second is still locked" in outcome.err
        assert runner.calls[-1]["file"] == tree / "katas" / "05_second" / "skeleton.py"
        assert not kernel(tree, "05_second").exists()

    def test_the_third_wrong_prediction_reveals(self, kata: Command, tree: Path, runner: Any) -> None:
        for number, reveal in enumerate((False, False, False, True, True)):
            # The second file is checked twice: that is one try.
            kernel(tree).write_text(f"# wrong prediction {max(1, number)}\n")
            assert kata("check").code == 1
            assert runner.calls[-1]["reveal"] is reveal

    def test_a_file_saved_during_its_check_has_no_verdict(
        self, kata: Command, tree: Path, runner: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        kernel(tree).write_text(RIGHT)
        check = runner.check

        def saved_meanwhile(one: Kata, **options: Any) -> object:
            report = check(one, **options)
            kernel(tree).write_text("# not yet\n")
            return report

        monkeypatch.setattr(runner, "check", saved_meanwhile)
        kata("check")
        assert progress(tree).passed == {}

    def test_all_checks_what_is_unlocked(self, kata: Command, tree: Path, runner: Any) -> None:
        kernel(tree).write_text(RIGHT)
        kata("next")
        outcome = kata("check", "--all")
        assert outcome.code == 1
        assert outcome.out.splitlines() == [
            "01_first_step  passed",
            "05_second  does not pass  K601 wrong values",
            "1 of 2 unlocked katas pass.",
        ]
        document = json.loads(kata("check", "--all", "--json").out)
        assert [one["passed"] for one in document["katas"]] == [True, False]

    def test_all_restores_a_damaged_progress(self, kata: Command, tree: Path, runner: Any) -> None:
        kernel(tree).write_text(RIGHT)
        kata("next")
        (tree / ".kata" / "progress.json").write_text("damaged")
        outcome = kata("check", "--all")
        assert "progress.json.damaged-1" in outcome.err
        assert progress(tree).unlocked == ["01_first_step", "05_second"]
        assert list(progress(tree).passed) == ["01_first_step"]

    def test_a_deleted_file_comes_back(self, kata: Command, tree: Path, runner: Any) -> None:
        kata()
        kernel(tree).unlink()
        assert "was missing" in kata("check").err
        assert kernel(tree).exists()


class TestNext:
    def test_an_unsolved_kata_unlocks_nothing(self, kata: Command, tree: Path, runner: object) -> None:
        outcome = kata("next")
        assert outcome.code == 1
        assert "Nothing was unlocked" in outcome.out
        assert progress(tree).unlocked == ["01_first_step"]

    def test_a_solved_kata_unlocks_one(self, kata: Command, tree: Path, runner: Any) -> None:
        kernel(tree).write_text(RIGHT)
        outcome = kata("next")
        assert outcome.code == 0
        assert "Edit katas/05_second/kernel.py" in outcome.out
        assert kernel(tree, "05_second").exists()
        assert not kernel(tree, "13_third").exists()

    def test_what_has_passed_is_not_checked_again(self, kata: Command, tree: Path, runner: Any) -> None:
        kernel(tree).write_text(RIGHT)
        kata("check")
        assert kata("next").code == 0
        assert len(runner.calls) == 1

    def test_a_file_that_changed_since_is_checked_again(self, kata: Command, tree: Path, runner: Any) -> None:
        kernel(tree).write_text(RIGHT)
        kata("check")
        kernel(tree).write_text("# broken since\n")
        assert kata("next").code == 1
        assert progress(tree).unlocked == ["01_first_step"]

    def test_skip_goes_on_and_can_be_taken_back(self, kata: Command, tree: Path, runner: Any) -> None:
        assert kata("next", "--skip").code == 0
        assert progress(tree).skipped == ["01_first_step"]
        assert "You are at 05_second" in kata().out
        kernel(tree).write_text(RIGHT)
        kata("check", "01")
        assert progress(tree).skipped == []

    def test_skip_of_a_passed_kata_is_refused(self, kata: Command, tree: Path, runner: Any) -> None:
        kernel(tree).write_text(RIGHT)
        kata("check")
        outcome = kata("next", "--skip")
        assert outcome.code == 2
        assert "there is nothing to skip" in outcome.err

    def test_the_top_is_said(self, kata: Command, tree: Path, runner: Any) -> None:
        for name in ("01_first_step", "05_second", "13_third"):
            kata()
            kernel(tree, name).write_text(RIGHT)
            assert kata("next").code == 0
        assert "top of the ladder" in kata("next").out
        assert "top of the ladder" in kata().out


class TestHint:
    def test_each_call_gives_one_more(self, kata: Command) -> None:
        said = [kata("hint", "1", "2").out for _ in range(4)]
        assert "Hint 1 of 3: first of two" in said[0]
        assert "Hint 2 of 3: second of two" in said[1]
        assert "Hint 3 of 3: third of two" in said[2]
        assert said[3] == said[2]
        assert "That was the last hint" in said[2]

    def test_without_a_number_it_is_about_the_first_open_todo(self, kata: Command, tree: Path) -> None:
        assert "TODO 1" in kata("hint").out
        kernel(tree).write_text(kernel(tree).read_text().replace("begin\n", "begin\n    x += 1\n"))
        assert "TODO 2" in kata("hint").out

    def test_a_todo_that_does_not_exist(self, kata: Command) -> None:
        outcome = kata("hint", "1", "7")
        assert (outcome.code, "Its TODOs are 1, 2." in outcome.err) == (2, True)


class TestReset:
    def test_the_old_file_is_kept_and_named(self, kata: Command, tree: Path) -> None:
        kata()
        kernel(tree).write_text("mine")
        outcome = kata("reset")
        assert outcome.code == 0
        assert ".kata/backups/01_first_step/kernel.py.bak-1" in outcome.out
        assert (tree / ".kata/backups/01_first_step/kernel.py.bak-1").read_text() == "mine"
        assert "TODO(1)" in kernel(tree).read_text()

    def test_what_cannot_be_backed_up_is_not_reset(self, kata: Command, tree: Path) -> None:
        kata()
        kernel(tree).write_text("mine")
        (tree / ".kata" / "backups").write_text("in the way")
        outcome = kata("reset")
        assert outcome.code == 3
        assert "Nothing was changed" in outcome.err
        assert kernel(tree).read_text() == "mine"

    def test_a_locked_kata_has_nothing_to_reset(self, kata: Command) -> None:
        assert kata("reset", "13").code == 2


class TestExplain:
    @pytest.mark.parametrize("code", ["K402", "k402", "402"])
    def test_it_tells_the_story(self, kata: Command, code: str) -> None:
        out = kata("explain", code).out
        assert out.startswith("K402 store outside the tensor")
        assert "mask=offs < n" in out

    def test_without_a_code_it_lists_the_families(self, kata: Command) -> None:
        out = kata("explain").out
        assert "K4xx  memory" in out
        assert "K402  store outside the tensor" in out

    def test_an_unknown_code_gets_its_family(self, kata: Command) -> None:
        outcome = kata("explain", "K499")
        assert outcome.code == 2
        assert "K402" in outcome.err


class TestDebug:
    def test_it_runs_one_case_in_the_foreground(self, kata: Command, tree: Path, runner: Any) -> None:
        assert kata("debug", "05", "--case", "n=1", "--program", "0").code == 0
        assert runner.calls == [{"kata": "05_second", "case": "n=1", "program": 0, "root": tree}]

    def test_a_case_is_needed(self, kata: Command) -> None:
        outcome = kata("debug")
        assert outcome.code == 2
        assert "--case" in outcome.err


class TestWatch:
    @pytest.fixture
    def save_and_check(self, kata: Command, tree: Path, runner: Any, monkeypatch: pytest.MonkeyPatch) -> Command:
        """Runs `kata watch` over one save; the file is as old as is said when its verdict comes."""

        def run(text: str, age: float) -> Any:
            def watch(one: Kata, root: Path, *, on_report: Callable[[object], None]) -> None:
                one.kernel.write_text(text)
                os.utime(one.kernel, (time.time() - age,) * 2)
                on_report(replace(runner.check(one, file=one.kernel), seconds=1.0))

            fake = ModuleType("checker.watch")
            fake.watch = watch  # type: ignore[attr-defined]
            monkeypatch.setitem(sys.modules, "checker.watch", fake)
            monkeypatch.setattr("checker.watch", fake, raising=False)
            return kata("watch")

        return run

    def test_a_verdict_is_printed_and_a_pass_kept(self, save_and_check: Command, tree: Path) -> None:
        outcome = save_and_check(RIGHT, age=5)
        assert (outcome.code, "01_first_step  passed" in outcome.out) == (0, True)
        assert list(progress(tree).passed) == ["01_first_step"]
        assert progress(tree).unlocked == ["01_first_step"]

    def test_a_file_saved_during_its_check_has_no_verdict(self, save_and_check: Command, tree: Path) -> None:
        save_and_check(RIGHT, age=0.2)
        assert progress(tree).passed == {}

    def test_a_locked_kata_is_not_watched(self, kata: Command) -> None:
        assert kata("watch", "13").code == 2


class Workbench(ModuleType):
    """Stands in for `checker.workbench`, which starts a child: answers with what it was given, and keeps the calls."""

    def __init__(self) -> None:
        super().__init__("checker.workbench")
        self.calls: list[dict[str, Any]] = []
        self.document: dict[str, Any] | None = None
        self.finding: Finding | None = None

    def ask(self, task: str, kata: Kata, **options: Any) -> Any:
        self.calls.append({"task": task, "kata": kata.id, **options})
        return SimpleNamespace(document=self.document, finding=self.finding, output="")


@pytest.fixture
def workbench(monkeypatch: pytest.MonkeyPatch) -> Workbench:
    import checker

    fake = Workbench()
    fake.finding = Finding("K201", "the length is not a power of two", "round up", line=3)
    monkeypatch.setitem(sys.modules, "checker.workbench", fake)
    monkeypatch.setattr(checker, "workbench", fake, raising=False)
    monkeypatch.setattr("checker.devices.problem", lambda: "the installed PyTorch is built without CUDA")
    return fake


SWEPT = {
    "basis": "modelled for NVIDIA H200",
    "case": "n=2^20",
    "gpu": {},
    "sweep": {
        "name": "B",
        "own": 64,
        "tied": False,
        "rows": [{"value": 64, "own": True, "us": 3.0, "limiter": "memory", "finding": None}],
    },
}


class TestCompare:
    def test_it_opens_once_the_kata_passes(self, kata: Command, tree: Path, runner: Any, workbench: Workbench) -> None:
        outcome = kata("compare")
        assert outcome.code == 1
        assert "01_first_step does not pass yet" in outcome.out
        assert "--spoil" in outcome.out
        assert workbench.calls == []
        kernel(tree).write_text(RIGHT)
        kata("check")
        kata("compare")
        assert workbench.calls[-1]["options"] == {"case": None, "trusted": True, "sweep": None}

    def test_what_changed_since_it_passed_is_judged_again(
        self, kata: Command, tree: Path, runner: Any, workbench: Workbench
    ) -> None:
        kernel(tree).write_text(RIGHT)
        kata("check")
        kernel(tree).write_text(RIGHT * 2)
        kata("compare")
        assert workbench.calls[-1]["options"]["trusted"] is False

    def test_a_locked_kata_says_how_to_unlock(self, kata: Command, workbench: Workbench) -> None:
        outcome = kata("compare", "13")
        assert (outcome.code, "`kata next` unlocks" in outcome.out) == (1, True)

    def test_spoil_shows_it_all_the_same(self, kata: Command, workbench: Workbench) -> None:
        outcome = kata("compare", "--spoil", "--gpu", "l4", "--case", "n=7")
        call = workbench.calls[-1]
        assert (call["task"], call["gpu"], call["device"], call["options"]["case"]) == (
            "compare",
            "l4",
            "virtual",
            "n=7",
        )
        # The answer is a finding: exit 1 and its text.
        assert outcome.code == 1
        assert "K201 the length of a block is not a power of two" in outcome.out

    def test_a_sweep_needs_no_pass(self, kata: Command, workbench: Workbench) -> None:
        workbench.document = SWEPT
        outcome = kata("compare", "--sweep", "B=64..128")
        assert outcome.code == 0
        assert workbench.calls[-1]["options"]["sweep"] == {"name": "B", "values": [64, 128]}
        assert "best, yours" in outcome.out
        document = json.loads(kata("compare", "--sweep", "B=64", "--json").out)
        assert (document["schema"], document["kata"]) == (1, "01_first_step")

    def test_a_finding_as_json(self, kata: Command, workbench: Workbench) -> None:
        outcome = kata("compare", "--spoil", "--json")
        assert outcome.code == 1
        assert json.loads(outcome.out)["finding"]["code"] == "K201"

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (("--plot", "roof.jpg"), "A picture is a .png or an .svg file."),
            (("--plot", "nowhere/roof.png"), "There is no folder"),
            (("--sweep", "B"), "BLOCK_SIZE=64..4096"),
            (("--sweep", "B=1", "--source"), "One at a time."),
        ],
    )
    def test_what_cannot_be_asked(
        self, kata: Command, workbench: Workbench, arguments: tuple[str, ...], said: str
    ) -> None:
        outcome = kata("compare", "--spoil", *arguments)
        assert (outcome.code, said in outcome.err) == (2, True)
        assert workbench.calls == []

    def test_a_plot_without_matplotlib_says_how_to_get_it(
        self, kata: Command, workbench: Workbench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        outcome = kata("compare", "--spoil", "--plot", "roof.svg")
        assert outcome.code == 3
        assert "pip install" in outcome.err
        assert workbench.calls == []

    def test_no_real_gpu(self, kata: Command, workbench: Workbench) -> None:
        outcome = kata("compare", "--spoil", "--device", "cuda")
        assert (outcome.code, "built without CUDA" in outcome.err) == (3, True)

    def test_sources_side_by_side(self, kata: Command, tree: Path, workbench: Workbench) -> None:
        kata()
        kernel(tree).write_text("@triton.jit\ndef k(x):\n    pass\n")
        (tree / "solutions" / "01_first_step.py").write_text("@triton.jit\ndef k(x):\n    tl.store(x, 1)\n")
        outcome = kata("compare", "--spoil", "--source")
        assert outcome.code == 0
        assert "tl.store(x, 1)" in outcome.out
        kernel(tree).write_text("def k(x:\n")
        assert "does not parse" in kata("compare", "--spoil", "--source").err


class TestInspect:
    def test_a_finding_is_shown_and_exits_1(self, kata: Command, tree: Path, workbench: Workbench) -> None:
        outcome = kata("inspect", "--gpu", "t4")
        assert outcome.code == 1
        assert "K201 the length of a block is not a power of two" in outcome.out
        assert workbench.calls[-1]["file"] == kernel(tree)

    def test_a_level_is_printed_whole(self, kata: Command, workbench: Workbench) -> None:
        workbench.document = {"texts": {"ttir": "module {\n}\n", "ptx": "ret;"}, "gpu": {"name": "NVIDIA T4"}}
        assert kata("inspect", "--level", "ttir").out == "module {\n}\n"
        assert json.loads(kata("inspect", "--level", "ptx", "--json").out)["texts"] == {"ptx": "ret;"}
        outcome = kata("inspect", "--level", "amdgcn")
        assert outcome.code == 2
        assert "Its levels are ttir, ptx." in outcome.err

    def test_a_level_that_does_not_exist(self, kata: Command, workbench: Workbench) -> None:
        assert kata("inspect", "--level", "cubin").code == 2


class TestErrors:
    def test_an_unknown_kata_gets_the_nearest(self, kata: Command) -> None:
        outcome = kata("check", "secnod")
        assert outcome.code == 2
        assert "Did you mean 05_second?" in outcome.err
        assert "Usage:" not in outcome.err

    def test_an_unknown_command_gets_the_nearest(self, kata: Command) -> None:
        outcome = kata("chek")
        assert outcome.code == 2
        assert "Did you mean `kata check`?" in outcome.err

    @pytest.mark.parametrize(
        "arguments", [("check", "--all", "01"), ("check", "--file", "katas/01_first_step/skeleton.py"),
                      ("check", "01", "--file", "missing.py"), ("check", "--device", "tpu"), ("check", "--seed", "-1")]
    )  # fmt: skip
    def test_options_that_do_not_fit(self, kata: Command, arguments: tuple[str, ...]) -> None:
        outcome = kata(*arguments)
        assert outcome.code == 2
        assert "Error: " in outcome.err

    def test_ctrl_c_is_one_line_and_130(
        self, kata: Command, tree: Path, runner: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def interrupted(*arguments: object, **options: object) -> None:
            raise KeyboardInterrupt

        kata()
        before = (tree / ".kata" / "progress.json").read_bytes()
        monkeypatch.setattr(runner, "check", interrupted)
        outcome = kata("check")
        assert outcome.code == 130
        assert outcome.err.strip() == "Interrupted. Nothing was lost."
        assert (tree / ".kata" / "progress.json").read_bytes() == before

    def test_elsewhere_than_on_linux_it_says_what_to_do(self, kata: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("checker.commands.session.sys.platform", "darwin")
        outcome = kata("check")
        assert outcome.code == 3
        assert "dev container" in outcome.err
        assert kata("hint").code == 0

    def test_no_tree_at_all(self, kata: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("KATA_ROOT", os.fspath(tmp_path / "nowhere"))
        outcome = kata("list")
        assert outcome.code == 2
        assert "KATA_ROOT" in outcome.err
