"""The compiled bus and memory: bursts, grants, banks and CALLs (spec/timing.md).

Jitted like `engine.py`, and like it imported only through `cim.emulator.compiled`. `s` and `v` are the arrays of
`state.py`. An *initiator* is a core's data port, by the core's position, or its fetch
port, `CORES` higher; both have a record in `s.cores`.
"""

# ruff: noqa: I001  (imports in few lines; a tuple costs time in jitted code)
# mypy: ignore-errors
# (numba's decorators and what they compile have no types)
from __future__ import annotations

import numpy as np

from cim.emulator.attributes import count_reads, make_valid
from cim.emulator.channels import (
    ask, beats_of, burst_stop, choose_next, choose_oldest, go_on, record,
)  # fmt: skip
from cim.emulator.events import (
    ASK_READ, ASK_WRITE, DATA_READY, READ_AT_BANKS, RESPONSE_READY, WRITE_AT_BANKS, push,
)  # fmt: skip
from cim.emulator.fetch import end_fetch
from cim.emulator.layout import (
    AR, ARRIVED, AW, B, BANK_CYCLES, BANKS, BEAT_SHIFT, BYTES_READ, BYTES_WRITTEN, CALL, CALL_CYCLES, CALLS_DONE,
    CALLS_ISSUED, CHANNELS_OF_TARGET, CORES, ENTRY_BYTES, EXECUTED, FIRST_OF_TARGETS, INTERLEAVE, LOAD,
    LOAD_CYCLES, MEMORY_READS, MEMORY_WRITES, NEVER, OLDEST_FIRST, ON_CHANNEL, R, READ_LATENCY, READ_OUTSTANDING,
    READS_DONE, READS_ISSUED, READS_PENDING, REGISTER_LATENCY, RETRY, SHARED, STALL_AR, STALL_AW, STALL_B, STALL_R,
    STALL_W, STORE_CYCLES, STORE_RESPONSE, STORED, VALUES, W, WAIT_CYCLES, WIDTH, WRITE_LATENCY, WRITE_OUTSTANDING,
    WRITES_DONE, WRITES_ISSUED, WRITES_PENDING,
)  # fmt: skip
from cim.emulator.values import inlined, read_bytes, write_bytes

UNKNOWN = -1  # when the data of a burst is ready, before it has reached the banks


@inlined
def begin_access(s, me, core, instruction, start):
    """Ask for AR or AW of the first burst."""
    if instruction.op == CALL:
        core.address, core.stop = 0, 1  # one beat at the target, whatever the width
        if s.scalars[SHARED] == 0:
            core.write_set = FIRST_OF_TARGETS + CHANNELS_OF_TARGET * np.int64(instruction.arg)
        else:
            core.write_set = AW
    else:
        kind = s.kinds[instruction.buffer]
        core.address = instruction.arg
        core.stop = (
            core.address + (np.int64(instruction.hi) - np.int64(instruction.lo)) * kind.bytes
        )
        core.write_set = AW
    core.next = core.address
    core.head = core.address
    core.asked = start
    push(s.heap, s.calendar, start, ASK_READ if instruction.op == LOAD else ASK_WRITE, me)


@inlined
def complete(s, me, time, counter):
    """The access or WAIT of a core is done: count its cycles and have it go on."""
    core = s.cores[me]
    record(s, EXECUTED, 0, me, core.pc, core.time, core.time, time)
    s.counters[me, counter] += time - core.time
    core.pc += 1
    core.time = time
    go_on(s, me)


@inlined
def add_call(s, target, now):
    """A CALL reaches its target."""
    core = s.cores[target]
    core.seq_nr = (core.seq_nr + 1) & 0xFFFFFFFF
    if core.waiting and core.seq_nr >= core.goal:
        core.waiting = 0
        complete(s, target, max(now, core.time), WAIT_CYCLES)


# --- memory ----------------------------------------------------------------------------------------------------


