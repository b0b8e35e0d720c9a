"""Objects as ELF64 files, so that `readelf`, `nm` and pyelftools read them.

Written here, since no kept library writes ELF; read through pyelftools. The sections:

    .text.CORE .crossbar.CORE .region.REGION    content
    .data .bss NAME                             byte sections
    .rela.text.CORE …                           RELA, types of `RelocationType`
    .debug_line .debug_info .debug_abbrev       DWARF line tables of the programs, see `line_table`
    .cim.attributes                             JSON of `Attributes`, the locations left out
"""

from __future__ import annotations

import io
import math
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from numpy.typing import NDArray

from cim.asm import byte_sections
from cim.asm.line_table import WORD_BYTES, Program, read_line_tables, write_line_tables
from cim.asm.objects import (
    MAX_ALIGN,
    RELOCATION,
    Attributes,
    Object,
    RelocationType,
    Section,
    Symbol,
)
from cim.diagnostics import CimError, error
from cim.isa.numerics import DTYPES

MACHINE = 0xC1C0  # not assigned to any architecture
_EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
_SHDR = struct.Struct("<IIQQQQIIQQ")
_SYM = np.dtype([("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"),
                 ("value", "<u8"), ("size", "<u8")])  # fmt: skip
_RELA = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
_PROGBITS, _SYMTAB, _STRTAB, _RELA_TYPE, _NOBITS = 1, 2, 3, 4, 8
_WRITE, _ALLOC, _EXEC, _INFO_LINK = 1, 2, 4, 0x40
_SYMBOL_TYPES = {"label": 0, "region": 1, "core": 2, "section": 3}  # NOTYPE, OBJECT, FUNC, SECTION
_ATTRIBUTES = ".cim.attributes"


@dataclass
class _Out:
    """A section on its way into the file."""

    name: str
    type: int
    content: bytes = b""
    flags: int = 0
    size: int | None = None
    link: int = 0
    info: int = 0
    align: int = 1
    entry: int = 0


class _Strings:
    def __init__(self) -> None:
        self.content = bytearray(b"\0")
        self.known: dict[str, int] = {"": 0}

    def add(self, text: str) -> int:
        if text not in self.known:
            self.known[text] = len(self.content)
            self.content += text.encode() + b"\0"
        return self.known[text]


def write_object(obj: Object) -> bytes:
    """The bytes of the ELF file."""
    outs = [_Out("", 0)]
    region_bytes = {
        region.name: math.prod(region.shape) * DTYPES[region.type].itemsize
        for region in obj.attributes.regions
    }
    for section in obj.sections:
        outs.append(_content_section(section, region_bytes))
    symbol_table_index = 1 + len(obj.sections)
    symbols, order, first_global = _symbol_table(obj)
    strings = _Strings()
    for row, symbol in zip(symbols[1:], (obj.symbols[i] for i in order), strict=True):
        row["name"] = strings.add(symbol.name)
    outs.append(
        _Out(".symtab", _SYMTAB, symbols.tobytes(), link=symbol_table_index + 1, info=first_global,
             align=8, entry=_SYM.itemsize)
    )  # fmt: skip
    outs.append(_Out(".strtab", _STRTAB, bytes(strings.content)))
    number_of = np.zeros(len(order), dtype=np.uint64)
    number_of[order] = np.arange(1, len(order) + 1, dtype=np.uint64)
    for index, section in enumerate(obj.sections, 1):
        if len(section.relocations):
            table = _rela_table(section.relocations, number_of)
            outs.append(
                _Out(f".rela{section.name}", _RELA_TYPE, table, _INFO_LINK, link=symbol_table_index,
                     info=index, align=8, entry=_RELA.itemsize)
            )  # fmt: skip
    programs = [Program(s.owner, s.lines, _columns(s)) for s in obj.sections if s.kind == "text"]
    for name, content in write_line_tables(programs, obj.attributes.locations):
        outs.append(_Out(name, _PROGBITS, content))
    attributes = msgspec.structs.replace(obj.attributes, locations=[])
    outs.append(_Out(_ATTRIBUTES, _PROGBITS, msgspec.json.encode(attributes)))
    return _file(outs)


