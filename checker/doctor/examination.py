"""The whole examination, in the order in which one thing rests on another; the kernels come last, in children."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from checker import devices
from checker.doctor.hardware import look_at_hardware
from checker.doctor.item import Item, pip_command, trouble
from checker.doctor.software import look_at_software
from checker.doctor.toolchain import look_at_toolchain
from checker.runner import environment

__all__ = ["KERNEL", "examine"]

KERNEL = "kernel on "
"""How the name of an item begins that tells of a kernel's run; the device follows."""

_LIMIT = 300.0
_REST = ("PyTorch", "Triton")


def examine(on_start: Callable[[str], None] = lambda name: None) -> Iterator[Item]:
    """Everything, one after the other; `on_start` hears what takes longer than a moment."""
    found: list[Item] = []
    for look in (look_at_software, look_at_toolchain, look_at_hardware):
        for item in look():
            found.append(item)
            yield item
    missing = [item.name for item in found if item.name in _REST and item.status == "trouble"]
    for device in ["virtual"] + ["cuda"] * (not devices.problem()):
        title = f"{KERNEL}the {'virtual' if device == 'virtual' else 'real'} GPU"
        if missing:
            yield Item(title, "not_run", f"{', '.join(missing)} first")
            continue
        on_start(title)
        yield from _run(device, title, mended_first=[item.name for item in found if item.status == "trouble"])


def _run(device: str, title: str, *, mended_first: Sequence[str]) -> Iterator[Item]:
    """The known kernel on one kind of device, in a process of its own: whatever happens there, this one goes on."""
    code = "import sys; sys.path.append(sys.argv[1]); from checker.doctor.known_kernel import main; main()"
    here = str(Path(__file__).resolve().parents[2])
    # Compiled anew: a binary from an earlier day would hide that nothing compiles now.
    variables = {**environment(), "TRITON_ALWAYS_COMPILE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-B", "-W", "ignore", "-c", code, here, device],
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        yield _failed(title, f"no answer after {_LIMIT:g} s", mended_first)
        return
    answers = list(_answers(done.stdout))
    if not answers:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        yield _failed(title, f"the process ended with status {done.returncode}: {last}", mended_first)
    for answer in answers:
        name = f"{KERNEL}{answer['device']}" if answer["step"] not in _BEFORE else title
        if answer["step"]:
            yield _failed(name, f"{answer['step']} failed: {answer['error']}", mended_first, answer["step"])
        else:
            yield Item(name, "ok", "compiled, run, and all values are right")


_OPENING = "opening the device"
_BEFORE = {"importing torch": "torch", "importing triton": "triton", _OPENING: ""}
"""Steps before a device is known by name, with the package to install anew."""


def _failed(name: str, found: str, mended_first: Sequence[str], step: str = "") -> Item:
    advice = "The kernel is known to be good, so the environment is at fault, whatever your own kernels do."
    if mended_first:
        return trouble(name, found, f"{advice} Mend first: {', '.join(mended_first)}.", "kata doctor")
    if step == _OPENING:
        # Hidden on purpose, or a driver older than the CUDA that PyTorch was built for: this shows which it has.
        hidden = "CUDA_VISIBLE_DEVICES" in os.environ
        return trouble(name, found, advice, "unset CUDA_VISIBLE_DEVICES" if hidden else "nvidia-smi")
    package = _BEFORE.get(step) or "triton"
    return trouble(name, found, advice, pip_command(f"install --force-reinstall {package}"))


def _answers(text: str) -> Iterator[dict[str, Any]]:
    for line in text.splitlines():
        try:
            answer = json.loads(line)
        except ValueError:
            continue
        if isinstance(answer, dict) and "step" in answer:
            yield answer
