"""What the compiled engine is built on: who goes on, the trace, the arbiters of the channels, bursts.

The functions that take `s` work on the engine's `State`.
"""

# mypy: ignore-errors
# (numba's decorators and what they compile have no types)
from __future__ import annotations

import numpy as np

from cim.emulator import layout
from cim.emulator.events import lowest_bit
from cim.emulator.layout import OLDEST_FIRST, TRACED
from cim.emulator.values import inlined, jitted

# --- cores ---------------------------------------------------------------------------------------------------


@inlined
def go_on(s, me):
    """Have a core go on in this cycle."""
    s.ready[0] += 1
    s.ready[s.ready[0]] = me


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
def ask(s, number, me):
    """A core asks for a channel, which takes part in arbitration from this cycle on."""
    channel = s.channels[number]
    if channel.listed == 0:
        channel.listed = 1
        s.asked[0] += 1
        s.asked[s.asked[0]] = number
    place = place_of(channel, s.members, me)
    if s.scalars[OLDEST_FIRST]:
        at = channel.last + channel.pending
        if at >= channel.words:
            at -= channel.words
        s.requests[channel.words_at + at] = place
    else:
        bit = np.uint64(1) << np.uint64(place & 63)
        s.requests[channel.words_at + (place >> 6)] |= bit
    channel.pending += 1


@jitted
def choose_oldest(channel, requests):
    """The place that has waited longest; its request is taken off."""
    place = np.int64(requests[channel.words_at + channel.last])
    channel.last += 1
    if channel.last == channel.words:
        channel.last = 0
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
def beats_of(begin, stop, shift):
    """Beats of 2**shift bytes."""
    return ((stop - 1) >> shift) - (begin >> shift) + 1
