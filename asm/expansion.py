"""Unrolls `.for` and `.if`: every statement for all its iterations at once, as NumPy arrays.

An iteration of the loops around a statement is a *lane*. A statement is evaluated once, over arrays with one
element a lane; where its bytes go follows from the sizes of everything around it, summed lane by lane.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cim.asm.blocks import REPT, For, If, Let, Node, Statement
from cim.asm.expressions import (
    ExpressionError,
    Ints,
    Number,
    Program,
    Value,
    evaluate,
    not_constant,
)
from cim.asm.syntax import Expression, Place
from cim.diagnostics import Diagnostic

MAX_LANES = 8_000_000
MAX_BYTES = 2**32
Scope = Mapping[str, Number]


@dataclass
class Lanes:
    """`count` iterations; `scope` gives each variable's value, one number or one per lane."""

    count: int
    scope: dict[str, Number]

    def select(self, parents: Ints) -> Lanes:
        """Lanes that are made from those at the given positions."""
        scope = {k: v[parents] if isinstance(v, np.ndarray) else v for k, v in self.scope.items()}
        return Lanes(len(parents), scope)

    def describe(self, index: int) -> str:
        """The variables of one lane, as `k = 3, o = 17`; empty outside loops."""
        return ", ".join(
            f"{name} = {int(value[index])}"
            for name, value in self.scope.items()
            if isinstance(value, np.ndarray) and value.size > index
        )


@dataclass(frozen=True)
class OwnLines:
    """Where the lanes of a piece stand that are lines of one shape.

    `steps` counts lines from the first; `columns` gives each line's column for one of the shape.
    """

    steps: Ints
    columns: Callable[[int], Ints]


@dataclass
class Piece:
    """A statement in all its lanes: lane i stands at byte `offsets[i]` and takes `sizes[i]` bytes."""

    statement: Statement
    lanes: Lanes
    offsets: Ints
    sizes: Ints
    parents: Ints
    own_lines: OwnLines | None = None

    @property
    def is_run(self) -> bool:
        """Whether the lanes are lines of their own."""
        return self.own_lines is not None

    def columns(self, column: int) -> int | Ints:
        """The column in the source, one for all lanes or one for each."""
        return column if self.own_lines is None else self.own_lines.columns(column)

    def lines_on(self) -> int | Ints:
        """How many lines after the statement each lane stands."""
        return 0 if self.own_lines is None else self.own_lines.steps


