"""The paper's claims, each beside what this toolchain measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cim.emulator.summary import BINDINGS
from cim.explore.measure import Point, pick, side, speedups
from cim.explore.table1 import Counts

REACHED = 0.95  # of the limit: where a curve "reaches" it
REGISTER_BYTES = 4
ATTRIBUTES, ATTRIBUTE_BYTES = 32 * 1024, 1  # of the central scheme that the paper compares with
PAPER_CORES = 1024
CALL_LIMITS = {"32x32": 4, "64x64": 2, "128x128": 1}  # percent of the traffic
PAPER_SCHEMES = ("linear", "cyclic")


@dataclass(frozen=True)
class Claim:
    """What the paper says, what is measured here, whether it holds, and why not where it does not."""

    claim: str
    section: str
    measured: str
    holds: bool
    why: str = ""


@dataclass(frozen=True)
class Compared:
    """A row of Table II beside the counters of a run."""

    layer: int
    crossbar: int
    cores: int
    cores_paper: int
    load_values: int
    load_values_paper: int
    store_values: int
    store_values_paper: int
    calls: int
    calls_paper: int

    @property
    def differences(self) -> tuple[int, ...]:
        """Ours less the paper's: cores, load and store values, CALLs."""
        return (
            self.cores - self.cores_paper,
            self.load_values - self.load_values_paper,
            self.store_values - self.store_values_paper,
            self.calls - self.calls_paper,
        )


def compare_counts(points: Sequence[Point], paper: Sequence[Counts]) -> list[Compared]:
    """Table II: the counters of the linear scheme beside the paper's."""
    rows = []
    for counts in paper:
        crossbar = f"{counts.crossbar}x{counts.crossbar}"
        mine = next(pick(points, label=str(counts.layer), crossbar=crossbar, scheme="linear"))
        rows.append(
            Compared(
                counts.layer, counts.crossbar, mine.cores, counts.cores, mine.load_values,
                counts.load_values, mine.store_values, counts.store_values, mine.calls, counts.calls,
            )
        )  # fmt: skip
    return rows


def memory_saved(cores: int) -> tuple[int, int, float]:
    """Bytes of sequence registers, bytes of attributes, and the share that is saved."""
    registers, attributes = cores * REGISTER_BYTES, ATTRIBUTES * ATTRIBUTE_BYTES
    return registers, attributes, 1 - registers / attributes


def check_claims(
    table1: Sequence[Point], networks: Sequence[Point], counts: Sequence[Compared]
) -> list[Claim]:
    """Every claim. `table1` has the layers of Table I, `networks` the convolutions of whole networks."""
    return [
        _counts(counts),
        _best(table1),
        _layer5(table1),
        _cyclic_ahead(table1),
        _halved_crossbar(table1),
        *_overheads(table1),
        _bus_enough(table1, 4, 32, "4 bytes of bus reach the limit up to 32 cores"),
        _bus_enough(table1, 32, 128, "32 bytes of bus reach the limit up to 128 cores"),
        *_network_claims(networks),
        _memory(),
    ]


def _network_claims(points: Sequence[Point]) -> list[Claim]:
    if not points:
        return []
    return [
        _above_90(points, 4, 16),
        _above_90(points, 64, 512),
        _twice_the_bus(points),
    ]


def _fractions(points: Sequence[Point], schemes: Sequence[str]) -> dict[Point, float]:
    """Speedup by its limit of the points that have anything to synchronize."""
    return {p: s / p.p_v for p, s in speedups(points).items() if p.scheme in schemes and p.p_v > 1}


def _where(point: Point) -> str:
    return f"layer {point.label}, {point.crossbar}, {point.bus_bytes} bytes, {point.scheme}"


def _counts(counts: Sequence[Compared]) -> Claim:
    wrong = [row for row in counts if any(row.differences)]
    return Claim(
        "Table II: cores, values loaded and stored, CALLs", "V-E",
        f"{len(counts) - len(wrong)} of {len(counts)} rows equal", not wrong,
        "" if not wrong else f"first difference in layer {wrong[0].layer} at {wrong[0].crossbar}",
    )  # fmt: skip


