"""What the virtual GPU refuses, as exceptions that carry a diagnosis code.

Errors of the compiler and of the launcher are Triton's own and pass through untouched; these are the cases in
which a real driver would fault, hang or answer with a bare `CUDA_ERROR`.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NotModelled", "SourceLine", "VirtualGpuError"]


@dataclass(frozen=True, slots=True)
class SourceLine:
    """A place in Python source: `file`, 1-based `line`, 1-based `column`."""

    file: str
    line: int
    column: int = 1


class VirtualGpuError(RuntimeError):
    """A launch the virtual GPU stops: `code` names the diagnosis, `message` the cause, `advice` where to look."""

    def __init__(self, code: str, message: str, advice: str, *, where: SourceLine | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.advice = advice
        self.where = where


class NotModelled(VirtualGpuError):
    """Something a GPU would run and the virtual one does not: named, never silently wrong."""

    def __init__(self, what: str, *, where: SourceLine | None = None) -> None:
        super().__init__(
            "K008",
            f"the virtual GPU does not model {what}",
            "Write this step with operations the virtual GPU models (docs/virtual-gpu.md lists them), "
            "or check the kernel on a real GPU.",
            where=where,
        )
