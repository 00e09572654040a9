"""A kernel that is known to be good, run on a device, its values compared: the child of `kata doctor`.

If it fails, the environment is at fault, because the kernel is not. Each device gives one line of JSON on stdout, with
the step that failed and what was said, so that a broken installation is told apart from a broken device.
"""

from __future__ import annotations

import json
import sys
from typing import Any

__all__ = ["main", "run"]

N, BLOCK_SIZE = 1000, 256


def main() -> None:
    """Run on "virtual" or "cuda", the last argument."""
    step = "importing torch"
    try:
        import torch

        step = "importing triton"
        import triton  # noqa: F401 - only whether it can be imported

        step = "opening the device"
        if sys.argv[-1] == "virtual":
            from checker.vgpu.driver import VirtualGpu

            gpu = VirtualGpu().activate()
            found = [(f"virtual {gpu.spec.name} ({gpu.spec.target})", torch.device("cpu"))]
        else:
            torch.cuda.init()  # type: ignore[no-untyped-call]  # torch leaves it untyped
            count = torch.cuda.device_count()
            if not count:
                raise RuntimeError("PyTorch sees no GPU")
            found = [
                (f"{torch.cuda.get_device_name(index)} (cuda:{index})", torch.device("cuda", index))
                for index in range(count)
            ]
    except Exception as error:
        _say(device=sys.argv[-1], step=step, error=f"{type(error).__name__}: {error}")
        return
    for name, device in found:
        try:
            wrong = run(device)
            _say(device=name, step="comparing the values" if wrong else "", error=wrong)
        except Exception as error:
            _say(device=name, step="running the kernel", error=f"{type(error).__name__}: {error}")


def run(device: Any) -> str:
    """Copy a thousand drawn values by the kernel; what is wrong with the result, or an empty string."""
    import torch

    from checker.doctor.sanity import copy_kernel

    x = torch.randn(N, generator=torch.Generator().manual_seed(0)).to(device)
    # Longer than x: what a good kernel leaves alone must be left alone by the device too.
    y = torch.full((N + BLOCK_SIZE,), -1.0, device=device)
    with torch.cuda.device(device if device.type == "cuda" else -1):
        copy_kernel[((N + BLOCK_SIZE - 1) // BLOCK_SIZE,)](x, y, N, BLOCK_SIZE=BLOCK_SIZE)
    want = torch.cat([x, torch.full((BLOCK_SIZE,), -1.0, device=device)])
    wrong = (y != want).nonzero().reshape(-1).tolist()
    if not wrong:
        return ""
    at = wrong[0]
    return f"{len(wrong)} of {len(want)} values are wrong; y[{at}] is {float(y[at])}, it must be {float(want[at])}"


def _say(**record: str) -> None:
    print(json.dumps(record), flush=True)  # noqa: T201 - the parent reads it
