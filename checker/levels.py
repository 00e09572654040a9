"""One kernel at each level of the stack, cut to the lines that tell something.

The compiler's texts run to thousands of lines, most of them addresses and bookkeeping. The lines that answer a
learner's questions are few: who am I (program and thread ids), which layout, the load, the reduction, the dot, the
store. They are chosen here by pattern, like lines are counted once, and nothing is paraphrased. Text in, text out.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["LEVELS", "Level", "Line", "clean", "excerpt", "first_appearances"]


@dataclass(frozen=True, slots=True)
class Level:
    """One level: its title, a sentence on what it adds to the one above, and what is telling in its lines."""

    name: str
    title: str
    adds: str
    telling: tuple[str, ...]
    """Patterns, the most telling first."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a level that was kept: its number in the whole text, and how many lines are like it."""

    number: int
    text: str
    times: int = 1


_MLIR = (
    r"\btt\.(load|store|descriptor_\w+|atomic_\w+)\b",
    r"\b(tt|ttng)\.\w*dot\b",
    r'"tt\.(reduce|scan)"',
    r"\bttg\.(async_copy_global_to_local|convert_layout)\b",
    r"\b(math|libdevice)\.\w+",
    r"\btt\.(get_program_id|make_range)\b",
    r"\bscf\.(for|while|if)\b",
    r"arith\.(max|min)\w*f\b",
    r"arith\.(divf|mulf|addf|subf|truncf|extf|cmpi)\b",
    r"\btt\.(addptr|trans)\b",
)
_PTX = (
    r"\b(wgmma\.mma_async|mma\.sync|tcgen05\.mma)",
    r"\b(ld|st|atom|red)\.(?:[\w:]+\.)*global|cp\.async\.(c[ag]|bulk)",
    r"%tid\.x|%ctaid",
    r"\b(ex2|lg2|rsqrt|sqrt|tanh|div\.full|div\.rn|sin|cos)\.",
    r"\bshfl\.|\bredux\.",
    r"\bbar\.sync|cp\.async\.wait_group|wgmma\.wait_group",
    r"\b(ld|st)\.shared|ldmatrix|stmatrix",
    r"@%?p\d+ bra",
    r"\bfma\.|\b(max|min|add|mul|sub)\.f",
)
_SASS = (
    r"\b[HIQBD]G?MMA\b",
    r"\b(LDG|STG|LDGSTS|UTMALDG|UTMASTG|ATOMG|RED)\b",
    r"SR_TID|SR_CTAID",
    r"\bMUFU\.(EX2|RCP|RSQ|LG2|SQRT|TANH)",
    r"\b(SHFL|REDUX)\b",
    r"\b(BAR|DEPBAR|LDGDEPBAR)\b|WARPGROUP\.DEPBAR",
    r"\b(LDS|STS|LDSM|STSM)\b(?!.*\[RZ\])",
    r"@!?U?P\d+ BRA",
    r"\b(FFMA|HFMA2|FMNMX|FADD|FMUL)\b",
)
_AMDGCN = (
    r"\bv_(s?mfmac?|wmma)_",
    r"\b(global|buffer|flat)_(load|store|atomic)",
    r"\bv_(exp|log|rcp|rsq|sqrt|sin|cos)_",
    r"_dpp\b|row_shr|row_bcast|ds_swizzle|ds_bpermute",
    r"\bs_barrier|s_waitcnt vmcnt",
    r"\bds_(read|write)",
    r"\bs_cbranch",
    r"\bv_(fma|pk_fma|max|add|mul)_f",
)
_LLIR = (
    r"(load|store) .*addrspace\([17]\)|(ld|st)\.global|cp\.async\.c[ag]|\.buffer\.(load|store)",
    r"wgmma|mma\.sync|mfma",
    r"sreg\.(tid|ctaid)|workgroup\.id|workitem\.id",
    r"\bshfl\.sync|barrier",
    r"llvm\.(exp|maxnum|maximum|fma|nvvm\.ex2)",
    r"\b(fdiv|fmul|fadd|fsub)\b",
)
_PYTHON = (
    r"\btl\.(load|store|dot|atomic_\w+|make_tensor_descriptor)\b|\.(load|store)\(",
    r"\btl\.(sum|max|min|argmax|reduce|cumsum|associative_scan)\b",
    r"\btl\.(program_id|arange)\b",
    r"\btl\.(exp|exp2|log|sqrt|rsqrt|sigmoid|where|fma|maximum)\b",
    r"^\s*(for|while) ",
    r"mask",
    r"\btl\.\w+",
    r"=",
)

LEVELS: dict[str, Level] = {
    level.name: level
    for level in (
        Level("eager", "eager PyTorch", "A finished kernel for each operation; every result goes to memory.", (r".",)),
        Level("python", "Triton source", "What one program does with one block.", _PYTHON),
        Level("ttir", "TTIR", "The same, typed: shapes and dtypes are known, constants are in.", _MLIR),
        Level(
            "ttgir",
            "TTGIR",
            "For this chip: which thread of which warp holds which elements, what goes through shared memory.",
            (r"^#\w+ = #ttg\.(?!shared_memory)|^#\w+ = #ttng", *_MLIR),
        ),
        Level("llir", "LLVM IR", "What one thread does, in LLVM's language.", _LLIR),
        Level("ptx", "PTX", "What one thread does, for the assembler. %tid.x is its id; v4 moves four words at once.",
              _PTX),
        Level("sass", "SASS", "What the chip executes: real registers, scheduled.", _SASS),
        Level("amdgcn", "GCN assembly", "What the chip executes: v_ registers hold one value a lane, s_ one a wave.",
              _AMDGCN),
    )
}  # fmt: skip
"""From the top of the stack down. A chip has either PTX and SASS, or GCN assembly."""


