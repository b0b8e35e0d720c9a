"""Reads `spec/isa.toml` and refuses one that does not hold together, pointing at the line."""

from __future__ import annotations

import os
import re
from functools import cache
from importlib import resources
from itertools import combinations
from typing import Any

from cim.diagnostics import CimError, Source, Span, error
from cim.files import read_text
from cim.isa import operation, toml_source
from cim.isa.model import (
    CLASSES,
    MODES,
    Buffer,
    Extension,
    Field,
    Instruction,
    Isa,
    Operand,
    SyntaxPart,
)

_RANGE = re.compile(r"^(\d+):(\d+)$")
_SLICE = re.compile(r"^\{(\w+)\}\[\{(\w+)\}:\{(\w+)\}\]$")
_KEYWORD = re.compile(r"^(\w+)=\{(\w+)\}$")
_PLAIN = re.compile(r"^\{(\w+)\}$")
_KINDS = ("buffer", "unsigned", "address", "core", "bits")


def spec_text(name: str) -> str:
    """The text of a file under `spec/`."""
    return resources.files("cim").joinpath("spec", *name.split("/")).read_text(encoding="utf-8")


def load_isa() -> Isa:
    """The instruction set: that of the package, or of the file that CIM_SPEC names.

    Raises `CimError` as `read_isa` does.
    """
    return _load(os.environ.get("CIM_SPEC", ""))


@cache
def _load(path: str) -> Isa:
    if path:
        return read_isa(Source(path, read_text(path)))
    return read_isa(Source("isa.toml", spec_text("isa.toml")))


