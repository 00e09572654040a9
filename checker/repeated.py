"""The stage "fairness": what the cases showed, and a few calls made again on the same memory with other data.

A cache, a constant from an earlier call, a number computed on the side: one call shows none of them. Three calls on the
same tensors, the last with new bytes that PyTorch's own counters know nothing of, show all.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from checker import fairness, judge
from checker.attempt import copied
from checker.cases import Case, case_seed
from checker.findings import Finding
from checker.vgpu.authors import UNKNOWN
from checker.vgpu.driver import Session
from checker.vgpu.trace import LaunchTrace
from checker.vgpu.views import Buffer

__all__ = ["check_fairness"]

_SMALL_BYTES = 1 << 24
"""Storage of inputs beyond which a case is not called again."""


@dataclass
class _Fed:
    """What steered one launch, apart from what the caller, PyTorch and kernels wrote."""

    trace: LaunchTrace
    memory: dict[str, int] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """Comparable, by what a message calls them. Memory counts where the launch looked at it."""
        looked = {access.argument for access in self.trace.accesses if access.kind != "store" and access.lanes}
        found: dict[str, Any] = {f"the tensor {name}": self.memory[name] for name in sorted(looked & set(self.memory))}
        found |= {f"the argument {name}": repr(value) for name, value in self.trace.scalars.items()}
        kernel: Any = self.trace.kernel_handle
        code = zlib.crc32(kernel.text("ttir").encode()) if kernel is not None else 0
        return found | {"the grid": self.trace.grid, "the kernel's code": code}


class _Watch:
    """Told of each launch before it runs; keeps a digest of the memory whose author nobody saw."""

    def __init__(self) -> None:
        self.fed: list[_Fed] = []
        self.constants: set[bytes] = set()

    def __call__(self, session: Session, trace: LaunchTrace, buffers: list[Buffer]) -> None:
        fed = _Fed(trace)
        self.fed.append(fed)
        for buffer in buffers:
            authors = session.authors.of(buffer.tensor) if session.authors is not None else None
            if authors is not None and (authors == UNKNOWN).any():
                offsets = buffer.offsets_in_order()[authors == UNKNOWN]
                fed.memory[buffer.name] = zlib.crc32(np.ascontiguousarray(buffer.flat[offsets]).tobytes())

    def facts(self) -> list[dict[str, Any]]:
        """Of all launches, in order."""
        return [fed.facts() for fed in self.fed]


def _differ(a: _Watch, b: _Watch) -> bool:
    """Whether two calls launched differently, or filled in other constants where they filled in any."""
    return a.facts() != b.facts() or bool(a.constants and b.constants and a.constants != b.constants)


def check_fairness(subject: judge.Subject, seed: int) -> list[Finding]:
    """Every sign, by any case or by calls made again, that a result is not the work of the file's kernels."""
    if subject.unfair:
        return list(subject.unfair)
    with judge.briefly(subject):
        for case in _chosen(subject, seed):
            found = _again(subject, case, seed)
            if found:
                return [found]
    return []


