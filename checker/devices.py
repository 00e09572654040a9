"""Whether this machine has a GPU that can be used, found without importing torch."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from functools import lru_cache
from pathlib import Path

from checker.vgpu import specs

__all__ = ["choose", "describe", "problem"]


@lru_cache
def problem() -> str:
    """Why kernels cannot run on a real GPU here; empty if they can."""
    built = _built_for()
    if built is None:
        return "the installed PyTorch is built without CUDA"
    if built == "hip":
        return "" if Path("/dev/kfd").exists() else "there is no AMD GPU driver (/dev/kfd)"
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return "there is no NVIDIA driver (libnvidia-ml.so.1)"
    count = ctypes.c_uint(0)
    if library.nvmlInit_v2() != 0 or library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0 or not count.value:
        return "the NVIDIA driver sees no GPU"
    return ""


def choose(device: str) -> str:
    """What "auto" stands for here: "cuda" where there is a real GPU, else "virtual". Anything else stays."""
    if device == "auto":
        return "virtual" if problem() else "cuda"
    return device


def describe(gpu: str) -> dict[str, str]:
    """The virtual GPU as records name a device. ValueError for an unknown chip."""
    spec = specs.chip(gpu)
    return {"kind": "virtual", "name": spec.name, "target": spec.target}


def _built_for() -> str | None:
    """Which GPUs torch was built for, "cuda" or "hip": torch/version.py says it, which is read and not imported."""
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:
        return None
    file = Path(found.origin).parent / "version.py"
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    for kind in ("cuda", "hip"):
        if re.search(rf"^{kind}\b[^=\n]*=\s*['\"]", text, re.MULTILINE):
            return kind
    return None