_MARKS = {
    "layouts": re.compile(r"#ttg\.|#triton_gpu\.|#ttng\."),
    "thread ids": re.compile(r"sreg\.tid|workitem\.id|%tid\.x|SR_TID"),
}


def first_appearances(texts: Mapping[str, str]) -> dict[str, str]:
    """The first level, from the top of the stack, whose text has layouts, and the first that has thread ids."""
    found = {}
    for what, mark in _MARKS.items():
        level = next((name for name in LEVELS if name in texts and mark.search(texts[name])), None)
        if level is not None:
            found[what] = level
    return found


def excerpt(name: str, text: str, *, limit: int = 12) -> list[Line]:
    """The most telling lines of a level, in their order, at most `limit`; lines that differ in numbers only are one."""
    patterns = [re.compile(pattern) for pattern in LEVELS[name].telling]
    kept: dict[str, tuple[int, Line]] = {}
    for number, row in enumerate(clean(name, text), 1):
        rank = next((rank for rank, pattern in enumerate(patterns) if pattern.search(row)), None)
        if rank is None:
            continue
        likeness = row if name in ("eager", "python") else _likeness(row)
        if likeness in kept:
            first = kept[likeness][1]
            kept[likeness] = (rank, Line(first.number, first.text, first.times + 1))
        else:
            kept[likeness] = (rank, Line(number, row))
    best = sorted(kept.values(), key=lambda item: (item[0], item[1].number))[:limit]
    return sorted((line for _, line in best), key=lambda line: line.number)


def clean(name: str, text: str) -> list[str]:
    """The lines of a level without locations and attributes.

    One for each line of the text, so that line numbers stay right; "" where nothing is left.
    """
    rows = text.splitlines()
    if name in ("ttir", "ttgir"):
        return [_clean_mlir(row) for row in rows]
    if name == "sass":
        return [_clean_sass(row) for row in rows]
    if name in ("ptx", "amdgcn", "llir"):
        return [_clean_assembly(row) for row in rows]
    if name == "python":
        return _clean_python(rows)
    return [row.rstrip() for row in rows]


_LOC = re.compile(r"\s*loc\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)")
_ATTRIBUTES = re.compile(r"\s*(?:<\{[^{}]*\}>|(?<!\()\{[^{}]*\})(?=\s|$|\))")


def _clean_mlir(row: str) -> str:
    if re.match(r"#loc\d*\b", row):
        return ""
    row = _LOC.sub("", row).rstrip()
    if re.match(r"#\w+ = ", row):
        return row
    return _ATTRIBUTES.sub("", row).strip()


def _clean_sass(row: str) -> str:
    match = re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;?\s*(?:/\*.*)?$", row)
    return " ".join(match[1].split()) if match else ""


def _clean_assembly(row: str) -> str:
    row = re.split(r"\s*(?://|; )", row, maxsplit=1)[0] if '"' not in row else row
    if re.match(r"\s*[.$;!]|define |declare ", row):
        return ""
    row = re.sub(r",?\s*!\w+ !\d+|\s+#\d+$", "", row)
    # The operands and results of a wgmma are hundreds of registers in a row.
    row = re.sub(r"\{ ?((?:\w+, ){3})(?:\w+, )+\w+ ?\}", r"{ \1... }", row)
    row = re.sub(r"\{((?:%\w+,\s*){4})[^{}]*,\s*(%\w+)\s*\}", r"{\1..., \2}", row)
    return " ".join(row.split())


def _clean_python(rows: Sequence[str]) -> list[str]:
    """Source lines as they stand, without comments, docstring, decorator and signature."""
    cleaned: list[str] = []
    quoted = False
    for row in rows:
        ends = row.count('"""')
        inside = quoted or ends > 0
        quoted ^= ends % 2 == 1
        drop = inside or row.lstrip().startswith(("#", "@", "def "))
        cleaned.append("" if drop else row.rstrip())
    end = next((i for i, row in enumerate(cleaned) if row.strip().endswith("):")), -1)
    first = next((i for i, row in enumerate(rows) if row.lstrip().startswith("def ")), 0)
    for index in range(first, end + 1 if end >= first else 0):
        cleaned[index] = ""
    return cleaned


def _likeness(row: str) -> str:
    """What two lines share that do the same with other registers: the text without numbers and value names."""
    row = re.sub(r"^@!?U?P\w\s+|(?<=\w)\+0x[0-9a-f]+", "", row)
    row = re.sub(r"%(?!tid|ctaid)\w+|\b[RPvs]\d+\b|\bU[RP]\d+\b|0x[0-9a-f]+", "%", row)
    return re.sub(r"(?<![\w.])[-+]?\d+|\[\d+:\d+\]|(?<=:)#?\w+", "0", row)
