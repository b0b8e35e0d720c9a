"""The compiled arithmetic: MVM, GPEU and the bytes of loads and stores, to the bit as the spec has them.

Jitted like `engine.py`, and like it imported only through `cim.emulator.compiled`.
"""

# mypy: ignore-errors
# (numba's decorators and what they compile have no types)
from __future__ import annotations

import numpy as np
from numba import njit

from cim.emulator.layout import ADD, CLR, MAX, MIN, MOV, MUL, SUB

# Without reference counting of arrays (`_nrt`), which costs more than all else together: every call would
# count every array of `engine.State` up and down. Nothing here allocates, and the caller keeps the arrays.
OPTIONS = {"_nrt": False, "error_model": "numpy"}
jitted = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **OPTIONS)
# A function of the whole state is inlined: passing it copies hundreds of words.
inlined = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True, **OPTIONS)

# 256 products of an 8-bit input and a 16-bit cell fit an int32 (256 * 255 * 32768 < 2**31).
EXACT_ROWS = 256


@jitted
def read_bytes(v, me, core, instruction, kinds, stop):
    """Memory bytes `head` to `stop` into the elements of the load in progress."""
    kind = kinds[instruction.buffer]
    # Slices from 0 on, since numba would ask of each index whether it is negative.
    given = v.memory[core.head : stop]
    if kind.bytes == 4:
        first = 4 * np.int64(instruction.lo) + core.head - core.address
        parts = v.raw[me, instruction.buffer, first : first + given.size]
        for at in range(given.size):
            parts[at] = given[at]
    else:
        first = np.int64(instruction.lo) + core.head - core.address
        values = v.ints[me, instruction.buffer, first : first + given.size]
        if kind.signed:
            for at in range(given.size):
                values[at] = np.int8(given[at])
        else:
            for at in range(given.size):
                values[at] = given[at]


@jitted
def write_bytes(v, me, core, instruction, kinds, stop):
    """The elements of the store in progress into memory bytes `head` to `stop`."""
    taken = v.memory[core.head : stop]
    if kinds[instruction.buffer].bytes == 4:
        first = 4 * np.int64(instruction.lo) + core.head - core.address
        parts = v.raw[me, instruction.buffer, first : first + taken.size]
        for at in range(taken.size):
            taken[at] = parts[at]
    else:
        first = np.int64(instruction.lo) + core.head - core.address
        values = v.ints[me, instruction.buffer, first : first + taken.size]
        for at in range(taken.size):
            taken[at] = np.uint8(values[at])


@jitted
def round_f32(value):
    """`rint` of the spec: to the nearest integer, ties to even, saturated to int32, NaN gives 0."""
    rounded = np.rint(value)
    if rounded >= np.float32(2147483648.0):
        return np.int64(2147483647)
    if rounded >= np.float32(-2147483648.0):
        return np.int64(rounded)
    return np.int64(-2147483648) if rounded == rounded else np.int64(0)


@jitted
def digitize(value):
    """`round_f32`, saturated to int8, in a form that becomes vector instructions."""
    rounded = np.rint(value)
    rounded = rounded if rounded == rounded else np.float32(0)
    return np.int32(min(max(rounded, np.float32(-128)), np.float32(127)))


@jitted
def mvm_int(x, result, cells, core, offset, adc_mul, narrow):
    """One MVM whose sums all fit int32."""
    columns = core.columns
    sums = result[:columns]
    for column in range(columns):
        sums[column] = offset[column]
    fours = core.rows // 4  # as many rows as one pass over the sums takes
    for four in range(fours):
        x0, x1, x2, x3 = x[4 * four], x[4 * four + 1], x[4 * four + 2], x[4 * four + 3]
        at = core.cells + 4 * four * columns
        row0, row1 = cells[at : at + columns], cells[at + columns : at + 2 * columns]
        at += 2 * columns
        row2, row3 = cells[at : at + columns], cells[at + columns : at + 2 * columns]
        for column in range(columns):
            sums[column] += (
                x0 * np.int32(row0[column])
                + x1 * np.int32(row1[column])
                + x2 * np.int32(row2[column])
                + x3 * np.int32(row3[column])
            )
    for row in range(4 * fours, core.rows):
        x0 = x[row]
        row0 = cells[core.cells + row * columns : core.cells + (row + 1) * columns]
        for column in range(columns):
            sums[column] += x0 * np.int32(row0[column])
    if narrow:
        for column in range(columns):
            sums[column] = digitize(np.float32(sums[column]) * adc_mul[column])


