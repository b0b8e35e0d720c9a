"""The compiled engine: spec/timing.md and the operations of spec/isa.toml, as fast as they go.

Jitted functions are in this module, in `channels.py` and in `values.py`. Import them only through `cim.emulator.compiled`:
importing numba takes a second, and numba's cache notices no change in another module by itself.

An event is a request or a response on the bus. MVM, GPEU and a WAIT that is satisfied need none: they
touch nothing but their own core, so a core runs ahead of the other cores up to its next access. All
that an event in cycle t causes lies after t; therefore the events of a cycle can be gathered first,
and its arbitrations done afterwards in any order.
"""

# ruff: noqa: I001, PLR1714, SIM109  (imports in few lines; a tuple costs time in jitted code)
# mypy: ignore-errors
# (numba's decorators and what they compile have no types)
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numba import njit

from cim.emulator.channels import (
    ASK_READ, ASK_WRITE, CHANNEL_FREE, DATA_READY, FAULT, KIND_MASK, KIND_SHIFT, NUMBER_MASK, PAST_LIMIT,
    RESPONSE_READY, TIME_SHIFT, ask, beats_of, burst_stop, choose_next, choose_oldest, pop, push, touch,
)  # fmt: skip
from cim.emulator.layout import (
    AR, AW, B, BAD_BUFFER, BAD_CORE, BAD_CROSSBAR, BAD_INSTRUCTION, BAD_MEMORY, BAD_ROWS, CALL,
    CALL_CYCLES, CALLS_DONE, CALLS_ISSUED, CHANNELS_OF_TARGET, CLR, DEADLOCKED, FAULTED, FINISHED,
    FIRST_OF_TARGETS, FROM_BUFFER, GPEU_LATENCY, IB, ILLEGAL, IS_FLOAT, IS_NARROW,
    ISSUE, LANES, LIMIT, LIMITED, LOAD, LOAD_CYCLES, LRELU, MOV, MVM, MVM_CYCLES, NO_CORE,
    OB, OLDEST_FIRST, R, READ_LATENCY, READ_OUTSTANDING, READS_DONE, READS_ISSUED, REGISTER_LATENCY, STALL_AR,
    STALL_AW, STALL_B, STALL_R, STALL_W, STORE, STORE_CYCLES, W, WAIT, WAIT_CYCLES, WIDTH, WRITE_LATENCY,
    WRITE_OUTSTANDING, WRITES_DONE, WRITES_ISSUED,
)  # fmt: skip
from cim.emulator.values import (
    OPTIONS, gpeu_f32, gpeu_int, inlined, mvm_f32, mvm_int, read_bytes, write_bytes,
)  # fmt: skip


class State(NamedTuple):
    """All arrays of a run, so that a function can take them as one argument; see `simulate`."""

    program: Any
    cores: Any
    channels: Any
    requests: Any
    members: Any
    kinds: Any
    scalars: Any
    memory: Any
    ints: Any
    floats: Any
    raw: Any
    cells_int: Any
    cells_f32: Any
    offset: Any
    adc_mul: Any
    mul_pos: Any
    mul_neg: Any
    y_zp: Any
    written: Any
    ring: Any
    counters: Any
    heap: Any
    dirty: Any
    ready: Any
    constant_int: Any
    constant_float: Any
    sums: Any
    totals: Any
    shared: Any


# --- instructions ------------------------------------------------------------------------------------------


@inlined
def execute_gpeu(s, me, instruction):
    op, length = instruction.op, np.int64(instruction.hi)
    if instruction.source != FROM_BUFFER:
        # An immediate is filled in as 32 bits, which `floats` and `ints` then read in their own way.
        s.constant_int[:length] = np.int32(instruction.arg)
    if s.scalars[IS_FLOAT]:
        values = s.floats[me]
        y = values[instruction.b] if instruction.source == FROM_BUFFER else s.constant_float
        gpeu_f32(
            op,
            values[instruction.a],
            y,
            values[instruction.buffer],
            length,
            s.mul_pos[me],
            s.mul_neg[me],
        )
    else:
        whole = s.ints[me]
        z = whole[instruction.b] if instruction.source == FROM_BUFFER else s.constant_int
        gpeu_int(
            op, whole[instruction.a], z, whole[instruction.buffer], length, s.kinds[instruction.buffer],
            s.mul_pos[me], s.mul_neg[me], s.y_zp[me],
        )  # fmt: skip


