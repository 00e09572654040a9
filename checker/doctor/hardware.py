"""The machine: memory, GPU and driver. Without a GPU nothing is missing, for the virtual one serves."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import resource
from collections.abc import Iterator
from pathlib import Path

from checker import devices
from checker.doctor.item import Item, pip_command, trouble

__all__ = ["look_at_hardware"]

_GIB = 2**30
# Importing torch and Triton and compiling a kernel takes nearly one; a check may use half of the machine's.
_LEAST_MEMORY = 2 * _GIB
_LEAST_FREE = 1 * _GIB
_NVIDIA = "0x10de"


def look_at_hardware() -> Iterator[Item]:
    """Memory, then GPU and driver."""
    yield _memory()
    yield _gpu()


def _memory() -> Item:
    total, free = _total_bytes(), _available_bytes()
    found = f"{total / _GIB:.1f} GiB, of which {free / _GIB:.1f} GiB are available"
    if total < _LEAST_MEMORY or free < _LEAST_FREE:
        advice = "A check needs about 1 GiB to itself. This shows what holds the most; a container may have a limit."
        return trouble("memory", found, advice, "ps aux --sort=-rss | head")
    return Item("memory", "ok", found)


def _total_bytes() -> int:
    """The machine's memory, or the limit of the container if that is less."""
    total = os.sysconf("SC_PHYS_PAGES") * resource.getpagesize()
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return total
    return min(total, limit)


def _available_bytes() -> int:
    """What can be had without swapping; all of it where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return _total_bytes()


def _gpu() -> Item:
    problem = "PyTorch is missing" if importlib.util.find_spec("torch") is None else devices.problem()
    if not problem:
        return Item("GPU", "ok", _names() or "one that PyTorch was built for")
    found = f"none that kernels can run on: {problem}"
    serves = "The virtual GPU serves: it compiles for real chips and runs what was compiled."
    if not _nvidia_in_the_machine():
        return Item("GPU", "note", found, serves)
    if _names():
        command = pip_command("install --force-reinstall torch")
        return Item("GPU", "note", found, f"The driver sees {_names()}. {serves} To use the real one:", command)
    return Item("GPU", "note", found, f"There is an NVIDIA GPU without its driver. {serves}", "ubuntu-drivers install")


def _nvidia_in_the_machine() -> bool:
    """Whether a display or compute device of NVIDIA's is on the PCI bus."""
    for device in Path("/sys/bus/pci/devices").glob("*"):
        try:
            vendor, kind = ((device / name).read_text(encoding="ascii").strip() for name in ("vendor", "class"))
        except OSError:
            continue
        if vendor == _NVIDIA and kind.startswith("0x03"):
            return True
    return False


def _names() -> str:
    """The GPUs that NVIDIA's driver sees, and its version; empty if there is no driver."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return ""
    count, text = ctypes.c_uint(0), ctypes.create_string_buffer(96)
    if library.nvmlInit_v2() != 0 or library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
        return ""
    names = []
    for index in range(count.value):
        handle = ctypes.c_void_p()
        if (
            library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) == 0
            and library.nvmlDeviceGetName(handle, text, len(text)) == 0
        ):
            names.append(text.value.decode(errors="replace"))
    driver = text.value.decode() if library.nvmlSystemGetDriverVersion(text, len(text)) == 0 else "unknown"
    return f"{', '.join(names)}; driver {driver}" if names else ""
