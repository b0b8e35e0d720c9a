"""The compiled queue of events against a sorted list."""

from __future__ import annotations

import numba
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.emulator import events, layout
from cim.emulator.state import empty_calendar

MOST = 60


# The jitted functions are for other jitted functions only.
@numba.njit
def push(heap, calendar, time, kind, number):
    events.push(heap, calendar, time, kind, number)


@numba.njit
def pop(heap):
    return events.pop_heap(heap)


@numba.njit
def next_cycle(heap, calendar):
    return events.next_cycle(heap, calendar)


@numba.njit
def begin_cycle(heap, calendar, now):
    return events.begin_cycle(heap, calendar, now)


@numba.njit
def lowest_bit(word):
    return events.lowest_bit(word)


# How far ahead events are: in this cycle, near, at the edges of the calendar, far.
AHEAD = st.one_of(
    st.integers(0, 70),
    st.integers(layout.SPAN - 70, layout.SPAN + 2),
    st.integers(0, 3 * layout.SPAN),
    st.just(layout.LAST_TIME),
)
EVENT = st.tuples(AHEAD, st.integers(0, 10), st.integers(0, 2**18 - 1))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(EVENT, max_size=6), min_size=1, max_size=10))
def test_events_come_by_cycle_kind_and_number(steps: list[list[tuple[int, int, int]]]) -> None:
    """Each step adds events and then takes all those of the next cycle that has any."""
    heap = np.zeros(MOST + 1, dtype=np.int64)
    calendar = empty_calendar(MOST)
    pending: list[tuple[int, int, int]] = []
    now = 0
    begin_cycle(heap, calendar, now)
    while (steps or pending) and now < layout.HORIZON:  # which no run passes
        for ahead, kind, number in steps.pop(0) if steps else []:
            time = min(now + ahead, layout.LAST_TIME)
            push(heap, calendar, now + ahead, kind, number)
            pending.append((time, kind, number))
        pending.sort()
        due = next_cycle(heap, calendar)
        assert due == (pending[0][0] if pending else layout.NEVER)
        if not pending:
            continue
        now = due
        alone = begin_cycle(heap, calendar, now)
        while pending and pending[0][0] == now:
            key = alone or pop(heap)
            alone = 0
            time, kind, number = pending.pop(0)
            assert key == time << events.TIME_SHIFT | kind << events.KIND_SHIFT | number


@given(st.integers(0, 63), st.integers(0, 2**64 - 1))
def test_lowest_bit(place: int, above: int) -> None:
    word = (above << place | 1 << place) % 2**64
    assert lowest_bit(np.uint64(word)) == place
