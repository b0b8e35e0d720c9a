"""Past the paper: what holds a design back where no scheme comes near the limit, and which settings fit the paper.

The paper states no latency of MVM, memory or GPEU, no clock and no arbitration. What it says about results can
hold under some settings and not under others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cim.emulator.summary import BINDINGS
from cim.explore.claims import PAPER_SCHEMES
from cim.explore.measure import Point, pick, side, speedups

NEAR = 0.95  # of the limit P_V
PARALLEL = (*PAPER_SCHEMES, "ring")


@dataclass(frozen=True)
class HeldBack:
    """A layer, crossbar and bus where every scheme stays below 95 % of the limit.

    `shares` are the schemes' speedups by the limit, `best` the fastest run. `bound` is the share of its cycles
    that the lower bound is (1: no schedule of this program can be faster), `binding` what the bound comes from.
    """

    best: Point
    shares: dict[str, float]

    @property
    def bound(self) -> float:
        """The lower bound by the cycles."""
        return self.best.lower_bound / self.best.cycles

    @property
    def binding(self) -> str:
        """In words."""
        return BINDINGS[self.best.binding]


def held_back(points: Sequence[Point]) -> list[HeldBack]:
    """Every layer, crossbar and bus below the line, by layer, crossbar and bus, in the order of the points."""
    found = speedups(points)
    designs: dict[tuple[str, str, int], list[Point]] = {}
    for p in found:
        if p.scheme in PARALLEL and p.p_v > 1:
            designs.setdefault((p.label, p.crossbar, p.bus_bytes), []).append(p)
    rows = []
    for runs in designs.values():
        shares = {p.scheme: found[p] / p.p_v for p in runs}
        if max(shares.values()) < NEAR:
            rows.append(HeldBack(min(runs, key=lambda p: p.cycles), shares))
    order = {label: at for at, label in enumerate(dict.fromkeys(p.label for p in points))}
    return sorted(
        rows, key=lambda r: (order[r.best.label], side(r.best.crossbar), r.best.bus_bytes)
    )


def summary(rows: Sequence[HeldBack]) -> list[str]:
    """One sentence for each resource that binds, the most frequent first."""
    counts = Counter(row.best.binding for row in rows)
    sentences = []
    for binding, count in counts.most_common():
        mine = [row for row in rows if row.best.binding == binding]
        near = sum(row.bound >= NEAR for row in mine)
        sentences.append(
            f"{count} of {len(rows)}: {BINDINGS[binding]}; {near} of them run within 5 % of the lower bound."
        )
    return sentences


# --- which settings fit the paper --------------------------------------------------------------------------

# At 32x32 and 32 bytes, from section V-B: what must hold, and of which layers.
STATEMENTS = (
    "the limit is reached with up to 128 cores (layers 1 and 4)",
    "layer 5 has 16x",
    "layer 7, with 1,024 cores, stays below the limit",
    "layer 7 is not above the 16x of layer 5",
    "cyclic is ahead of linear",
)


@dataclass(frozen=True)
class Fit:
    """Which of `STATEMENTS` hold with some settings of the machine."""

    group: str
    settings: tuple[str, ...]
    holds: tuple[bool, ...]


def fits(points: Sequence[Point], groups: dict[str, list[tuple[str, ...]]]) -> list[Fit]:
    """Each setting, held against the paper; `points` as the sensitivity figure has them."""
    return [
        Fit(group, settings, tuple(_statements(list(pick(points, settings=settings)))))
        for group, runs in groups.items()
        for settings in runs
    ]


def _statements(points: Sequence[Point]) -> Iterator[bool]:
    found = speedups(points)

    def best(label: str) -> float:
        return max(found[p] for s in PAPER_SCHEMES for p in pick(points, label=label, scheme=s))

    def limit(label: str) -> int:
        return next(pick(points, label=label)).p_v

    yield all(best(label) >= NEAR * limit(label) for label in ("1", "4"))
    yield round(best("5")) == 16
    yield best("7") < NEAR * limit("7")
    yield round(best("7")) <= 16  # the paper gives whole numbers
    labels = dict.fromkeys(p.label for p in points)
    linear, cyclic = (
        sum(found[next(pick(points, label=label, scheme=s))] / limit(label) for label in labels)
        for s in PAPER_SCHEMES
    )
    yield cyclic > linear
