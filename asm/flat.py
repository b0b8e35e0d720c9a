"""Runs of plain instructions: all lines of a shape become one statement with a lane for each line."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from cim.asm.blocks import FlatRun, Statement
from cim.asm.expansion import Lanes, Piece
from cim.asm.expressions import Ints, Number
from cim.asm.shapes import SLOT, fill

WORD_BYTES = 8


def statements_of(run: FlatRun) -> Iterator[Statement]:
    """The lines of a run one by one, as the parser would give them."""
    for index in range(len(run.wheres)):
        yield statement_at(run, index)


def statement_at(run: FlatRun, index: int) -> Statement:
    """Line `index` of a run, as the parser would give it."""
    return Statement(run.wheres[index], fill(run.templates[index], run.literals[index]))


def groups_of(run: FlatRun) -> list[Ints]:
    """The positions in the run of the lines of each shape, in the order of their first lines."""
    numbers: dict[int, int] = {}
    group = np.fromiter(
        (numbers.setdefault(id(template), len(numbers)) for template in run.templates),
        dtype=np.int64,
        count=len(run.templates),
    )
    order = np.argsort(group, kind="stable")
    return np.split(order, np.cumsum(np.bincount(group, minlength=len(numbers)))[:-1])


def piece_of(run: FlatRun, indices: Ints) -> Piece | None:
    """The lines of one shape as a single piece; None where a number is not a plain integer."""
    template = run.templates[int(indices[0])]
    literals = [run.literals[int(index)] for index in indices]
    scope: dict[str, Number] = {}
    for slot in range(len(template.starts)):
        values = _integers([line[slot] for line in literals])
        if values is None:
            return None
        scope[f"{SLOT}{slot}"] = values
    count = len(indices)
    statement = Statement(run.wheres[int(indices[0])], template.tree)
    sizes = np.full(count, WORD_BYTES, dtype=np.int64)
    lanes, offsets = Lanes(count, scope), indices * WORD_BYTES
    return Piece(statement, lanes, offsets, sizes, np.arange(count), is_run=True)


def single_piece(run: FlatRun, index: int) -> Piece:
    """One line of a run as a piece of its own."""
    one = np.ones(1, dtype=np.int64)
    return Piece(
        statement_at(run, index), Lanes(1, {}), one * index * WORD_BYTES, one * WORD_BYTES, one * 0
    )


def _integers(texts: list[str]) -> NDArray[np.int64] | None:
    """Decimal and hexadecimal literals as an array; None where one is of another kind."""
    try:
        values = [int(text) if text.isdecimal() else int(text, 16) for text in texts]
        if all(text.isdecimal() or text[1] in "xX" for text in texts):
            return np.array(values, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return None
