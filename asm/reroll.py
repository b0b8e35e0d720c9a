"""Finds the loops in a straight line of items: runs of equal shapes whose values are progressions.

An item has a shape (a number: equal shapes differ in values only) and some integers. A loop is an item too,
of the values of its first iteration, so that loops of loops are found in the same way.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cim.asm.progressions import Progression, fit

MOST_ITEMS = 2048  # in a body
MOST_TRIES = 6  # body lengths, at one place
FEWEST_ITERATIONS = 3
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Loop:
    """`count` iterations of `body`. `progressions` has one entry a value of the body's items."""

    count: int
    body: tuple[Item, ...]
    progressions: tuple[Progression, ...]

    @property
    def lines(self) -> int:
        """Lines of text that it takes."""
        return 2 + sum(item.lines for item in self.body)


@dataclass(frozen=True)
class Item:
    """`what` is a loop, or a number of the caller's. `outer` is how a loop around it moves the values."""

    shape: int
    values: Ints
    what: Loop | int
    outer: tuple[Progression, ...] = ()

    @property
    def lines(self) -> int:
        """Lines of text that it takes."""
        return self.what.lines if isinstance(self.what, Loop) else 1


class Roller:
    """Rolls items into loops; gives the shapes of what it makes numbers that are not in use."""

    def __init__(self) -> None:
        self.shapes: dict[Hashable, int] = {}

    def shape(self, key: Hashable) -> int:
        """The number of a shape."""
        return self.shapes.setdefault(key, len(self.shapes))

    def roll(self, items: list[Item]) -> list[Item]:
        """The same items with loops, and loops of loops, in their place."""
        while len(rolled := self._pass(items)) < len(items):
            items = rolled
        return items

    def _pass(self, items: list[Item]) -> list[Item]:
        if len(items) < FEWEST_ITERATIONS:
            return items
        line = _Line(items)
        made: list[Item] = []
        at = 0
        while at < len(items):
            found = line.best_loop(at)
            if found is None:
                made.append(items[at])
                at += 1
                continue
            length, count, progressions = found
            made.append(self._loop(items[at : at + length], count, progressions))
            at += length * count
        return made

    def _loop(self, body: list[Item], count: int, progressions: list[Progression]) -> Item:
        outer = tuple(p for item in body for p in item.outer)
        # Inside, items are alike only if this loop moves them alike.
        inner = []
        at = 0
        for item in body:
            own = tuple(progressions[at : at + len(item.values)])
            at += len(own)
            inner.append(Item(self.shape((item.shape, own)), item.values, item.what, own))
        # Once only: a loop around the loop around would have to be told apart from this one.
        rolled = inner if outer else self.roll(inner)
        own = tuple(p for item in rolled for p in item.outer)
        loop = Loop(count, tuple(rolled), own)
        values = np.concatenate([np.zeros(0, dtype=np.int64), *[item.values for item in rolled]])
        shape = self.shape((count, tuple(item.shape for item in rolled), own))
        return Item(shape, values, loop, outer)


class _Line:
    """Items as arrays: shapes, and all values after each other."""

    def __init__(self, items: list[Item]) -> None:
        self.shapes = np.array([item.shape for item in items], dtype=np.int64)
        self.raw = self.shapes.tobytes()
        self.values = np.concatenate([item.values for item in items])
        self.starts = np.cumsum([0, *[len(item.values) for item in items]])
        self.lines = np.cumsum([0, *[item.lines for item in items]])
        # The next place with the same shape, for each place.
        order = np.argsort(self.shapes, kind="stable")
        after = np.full(len(items), len(items), dtype=np.int64)
        same = self.shapes[order[1:]] == self.shapes[order[:-1]]
        after[order[:-1][same]] = order[1:][same]
        self.after: list[int] = after.tolist()

    def best_loop(self, at: int) -> tuple[int, int, list[Progression]] | None:
        """Body length, iterations and progressions of the loop that saves most lines here."""
        best = None
        most = 0
        tries = 0
        place = self.after[at]
        while place - at <= MOST_ITEMS and place < len(self.shapes) and tries < MOST_TRIES:
            length = place - at
            place = self.after[place]
            if not self._repeats(at, length):
                continue
            tries += 1
            count, progressions = self._fit(at, length)
            body = int(self.lines[at + length] - self.lines[at])
            saved = (count - 1) * body - 2
            if count >= FEWEST_ITERATIONS and saved > most:
                best, most = (length, count, progressions), saved
        return best

    def _repeats(self, at: int, length: int) -> bool:
        first = self.raw[8 * at : 8 * (at + length)]
        two = self.raw[8 * (at + length) : 8 * (at + 3 * length)]
        return two == first + first

    def _fit(self, at: int, length: int) -> tuple[int, list[Progression]]:
        rows = 16
        while True:
            count = self._count(at, length, rows)
            values = self.values[self.starts[at] : self.starts[at + count * length]]
            fitted, progressions = fit(values.reshape(count, len(values) // count))
            if fitted < rows:
                return fitted, progressions
            rows *= 8

    def _count(self, at: int, length: int, most: int) -> int:
        """Iterations of equal shapes, as far as `most`."""
        shapes = self.shapes[at : at + most * length]
        whole = shapes[: len(shapes) // length * length].reshape(-1, length)
        bad = np.flatnonzero((whole != whole[0]).any(axis=1))
        return int(bad[0]) if bad.size else len(whole)
