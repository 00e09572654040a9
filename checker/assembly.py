"""Reads machine code as text: how wide each load and store is, and which tensor-core instructions there are.

`kata inspect` shows what became of a kernel, and two questions decide most of its speed: does a thread move 16 bytes
at a time, and do products run on the tensor cores? Both are answered from what the compiler wrote (PTX for NVIDIA,
LLVM's assembly for AMD), never from the source. Text in, facts out.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MachineAccess", "accesses", "disassemble", "tensor_instructions"]

WIDEST = 128
"""Bits that one thread can move with one instruction on all chips here."""


@dataclass(frozen=True, slots=True)
class MachineAccess:
    """The memory instructions of one width that one line of the source became.

    `kind` is "load", "store", "atomic" or "copy" (global to shared memory without a register in between); `line` is
    0 where the compiler kept no line; `bits` is what one thread moves at a time, `count` how many instructions.
    """

    kind: str
    line: int
    bits: int
    count: int
    instruction: str


# .loc FILE LINE COLUMN[, function_name LABEL, inlined_at FILE LINE COLUMN]; AMD writes the outer place as a comment.
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)\s+\d+(?:.*?inlined_at\s+(\d+)\s+(\d+))?")
_AMD_OUTER = re.compile(r"@\[ ([^\s:\]]+):(\d+):\d+ \]\s*$")
_FILE = re.compile(r'\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?')

_PTX = re.compile(
    r"(?P<name>(?P<verb>ld|st|atom|red)\.(?:[\w:]+\.)*?global(?:\.[\w:]+)*|"
    r"cp\.async\.c[ag]\.shared\.global|cp\.async\.bulk\.tensor[\w.:]*)\s"
)
_AMD = re.compile(r"^\s*(?P<name>(?:global|buffer|flat)_(?P<verb>load|store|atomic)_\w+)\b(?P<rest>.*)")
_AMD_BITS = {"ubyte": 8, "sbyte": 8, "byte": 8, "ushort": 16, "sshort": 16, "short": 16, "dword": 32}


def accesses(text: str) -> list[MachineAccess]:
    """The accesses to global memory in a kernel's PTX or AMD assembly, by line of its source, kind and width."""
    found: Counter[tuple[str, int, int, str]] = Counter()
    for line, instruction in _with_lines(text):
        match = _PTX.search(instruction)
        if match:
            found[_ptx_kind(match), line, _ptx_bits(match["name"], instruction), match["name"]] += 1
            continue
        match = _AMD.match(instruction)
        if match:
            kind = "copy" if " lds" in match["rest"] else match["verb"]
            found[kind, line, _amd_bits(match["name"]), match["name"]] += 1
    order = sorted(found, key=lambda key: (key[1], key[0], -key[2]))
    return [MachineAccess(kind, line, bits, found[kind, line, bits, name], name) for kind, line, bits, name in order]


def _ptx_kind(match: re.Match[str]) -> str:
    return {"ld": "load", "st": "store", "atom": "atomic", "red": "atomic", None: "copy"}[match["verb"]]


def _ptx_bits(name: str, instruction: str) -> int:
    if name.startswith("cp.async.bulk"):
        return 0  # a whole tile, by the tensor memory accelerator
    if name.startswith("cp.async"):
        size = re.search(r"\],\s*(0x[0-9a-f]+|\d+)", instruction[instruction.index("global") :].split("]", 1)[1])
        return 8 * int(size[1], 0) if size else WIDEST
    count = re.search(r"\.v(\d)\b", name)
    widths = re.findall(r"\.b?[bsuf](\d+)(x2)?\b", name)
    bits = int(widths[-1][0]) * (2 if widths[-1][1] else 1) if widths else 32
    return bits * (int(count[1]) if count else 1)


def _amd_bits(name: str) -> int:
    match = re.search(r"_(ubyte|sbyte|byte|ushort|sshort|short|dword)(?:x(\d))?", name)
    if match:
        return _AMD_BITS[match[1]] * int(match[2] or 1)
    match = re.search(r"_[a-z]+(8|16|32|64|96|128)\b", name)
    return int(match[1]) if match else 32


def _with_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line of assembly with the line of the kernel's file that it comes from; 0 before the first.

    The kernel's file is that of its first place: a name would not do, since a cached binary keeps the path of the file
    it was first compiled from.
    """
    first = _LOC.search(text)
    own = first[1] if first else ""
    name = next((Path(second or only).name for number, only, second in _FILE.findall(text) if number == own), "")
    now = 0
    inline = False
    for row in text.splitlines():
        # Inside inline assembly LLVM counts its own lines on top of ours, so the place before it holds.
        if "begin inline asm" in row or "end inline asm" in row:
            inline = "begin" in row
            continue
        match = _LOC.search(row)
        if match is None:
            yield now, row
        elif not inline:
            now = _place(match, row, own, name) or now


def _place(match: re.Match[str], row: str, own: str, name: str) -> int:
    number, line, outer_file, outer_line = match.groups()
    if number == own:
        return int(line)
    if outer_file == own:
        return int(outer_line)
    outer = _AMD_OUTER.search(row)
    return int(outer[2]) if outer and outer[1] == name else 0


_TENSOR = re.compile(
    r"\b(wgmma\.mma_async\.\S*?m\d+n\d+k\d+\S*|mma\.sync\.\S*?m\d+n\d+k\d+\S*|tcgen05\.mma\S*|"
    r"[HIQBD]G?MMA\.[\w.]+|v_(?:s?mfmac?|wmma)_\w+)"
)


def tensor_instructions(text: str) -> dict[str, int]:
    """Tensor-core (on AMD: matrix-core) instructions in PTX, SASS or AMD assembly, and how often each occurs."""
    return dict(Counter(match[1].rstrip(",;") for match in _TENSOR.finditer(text)))


def disassemble(binary: bytes) -> str:
    """The machine code (SASS) in a cubin, as the nvdisasm that comes with Triton prints it, source lines included.

    Empty if this Triton brings no nvdisasm, or it does not know the chip.
    """
    from triton import knobs

    try:
        tool = knobs.nvidia.nvdisasm.path
    except RuntimeError:
        return ""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        done = subprocess.run([tool, "-g", "-c", file.name], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""
