"""The compiled engine: spec/timing.md and the operations of spec/isa.toml, as fast as they go.

Jitted functions are in this module, `bus.py`, `fetch.py`, `channels.py`, `events.py` and `values.py`. Import them only through
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

import numpy as np

from numba import njit

from cim.emulator.bus import (
    add_call, arbitrate, begin_access, reach_banks_read, reach_banks_write, receive_write, serve_reads,
)  # fmt: skip
from cim.emulator.channels import ask, go_on, record
from cim.emulator.events import (
    ADMIT, ASK_READ, ASK_WRITE, BLOCK_END, CALL_ARRIVES, DATA_READY, FAULT, GO_ON, KIND_MASK, KIND_SHIFT, NUMBER_MASK,
    PAST_LIMIT, READ_AT_BANKS, RESPONSE_READY, TIME_SHIFT, WRITE_AT_BANKS, begin_cycle, next_cycle, pop_heap, push,
)  # fmt: skip
from cim.emulator.fetch import end_block
from cim.emulator.layout import (
    ADC_MUL, ADD, AR, BAD_BUFFER, BAD_CORE, BAD_CROSSBAR, BAD_INSTRUCTION, BAD_MEMORY, BAD_ROWS, CALL, CLR, CORES,
    DEADLOCKED, EXECUTED, FAULTED, FINISHED, FROM_BUFFER, GPEU_LATENCY, IB, ILLEGAL, IS_FLOAT, IS_NARROW, ISSUE,
    LANES, LIMIT, LIMITED, LOAD, LRELU, MEMORY_BYTES, MOV, MUL, MUL_NEG, MUL_POS, MVM, MVM_CYCLES, NEVER, NO_CORE,
    OB, OFFSET, PAUSED, PRESENT, R, RETRY, STOP_AT, STORE, SUMS_FIT, TRACED, VALUES, WAIT, Y_ZP,
)  # fmt: skip
from cim.emulator.values import (
    OPTIONS, gpeu_f32, gpeu_int32, gpeu_int64, inlined, mvm_f32, mvm_int, mvm_wide,
)  # fmt: skip


# --- instructions ------------------------------------------------------------------------------------------


@inlined
def execute_gpeu(s, v, me, instruction):
    op, length = instruction.op, np.int64(instruction.hi)
    beside = instruction.source == FROM_BUFFER  # there is a second operand
    if not beside:
        # An immediate is filled in as 32 bits, which `floats` and `ints` then read in their own way.
        v.constant_int[:length] = np.int32(instruction.arg)
    mul_pos, mul_neg = v.factors[me, MUL_POS], v.factors[me, MUL_NEG]
    if s.scalars[IS_FLOAT]:
        values = v.floats[me]
        y = values[instruction.b] if beside else v.constant_float
        gpeu_f32(op, values[instruction.a], y, values[instruction.buffer], length, mul_pos, mul_neg)
        return
    whole = v.ints[me]
    kind = s.kinds[instruction.buffer]
    x, out = whole[instruction.a], whole[instruction.buffer]
    z = whole[instruction.b] if beside else v.constant_int
    # A sum, difference or product of bytes fits int32; where the result is 4 bytes it wraps to int32.
    bytes_only = s.kinds[instruction.a].bytes == 1 and beside and s.kinds[instruction.b].bytes == 1
    if op < LRELU and (op < ADD or op > MUL or kind.bytes == 4 or bytes_only):
        gpeu_int32(op, x, z, out, length, kind)
    else:
        gpeu_int64(op, x, z, out, length, kind, mul_pos, mul_neg, v.parameters[me, Y_ZP])


@inlined
def execute_mvm(s, v, me, core):
    ib, ob = s.scalars[IB], s.scalars[OB]
    if s.scalars[IS_FLOAT]:
        mvm_f32(v.floats[me, ib], v.floats[me, ob], v.cells_f32, core)
        return
    x, out = v.ints[me, ib], v.ints[me, ob]
    offset, adc_mul = v.parameters[me, OFFSET], v.factors[me, ADC_MUL]
    if s.scalars[SUMS_FIT]:
        mvm_int(x, out, v.cells_int, core, offset, adc_mul, s.scalars[IS_NARROW])
    else:
        mvm_wide(x, out, v.cells_int, core, offset, adc_mul, s.scalars[IS_NARROW], v.sums, v.totals)


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
        return BAD_MEMORY if np.int64(instruction.arg) + size > s.scalars[MEMORY_BYTES] else 0
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
def advance(s, v, me, now):
    """Run a core, whose last instruction completed at `core.time`, up to where it depends on others."""
    core = s.cores[me]
    pc, time = core.pc, core.time
    limit = s.scalars[LIMIT]
    while pc < core.end:
        if pc == core.block_end:
            core.pc, core.time = pc, time
            push(s.heap, s.calendar, time, BLOCK_END, me)
            return
        if s.trace.size > 0 and s.scalars[TRACED] + trace_reserve(s) > s.trace.size:
            # What this core does next lies after `now`, so that it can as well be found out then.
            core.pc, core.time = pc, time
            push(s.heap, s.calendar, max(time, now + 1), GO_ON, me)
            return
        instruction = s.program[pc]
        op = instruction.op
        start = time + s.scalars[ISSUE]
        if start > limit:
            core.pc, core.time = pc, start
            push(s.heap, s.calendar, limit + 1, PAST_LIMIT, me)
            return
        fault = fault_of(s, me, core, instruction)
        if fault:
            core.pc, core.time, core.fault = pc, start, fault
            push(s.heap, s.calendar, start, FAULT, me)
            return
        if (
            core.rows_ready == 0
            and (op == LOAD or op >= MOV)
            and instruction.buffer == s.scalars[IB]
        ):
            s.written[me, instruction.lo : instruction.hi] = 1
        before, time = time, start
        if op == LOAD or op == STORE or op == CALL:
            if s.alone.size == 0:
                core.pc, core.time = pc, start
                begin_access(s, me, core, instruction, start)
                return
            time += s.alone[pc]
            if op == CALL:  # one at a time, so that the heap has room
                core.pc, core.time = pc + 1, time
                push(s.heap, s.calendar, time - 1, CALL_ARRIVES, np.int64(instruction.arg))
                push(s.heap, s.calendar, time, GO_ON, me)
                return
        elif op == WAIT:
            if core.seq_nr < np.int64(instruction.arg):
                core.pc, core.time = pc, start
                core.waiting = 1
                core.goal = instruction.arg
                return
        elif op == MVM:
            if s.scalars[VALUES]:
                execute_mvm(s, v, me, core)
            time += s.scalars[MVM_CYCLES]
        else:
            if s.scalars[VALUES]:
                execute_gpeu(s, v, me, instruction)
            lanes = s.scalars[LANES]
            time += s.scalars[GPEU_LATENCY] + (np.int64(instruction.hi) + lanes - 1) // lanes
        record(s, EXECUTED, 0, me, pc, before, start, time)
        pc += 1
    core.pc, core.time = pc, time
    if time > limit:
        push(s.heap, s.calendar, limit + 1, PAST_LIMIT, me)


@inlined
def handle(s, v, kind, number, now):
    """One event that is no fault."""
    if ASK_READ <= kind <= ASK_WRITE:
        channel = s.cores[number].write_set
        if kind == ASK_READ:
            channel = AR
        elif kind == DATA_READY:
            channel = R
        ask(s, channel, number)
    elif kind == RESPONSE_READY:
        receive_write(s, v, number, now)
    elif kind == READ_AT_BANKS:
        reach_banks_read(s, number, now)
    elif kind == WRITE_AT_BANKS:
        reach_banks_write(s, number, now)
    elif kind == ADMIT:
        serve_reads(s, number, now)
    elif kind == BLOCK_END:
        end_block(s, number, now)
    elif kind == CALL_ARRIVES:
        add_call(s, number, now)
    elif kind == GO_ON:
        go_on(s, number)


@njit(**OPTIONS)
def simulate(s, v):
    """Run on to the end, or to a pause. Returns how it ended (a code of `layout`), the cycle, and the core of a fault.

    Every array of `s` and `v` (`state.Timing` and `state.Values`) is changed in place. At the start `ready` holds
    every core. It pauses before cycle `STOP_AT`, and when the trace has no room for another cycle; called again
    with a larger `STOP_AT` and `TRACED` 0 it goes on as if it had not stopped.
    """
    heap = s.heap
    now = s.calendar[PRESENT]
    gathered = False  # the events of this cycle, whose arbitration is yet to be done
    key = np.int64(0)  # an event of this cycle that is not in the heap
    while True:
        if s.ready[0] > 0:
            s.ready[0] -= 1
            advance(s, v, s.ready[s.ready[0] + 1], now)
        elif key != 0 or (heap[0] > 0 and heap[1] >> TIME_SHIFT == now):
            if key == 0:
                key = pop_heap(heap)
            kind = (key >> KIND_SHIFT) & KIND_MASK
            number = key & NUMBER_MASK
            if kind == FAULT:
                return FAULTED, now, number
            key = 0
            handle(s, v, kind, number, now)
        elif gathered:
            gathered = False
            arbitrate(s, v, now)
        else:
            cycle = min(next_cycle(heap, s.calendar), s.scalars[RETRY])
            if cycle == NEVER:
                break
            if cycle > s.scalars[LIMIT]:
                return LIMITED, cycle, 0
            if cycle >= s.scalars[STOP_AT] or (
                s.trace.size > 0 and s.scalars[TRACED] + 2 * trace_reserve(s) > s.trace.size
            ):
                return PAUSED, cycle, 0
            now = cycle
            gathered = True
            key = begin_cycle(heap, s.calendar, now)
    for me in range(s.scalars[CORES]):
        if s.cores[me].pc < s.cores[me].end:
            return DEADLOCKED, now, me
        now = max(now, s.cores[me].time)
    return FINISHED, now, 0
