"""Many lines at once: runs of plain lines are found by the shapes of a whole batch of lines.

A batch is cut by one pass over its text, which takes out the plain integers. What is left of a line is looked at
once for all lines that share it, by `cut` and the grammar. A line that is anything but an instruction or data with
plain integers (a label, a float, a string, a mistake) is none of a run, and goes the way of single lines.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from cim.asm.expressions import Ints
from cim.asm.shapes import PLACEHOLDER, Template, cut, names_in, template_of
from cim.asm.where import Where
from cim.diagnostics import Source

BATCH_LINES = 65536
MIN_RUN = 16  # shorter runs are quicker line by line
_WORD = "A-Za-z0-9_.$"
# No more digits than 63 bits hold: what is longer stays in the text, and the line is none of a run.
_INTEGER = re.compile(
    rf"(?<![{_WORD}])(0[xX][0-9a-fA-F]{{1,15}}|0|[1-9][0-9]{{0,17}})(?![{_WORD}])"
)


@dataclass(frozen=True, slots=True)
class FlatRun:
    """Plain lines, one after another, not yet made into trees.

    Line i is `templates[shapes[i]]` filled with the numbers from `starts[i]` on; it stands at line
    `first_line + i` of the source.
    """

    source: Source
    first_line: int
    templates: list[Template | None]
    shapes: NDArray[np.int32]
    starts: Ints
    numbers: Ints
    widths: Ints  # of the numbers as they are written

    def __len__(self) -> int:
        return len(self.shapes)

    def where(self, index: int) -> Where:
        """The place of line `index` of the run."""
        return Where(self.source, self.first_line + index)

    def lines(self) -> Iterator[tuple[Where, str]]:
        """Place and text of each line."""
        for index in range(len(self)):
            where = self.where(index)
            yield where, self.source.line(where.line)


class _Numbering(dict[str, int]):
    """Gives each new key the next number."""

    def __missing__(self, key: str) -> int:
        self[key] = number = len(self)
        return number


class Batch:
    """Up to `BATCH_LINES` lines of a source, from position `begin` in its list of lines on."""

    def __init__(self, source: Source, begin: int) -> None:
        self.source = source
        self.begin = begin
        self.lines = source.lines[begin : begin + BATCH_LINES]
        self.end = begin + len(self.lines)
        # Texts and integers take turns.
        parts = _INTEGER.split("\n".join(self.lines))
        self.literals = parts[1::2]
        shapes = PLACEHOLDER.join(parts[::2]).split("\n")
        numbering = _Numbering()
        self.shapes = np.fromiter(
            map(numbering.__getitem__, shapes), dtype=np.int32, count=len(shapes)
        )
        self.texts = list(numbering)
        self.templates = [_plain_template(text) for text in self.texts]
        self.ops = [template.tree.op if template else None for template in self.templates]

    def mark(self, words: Collection[str]) -> None:
        """Set which lines are plain and begin with one of `words`."""
        plain = np.array([op in words for op in self.ops], dtype=np.uint8)
        self.plain = plain[self.shapes].tobytes()

    def run_at(self, position: int) -> FlatRun | None:
        """The run that begins at this position in the source's list of lines, if there is one."""
        first = position - self.begin
        last = self.plain.find(0, first)
        last = len(self.plain) if last < 0 else last
        if last - first < MIN_RUN:
            return None
        return FlatRun(
            self.source, self.source.first_line + position, self.templates, self.shapes[first:last],
            self._starts[first:last], self._numbers, self._widths,
        )  # fmt: skip

    @cached_property
    def _starts(self) -> Ints:
        """For each line the position of its first integer."""
        counts = np.array([len(_INTEGER.findall(text)) for text in self.texts], dtype=np.int64)
        per_line = counts[self.shapes]
        return np.cumsum(per_line) - per_line

    @cached_property
    def _widths(self) -> Ints:
        return np.fromiter(map(len, self.literals), dtype=np.int64, count=len(self.literals))

    @cached_property
    def _numbers(self) -> Ints:
        return np.array([int(literal, 0) for literal in self.literals], dtype=np.int64)


def batch_at(source: Source, position: int, words: Collection[str]) -> Batch | None:
    """The lines from a position in the source's list on, if there are enough and `words` are given."""
    if not words or len(source.lines) - position < MIN_RUN:
        return None
    batch = Batch(source, position)
    batch.mark(words)
    return batch


@lru_cache(maxsize=65536)
def _plain_template(text: str) -> Template | None:
    """The parsed shape of a line whose plain integers have been taken out; None if it is not plain."""
    pieces = cut(text)
    # Quotes may hold what looks like a number.
    if set(pieces.literals) - {PLACEHOLDER} or set(pieces.shape) & set("\"'"):
        return None
    template = template_of(pieces.shape)
    if template is None or template.tree.labels or _depends_on_place(pieces.shape):
        return None
    return template


def _depends_on_place(shape: str) -> bool:
    """Whether a line names the current place or calls a function, which may depend on it."""
    return any(
        name[0] == "." or shape[name.end() :].lstrip().startswith("(") for name in names_in(shape)
    )
