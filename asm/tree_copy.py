"""Copies of a line's tree in which tokens are replaced by others of the same kind, and all columns move."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from cim.asm.syntax import Expression, Items, Keyword, Label, Line, Op, Operand, Place, Slice, Text


class TreeCopy:
    """Copies trees of a line whose tokens at columns `starts` become as much longer as `growth` says.

    A subclass says what becomes of names and of the steps of expressions.
    """

    def __init__(self, starts: Sequence[int], growth: Sequence[int]) -> None:
        self.starts = starts
        self.total = [0]
        for more in growth:
            self.total.append(self.total[-1] + more)

    def column(self, column: int) -> int:
        """Where a column is in the copy."""
        return column + self.total[bisect_left(self.starts, column)]

    def place(self, place: Place) -> Place:
        """Where a place is in the copy."""
        return Place(self.column(place.start), self.column(place.end))

    def name(self, name: str, column: int) -> str:
        """The name that the copy has for one whose token is at a column of the original."""
        del column
        return name

    def label(self, name: str, column: int) -> str:
        """As `name`, for a label, which may be a number."""
        del column
        return name

    def mnemonic(self, op: str | None, column: int) -> str | None:
        """As `name`, for the statement's first word."""
        del column
        return op

    def op(self, op: Op) -> Op:
        """A step of an expression."""
        return Op(op.kind, op.value, self.place(op.place))

    def line(self, tree: Line) -> Line:
        """The copy of a line."""
        labels = tuple(
            Label(self.label(label.name, label.place.start), self.place(label.place))
            for label in tree.labels
        )
        operands = tuple(map(self.operand, tree.operands))
        op = self.mnemonic(tree.op, tree.op_place.start)
        return Line(labels, op, self.place(tree.op_place), operands)

    def operand(self, operand: Operand) -> Operand:
        """The copy of an operand."""
        place = self.place(operand.place)
        if isinstance(operand, Expression):
            return self.expression(operand)
        if isinstance(operand, Slice):
            name = self.name(operand.name, operand.place.start)
            return Slice(name, self.expression(operand.lo), self.expression(operand.hi), place)
        if isinstance(operand, Items):
            return Items(tuple(map(self.operand, operand.items)), place)
        if isinstance(operand, Keyword):
            name = self.name(operand.name, operand.place.start)
            return Keyword(name, self.operand(operand.value), place)
        return Text(operand.value, place)

    def expression(self, expression: Expression) -> Expression:
        """The copy of an expression."""
        return Expression(tuple(map(self.op, expression.code)), self.place(expression.place))
