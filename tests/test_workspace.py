"""The learner's file is made once, put back only after a backup, and never lost."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from checker.catalog import Kata, load
from checker.workspace import create_kernel, reset_kernel


@pytest.fixture
def first(tree: Path) -> Kata:
    return load(tree)[0]


def test_the_file_is_made_from_the_skeleton_once(first: Kata) -> None:
    assert create_kernel(first)
    assert first.kernel.read_bytes() == first.skeleton.read_bytes()
    first.kernel.write_text("mine")
    assert not create_kernel(first)
    assert first.kernel.read_text() == "mine"


def test_a_file_that_appears_meanwhile_is_left_alone(first: Kata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "exists", lambda path: False)
    first.kernel.write_text("mine")
    assert not create_kernel(first)
    assert first.kernel.read_text() == "mine"


def test_file_systems_without_hard_links_serve_too(first: Kata, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*paths: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    assert create_kernel(first)
    first.kernel.write_text("mine")
    assert reset_kernel(first) is not None
    assert first.kernel.read_bytes() == first.skeleton.read_bytes()


def test_reset_keeps_every_version(first: Kata) -> None:
    for number, text in enumerate(("one", "two"), start=1):
        first.kernel.write_text(text)
        backup = reset_kernel(first)
        assert backup == first.root / ".kata" / "backups" / first.id / f"kernel.py.bak-{number}"
        assert backup.read_text() == text
        assert first.kernel.read_bytes() == first.skeleton.read_bytes()


def test_a_skeleton_needs_no_backup_and_a_missing_file_is_made(first: Kata) -> None:
    assert reset_kernel(first) is None
    assert first.kernel.read_bytes() == first.skeleton.read_bytes()
    assert reset_kernel(first) is None


def test_without_a_backup_there_is_no_reset(first: Kata) -> None:
    first.kernel.write_text("mine")
    (first.root / ".kata").write_text("a file where the folder should be")
    with pytest.raises(OSError, match=r"exists|directory"):
        reset_kernel(first)
    assert first.kernel.read_text() == "mine"


def test_nothing_is_left_beside_the_file(first: Kata) -> None:
    create_kernel(first)
    first.kernel.write_text("mine")
    reset_kernel(first)
    assert {path.name for path in first.folder.iterdir()} == {"README.md", "kata.toml", "kernel.py", "skeleton.py"}
