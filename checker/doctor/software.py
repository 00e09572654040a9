"""Python and its packages: are they there, new enough, and made for each other? Reads metadata, imports nothing."""

from __future__ import annotations

import importlib.util
import platform
import re
import sys
from collections.abc import Iterator
from importlib import metadata

from checker.doctor.item import Item, pip_command, trouble

__all__ = ["LEAST", "look_at_software"]

LEAST = {
    "torch": "2.7",
    "triton": "3.6",
    "numpy": "2.0",
    "pytest": "8.2",
    "pytest-benchmark": "5.0",
    "click": "8.1.7",
    "rich": "13.7",
    "filelock": "3.13",
    "watchfiles": "0.22",
}
"""The oldest version of each package that was tried: those of pyproject.toml, which a test compares."""

_PYTHON = (3, 11)
_TITLES = {"torch": "PyTorch", "triton": "Triton"}


def look_at_software() -> Iterator[Item]:
    """Python, PyTorch, Triton, whether these two fit each other, and the other packages."""
    yield _python()
    yield _package("torch")
    yield _triton()
    yield from _fit()
    yield _others()


def _python() -> Item:
    found = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info[:2] < _PYTHON:
        advice = f"Python {_PYTHON[0]}.{_PYTHON[1]} or newer is needed, in an environment of its own."
        return trouble("Python", found, advice, "python3.11 -m venv .venv && .venv/bin/pip install -e .")
    return Item("Python", "ok", found)


def _triton() -> Item:
    if sys.platform != "linux" and _installed("triton") is None:
        advice = "Triton has wheels for Linux only. Open the folder in its dev container, on a Linux host or in WSL."
        return trouble("Triton", f"none for {sys.platform}", advice, "devcontainer up --workspace-folder .")
    return _package("triton")


def _package(name: str) -> Item:
    title, version = _TITLES.get(name, name), _installed(name)
    if version is None:
        return trouble(title, "not installed", _needs(name), pip_command(f"install '{name}>={LEAST[name]}'"))
    if _older(version, LEAST[name]):
        command = pip_command(f"install --upgrade '{name}>={LEAST[name]}'")
        return trouble(title, f"{version} is too old", _needs(name), command)
    return Item(title, "ok", version)


def _needs(name: str) -> str:
    return f"Version {LEAST[name]} or newer is needed."


def _others() -> Item:
    names = [name for name in LEAST if name not in _TITLES]
    looked = [_package(name) for name in names]
    if all(item.status == "ok" for item in looked):
        return Item("packages", "ok", ", ".join(f"{item.name} {item.found}" for item in looked))
    bad = [item for item in looked if item.status != "ok"]
    wanted = " ".join(f"'{item.name}>={LEAST[item.name]}'" for item in bad)
    found = ", ".join(f"{item.name}: {item.found}" for item in bad)
    return trouble("packages", found, "The checks are made with these.", pip_command(f"install --upgrade {wanted}"))


def _fit() -> Iterator[Item]:
    """A CUDA build of torch names the one Triton it was built for; the CPU build names none, and takes any."""
    version, triton = _installed("torch"), _installed("triton")
    if version is None or triton is None:
        missing = " and ".join(name for name in ("torch", "triton") if _installed(name) is None)
        yield Item("do they fit", "not_run", f"{missing} is missing")
        return
    pinned = re.search(r"\btriton==([\d.]+)", "\n".join(metadata.requires("torch") or ()))
    if pinned is None:
        yield Item("do they fit", "ok", f"PyTorch {version} asks for no particular Triton")
    elif _numbers(triton) == _numbers(pinned[1]):
        yield Item("do they fit", "ok", f"PyTorch {version} was built for Triton {pinned[1]}")
    else:
        yield trouble(
            "do they fit",
            f"PyTorch {version} was built for Triton {pinned[1]}, and {triton} is installed",
            "The virtual GPU takes either; on a real GPU, and under torch.compile, the two must fit.",
            pip_command(f"install 'triton=={pinned[1]}'"),
        )


def _installed(name: str) -> str | None:
    """The version of a package that can be imported here, or None."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
    return version if importlib.util.find_spec(name.replace("-", "_")) else None


def _older(version: str, least: str) -> bool:
    return _numbers(version) < _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    """The release of a version, without what follows it: (2, 13, 0) of 2.13.0+cpu."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
