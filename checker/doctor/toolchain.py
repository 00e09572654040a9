"""What Triton needs beside Python: the assembler, a C compiler with Python's headers, a cache folder to write to."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from checker.doctor.item import Item, packages_command, pip_command, trouble

__all__ = ["cache_folder", "look_at_toolchain"]

_LIMIT = 60.0
_LEAST_FREE = 100 * 2**20
_REAL_GPU = "Triton builds a launcher with it before the first launch on a real GPU. The virtual GPU does without."


def look_at_toolchain() -> Iterator[Item]:
    """ptxas, the C compiler, Python's headers, the cache folder."""
    yield _ptxas()
    yield from _compiler_and_headers()
    yield _cache()


def _ptxas() -> Item:
    """The assembler that Triton brings along, or the one that TRITON_PTXAS_PATH names."""
    named = os.environ.get("TRITON_PTXAS_PATH")
    spec = importlib.util.find_spec("triton")
    if named is None and (spec is None or spec.origin is None):
        return Item("ptxas", "not_run", "triton is missing, which brings it along")
    own = Path(str(spec.origin)).parent / "backends" / "nvidia" / "bin" / "ptxas" if spec else None
    path = named or str(own)
    said = _output([path, "--version"])
    release = re.search(r"release (\S+?),", said or "")
    if said is not None and release is not None:
        return Item("ptxas", "ok", f"{release[1]}" + (f", {named}" if named else ", from Triton's own wheel"))
    advice = "It turns PTX into the chip's binary; without it no kernel compiles for NVIDIA chips."
    if named:
        return trouble("ptxas", f"TRITON_PTXAS_PATH is {named}, which does not run", advice, "unset TRITON_PTXAS_PATH")
    command = pip_command(f"install --force-reinstall --no-deps triton=={_version('triton')}")
    return trouble("ptxas", f"{path} does not run", advice, command)


def _compiler_and_headers() -> Iterator[Item]:
    """Found as Triton finds it, then tried, because a compiler on PATH may lack its headers."""
    named = os.environ.get("CC")
    compiler = named or shutil.which("gcc") or shutil.which("clang")
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if compiler is None:
        found = "none: neither gcc nor clang is on PATH, and CC is not set"
        yield trouble("C compiler", found, _REAL_GPU, packages_command("compiler"))
    elif _builds(compiler, "#include <stdlib.h>\n"):
        yield Item("C compiler", "ok", compiler)
    elif named:
        yield trouble("C compiler", f"CC is {named}, which does not compile", _REAL_GPU, "unset CC")
    else:
        yield trouble("C compiler", f"{compiler} does not compile", _REAL_GPU, packages_command("compiler"))
    if header.is_file():
        yield Item("Python headers", "ok", str(header.parent))
    else:
        yield trouble("Python headers", f"{header} is missing", _REAL_GPU, packages_command("headers"))


def _builds(compiler: str, source: str) -> bool:
    """Whether it makes a shared object of some C."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "launcher.c")
        file.write_text(source + "int nothing(void) { return 0; }\n", encoding="ascii")
        made = file.with_suffix(".so")
        said = _output([compiler, str(file), "-shared", "-fPIC", "-o", str(made)])
        return said is not None and made.is_file()


def cache_folder() -> Path:
    """Where Triton keeps what it compiled: TRITON_CACHE_DIR, or .triton/cache in TRITON_HOME or the home folder."""
    home = os.environ.get("TRITON_HOME") or os.path.expanduser("~/")
    return Path(os.environ.get("TRITON_CACHE_DIR") or os.path.join(home, ".triton", "cache"))


def _cache() -> Item:
    folder = cache_folder()
    advice = "Triton writes what it compiles there before it runs it, on every device."
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder) as probe:
            probe.write(b"kata")
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return trouble("cache folder", f"{folder} cannot be written: {error.strerror}", advice, _cache_command(folder))
    if free < _LEAST_FREE:
        found = f"{folder} has {free / 2**20:.0f} MiB left"
        return trouble("cache folder", found, advice, f"rm -r {folder}")
    return Item("cache folder", "ok", f"{folder}, {free / 2**30:.0f} GiB free")


def _cache_command(folder: Path) -> str:
    for name in ("TRITON_CACHE_DIR", "TRITON_HOME"):
        if name in os.environ:
            return f"unset {name}"
    if folder.is_dir():
        return f'sudo chown -R "$(id -u)" {folder}'
    return f"export TRITON_CACHE_DIR={Path(tempfile.gettempdir(), 'triton-cache')}"


def _output(command: list[str]) -> str | None:
    """What a command prints, or None if it does not run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_LIMIT, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""
