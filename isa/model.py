"""The data types of the instruction set: what `isa.load` makes and every other stage reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from cim.isa.operation import Operation

MODES = ("f32", "i8", "i8n")
# What statistics count by, and what spec/timing.md gives a time to.
CLASSES = ("load", "store", "mvm", "gpeu", "call", "wait")


@dataclass(frozen=True)
class Field:
    """`width` bits of a word from bit `lsb` upwards."""

    name: str
    lsb: int
    width: int

    @property
    def limit(self) -> int:
        """The largest number that fits."""
        return (1 << self.width) - 1

    @property
    def mask(self) -> int:
        """The field's bits, in place."""
        return self.limit << self.lsb

    @property
    def reserved(self) -> bool:
        """Whether the bits must be zero."""
        return self.name == "zero" or self.name.startswith("zero_")


@dataclass(frozen=True)
class Buffer:
    """One of a core's buffers. `length` and `type` name properties of machine and numeric mode."""

    name: str
    code: int
    length: str
    type: str
    prose: str


@dataclass(frozen=True)
class Operand:
    """An operand as written in assembly: the field holds its value minus `bias`.

    `kind` is buffer, unsigned, address, core or bits. `default` names what stands for a missing operand.
    """

    name: str
    kind: str
    field: Field
    bias: int = 0
    default: str | None = None

    @property
    def minimum(self) -> int:
        """The smallest value that can be encoded."""
        return self.bias

    @property
    def maximum(self) -> int:
        """The largest value that can be encoded."""
        return self.bias + self.field.limit


@dataclass(frozen=True)
class SyntaxPart:
    """One comma-separated part of an instruction's syntax.

    `shape` is `plain` (one operand), `slice` (buffer, lo, hi) or `keyword` (`name=operand`, may be left out).
    """

    shape: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Instruction:
    """Encoding, syntax and semantics of one instruction; `extension` is empty for the base ISA."""

    name: str
    extension: str
    mnemonic: str
    timing_class: str
    format: str
    fields: tuple[Field, ...]
    fixed: Mapping[str, int]
    operands: Mapping[str, Operand]
    syntax: tuple[SyntaxPart, ...]
    constraints: tuple[str, ...]
    modes: tuple[str, ...]
    exceptions: tuple[str, ...]
    operation: Operation
    prose: str

    @cached_property
    def mask(self) -> int:
        """The bits that every word of this instruction has alike: fixed and reserved fields."""
        return sum(f.mask for f in self.fields if f.reserved or f.name in self.fixed)

    @cached_property
    def match(self) -> int:
        """What those bits are."""
        return sum(self.fixed[f.name] << f.lsb for f in self.fields if f.name in self.fixed)


@dataclass(frozen=True)
class Extension:
    """A named block of instructions beside the base ISA."""

    name: str
    version: str
    prose: str


@dataclass(frozen=True)
class Isa:
    """The whole instruction set. `instructions` keeps the order of the file, extensions last.

    `timing` says for each timing class what takes the time.
    """

    name: str
    version: str
    word_bits: int
    formats: Mapping[str, tuple[Field, ...]]
    extensions: Mapping[str, Extension]
    timing: Mapping[str, str]
    buffers: Mapping[str, Buffer]
    exceptions: Mapping[str, str]
    instructions: Mapping[str, Instruction]

    @cached_property
    def by_mnemonic(self) -> dict[str, list[Instruction]]:
        """The forms of each mnemonic, in the order of the file."""
        table: dict[str, list[Instruction]] = {}
        for instruction in self.instructions.values():
            table.setdefault(instruction.mnemonic, []).append(instruction)
        return table

    @cached_property
    def buffer_names(self) -> dict[int, str]:
        """Buffer names by code."""
        return {buffer.code: buffer.name for buffer in self.buffers.values()}
