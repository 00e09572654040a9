"""One thing the doctor looked at, and the commands by which a machine is mended."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass

__all__ = ["STATUSES", "Item", "packages_command", "pip_command", "trouble"]

STATUSES = ("ok", "note", "trouble", "not_run")
"""Well; well, with something to know; missing or broken; not looked at, because something else is missing."""


@dataclass(frozen=True, slots=True)
class Item:
    """What was looked at, how it is, and for a trouble why it matters and the command that mends it."""

    name: str
    status: str
    found: str
    advice: str = ""
    command: str = ""


def trouble(name: str, found: str, advice: str, command: str) -> Item:
    """Something that is missing or broken. Each comes with its mend."""
    return Item(name, "trouble", found, advice, command)


def pip_command(arguments: str) -> str:
    """A `pip` command for the Python that runs `kata`, and for no other."""
    return f"{shlex.quote(sys.executable)} -m pip {arguments}"


# By package manager: how it installs, what holds a C compiler, what holds Python's headers.
_MANAGERS = {
    "apt-get": ("apt-get install", "gcc libc6-dev", "python{version}-dev"),
    "dnf": ("dnf install", "gcc", "python{version}-devel"),
    "zypper": ("zypper install", "gcc", "python{plain}-devel"),
    "pacman": ("pacman -S", "gcc", "python"),
}


def packages_command(what: str) -> str:
    """How this machine installs a "compiler" or Python's "headers"; as on Debian where no package manager is known."""
    name = next((name for name in _MANAGERS if shutil.which(name)), "apt-get")
    install, compiler, headers = _MANAGERS[name]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    package = compiler if what == "compiler" else headers.format(version=version, plain=version.replace(".", ""))
    return f"{'' if os.geteuid() == 0 else 'sudo '}{install} {package}"
