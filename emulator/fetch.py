"""The compiled fetch of instructions, block by block, into a double-buffered memory (spec/timing.md).

Jitted like `engine.py`, and like it imported only through `cim.emulator.compiled`. The functions work on the
engine's `State`; `me` is a core's position, its fetch port is `CORES` higher.
"""

# mypy: ignore-errors
# (numba's decorators and what they compile have no types)
from __future__ import annotations

from cim.emulator.channels import go_on, record
from cim.emulator.events import ASK_READ, push
from cim.emulator.layout import BLOCK, CORES, FETCH_CYCLES, FETCHING
from cim.emulator.values import inlined


@inlined
def begin_fetch(s, me, start):
    """The fetch port of a core asks for the next block of its program."""
    core = s.cores[me]
    port = s.cores[s.scalars[CORES] + me]
    begin = core.first + core.fetched * s.scalars[BLOCK]
    core.fetching = 1
    port.address = core.program + 8 * (begin - core.first)
    port.stop = core.program + 8 * (min(begin + s.scalars[BLOCK], core.end) - core.first)
    port.next = port.address
    port.head = port.address
    port.asked = start
    push(s.heap, s.calendar, start, ASK_READ, s.scalars[CORES] + me)


@inlined
def may_fetch(s, core):
    """Whether there is a next block, and its half of the instruction memory is free."""
    more = core.first + core.fetched * s.scalars[BLOCK] < core.end
    return more and core.fetched <= core.block + 1


@inlined
def end_block(s, me, now):
    """A core has completed the last instruction of a block; its half of the memory can be filled anew."""
    core = s.cores[me]
    core.block += 1
    core.block_end = min(core.block_end + s.scalars[BLOCK], core.end)
    if core.fetching == 0 and may_fetch(s, core):
        begin_fetch(s, me, max(now, core.fetched_at))
    if core.fetched <= core.block:
        core.starved = 1
    else:
        resume(s, me, max(now, core.fetched_at) if core.fetched == core.block + 1 else now)


@inlined
def resume(s, me, time):
    """The block that a core needs next is there."""
    core = s.cores[me]
    if time > core.time:
        record(s, FETCHING, 0, me, core.pc, core.time, core.time, time)
        s.counters[me, FETCH_CYCLES] += time - core.time
    core.time = time
    go_on(s, me)


@inlined
def end_fetch(s, me, time):
    """A block has come."""
    core = s.cores[me]
    core.fetched += 1
    core.fetched_at = time
    core.fetching = 0
    if may_fetch(s, core):
        begin_fetch(s, me, time)
    if core.starved:
        core.starved = 0
        resume(s, me, time)
