"""Tries every tile of a wide grid on the virtual GPU and prints the best modelled time for each shape and chip.

    python scripts/search_tiles.py [OUTPUT.json]

What it prints is the table BEST of katas/24_autotune/spec.py, against which a search space is measured there.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402  (the path comes first)
import triton  # noqa: E402

from checker.loading import load_module  # noqa: E402
from checker.vgpu.driver import VirtualGpu  # noqa: E402


def configurations(shared: int, newest: bool) -> Iterator[triton.Config]:
    """Tiles of 1024 to 32768 elements that fit a program's shared memory."""
    sides = (16, 32, 64, 128, 256)
    for m, n, k, stages in itertools.product(sides, sides, (32, 64, 128), (3, 4)):
        buffers = stages if newest else stages - 1
        if 1024 <= m * n <= 32768 and buffers * 2 * k * (m + n) <= shared and (k > 32 or m * n >= 8192):
            sizes = {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n, "BLOCK_SIZE_K": k, "GROUP_SIZE_M": 8}
            yield triton.Config(sizes, num_warps=8 if m * n >= 16384 else 4, num_stages=stages)


def main() -> None:
    """Prints a line for each chip and shape."""
    spec = load_module(ROOT / "katas" / "24_autotune" / "spec.py")
    solution = load_module(ROOT / "solutions" / "24_autotune.py")
    tuner = solution.matmul_add_kernel
    everything = {}
    for name in spec.CHIPS_ASKED:
        gpu = VirtualGpu(name).activate()
        times: dict[tuple[int, int, int], dict[str, float]] = {shape: {} for shape in spec.SHAPES}
        for config in configurations(gpu.spec.shared_bytes_per_block, gpu.spec.target == "sm_90"):
            tuner.configs = [config]
            for shape in spec.SHAPES:
                try:
                    times[shape][str(config)] = spec.modelled_us(solution.matmul_add_, shape, gpu)
                except triton.runtime.errors.OutOfResources:
                    break
        for shape, found in times.items():
            best = min(found, key=lambda config: found[config])
            print(f'    ("{name}", {shape}): {found[best]:.1f},  # {best}', flush=True)
            everything[f"{name} {shape}"] = found
        torch.set_num_threads(1)
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
