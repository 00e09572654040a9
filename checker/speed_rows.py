"""The lines in which a report shows what the speed stage measured. Text from figures; imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["basis", "lines"]

_AGAINST = {"bound": "the bound", "bytes": "the least bytes", "reference": "the solution", "torch": "PyTorch"}


def basis(row: Mapping[str, Any]) -> str:
    """What the times rest on: "modelled for NVIDIA H200", "measured on ..."."""
    return str(row.get("basis", ""))


def lines(row: Mapping[str, Any]) -> Iterator[str]:
    """What was measured in one case: the time and its threshold, the limit and the bytes, the worst access."""
    share = f"{row['share_of_bound']:.2f} of the bound ({_us(row['bound_us'])})"
    spread = "" if row["high"] <= 1.02 * row["low"] else f" ({_us(row['low'])} to {_us(row['high'])})"
    yield f"{_us(row['us'])}{spread}, {share}; {_threshold(row)}"
    moved = f"{_size(row['bytes'])} asked for, {_size(row['dram_bytes'])} through memory"
    yield f"limited by {row['limiter']}; {moved}, {_size(row['least_bytes'])} is the least"
    worst = row.get("worst")
    if worst:
        yield (
            f"most wasteful: the {worst['kind']} in line {worst['line']} through {worst['argument']}, "
            f"{worst['ratio']:.1f} bytes for each useful byte"
        )
    resources = f"{row['registers']} registers a thread, {_size(row['shared_bytes'])} of shared memory"
    spills = f", {row['spilled_bytes']} bytes spilled" if row["spilled_bytes"] else ""
    yield f"{resources}{spills}; {row['occupancy']:.0%} of the warps fit at a time"


def _threshold(row: Mapping[str, Any]) -> str:
    if row["ratio"] is None or not row["decides"]:
        return "no threshold applies"
    close = " (close)" if row["close"] else ""
    what = "" if row["to"] == "bound" else f" of {_AGAINST[row['to']]}"
    if row["to"] in ("torch", "reference"):
        what = f" times as fast as {_AGAINST[row['to']]} ({_us(row[row['to'] + '_us'])})"
    ratio = "" if row["to"] == "bound" else f"{row['ratio']:.2f}{what}, "
    return f"{ratio}needs {row['at_least']:.2f}{close}"


def _us(value: float) -> str:
    return f"{value:.0f} us" if value >= 100 else f"{value:.1f} us"


def _size(count: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if count >= size:
            return f"{float(f'{count / size:.3g}'):g} {unit}"
    return f"{count:.0f} bytes"
