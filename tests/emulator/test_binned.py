"""Cycles by parts of a run, against counting one cycle after another."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cim.emulator.binned import Binned, equal_parts

intervals = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(0, 40)), max_size=15
)


@given(intervals, intervals, st.integers(0, 30), st.integers(1, 60), st.integers(1, 9))
def test_every_cycle_is_counted_where_it_lies(one, two, first, length, most):
    edges = equal_parts(first, first + length, most)
    assert (edges[0], edges[-1]) == (first, first + length)
    assert 1 <= edges.size - 1 <= most
    binned = Binned(3, edges)
    for part in (one, two):
        rows, begins, lengths = np.array(part, dtype=np.int64).reshape(-1, 3).T
        binned.add(rows, begins, begins + lengths)
    wanted = np.zeros((3, edges.size - 1))
    for row, begin, size in [*one, *two]:
        for cycle in range(begin, begin + size):
            if first <= cycle < first + length:
                wanted[row, np.searchsorted(edges, cycle, side="right") - 1] += 1
    assert np.allclose(binned.cycles(), wanted)
