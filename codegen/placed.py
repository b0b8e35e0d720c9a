"""A mapped and scheduled layer with what its texts agree on: sizes, and where partial sums lie."""

from __future__ import annotations

from cim.codegen.layer import Layer
from cim.codegen.mapping import Mapping
from cim.codegen.parameters import Requantization, requantization
from cim.codegen.schedule import Schedule
from cim.codegen.turns import Turn
from cim.isa.interpreter import ENTRY_BYTES
from cim.isa.machine import Machine
from cim.isa.numerics import DTYPES, NumericMode


class Placed:
    """What the text of a core and that of the data both follow.

    `stride` is the bytes from one vector of partial sums to the next, `sums` the region they lie in; with `central` the
    memory keeps the order of the cores.
    """

    def __init__(
        self, layer: Layer, mode: NumericMode, mapping: Mapping, turn: Turn, schedule: Schedule,
        machine: Machine,
    ) -> None:  # fmt: skip
        self.layer = layer
        self.mode = mode
        self.mapping = mapping
        self.turn = turn
        self.schedule = schedule
        self.machine = machine
        self.requantization: Requantization = requantization(layer, mode.mode)
        self.channels = layer.weights.shape[3]
        self.sum_bytes = DTYPES[mode.partial_sum].itemsize
        self.ifm_bytes = DTYPES[mode.ifm].itemsize
        self.ofm_bytes = DTYPES[mode.ofm].itemsize
        columns = max(tile.columns for tile in mapping.tiles)
        self.central = schedule.scheme == "central" and mapping.p_v > 1
        # Vectors begin with a beat, and where entries have attributes they share none.
        unit = max(machine.bus.width_bytes, ENTRY_BYTES if self.central else 1)
        self.stride = -(-columns * self.sum_bytes // unit) * unit
        # Partial sums use the OFM's own place only where both lie alike.
        same = mode.ofm == mode.partial_sum and self.stride == self.channels * self.ofm_bytes
        same = same and mapping.window.outputs == 1 and not self.central
        self.sums = "ofm" if mapping.p_h == 1 and same else "ps"

    def title(self) -> str:
        """What the layer is, for a comment."""
        ky, kx, c, k = self.layer.weights.shape
        height, width = self.layer.output_image
        groups = self.layer.groups
        in_groups = f" in {groups} groups" if groups > 1 else ""
        return (
            f"layer '{_printable(self.layer.name)}' ({self.layer.operator} {ky}x{kx}, {c * groups} to {k} "
            f"channels{in_groups}, {height}x{width} outputs){self.turn.title}"
        )

    def mode_directive(self) -> str:
        """The numeric mode, as every file says it."""
        return f".mode {self.mode.mode}, ifm={self.mode.ifm}, ofm={self.mode.ofm}"


def _printable(name: str) -> str:
    """A name for a comment: a line end in it must not begin a line of the program."""
    return "".join(char if char.isprintable() else "?" for char in name)
