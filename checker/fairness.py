"""Whose work a result is: whether kernels of the learner's file stored it, from the caller's data, in this call.

The evidence is what happened, not what the source looks like: the author of every byte (`vgpu.authors`), the operations
that PyTorch ran (`observe`) and the launches. A finding names the first of these that shows somebody else at work.
What no evidence inside one process can show stands in docs/fairness.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from checker.findings import Finding
from checker.observe import HostOperation, Observer
from checker.vgpu.authors import GIVEN, UNKNOWN, launch_of, operation_of
from checker.vgpu.driver import Session

__all__ = [
    "Call",
    "Results",
    "copies",
    "examine",
    "host_constants",
    "inputs_changed",
    "reads_the_unknown",
    "storers",
    "unlaunched",
    "written_unseen",
]


@dataclass
class Call:
    """One call of the learner's function and what was seen of it. `inout` holds positions she may change."""

    file: Path
    entry: str
    line: int | None
    case: str
    inputs: tuple[Any, ...]
    names: list[str]
    outputs: list[torch.Tensor]
    session: Session
    observer: Observer
    inout: frozenset[int] = frozenset()

    @property
    def operations(self) -> list[HostOperation]:
        """What PyTorch did, in order."""
        return self.observer.operations

    @property
    def vacuous(self) -> bool:
        """Whether no input holds an element: what is returned then derives from no data, whoever wrote it."""
        return not any(isinstance(value, torch.Tensor) and value.numel() for value in self.inputs)

    def authors(self, tensor: torch.Tensor) -> np.ndarray[Any, Any] | None:
        """The author of each element; None where they were not followed."""
        return self.session.authors.of(tensor) if self.session.authors is not None else None

    def finding(self, code: str, message: str, advice: str, line: int | None = None, **more: Any) -> Finding:
        """A finding of this call, at a line of the file or at its entry point."""
        return Finding(code, message, advice, file=str(self.file), line=line or self.line, case=self.case, **more)


@dataclass
class Results:
    """The memory of what earlier calls returned, so that a call which hands it out again is noticed."""

    seen: dict[int, Any] = field(default_factory=dict)

    def remember(self, call: Call) -> None:
        """Notes where a call's results lie. Does not keep them alive."""
        from torch.multiprocessing.reductions import StorageWeakRef

        given = {_storage(value) for value in call.inputs if isinstance(value, torch.Tensor)}
        for output in call.outputs:
            if output.numel() and _storage(output) not in given:
                self.seen[_storage(output)] = StorageWeakRef(output.untyped_storage())  # type: ignore[no-untyped-call]

    def returned_again(self, call: Call) -> Finding | None:
        """K903 where an output lies in memory that an earlier call returned, and no kernel stored it in this one."""
        for output in call.outputs:
            held = self.seen.get(_storage(output))
            if held is None or held.expired() or not output.numel():
                continue
            authors = call.authors(output)
            if authors is not None and not (authors > 0).any():
                return call.finding(
                    "K903",
                    f"{call.entry}() returned what an earlier call had returned, and no kernel stored it anew",
                    "Compute on every call: the same shape, or the same memory, may hold other data by now.",
                )
        return None