class Expander:
    """Unrolls nodes. `lookup` resolves names that are not loop variables; `size_of` sizes a statement."""

    def __init__(
        self,
        lookup: Callable[[Scope], Callable[[str, Place], Value]],
        size_of: Callable[[Statement, Lanes], Number],
        report: Callable[[Diagnostic], None],
        program: Program,
    ) -> None:
        self.lookup = lookup
        self.size_of = size_of
        self.report = report
        self.program = program

    def expand(self, nodes: list[Node], scope: Scope) -> tuple[int, list[Piece]]:
        """The total size in bytes and the pieces of top-level nodes.

        Raises `ExpressionError` where the size is more than an address reaches.
        """
        sizes, pieces = self._body(nodes, Lanes(1, dict(scope)))
        if int(sizes[0]) > MAX_BYTES:
            tree = pieces[0].statement.tree
            raise ExpressionError(
                f"this takes {int(sizes[0])} bytes, more than the {MAX_BYTES} that an address reaches",
                tree.op_place,
            )
        return int(sizes[0]), pieces

    def evaluate(self, expression: Expression, lanes: Lanes) -> Value:
        """An expression's value over the lanes."""
        return evaluate(expression, self.lookup(lanes.scope), self.program)

    def _body(self, nodes: list[Node], lanes: Lanes) -> tuple[Ints, list[Piece]]:
        filled = np.zeros(lanes.count, dtype=np.int64)
        pieces: list[Piece] = []
        lanes = Lanes(lanes.count, dict(lanes.scope))  # .let is seen to the end of its block only
        for node in nodes:
            try:
                sizes, inner = self._node(node, lanes)
            except ExpressionError as problem:
                self.report(Diagnostic(problem.message, node.where.span(problem.place)))
                if isinstance(node, Let):
                    lanes.scope[node.name] = 0  # so that its uses are not reported as well
                continue
            for piece in inner:
                piece.offsets = piece.offsets + filled[piece.parents]
            filled = filled + sizes
            pieces += inner
        return filled, pieces

    def _node(self, node: Node, lanes: Lanes) -> tuple[Ints | int, list[Piece]]:
        if isinstance(node, Let):
            lanes.scope[node.name] = self._constant(node.value, lanes)
            return 0, []
        if isinstance(node, For):
            return self._for(node, lanes)
        if isinstance(node, If):
            return self._if(node, lanes)
        sizes = _spread(self.size_of(node, lanes), lanes.count)
        zero = np.zeros(lanes.count, dtype=np.int64)
        # A copy of the lanes: a later .let in the same block must not change this piece.
        frozen = Lanes(lanes.count, dict(lanes.scope))
        return sizes, [Piece(node, frozen, zero, sizes, np.arange(lanes.count))]

    def _constant(self, expression: Expression, lanes: Lanes) -> Number:
        value = self.evaluate(expression, lanes)
        if value.symbol is not None:
            known = [*lanes.scope, *self.program.constants]
            raise not_constant(value, expression.place, known)
        return value.number

    def _integers(self, expression: Expression, lanes: Lanes) -> Ints:
        number = self._constant(expression, lanes)
        if isinstance(number, float):
            raise ExpressionError(f"must be an integer, not {number}", expression.place)
        if isinstance(number, int) and abs(number) >= 2**62:
            raise ExpressionError(f"{number} is too large here", expression.place)
        return _spread(number, lanes.count)

    def _for(self, node: For, lanes: Lanes) -> tuple[Ints, list[Piece]]:
        first, last = self._integers(node.first, lanes), self._integers(node.last, lanes)
        if node.name == REPT and (last < 0).any():
            raise ExpressionError(
                f"the count is {last.min()}, must not be negative", node.last.place
            )
        counts = np.maximum(last - first, 0)
        if counts.sum(dtype=float) > MAX_LANES:
            raise ExpressionError(
                f"the loop has {int(counts.sum())} iterations, must be at most {MAX_LANES}",
                Place(node.first.place.start, node.last.place.end),
            )
        parents = np.repeat(np.arange(lanes.count), counts)
        inner = lanes.select(parents)
        start_of_parent = np.cumsum(counts) - counts
        inner.scope[node.name] = np.arange(len(parents)) - start_of_parent[parents] + first[parents]
        sizes, pieces = self._body(node.body, inner)
        before = np.cumsum(sizes) - sizes
        # A parent's iterations are neighbours, so the first one's offset is where the parent begins.
        begin = np.zeros(lanes.count, dtype=np.int64)
        has = counts > 0
        begin[has] = before[start_of_parent[has]]
        within = before - begin[parents]
        for piece in pieces:
            piece.offsets = piece.offsets + within[piece.parents]
            piece.parents = parents[piece.parents]
        totals = np.zeros(lanes.count, dtype=np.int64)
        np.add.at(totals, parents, sizes)
        return totals, pieces

    def _if(self, node: If, lanes: Lanes) -> tuple[Ints, list[Piece]]:
        left = np.ones(lanes.count, dtype=bool)
        totals = np.zeros(lanes.count, dtype=np.int64)
        pieces: list[Piece] = []
        for condition, body in node.branches:
            chosen = left.copy()
            if condition is not None:
                chosen &= self._integers(condition, lanes) != 0
            left &= ~chosen
            parents = np.flatnonzero(chosen)
            if not parents.size:
                continue
            sizes, inner = self._body(body, lanes.select(parents))
            totals[parents] = sizes
            for piece in inner:
                piece.parents = parents[piece.parents]
            pieces += inner
        return totals, pieces


def _spread(number: Number, count: int) -> NDArray[np.int64]:
    if isinstance(number, np.ndarray):
        return number
    return np.full(count, number, dtype=np.int64)
