"""What the compiled engine is built on: the heap of events, the trace, the arbiters of the channels, bursts.

The functions that take `s` work on the engine's `State`.
"""

# mypy: ignore-errors
# (numba's decorators and what they compile have no types)
from __future__ import annotations

import numpy as np

from cim.emulator import layout
from cim.emulator.layout import LAST_TIME, OLDEST_FIRST, TRACED
from cim.emulator.values import inlined, jitted

# Kinds of events. A fault comes before everything else of its cycle, a write at the banks before a read.
(
    FAULT, WRITE_AT_BANKS, READ_AT_BANKS, ASK_READ, DATA_READY, ASK_WRITE, RESPONSE_READY, CHANNEL_FREE,
    BLOCK_END, CALL_ARRIVES, GO_ON, PAST_LIMIT,
) = range(12)  # fmt: skip
KIND_SHIFT = 18
TIME_SHIFT = 22
NUMBER_MASK = (1 << KIND_SHIFT) - 1
KIND_MASK = (1 << (TIME_SHIFT - KIND_SHIFT)) - 1

# --- events: a binary heap of keys from index 1 on, heap[0] is their number -------------------------------


@jitted
def push(heap, time, kind, number):
    key = (min(time, LAST_TIME) << TIME_SHIFT) | (kind << KIND_SHIFT) | number
    heap[0] += 1
    at = heap[0]
    while at > 1 and heap[at >> 1] > key:
        heap[at] = heap[at >> 1]
        at >>= 1
    heap[at] = key


@jitted
def pop(heap):
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


# --- the trace ---------------------------------------------------------------------------------------------


@inlined
def record(s, kind, channel, core, at, since, begin, end):
    """One record of the trace, if there is one. The callers see to it that there is room."""
    if s.trace.size > 0:
        one = s.trace[s.scalars[TRACED]]
        one.kind = kind
        one.channel = channel
        one.core = core
        one.at = at
        one.since = since
        one.begin = begin
        one.end = end
        s.scalars[TRACED] += 1


# --- channels: requests as bitmaps, granted in turn, or in a ring, granted by age -----------------------


@jitted
def place_of(channel, members, core):
    """A core's place among the members of a channel; members are sorted."""
    if channel.members == 0:
        return core
    low = channel.members_at
    high = low + channel.members
    while low < high:
        middle = (low + high) >> 1
        if members[middle] < core:
            low = middle + 1
        else:
            high = middle
    return low - channel.members_at


@inlined
def touch(s, number):
    """Have a channel take part in the arbitration of this cycle."""
    if s.channels[number].dirty == 0:
        s.channels[number].dirty = 1
        s.dirty[0] += 1
        s.dirty[s.dirty[0]] = number


@inlined
def ask(s, number, me):
    """A core asks for a channel."""
    channel = s.channels[number]
    place = place_of(channel, s.members, me)
    if s.scalars[OLDEST_FIRST]:
        at = (channel.last + channel.pending) % channel.words
        s.requests[channel.words_at + at] = place
    else:
        bit = np.uint64(1) << np.uint64(place & 63)
        s.requests[channel.words_at + (place >> 6)] |= bit
    channel.pending += 1
    touch(s, number)


@jitted
def lowest_bit(word):
    at = 0
    for step in (32, 16, 8, 4, 2, 1):
        if word & ((np.uint64(1) << np.uint64(step)) - np.uint64(1)) == np.uint64(0):
            word >>= np.uint64(step)
            at += step
    return at


@jitted
def choose_oldest(channel, requests):
    """The place that has waited longest; its request is taken off."""
    place = np.int64(requests[channel.words_at + channel.last])
    channel.last = (channel.last + 1) % channel.words
    channel.pending -= 1
    return place


@jitted
def choose_next(channel, bitmaps):
    """The first pending place after the last granted one, cyclically; its request is taken off."""
    start = channel.last + 1
    index = start >> 6
    skipped = np.uint64(start & 63)
    if index == channel.words:
        index = 0
        skipped = np.uint64(0)
    at = channel.words_at + index
    word = (bitmaps[at] >> skipped) << skipped
    while word == np.uint64(0):
        index += 1
        if index == channel.words:
            index = 0
        at = channel.words_at + index
        word = bitmaps[at]
    bit = lowest_bit(word)
    bitmaps[at] &= ~(np.uint64(1) << np.uint64(bit))
    channel.last = index * 64 + bit
    channel.pending -= 1
    return channel.last


burst_stop = jitted(layout.burst_stop)


@jitted
def beats_of(begin, stop, width):
    return (stop + width - 1) // width - begin // width
