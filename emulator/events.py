"""The compiled queue of events.

The events of each of the next `SPAN` cycles are in a list of their own, in no order: to add one and to find the
next cycle with any takes the same time for a thousand cores as for one. What lies further ahead, and the events
of the cycle in progress, which come in the order of their keys, are in a binary heap.

Jitted like `engine.py`, and like it imported only through `cim.emulator.compiled`.
"""

# ruff: noqa: I001  (imports in few lines)
# mypy: ignore-errors
# (numba's decorators and what they compile have no types)
from __future__ import annotations

import numpy as np
from numba import types
from numba.extending import intrinsic

from cim.emulator.layout import (
    FREE_NODE, LAST_TIME, LISTS, NEVER, PRESENT, SPAN, SUMMARY, USED,
)  # fmt: skip
from cim.emulator.values import inlined, jitted

# Kinds of events. A fault comes before everything else of its cycle, a write at the banks before a read, and what has
# waited for an arrival after it.
# They are NumPy's integers, since numba would compile a function anew for each Python int that it is given.
(
    FAULT, WRITE_AT_BANKS, READ_AT_BANKS, ASK_READ, DATA_READY, ASK_WRITE, RESPONSE_READY, ADMIT,
    BLOCK_END, CALL_ARRIVES, GO_ON, PAST_LIMIT,
) = np.arange(12)  # fmt: skip
KIND_SHIFT = 18
TIME_SHIFT = 22
NUMBER_MASK = (1 << KIND_SHIFT) - 1
KIND_MASK = (1 << (TIME_SHIFT - KIND_SHIFT)) - 1


@intrinsic
def lowest_bit(_, word):
    """The place of the lowest bit of a `uint64` that is not 0."""

    def generate(context, builder, _, arguments):
        return builder.cttz(arguments[0], context.get_constant(types.boolean, True))

    return types.int64(word), generate


@jitted
def push(heap, calendar, time, kind, number):
    """Add an event of a cycle that is not past."""
    key = (min(time, LAST_TIME) << TIME_SHIFT) | (kind << KIND_SHIFT) | number
    ahead = time - calendar[PRESENT]
    if 0 < ahead < SPAN:
        node = calendar[FREE_NODE]
        calendar[FREE_NODE] = calendar[node + 1]
        place = time & (SPAN - 1)
        first = calendar[LISTS + place]
        if first == 0:
            word = place >> 6
            calendar[USED + word] |= np.int64(1) << (place & 63)
            calendar[SUMMARY] |= np.int64(1) << word
        calendar[node] = key
        calendar[node + 1] = first
        calendar[LISTS + place] = node
    else:
        push_heap(heap, key)


@jitted
def push_heap(heap, key):
    """The heap begins at index 1; heap[0] is the number of its keys."""
    heap[0] += 1
    at = heap[0]
    while at > 1 and heap[at >> 1] > key:
        heap[at] = heap[at >> 1]
        at >>= 1
    heap[at] = key


@inlined
def pop_heap(heap):
    first = heap[1]
    last = heap[heap[0]]
    heap[0] -= 1
    count = heap[0]
    at = 1
    while True:
        child = 2 * at
        if child > count:
            break
        if child < count and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return first


@inlined
def next_cycle(heap, calendar):
    """The next cycle that has an event, NEVER if there is none."""
    time = NEVER
    if heap[0] > 0:
        time = heap[1] >> TIME_SHIFT
    summary = np.uint64(calendar[SUMMARY])
    if summary != np.uint64(0):
        after = calendar[PRESENT] + 1
        start = after & (SPAN - 1)
        word = start >> 6
        rest = np.uint64(calendar[USED + word]) >> np.uint64(start & 63)
        if rest != np.uint64(0):
            time = min(time, after + lowest_bit(rest))
        else:
            # The words after this one come first, then those before it, and last what is left of it.
            later = (summary >> np.uint64(word)) & ~np.uint64(1)
            found = word + lowest_bit(later) if later != np.uint64(0) else lowest_bit(summary)
            place = 64 * found + lowest_bit(np.uint64(calendar[USED + found]))
            time = min(time, after + ((place - start) & (SPAN - 1)))
    return time


@inlined
def begin_cycle(heap, calendar, now):
    """Have the events of the next cycle in the heap; if there is one alone, return it instead, and else 0."""
    calendar[PRESENT] = now
    place = now & (SPAN - 1)
    node = calendar[LISTS + place]
    if node == 0:
        return np.int64(0)
    calendar[LISTS + place] = 0
    word = place >> 6
    calendar[USED + word] &= ~(np.int64(1) << (place & 63))
    if calendar[USED + word] == 0:
        calendar[SUMMARY] &= ~(np.int64(1) << word)
    first = calendar[node]
    is_alone = calendar[node + 1] == 0 and (heap[0] == 0 or heap[1] >> TIME_SHIFT != now)
    while node != 0:
        if not is_alone:
            push_heap(heap, calendar[node])
        after = calendar[node + 1]
        calendar[node + 1] = calendar[FREE_NODE]
        calendar[FREE_NODE] = node
        node = after
    return first if is_alone else np.int64(0)
