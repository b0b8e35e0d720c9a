"""What `cim-nm` and `cim-size` tell: symbols as `nm` shows them, and sizes by kind of memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from cim.asm.image import Image
from cim.asm.objects import Object, Symbol
from cim.isa.numerics import DTYPES


@dataclass(frozen=True)
class Row:
    """A symbol: T programs, D data with content, B placeholders, U undefined; lower case: local.

    The value is the place in the symbol's section in an object, the address in an image.
    """

    name: str
    letter: str
    value: int
    size: int


@dataclass(frozen=True)
class Sizes:
    """Bytes: of programs, of regions with content, of placeholders, and of crossbar cells."""

    text: int = 0
    data: int = 0
    bss: int = 0
    crossbar: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.text + self.data + self.bss + self.crossbar

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(
            self.text + other.text,
            self.data + other.data,
            self.bss + other.bss,
            self.crossbar + other.crossbar,
        )


def symbol_rows(what: Object | Image) -> list[Row]:
    """The symbols of an object; of an image its cores and regions."""
    if isinstance(what, Object):
        return [
            Row(symbol.name, _letter(what, symbol), symbol.value, symbol.size)
            for symbol in what.symbols
        ]
    config = what.config
    rows = [Row(core.name, "T", core.address, core.program.size) for core in config.cores]
    rows += [
        Row(region.name, "D" if region.content else "B", region.address, region.size_bytes)
        for region in config.regions
    ]
    return rows


def _letter(obj: Object, symbol: Symbol) -> str:
    if symbol.section is None:
        return "U"
    section = obj.sections[symbol.section]
    letter = "t" if section.kind == "text" else "d" if section.has_content else "b"
    return letter.upper() if symbol.is_global else letter


def sizes(what: Object | Image) -> Sizes:
    """Bytes by kind of memory. A region counts whole, as its shape and type say."""
    total = Sizes()
    for part in _object_parts(what) if isinstance(what, Object) else _image_parts(what):
        total += part
    return total


def _object_parts(obj: Object) -> Iterator[Sizes]:
    region_bytes = {
        region.name: math.prod(region.shape) * DTYPES[region.type].itemsize
        for region in obj.attributes.regions
    }
    for section in obj.sections:
        if section.kind == "text":
            yield Sizes(text=section.size)
        elif section.kind == "crossbar":
            yield Sizes(crossbar=section.size)
        elif section.kind == "section":
            has = section.has_content
            yield Sizes(data=section.size) if has else Sizes(bss=section.size)
        elif section.size:
            yield Sizes(data=max(section.size, region_bytes.get(section.owner, 0)))
        else:
            yield Sizes(bss=region_bytes.get(section.owner, 0))


def _image_parts(image: Image) -> Iterator[Sizes]:
    for core in image.config.cores:
        yield Sizes(
            text=core.program.size, crossbar=core.weights.size if core.weights is not None else 0
        )
    for region in image.config.regions:
        if region.content is None:
            yield Sizes(bss=region.size_bytes)
        else:
            yield Sizes(data=region.size_bytes)
