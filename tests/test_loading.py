"""Loading by path: private names, fresh each time, source that can be inspected, nothing left behind, no answers."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

import pytest

from checker.loading import LoadError, load_kernel, load_module, protect


def write(folder: Path, text: str, name: str = "kernel.py") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def failure(file: Path) -> tuple[str, int | None, str]:
    with pytest.raises(LoadError) as caught:
        load_kernel(file)
    return caught.value.finding.code, caught.value.finding.line, caught.value.finding.message


def test_a_module_is_fresh_private_and_leaves_nothing_behind(tmp_path: Path) -> None:
    file = write(tmp_path, "calls = []\ndef f():\n    return 1\n")
    first = load_kernel(file)
    first.calls.append(1)
    second = load_kernel(file)
    assert second.calls == []
    assert "kernel" not in sys.modules
    assert sys.modules[second.__name__] is second
    assert [path.name for path in tmp_path.iterdir()] == ["kernel.py"]


def test_the_source_that_runs_is_the_source_that_is_read(tmp_path: Path) -> None:
    file = write(tmp_path, "def f():\n    return 1\n")
    module = load_kernel(file)
    file.write_text("def g():\n    return 2\n\n\n")
    assert "return 1" in inspect.getsource(module.f)


def test_triton_reads_the_source(tmp_path: Path) -> None:
    pytest.importorskip("triton")
    text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef k(x_ptr):\n    tl.store(x_ptr, 1)\n"
    assert "tl.store" in load_kernel(write(tmp_path, text)).k.src


def test_dataclasses_find_their_module(tmp_path: Path) -> None:
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    n: int = 1\n"
    )
    assert load_kernel(write(tmp_path, text)).A().n == 1


def test_a_declared_encoding_is_respected(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_bytes("# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    assert load_kernel(tmp_path / "kernel.py").x == "é"


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("def f(:\n", "K101", 1),
        ("\n1 / 0\n", "K105", 2),
        ("def f():\n    raise KeyError('x')\nf()\n", "K105", 2),
        ("import nonsense_of_no_package\n", "K105", 1),
        ("import sys\nsys.exit(3)\n", "K005", 2),
        ("raise MemoryError\n", "K004", 1),
        ("\nfrom checker import judge\n", "K110", 2),
        ("import solutions\n", "K110", 1),
        ("exec('import spec')\n", "K110", 1),
        ("eval('1 +')\n", "K105", 1),
    ],
)
def test_what_goes_wrong_is_a_finding(tmp_path: Path, text: str, code: str, line: int) -> None:
    found = failure(write(tmp_path, text))
    assert found[:2] == (code, line), found


def test_a_file_beside_it_is_named_in_the_advice(tmp_path: Path) -> None:
    write(tmp_path, "", "helpers.py")
    with pytest.raises(LoadError) as caught:
        load_kernel(write(tmp_path, "import helpers\n"))
    assert "a kata is one file" in caught.value.finding.advice


def test_missing_and_unreadable_files(tmp_path: Path) -> None:
    assert failure(tmp_path / "kernel.py")[0] == "K001"
    (tmp_path / "bytes.py").write_bytes(b"x = '\xff'\n")
    assert failure(tmp_path / "bytes.py")[0] == "K001"


def test_forbidden_imports_stay_forbidden_inside_functions(tmp_path: Path) -> None:
    module = load_kernel(write(tmp_path, "def f():\n    import checker.judge\n"))
    with pytest.raises(ImportError, match="may not be imported"):
        module.f()


def test_the_refusal_does_not_reach_other_modules(tmp_path: Path) -> None:
    load_kernel(write(tmp_path, "x = 1\n"))
    spec = load_module(write(tmp_path, "from checker.cases import Case\ncase = Case('n=1', n=1)\n", "spec.py"))
    assert spec.case.n == 1


def test_protect_takes_the_folder_off_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.chdir(tmp_path)
    sys.path.insert(0, "")
    protect(tmp_path)
    assert str(tmp_path) not in sys.path
    assert "" not in sys.path
