"""Which cores of a mapping work at one time: all of them, or where the machine has fewer (`--fold`) some after others.

A turn is an image of its own: some cores of the mapping, in their order, under numbers from 0. All turns see the same
shared memory; between two of them the host programs the cores anew, which clears every SEQ_NR and keeps what lies in
memory. So the chain of a horizontal group may begin in one turn and go on in a later one: its partial sums wait in
memory. Every core does an MVM for each output, however many work beside it, so that the fewest turns take the least
time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from cim.codegen.mapping import Mapping, Tile


@dataclass(frozen=True, eq=False)
class Turn:
    """Some tiles of a mapping, under core numbers from 0.

    `ends` says of every turn before which tile of the whole mapping it ends; `number` counts them from 0.
    """

    number: int
    ends: tuple[int, ...]
    tiles: tuple[Tile, ...]

    @property
    def cores(self) -> int:
        """Cores that work."""
        return len(self.tiles)

    @property
    def folded(self) -> bool:
        """Whether there are other turns."""
        return len(self.ends) > 1

    @property
    def title(self) -> str:
        """Which turn of how many, as words behind a name; nothing where it is the only one."""
        return f" (turn {self.number + 1} of {len(self.ends)})" if self.folded else ""


def turns_of(mapping: Mapping, available: int) -> tuple[Turn, ...]:
    """The turns of a mapping on a machine with so many cores; one where it fits."""
    ends = turn_ends(mapping.cores, mapping.p_v, available)
    turns = []
    for number, (first, end) in enumerate(pairwise((0, *ends))):
        tiles = mapping.tiles[first:end]
        renumbered = tuple(replace(tile, number=tile.number - first) for tile in tiles)
        turns.append(Turn(number, ends, renumbered))
    return tuple(turns)


def turn_ends(cores: int, p_v: int, available: int) -> tuple[int, ...]:
    """For each turn the tile of the whole mapping before which it ends.

    As few turns as there can be. Of the places where a turn may end then, it is one between two horizontal groups
    if there is one, so that no partial sums are carried over, and the one that is nearest to turns of equal size.
    """
    ends: list[int] = []
    at = 0
    for after in reversed(range(-(-cores // available))):
        least, most = max(cores - after * available, at + 1), min(at + available, cores)
        even = at + -(-(cores - at) // (after + 1))
        borders = range(-(-least // p_v) * p_v, most + 1, p_v)
        at = min(borders, key=lambda border: abs(border - even)) if borders else even
        ends.append(at)
    return tuple(ends)
