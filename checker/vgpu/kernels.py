"""Compiled kernels as the virtual GPU loads them: the binary's resources, the TTIR to run."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import triton

from checker.vgpu import parser, places, resources, ttir
from checker.vgpu.analysis import Analysis, analyse
from checker.vgpu.specs import GpuSpec

__all__ = ["BRIEF", "Kernel", "Utilities", "attach"]

BRIEF = b"compiled to TTIR only"
"""What stands in a binary's place where there is none (`brief.py`)."""

# Columns in TTIR count from 0 before Triton 3.9 and from 1 since.
_COLUMN_BASE = 0 if tuple(int(p) for p in triton.__version__.split(".")[:2]) < (3, 9) else 1


@dataclass
class Kernel:
    """A loaded binary and what is known of it."""

    name: str
    files: dict[str, str] = field(default_factory=dict)
    registers: int = 0
    stack_bytes: int = 0
    shared_bytes: int = 0
    brief: bool = False
    module: ttir.Module | None = None
    analyses: dict[str, Analysis] = field(default_factory=dict)
    fusion: bool = True

    def take(self, whole: Kernel) -> None:
        """Becomes what `whole` is: this kernel, compiled to the end."""
        self.files, self.brief = whole.files, False
        self.registers, self.stack_bytes, self.shared_bytes = whole.registers, whole.stack_bytes, whole.shared_bytes

    def text(self, ending: str) -> str:
        """The intermediate representation whose file name ends so ("ttir", "ptx", …)."""
        for name, path in self.files.items():
            if name.endswith("." + ending):
                return Path(path).read_text()
        return ""

    def parsed(self, file: str = "") -> ttir.Module:
        """The TTIR, parsed and analysed on first use; `file` is where the kernel's source stands now."""
        if self.module is None:
            self.module = parser.parse(self.text("ttir"), column_base=_COLUMN_BASE)
            if file:
                self.module.moved_to(file)
            if _COLUMN_BASE == 0:
                places.mend(self.module)
            self.analyses = {n: analyse(f, fusion=self.fusion) for n, f in self.module.functions.items()}
        return self.module


class Utilities:
    """What Triton asks of a driver about devices and binaries."""

    def __init__(self, spec: GpuSpec) -> None:
        self.spec = spec

    def get_device_properties(self, device: int) -> dict[str, int]:
        """The limits that Triton compiles and launches by."""
        spec = self.spec
        return {
            "max_shared_mem": spec.shared_bytes_per_block,
            "max_num_regs": spec.registers_per_sm,
            "multiprocessor_count": spec.multiprocessors,
            "warpSize": spec.warp_size,
            "sm_clock_rate": spec.clock_mhz * 1000,
            "mem_clock_rate": spec.clock_mhz * 1000,
            "mem_bus_width": 6144,
        }

    def load_binary(self, name: str, binary: Any, shared: int, device: int) -> tuple[Any, Any, int, int, int]:
        """(module, function, registers, spills, threads a block may have), as the real driver answers."""
        kernel = Kernel(name, shared_bytes=shared, brief=binary == BRIEF)
        found = resources.from_cubin(binary) if isinstance(binary, bytes) else resources.Resources(0, 0)
        kernel.registers, kernel.stack_bytes = found.registers, found.stack_bytes
        spec = self.spec
        by_registers = spec.registers_per_sm // max(1, kernel.registers) // spec.warp_size * spec.warp_size
        threads = min(spec.threads_per_block, by_registers) if kernel.registers else spec.threads_per_block
        return kernel, kernel, kernel.registers, kernel.stack_bytes // 4, threads

    def unload_module(self, module: Any) -> None:
        """Nothing to unload."""


def attach(module: Any, function: Any, name: str, files: dict[str, str], digest: str) -> None:
    """Triton's hook after a binary is loaded: tells our handle where its intermediate representations lie."""
    if isinstance(function, Kernel):
        function.files = dict(files)
        assembly = function.text("amdgcn")
        if assembly:
            found = resources.from_amdgcn(assembly)
            function.registers, function.stack_bytes = found.registers, found.stack_bytes
