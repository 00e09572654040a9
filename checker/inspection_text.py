"""What became of a kernel as text for a terminal: its levels, cut to the telling lines, and its resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from checker import levels
from checker.report import Look

__all__ = ["overview"]

SHOWN = ("eager", "python", "ttir", "ttgir", "ptx", "sass", "amdgcn")
"""The levels of the overview. LLVM IR says little that PTX does not say more briefly."""


def overview(kata: str, document: dict[str, Any], look: Look) -> Iterator[str]:
    """The text in parts: headline, a part for each level, resources, what to do next."""
    gpu = document["gpu"]
    head = look.paint(f"{kata}: {document['kernel']}", bold=True) + f" on {gpu['name']} ({gpu['target']})"
    facts = [f"case {document['case']}", f"launch {document['launch']}"]
    if document["other_kernels"]:
        facts.append(f"it launches {', '.join(document['other_kernels'])} as well; this one takes the most time")
    yield "\n".join([head, *(look.fill(fact, "  ") for fact in facts)])
    for name in SHOWN:
        if name in document["texts"]:
            yield "\n".join(_level(name, document["texts"][name], look))
    yield "\n".join(_lesson(document, look))
    yield "\n".join(_resources(document, look))
    yield look.fill("`kata inspect --level ptx` prints a level whole (eager, python, ttir, ttgir, llir, ...).")


def _level(name: str, text: str, look: Look) -> Iterator[str]:
    level = levels.LEVELS[name]
    count = sum(1 for row in text.splitlines() if row.strip())
    size = "" if name in ("eager", "python") else f", {count} lines"
    yield look.paint(f"{level.title}{size}", "cyan", bold=True)
    yield look.paint(look.fill(level.adds, "  "), dim=True)
    lines = levels.excerpt(name, text)
    times = "x" if look.ascii else "×"
    for line in lines:
        gutter = "      " if name == "eager" else f"{line.number:6}"
        many = f"  {times}{line.times}" if line.times > 1 else ""
        yield f"{gutter} | {_cut(line.text, look.width - 9 - len(many), look)}{look.paint(many, 'yellow')}"
    if not lines:
        yield "       | (nothing that loads, computes or stores: the compiler found no work here)"


def _cut(text: str, columns: int, look: Look) -> str:
    end = "..." if look.ascii else "…"
    return text if len(text) <= columns else text[: columns - len(end)] + end


def _lesson(document: dict[str, Any], look: Look) -> Iterator[str]:
    first = levels.first_appearances(document["texts"])
    yield look.paint("From blocks to threads", "cyan", bold=True)
    said = [f"{what} first appear in {levels.LEVELS[level].title}" for what, level in first.items()]
    if not said:
        said = ["neither layouts nor thread ids appear at any level"]
    text = "; ".join(said)
    yield look.fill(
        f"{text[0].upper()}{text[1:]}. Above that you think in programs and blocks: the compiler deals a block out "
        "to the threads of its warps, and you steer it with block sizes, num_warps and the order of your offsets.",
        "  ",
    )


def _resources(document: dict[str, Any], look: Look) -> Iterator[str]:
    yield look.paint("What it uses of the chip", "cyan", bold=True)
    for what, text in [
        *_memory(document["accesses"]),
        ("tensor cores", _tensor(document)),
        ("registers", f"{document['registers']} a thread; " + _spills(document["spilled_bytes"])),
        ("shared memory", f"{_bytes(document['shared_bytes'])} a program"),
        ("occupancy", _occupancy(document)),
        ("time", "{us:g} us, limited by {limiter} ({basis})".format(**document["time"])),
    ]:
        # The first line of an entry carries its name.
        filled = look.fill(text, " " * 18)
        yield f"  {what:<16}{filled[18:]}"


def _memory(accesses: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    named = {"copy": "copy to shared"}
    for one in accesses:
        where = f"line {one['line']}" if one["line"] else "no line"
        width = f"{one['bits']} bits a thread" if one["bits"] else "a whole tile at once"
        wide = ", the widest there is" if one["bits"] == 128 else ""
        many = "" if one["count"] == 1 else f", {one['count']} times"
        yield named.get(one["kind"], one["kind"]), f"{where}: {width}{wide} ({one['instruction']}{many})"
    if not accesses:
        yield "memory", "no access to global memory is left"


def _tensor(document: dict[str, Any]) -> str:
    found = document["tensor_instructions"]
    if found:
        return ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in found.items())
    if document["products"]:
        return "none, though there is a tl.dot: its products run on the ordinary units"
    return "none: there is no tl.dot"


def _spills(count: int) -> str:
    return f"{count} bytes a thread do not fit and live in memory (spilled)" if count else "nothing spilled"


def _occupancy(document: dict[str, Any]) -> str:
    one = document["occupancy"]
    if not one["programs"]:
        return f"not one program fits on a multiprocessor: {one['limiter']}"
    others = ", ".join(f"{name} {count}" for name, count in one["limits"].items())
    programs = "1 program" if one["programs"] == 1 else f"{one['programs']} programs"
    return (
        f"{programs} of {document['num_warps']} warps on a multiprocessor, {one['warps']} of "
        f"{one['warps_possible']} warps ({one['share']:.0%}); ended by {one['limiter']} (programs allowed by {others})"
    )


def _bytes(count: int) -> str:
    return f"{count / 1024:g} KiB" if count >= 1024 and count % 1024 == 0 else f"{count} bytes"
