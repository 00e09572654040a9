"""Writes checker/vgpu/eager_table.py: what PyTorch's operations took on a real GPU, from docs/measured/h200.json.

    python scripts/write_eager_table.py

The package carries the table, since an installed one has no docs/. tests/test_aten.py keeps both the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "docs" / "measured" / "h200.json"
TARGET = ROOT / "checker" / "vgpu" / "eager_table.py"
HEAD = '''\
"""What PyTorch's operations took on a real {device}: device time in microseconds, L2 flushed before each call.

Made from docs/measured/h200.json by `python scripts/write_eager_table.py`; do not edit. A row is (operation, layout,
dtype, shape, us). The shape is that of the tensor operated on, (M, N, K) of a matrix product.
"""

from __future__ import annotations

__all__ = ["MEASURED", "SOURCE"]

SOURCE = "{device}, PyTorch {torch}"

MEASURED: tuple[tuple[str, str, str, tuple[int, ...], float], ...] = (
'''


def rows(measured: dict[str, Any]) -> Iterator[tuple[str, str, str, tuple[int, ...], float]]:
    """The rows of the table. Compiled operations are left out: they are not eager."""
    for name, figures in measured["eager"].items():
        operation, case = name.split(" | ")
        if operation.startswith("compiled"):
            continue
        found = re.fullmatch(r"(\S+) (f16|f32)( to f16)?(?:, (a row|a column))?", case)
        if found is None:
            raise SystemExit(f"{name!r} is not understood")
        size, dtype, cast, broadcast = found.groups()
        power = re.fullmatch(r"2\^(\d+)", size)
        shape = (1 << int(power[1]),) if power else tuple(map(int, size.split("x")))
        layout = broadcast or ("cast" if cast else "contiguous")
        if operation == "clone transposed":
            operation, layout = "clone", "transposed"
        operation = {"clone": "copy", "copy_": "copy", "_to_copy": "copy", "fill_": "fill"}.get(operation, operation)
        yield operation, layout, dtype, shape, round(figures["us"], 2)


def text() -> str:
    """The whole module."""
    measured = json.loads(SOURCE.read_text(encoding="utf-8"))
    head = HEAD.format(device=measured["device"], torch=measured["torch"])
    lines = [
        f'    ("{operation}", "{layout}", "{dtype}", {shape}, {us}),'
        for operation, layout, dtype, shape, us in rows(measured)
    ]
    return head + "\n".join(lines) + "\n)\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