def _chosen(subject: judge.Subject, seed: int) -> list[Case]:
    """Those whose inputs can be overwritten: the smallest, a middle, the largest, a strided one, and what is suspect.

    Suspect is a case in which a kernel read memory whose author nobody saw.
    """
    plain: list[tuple[int, Case]] = []
    strided: list[tuple[int, Case]] = []
    suspect: list[tuple[int, Case]] = []
    for case in subject.spec.CASES:
        first, other = (_inputs(subject, case, seed + i) for i in (0, 1))
        pairs = [(a, b) for a, b in zip(first, other, strict=True) if isinstance(a, torch.Tensor)]
        fit = all(_layout(a) == _layout(b) and 0 < a.untyped_storage().nbytes() <= _SMALL_BYTES for a, b in pairs)
        if not fit or not pairs or not all(a.numel() for a, _ in pairs):
            continue
        sized = (sum(a.numel() for a, _ in pairs), case)
        if case.id in subject.suspects:
            suspect.append(sized)
        elif case.stage == "values":
            (plain if all(a.is_contiguous() for a, _ in pairs) else strided).append(sized)
    for cases in (plain, strided, suspect):
        cases.sort(key=lambda sized: sized[0])
    places = sorted({0, len(plain) // 2, len(plain) - 1}) if plain else []
    return [case for _, case in [*suspect[:4], *(plain[place] for place in places), *strided[-1:]]]


def _layout(tensor: torch.Tensor) -> tuple[Any, ...]:
    return tensor.shape, tensor.stride(), tensor.dtype


def _inputs(subject: judge.Subject, case: Case, seed: int) -> tuple[Any, ...]:
    drawn = subject.spec.make_inputs(case, seed=case_seed(seed, case.id), device=torch.device("cpu"))
    return tuple(drawn)


def _again(subject: judge.Subject, case: Case, seed: int) -> Finding | None:
    """Two calls on the same data, one on new data in the same memory; two more where their launches differ."""
    inputs, drawn = _inputs(subject, case, seed), _inputs(subject, case, seed + 1)
    # Only memory changes: a number among the arguments may rightly steer a launch.
    other = tuple(b if isinstance(a, torch.Tensor) else a for a, b in zip(inputs, drawn, strict=True))
    first_data = tuple(copied(value) for value in inputs)
    results: list[torch.Tensor] = []
    held: list[torch.Tensor] = []
    watches: list[_Watch] = []

    def once() -> tuple[judge.Run, Finding | None]:
        watch = _Watch()
        watches.append(watch)
        run = judge.call(subject, inputs, case.id, before_launch=watch)
        if run.findings or run.evidence is None:
            return run, run.findings[0] if run.findings else None
        evidence = run.evidence
        watch.constants = fairness.host_constants(evidence)
        found = fairness.inputs_changed(evidence) or fairness.examine(evidence, subject.results)
        subject.results.remember(evidence)
        if found is None:
            given = {value.untyped_storage()._cdata for value in inputs if isinstance(value, torch.Tensor)}
            own = [output for output in evidence.outputs if output.untyped_storage()._cdata not in given]
            results.extend(own)
            held.extend(copied(output) for output in own)
        return run, found

    run, found = once()
    if found is None:
        outputs = [copied(output) for output in judge.outputs_of(run.result)]
        _overwrite(inputs, first_data, only=getattr(subject.spec, "INOUT", ()))
        run, found = once()
        if found is None and not _equal(outputs, judge.outputs_of(run.result)):
            found = judge.unsteady(subject, case.id)
    if found is None:
        _overwrite(inputs, other)
        run, found = once()
        if found is None:
            # Not `inputs`: what the kernel updates in place holds the result by now.
            found = _stale(subject, run, other, case)
    if found is None and _differ(watches[1], watches[2]):
        found = _fed_by_data(run, watches, once, lambda: _overwrite(inputs, other))
    if found is None:
        found = _overwritten(run, results, held)
    return found


def _fed_by_data(
    run: judge.Run,
    watches: list[_Watch],
    once: Callable[[], tuple[judge.Run, Finding | None]],
    reset: Callable[[], None],
) -> Finding | None:
    """K904 for what differs between launches on other data, unless it changes with every call (a counter)."""
    for _ in range(2):
        reset()
        once()
    if _differ(watches[3], watches[4]) or run.evidence is None:
        return None
    before, after = watches[1].facts(), watches[2].facts()
    what = "the number of launches" if before != after else "what the host filled into the result"
    for a, b in zip(before, after, strict=False):
        differing = [name for name in b if a.get(name) != b[name]]
        if differing:
            what = differing[0]
            break
    return run.evidence.finding(
        "K904",
        f"{what} changes with the data, though nothing that was seen computed it",
        "Let the kernel compute it: hand over the inputs as they are, with their shapes and strides.",
    )


def _stale(subject: judge.Subject, run: judge.Run, given: tuple[Any, ...], case: Case) -> Finding | None:
    """K903 if the result is wrong for new data in old memory, where a first call on new memory was right.

    By more than rounding: how exact a kernel is depends on the data that was drawn, and the cases ask that.
    """
    wrong = judge.wrong_values(subject, run, tuple(copied(value) for value in given), case)
    if wrong is None or wrong.code == "K701" or not run.evidence:
        return None
    return run.evidence.finding(
        "K903",
        "with new data in the same tensors the result is not theirs: something of an earlier call was used",
        "Keep nothing between calls that depends on data; an address or a shape does not tell which data it is.",
    )


def _overwritten(run: judge.Run, results: list[torch.Tensor], held: list[torch.Tensor]) -> Finding | None:
    if run.evidence is None or _equal(held, results):
        return None
    return run.evidence.finding(
        "K906",
        "a later call changed the result of an earlier one: they share their memory",
        "Allocate the output in the wrapper, on every call.",
    )


def _overwrite(inputs: tuple[Any, ...], values: tuple[Any, ...], only: Any = None) -> None:
    """Puts other elements into the same memory, unseen by PyTorch's version counters, as a kernel would."""
    for i, (tensor, value) in enumerate(zip(inputs, values, strict=True)):
        if isinstance(tensor, torch.Tensor) and tensor.numel() and (only is None or i in only):
            memory = Buffer(tensor, "", -1)
            # Held until it is copied: `flat` is a view of memory that it does not keep alive.
            source = Buffer(value.detach().contiguous(), "", -1)
            memory.flat[memory.offsets_in_order()] = source.flat


def _equal(a: list[Any], b: list[Any]) -> bool:
    """Whether two lists of tensors hold the same bytes."""
    return len(a) == len(b) and all(
        x.shape == y.shape and x.dtype == y.dtype and _bytes(x) == _bytes(y) for x, y in zip(a, b, strict=True)
    )


def _bytes(tensor: torch.Tensor) -> bytes:
    flat = tensor.detach().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes()