@jitted
def mvm_wide(x, result, cells, core, offset, adc_mul, narrow, sums, totals):
    """One MVM of any cells: exact in int64."""
    columns = core.columns
    totals[:columns] = 0
    for first in range(0, core.rows, EXACT_ROWS):
        sums[:columns] = 0
        for row in range(first, min(first + EXACT_ROWS, core.rows)):
            value = x[row]
            line = cells[core.cells + row * columns : core.cells + (row + 1) * columns]
            for column in range(columns):
                sums[column] += value * np.int32(line[column])
        for column in range(columns):
            totals[column] += sums[column]
    for column in range(columns):
        total = totals[column] + np.int64(offset[column])
        if narrow:
            result[column] = digitize(np.float32(total) * adc_mul[column])
        else:
            result[column] = np.int32(total)


@jitted
def mvm_f32(x, result, cells, core):
    columns = core.columns
    result[:columns] = np.float32(0)
    for row in range(core.rows):
        value = x[row]
        line = cells[core.cells + row * columns : core.cells + (row + 1) * columns]
        for column in range(columns):
            result[column] += value * line[column]


@jitted
def gpeu_int32(op, x, y, out, length, kind):
    """An operation whose exact result fits int32, or wraps to it: one loop each, of vector instructions."""
    if op == MOV:
        for i in range(length):
            out[i] = x[i]
    elif op == CLR:
        for i in range(length):
            out[i] = 0
    elif op == ADD:
        for i in range(length):
            out[i] = np.int32(x[i] + y[i])
    elif op == SUB:
        for i in range(length):
            out[i] = np.int32(x[i] - y[i])
    elif op == MUL:
        for i in range(length):
            out[i] = np.int32(x[i] * y[i])
    elif op == MAX:
        for i in range(length):
            out[i] = max(x[i], y[i])
    else:
        for i in range(length):
            out[i] = min(x[i], y[i])
    if kind.bytes == 1:
        low, high = np.int32(kind.low), np.int32(kind.high)
        for i in range(length):
            out[i] = min(max(out[i], low), high)


@jitted
def gpeu_int64(op, x, y, out, length, kind, mul_pos, mul_neg, y_zp):
    """An operation that is exact in int64 only, then saturated (8 bits) or wrapped (int32)."""
    low, high = kind.low, kind.high
    for i in range(length):
        a = np.int64(x[i])
        b = np.int64(y[i])
        if op == ADD:
            value = a + b
        elif op == SUB:
            value = a - b
        elif op == MUL:
            value = a * b
        else:
            factor = mul_pos[i] if a >= 0 else mul_neg[i]
            value = round_f32(np.float32(a) * factor) + np.int64(y_zp[i])
        out[i] = np.int32(min(max(value, low), high))


@jitted
def gpeu_f32(op, x, y, out, length, mul_pos, mul_neg):
    for i in range(length):
        a = x[i]
        b = y[i]
        if op == MOV:
            out[i] = a
        elif op == CLR:
            out[i] = np.float32(0)
        elif op == ADD:
            out[i] = a + b
        elif op == SUB:
            out[i] = a - b
        elif op == MUL:
            out[i] = a * b
        elif op == MAX:  # a NaN wins, as in np.maximum
            out[i] = a if a >= b or a != a else b
        elif op == MIN:
            out[i] = a if a <= b or a != a else b
        else:
            out[i] = a * (mul_pos[i] if a >= np.float32(0) else mul_neg[i])
