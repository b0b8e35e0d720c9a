"""The compiled engine: spec/timing.md and the operations of spec/isa.toml, as fast as they go.

Jitted functions are in this module, `bus.py`, `fetch.py`, `channels.py` and `values.py`. Import them only through
`cim.emulator.compiled`: importing numba takes a second, and numba's cache notices no change in another
module by itself.

An event is a request or a response on the bus. MVM, GPEU and a WAIT that is satisfied need none: they
touch nothing but their own core, so a core runs ahead of the other cores up to its next access. All
that an event in cycle t causes lies after t, or is an event of t itself; therefore the events of a cycle can
be gathered first, and its arbitrations done afterwards in any order.
"""

# ruff: noqa: I001, PLR1714, SIM109  (imports in few lines; a tuple costs time in jitted code)
# mypy: ignore-errors
# (numba's decorators and what they compile have no types)
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from numba import njit

from cim.emulator.bus import (
    add_call, arbitrate, begin_access, reach_banks_read, reach_banks_write, receive_write,
)  # fmt: skip
from cim.emulator.channels import (
    ASK_READ, ASK_WRITE, BLOCK_END, CALL_ARRIVES, CHANNEL_FREE, DATA_READY, FAULT, GO_ON, KIND_MASK, KIND_SHIFT, NUMBER_MASK,
    PAST_LIMIT, READ_AT_BANKS, RESPONSE_READY, TIME_SHIFT, WRITE_AT_BANKS, ask, pop, push, record, touch,
)  # fmt: skip
from cim.emulator.fetch import end_block
from cim.emulator.layout import (
    AR, BAD_BUFFER, BAD_CORE, BAD_CROSSBAR, BAD_INSTRUCTION, BAD_MEMORY, BAD_ROWS, BLOCK, CALL, CLR, CORES,
    DEADLOCKED, EXECUTED, FAULTED, FINISHED, FROM_BUFFER, GPEU_LATENCY, IB, ILLEGAL, IS_FLOAT, IS_NARROW, ISSUE,
    LANES, LIMIT, LIMITED, LOAD, LRELU, MOV, MVM, MVM_CYCLES, NO_CORE, OB, PAUSED, R, STOP_AT, STORE, TRACED,
    VALUES, WAIT,
)  # fmt: skip
from cim.emulator.values import OPTIONS, gpeu_f32, gpeu_int, inlined, mvm_f32, mvm_int


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
    banks: Any
    trace: Any
    alone: Any


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
def trace_reserve(s):
    """Records that one cycle can make without those of `advance`: two a channel, two for what arrives, the stalls."""
    return 2 * s.channels.size + 4 * s.cores.size + 64


@inlined
def advance(s, me, now):
    """Run a core, whose last instruction completed at `core.time`, up to where it depends on others."""
    core = s.cores[me]
    time = core.time
    limit = s.scalars[LIMIT]
    while core.pc < core.end:
        if core.pc == core.block_end:
            core.time = time
            push(s.heap, time, BLOCK_END, me)
            return
        if s.trace.size > 0 and s.scalars[TRACED] + trace_reserve(s) > s.trace.size:
            # What this core does next lies after `now`, so that it can as well be found out then.
            core.time = time
            push(s.heap, max(time, now + 1), GO_ON, me)
            return
        instruction = s.program[core.pc]
        op = instruction.op
        before = time
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
        if s.alone.size > 0 and (op == LOAD or op == STORE or op == CALL):
            time += s.alone[core.pc]
            if op == CALL:  # one at a time, so that the heap has room
                push(s.heap, time - 1, CALL_ARRIVES, np.int64(instruction.arg))
                core.pc += 1
                core.time = time
                push(s.heap, time, GO_ON, me)
                return
        elif op == LOAD or op == STORE or op == CALL:
            begin_access(s, me, core, instruction, time)
            return
        elif op == WAIT:
            if core.seq_nr < np.int64(instruction.arg):
                core.waiting = 1
                core.goal = instruction.arg
                return
        elif op == MVM:
            if s.scalars[VALUES]:
                execute_mvm(s, me, core)
            time += s.scalars[MVM_CYCLES]
        else:
            if s.scalars[VALUES]:
                execute_gpeu(s, me, instruction)
            lanes = s.scalars[LANES]
            time += s.scalars[GPEU_LATENCY] + (np.int64(instruction.hi) + lanes - 1) // lanes
        record(s, EXECUTED, 0, me, core.pc, before, core.time, time)
        core.pc += 1
    core.time = time
    if time > limit:
        push(s.heap, limit + 1, PAST_LIMIT, me)