@inlined
def execute_mvm(s, me, core):
    ib, ob = s.scalars[IB], s.scalars[OB]
    if s.scalars[IS_FLOAT]:
        mvm_f32(s.floats[me, ib], s.floats[me, ob], s.cells_f32, core)
    else:
        mvm_int(
            s.ints[me, ib], s.ints[me, ob], s.cells_int, core, s.offset[me], s.adc_mul[me],
            s.scalars[IS_NARROW], s.sums, s.totals,
        )  # fmt: skip


@inlined
def fault_of(s, me, core, instruction):
    """The exception that an instruction raises, 0 for none. The order is that of its operation."""
    op = instruction.op
    hi = np.int64(instruction.hi)
    if op == LOAD or op == STORE:
        kind = s.kinds[instruction.buffer]
        if hi > kind.length:
            return BAD_BUFFER
        size = (hi - np.int64(instruction.lo)) * kind.bytes
        return BAD_MEMORY if np.int64(instruction.arg) + size > s.memory.size else 0
    if op == MVM:
        if core.rows == 0:
            return BAD_CROSSBAR
        if core.rows_ready == 0:
            for row in range(core.rows):
                if s.written[me, row] == 0:
                    return BAD_ROWS
            core.rows_ready = 1
        return 0
    if op == CALL:
        return BAD_CORE if instruction.arg == NO_CORE else 0
    if op == WAIT:
        return 0
    if op == ILLEGAL:
        return BAD_INSTRUCTION
    if hi > s.kinds[instruction.buffer].length or (
        op != CLR and hi > s.kinds[instruction.a].length
    ):
        return BAD_BUFFER
    if instruction.source == FROM_BUFFER and hi > s.kinds[instruction.b].length:
        return BAD_BUFFER
    if (
        op >= LRELU and hi > s.kinds[s.scalars[OB]].length
    ):  # a parameter a column, as ob has elements
        return BAD_BUFFER
    return 0


@inlined
def begin_access(s, me, core, instruction, start):
    """Ask for AR or AW of the first burst."""
    if instruction.op == CALL:
        core.address, core.stop = 0, 1  # one beat at the target, whatever the width
        if s.shared == 0:
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
    push(s.heap, start, ASK_READ if instruction.op == LOAD else ASK_WRITE, me)


@inlined
def advance(s, me):
    """Run a core, whose last instruction completed at `core.time`, up to where it depends on others."""
    core = s.cores[me]
    time = core.time
    limit = s.scalars[LIMIT]
    while core.pc < core.end:
        instruction = s.program[core.pc]
        op = instruction.op
        time += s.scalars[ISSUE]
        core.time = time
        if time > limit:
            push(s.heap, limit + 1, PAST_LIMIT, me)
            return
        core.fault = fault_of(s, me, core, instruction)
        if core.fault:
            push(s.heap, time, FAULT, me)
            return
        if (
            (op == LOAD or op >= MOV)
            and instruction.buffer == s.scalars[IB]
            and core.rows_ready == 0
        ):
            s.written[me, instruction.lo : instruction.hi] = 1
        if op == LOAD or op == STORE or op == CALL:
            begin_access(s, me, core, instruction, time)
            return
        if op == WAIT:
            if core.seq_nr < np.int64(instruction.arg):
                core.waiting = 1
                core.goal = instruction.arg
                return
        elif op == MVM:
            execute_mvm(s, me, core)
            time += s.scalars[MVM_CYCLES]
        else:
            execute_gpeu(s, me, instruction)
            lanes = s.scalars[LANES]
            time += s.scalars[GPEU_LATENCY] + (np.int64(instruction.hi) + lanes - 1) // lanes
        core.pc += 1
    core.time = time
    if time > limit:
        push(s.heap, limit + 1, PAST_LIMIT, me)


