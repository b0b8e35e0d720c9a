"""The linked image: `NAME.bin` with the bytes and `NAME.cfg` with all that the host must know about them."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from cim.diagnostics import error
from cim.isa.machine import Machine
from cim.isa.numerics import DTYPES, NumericMode

FORMAT_VERSION = 1
BIN_HEADER = struct.Struct("<8sII")  # magic, format version, zero
BIN_MAGIC = b"CIM BIN\0"

ElementType = Literal["i8", "u8", "i32", "f32"]
Natural = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class Segment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`size` bytes at `offset` of the bin file."""

    offset: Natural
    size: Natural


class Region(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named piece of shared memory. Without `content` it is a placeholder, zero at start."""

    name: str
    role: str
    address: Natural
    size_bytes: Natural
    type: ElementType
    shape: list[Natural]
    layout: str
    scale: float | None
    zero_point: int
    content: Segment | None


class CoreConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the setup phase programs into one core. `rows` x `columns` are used; both 0: no crossbar.

    `program` is also shared-memory content, at byte `address`, and starts at its byte `entry`. `parameters` hold one 4-byte element a
    column. `lines` holds one uint32 an instruction, an index into `Config.locations`.
    """

    number: Annotated[int, msgspec.Meta(ge=0, le=65535)]
    name: str
    hg: Natural
    vg: Natural
    rows: Natural
    columns: Natural
    address: Natural
    program: Segment
    lines: Segment
    weights: Segment | None
    parameters: dict[str, Segment]
    entry: Natural = 0


class Location(msgspec.Struct, frozen=True, array_like=True):
    """A source line."""

    file: str
    line: int


class Reference(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The layer as an ONNX model of its own; `path` is relative to the cfg, `digest` its SHA-256."""

    path: str
    digest: str


class LayerDescription(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a layer computes, for checking and for the host's conversion of input and output.

    `layout` is NCHW (input [N, C, H, W], output [N, K, OH, OW], both without the height in a 1-D
    convolution) or ROWS (input [..., C], output [..., K]: every row one output vector). `kernel` is KY, KX,
    C / groups, K. `pads` are top, left, bottom, right. The IFM region holds the padded
    image as [H][W][C], the OFM region [OH * OW][K]. One MVM yields `window_height` x `window_width` output vectors.

    An image of a folded layer is turn `turn` (from 0): it has the cores `turn_ends[turn - 1]` (0 in the first) to
    `turn_ends[turn] - 1` of the whole layer, counted P_V * hg + vg. Without `turn_ends` it has all.
    """

    name: str
    operator: str
    layout: Literal["NCHW", "ROWS"]
    input_name: str
    output_name: str
    input_shape: list[Natural]
    output_shape: list[Natural]
    kernel: list[Natural]
    strides: list[Natural]
    dilations: list[Natural]
    pads: list[Natural]
    activation: Literal["none", "relu", "leaky_relu", "clip", "hard_swish"] = "none"
    alpha: float = 0.0
    scheme: Literal["sequential", "linear", "cyclic", "ring", "central"]
    vertical_groups: Natural
    horizontal_groups: Natural
    reference: Reference
    groups: Positive = 1
    mapping: Literal["im2col", "sdk", "vw-sdk"] = "im2col"
    window_height: Positive = 1
    window_width: Positive = 1
    turn: Natural = 0
    turn_ends: list[Positive] = []

    @property
    def title(self) -> str:
        """The layer's name, with the turn where there are several."""
        turns = len(self.turn_ends)
        return self.name + (f" (turn {self.turn + 1} of {turns})" if turns else "")


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of `NAME.cfg`."""

    format: Literal["cim-cfg"] = "cim-cfg"
    format_version: int = FORMAT_VERSION
    isa: str
    isa_version: str
    extensions: list[str]
    machine: Machine
    mode: Literal["f32", "i8", "i8n"]
    ifm: ElementType
    ofm: ElementType
    memory_bytes: Natural
    bin_name: str
    bin_size: Natural
    bin_sha256: str
    regions: list[Region]
    cores: list[CoreConfig]
    locations: list[Location]
    layer: LayerDescription | None

    @property
    def numeric_mode(self) -> NumericMode:
        """Mode and element types together."""
        return NumericMode(self.mode, self.ifm, self.ofm)

    def region(self, name: str) -> Region:
        """The region of that name. Raises `CimError` that lists the names there are."""
        for region in self.regions:
            if region.name == name:
                return region
        names = ", ".join(region.name for region in self.regions) or "none"
        raise error(f"the image has no region '{name}'", notes=[f"its regions are: {names}"])


@dataclass(frozen=True)
class Image:
    """A configuration and the content of its bin file. `path` is the cfg's, for messages."""

    config: Config
    content: bytes
    path: Path

    def _array(self, segment: Segment, dtype: np.dtype[Any]) -> NDArray[Any]:
        count = segment.size // dtype.itemsize
        return np.frombuffer(self.content, dtype=dtype, count=count, offset=segment.offset)

    def words(self, core: CoreConfig) -> NDArray[np.uint64]:
        """The core's program."""
        return self._array(core.program, np.dtype("<u8"))

    def line_index(self, core: CoreConfig) -> NDArray[np.uint32]:
        """For each instruction the index of its source line in `config.locations`."""
        return self._array(core.lines, np.dtype("<u4"))

    def location(self, core: CoreConfig, pc: int) -> Location:
        """The source line of instruction `pc` of a core."""
        return self.config.locations[int(self.line_index(core)[pc])]

    def weights(self, core: CoreConfig) -> NDArray[Any] | None:
        """The used cells, [rows][columns], int16 or float32."""
        if core.weights is None:
            return None
        cells = self._array(core.weights, self.config.numeric_mode.cell)
        return cells.reshape(core.rows, core.columns)

    def parameters(self, core: CoreConfig) -> dict[str, NDArray[Any]]:
        """The parameter vectors that are set, one element a column."""
        floats = ("adc_mul", "mul_pos", "mul_neg")
        return {
            name: self._array(segment, DTYPES["f32" if name in floats else "i32"])
            for name, segment in core.parameters.items()
        }

    def memory(self) -> NDArray[np.uint8]:
        """Shared memory as the setup phase leaves it: programs and region contents, the rest zero."""
        memory = np.zeros(self.config.memory_bytes, dtype=np.uint8)
        for core in self.config.cores:
            self._place(memory, core.address, core.program)
        for region in self.config.regions:
            if region.content is not None:
                self._place(memory, region.address, region.content)
        return memory

    def _place(self, memory: NDArray[np.uint8], address: int, segment: Segment) -> None:
        memory[address : address + segment.size] = self._array(segment, np.dtype("u1"))


def encode_config(config: Config) -> bytes:
    """The text of the cfg file."""
    return msgspec.json.format(msgspec.json.encode(config), indent=1) + b"\n"


def digest(content: bytes) -> str:
    """The SHA-256 that the cfg records."""
    return hashlib.sha256(content).hexdigest()
