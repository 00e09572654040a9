"""One use of the virtual GPU: what it collects, and how the virtual GPU is to behave meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from checker.vgpu.authors import Authors
from checker.vgpu.clock import Estimate
from checker.vgpu.replay import Replays
from checker.vgpu.shadow import Shadows
from checker.vgpu.timeline import L2, Clock
from checker.vgpu.trace import LaunchTrace
from checker.vgpu.views import Buffer

__all__ = ["Session"]


@dataclass
class Session:
    """Launches and what is known of memory, beside the options of `VirtualGpu.record`.

    `poison` is what undefined lanes read; `poison_only` restricts it to some source places. `tuning` is "first"
    (an autotuner takes the first configuration that runs) or "all" (it times every one on the modelled clock).
    In timing mode `sample` programs of a launch run, spread evenly, or the `first` ones where that is given.
    `authors`, where given, learns who stored what; `before_launch` is told of each launch before it runs.
    """

    launches: list[LaunchTrace] = field(default_factory=list)
    shadows: Shadows = field(default_factory=Shadows)
    poison: str = "nan"
    poison_only: frozenset[tuple[str, int, int]] | None = None
    count_sectors: bool = False
    check_races: bool = True
    tuning: str = "first"
    timing: bool = False
    sample: int = 3
    first: int | None = None
    clock: Clock = field(default_factory=Clock)
    l2: L2 = field(default_factory=L2)
    timed: dict[Any, Estimate] = field(default_factory=dict)
    on_compile: Callable[[bool], None] | None = None
    echo: Callable[[str], None] | None = None
    replays: Replays = field(default_factory=Replays)
    authors: Authors | None = None
    before_launch: Callable[[Session, LaunchTrace, list[Buffer]], None] | None = None
