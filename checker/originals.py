"""What the check relies on, held from before the learner's file was imported, so that a replaced part is noticed.

`torch.equal = lambda *_: True` in a kernel file makes any judge content. Nothing in one process prevents that, but
comparing some thousand names with what they were costs a fraction of a millisecond and is done after each call.
"""

from __future__ import annotations

import builtins
import sys
import time
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy
import torch
import triton

__all__ = ["Originals"]

_OWN = str(Path(__file__).parent) + "/"
_FOREIGN = (builtins, time, torch, torch.nn.functional, numpy, triton, triton.testing)
_CLASSES = (torch.Tensor,)


class Originals:
    """The functions and classes of the checker, of the kata's spec and of the libraries they use, as they were."""

    def __init__(self, spec: ModuleType) -> None:
        owners: list[tuple[str, Any]] = [(module.__name__, module) for module in _FOREIGN]
        owners += [(f"{kind.__module__}.{kind.__name__}", kind) for kind in _CLASSES]
        own = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "checker"]
        for module in (*own, spec):
            owners.append((module.__name__, module))
            owners += [
                (f"{module.__name__}.{name}", kind)
                for name, kind in vars(module).items()
                if isinstance(kind, type) and kind.__module__ == module.__name__
            ]
        self._held = [
            (f"{label}.{name}", owner, name, value, value.__code__ if isinstance(value, FunctionType) else None)
            for label, owner in owners
            for name, value in list(vars(owner).items())
            if callable(value) or isinstance(value, ModuleType)
        ]

    def replaced(self) -> str | None:
        """The first name that stands for something else than before; None if all are as they were."""
        for label, owner, name, value, code in self._held:
            now = vars(owner).get(name)
            if now is value and (code is None or value.__code__ is code):
                continue
            if now is value or not _by_its_library(owner, now, value):
                return label
        return None


def _by_its_library(owner: Any, now: Any, before: Any) -> bool:
    """Whether a library wrapped its own function: importing torch._dynamo does that to torch.manual_seed."""
    home = getattr(owner, "__file__", None)
    if not home or not isinstance(now, FunctionType) or now.__name__ != getattr(before, "__name__", None):
        return False
    return now.__code__.co_filename.startswith(str(Path(home).parent) + "/") and not home.startswith(_OWN)
