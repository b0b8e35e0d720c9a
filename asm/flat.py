"""Runs of plain lines: all lines of a shape become one statement with a lane for each line."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

import numpy as np

from cim.asm.batches import FlatRun
from cim.asm.blocks import Statement
from cim.asm.data import ELEMENT_BYTES, element_bytes
from cim.asm.expansion import Lanes, OwnLines, Piece
from cim.asm.expressions import Ints, Number
from cim.asm.shapes import PLACEHOLDER, SLOT, Template, parse_line
from cim.asm.syntax import Line

WORD_BYTES = 8


def statements_of(run: FlatRun) -> Iterator[Statement]:
    """The lines of a run one by one, as the parser gives them."""
    for index in range(len(run)):
        yield statement_at(run, index)


def statement_at(run: FlatRun, index: int) -> Statement:
    """Line `index` of a run, as the parser gives it."""
    where = run.where(index)
    return Statement(where, parse_line(where.source.line(where.line)))


def groups_of(run: FlatRun) -> list[Ints]:
    """The positions in the run of the lines of each shape, in order."""
    order = np.argsort(run.shapes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(run.shapes[order])) + 1)


def sizes_of(run: FlatRun) -> Ints:
    """The bytes of each line. Raises `ExpressionError` for a data directive without values."""
    sizes = np.zeros(len(run.templates), dtype=np.int64)
    for shape in np.unique(run.shapes).tolist():
        tree = tree_of(run, shape)
        sizes[shape] = element_bytes(tree) if tree.op in ELEMENT_BYTES else WORD_BYTES
    return sizes[run.shapes]


def tree_of(run: FlatRun, shape: int) -> Line:
    """The tree that lines of a shape share, with slots for numbers."""
    return _template(run, shape).tree


def _template(run: FlatRun, shape: int) -> Template:
    template = run.templates[shape]
    assert template is not None  # lines without one are in no run
    return template


def piece_of(run: FlatRun, indices: Ints, offsets: Ints, sizes: Ints) -> Piece:
    """The lines of one shape as a single piece; offsets and sizes are those of the whole run's lines."""
    template = _template(run, int(run.shapes[indices[0]]))
    starts = run.starts[indices]
    scope: dict[str, Number] = {
        f"{SLOT}{slot}": run.numbers[starts + slot] for slot in range(len(template.starts))
    }
    count = len(indices)
    statement = Statement(run.where(int(indices[0])), template.tree)
    lanes, parents = Lanes(count, scope), np.arange(count)

    def columns(column: int) -> Ints:
        slots = np.arange(bisect_left(template.starts, column))
        wider = run.widths[starts[:, None] + slots] - len(PLACEHOLDER)
        return np.asarray(column + wider.sum(axis=1))

    own = OwnLines(indices - indices[0], columns)
    return Piece(statement, lanes, offsets[indices], sizes[indices], parents, own)


def single_piece(run: FlatRun, index: int, offsets: Ints, sizes: Ints) -> Piece:
    """One line of a run as a piece of its own."""
    here = slice(index, index + 1)
    return Piece(statement_at(run, index), Lanes(1, {}), offsets[here], sizes[here], np.arange(1))
