"""Checks Triton katas on a virtual GPU, or on a real one.

Importing this package is cheap on purpose: torch, Triton and pytest are imported only by the modules that run kernels,
so `kata`, `kata list` and `kata hint` answer at once.
"""

__version__ = "0.1.0"
