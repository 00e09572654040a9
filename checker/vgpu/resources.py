"""Registers and spills of a compiled kernel, read from the binary itself.

A cubin is an ELF file whose `.nv.info` section lists, per function, the register count and the stack frame in
records (format, attribute, size, payload). Reading them takes microseconds where `cuobjdump -res-usage` takes a
process; a test compares the two. For AMD the assembly text states the same facts.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

__all__ = ["Resources", "from_amdgcn", "from_cubin"]

_REGCOUNT = 0x2F
_FRAME_SIZE = 0x11
_SIZED = 4


@dataclass(frozen=True, slots=True)
class Resources:
    """Registers a thread, and bytes of its stack frame (what did not fit into registers)."""

    registers: int
    stack_bytes: int


def from_cubin(binary: bytes) -> Resources:
    """Reads `.nv.info`; the largest values where a file holds several functions. Zeros if the section is missing."""
    registers = stack = 0
    for name, offset, size in _sections(binary):
        if name != ".nv.info":
            continue
        at = offset
        while at + 4 <= offset + size:
            form, attribute, length = struct.unpack_from("<BBH", binary, at)
            at += 4
            if form != _SIZED:
                continue
            if attribute in (_REGCOUNT, _FRAME_SIZE) and length >= 8:
                value = struct.unpack_from("<I", binary, at + 4)[0]
                if attribute == _REGCOUNT:
                    registers = max(registers, value)
                else:
                    stack = max(stack, value)
            at += length
    return Resources(registers, stack)


def _sections(binary: bytes) -> list[tuple[str, int, int]]:
    """(name, offset, size) of every section of a 64-bit little-endian ELF file."""
    if binary[:4] != b"\x7fELF":
        return []
    start = struct.unpack_from("<Q", binary, 0x28)[0]
    entry, count, names = struct.unpack_from("<HHH", binary, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", binary, start + i * entry) for i in range(count)]
    text = headers[names][4]
    return [
        (binary[text + h[0] : binary.index(b"\0", text + h[0])].decode(errors="replace"), h[4], h[5]) for h in headers
    ]


def from_amdgcn(assembly: str) -> Resources:
    """Vector registers and scratch bytes as the AMD assembly's metadata states them."""

    def read(key: str) -> int:
        match = re.search(rf"\.{key}:\s+(\d+)", assembly)
        return int(match[1]) if match else 0

    return Resources(read("vgpr_count"), read("private_segment_fixed_size"))
