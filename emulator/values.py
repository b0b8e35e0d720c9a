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
def read_bytes(memory, ints, raw, me, core, instruction, kinds, stop):
    """Memory bytes `head` to `stop` into the elements of the load in progress."""
    kind = kinds[instruction.buffer]
    values = ints[me, instruction.buffer]
    parts = raw[me, instruction.buffer]
    if kind.bytes == 4:
        shift = 4 * np.int64(instruction.lo) - core.address
        for at in range(core.head, stop):
            parts[at + shift] = memory[at]
    else:
        shift = np.int64(instruction.lo) - core.address
        if kind.signed:
            for at in range(core.head, stop):
                values[at + shift] = np.int8(memory[at])
        else:
            for at in range(core.head, stop):
                values[at + shift] = memory[at]


@jitted
def write_bytes(memory, ints, raw, me, core, instruction, kinds, stop):
    """The elements of the store in progress into memory bytes `head` to `stop`."""
    values = ints[me, instruction.buffer]
    parts = raw[me, instruction.buffer]
    if kinds[instruction.buffer].bytes == 4:
        shift = 4 * np.int64(instruction.lo) - core.address
        for at in range(core.head, stop):
            memory[at] = parts[at + shift]
    else:
        shift = np.int64(instruction.lo) - core.address
        for at in range(core.head, stop):
            memory[at] = np.uint8(values[at + shift])


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
def mvm_int(x, result, cells, core, offset, adc_mul, narrow, sums, totals):
    columns = core.columns
    totals[:columns] = 0
    for first in range(0, core.rows, EXACT_ROWS):
        sums[:columns] = 0
        for row in range(first, min(first + EXACT_ROWS, core.rows)):
            value = x[row]
            if value != 0:
                line = cells[core.cells + row * columns : core.cells + (row + 1) * columns]
                for column in range(columns):
                    sums[column] += value * np.int32(line[column])
        for column in range(columns):
            totals[column] += sums[column]
    if narrow:
        for column in range(columns):
            value = np.float32(totals[column] + np.int64(offset[column])) * adc_mul[column]
            result[column] = min(max(round_f32(value), np.int64(-128)), np.int64(127))
    else:
        for column in range(columns):
            result[column] = np.int32(totals[column] + np.int64(offset[column]))


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
def gpeu_int(op, x, y, out, length, kind, mul_pos, mul_neg, y_zp):
    """Exact in int64, then saturated (8 bits) or wrapped (int32)."""
    low, high = kind.low, kind.high
    for i in range(length):
        a = np.int64(x[i])
        b = np.int64(y[i])
        if op == MOV:
            v = a
        elif op == CLR:
            v = np.int64(0)
        elif op == ADD:
            v = a + b
        elif op == SUB:
            v = a - b
        elif op == MUL:
            v = a * b
        elif op == MAX:
            v = max(a, b)
        elif op == MIN:
            v = min(a, b)
        else:
            factor = mul_pos[i] if a >= 0 else mul_neg[i]
            v = round_f32(np.float32(a) * factor) + np.int64(y_zp[i])
        out[i] = np.int32(min(max(v, low), high))


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