def _best(points: Sequence[Point]) -> Claim:
    found = _fractions(points, PAPER_SCHEMES)
    best = max(found, key=lambda p: found[p])
    over = sum(value > 0.99 for value in found.values())
    ring = _fractions(points, ("ring",))
    return Claim(
        "More than 99 % of the theoretical limit", "VI",
        f"{found[best]:.2%} ({_where(best)}); {over} of {len(found)} points are over 99 %. Ring: "
        f"{max(ring.values()):.2%}, {sum(value > 0.99 for value in ring.values())} of {len(ring)}",
        found[best] > 0.99,
    )  # fmt: skip


def _layer5(points: Sequence[Point]) -> Claim:
    found = speedups(points)
    best = _highest(found, "5", PAPER_SCHEMES)
    others = [_highest(found, label, PAPER_SCHEMES) for label in {p.label for p in points} - {"5"}]
    rival = max(others, key=lambda p: found[p])
    ring = _highest(found, "5", ("ring",))
    return Claim(
        "The highest speedup is 16x, for layer 5", "V-B",
        f"{found[best]:.2f}x ({_where(best)}; ring {found[ring]:.2f}x); of the other layers "
        f"{found[rival]:.2f}x ({_where(rival)}), where the limit is {rival.p_v}",
        round(found[best]) == 16 >= round(found[rival]),  # the paper gives whole numbers
    )  # fmt: skip


def _highest(found: dict[Point, float], label: str, schemes: Sequence[str]) -> Point:
    return max(
        (p for p in found if p.label == label and p.scheme in schemes), key=lambda p: found[p]
    )


def _cyclic_ahead(points: Sequence[Point]) -> Claim:
    found = _fractions(points, PAPER_SCHEMES)
    gains = []
    for p in found:
        if p.scheme == "cyclic":
            (other,) = pick(
                list(found),
                label=p.label,
                crossbar=p.crossbar,
                bus_bytes=p.bus_bytes,
                scheme="linear",
            )
            gains.append((found[p] - found[other], p))
    ahead = sum(gain > 0 for gain, _ in gains)
    mean = float(np.mean([gain for gain, _ in gains]))
    worst = min(gains, key=lambda pair: pair[0])
    return Claim(
        "Cyclic is slightly faster than linear", "V-B",
        f"in {ahead} of {len(gains)} points; on average by {100 * mean:+.2f} points of the limit", mean > 0,
        f"behind where O is not a multiple of P_V, most in {_where(worst[1])} ({100 * worst[0]:+.1f})",
    )  # fmt: skip


def _halved_crossbar(points: Sequence[Point]) -> Claim:
    found = speedups(points)
    ratios = []
    for p in found:
        if p.crossbar == "32x32" and p.scheme in PAPER_SCHEMES:
            (large,) = pick(
                list(found), label=p.label, crossbar="64x64", bus_bytes=p.bus_bytes, scheme=p.scheme
            )
            ratios.append(found[p] / found[large])
    return Claim(
        "32x32 instead of 64x64 gives at most twice the speedup", "V-B",
        f"at most {max(ratios):.2f} times", max(ratios) <= 2.05,
    )  # fmt: skip


def _overheads(points: Sequence[Point]) -> list[Claim]:
    claims = []
    for crossbar, limit in CALL_LIMITS.items():
        mine = list(pick(points, crossbar=crossbar, scheme="linear"))
        if not mine:
            continue
        worst = max(mine, key=lambda p: p.call_bytes / max(p.data_bytes, 1))
        of_data = worst.call_bytes / worst.data_bytes
        of_all = worst.call_bytes / (worst.call_bytes + worst.data_bytes)
        both = f"{of_data:.2%} of the data and {of_all:.2%} of all traffic (layer {worst.label})"
        strict = 100 * of_data < limit
        claims.append(
            Claim(
                f"CALLs add less than {limit} % of traffic with {crossbar}", "V-E", f"at most {both}",
                strict or 100 * of_all < limit,
                "" if strict else "only as a share of all traffic; Table II itself gives the same",
            )
        )  # fmt: skip
    return claims


