"""The time of the fastest of a few runs, which other programs on the machine disturb least."""

from __future__ import annotations

import time
from collections.abc import Callable


def fastest(
    action: Callable[[], object], times: int = 3, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds, by a clock of the wall or of the processor."""
    seconds = []
    for _ in range(times):
        began = clock()
        action()
        seconds.append(clock() - began)
    return min(seconds)