def _columns(section: Section) -> NDArray[np.uint32]:
    return section.columns if len(section.columns) else np.zeros(len(section.lines), dtype="<u4")


def _content_section(section: Section, region_bytes: dict[str, int]) -> _Out:
    flags = {"text": _ALLOC | _EXEC, "crossbar": 0}.get(section.kind, _ALLOC | _WRITE)
    if section.kind == byte_sections.KIND and section.size and not section.has_content:
        return _Out(section.name, _NOBITS, b"", flags, section.size, align=section.align)
    if section.kind == "region" and not section.size:
        return _Out(
            section.name, _NOBITS, b"", flags, region_bytes[section.owner], align=section.align
        )
    return _Out(section.name, _PROGBITS, section.data.tobytes(), flags, align=section.align)


def _symbol_table(obj: Object) -> tuple[NDArray[Any], list[int], int]:
    """ELF wants local symbols first: the table, the symbols' order in it, and the first global one."""
    order = sorted(range(len(obj.symbols)), key=lambda i: obj.symbols[i].is_global)
    table = np.zeros(1 + len(order), dtype=_SYM)
    for row, index in zip(table[1:], order, strict=True):
        symbol = obj.symbols[index]
        row["info"] = (int(symbol.is_global) << 4) | _SYMBOL_TYPES[symbol.kind]
        row["section"] = 0 if symbol.section is None else symbol.section + 1
        row["value"], row["size"] = symbol.value, symbol.size
    local = sum(not symbol.is_global for symbol in obj.symbols)
    return table, order, 1 + local


def _rela_table(relocations: NDArray[Any], number_of: NDArray[np.uint64]) -> bytes:
    table = np.zeros(len(relocations), dtype=_RELA)
    table["offset"] = relocations["offset"]
    table["info"] = (number_of[relocations["symbol"]] << np.uint64(32)) | relocations["type"]
    table["addend"] = relocations["addend"]
    return table.tobytes()


def _file(outs: list[_Out]) -> bytes:
    names = _Strings()
    outs.append(_Out(".shstrtab", _STRTAB))
    name_offsets = [names.add(out.name) for out in outs]
    outs[-1].content = bytes(names.content)
    body = bytearray(_EHDR.size)
    headers = []
    for out, name in zip(outs, name_offsets, strict=True):
        body += bytes(-len(body) % out.align)
        size = len(out.content) if out.size is None else out.size
        offset = len(body) if out.type else 0
        align = out.align if out.type else 0
        headers.append(
            _SHDR.pack(
                name, out.type, out.flags, 0, offset, size, out.link, out.info, align, out.entry
            )
        )
        body += out.content
    body += bytes(-len(body) % 8)
    table = len(body)
    body[: _EHDR.size] = _EHDR.pack(
        b"\x7fELF\x02\x01\x01" + bytes(9), 1, MACHINE, 1, 0, 0, table, 0, _EHDR.size, 0, 0,
        _SHDR.size, len(outs), len(outs) - 1,
    )  # fmt: skip
    return bytes(body) + b"".join(headers)


def read_object(content: bytes, name: str) -> Object:
    """An object from an ELF file. Raises `CimError` for anything that `write_object` does not write."""
    try:
        return _read(content, name)
    except CimError:
        raise
    # A damaged file shows itself in whatever the readers trip over; all of it is the file's fault.
    except (ELFError, ValueError, KeyError, IndexError, TypeError, OverflowError, AttributeError,
            UnicodeDecodeError, AssertionError, struct.error, zlib.error, MemoryError) as problem:  # fmt: skip
        raise error(f"is not an object of cim-as: {problem}", where=name) from None


