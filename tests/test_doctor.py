"""`kata doctor` finds what is missing, names the command that mends it, and needs none of it to say so."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from checker import devices
from checker.cli import run
from checker.doctor import examination, hardware, software, toolchain
from checker.doctor.item import Item

ROOT = Path(__file__).parents[1]
Doctor = Callable[[], tuple[int, dict[str, dict[str, str]]]]

needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton has wheels for Linux only")


@pytest.fixture
def sound(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine that lacks nothing, whatever this one lacks: then only what is staged can be found."""
    compiler, header = tmp_path / "bin" / "gcc", tmp_path / "include" / "Python.h"
    for file in (compiler, header):
        file.parent.mkdir()
        file.touch()
    compiler.write_text('#!/bin/sh\nfor last; do :; done\n: > "$last"\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(compiler.parent))
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    for name in ("CC", "TRITON_PTXAS_PATH", "TRITON_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(toolchain.sysconfig, "get_paths", lambda: {"include": str(header.parent)})
    monkeypatch.setattr(toolchain, "_LEAST_FREE", 0)
    monkeypatch.setattr(hardware, "_total_bytes", lambda: 16 * 2**30)
    monkeypatch.setattr(hardware, "_available_bytes", lambda: 8 * 2**30)
    monkeypatch.setattr(hardware, "_nvidia_in_the_machine", lambda: False)
    monkeypatch.setattr(metadata, "requires", lambda name: [])
    monkeypatch.setattr(devices, "problem", lambda: "there is no NVIDIA driver (libnvidia-ml.so.1)")
    return tmp_path


@pytest.fixture
def doctor(capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Runs `kata doctor --json`: the exit code, and the items by name."""

    def call() -> tuple[int, dict[str, dict[str, str]]]:
        code = run(["doctor", "--json"])
        document = json.loads(capsys.readouterr().out)
        assert document["schema"] == 1
        assert document["ok"] == (code == 0)
        return code, {item["name"]: item for item in document["items"]}

    return call


@pytest.fixture
def no_children(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """In place of the children that run the kernel; keeps the devices they were asked for."""
    asked: list[str] = []

    def well(device: str, title: str, **_: Any) -> Iterator[Item]:
        asked.append(device)
        yield Item(title, "ok", "as if it had run")

    monkeypatch.setattr(examination, "_run", well)
    return asked


def without(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Stage that a package is not installed."""
    found, version = importlib.util.find_spec, metadata.version

    def no_version(wanted: str) -> str:
        if wanted == name:
            raise metadata.PackageNotFoundError(name)
        return version(wanted)

    monkeypatch.setattr(importlib.util, "find_spec", lambda wanted, *rest: None if wanted == name else found(wanted))
    monkeypatch.setattr(metadata, "version", no_version)


def with_version(monkeypatch: pytest.MonkeyPatch, name: str, staged: str) -> None:
    """Stage that another version of a package is installed."""
    version = metadata.version
    monkeypatch.setattr(metadata, "version", lambda wanted: staged if wanted == name else version(wanted))


def troubles(items: dict[str, dict[str, str]]) -> list[str]:
    return [name for name, item in items.items() if item["status"] == "trouble"]


@needs_triton
@pytest.mark.usefixtures("sound")
class TestStaged:
    """Each is staged on a sound machine; only what was staged may be found."""

    def test_a_sound_machine(self, doctor: Doctor, no_children: list[str]) -> None:
        code, items = doctor()
        assert (code, troubles(items), no_children) == (0, [], ["virtual"])

    @pytest.mark.outcome("L2.1", "kata doctor")
    def test_no_c_compiler(
        self, doctor: Doctor, no_children: list[str], monkeypatch: pytest.MonkeyPatch, sound: Path
    ) -> None:
        (sound / "bin" / "gcc").unlink()
        code, items = doctor()
        assert code == 3
        assert troubles(items) == ["C compiler"]
        assert re.search(r"(apt-get|dnf|zypper) install .*gcc|pacman -S gcc", items["C compiler"]["command"])
        assert "virtual GPU does without" in items["C compiler"]["advice"]

    def test_a_compiler_that_does_not_run(
        self, doctor: Doctor, no_children: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CC", "/no/such/compiler")
        code, items = doctor()
        assert (code, troubles(items)) == (3, ["C compiler"])
        assert items["C compiler"]["command"] == "unset CC"

    def test_no_python_headers(self, doctor: Doctor, no_children: list[str], sound: Path) -> None:
        (sound / "include" / "Python.h").unlink()
        code, items = doctor()
        assert (code, troubles(items)) == (3, ["Python headers"])

    @pytest.mark.outcome("L2.1", "kata doctor")
    @pytest.mark.slow
    def test_an_unwritable_cache_folder_and_the_kernel_that_cannot_run(
        self, doctor: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        # A file in the folder's way holds for root as well.
        (tmp_path / "file").touch()
        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file" / "cache"))
        code, items = doctor()
        assert code == 3
        cache, kernel = troubles(items)
        assert cache == "cache folder"
        assert items[cache]["command"] == "unset TRITON_CACHE_DIR"
        assert kernel.startswith("kernel on virtual NVIDIA")
        assert "Mend first: cache folder" in items[kernel]["advice"]

    def test_a_cache_folder_in_an_unwritable_home(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        monkeypatch.delenv("TRITON_CACHE_DIR", raising=False)
        monkeypatch.delenv("TRITON_HOME", raising=False)
        monkeypatch.setenv("HOME", str(tmp_path / "file"))
        item = toolchain._cache()
        assert item.status == "trouble"
        assert item.command.startswith("export TRITON_CACHE_DIR=")

    @pytest.mark.outcome("L2.1", "kata doctor")
    @pytest.mark.parametrize(("name", "title"), [("torch", "PyTorch"), ("triton", "Triton")])
    def test_a_missing_package(
        self, doctor: Doctor, no_children: list[str], monkeypatch: pytest.MonkeyPatch, name: str, title: str
    ) -> None:
        without(monkeypatch, name)
        code, items = doctor()
        assert (code, troubles(items)) == (3, [title])
        assert items[title]["command"].endswith(f"-m pip install '{name}>={software.LEAST[name]}'")
        assert items["do they fit"] == {**items["do they fit"], "status": "not_run", "found": f"{name} is missing"}
        # No kernel can run, and that is said instead of tried.
        assert items["kernel on the virtual GPU"]["status"] == "not_run"
        assert no_children == []

    @pytest.mark.parametrize("name", ["numpy", "rich", "filelock"])
    def test_another_missing_package(
        self, doctor: Doctor, no_children: list[str], monkeypatch: pytest.MonkeyPatch, name: str
    ) -> None:
        without(monkeypatch, name)
        code, items = doctor()
        assert (code, troubles(items)) == (3, ["packages"])
        assert f"'{name}>={software.LEAST[name]}'" in items["packages"]["command"]

    @pytest.mark.outcome("L2.1", "kata doctor")
    def test_a_triton_that_is_too_old(
        self, doctor: Doctor, no_children: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with_version(monkeypatch, "triton", "3.5.1")
        code, items = doctor()
        assert (code, troubles(items)) == (3, ["Triton"])
        assert items["Triton"]["found"] == "3.5.1 is too old"
        assert items["Triton"]["command"].endswith("-m pip install --upgrade 'triton>=3.6'")

    def test_a_triton_that_torch_was_not_built_for(
        self, doctor: Doctor, no_children: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pins = ["numpy", "triton==3.7.1; platform_system == 'Linux'"]
        monkeypatch.setattr(metadata, "requires", lambda name: pins)
        with_version(monkeypatch, "triton", "3.8.0")
        code, items = doctor()
        assert (code, troubles(items)) == (3, ["do they fit"])
        assert items["do they fit"]["command"].endswith("-m pip install 'triton==3.7.1'")
        with_version(monkeypatch, "triton", "3.7.1")
        assert doctor()[0] == 0

    @pytest.mark.outcome("L2.1", "kata doctor")
    def test_no_gpu_is_no_trouble(self, doctor: Doctor, no_children: list[str]) -> None:
        code, items = doctor()
        assert code == 0
        assert items["GPU"]["status"] == "note"
        assert "The virtual GPU serves" in items["GPU"]["advice"]
        assert no_children == ["virtual"]

    def test_a_gpu_without_its_driver_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hardware, "_nvidia_in_the_machine", lambda: True)
        monkeypatch.setattr(hardware, "_names", lambda: "")
        item = hardware._gpu()
        assert (item.status, bool(item.command)) == ("note", True)

    def test_a_real_gpu_runs_the_kernel_as_well(
        self, doctor: Doctor, no_children: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(devices, "problem", lambda: "")
        monkeypatch.setattr(hardware, "_names", lambda: "NVIDIA H200; driver 570.1")
        code, items = doctor()
        assert (code, no_children) == (0, ["virtual", "cuda"])
        assert items["GPU"]["found"] == "NVIDIA H200; driver 570.1"

    def test_little_memory(self, doctor: Doctor, no_children: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(hardware, "_available_bytes", lambda: 2**29)
        code, items = doctor()
        assert (code, troubles(items)) == (3, ["memory"])

    def test_an_assembler_that_does_not_run(
        self, doctor: Doctor, no_children: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("TRITON_PTXAS_PATH", "/no/such/ptxas")
        code, items = doctor()
        assert (code, troubles(items)) == (3, ["ptxas"])
        assert items["ptxas"]["command"] == "unset TRITON_PTXAS_PATH"


@pytest.mark.outcome("L2.1", "kata doctor")
@pytest.mark.oldest
@needs_triton
def test_a_good_kernel_runs_on_the_virtual_gpu_in_a_process_that_imports_no_torch() -> None:
    code = (
        "import sys; from checker.cli import run; code = run(['doctor'])\n"
        "assert not {'torch', 'triton', 'numpy', 'rich'} & set(sys.modules); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert re.search(r"^✓ kernel on virtual NVIDIA H200 \(sm_90\): .*all values are right$", done.stdout, re.MULTILINE)
    missing = re.findall(r"^✗ (.*?):", done.stdout, re.MULTILINE)
    # This machine may lack what only a real GPU needs; it then says so.
    assert set(missing) <= {"C compiler", "Python headers", "do they fit"}, done.stdout
    assert done.returncode == (3 if missing else 0)
    assert ("katas can be checked there" if missing else "Nothing is missing") in done.stdout.replace("\n", " ")


class TestKnownKernel:
    @needs_triton
    def test_wrong_values_are_found(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        from checker.doctor import known_kernel, sanity

        class Broken:
            """A device that gets the seventh element wrong, or stores past the end."""

            def __init__(self, at: int) -> None:
                self.at = at

            def __getitem__(self, grid: object) -> Callable[..., None]:
                def launch(x: torch.Tensor, y: torch.Tensor, n: int, **_: int) -> None:
                    y[:n] = x
                    y[self.at] = 99.0

                return launch

        for at in (7, known_kernel.N):
            monkeypatch.setattr(sanity, "copy_kernel", Broken(at))
            assert f"1 of 1256 values are wrong; y[{at}] is 99.0" in known_kernel.run(torch.device("cpu"))

    @needs_triton
    @pytest.mark.slow
    def test_a_device_that_torch_cannot_open(self, monkeypatch: pytest.MonkeyPatch) -> None:
        import torch

        if torch.cuda.is_available():
            pytest.skip("torch can open a device here")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        (item,) = examination._run("cuda", "kernel on the real GPU", mended_first=[])
        assert (item.status, item.command) == ("trouble", "nvidia-smi")
        assert item.found.startswith("opening the device failed")
        assert "the environment is at fault" in item.advice

    def test_a_process_that_crashes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        done = subprocess.CompletedProcess([], -11, stdout="", stderr="Fatal Python error: Segmentation fault\n")
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
        (item,) = examination._run("virtual", "kernel on the virtual GPU", mended_first=["Triton"])
        assert item.status == "trouble"
        assert "status -11: Fatal Python error" in item.found
        assert item.command == "kata doctor"


def test_the_oldest_versions_are_those_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = dict(re.match(r"([\w-]+)>=([\d.]+)", one).groups() for one in project["dependencies"])  # type: ignore[union-attr]
    assert wanted == software.LEAST


@needs_triton
@pytest.mark.usefixtures("sound")
def test_text_is_plain_in_a_pipe_and_shows_commands_whole(
    no_children: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with_version(monkeypatch, "triton", "3.5.1")
    assert run(["doctor"]) == 3
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert f"✗ Triton: 3.5.1 is too old\n    Version 3.6 or newer is needed.\n    $ {sys.executable}" in shown
    assert "Missing or broken: Triton." in shown
