"""Line tables as DWARF 4: `.debug_line`, `.debug_info` and `.debug_abbrev` of an object.

One unit and one sequence a text section; addresses are relative to the section and start at 0, since readelf
complains about relocations on debug sections of a machine that it does not know. The unit's name is the
first source file, its one subprogram the core. Only what is written here is read back.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cim.asm.image import Location

WORD_BYTES = 8
_LINE_BASE, _LINE_RANGE, _OPCODE_BASE = -5, 14, 13
_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN = 1, 2, 3, 4, 5
_OPERANDS = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1])  # of the standard opcodes, from 1
_BEGIN = b"\0\x09\x02" + bytes(8)  # DW_LNE_set_address 0
_END = b"\0\x01\x01"  # DW_LNE_end_sequence
_LEB_BYTES = 5  # 35 bits: more than any line or address of a program has
_UNIT_HEADER = struct.Struct("<IHI")  # length, version, length of the rest of the header
# minimum instruction length, operations an instruction, default is_stmt, line base and range, opcode base
_MACHINE = struct.pack("<BBBbBB", WORD_BYTES, 1, 1, _LINE_BASE, _LINE_RANGE, _OPCODE_BASE)
# Tag, children, then attribute and form: the unit (producer, language, name, stmt_list, low_pc, high_pc)
# and the core's program (name, low_pc, high_pc).
_ABBREVIATIONS = bytes(
    [1, 0x11, 1, 0x25, 8, 0x13, 5, 3, 8, 0x10, 0x17, 0x11, 1, 0x12, 7, 0, 0,
     2, 0x2E, 0, 3, 8, 0x11, 1, 0x12, 7, 0, 0,
     0]
)  # fmt: skip
_ASSEMBLER = 0x8001  # DW_LANG_Mips_Assembler: what GNU as says for any machine
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Program:
    """The lines of one text section: for each instruction an index into the object's locations.

    `columns` has for each where the symbol stands that the linker puts in, 0 where there is none.
    """

    core: str
    lines: NDArray[np.uint32]
    columns: NDArray[np.uint32]


def write_line_tables(
    programs: Iterable[Program], locations: list[Location]
) -> list[tuple[str, bytes]]:
    """Names and contents of the debug sections; none where no program has an instruction."""
    names: dict[str, int] = {}
    files = np.array([names.setdefault(loc.file, len(names)) for loc in locations], dtype=np.int64)
    numbers = np.array([location.line for location in locations], dtype=np.int64)
    known = list(names)
    line, info = bytearray(), bytearray()
    for program in programs:
        if not program.lines.size:
            continue
        start = len(line)
        own = files[program.lines]
        used, first, own = np.unique(own, return_index=True, return_inverse=True)
        order = np.argsort(first)  # files in the order of their first use
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(1, len(order) + 1)
        file_names = [known[index] or "<unnamed>" for index in used[order].tolist()]
        columns = program.columns.astype(np.int64)
        line += _line_unit(file_names, rank[own], numbers[program.lines], columns)
        info += _info_unit(program, file_names[0], start)
    if not line:
        return []
    return [
        (".debug_line", bytes(line)),
        (".debug_info", bytes(info)),
        (".debug_abbrev", _ABBREVIATIONS),
    ]


def _line_unit(file_names: list[str], files: Ints, numbers: Ints, columns: Ints) -> bytes:
    table = b"".join(_text(name) + bytes(3) for name in file_names)  # folder, time and length 0
    header = _MACHINE + _OPERANDS + b"\0" + table + b"\0"
    body = header + _BEGIN + _opcodes(files, numbers, columns) + _END
    return _UNIT_HEADER.pack(len(body) + 6, 4, len(header)) + body


def _info_unit(program: Program, name: str, line_offset: int) -> bytes:
    size = WORD_BYTES * len(program.lines)
    unit = struct.pack("<B", 1) + _text("cim-as") + struct.pack("<H", _ASSEMBLER) + _text(name)
    unit += struct.pack("<IQQ", line_offset, 0, size)
    core = struct.pack("<B", 2) + _text(program.core) + struct.pack("<QQ", 0, size)
    body = unit + core + b"\0"
    return struct.pack("<IHIB", len(body) + 7, 4, 0, 8) + body


def _text(text: str) -> bytes:
    return text.encode(errors="surrogateescape") + b"\0"


def _opcodes(files: Ints, numbers: Ints, columns: Ints) -> bytes:
    """A row wherever file, line or column changes, and the advance to the end."""
    differs = (np.diff(files) != 0) | (np.diff(numbers) != 0) | (np.diff(columns) != 0)
    changes = np.flatnonzero(differs) + 1
    count = len(files)
    at = np.concatenate([[0], changes])
    files, numbers, columns = files[at], numbers[at], columns[at]
    file_before = np.concatenate([[1], files[:-1]])
    column_before = np.concatenate([[0], columns[:-1]])
    line_steps = np.diff(numbers, prepend=1)
    address_steps = np.diff(at, prepend=0)
    # One row of the matrix holds all bytes that a row of the table may need; the mask those it does.
    far = (line_steps < _LINE_BASE) | (line_steps >= _LINE_BASE + _LINE_RANGE)
    near_steps = np.where(far, 0, line_steps)
    special = near_steps - _LINE_BASE + _LINE_RANGE * address_steps + _OPCODE_BASE
    jump = special > 255
    special = np.where(jump, special - _LINE_RANGE * address_steps, special)
    parts = [
        _with_leb(_SET_FILE, files, files != file_before, signed=False),
        _with_leb(_SET_COLUMN, columns, columns != column_before, signed=False),
        _with_leb(_ADVANCE_LINE, line_steps, far, signed=True),
        _with_leb(_ADVANCE_PC, address_steps, jump, signed=False),
        (special[:, None].astype(np.uint8), np.ones((len(at), 1), dtype=bool)),
    ]
    content = np.concatenate([part for part, _ in parts], axis=1)
    mask = np.concatenate([mask for _, mask in parts], axis=1)
    rest = np.array([count - int(at[-1])], dtype=np.int64)
    tail, tail_mask = _with_leb(_ADVANCE_PC, rest, rest > 0, signed=False)
    return bytes(content[mask].tobytes() + tail[tail_mask].tobytes())


def _with_leb(
    opcode: int, values: Ints, wanted: NDArray[np.bool_], *, signed: bool
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """An opcode and its LEB128 operand a row: the bytes, and which of them are there."""
    groups = values[:, None] >> (7 * np.arange(_LEB_BYTES))
    low = (groups & 0x7F).astype(np.uint8)
    # The number of bytes: as long as more bits follow than those that the sign (bit 6) repeats.
    following = groups >> (6 if signed else 7)
    more = (following != 0) & (following != -1) if signed else following != 0
    bytes_of = np.where(more, low | 0x80, low)
    there = np.concatenate([np.ones((len(values), 1), dtype=bool), more[:, :-1]], axis=1)
    content = np.concatenate([np.full((len(values), 1), opcode, np.uint8), bytes_of], axis=1)
    mask = np.concatenate([np.ones((len(values), 1), dtype=bool), there], axis=1)
    return content.astype(np.uint8), mask & wanted[:, None]


# --- reading -----------------------------------------------------------------------------------------------


def read_line_tables(
    content: bytes, counts: Iterable[int]
) -> tuple[list[NDArray[np.uint32]], list[NDArray[np.uint32]], list[Location]]:
    """The lines and columns of programs of `counts` instructions, and the locations by their first use.

    Raises `ValueError` for anything that `write_line_tables` does not write.
    """
    names: dict[str, int] = {}
    keys: list[Ints] = []
    sizes: list[Ints] = []
    columns: list[NDArray[np.uint32]] = []
    at = 0
    for count in counts:
        if not count:
            keys.append(np.zeros(0, dtype=np.int64))
            sizes.append(np.zeros(0, dtype=np.int64))
            columns.append(np.zeros(0, dtype="<u4"))
            continue
        if at + _UNIT_HEADER.size > len(content):
            raise ValueError("the line table has a unit too few")
        length, version, header = _UNIT_HEADER.unpack_from(content, at)
        body = content[at + _UNIT_HEADER.size : at + 4 + length]
        fixed = _MACHINE + _OPERANDS + b"\0"
        if version != 4 or not body.startswith(fixed) or len(body) != length - 6 or header < 20:
            raise ValueError("the line table is not one of cim-as")
        files = _file_names(body[len(fixed) : header])
        numbers = np.array([names.setdefault(f, len(names)) for f in files], dtype=np.int64)
        file, line, column, size = _rows(body[header:], count)
        if (
            int(file.min()) < 1
            or int(file.max()) > len(files)
            or int(line.min()) < 0
            or int(column.max()) >= 2**32
        ):
            raise ValueError("a row of the line table is out of range")
        keys.append((numbers[file - 1] << (7 * _LEB_BYTES)) | line)
        sizes.append(size)
        columns.append(np.repeat(column.astype("<u4"), size))
        at += 4 + length
    if at != len(content):
        raise ValueError("the line table has a unit too many")
    known = list(names)
    every = np.concatenate([np.zeros(0, dtype=np.int64), *keys])
    unique, first, inverse = np.unique(every, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype="<u4")
    rank[order] = np.arange(len(order))
    locations = [
        Location(known[key >> (7 * _LEB_BYTES)], key & ((1 << (7 * _LEB_BYTES)) - 1))
        for key in unique[order].tolist()
    ]
    ids = np.split(rank[inverse], np.cumsum([len(part) for part in keys])[:-1])
    lines = [np.repeat(part, size) for part, size in zip(ids, sizes, strict=False)]
    return lines, columns, locations


def _file_names(table: bytes) -> list[str]:
    """Each name is followed by three zero bytes; a zero byte ends the table."""
    parts = table.split(b"\0")
    # name, "", "", "" a file, then the two empty ones of the table's end
    if len(parts) % 4 != 2 or any(parts[i] for i in range(len(parts)) if i % 4):
        raise ValueError("the line table has a file table that is not one of cim-as")
    return [name.decode(errors="backslashreplace") for name in parts[:-2:4]]


def _rows(code: bytes, count: int) -> tuple[Ints, Ints, Ints, Ints]:
    """File, line, column and number of instructions of each row."""
    if not code.startswith(_BEGIN) or not code.endswith(_END):
        raise ValueError("a line program does not begin or end as those of cim-as")
    program = code[len(_BEGIN) : -len(_END)]
    raw = np.frombuffer(program, dtype=np.uint8)
    at = _opcode_places(program)
    opcodes = raw[at].astype(np.int64)
    operands = _operands(raw, at, opcodes)
    special = opcodes >= _OPCODE_BASE
    adjusted = np.where(special, opcodes - _OPCODE_BASE, 0)
    steps = adjusted // _LINE_RANGE + np.where(opcodes == _ADVANCE_PC, operands, 0)
    lines = np.where(special, adjusted % _LINE_RANGE + _LINE_BASE, 0)
    lines += np.where(opcodes == _ADVANCE_LINE, operands, 0)
    rows = np.flatnonzero(special | (opcodes == _COPY))
    if not rows.size:
        raise ValueError("a line program has no row")
    file = _last_set(_SET_FILE, 1, opcodes, operands)[rows]
    column = _last_set(_SET_COLUMN, 0, opcodes, operands)[rows]
    address = np.cumsum(steps)
    sizes = np.diff(address[rows], append=address[-1])
    if address[-1] != count or address[rows[0]] != 0:
        raise ValueError(f"a line program covers {address[-1]} of {count} instructions")
    return file, 1 + np.cumsum(lines)[rows], column, sizes


def _last_set(opcode: int, start: int, opcodes: Ints, operands: Ints) -> Ints:
    """At each opcode what the last one of this kind has set, `start` before the first."""
    sets = np.where(opcodes == opcode, np.arange(len(opcodes)), -1)
    last = np.maximum.accumulate(sets)
    return np.where(last < 0, start, operands[last])


def _opcode_places(code: bytes) -> Ints:
    """Where the opcodes stand. Each begins where the one before it ends."""
    sizes = np.fromiter(map(len, _OPCODE.findall(code)), dtype=np.int64)
    ends = np.cumsum(sizes)
    if (ends[-1] if ends.size else 0) != len(code):
        raise ValueError("a line program has an opcode that cim-as does not write")
    return ends - sizes


# A special opcode or a copy, or one that has a LEB128: bytes with bit 7, then one without.
_OPCODE = re.compile(
    b"[%c%c-\xff]|[%c-%c][\x80-\xff]{0,%d}[\x00-\x7f]"
    % (_COPY, _OPCODE_BASE, _ADVANCE_PC, _SET_COLUMN, _LEB_BYTES - 1)
)


def _operands(raw: NDArray[np.uint8], at: Ints, opcodes: Ints) -> Ints:
    """The LEB128 operand of each opcode that has one; signed for the advance of the line."""
    values = np.zeros(len(at), dtype=np.int64)
    which = np.flatnonzero((opcodes >= _ADVANCE_PC) & (opcodes <= _SET_COLUMN))
    place, shift = at[which] + 1, 0
    while which.size:
        byte = raw[place].astype(np.int64)
        values[which] |= (byte & 0x7F) << shift
        shift += 7
        ended = byte < 0x80
        negative = ended & (byte & 0x40 != 0) & (opcodes[which] == _ADVANCE_LINE)
        values[which[negative]] -= 1 << shift
        which, place = which[~ended], place[~ended] + 1
    return values