def _storage(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def examine(call: Call, results: Results | None = None) -> Finding | None:
    """The first sign that the result is not the work of the file's own kernels; None if there is none."""
    if call.vacuous:
        return None
    return (
        (results.returned_again(call) if results else None)
        or _foreign_launch(call)
        or _computed(call)
        or _last_writers(call)
        or _copied_answer(call)
    )


def unlaunched(call: Call, results: Results) -> Finding | None:
    """For a call that launched nothing: who made the result, if that can be told. None leaves it at K307."""
    found = results.returned_again(call) or _computed(call)
    if found is None:
        for output in call.outputs:
            authors = call.authors(output)
            if authors is None or not authors.size:
                continue
            operation = _operation(call, int(authors[0]))
            if operation is not None and operation.kind == "copy":
                return _by_pytorch(call, operation)
            if authors[0] == UNKNOWN:
                return _by_nobody(call, authors)
    return found


def storers(call: Call) -> set[str]:
    """Names of the kernels whose stores the outputs consist of."""
    names: set[str] = set()
    for output in call.outputs:
        authors = call.authors(output)
        for author in np.unique(authors) if authors is not None else ():
            index = launch_of(int(author))
            if index is not None:
                names.add(call.session.launches[index].kernel)
    return names


def copies(call: Call) -> Iterator[str]:
    """Sentences on copies of the caller's data: they are allowed, and cost their bytes."""
    for index, _ in call.observer.copies:
        operation = call.operations[index]
        if operation.asker == "file" and operation.line and operation.elements > 1:
            yield (
                f"line {operation.line} copies an input ({operation.short}): that is allowed, "
                "but its bytes are read and written once more"
            )


def written_unseen(call: Call, output: torch.Tensor) -> np.ndarray[Any, Any] | None:
    """Which elements something unseen, or a kernel through another view of the memory, has written."""
    authors = call.authors(output)
    return None if authors is None else authors >= UNKNOWN


def inputs_changed(call: Call) -> Finding | None:
    """K905: an input that the host changed. Kernels that store into inputs are K406's."""
    # An input that was handed in for the result as well may change: its owner asked for it.
    given = {
        value.untyped_storage()._cdata for i, value in enumerate(call.inputs) if i in call.inout and _tensor(value)
    }
    for i, value in enumerate(call.inputs):
        if not _tensor(value) or not value.numel() or value.untyped_storage()._cdata in given:
            continue
        authors = call.authors(value)
        if authors is None or (authors == GIVEN).all():
            continue
        author = int(authors[authors != GIVEN][0])
        operation = _operation(call, author)
        if operation is None and author != UNKNOWN:
            continue
        name = call.names[i] if i < len(call.names) else f"#{i}"
        who = operation.short if operation else "something outside PyTorch and Triton"
        return call.finding(
            "K905",
            f"{who} changed {name}, which is the caller's",
            "Write to a tensor that the wrapper allocates: the caller still needs what was handed in.",
            operation.line if operation else None,
        )
    return None


def _tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _operation(call: Call, author: int) -> HostOperation | None:
    index = operation_of(author)
    return call.operations[index] if index is not None and index < len(call.operations) else None


def _foreign_launch(call: Call) -> Finding | None:
    own = str(call.file)
    for launch in call.session.launches:
        if launch.file != own:
            return call.finding(
                "K902",
                f"{launch.kernel} was launched, which is not a kernel of this file",
                f"Write the kernel in {call.file.name}; {Path(launch.file).name or 'another file'} holds this one.",
                launch=str(launch),
            )
    return None


def _computed(call: Call) -> Finding | None:
    """K901 for the first operation of PyTorch that computed on what may be the caller's data."""
    work = [op for op in call.operations if op.kind == "compute" and op.data and op.asker != "display"]
    if not work:
        return None
    others = dict.fromkeys(f"{op.short} (line {op.line})" for op in work[1:] if op.short != work[0].short)
    details = (f"also {', '.join(list(others)[:4])}",) if others else ()
    first = work[0]
    converts = first.short in ("aten._to_copy", "aten.copy_")
    return call.finding(
        "K901",
        f"PyTorch {'converted' if converts else 'computed on'} the caller's data: {first.name}",
        "Load what there is and convert it in the kernel with `.to(...)`."
        if converts
        else "Do it in the kernel; PyTorch may allocate, make views and copy an input, no more.",
        first.line or None,
        details=details,
    )


def _by_pytorch(call: Call, operation: HostOperation) -> Finding:
    return call.finding(
        "K901",
        f"PyTorch wrote the result: {operation.name} was the last to write what {call.entry} returned",
        "Return the tensor that the kernel stored to; PyTorch may copy an input, but not make the result.",
        operation.line or None,
    )


def _by_nobody(call: Call, authors: np.ndarray[Any, Any]) -> Finding:
    count = int(np.count_nonzero(authors == UNKNOWN))
    return call.finding(
        "K902",
        f"{count} of {authors.size} elements of the result were written by something outside PyTorch and Triton",
        "Return the tensor that the kernel stored to, as the kernel left it: numpy and Python are not asked here.",
    )


def _last_writers(call: Call) -> Finding | None:
    """Each element of a result comes from a kernel, or is a constant that a kernel left as it was."""
    read = next((op for op in call.operations if op.kind == "read" and op.data and op.asker == "file"), None)
    for output in call.outputs:
        if output.is_neg() or output.is_conj():
            return call.finding("K901", "the result is negated when it is read", "Store the result as it is to be.")
        authors = call.authors(output)
        if authors is None or not authors.size:
            continue
        if (authors == UNKNOWN).any():
            return _by_nobody(call, authors)
        for author in np.unique(authors[authors < 0]):
            operation = _operation(call, int(author))
            if operation is not None and operation.kind in ("copy", "compute"):
                return _by_pytorch(call, operation)
            if operation is not None and read is not None:
                return _by_pytorch(call, operation)
        if not (authors > 0).any():
            return call.finding(
                "K902",
                "no element of the result was stored by a kernel",
                "Pass the tensor that is returned to the kernel, and store there.",
            )
    return None


def _copied_answer(call: Call) -> Finding | None:
    """K901 where a copy that PyTorch made is the answer already, as `x.t().contiguous()` is to a transpose."""
    given = [value.detach().contiguous() for value in call.inputs if isinstance(value, torch.Tensor) and value.numel()]
    for output in call.outputs:
        if output.numel() < 2 or any(_same(value, output) for value in given):
            continue
        for operation, held in _copied(call):
            if operation.asker != "tuner" and _same(held, output):
                return call.finding(
                    "K901",
                    f"{operation.name} of a view made the result; the kernel only moved it",
                    "Hand the kernel the tensor and its strides: to put elements in another order is its work.",
                    operation.line or None,
                )
    return None


def _copied(call: Call) -> Iterator[tuple[HostOperation, torch.Tensor]]:
    """Each copy of data as it was made, and each tensor that copies put together and a kernel was given."""
    for index, held in call.observer.copies:
        yield call.operations[index], held
    for launch in call.session.launches:
        for tensor in launch.tensors.values():
            authors = call.authors(tensor) if isinstance(tensor, torch.Tensor) else None
            if authors is None or not authors.size or authors.max() > -2:
                continue  # not the work of operations alone
            operations = [_operation(call, int(author)) for author in np.unique(authors)]
            if all(operation is not None and operation.kind == "copy" for operation in operations):
                yield operations[0], tensor  # type: ignore[misc]  # none of them is None


def reads_the_unknown(call: Call) -> bool:
    """Whether a kernel read memory whose author nobody saw: a table made at import, or work done out of sight."""
    for launch in call.session.launches:
        looked = {access.argument for access in launch.accesses if access.kind != "store" and access.lanes}
        for name in looked:
            tensor = launch.tensors.get(name)
            authors = call.authors(tensor) if isinstance(tensor, torch.Tensor) else None
            if authors is not None and (authors == UNKNOWN).any():
                return True
    return False


def host_constants(call: Call) -> set[bytes]:
    """The different values of those elements of the results that the host filled in."""
    found: set[bytes] = set()
    for output in call.outputs:
        authors = call.authors(output)
        if authors is not None and (authors < GIVEN).any():
            rows = output.detach().contiguous().reshape(-1).view(torch.uint8).numpy().reshape(output.numel(), -1)
            found |= {row.tobytes() for row in rows[authors < GIVEN]}
    return found


def _same(held: torch.Tensor, output: torch.Tensor) -> bool:
    """Whether two tensors hold the same bytes in row-major order, whatever their shapes."""
    if held.numel() != output.numel() or held.dtype != output.dtype:
        return False
    a, b = (tensor.detach().contiguous().reshape(-1).view(torch.uint8) for tensor in (held, output))
    return bool(torch.equal(a, b))
