"""Katas are found, read and named."""

from __future__ import annotations

from pathlib import Path

import pytest

from checker.catalog import Kata, find_root, load, resolve
from checker.errors import KataUsageError


def test_katas_come_in_ladder_order(tree: Path) -> None:
    katas = load(tree)
    assert [kata.number for kata in katas] == [1, 5, 13]
    assert katas[0].todos[1].hints[2] == "third of two"
    assert katas[0].solution == tree / "solutions" / "01_first_step.py"


@pytest.mark.parametrize(
    "query", ["5", "05", "05_second", "second", "sec", "add", "SECOND", "katas/05_second/", "05-second"]
)
def test_a_kata_has_many_names(tree: Path, query: str) -> None:
    assert resolve(query, load(tree)).id == "05_second"


def test_a_typo_gets_the_nearest_name(tree: Path) -> None:
    with pytest.raises(KataUsageError, match="Did you mean 05_second"):
        resolve("secnod", load(tree))
    with pytest.raises(KataUsageError, match="no kata '2'"):
        resolve("2", load(tree))


def test_an_ambiguous_name_gets_the_candidates(tree: Path) -> None:
    with pytest.raises(KataUsageError, match="01_first_step, 13_third"):
        resolve("ir", load(tree))


def test_the_root_is_found_from_below(tree: Path) -> None:
    assert find_root(tree / "katas" / "01_first_step") == tree
    assert find_root() == tree


def test_outside_a_clone_the_installed_tree_serves(tmp_path: Path) -> None:
    # The suite runs on an editable installation, whose tree has both folders.
    assert (find_root(tmp_path) / "checker" / "catalog.py").exists()


def test_a_wrong_kata_root_is_named(tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KATA_ROOT", str(tmp_path))
    with pytest.raises(KataUsageError, match="KATA_ROOT"):
        find_root()


def test_no_root_says_where_it_looked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("checker.catalog.__file__", str(tmp_path / "site" / "checker" / "catalog.py"))
    with pytest.raises(KataUsageError, match="No kata folder found") as caught:
        find_root(tmp_path)
    assert str(tmp_path) in caught.value.given


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('title = "The first_step kata"\n', "", "'title'"),
        ('start = "blank"', 'start = "empty"', "blank, slow, faulty"),
        ("minutes = 15", "minutes = ", "kata.toml"),
        ('id = "01_first_step"', 'id = "02_other"', "its folder is '01_first_step'"),
    ],
)
def test_a_broken_kata_toml_is_named(tree: Path, old: str, new: str, says: str) -> None:
    file = tree / "katas" / "01_first_step" / "kata.toml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(KataUsageError, match=r"kata\.toml") as caught:
        load(tree)
    assert says in caught.value.given


SPEED = """
[[speed]]
case = "2^20 float32"
params = { shape = [1024, 1024], dtype = "float32" }
to = "TO"
at_least = AT_LEAST
refuses = "slow_blocks: 0.10"
passes = "the solution: 0.97"
"""


def with_speed(tree: Path, to: str, at_least: str) -> Kata:
    file = tree / "katas" / "01_first_step" / "kata.toml"
    file.write_text(file.read_text() + SPEED.replace("TO", to).replace("AT_LEAST", at_least))
    return load(tree)[0]


def test_speed_cases_hold_parameters_and_one_threshold(tree: Path) -> None:
    (case,) = with_speed(tree, "torch", "3").speed
    assert case.params == {"shape": (1024, 1024), "dtype": "float32"}
    assert (case.to, case.at_least, case.against) == ("torch", 3.0, "eager")


@pytest.mark.parametrize(("to", "at_least"), [("luck", "0.8"), ("bound", "0.0"), ("bound", '"fast"')])
def test_a_threshold_that_means_nothing_is_refused(tree: Path, to: str, at_least: str) -> None:
    with pytest.raises(KataUsageError, match=r"kata\.toml"):
        with_speed(tree, to, at_least)
