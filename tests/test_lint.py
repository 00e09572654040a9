"""What the source alone says: certain mistakes, suspicions, and silence about right code."""

from pathlib import Path

import pytest

from checker.lint import LintResult, lint

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\n"
KERNEL = """
@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)

"""
WRAPPER = """
def vector_copy(x):
    y = torch.empty_like(x)
    copy_kernel[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y
"""


def read(tmp_path: Path, source: str | bytes, signature: str = "vector_copy(x) -> y") -> LintResult:
    file = tmp_path / "kernel.py"
    file.write_bytes(source.encode() if isinstance(source, str) else source)
    return lint(file, entry=signature.partition("(")[0], signature=signature)


def test_right_code_is_silent(tmp_path: Path) -> None:
    assert read(tmp_path, HEAD + KERNEL + WRAPPER) == LintResult()


@pytest.mark.parametrize(
    ("source", "code", "line", "words"),
    [
        ("def vector_copy(x)\n    return x\n", "K101", 1, "expected ':'"),
        ("def vector_copy(x):\n    return (x\n", "K101", 2, "never closed"),
        ("def vector_copy(x):\nreturn x\n", "K101", 2, "indented block"),
        ("def vector_copy(x):\n    a = 1\n      b = 2\n", "K101", 3, "indent"),
        ("x = 'abc\n", "K101", 1, "unterminated"),
        ("x = 1\0\n", "K101", None, "null"),
        ("# coding: nonsense\n", "K001", None, "nonsense"),
        ("def vector_cpy(x):\n    return x\n", "K103", 1, "it has `vector_cpy`"),
        ("y = 1\n", "K103", None, "no function `vector_copy`"),
        ("\ndef vector_copy():\n    pass\n", "K104", 2, "vector_copy(x) -> y"),
        ("def vector_copy(x, y):\n    pass\n", "K104", 1, "needs `y`"),
        ("def vector_copy(x, *, y):\n    pass\n", "K104", 1, "needs `y`"),
        ("def vector_copy(src):\n    pass\n", "K104", 1, "vector_copy(src)"),
        ("from solutions import x\ndef vector_copy(x): ...\n", "K110", 1, "solutions"),
        ("def vector_copy(x):\n    import checker.judge\n", "K110", 2, "checker.judge"),
        ("import spec\ndef vector_copy(x): ...\n", "K110", 1, "spec"),
    ],
)
def test_certain_mistakes(tmp_path: Path, source: str, code: str, line: int | None, words: str) -> None:
    findings = read(tmp_path, source).fatal
    assert [finding.code for finding in findings] == [code]
    assert findings[0].line == line
    assert words in findings[0].message


def test_latin1_bytes_are_a_finding(tmp_path: Path) -> None:
    assert [f.code for f in read(tmp_path, b"x = '\xe9'\n").fatal] == ["K001"]


def test_missing_folder_and_unreadable_files_are_findings(tmp_path: Path) -> None:
    missing = lint(tmp_path / "kernel.py", entry="f", signature="f(x)")
    assert missing.fatal[0].code == "K001"
    assert "no file" in missing.fatal[0].message
    (tmp_path / "kernel.py").mkdir()
    assert "is a folder" in lint(tmp_path / "kernel.py", entry="f", signature="f(x)").fatal[0].message


@pytest.mark.parametrize(
    "source",
    [
        "def vector_copy(x, block=256): ...",
        "def vector_copy(x, *, block=256): ...",
        "from triton import jit as vector_copy",
        "if True:\n    def vector_copy(x): ...",
        "vector_copy = print",
        "try:\n    pass\nexcept Exception:\n    def vector_copy(x): ...",
        "from helpers import *",
    ],
)
def test_other_ways_to_bind_the_entry_point(tmp_path: Path, source: str) -> None:
    assert read(tmp_path, source).fatal == ()


def test_optional_parameters_of_the_promise_are_needed_too(tmp_path: Path) -> None:
    promise = "saxpy(a, x, y, out=None) -> out"
    assert read(tmp_path, "def saxpy(a, x, y, out=None): ...", promise).fatal == ()
    assert "`out`" in read(tmp_path, "def saxpy(a, x, y): ...", promise).fatal[0].advice


