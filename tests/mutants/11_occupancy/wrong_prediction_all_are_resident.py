# expect: K651
# Forgets that programs beyond those that fit have asked for nothing yet.
"""A copy with three dials: how many programs a multiprocessor gets, how large their blocks are, how many warps work."""

import functools

import torch
import triton
import triton.language as tl


@triton.jit
def grid_stride_kernel(x_ptr, y_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Copy x into y with any number of programs: each copies every num_programs-th block.

    x_ptr       *T[n]  source, contiguous
    y_ptr       *T[n]  destination, contiguous
    n           int    number of elements
    BLOCK_SIZE  int    elements a program copies at a time, a power of two
    """
    pid = tl.program_id(0).to(tl.int64)
    # What all programs together copy in one turn of the loop.
    stride = tl.num_programs(0).to(tl.int64) * BLOCK_SIZE
    for start in range(pid * BLOCK_SIZE, n, stride):
        offs = start + tl.arange(0, BLOCK_SIZE)
        mask = offs < n
        x = tl.load(x_ptr + offs, mask=mask)
        tl.store(y_ptr + offs, x, mask=mask)


# Eight blocks of 4 or 8 KiB on their way to each multiprocessor: more than twice what has to be.
PROGRAMS_PER_SM, BLOCK_SIZE, NUM_WARPS = 8, 2048, 4


def multiprocessors() -> int:
    """Multiprocessors (SMs) of the chip that kernels run on."""
    return _multiprocessors(triton.runtime.driver.active.get_current_device())


@functools.cache  # the driver takes a millisecond to answer, longer than the copy
def _multiprocessors(device: int) -> int:
    return int(triton.runtime.driver.active.utils.get_device_properties(device)["multiprocessor_count"])


def grid_stride_copy(
    x: torch.Tensor, programs_per_sm: int | None = None, block: int | None = None, warps: int | None = None
) -> torch.Tensor:
    """Return a copy of x, made by programs_per_sm programs for each multiprocessor of the chip.

    | argument        | accepted                              | refused                      | exception  |
    |-----------------|---------------------------------------|------------------------------|------------|
    | x               | contiguous, of any shape, also empty, | not contiguous               | ValueError |
    |                 | and any dtype that Triton has         |                              |            |
    | programs_per_sm | an int from 1 on                      | an int below 1               | ValueError |
    | block           | elements, a power of two up to 2^17   | another int                  | ValueError |
    | warps           | a power of two from 1 to 32           | another int                  | ValueError |
    | all three       | None: what this file has found best   | what is neither None nor int | TypeError  |
    """
    programs_per_sm = PROGRAMS_PER_SM if programs_per_sm is None else programs_per_sm
    block = BLOCK_SIZE if block is None else block
    warps = NUM_WARPS if warps is None else warps
    if not all(isinstance(value, int) for value in (programs_per_sm, block, warps)):
        raise TypeError(f"programs_per_sm, block and warps must be ints, not {programs_per_sm!r}, {block!r}, {warps!r}")
    if programs_per_sm < 1:
        raise ValueError(f"programs_per_sm must be at least 1, but is {programs_per_sm}")
    if not 1 <= block <= 1 << 17 or triton.next_power_of_2(block) != block:
        raise ValueError(f"block must be a power of two up to 2^17, but is {block}")
    if warps not in (1, 2, 4, 8, 16, 32):
        raise ValueError(f"warps must be a power of two from 1 to 32, but is {warps}")
    if not x.is_contiguous():
        raise ValueError(f"x must be contiguous, but has strides {x.stride()}")
    y = torch.empty_like(x)
    n = x.numel()
    if n == 0:
        return y  # nothing to copy, nothing to launch
    grid = (programs_per_sm * multiprocessors(),)
    grid_stride_kernel[grid](x, y, n, BLOCK_SIZE=block, num_warps=warps)
    return y


# One multiprocessor of an H200, and its share of the memory.
REGISTERS = 65536  # of 32 bits
SHARED_BYTES = 228 * 1024
SHARED_BYTES_KEPT = 1024  # for itself, of each resident program
WARPS = 64
THREADS_PER_WARP = 32
BYTES_PER_US = 4.3e6 / 132  # 4.3 TB/s, over 132 multiprocessors
LATENCY_US = 0.38  # from a load to its value


def bytes_in_flight(programs_per_sm: int, block: int, warps: int, itemsize: int) -> int | None:
    """Predict the bytes that loads of grid_stride_kernel have on their way to one multiprocessor of an H200 at most.

    programs_per_sm, block, warps: as for grid_stride_copy. itemsize: bytes an element. Registers and shared memory
    never run out here.
    """
    # The others wait until one of these has ended. Each waits for the one block that it has asked for.
    resident = programs_per_sm
    return resident * block * itemsize


def enough(programs_per_sm: int, block: int, warps: int) -> bool | None:
    """Predict whether a large float32 tensor is copied on an H200 at 90 % of the best rate or more.

    programs_per_sm, block, warps: as for grid_stride_copy; at least 4 programs. Asked where it is clear.
    """
    # While one byte is on its way for LATENCY_US, memory could deliver this many.
    needed = BYTES_PER_US * LATENCY_US
    return bytes_in_flight(programs_per_sm, block, warps, 4) >= needed


def corner(registers: int, shared_bytes: int, warps: int) -> tuple[int, str] | None:
    """Predict how many programs are resident on one multiprocessor of an H200, and which resource ends it.

    registers: that a thread needs, a multiple of 8. shared_bytes: that a program needs. warps: of a program.
    Returns the number, and "registers", "shared memory" or "warps".
    """
    fits = {
        "registers": REGISTERS // (registers * warps * THREADS_PER_WARP),
        "shared memory": SHARED_BYTES // (shared_bytes + SHARED_BYTES_KEPT),
        "warps": WARPS // warps,
    }
    scarce = min(fits, key=lambda what: fits[what])
    return fits[scarce], scarce