@inlined
def pass_banks(s, port, begin, stop, now):
    """When the last of a burst's units begins to be served, one unit of the interleave after the other."""
    latest = now
    free = s.banks[port]
    for unit in range(begin // s.scalars[INTERLEAVE], (stop - 1) // s.scalars[INTERLEAVE] + 1):
        bank = unit % s.scalars[BANKS]
        served = max(now, free[bank])
        free[bank] = served + s.scalars[BANK_CYCLES]
        latest = max(latest, served)
    return latest


@inlined
def reach_banks_read(s, me, now):
    """A burst of an initiator reaches the memory; where loads are counted, those before it may still wait there."""
    core = s.cores[me]
    core.held += 1
    if core.held == 1:
        serve_reads(s, me, now)


@inlined
def serve_reads(s, me, now):
    """The bursts of an initiator that have reached the memory are served, in order, as far as they can be."""
    core = s.cores[me]
    counted = me < s.scalars[CORES] and s.program[core.pc].a == 1
    place = core.oldest
    begin = core.head
    stop = burst_stop(begin, core.stop, s.scalars[WIDTH])
    while s.ring[me, place & (s.ring.shape[1] - 1)] != UNKNOWN:
        place += 1
        begin = stop
        stop = burst_stop(begin, core.stop, s.scalars[WIDTH])
    while core.held > 0:
        size = s.scalars[ENTRY_BYTES]
        if counted and not count_reads(s.attributes, size, begin, stop, me, core):
            return
        ready = now + s.scalars[READ_LATENCY]
        if s.scalars[BANKS] > 0:
            ready = pass_banks(s, 0, begin, stop, now) + s.scalars[READ_LATENCY]
        s.ring[me, place & (s.ring.shape[1] - 1)] = ready
        if place == core.oldest:
            push(s.heap, s.calendar, max(ready, core.drained), DATA_READY, me)
        core.held -= 1
        place += 1
        begin = stop
        stop = burst_stop(begin, core.stop, s.scalars[WIDTH])


@inlined
def reach_banks_write(s, me, now):
    """The same for a burst of a store, whose response follows those of the older ones."""
    core = s.cores[me]
    mask = s.ring.shape[1] - 1
    # `head` is the oldest burst that has not arrived; the ready times of those before are final.
    place = core.oldest + core.responses
    begin = core.head
    stop = burst_stop(begin, core.stop, s.scalars[WIDTH])
    before = now
    while s.ring[me, place & mask] != UNKNOWN:
        before = s.ring[me, place & mask]
        place += 1
        begin = stop
        stop = burst_stop(begin, core.stop, s.scalars[WIDTH])
    port = s.banks.shape[0] - 1
    ready = max(before, pass_banks(s, port, begin, stop, now) + s.scalars[WRITE_LATENCY])
    s.ring[me, place & mask] = ready
    push(s.heap, s.calendar, ready, RESPONSE_READY, me)


# --- channels --------------------------------------------------------------------------------------------------


@inlined
def next_burst(s, me, core, now, occupied, outstanding, kind):
    """After a grant of AR or AW: ask for the next burst, or remember that the limit is reached.

    `occupied` is 1 if a burst that has left `flight` holds its place until `core.drained`.
    """
    if core.next < core.stop:
        if core.flight >= outstanding:
            core.stuck = 1
        else:
            full = core.flight + occupied >= outstanding
            core.asked = core.drained if full else now + 1
            push(s.heap, s.calendar, core.asked, kind, me)


@inlined
def grant_read_address(s, me, now):
    core = s.cores[me]
    record(s, ON_CHANNEL, AR, me, core.pc, core.asked, now, now + 1)
    s.counters[me, STALL_AR] += now - core.asked
    s.counters[me, READS_ISSUED] += 1
    s.scalars[READS_PENDING] += 1
    place = (core.oldest + core.flight) & (s.ring.shape[1] - 1)
    core.flight += 1
    core.next = burst_stop(core.next, core.stop, s.scalars[WIDTH])
    counted = me < s.scalars[CORES] and s.program[core.pc].a == 1
    if s.scalars[BANKS] > 0 or counted:
        s.ring[me, place] = UNKNOWN
        push(s.heap, s.calendar, now + 1, READ_AT_BANKS, me)
    else:
        ready = now + 1 + s.scalars[READ_LATENCY]
        s.ring[me, place] = ready
        if core.flight == 1:
            push(s.heap, s.calendar, max(ready, core.drained), DATA_READY, me)
    occupied = 1 if core.drained > now + 1 else 0
    next_burst(s, me, core, now, occupied, s.scalars[READ_OUTSTANDING], ASK_READ)


@inlined
def grant_data(s, v, me, now):
    """R: the oldest burst of an initiator takes the channel for all its beats. Returns their number."""
    core = s.cores[me]
    stop = burst_stop(core.head, core.stop, s.scalars[WIDTH])
    beats = beats_of(core.head, stop, s.scalars[BEAT_SHIFT])
    since = s.ring[me, core.oldest]
    record(s, ON_CHANNEL, R, me, core.pc, since, now, now + beats)
    s.counters[me, STALL_R] += now - since
    s.counters[me, READS_DONE] += 1
    s.counters[me, BYTES_READ] += stop - core.head
    s.scalars[READS_PENDING] -= 1
    is_fetch = me >= s.scalars[CORES]
    if not is_fetch and s.scalars[VALUES]:
        read_bytes(v, me, core, s.program[core.pc], s.kinds, stop)
    core.head = stop
    core.oldest = (core.oldest + 1) & (s.ring.shape[1] - 1)
    core.flight -= 1
    core.drained = now + beats
    if stop == core.stop:
        if is_fetch:
            end_fetch(s, me - s.scalars[CORES], core.drained)
        else:
            complete(s, me, core.drained, LOAD_CYCLES)
        return beats
    if core.flight > 0 and s.ring[me, core.oldest] != UNKNOWN:
        push(s.heap, s.calendar, max(s.ring[me, core.oldest], core.drained), DATA_READY, me)
    if core.stuck:
        core.stuck = 0
        core.asked = core.drained
        push(s.heap, s.calendar, core.asked, ASK_READ, me)
    return beats


@inlined
def grant_write_address(s, me, now):
    """AW; the data of the burst is queued on W behind that of all bursts granted before it."""
    core = s.cores[me]
    call = s.program[core.pc].op == CALL
    stop = core.stop
    beats = 1
    latency = s.scalars[REGISTER_LATENCY]
    if not call:
        stop = burst_stop(core.next, core.stop, s.scalars[WIDTH])
        beats = beats_of(core.next, stop, s.scalars[BEAT_SHIFT])
        latency = s.scalars[WRITE_LATENCY]
        s.scalars[WRITES_PENDING] += 1
    data = s.channels[core.write_set + (W - AW)]
    begin = max(now + 1, data.free)
    data.free = begin + beats
    data.busy += beats
    record(s, ON_CHANNEL, core.write_set, me, core.pc, core.asked, now, now + 1)
    record(s, ON_CHANNEL, core.write_set + (W - AW), me, core.pc, now + 1, begin, data.free)
    s.counters[me, STALL_AW] += now - core.asked
    s.counters[me, STALL_W] += begin - (now + 1)
    s.counters[me, CALLS_ISSUED if call else WRITES_ISSUED] += 1
    place = (core.oldest + core.flight) & (s.ring.shape[1] - 1)
    if s.scalars[BANKS] > 0 and not call:
        s.ring[me, place] = UNKNOWN
        push(s.heap, s.calendar, data.free, WRITE_AT_BANKS, me)
    else:
        ready = data.free + latency
        s.ring[me, place] = ready
        push(s.heap, s.calendar, ready, RESPONSE_READY, me)
    core.flight += 1
    core.next = stop
    next_burst(s, me, core, now, 0, s.scalars[WRITE_OUTSTANDING], ASK_WRITE)


@inlined
def receive_write(s, v, me, now):
    """The bytes or the CALL of a burst arrive, and its response is ready."""
    core = s.cores[me]
    instruction = s.program[core.pc]
    if instruction.op == CALL:
        record(s, ARRIVED, instruction.arg, me, core.pc, now, now, now)
        add_call(s, np.int64(instruction.arg), now)
    else:
        stop = burst_stop(core.head, core.stop, s.scalars[WIDTH])
        if s.scalars[VALUES]:
            write_bytes(v, me, core, instruction, s.kinds, stop)
        record(s, STORED, 0, me, core.pc, core.head, now, stop)
        if instruction.a == 1:
            make_valid(s, core.head, stop, np.int64(instruction.b), now)
        s.counters[me, BYTES_WRITTEN] += stop - core.head
        core.head = stop
    core.responses += 1
    if core.responses == 1:
        ask(s, core.write_set + (B - AW), me)


@inlined
def grant_response(s, me, now):
    core = s.cores[me]
    call = s.program[core.pc].op == CALL
    since = s.ring[me, core.oldest]
    record(s, ON_CHANNEL, core.write_set + (B - AW), me, core.pc, since, now, now + 1)
    s.counters[me, STALL_B] += now - since
    s.counters[me, CALLS_DONE if call else WRITES_DONE] += 1
    if not call:
        s.scalars[WRITES_PENDING] -= 1
        s.scalars[STORE_RESPONSE] = now
    core.oldest = (core.oldest + 1) & (s.ring.shape[1] - 1)
    core.flight -= 1
    core.responses -= 1
    if core.responses > 0:
        ask(s, core.write_set + (B - AW), me)
    if core.stuck:
        core.stuck = 0
        core.asked = now + 1
        push(s.heap, s.calendar, core.asked, ASK_WRITE, me)
    elif core.flight == 0 and core.next == core.stop:
        complete(s, me, now + 1, CALL_CYCLES if call else STORE_CYCLES)


@inlined
def room_at(s, number, now):
    """The first cycle in which the memory takes a burst from an address channel; NEVER if that is not known yet.

    It is known, or now, for all other channels.
    """
    if number == AR and s.scalars[MEMORY_READS] > 0:
        room = s.scalars[MEMORY_READS] - s.scalars[READS_PENDING]
        if room <= 0:
            return NEVER
        if room == 1:  # which a burst that is on R still has
            return max(now, s.channels[R].free)
    elif number == AW and s.scalars[MEMORY_WRITES] > 0:
        room = s.scalars[MEMORY_WRITES] - s.scalars[WRITES_PENDING]
        if room <= 0:
            return NEVER
        if room == 1 and s.scalars[STORE_RESPONSE] == now:
            return now + 1
    return now


@inlined
def grant(s, v, number, now):
    """Grant a channel, which is free and asked for, by the rule of the machine."""
    channel = s.channels[number]
    if s.scalars[OLDEST_FIRST]:
        place = choose_oldest(channel, s.requests)
    else:
        place = choose_next(channel, s.requests)
    me = place if channel.members == 0 else s.members[channel.members_at + place]
    role = number
    if number >= FIRST_OF_TARGETS:
        role = AW + (number - FIRST_OF_TARGETS) % CHANNELS_OF_TARGET
    cycles = 1
    if role == AR:
        grant_read_address(s, me, now)
    elif role == R:
        cycles = grant_data(s, v, me, now)
    elif role == AW:
        grant_write_address(s, me, now)
    else:
        grant_response(s, me, now)
    channel.free = now + cycles
    channel.busy += cycles


@inlined
def arbitrate(s, v, now):
    """Grant every channel that can be, and find out when the next one can."""
    at = 1
    kept = 0
    while at <= s.asked[0]:  # a grant may add one
        number = s.asked[at]
        channel = s.channels[number]
        if channel.free <= now and room_at(s, number, now) <= now:
            grant(s, v, number, now)
        if channel.pending > 0:
            kept += 1
            s.asked[kept] = number
        else:
            channel.listed = 0
        at += 1
    s.asked[0] = kept
    # A grant on one channel makes room on another, so the next cycles are found after all grants.
    retry = NEVER
    for at in range(1, kept + 1):
        number = s.asked[at]
        retry = min(retry, max(s.channels[number].free, room_at(s, number, now)))
    s.scalars[RETRY] = retry
