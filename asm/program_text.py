"""A core's program as assembly text: an instruction a line, or with runs of them rolled into loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cim.asm.objects import CORE_DATA, Object
from cim.asm.text_layout import INDENT, with_comment
from cim.isa.buffer_ranges import buffer_lengths, rows_beyond
from cim.isa.encoding import ILLEGAL, decode, immediate_value
from cim.isa.load import load_isa
from cim.isa.printer import format_instruction


@dataclass(frozen=True)
class Show:
    """How a program is written.

    `locations` puts file and line before instructions; `source_lines` (by file and line) their text too;
    `loops` rolls runs of instructions into `.for` and shows neither.
    """

    source_lines: Mapping[tuple[str, int], str] | None = None
    locations: bool = False
    loops: bool = False


def labels_of(obj: Object, section: int) -> dict[int, list[str]]:
    """The lines that define the labels of a section, by their place."""
    labels: dict[int, list[str]] = {}
    for symbol in obj.symbols:
        if symbol.section == section and symbol.kind == "label":
            lines = [f"{symbol.name}:"] + ([f".globl {symbol.name}"] if symbol.is_global else [])
            labels.setdefault(symbol.value, []).extend(lines)
    return labels


def symbol_text(obj: Object, row: Any) -> str:
    """A relocation's symbol and addend as an expression."""
    name, addend = obj.symbols[int(row["symbol"])].name, int(row["addend"])
    if int(row["type"]) in CORE_DATA.values():
        name = f"core({name})"
    return f"{name} {'+' if addend > 0 else '-'} {abs(addend)}" if addend else name


class Program:
    """The instructions of one text section, each as text or in its parts."""

    def __init__(self, obj: Object, index: int) -> None:
        self.isa = load_isa()
        self.obj = obj
        self.section = obj.sections[index]
        self.words = self.section.data.view("<u8")
        self.decoded = decode(self.isa, self.words)
        machine = obj.attributes.machine
        if machine is not None:
            # What the assembler refuses on this machine is shown as a word, which it takes.
            d, lengths = self.decoded, buffer_lengths(self.isa, machine)
            d.index[rows_beyond(self.isa, d.index, d.operands, lengths)] = ILLEGAL
        self.labels = labels_of(obj, index)
        self.mode = obj.attributes.mode.mode if obj.attributes.mode else "i8"
        self.relocations = {int(row["offset"]) // 8: row for row in self.section.relocations}

    def symbol_operand(self, pc: int) -> str | None:
        """The operand that a relocation of the instruction sets, if there is one."""
        if pc not in self.relocations:
            return None
        return {1: "address", 2: "core"}.get(int(self.relocations[pc]["type"]))

    def instruction(self, pc: int, moved: Mapping[str, str] | None = None) -> str:
        """Its text; `moved` is put behind the text of operands, or of a word that is no instruction."""
        row = self.relocations.get(pc)
        symbol = self.symbol_operand(pc)
        texts = {symbol: symbol_text(self.obj, row)} if symbol is not None else {}
        if self.decoded.index[pc] == ILLEGAL:
            word = hex(int(self.words[pc])) if row is None else symbol_text(self.obj, row)
            return f".quad {word}{(moved or {}).get('', '')}"
        if moved:
            instruction = list(self.isa.instructions.values())[int(self.decoded.index[pc])]
            for name, suffix in moved.items():
                value = int(self.decoded.operands[name][pc])
                kind = instruction.operands[name].kind
                if kind == "bits":
                    value = int(immediate_value(value, self.mode))
                text = hex(value) if kind == "address" else str(value)
                texts[name] = _sum(texts.get(name, text), suffix)
        return format_instruction(self.isa, self.decoded, pc, self.mode, texts)

    def line(self, pc: int) -> str:
        """The instruction with its place and word as a comment."""
        text = self.instruction(pc)
        return with_comment(INDENT + text, f"# {8 * pc:6x}: {int(self.words[pc]):016x}")


def _sum(first: str, suffix: str) -> str:
    return suffix[3:] if first in ("0", "0x0") and suffix.startswith(" + ") else first + suffix


def program_lines(obj: Object, index: int, show: Show) -> Iterator[str]:
    """The lines of a text section."""
    program = Program(obj, index)
    if show.loops:
        from cim.asm.loops_text import rolled_lines

        yield from rolled_lines(program)
        return
    shown = -1
    for pc in range(len(program.words)):
        yield from program.labels.get(8 * pc, ())
        location = int(program.section.lines[pc])
        if (show.locations or show.source_lines is not None) and location != shown:
            shown = location
            yield _location_line(obj, location, show)
        yield program.line(pc)
    yield from program.labels.get(8 * len(program.words), ())


def _location_line(obj: Object, index: int, show: Show) -> str:
    location = obj.attributes.locations[index]
    place = f"{INDENT}# {location.file}:{location.line}"
    if show.source_lines is None:
        return place
    text = show.source_lines.get((location.file, location.line), "").strip()
    return f"{place}: {text}".rstrip()
