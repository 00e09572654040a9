"""Atomic read-modify-write, for many lanes at once.

Lanes take effect in order, programs first. Where no two lanes meet, or nobody looks at the old values and the
order cannot show, numpy does all of them in one step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from checker.vgpu import floats
from checker.vgpu.floats import Array

__all__ = ["Atomic", "known"]

_COMBINE: dict[str, Callable[[Any, Any], Any]] = {
    "fadd": np.add,
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "umax": np.maximum,
    "umin": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
}


def known(name: str) -> bool:
    """Whether an atomic of this TTIR name is modelled."""
    return name in _COMBINE


@dataclass(frozen=True, slots=True)
class Atomic:
    """An atomic operation. `values` holds one value a lane; so does `expected`, of a compare-and-swap only."""

    name: str
    element: str
    values: Array
    expected: Array | None = None

    @property
    def reads(self) -> bool:
        """Whether what is stored depends on what was there."""
        return self.name != "exch"

    def apply(self, flat: Array, offsets: Array, lanes: Array, *, ordered: bool) -> Array:
        """Changes `flat` (as stored) at `offsets` by the lanes numbered `lanes`; returns the old values.

        The old values are right only if `ordered`: somebody looks at them.
        """
        if not ordered and self.element not in ("f16", "bf16") and isinstance(_COMBINE.get(self.name), np.ufunc):
            before = floats.decode(self.element, flat[offsets])
            at: Any = _COMBINE[self.name]
            at.at(self._signed(flat), offsets, self._signed(self.values[lanes].astype(flat.dtype, copy=False)))
            return before
        if np.unique(offsets).size == offsets.size:
            return self._step(flat, offsets, lanes)
        steps = [self._step(flat, offsets[i : i + 1], lanes[i : i + 1]) for i in range(offsets.size)]
        return np.concatenate(steps)

    def _step(self, flat: Array, offsets: Array, lanes: Array) -> Array:
        """One exchange at offsets that differ from each other."""
        old = floats.decode(self.element, flat[offsets])
        new = self.values[lanes]
        if self.expected is not None:
            new = np.where(old == self.expected[lanes], new, old)
        else:
            new = np.asarray(_COMBINE[self.name](self._signed(old), self._signed(new))).view(old.dtype)
        flat[offsets] = floats.encode(self.element, floats.round_to(self.element, new))
        return old

    def _signed(self, values: Array) -> Array:
        """The integers as the operation's name reads them."""
        return values.view(f"u{values.dtype.itemsize}") if self.name in ("umax", "umin") else values
