"""What the paper argues against: synchronization by the memory (scheme central), beside CALL and WAIT.

The memory keeps an attribute for each of its entries. Only those of partial sums are counted here, which is the least
that the scheme needs; one byte each, as the paper assumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cim.explore.claims import ATTRIBUTE_BYTES, REGISTER_BYTES
from cim.explore.measure import Point, side
from cim.isa.interpreter import ENTRY_BYTES

BESIDE = ("linear", "ring")  # the same order with CALL and WAIT, and the best of them


@dataclass(frozen=True)
class Central:
    """A layer, crossbar and bus with scheme central, and by name the runs with CALL and WAIT."""

    run: Point
    beside: dict[str, Point]

    @property
    def cycles(self) -> float:
        """Cycles by those of linear, which has the same order."""
        return self.run.cycles / self.beside["linear"].cycles

    @property
    def extra_data_bytes(self) -> int:
        """Shared memory for partial sums beyond what linear has: an area for each hop of a chain."""
        return self.run.partial_sum_bytes - self.beside["linear"].partial_sum_bytes

    @property
    def attribute_bytes(self) -> int:
        """Attributes of the partial sums."""
        return -(-self.run.partial_sum_bytes // ENTRY_BYTES) * ATTRIBUTE_BYTES

    @property
    def register_bytes(self) -> int:
        """SEQ_NR of all cores, which linear needs instead."""
        return self.run.cores * REGISTER_BYTES


def compare_central(points: Sequence[Point]) -> list[Central]:
    """Every run of central that hands anything on and has its counterparts, by layer, crossbar and bus."""
    runs: dict[tuple[str, str, int], dict[str, Point]] = {}
    for p in points:
        runs.setdefault((p.label, p.crossbar, p.bus_bytes), {})[p.scheme] = p
    found = [
        Central(mine["central"], {name: mine[name] for name in BESIDE})
        for mine in runs.values()
        if {"central", *BESIDE} <= set(mine) and mine["central"].p_v > 1
    ]
    order = {label: at for at, label in enumerate(dict.fromkeys(p.label for p in points))}
    return sorted(found, key=lambda c: (order[c.run.label], side(c.run.crossbar), c.run.bus_bytes))
