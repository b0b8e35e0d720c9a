"""What one pass over the sources learns for the next: where labels are, how large sections become.

Most programs take one pass. Where an expression needs a distance, a size or a core that stands further down,
the sources are assembled again with what the pass before found, until nothing changes any more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from cim.asm.expressions import Spot
from cim.asm.objects import CoreAttributes
from cim.asm.syntax import Place
from cim.asm.where import Where
from cim.diagnostics import Diagnostic, Note

MAX_PASSES = 100


@dataclass(frozen=True)
class Stretch:
    """What lies between two places of a section, which a value depends on; `what` names it."""

    section: str
    first: float
    last: float
    what: str


def whole(section: str, what: str) -> Stretch:
    """All of a section."""
    return Stretch(section, -1, math.inf, what)


@dataclass
class Forecast:
    """Labels, sizes in bytes by name of core, region or section, and cores, at the end of a pass.

    `shapes` says what the sizes of regions depend on, `homes` which sections define a `.Lname`. `is_last`
    says that what is not in it will never be known.
    """

    spots: dict[str, Spot] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    cores: dict[str, CoreAttributes] = field(default_factory=dict)
    shapes: dict[str, tuple[Stretch, ...]] = field(default_factory=dict)
    homes: dict[str, list[str]] = field(default_factory=dict)
    is_last: bool = False


@dataclass(frozen=True)
class Sized:
    """A line whose size depends on stretches of the program; it stands at `order` of a section."""

    where: Where
    place: Place
    section: str
    order: int
    stretches: tuple[Stretch, ...]

    def depends_on(self, other: Sized) -> Stretch | None:
        """The stretch that holds the other line, if there is one."""
        for one in self.stretches:
            if one.section == other.section and one.first < other.order < one.last:
                return one
        return None


def circles(lines: Sequence[Sized]) -> list[Diagnostic]:
    """A diagnostic for the first line of each circle: lines whose size depends on their own."""
    after = {
        one: [(two, stretch) for two in lines if (stretch := one.depends_on(two)) is not None]
        for one in lines
    }
    found: list[Diagnostic] = []
    done: set[Sized] = set()
    for line in lines:
        way = _way_back(line, after) if line not in done else None
        if way is None:
            continue
        done.update(one for one, _ in way)
        notes = tuple(
            Note(f"whose size depends on {stretch.what}", one.where.span(one.place))
            for one, stretch in way[1:]
        )
        holds = "another such line" if notes else "this line"
        found.append(
            Diagnostic(
                f"the size depends on itself: on {way[0][1].what}, which holds {holds}",
                line.where.span(line.place),
                notes=notes,
            )
        )
    return found


def _way_back(
    start: Sized, after: dict[Sized, list[tuple[Sized, Stretch]]]
) -> list[tuple[Sized, Stretch]] | None:
    """The shortest way from a line to itself: each line with the stretch that leads on; None without one."""
    before: dict[Sized, tuple[Sized, Stretch]] = {}
    waiting = [start]
    while waiting and start not in before:
        one = waiting.pop(0)
        for two, stretch in after[one]:
            if two not in before:
                before[two] = (one, stretch)
                waiting.append(two)
    if start not in before:
        return None
    way = [before[start]]
    while way[-1][0] is not start:
        way.append(before[way[-1][0]])
    return way[::-1]
