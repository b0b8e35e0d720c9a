"""The parts of an image before they are laid out, and whether they fit the machine."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from cim.asm.objects import CoreAttributes, Object, RegionAttributes, Section
from cim.diagnostics import Diagnostic
from cim.isa.interpreter import PARAMETERS
from cim.isa.machine import Machine
from cim.isa.numerics import DTYPES, NumericMode


@dataclass
class CorePart:
    """A core on its way into the image."""

    attributes: CoreAttributes
    obj: Object
    text: Section
    crossbar: Section | None
    address: int = 0
    entry: int = 0  # byte of the program at which it starts
    words: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))


@dataclass(frozen=True)
class RegionPiece:
    """A section of an object, and where it begins in the region."""

    obj: Object
    section: Section
    offset: int = 0


@dataclass
class RegionPart:
    """A region, or the sections of one name, on its way into the image."""

    attributes: RegionAttributes
    pieces: list[RegionPiece]
    address: int = 0
    content: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    @property
    def size(self) -> int:
        """Bytes, from shape and type."""
        return math.prod(self.attributes.shape) * DTYPES[self.attributes.type].itemsize

    def has_content(self) -> bool:
        """Whether any piece has more than a place."""
        return any(piece.section.has_content for piece in self.pieces)

    def joined(self) -> NDArray[np.uint8]:
        """The content of all pieces, zeros between and behind them."""
        content = np.zeros(self.size, dtype=np.uint8)
        for piece in self.pieces:
            content[piece.offset : piece.offset + len(piece.section.data)] = piece.section.data
        return content


def check(
    machine: Machine,
    mode: NumericMode,
    cores: list[CorePart],
    regions: list[RegionPart],
    name: str,
) -> Iterable[Diagnostic]:
    """A diagnostic for each limit that is exceeded: which, how much there is, how much is needed."""
    checker = _Checker(machine, mode, name)
    checker.check_all(cores, regions)
    return checker.found


class _Checker:
    def __init__(self, machine: Machine, mode: NumericMode, name: str) -> None:
        self.machine = machine
        self.mode = mode
        self.name = name
        self.found: list[Diagnostic] = []

    def fail(self, message: str, where: str) -> None:
        self.found.append(Diagnostic(message, where=where))

    def check_all(self, cores: list[CorePart], regions: list[RegionPart]) -> None:
        machine = self.machine.core
        if isinstance(machine.count, int) and len(cores) > 0:
            highest = cores[-1].attributes.number
            if highest >= machine.count:
                self.fail(
                    f"core {highest} does not exist: the machine '{self.machine.name}' has "
                    f"{machine.count} cores, {highest + 1} are needed (core.count)",
                    self.name,
                )
        for core in cores:
            self._check_core(core)
        for region in regions:
            given = region.pieces[-1].offset + region.pieces[-1].section.size
            if given > region.size:
                self.fail(
                    f"region '{region.attributes.name}' has {given} bytes of content, "
                    f"its shape and type are {region.size}: {given - region.size} too many",
                    region.pieces[-1].obj.name,
                )

    def _check_core(self, core: CorePart) -> None:
        machine, a = self.machine.core, core.attributes
        who = f"core '{a.name}' (number {a.number})"
        for what, used, limit, axis in (
            ("rows", a.rows, machine.inputs, "inputs"),
            ("columns", a.columns, machine.outputs, "outputs"),
        ):
            if used > limit:
                self.fail(
                    f"{who} uses {used} {what}, a {machine.crossbar} crossbar has {limit} {axis}: "
                    f"{used - limit} too many (core.crossbar)",
                    core.obj.name,
                )
        wanted = a.rows * a.columns * self.mode.cell.itemsize
        size = core.crossbar.size if core.crossbar is not None else 0
        if size != wanted:
            self.fail(
                f"the crossbar of {who} has {size} bytes of content, {a.rows} rows of {a.columns} "
                f"columns in mode {self.mode.mode} are {wanted}",
                core.obj.name,
            )
        elif core.crossbar is not None and self.mode.mode != "f32":
            self._check_cells(core, who)
        for name, values in a.parameters.items():
            if name not in PARAMETERS:
                self.fail(f"{who} has an unknown parameter '{name}'", core.obj.name)
            if len(values) not in (1, a.columns):
                self.fail(
                    f"parameter '{name}' of {who} has {len(values)} values, must have 1 or "
                    f"{a.columns} (one a column)",
                    core.obj.name,
                )

    def _check_cells(self, core: CorePart, who: str) -> None:
        assert core.crossbar is not None
        cells = core.crossbar.data.view("<i2").reshape(
            core.attributes.rows, core.attributes.columns
        )
        bits = self.machine.core.weight_bits
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
        bad = np.argwhere((cells < low) | (cells > high))
        if len(bad):
            row, column = bad[0]
            self.fail(
                f"cell [row {row}][column {column}] of {who} is {cells[row, column]}, {bits}-bit cells "
                f"hold {low} to {high} (core.weight_bits)",
                core.obj.name,
            )