def _read(content: bytes, name: str) -> Object:
    elf = ELFFile(io.BytesIO(content))
    if elf["e_machine"] not in (MACHINE, f"EM_{MACHINE}"):
        raise error(f"is an ELF file for another machine ({elf['e_machine']})", where=name)
    raw_sections = list(elf.iter_sections())
    by_name = {section.name: section for section in raw_sections}
    attributes = msgspec.json.decode(by_name[_ATTRIBUTES].data(), type=Attributes)
    sections: list[Section] = []
    position: dict[int, int] = {}
    for index, raw in enumerate(raw_sections):
        _, _, rest = raw.name.partition(".")
        kind, _, owner = rest.partition(".")
        if kind not in ("text", "crossbar", "region"):
            if not raw["sh_flags"] & _ALLOC:
                continue
            kind, owner = byte_sections.KIND, raw.name
            if byte_sections.why_not(owner):
                raise ValueError(byte_sections.why_not(owner))
        placeholder = raw["sh_type"] == "SHT_NOBITS"
        data = np.frombuffer(b"" if placeholder else raw.data(), dtype=np.uint8)
        size = len(data)
        if placeholder and kind == byte_sections.KIND:
            size = raw["sh_size"]
        section = Section(kind, owner, raw["sh_addralign"], size, data)
        if kind == "text" and section.size % WORD_BYTES:
            raise ValueError(f"{raw.name} has {section.size} bytes: no whole instructions")
        if f".rela{raw.name}" in by_name:
            section.relocations = _read_rela(by_name[f".rela{raw.name}"].data())
        position[index] = len(sections)
        sections.append(section)
    texts = [section for section in sections if section.kind == "text"]
    table = by_name[".debug_line"].data() if ".debug_line" in by_name else b""
    counts = [text.size // WORD_BYTES for text in texts]
    lines, columns, attributes.locations = read_line_tables(table, counts)
    for section, own, own_columns in zip(texts, lines, columns, strict=True):
        section.lines, section.columns = own, own_columns
    symbols = _read_symbols(by_name[".symtab"].data(), by_name[".strtab"].data(), position)
    _check(sections, symbols, attributes)
    return Object(name, sections, symbols, attributes)


def _check(sections: list[Section], symbols: list[Symbol], attributes: Attributes) -> None:
    known = {int(t) for t in RelocationType}
    for symbol in symbols:
        if symbol.value >= 2**32 or symbol.size > 2**32:
            raise ValueError(f"the value of symbol '{symbol.name}' is out of range")
    cores = {core.name for core in attributes.cores}
    regions = {region.name for region in attributes.regions}
    for section in sections:
        if section.kind == byte_sections.KIND:
            if section.size > 2**32 or not 1 <= section.align <= MAX_ALIGN:
                raise ValueError(f"size or alignment of section {section.name} is out of range")
        elif section.owner not in (regions if section.kind == "region" else cores):
            raise ValueError(f"section {section.name} is of nothing that the attributes name")
        table = section.relocations
        if len(table) and (
            int(table["symbol"].max()) >= len(symbols)
            or int(table["offset"].max()) >= len(section.data)
            or not set(np.unique(table["type"]).tolist()) <= known
        ):
            raise ValueError(f"a relocation of {section.name} is out of range")


def _read_rela(content: bytes) -> NDArray[Any]:
    raw = np.frombuffer(content, dtype=_RELA)
    table = np.zeros(len(raw), dtype=RELOCATION)
    table["offset"], table["addend"] = raw["offset"], raw["addend"]
    table["type"] = raw["info"] & np.uint64(0xFFFFFFFF)
    table["symbol"] = (raw["info"] >> np.uint64(32)) - np.uint64(1)  # the null symbol is not ours
    return table


def _read_symbols(content: bytes, strings: bytes, position: dict[int, int]) -> list[Symbol]:
    kinds = {number: kind for kind, number in _SYMBOL_TYPES.items()}
    symbols = []
    for row in np.frombuffer(content, dtype=_SYM)[1:]:
        start = int(row["name"])
        text = strings[start : strings.index(b"\0", start)].decode()
        section = None if row["section"] == 0 else position[int(row["section"])]
        info = int(row["info"])
        symbols.append(
            Symbol(
                text, kinds[info & 15], section, int(row["value"]), int(row["size"]), info >> 4 == 1
            )
        )
    return symbols
