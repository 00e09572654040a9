"""Documentation that is made from something else says what that says, and what it promises exists."""

from __future__ import annotations

import importlib.util
import os
import re
import tomllib
from pathlib import Path
from types import ModuleType

import outcomes
import pytest

from checker import __version__
from checker.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)


@pytest.fixture(scope="module")
def docs() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write_docs", ROOT / "scripts" / "write_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def steady(text: str) -> str:
    """A report without what differs from run to run and from machine to machine."""
    return re.sub(r"^Checked on .*$", "Checked on", text, flags=re.MULTILINE)


def test_diagnoses_are_those_of_the_catalogue(docs: ModuleType) -> None:
    assert (ROOT / "docs" / "diagnoses.md").read_text(encoding="utf-8") == docs.diagnoses()


def test_the_help_texts_are_those_of_the_commands(docs: ModuleType) -> None:
    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == docs.commands()


def test_the_outcomes_are_those_of_katas_and_mutants() -> None:
    assert (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8") == outcomes.document()


def test_the_ladder_is_that_of_the_katas(docs: ModuleType) -> None:
    assert docs.between(README, "ladder") == docs.ladder()


@pytest.mark.slow
def test_the_check_that_is_shown_is_what_a_check_says(docs: ModuleType) -> None:
    assert steady(docs.between(README, "check")) == steady(docs.example_check())


def test_every_command_is_in_the_readme() -> None:
    missing = [name for name in COMMANDS if f"`kata {name}" not in README]
    assert not missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    # In code, brackets before a parenthesis are a launch.
    prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\((?!https?:)([^)#]+)", prose)
    assert not [link for link in links if not (path.parent / link).exists()]


@pytest.mark.parametrize("name", ["learn", "tests"])
def test_each_setup_is_one_command(name: str) -> None:
    found = re.search(rf"<!-- setup: {name} -->\n```sh\n(.*?)```", README, re.DOTALL)
    assert found is not None
    assert found[1].count("\n") == 1


def test_constraints_cover_the_dependencies_and_leave_triton_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["test"]
    names = {re.split(r"[><=;\s\[]", one)[0] for one in wanted}
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {line.split("==")[0] for line in lines if line and not line.startswith("#")}
    assert pinned == names - {"triton"}
    assert project["version"] == __version__


def test_ci_runs_what_the_readme_says() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "<!-- setup: tests -->" in script.read_text(encoding="utf-8")
    assert os.access(ROOT / ".ci" / "quick", os.X_OK)
    assert "run: .ci/run" in (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
