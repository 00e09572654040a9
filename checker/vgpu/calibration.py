"""The constants of the time model: few, each with a physical meaning and the measurement it is read off.

All were measured on one NVIDIA H200 with Triton 3.6 (docs/measured/h200.json holds the rows named here);
`scripts/model_accuracy.py` says how far the model is off, also when it is calibrated without the rows it is judged on.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["H200", "Calibration"]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Times in microseconds, rates a clock and a multiprocessor, shares of a data sheet's peak."""

    launch: float = 2.2
    """A launch of nothing. A tiny kernel takes 3.2 us, of which one program's own latency is most of the rest."""
    start: float = 0.45
    """Starting a program and retiring it, its memory accesses left out."""
    dram_latency: float = 0.38
    """From a load to its value: a loop that loads, stores and repeats takes 0.37 us a step on an idle chip."""
    l2_latency: float = 0.20
    """The same where the value lies in L2."""
    dispatch: float = 0.079
    """A multiprocessor takes a new program every 79 ns: 2^28 elements in blocks of 32 take 5046 us."""
    barrier: float = 0.16
    """A reduction over several warps: exchange through shared memory and two barriers."""
    l2_bytes_per_clock: float = 44.0
    """From L2 to one multiprocessor: what bounds a GEMM in tiles of 64x64x32."""
    clocks_per_line: float = 1.7
    """What a 128-byte line costs there, however little of it is asked for: lanes that are far apart."""
    clocks_per_partial_sector: float = 2.7
    """More for a store that fills only part of a sector: a transpose that stores columns takes 8 times a copy."""
    tensor_share: float = 0.70
    """Of the data sheet's rate, before power limits the clock: a GEMM of 8192^3."""
    tf32_share: float = 0.16
    """Float32 tiles whose K is not the fastest axis cannot feed wgmma: 2048^3 reaches 77 of 495 TFLOP/s."""
    small_tile_share: float = 0.62
    """What tiles under 64 rows, which take mma.sync, reach of that."""
    alu_share: float = 0.86
    """Of the ALUs' rate: a chain of multiply-adds in a loop, 57.6 of 67 TFLOP/s."""
    dot_step: float = 0.3
    """A step of a dot loop takes at least this long: a copy to wait for, a barrier, the products. 512^3 in 64x64x32."""
    dot_step_instructions: float = 90.0
    """Instructions a warp issues around each step of a dot loop: copies, waits, barriers. Tiles of 16x16x16."""
    ramp: float = 1.8
    """DRAM needs this long to reach its rate ..."""
    cold: float = 0.4
    """... and this much at least: the first access misses every cache."""
    l2_usable: float = 0.6
    """The part of L2 that keeps what will be used again while other data streams through."""
    l1_usable: float = 0.25
    """The part of L1 that keeps spilled registers likewise: 47 KB cost a row sum nothing, 117 KB a copy 12 %."""
    sharpness: float = 4.0
    """How sharply latency gives way to the slowest server: grid-stride copies with 1 to 16 programs an SM."""
    spill_factor: float = 18.0
    """Times a spilled byte is stored and loaded again in a program's life."""


H200 = Calibration()
