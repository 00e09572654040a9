"""The figures of a comparison or a sweep as lines for a terminal. Nothing is measured and nothing printed here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from checker.findings import Finding
from checker.report import Look

__all__ = ["curve", "table"]


def table(kata: str, document: dict[str, Any], look: Look) -> Iterator[str]:
    """The comparison as lines: a row a figure, a column each for yours, the reference and PyTorch."""
    yield _headline(kata, document["case"], document, look)
    columns = document["columns"]
    yield ""
    yield " " * _LABEL + "".join(f"{column['who']:>15}" for column in columns)
    for label, key, value in _ROWS:
        cells = [value(column, document) if column.get(key) is not None else "" for column in columns]
        if any(cells):
            row = f"{label:<{_LABEL}}" + "".join(f"{cell:>15}" for cell in cells).rstrip()
            yield look.paint(row, bold=True) if key == "us" else row
    yield ""
    yield from (look.fill(text) for text in _remarks(document))


def _headline(kata: str, what: str, document: dict[str, Any], look: Look) -> str:
    return look.paint(f"{kata}: {what}", bold=True) + f"\n{document['basis']}"


def _mb(count: float) -> str:
    return (
        f"{count / 1e9:.3g} GB"
        if count >= 1e9
        else f"{count / 1e6:.3g} MB"
        if count >= 1e6
        else f"{count / 1e3:.3g} kB"
    )


def _kib(count: int) -> str:
    return f"{count / 1024:g} KiB" if count >= 1024 and count % 256 == 0 else f"{count} bytes"


def _us(us: float) -> str:
    return f"{us:.0f} us" if us >= 100 else f"{us:.1f} us"


_LABEL = 27
"""Columns of the label of a row."""


def _against_least(column: dict[str, Any], document: dict[str, Any]) -> str:
    least = document["least_bytes"]
    return f"{column['dram_bytes'] / least:.2f} x" if least else ""


_ROWS = (
    ("largest error", "error", lambda c, d: f"{c['error']:.2g}"),
    ("time", "us", lambda c, d: _us(c["us"])),
    ("share of the bound", "share_of_bound", lambda c, d: f"{c['share_of_bound']:.0%}"),
    ("limited by", "limiter", lambda c, d: c["limiter"]),
    ("launches", "launches", lambda c, d: str(c["launches"])),
    ("bytes through memory", "dram_bytes", lambda c, d: _mb(c["dram_bytes"])),
    ("  against the least", "dram_bytes", _against_least),
    ("bytes asked for", "bytes", lambda c, d: _mb(c["bytes"])),
    ("  fetched per useful byte", "fetched_per_useful_byte", lambda c, d: f"{c['fetched_per_useful_byte']:.2f}"),
    ("programs", "programs", lambda c, d: str(c["programs"])),
    ("warps a program", "num_warps", lambda c, d: str(c["num_warps"])),
    ("registers a thread", "registers", lambda c, d: str(c["registers"])),
    ("spilled bytes a thread", "spilled_bytes", lambda c, d: str(c["spilled_bytes"] or "")),
    ("shared memory a program", "shared_bytes", lambda c, d: _kib(c["shared_bytes"])),
    ("occupancy", "occupancy", lambda c, d: f"{c['occupancy']['share']:.0%}"),
    ("  ended by", "occupancy", lambda c, d: c["occupancy"]["limiter"]),
)  # fmt: skip
"""A row of the table: its label, the figure without which a cell stays empty, and what the cell shows."""


def _remarks(document: dict[str, Any]) -> Iterator[str]:
    if document.get("bound_us"):
        what = f"{_mb(document['least_bytes'])} at {document['peak_gb_per_s']:g} GB/s"
        if document["bound_by"] == "arithmetic":
            what = f"{document['flops'] / 1e9:.4g} GFLOP at {document['peak_tflop_per_s']:g} TFLOP/s"
        yield f"The bound is {_us(document['bound_us'])}: {what}."
    what = "Bytes and resources are" if document["measured"] else "Times and bytes are"
    yield f"{what} {document['counted']}; errors are those of the case {document['error_case']!r}."
    if document["note"]:
        yield f"{document['note']}."
    pytorch = document["columns"][2]
    if not document["measured"]:
        names = ", ".join(pytorch["operations"]) or "views only"
        how = "measured on that chip" if pytorch["measured"] else "estimated from its bytes and FLOPs"
        yield f"PyTorch's time is {how}: {names}."
    for column in document["columns"][:2]:
        worst = column.get("worst")
        if worst:
            yield (
                f"In {column['who']}, the {worst['kind']} of {worst['argument']} in line {worst['line']} moves "
                f"{worst['ratio']:.3g} bytes for each it asks for."
            )
        if column.get("operations"):
            yield f"{column['who'].capitalize()} also runs {', '.join(column['operations'])} in PyTorch."


def curve(kata: str, document: dict[str, Any], look: Look) -> Iterator[str]:
    """A bar a value, as long as the time; a value that cannot be timed says why."""
    found = document["sweep"]
    rows, name = found["rows"], found["name"]
    yield _headline(kata, f"{name} over {document['case']}", document, look)
    yield ""
    timed = [row["us"] for row in rows if row["us"]]
    best, longest = min(timed, default=0.0), max(timed, default=1.0)
    bar = "#" if look.ascii else "█"
    named = max((len(row["limiter"]) for row in rows if row["us"]), default=0)
    columns = max(10, look.width - 40 - named)
    for row in rows:
        start = f"{row['value']:>8}  "
        if row["us"]:
            length = max(1, round(row["us"] / longest * columns))
            marks = ["best"] * (row["us"] == best) + ["yours"] * row["own"]
            text = f"{start}{_us(row['us']):>10}  {row['limiter']:<{named}}  {bar * length}"
            yield look.paint(text + (f" {', '.join(marks)}" if marks else ""), "green" if row["us"] == best else None)
        else:
            finding = Finding.from_dict(row["finding"])
            said = f"{finding.code} {finding.title}"
            if finding.code not in ("K601", "K404", "K402"):
                said += f": {finding.message}"
            yield start + look.paint(_short(said, look.width - len(start)), dim=True)
    if found["tied"]:
        yield "\n" + look.fill(
            f"This kernel ties {name} to the shape of its input (it launched with {found['own']}): a smaller value "
            "covers too little, so there is no curve to draw. Sweep num_warps, or a kernel that loops."
        )
    elif not timed:
        yield "\n" + look.fill(f"None of these values can be timed. Yours is {found['own']}.")
    elif not any(row["own"] for row in rows):
        yield "\n" + look.fill(f"Yours is {found['own']}, which is not among these values.")


def _short(text: str, columns: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= columns else text[: columns - 3] + "..."
