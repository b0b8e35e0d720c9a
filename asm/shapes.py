"""Lines of the same shape are parsed once: the numbers are taken out, the rest is what Lark sees.

The grammar stays the only authority. A line is cut by the grammar's own terminals; what Lark makes of the shape
is filled with the line's numbers, and its columns moved by their widths, which gives the very tree that Lark
would make of the line. Whatever is not right is left to Lark and the whole line.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from cim.asm.syntax import (
    Expression,
    Items,
    Keyword,
    Label,
    Line,
    LineError,
    Op,
    Operand,
    Place,
    Slice,
    Text,
    check_numeric_label,
    parse_whole_line,
    read_number,
    terminal_pattern,
)

PLACEHOLDER = "0"
_NOT_SLOTS = ("COMMENT", "STRING", "CHARACTER", "NAME", "LOCAL")
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
def _tokens() -> re.Pattern[str]:
    """The terminals that may hold digits, NUMBER last and captured."""
    others = "|".join(terminal_pattern(name) for name in _NOT_SLOTS)
    return re.compile(f"{others}|({terminal_pattern('NUMBER')})")


def cut(text: str) -> Cut:
    """Take the numbers out of a line."""
    literals: list[str] = []

    def take(match: re.Match[str]) -> str:
        if match.lastindex is None:
            return "" if match[0].startswith(("#", "//")) else match[0]
        literals.append(match[0])
        return PLACEHOLDER

    shape = _tokens().sub(take, text).rstrip()
    return Cut(shape, tuple(literals))


@lru_cache(maxsize=65536)
def template_of(shape: str) -> Template | None:
    """The parsed shape, None where it is not a right line (or one with a number of its own)."""
    try:
        tree = parse_whole_line(shape)
    except LineError:
        return None
    starts = tuple(
        match.start(match.lastindex) + 1
        for match in _tokens().finditer(shape)
        if match.lastindex is not None
    )
    slots = {start: number for number, start in enumerate(starts)}
    return Template(_named_slots(tree, slots), starts)


@lru_cache(maxsize=65536)
def is_number(literal: str) -> bool:
    """Whether the language reads the literal as a number."""
    try:
        read_number(literal, Place(1, 1))
    except LineError:
        return False
    return True


def parse_line(text: str) -> Line:
    """The tree of one line without its line end. Raises `LineError`."""
    pieces = cut(text)
    template = template_of(pieces.shape)
    if template is None:
        return parse_whole_line(text)
    return fill(template, pieces.literals)


def fill(template: Template, literals: Sequence[str]) -> Line:
    """The tree of a line of this shape with these numbers. Raises `LineError` for a literal that is none."""
    if not literals:
        return template.tree
    return _Filler(template, literals).line(template.tree)


class _Filler:
    """Copies a template's tree with numbers for slots and columns moved."""

    def __init__(self, template: Template, literals: Sequence[str]) -> None:
        self.starts = template.starts
        self.growth = []
        total = 0
        for literal in literals:
            total += len(literal) - len(PLACEHOLDER)
            self.growth.append(total)
        self.literals = literals
        self.values = self._values(template.tree.labels)

    def _values(self, labels: tuple[Label, ...]) -> list[int | float]:
        """The numbers of the literals, looked at in the order of Lark."""
        numeric = {label.name for label in labels}
        values: list[int | float] = []
        for number, literal in enumerate(self.literals):
            place = self._slot_place(number, literal)
            if f"{SLOT}{number}" in numeric:
                check_numeric_label(literal, place)
            values.append(read_number(literal, place))
        return values

    def _slot_place(self, number: int, literal: str) -> Place:
        start = self.starts[number] + (self.growth[number - 1] if number else 0)
        return Place(start, start + len(literal))

    def _column(self, column: int) -> int:
        before = bisect_left(self.starts, column)
        return column + (self.growth[before - 1] if before else 0)

    def place(self, place: Place) -> Place:
        return Place(self._column(place.start), self._column(place.end))

    def line(self, tree: Line) -> Line:
        labels = tuple(self.label(label) for label in tree.labels)
        operands = tuple(self.operand(operand) for operand in tree.operands)
        return Line(labels, tree.op, self.place(tree.op_place), operands)

    def label(self, label: Label) -> Label:
        name = label.name
        if name.startswith(SLOT):
            name = self.literals[int(name.removeprefix(SLOT))]
        return Label(name, self.place(label.place))

    def operand(self, operand: Operand) -> Operand:
        place = self.place(operand.place)
        if isinstance(operand, Expression):
            return Expression(tuple(self.op(op) for op in operand.code), place)
        if isinstance(operand, Slice):
            lo, hi = self.operand(operand.lo), self.operand(operand.hi)
            assert isinstance(lo, Expression)
            assert isinstance(hi, Expression)
            return Slice(operand.name, lo, hi, place)
        if isinstance(operand, Items):
            return Items(tuple(self.operand(item) for item in operand.items), place)
        if isinstance(operand, Keyword):
            return Keyword(operand.name, self.operand(operand.value), place)
        return Text(operand.value, place)

    def op(self, op: Op) -> Op:
        if op.kind == "name" and op.value.startswith(SLOT):
            return Op("num", self.values[int(op.value[1:])], self.place(op.place))
        return Op(op.kind, op.value, self.place(op.place))


def _named_slots(tree: Line, slots: dict[int, int]) -> Line:
    """The tree with every number that stands at a slot's column as a name."""

    def operand(node: Operand) -> Operand:
        if isinstance(node, Expression):
            return Expression(
                tuple(
                    Op("name", f"{SLOT}{slots[op.place.start]}", op.place)
                    if op.kind == "num" and op.place.start in slots
                    else op
                    for op in node.code
                ),
                node.place,
            )
        if isinstance(node, Slice):
            lo, hi = operand(node.lo), operand(node.hi)
            assert isinstance(lo, Expression)
            assert isinstance(hi, Expression)
            return Slice(node.name, lo, hi, node.place)
        if isinstance(node, Items):
            return Items(tuple(operand(item) for item in node.items), node.place)
        if isinstance(node, Keyword):
            return Keyword(node.name, operand(node.value), node.place)
        return node

    labels = tuple(
        Label(f"{SLOT}{slots[label.place.start]}", label.place)
        if label.place.start in slots
        else label
        for label in tree.labels
    )
    return Line(labels, tree.op, tree.op_place, tuple(operand(o) for o in tree.operands))
