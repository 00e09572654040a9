"""What a right tag_programs does, and on which n and block it is asked to."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from checker.cases import Case, Question, Refusal
from checker.loading import load_module

if TYPE_CHECKING:
    from checker.lab import Lab

CASES = [
    Case("n=1024, block=256, four full blocks", n=1024, block=256),
    Case("n=64, block=64, one full block", n=64, block=64),
    Case("n=1000, block=256, ragged", n=1000, block=256),
    Case("n=513, block=128, one element over", n=513, block=128),
    Case("n=5, block=64, less than a block", n=5, block=64),
    Case("n=37, block=1, a program for each element", n=37, block=1),
    Case("n=1, block=1", n=1, block=1),
    Case("n=0, empty", n=0, block=16),
    Case("n=8191, block=128, 64 programs", n=8191, block=128),
    Case("a drawn n and block", n=None, block=None),
    # More than 16 bits count, and more than the second and third axis of a grid allow.
    Case("70000 programs", stage="numerics", n=70000, block=1),
]


def make_inputs(case: Case, *, seed: int, device: torch.device) -> tuple[int, int]:
    """The case's own n and block, or drawn ones that leave a ragged end."""
    if case.n is not None:
        return case.n, case.block
    draw = random.Random(seed)
    block = draw.choice([2, 8, 32, 128, 512])
    return block * draw.randrange(3, 30) + draw.randrange(1, block), block


def reference(n: int, block: int) -> torch.Tensor:
    """ids[i] = floor(i / block)."""
    return torch.arange(n, dtype=torch.int64).div(block, rounding_mode="floor").double()


def torch_op(n: int, block: int) -> torch.Tensor:
    """The same in PyTorch."""
    return torch.arange(n, dtype=torch.int32) // block


def OUT_DTYPE(n: int, block: int) -> torch.dtype:  # noqa: N802  # the judge's name for it
    """No argument is a tensor from which the dtype could be taken."""
    return torch.int32


def timed_inputs(case: Case, draw: Callable[[tuple[int, ...], torch.dtype], torch.Tensor]) -> tuple[int, int]:
    """A large n; no argument is a tensor to draw."""
    return case.n, case.block


def expected_at(indices: torch.Tensor, n: int, block: int) -> torch.Tensor:
    """The reference at flat indices of the result: a timed result is too large to be computed as a whole."""
    return indices.div(block, rounding_mode="floor").double()


def eager(n: int, block: int) -> torch.Tensor:
    """What one would write without Triton. Where kernels run on the CPU's memory, it is only priced, not run."""
    device = triton.runtime.driver.active.get_active_torch_device()
    return torch.arange(n, dtype=torch.int32, device="meta" if device.type == "cpu" else device) // block


def least_bytes(case: Case) -> int:
    """Nothing is read; every element is written once."""
    return int(case.n) * torch.int32.itemsize


def flops(case: Case) -> int:
    """Nothing is computed."""
    return 0


REFUSED = [
    Refusal("n is negative", lambda device: (-1, 64)),
    Refusal("block is not a power of two", lambda device: (100, 48)),
    Refusal("block is 0", lambda device: (100, 0)),
    Refusal("block is larger than Triton allows", lambda device: (100, 2**21)),
]


def questions(draw: random.Random) -> list[Question]:
    """Two counts, one of them exact; two owners, one the first element of its block; four of eight expressions."""
    asked = []
    for over in (0, draw.randrange(1, 64)):
        block = draw.choice([64, 128, 256])
        n = block * draw.randrange(3, 40) + over
        asked.append(
            Question("programs", (n, block), partial(_programs, n, block), "How many programs does the launch have?")
        )
    for into in (0, draw.randrange(1, 32)):
        block = draw.choice([32, 64, 128])
        i = block * draw.randrange(2, 40) + into
        asked.append(Question("owner", (i, block), partial(_owner, i, block), "Which program stores element i?"))
    return asked + [
        Question("lives_in", (expression,), partial(_where, expression), f"Where does {expression} make sense?")
        for expression in draw.sample(_EXPRESSIONS, 4)
    ]


def _programs(n: int, block: int, lab: Lab) -> int:
    (launch,) = lab.launches(lab.reference_module.tag_programs, n, block)
    return launch.programs


def _owner(i: int, block: int, lab: Lab) -> int:
    """From a run on some more elements than i."""
    return int(lab.result(lab.reference_module.tag_programs, i + 3 * block // 2, block)[i])


_EXPRESSIONS = [
    "x.shape",
    "x.device",
    "x.stride(0)",
    "x[0]",
    "x[:, None]",
    "x.to(tl.float16)",
    "tl.sum(x, axis=0)",
    "tl.load(x)",
]

_PROBE = '''"""An expression in a kernel, to see whether it compiles."""

import triton
import triton.language as tl


@triton.jit
def probe(x_ptr):
    x = tl.load(x_ptr + tl.arange(0, 4))
    value = {expression}
'''


def _where(expression: str, lab: Lab) -> str:
    """Evaluates it on the host and compiles it in a kernel."""
    x = torch.tensor([3.0, 1.0, 4.0, 1.0])
    host = not isinstance(lab.result(eval, expression, {"x": x, "tl": tl, "torch": torch}), Exception)
    with tempfile.TemporaryDirectory() as folder:
        # Triton reads the text of a kernel from its file.
        file = Path(folder, "probe.py")
        file.write_text(_PROBE.format(expression=expression))
        probe: triton.JITFunction = load_module(file).probe
        kernel = lab.compiles(lambda: probe[(1,)](x))
    return {(True, True): "both", (True, False): "host", (False, True): "kernel"}.get((host, kernel), "neither")