@inlined
def advance_all(s, now):
    """Have every core go on that can."""
    while s.ready[0] > 0:
        s.ready[0] -= 1
        advance(s, s.ready[s.ready[0] + 1], now)


@inlined
def handle(s, kind, number, now):
    """One event that is no fault."""
    if kind == ASK_READ:
        ask(s, AR, number)
    elif kind == DATA_READY:
        ask(s, R, number)
    elif kind == ASK_WRITE:
        ask(s, s.cores[number].write_set, number)
    elif kind == RESPONSE_READY:
        receive_write(s, number, now)
    elif kind == CHANNEL_FREE:
        s.channels[number].woken = 0
        touch(s, number)
    elif kind == READ_AT_BANKS:
        reach_banks_read(s, number, now)
    elif kind == WRITE_AT_BANKS:
        reach_banks_write(s, number, now)
    elif kind == BLOCK_END:
        end_block(s, number, now)
    elif kind == CALL_ARRIVES:
        add_call(s, number, now)
    elif kind == GO_ON:
        s.ready[0] += 1
        s.ready[s.ready[0]] = number


@njit(**OPTIONS)
def simulate(
    program, cores, channels, requests, members, kinds, scalars, memory, ints, floats, raw, cells_int, cells_f32,
    offset, adc_mul, mul_pos, mul_neg, y_zp, written, ring, counters, heap, dirty, ready, constant_int,
    constant_float, sums, totals, shared, banks, trace, alone,
):  # fmt: skip
    """Run on to the end, or to a pause. Returns how it ended (a code of `layout`), the cycle, and the core of a fault.

    Every array is changed in place; `ints`, `floats` and `raw` are three views of the same buffers
    [core][buffer][element], `constant_int` and `constant_float` two views of one scratch vector. At the start
    `ready` holds every core. It pauses before cycle `STOP_AT`, and when the trace has no room for another
    cycle; called again with a larger `STOP_AT` and `TRACED` 0 it goes on as if it had not stopped.
    """
    s = State(
        program, cores, channels, requests, members, kinds, scalars, memory, ints, floats, raw, cells_int,
        cells_f32, offset, adc_mul, mul_pos, mul_neg, y_zp, written, ring, counters, heap, dirty, ready,
        constant_int, constant_float, sums, totals, shared, banks, trace, alone,
    )  # fmt: skip
    now = -1
    while True:
        advance_all(s, now)
        if heap[0] == 0:
            break
        now = heap[1] >> TIME_SHIFT
        if now > scalars[LIMIT]:
            return LIMITED, now, 0
        if now >= scalars[STOP_AT] or (
            trace.size > 0 and scalars[TRACED] + 2 * trace_reserve(s) > trace.size
        ):
            return PAUSED, now, 0
        while heap[0] > 0 and heap[1] >> TIME_SHIFT == now:
            key = pop(heap)
            kind = (key >> KIND_SHIFT) & KIND_MASK
            number = key & NUMBER_MASK
            if kind == FAULT:
                return FAULTED, now, number
            handle(s, kind, number, now)
            if scalars[BLOCK] > 0:
                # A WAIT may have completed at the end of a block: the fetch asks in this very cycle.
                advance_all(s, now)
        while dirty[0] > 0:
            dirty[0] -= 1
            arbitrate(s, dirty[dirty[0] + 1], now)
    for me in range(scalars[CORES]):
        if cores[me].pc < cores[me].end:
            return DEADLOCKED, now, me
        now = max(now, cores[me].time)
    return FINISHED, now, 0
