"""The object: sections, symbols, relocations, source lines and attributes of one assembly."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from cim.asm.image import ElementType, Location
from cim.isa.machine import Machine

RELOCATION = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])

MAX_ALIGN = 65536  # of a place in a section, in bytes


class RelocationType(IntEnum):
    """What the linker writes at a relocation; S is the symbol's address or core number, A the addend."""

    ADDRESS = 1  # the address operand of the instruction: S + A
    CORE = 2  # the core operand of the instruction: S + A
    ABS32 = 3  # a 4-byte datum: S + A
    ABS64 = 4  # an 8-byte datum: S + A
    CORE16 = 5  # data of 2, 4 and 8 bytes, S the number of a core: S + A
    CORE32 = 6
    CORE64 = 7


# The relocations of data: their bytes, with an address and with the number of a core.
ADDRESS_DATA = {4: RelocationType.ABS32, 8: RelocationType.ABS64}
CORE_DATA = {2: RelocationType.CORE16, 4: RelocationType.CORE32, 8: RelocationType.CORE64}
DATA_BYTES = {kind: width for table in (ADDRESS_DATA, CORE_DATA) for width, kind in table.items()}


class SourcePlace(msgspec.Struct, frozen=True, array_like=True):
    """A column of a source line, from 1; 0: the line as a whole."""

    file: str
    line: int
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f":{self.column}" if self.column else "")


class DataUse(msgspec.Struct, frozen=True, array_like=True):
    """Where the symbol of a relocation of data stands; holds for those from `offset` up to the next one."""

    offset: int
    place: SourcePlace


class CoreAttributes(msgspec.Struct, forbid_unknown_fields=True):
    """A core as its directives describe it. `parameters` holds one value for all columns, or one each."""

    name: str
    number: int
    hg: int = 0
    vg: int = 0
    rows: int = 0
    columns: int = 0
    parameters: dict[str, list[float]] = {}


class RegionAttributes(msgspec.Struct, forbid_unknown_fields=True):
    """A region as its directive describes it."""

    name: str
    type: ElementType
    shape: list[int]
    role: str = "data"
    layout: str = ""
    scale: float | None = None
    zero_point: int = 0
    align: int = 64


class ModeAttributes(msgspec.Struct, forbid_unknown_fields=True):
    """`.mode`."""

    mode: str
    ifm: str
    ofm: str


class Attributes(msgspec.Struct, forbid_unknown_fields=True):
    """What directives say that is not bytes."""

    mode: ModeAttributes | None = None
    machine: Machine | None = None
    extensions: list[str] = []
    cores: list[CoreAttributes] = []
    regions: list[RegionAttributes] = []
    layer: dict[str, Any] = {}
    locations: list[Location] = []
    definitions: dict[str, SourcePlace] = {}  # of global symbols
    uses: dict[str, list[DataUse]] = {}  # in data, by the section's name


def no_relocations() -> NDArray[Any]:
    """An empty relocation table."""
    return np.zeros(0, dtype=RELOCATION)


@dataclass
class Section:
    """`kind` is text, crossbar, region or section; `owner` the core's or region's name, or the section's own.

    `size` counts the content. A placeholder has none: `data` is empty, and for a region `size` is 0 too.
    `lines` holds for each instruction of a text section an index into the locations, `columns` the column of
    the symbol that the linker puts in, 0 where there is none.
    """

    kind: str
    owner: str
    align: int
    size: int
    data: NDArray[np.uint8]
    relocations: NDArray[Any] = field(default_factory=no_relocations)
    lines: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, dtype="<u4"))
    columns: NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, dtype="<u4"))

    @property
    def name(self) -> str:
        """The ELF section's name."""
        return self.owner if self.kind == "section" else f".{self.kind}.{self.owner}"

    @property
    def has_content(self) -> bool:
        """Whether there is any, and not only a place for it."""
        return bool(len(self.data))


@dataclass(frozen=True)
class Symbol:
    """`section` is a position in `Object.sections`, None for an undefined symbol.

    `kind` is core, region, section or label; an undefined symbol is a label.
    """

    name: str
    kind: str
    section: int | None
    value: int
    size: int
    is_global: bool


@dataclass
class Object:
    """The result of one assembly. `name` is the file, for messages."""

    name: str
    sections: list[Section]
    symbols: list[Symbol]
    attributes: Attributes