def _bus_enough(points: Sequence[Point], width: int, cores: int, text: str) -> Claim:
    found = {
        p: value
        for p, value in _fractions(points, PAPER_SCHEMES).items()
        if p.bus_bytes == width and p.cores <= cores
    }
    worst = min(found, key=lambda p: found[p])
    reached = sorted({p.cores for p in found if found[p] >= REACHED})
    return Claim(
        text, "V-B",
        f"at least {found[worst]:.1%} of it ({_where(worst)}, {worst.cores} cores); over "
        f"{REACHED:.0%} with up to {max(reached, default=0)} cores", found[worst] >= REACHED,
        "" if found[worst] >= REACHED else _binds(worst),
    )  # fmt: skip


def _above_90(points: Sequence[Point], width: int, cores: int) -> Claim:
    """The paper does not say for which crossbar: each is told, and all must hold."""
    found = {p: v for p, v in _fractions(points, ("cyclic",)).items() if p.bus_bytes == width}
    within = {p: v for p, v in found.items() if p.cores <= cores}
    worst = min(within, key=lambda p: within[p])
    parts = []
    for crossbar in sorted({p.crossbar for p in found}, key=side):
        mine = {p: v for p, v in found.items() if p.crossbar == crossbar}
        least = min((v for p, v in mine.items() if p.cores <= cores), default=1.0)
        parts.append(f"{crossbar} {least:.1%} (over 90 % up to {_up_to(mine)} cores)")
    return Claim(
        f"Over 90 % of the limit up to {cores} cores with {width} bytes, in the worst layer", "V-C",
        f"the worst layer by crossbar: {', '.join(parts)}; {sum(v > 0.9 for v in within.values())} of {len(within)} "
        f"points are over 90 %, the least {within[worst]:.1%} ({_where(worst)}, {worst.cores} cores)",
        within[worst] > 0.9, "" if within[worst] > 0.9 else _binds(worst),
    )  # fmt: skip


def _up_to(found: dict[Point, float]) -> int:
    """The largest number of cores up to which no point is at 90 % or less."""
    failed = min((p.cores for p, value in found.items() if value <= 0.9), default=None)
    return max((p.cores for p in found if failed is None or p.cores < failed), default=0)


def _twice_the_bus(points: Sequence[Point]) -> Claim:
    """Pairs of a crossbar and the one of half its side, where the larger one comes near the limit."""
    found = _fractions(points, ("cyclic",))
    changes = {}
    for factor in (1, 2):
        changes[factor] = [
            found[small] - found[p]
            for p in found
            for small in pick(
                list(found), label=p.label, crossbar=f"{side(p.crossbar) // 2}x{side(p.crossbar) // 2}",
                bus_bytes=factor * p.bus_bytes,
            )
        ]  # fmt: skip
    kept = {
        factor: sum(c >= -0.1 for c in mine) / len(mine) if mine else 1.0
        for factor, mine in changes.items()
    }
    told = {
        factor: f"{kept[factor]:.0%} of {len(mine)} pairs lose at most 10 points of the limit (on average "
        f"{100 * float(np.mean(mine or [0])):+.1f})"
        for factor, mine in changes.items()
    }
    return Claim(
        "Halving the crossbar needs at least twice the bus width for similar performance", "V-C",
        f"with twice the width {told[2]}; with the same width {told[1]}", kept[2] >= 0.95 > kept[1],
    )  # fmt: skip


def _memory() -> Claim:
    registers, attributes, saved = memory_saved(PAPER_CORES)
    return Claim(
        "At least 87.5 % of the synchronization memory is saved", "V-D",
        f"{registers:,} bytes of registers for {PAPER_CORES:,} cores against {attributes:,} bytes of attributes: "
        f"{saved:.1%}", saved >= 0.875,
    )  # fmt: skip


def _binds(point: Point) -> str:
    return (
        f"there the lower bound ({BINDINGS[point.binding]}) allows {point.lower_bound:,} of {point.cycles:,} cycles; "
        f"{point.fullest_channel.upper()} is occupied {point.fullest_share:.0%}"
    )