def read_isa(source: Source) -> Isa:
    """Parse and check an instruction set.

    Raises `CimError` for a format with a gap or an overlap, a fixed value or operand that does not fit its
    field, a syntax that misses an operand, an operation outside its language, and for two instructions
    that one word could be.
    """
    return _Reader(source).read()


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.data = toml_source.parse(source)

    def fail(self, message: str, *path: str) -> CimError:
        return error(message, toml_source.locate(self.source, *path))

    def table(self, data: dict[str, Any], key: str, *path: str) -> Any:
        if key not in data:
            raise self.fail(f"'{key}' is missing", *path)
        return data[key]

    def read(self) -> Isa:
        head = self.table(self.data, "isa")
        self.word_bits = int(self.table(head, "word_bits", "isa"))
        self.exceptions: dict[str, str] = dict(self.data.get("exception", {}))
        self.formats: dict[str, tuple[Field, ...]] = {}
        self.read_formats(self.data, ())
        buffers = {
            name: Buffer(name=name, **entry)
            for name, entry in self.table(self.data, "buffer").items()
        }
        instructions = self.read_instructions(self.data, (), "")
        extensions = {}
        for name, block in self.data.get("extension", {}).items():
            place = ("extension", name)
            extensions[name] = Extension(
                name,
                self.table(block, "version", *place),
                self.table(block, "prose", *place).strip(),
            )
            self.exceptions |= block.get("exception", {})
            self.read_formats(block, place)
            more = self.read_instructions(block, place, name)
            for double in more.keys() & instructions.keys():
                raise self.fail(
                    f"'{double}' is already an instruction", *place, "instruction", double
                )
            instructions |= more
        self.check_distinct(instructions)
        return Isa(
            name=head["name"],
            version=head["version"],
            word_bits=self.word_bits,
            formats=self.formats,
            extensions=extensions,
            timing=self.read_timing(),
            buffers=buffers,
            exceptions=self.exceptions,
            instructions=instructions,
        )

    def read_timing(self) -> dict[str, str]:
        timing: dict[str, str] = self.table(self.data, "timing")
        for name in timing.keys() ^ set(CLASSES):
            raise self.fail(
                f"[timing] must have exactly {', '.join(CLASSES)}; '{name}'", "timing", name
            )
        return {name: timing[name].strip() for name in CLASSES}

    def read_formats(self, block: dict[str, Any], place: tuple[str, ...]) -> None:
        for name, ranges in block.get("format", {}).items():
            if name in self.formats:
                raise self.fail(f"'{name}' is already a format", *place, "format", name)
            self.formats[name] = self.read_format((*place, "format", name), ranges)

    def read_instructions(
        self, block: dict[str, Any], place: tuple[str, ...], extension: str
    ) -> dict[str, Instruction]:
        return {
            name: self.read_instruction((*place, "instruction", name), extension, entry)
            for name, entry in self.table(block, "instruction", *place).items()
        }

    def read_format(self, where: tuple[str, ...], ranges: dict[str, str]) -> tuple[Field, ...]:
        owner: dict[int, str] = {}
        fields = []
        for field, text in ranges.items():
            place = (*where, field)
            found = _RANGE.match(text)
            if found is None:
                raise self.fail(f"bits must be \"MSB:LSB\", not '{text}'", *place)
            msb, lsb = int(found[1]), int(found[2])
            if not lsb <= msb < self.word_bits:
                raise self.fail(f"bits {text} are not within {self.word_bits - 1}:0", *place)
            for bit in range(lsb, msb + 1):
                if bit in owner:
                    raise self.fail(f"bit {bit} already belongs to '{owner[bit]}'", *place)
                owner[bit] = field
            fields.append(Field(field, lsb, msb - lsb + 1))
        missing = [bit for bit in range(self.word_bits) if bit not in owner]
        if missing:
            raise self.fail(f"bit {missing[0]} belongs to no field", *where)
        return tuple(fields)

    def read_instruction(
        self, place: tuple[str, ...], extension: str, entry: dict[str, Any]
    ) -> Instruction:
        format_name = self.table(entry, "format", *place)
        if format_name not in self.formats:
            raise self.fail(f"unknown format '{format_name}'", *place, "format")
        if entry.get("class") not in CLASSES:
            raise self.fail(f"class must be one of {', '.join(CLASSES)}", *place, "class")
        fields = {field.name: field for field in self.formats[format_name]}
        operands = self.read_operands(place, entry.get("operands", {}), fields)
        fixed = self.read_fixed(place, entry.get("fixed", {}), fields)
        used = {operand.field.name for operand in operands.values()}
        for field in fields.values():
            if (field.name in used) + (field.name in fixed) + field.reserved != 1:
                raise self.fail(
                    f"field '{field.name}' must be either fixed, an operand or reserved", *place
                )
        modes = tuple(entry.get("modes", MODES))
        if unknown := set(modes) - set(MODES):
            raise self.fail(f"unknown mode '{unknown.pop()}'", *place, "modes")
        return Instruction(
            name=place[-1],
            extension=extension,
            mnemonic=self.table(entry, "mnemonic", *place),
            timing_class=entry["class"],
            format=format_name,
            fields=tuple(fields.values()),
            fixed=fixed,
            operands=operands,
            syntax=self.read_syntax(place, entry, operands),
            constraints=tuple(entry.get("constraints", ())),
            modes=modes,
            exceptions=self.read_exceptions(place, entry),
            operation=self.read_operation(place, entry, operands),
            prose=self.table(entry, "prose", *place).strip(),
        )

    def read_fixed(
        self, place: tuple[str, ...], fixed: dict[str, int], fields: dict[str, Field]
    ) -> dict[str, int]:
        for field, value in fixed.items():
            if field not in fields:
                raise self.fail(f"the format has no field '{field}'", *place, "fixed")
            if not 0 <= value <= fields[field].limit:
                raise self.fail(
                    f"{value} does not fit '{field}' (0 to {fields[field].limit})", *place, "fixed"
                )
        return dict(fixed)

    def read_operands(
        self, where: tuple[str, ...], entries: dict[str, dict[str, Any]], fields: dict[str, Field]
    ) -> dict[str, Operand]:
        operands = {}
        for operand, entry in entries.items():
            place = (*where, "operands", operand)
            if entry.get("kind") not in _KINDS:
                raise self.fail(f"kind must be one of {', '.join(_KINDS)}", *place)
            if entry.get("field") not in fields:
                raise self.fail(f"the format has no field '{entry.get('field')}'", *place)
            operands[operand] = Operand(
                operand,
                entry["kind"],
                fields[entry["field"]],
                entry.get("bias", 0),
                entry.get("default"),
            )
        return operands

    def read_syntax(
        self, where: tuple[str, ...], entry: dict[str, Any], operands: dict[str, Operand]
    ) -> tuple[SyntaxPart, ...]:
        place = (*where, "syntax")
        text = self.table(entry, "syntax", *where)
        mnemonic, _, rest = text.partition(" ")
        if mnemonic != entry["mnemonic"]:
            raise self.fail(f"the syntax must begin with '{entry['mnemonic']}'", *place)
        parts = []
        for piece in filter(None, (p.strip() for p in rest.split(","))):
            if found := _SLICE.match(piece):
                parts.append(SyntaxPart("slice", found.groups()))
            elif found := _PLAIN.match(piece):
                parts.append(SyntaxPart("plain", found.groups()))
            elif (found := _KEYWORD.match(piece)) and found[1] == found[2]:
                parts.append(SyntaxPart("keyword", (found[2],)))
            else:
                raise self.fail(f"cannot read '{piece}'", *place)
        named = [operand for part in parts for operand in part.operands]
        if sorted(named) != sorted(operands):
            odd = set(named).symmetric_difference(operands) or set(named)
            raise self.fail(
                f"syntax and operands differ in {', '.join(repr(o) for o in sorted(odd))}", *place
            )
        return tuple(parts)

    def read_exceptions(self, place: tuple[str, ...], entry: dict[str, Any]) -> tuple[str, ...]:
        listed = tuple(entry.get("exceptions", ()))
        for exception in listed:
            if exception not in self.exceptions:
                raise self.fail(f"unknown exception '{exception}'", *place, "exceptions")
        return listed

    def read_operation(
        self, where: tuple[str, ...], entry: dict[str, Any], operands: dict[str, Operand]
    ) -> operation.Operation:
        place = (*where, "operation")
        text = self.table(entry, "operation", *where)
        try:
            return operation.check(
                text,
                {operand.name: operand.kind for operand in operands.values()},
                self.read_exceptions(where, entry),
            )
        except operation.OperationError as problem:
            # The text of a multi-line string begins on the line below its key.
            at = toml_source.locate(self.source, *place)
            number = at.line + problem.line
            line = self.source.line(number)
            start = len(line) - len(line.lstrip()) + 1
            raise error(
                f"operation of '{where[-1]}': {problem}",
                Span(self.source, number, start, len(line.rstrip()) + 1),
            ) from None

    def check_distinct(self, instructions: dict[str, Instruction]) -> None:
        for one, two in combinations(instructions.values(), 2):
            common = one.mask & two.mask
            if one.match & common == two.match & common:
                raise self.fail(f"a word could be both '{one.name}' and '{two.name}'", *_place(two))
        for instruction in instructions.values():
            if instruction.match == 0:
                raise self.fail(
                    f"'{instruction.name}' would take the all-zero word, which must stay illegal",
                    *_place(instruction),
                )


def _place(instruction: Instruction) -> tuple[str, ...]:
    block = ("extension", instruction.extension) if instruction.extension else ()
    return (*block, "instruction", instruction.name)
