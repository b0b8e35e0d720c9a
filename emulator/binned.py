"""Intervals of time added up in equal parts of a run, piece by piece."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Binned:
    """Cycles that intervals share with the parts between `edges`, by row.

    An interval [begin, end) is that which is left of [begin, infinity) without [end, infinity); of such a
    half-line, the part in which it begins has the distance to the part's end, each later one its whole width.
    """

    def __init__(self, rows: int, edges: NDArray[np.int64]) -> None:
        self.edges = edges
        self.shape = (rows, edges.size - 1)
        self._first = np.zeros(rows * (edges.size - 1), dtype=np.float64)
        self._count = np.zeros(rows * (edges.size - 1), dtype=np.float64)

    def add(
        self, rows: NDArray[np.int64], begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> None:
        """Add intervals, each to its row; what lies outside the edges is cut off."""
        for times, sign in ((begins, 1.0), (ends, -1.0)):
            inside = times < self.edges[-1]
            clipped = np.maximum(times[inside], self.edges[0])
            part = np.searchsorted(self.edges, clipped, side="right") - 1
            at = rows[inside] * self.shape[1] + part
            left = (self.edges[part + 1] - clipped) * sign
            size = self._first.size
            self._first += np.bincount(at, weights=left, minlength=size)
            self._count += np.bincount(at, minlength=size) * sign

    def cycles(self) -> NDArray[np.float64]:
        """[row][part] cycles."""
        count = self._count.reshape(self.shape)
        earlier = np.cumsum(count, axis=1) - count
        return self._first.reshape(self.shape) + earlier * np.diff(self.edges)


def equal_parts(first: int, stop: int, most: int) -> NDArray[np.int64]:
    """Edges of at most so many parts of [first, stop), each of at least one cycle and nearly alike."""
    stop = max(stop, first + 1)
    return np.unique(np.linspace(first, stop, min(most, stop - first) + 1).astype(np.int64))
