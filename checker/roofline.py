"""The roofline picture of `kata compare --plot`: how near each kernel comes to the roof that its work has.

Needs matplotlib, an extra of this package; imported here and nowhere else. A kernel without arithmetic has no place on
a roofline: its picture is a bar for each bandwidth under the two lines that bound it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["draw", "points"]


def points(document: Mapping[str, Any]) -> list[tuple[str, float, float]]:
    """(who, FLOPs per byte through memory, TFLOP/s) of each column that has a time; GB/s where there are no FLOPs."""
    found = []
    for column in document["columns"]:
        if not column.get("us"):
            continue
        moved = column.get("dram_bytes") or document["least_bytes"]
        if document["flops"]:
            found.append((column["who"], document["flops"] / moved, document["flops"] / (column["us"] * 1e6)))
        else:
            found.append((column["who"], 0.0, document["least_bytes"] / (column["us"] * 1e3)))
    return found


def draw(document: Mapping[str, Any], kata: str, file: Path) -> None:
    """Write the picture to `file`, as PNG or SVG by its ending. OSError if it cannot be written."""
    # The figure alone, without pyplot: no window system is asked for and no state is left behind.
    from matplotlib.figure import Figure  # type: ignore[import-not-found, unused-ignore]  # an extra

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    if document["flops"]:
        _roof(axes, document)
    else:
        _bars(axes, document)
    axes.set_title(f"{kata}: {document['case']}\n{document['basis']}", fontsize=10)
    figure.savefig(file, dpi=150)


def _roof(axes: Any, document: Mapping[str, Any]) -> None:
    found = points(document)
    bandwidth, peak = document["peak_gb_per_s"], document["peak_tflop_per_s"]
    ridge = peak * 1e3 / bandwidth
    low, high = (pick([ridge, *(x for _, x, _ in found)]) for pick in (min, max))
    ends = low / 4, high * 4
    line = sorted({*ends, ridge})
    axes.loglog(line, [min(x * bandwidth / 1e3, peak) for x in line], color="black")
    axes.annotate(f"{bandwidth:g} GB/s", (ends[0] * 1.3, ends[0] * bandwidth / 1e3))
    axes.annotate(f"{peak:g} TFLOP/s", (ridge * 1.05, peak * 1.06))
    axes.set_ylim(top=peak * 2)
    for (who, x, y), marker in zip(found, "osD^", strict=False):
        axes.plot([x], [y], marker, label=f"{who}: {y:.3g} TFLOP/s", markersize=9, fillstyle="none", markeredgewidth=2)
    axes.set_xlabel("FLOP per byte through memory")
    axes.set_ylabel("TFLOP/s")
    axes.grid(visible=True, which="both", alpha=0.2)
    axes.legend(loc="lower right")


def _bars(axes: Any, document: Mapping[str, Any]) -> None:
    found = points(document)
    axes.bar([who for who, _, _ in found], [rate for _, _, rate in found], width=0.5)
    for place, (_, _, rate) in enumerate(found):
        axes.annotate(f"{rate:.0f}", (place, rate), ha="center", va="bottom")
    bandwidth = document["peak_gb_per_s"]
    axes.axhline(bandwidth, color="black")
    axes.annotate(f"the bound, {bandwidth:g} GB/s", (0.01, bandwidth * 1.01), xycoords=("axes fraction", "data"))
    axes.set_ylim(0, bandwidth * 1.15)
    axes.set_ylabel("GB/s of the least bytes")
