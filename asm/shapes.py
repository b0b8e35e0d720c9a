"""Lines of the same shape are parsed once: numbers and names are taken out, the rest is what Lark sees.

The grammar stays the only authority. A line is cut by the grammar's own terminals; what Lark makes of the shape
is filled with the line's numbers and names, and its columns moved by their widths, which gives the very tree that
Lark would make of the line. Whatever is not right is left to Lark and the whole line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from cim.asm.syntax import (
    Line,
    LineError,
    Op,
    Place,
    canonical_op,
    check_numeric_label,
    parse_whole_line,
    read_number,
    terminal_pattern,
)
from cim.asm.tree_copy import TreeCopy

SPACE = " \t\r\f"  # what the grammar ignores; a no-break space is a mistake
PLACEHOLDER = "0"
NAME_PLACEHOLDER = "a"
SLOT = "\0"  # a slot's number as a name in a template; no name in a source begins so


@dataclass(frozen=True)
class Template:
    """A parsed shape. Its numbers are names `SLOT + i`; `starts` are their columns in the shape."""

    tree: Line
    starts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """A line cut into its shape and its numbers, as texts."""

    shape: str
    literals: tuple[str, ...]


@cache
def _tokens(wanted: str) -> re.Pattern[str]:
    """The terminals that may hold digits or letters, the wanted one captured."""
    names = ["COMMENT", "STRING", "CHARACTER", "NAME", "LOCAL", "NUMBER"]
    patterns = {name: terminal_pattern(name) for name in names}
    patterns[wanted] = f"({patterns[wanted]})"
    return re.compile("|".join(patterns.values()))


def _found(wanted: str, text: str) -> list[re.Match[str]]:
    """The tokens of one kind in a line."""
    return [match for match in _tokens(wanted).finditer(text) if match.lastindex is not None]


def names_in(text: str) -> list[re.Match[str]]:
    """The names in a line."""
    return _found("NAME", text)


def cut(text: str) -> Cut:
    """Take the numbers out of a line."""
    literals: list[str] = []

    def take(match: re.Match[str]) -> str:
        if match.lastindex is None:
            return "" if match[0].startswith(("#", "//")) else match[0]
        literals.append(match[0])
        return PLACEHOLDER

    shape = _tokens("NUMBER").sub(take, text).rstrip(SPACE)
    return Cut(shape, tuple(literals))


@lru_cache(maxsize=65536)
def template_of(shape: str) -> Template | None:
    """The parsed shape, None where it is not a right line (or one with a number of its own)."""
    numbers = _found("NUMBER", shape)
    # What is left of a number can become part of another token: `0x1.5`, cut to `0.5`, is one number.
    if any(match[0] != PLACEHOLDER for match in numbers):
        return None
    tree = _parse_shape(shape, len(numbers))
    if tree is None:
        return None
    starts = tuple(match.start() + 1 for match in numbers)
    return Template(_SlotNamer(starts).line(tree), starts)


def _parse_shape(shape: str, numbers: int) -> Line | None:
    """The tree of a shape: that of its skeleton, with the names put back."""
    names = [match[0] for match in names_in(shape)]
    skeleton = _tokens("NAME").sub(
        lambda match: match[0] if match.lastindex is None else NAME_PLACEHOLDER, shape
    )
    places = [match.start() + 1 for match in names_in(skeleton)]
    # As above: `0$x` would become one token.
    if len(places) != len(names) or len(_found("NUMBER", skeleton)) != numbers:
        return _parse(shape)
    tree = _parse_skeleton(skeleton)
    return None if tree is None else _Renamer(places, names).line(tree)


@lru_cache(maxsize=65536)
def _parse_skeleton(skeleton: str) -> Line | None:
    return _parse(skeleton)


def _parse(text: str) -> Line | None:
    try:
        return parse_whole_line(text)
    except LineError:
        return None


def parse_line(text: str) -> Line:
    """The tree of one line without its line end. Raises `LineError`."""
    pieces = cut(text)
    template = template_of(pieces.shape)
    # A quote without its end is an error; around what is left of a number (`'12'`) it must not become a character.
    if template is None or len(template.starts) != len(pieces.literals):
        return parse_whole_line(text)
    return fill(template, pieces.literals)


def fill(template: Template, literals: Sequence[str]) -> Line:
    """The tree of a line of this shape with these numbers. Raises `LineError` for a literal that is none."""
    if not literals:
        return template.tree
    return _Filler(template, literals).line(template.tree)


class _Filler(TreeCopy):
    """Puts numbers where a template has slots."""

    def __init__(self, template: Template, literals: Sequence[str]) -> None:
        super().__init__(template.starts, [len(text) - len(PLACEHOLDER) for text in literals])
        self.literals = literals
        labels = {label.name for label in template.tree.labels}
        self.values = []
        # Looked at in the order of Lark, so that the first mistake is the same.
        for slot, (start, text) in enumerate(zip(template.starts, literals, strict=True)):
            place = Place(self.column(start), self.column(start) + len(text))
            if f"{SLOT}{slot}" in labels:
                check_numeric_label(text, place)
            self.values.append(read_number(text, place))

    def label(self, name: str, column: int) -> str:
        del column
        return self.literals[int(name[1:])] if name.startswith(SLOT) else name

    def op(self, op: Op) -> Op:
        if op.kind == "name" and op.value.startswith(SLOT):
            return Op("num", self.values[int(op.value[1:])], self.place(op.place))
        return super().op(op)


class _SlotNamer(TreeCopy):
    """Puts a slot where a number stands."""

    def __init__(self, starts: Sequence[int]) -> None:
        super().__init__(starts, [0] * len(starts))
        self.slots = {start: f"{SLOT}{number}" for number, start in enumerate(starts)}

    def label(self, name: str, column: int) -> str:
        return self.slots.get(column, name)

    def op(self, op: Op) -> Op:
        slot = self.slots.get(op.place.start) if op.kind == "num" else None
        return op if slot is None else Op("name", slot, op.place)


class _Renamer(TreeCopy):
    """Puts names where a skeleton has placeholders at columns `starts`."""

    def __init__(self, starts: Sequence[int], names: Sequence[str]) -> None:
        super().__init__(starts, [len(name) - len(NAME_PLACEHOLDER) for name in names])
        self.names = dict(zip(starts, names, strict=True))

    def label(self, name: str, column: int) -> str:
        return self.names.get(column, name)  # `7:` is no name

    def name(self, name: str, column: int) -> str:
        del name
        return self.names[column]

    def mnemonic(self, op: str | None, column: int) -> str | None:
        return None if op is None else canonical_op(self.names[column])

    def op(self, op: Op) -> Op:
        value = op.value
        if op.kind == "name":
            value = self.names.get(op.place.start, value)  # nor is `7b`
        elif op.kind == "call":
            value = (self.names[op.place.start], value[1])
        return Op(op.kind, value, self.place(op.place))
