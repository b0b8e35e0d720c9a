"""Past the paper: one MVM for several neighbouring outputs, compared with im2col."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cim.codegen.layer import Layer
from cim.codegen.mapping import map_layer
from cim.codegen.window import MAPPINGS
from cim.explore.measure import Point, Task, side

CROSSBARS = (128, 256, 512)
SCHEMES = ("cyclic", "ring")
BUS_BYTES = 32


def mapping_tasks(layers: dict[str, Layer], arch: str) -> list[Task]:
    """Every mapping of each layer whose kernel is larger than a pixel: neighbouring outputs share inputs.

    Where a chain is one core, all schemes are the same program, and one runs.
    """
    return [
        Task(label, layer, arch, scheme, (f"core.crossbar={n}x{n}", f"bus.width_bytes={BUS_BYTES}"), ((),), mapping)
        for label, layer in layers.items()
        if layer.weights.shape[0] * layer.weights.shape[1] > 1
        for n in CROSSBARS
        for mapping in MAPPINGS
        for scheme in SCHEMES[: None if map_layer(layer, n, n, mapping).p_v > 1 else 1]
    ]  # fmt: skip


@dataclass(frozen=True)
class Compared:
    """The runs of a layer on a crossbar by mapping and scheme."""

    label: str
    crossbar: str
    runs: dict[tuple[str, str], Point]

    def speedup(self, mapping: str, scheme: str) -> float:
        """Cycles of im2col by those of the mapping."""
        return self.runs["im2col", scheme].cycles / self.runs[mapping, scheme].cycles

    def traffic(self, mapping: str) -> float:
        """IFM values that the mapping loads, by those of im2col."""
        return self._of(mapping).ifm_values / self._of("im2col").ifm_values

    def fewest(self) -> str:
        """The mapping with the fewest cycles in any scheme; im2col where none is faster."""
        return min(MAPPINGS, key=lambda mapping: min(self.runs[mapping, s].cycles for s in SCHEMES))

    def _of(self, mapping: str) -> Point:
        return self.runs[mapping, SCHEMES[0]]


def compare_mappings(points: Sequence[Point]) -> list[Compared]:
    """By crossbar, then in the order of the points."""
    found: dict[tuple[str, str], dict[tuple[str, str], Point]] = {}
    for p in points:
        for scheme in SCHEMES if p.p_v == 1 else (p.scheme,):
            found.setdefault((p.label, p.crossbar), {})[p.mapping, scheme] = p
    rows = [Compared(label, crossbar, runs) for (label, crossbar), runs in found.items()]
    return sorted(rows, key=lambda row: side(row.crossbar))