@inlined
def complete(s, me, time, counter):
    """The access or WAIT of a core is done: count its cycles and have it go on."""
    core = s.cores[me]
    s.counters[me, counter] += time - core.time
    core.pc += 1
    core.time = time
    s.ready[0] += 1
    s.ready[s.ready[0]] = me


@inlined
def add_call(s, target, now):
    """A CALL reaches its target."""
    core = s.cores[target]
    core.seq_nr = (core.seq_nr + 1) & 0xFFFFFFFF
    if core.waiting and core.seq_nr >= core.goal:
        core.waiting = 0
        complete(s, target, max(now, core.time), WAIT_CYCLES)


# --- bus -----------------------------------------------------------------------------------------------------


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
            push(s.heap, core.asked, kind, me)


@inlined
def grant_read_address(s, me, now):
    core = s.cores[me]
    s.counters[me, STALL_AR] += now - core.asked
    s.counters[me, READS_ISSUED] += 1
    ready = now + 1 + s.scalars[READ_LATENCY]
    s.ring[me, (core.oldest + core.flight) % s.ring.shape[1]] = ready
    core.flight += 1
    core.next = burst_stop(core.next, core.stop, s.scalars[WIDTH])
    if core.flight == 1:
        push(s.heap, max(ready, core.drained), DATA_READY, me)
    occupied = 1 if core.drained > now + 1 else 0
    next_burst(s, me, core, now, occupied, s.scalars[READ_OUTSTANDING], ASK_READ)


@inlined
def grant_data(s, me, now):
    """R: the oldest burst of a core takes the channel for all its beats. Returns their number."""
    core = s.cores[me]
    stop = burst_stop(core.head, core.stop, s.scalars[WIDTH])
    beats = beats_of(core.head, stop, s.scalars[WIDTH])
    instruction = s.program[core.pc]
    read_bytes(s.memory, s.ints, s.raw, me, core, instruction, s.kinds, stop)
    s.counters[me, STALL_R] += now - s.ring[me, core.oldest]
    s.counters[me, READS_DONE] += 1
    core.head = stop
    core.oldest = (core.oldest + 1) % s.ring.shape[1]
    core.flight -= 1
    core.drained = now + beats
    if stop == core.stop:
        complete(s, me, core.drained, LOAD_CYCLES)
        return beats
    if core.flight > 0:
        push(s.heap, max(s.ring[me, core.oldest], core.drained), DATA_READY, me)
    if core.stuck:
        core.stuck = 0
        core.asked = core.drained
        push(s.heap, core.asked, ASK_READ, me)
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
        beats = beats_of(core.next, stop, s.scalars[WIDTH])
        latency = s.scalars[WRITE_LATENCY]
    data = s.channels[core.write_set + (W - AW)]
    begin = max(now + 1, data.free)
    data.free = begin + beats
    data.busy += beats
    ready = data.free + latency
    s.counters[me, STALL_AW] += now - core.asked
    s.counters[me, STALL_W] += begin - (now + 1)
    s.counters[me, CALLS_ISSUED if call else WRITES_ISSUED] += 1
    s.ring[me, (core.oldest + core.flight) % s.ring.shape[1]] = ready
    push(s.heap, ready, RESPONSE_READY, me)
    core.flight += 1
    core.next = stop
    next_burst(s, me, core, now, 0, s.scalars[WRITE_OUTSTANDING], ASK_WRITE)


@inlined
def receive_write(s, me, now):
    """The bytes or the CALL of a burst arrive, and its response is ready."""
    core = s.cores[me]
    instruction = s.program[core.pc]
    if instruction.op == CALL:
        add_call(s, np.int64(instruction.arg), now)
    else:
        stop = burst_stop(core.head, core.stop, s.scalars[WIDTH])
        write_bytes(s.memory, s.ints, s.raw, me, core, instruction, s.kinds, stop)
        core.head = stop
    core.responses += 1
    if core.responses == 1:
        ask(s, core.write_set + (B - AW), me)