@pytest.mark.parametrize(
    ("body", "advice"),
    [
        ('y = torch.empty(4, device="cuda")', "x.device"),
        ('y = torch.empty(4, device="cuda:0")', "x.device"),
        ('y = x.to("cuda")', "x.device"),
        ('y = torch.device("cuda")', "x.device"),
        ("y = x.cuda()", "x.device"),
        ("assert x.is_cuda", "drop this test"),
        ('assert x.device.type == "cuda"', "x.device"),
        ("torch.cuda.synchronize()", "leave this out"),
        ("with torch.cuda.device(0): pass", "leave this out"),
        ('device = "cuda" if n else "cpu"', "x.device"),
        ('y = torch.empty(4, device="cuda" if n else "cpu")', "x.device"),
    ],
)
def test_devices_in_a_wrapper(tmp_path: Path, body: str, advice: str) -> None:
    source = f"import torch\ndef vector_copy(x):\n    n = x.numel()\n    {body}\n"
    findings = read(tmp_path, source).fatal
    assert [(f.code, f.line) for f in findings] == [("K106", 4)]
    assert advice in findings[0].advice


def test_a_device_at_the_top_of_the_file_gets_the_tutorials_own_replacement(tmp_path: Path) -> None:
    (finding,) = read(tmp_path, 'DEVICE = "cuda"\ndef vector_copy(x): ...\n').fatal
    assert "get_active_torch_device()" in finding.advice


@pytest.mark.parametrize(
    "source",
    [
        '"""Runs on cuda, with is_cuda and torch.cuda."""\ndef vector_copy(x): ...',
        "# torch.cuda.synchronize()\ndef vector_copy(x): ...",
        'def vector_copy(x):\n    """Needs device="cuda"."""',
        'def is_cuda():\n    return get_current_target().backend == "cuda"\ndef vector_copy(x):\n    return is_cuda()',
        'LABELS = {"driver": "cuda", 1: "cuda"}\ndef vector_copy(x): ...',
        'def vector_copy(x): ...\nif __name__ == "__main__":\n    vector_copy(torch.ones(4, device="cuda"))',
        "def vector_copy(x):\n    return tl.target_info.is_cuda()",
    ],
)
def test_cuda_as_a_word_is_fine(tmp_path: Path, source: str) -> None:
    assert read(tmp_path, source).fatal == ()


@pytest.mark.parametrize("test", ["assert x.is_contiguous", "if not x.is_contiguous: pass", "ok = x.numel == 3"])
def test_uncalled_method_is_a_slip(tmp_path: Path, test: str) -> None:
    result = read(tmp_path, f"def vector_copy(x):\n    {test}\n")
    assert result.fatal == ()
    assert [(f.code, f.line) for f in result.slips] == [("K107", 2)]


def kernel_slips(tmp_path: Path, line: str) -> list[tuple[str, int | None]]:
    source = f"@triton.jit\ndef k(x_ptr, y_ptr, n, a, b):\n    {line}\ndef vector_copy(x): ...\n"
    return [(f.code, f.line) for f in read(tmp_path, source).slips]


@pytest.mark.parametrize("line", ["y_ptr = x_ptr", "y_ptr = tl.load(x_ptr)", "y_ptr = 0"])
def test_overwritten_pointer_is_a_slip(tmp_path: Path, line: str) -> None:
    assert kernel_slips(tmp_path, line) == [("K108", 3)]


@pytest.mark.parametrize("line", ["y_ptr = y_ptr + a", "y_ptr += a", "p = y_ptr", "y_ptrs = y_ptr + a"])
def test_advancing_a_pointer_is_no_slip(tmp_path: Path, line: str) -> None:
    assert kernel_slips(tmp_path, line) == []


@pytest.mark.parametrize("line", ["m = a >= 0 & a < n", "m = a < n & (b < n)", "m = (a < n) & b < n & a > 0"])
def test_bare_ampersand_is_a_slip(tmp_path: Path, line: str) -> None:
    assert kernel_slips(tmp_path, line) == [("K111", 3)]


@pytest.mark.parametrize(
    "line", ["m = (a >= 0) & (a < n)", "m = (a & 3) == 0", "m = a == b & 1", "m = 0 <= a < n", "m = 0 < (a & b) < n"]
)
def test_ampersand_in_its_place_is_no_slip(tmp_path: Path, line: str) -> None:
    assert kernel_slips(tmp_path, line) == []


def test_todo_blocks_are_listed_with_their_state(tmp_path: Path) -> None:
    skeleton = tmp_path / "skeleton.py"
    block = "    # TODO({n}): {text}\n    {body}\n    # END TODO({n})\n"
    skeleton.write_text(
        "def f(x):\n" + block.format(n=1, text="load", body="v = 0") + block.format(n=2, text="store", body="pass")
    )
    file = tmp_path / "kernel.py"
    file.write_text(
        "def f(x):\n" + block.format(n=1, text="load", body="v = 7") + block.format(n=2, text="store", body="pass")
    )
    todos = lint(file, entry="f", signature="f(x)", skeleton=skeleton).todos
    assert [(t.number, t.line, t.text, t.untouched) for t in todos] == [(1, 2, "load", False), (2, 5, "store", True)]