@inlined
def grant_response(s, me, now):
    core = s.cores[me]
    call = s.program[core.pc].op == CALL
    s.counters[me, STALL_B] += now - s.ring[me, core.oldest]
    s.counters[me, CALLS_DONE if call else WRITES_DONE] += 1
    core.oldest = (core.oldest + 1) % s.ring.shape[1]
    core.flight -= 1
    core.responses -= 1
    if core.responses > 0:
        ask(s, core.write_set + (B - AW), me)
    if core.stuck:
        core.stuck = 0
        core.asked = now + 1
        push(s.heap, core.asked, ASK_WRITE, me)
    elif core.flight == 0 and core.next == core.stop:
        complete(s, me, now + 1, CALL_CYCLES if call else STORE_CYCLES)


@inlined
def arbitrate(s, number, now):
    """Grant a channel to the next core by the rule of the machine, if it is free and anyone asks."""
    channel = s.channels[number]
    if channel.pending > 0 and channel.free <= now:
        if s.scalars[OLDEST_FIRST]:
            place = choose_oldest(channel, s.requests)
        else:
            place = choose_next(channel, s.requests)
        me = place if channel.members == 0 else s.members[channel.members_at + place]
        role = (
            number
            if number < FIRST_OF_TARGETS
            else AW + (number - FIRST_OF_TARGETS) % CHANNELS_OF_TARGET
        )
        cycles = 1
        if role == AR:
            grant_read_address(s, me, now)
        elif role == R:
            cycles = grant_data(s, me, now)
        elif role == AW:
            grant_write_address(s, me, now)
        else:
            grant_response(s, me, now)
        channel.free = now + cycles
        channel.busy += cycles
    if channel.pending > 0 and channel.woken == 0:
        channel.woken = 1
        push(s.heap, channel.free, CHANNEL_FREE, number)
    channel.dirty = 0


@njit(**OPTIONS)
def simulate(
    program, cores, channels, requests, members, kinds, scalars, memory, ints, floats, raw, cells_int, cells_f32,
    offset, adc_mul, mul_pos, mul_neg, y_zp, written, ring, counters, heap, dirty, ready, constant_int,
    constant_float, sums, totals, shared,
):  # fmt: skip
    """Run to the end. Returns how it ended (a code of `layout`), the cycle, and the core of a fault.

    Every array is changed in place; `ints`, `floats` and `raw` are three views of the same buffers
    [core][buffer][element], `constant_int` and `constant_float` two views of one scratch vector.
    """
    s = State(
        program, cores, channels, requests, members, kinds, scalars, memory, ints, floats, raw, cells_int,
        cells_f32, offset, adc_mul, mul_pos, mul_neg, y_zp, written, ring, counters, heap, dirty, ready,
        constant_int, constant_float, sums, totals, shared,
    )  # fmt: skip
    now = 0
    for me in range(cores.size):
        ready[me + 1] = me
    ready[0] = cores.size
    while True:
        while ready[0] > 0:
            ready[0] -= 1
            advance(s, ready[ready[0] + 1])
        if heap[0] == 0:
            break
        now = heap[1] >> TIME_SHIFT
        if now > scalars[LIMIT]:
            return LIMITED, now, 0
        while heap[0] > 0 and heap[1] >> TIME_SHIFT == now:
            key = pop(heap)
            kind = (key >> KIND_SHIFT) & KIND_MASK
            number = key & NUMBER_MASK
            if kind == ASK_READ:
                ask(s, AR, number)
            elif kind == DATA_READY:
                ask(s, R, number)
            elif kind == ASK_WRITE:
                ask(s, cores[number].write_set, number)
            elif kind == RESPONSE_READY:
                receive_write(s, number, now)
            elif kind == CHANNEL_FREE:
                channels[number].woken = 0
                touch(s, number)
            else:
                return FAULTED, now, number
        while dirty[0] > 0:
            dirty[0] -= 1
            arbitrate(s, dirty[dirty[0] + 1], now)
    for me in range(cores.size):
        if cores[me].pc < cores[me].end:
            return DEADLOCKED, now, me
        now = max(now, cores[me].time)
    return FINISHED, now, 0
