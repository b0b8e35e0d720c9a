"""Codes and record layouts that the compiled engine and the Python around it share.

Nothing here imports numba, so that preparing an image and `--help` stay cheap. The names of the
instruction forms are the only knowledge of the ISA; opcodes and fields stay in `cim.isa.encoding`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

# --- what an instruction does: from MOV on in the GPEU, from LRELU on with parameters -------------------
ILLEGAL, LOAD, STORE, MVM, CALL, WAIT, MOV, CLR, ADD, SUB, MUL, MAX, MIN, LRELU, REQUANT = range(15)

# Which code an instruction form of `spec/isa.toml` has, and what its second GPEU operand is:
# buffer `b`, the immediate, or the constant zero.
FROM_BUFFER, FROM_IMMEDIATE, FROM_ZERO = range(3)
FORMS: dict[str, tuple[int, int]] = {
    "load": (LOAD, FROM_ZERO),
    "store": (STORE, FROM_ZERO),
    "mvm": (MVM, FROM_ZERO),
    "call": (CALL, FROM_ZERO),
    "wait": (WAIT, FROM_ZERO),
    "gpeu.mov": (MOV, FROM_ZERO),
    "gpeu.clr": (CLR, FROM_ZERO),
    "gpeu.add": (ADD, FROM_BUFFER),
    "gpeu.add.imm": (ADD, FROM_IMMEDIATE),
    "gpeu.sub": (SUB, FROM_BUFFER),
    "gpeu.mul": (MUL, FROM_BUFFER),
    "gpeu.mul.imm": (MUL, FROM_IMMEDIATE),
    "gpeu.max": (MAX, FROM_BUFFER),
    "gpeu.max.imm": (MAX, FROM_IMMEDIATE),
    "gpeu.min": (MIN, FROM_BUFFER),
    "gpeu.min.imm": (MIN, FROM_IMMEDIATE),
    "gpeu.relu": (MAX, FROM_ZERO),
    "gpeu.lrelu": (LRELU, FROM_ZERO),
    "gpeu.requant": (REQUANT, FROM_ZERO),
    # Of extension attribute_buffer: loads and stores that the memory counts.
    "take": (LOAD, FROM_ZERO),
    "put": (STORE, FROM_ZERO),
}
COUNTED = ("take", "put")

# --- attributes of entries of shared memory: reads to come below, the first initiator that waits above -----
READERS_BITS = 8

NO_CORE = 0xFFFFFFFF  # `arg` of a CALL whose target does not exist
NO_BLOCK = -1  # `block_end` of a core whose program fits the instruction memory

# --- exceptions, in the order of their codes ----------------------------------------------------------
EXCEPTIONS = (
    "",
    "illegal_instruction",
    "buffer_range",
    "memory_range",
    "no_crossbar",
    "rows_not_loaded",
    "no_such_core",
)
BAD_INSTRUCTION, BAD_BUFFER, BAD_MEMORY, BAD_CROSSBAR, BAD_ROWS, BAD_CORE = range(1, 7)

# --- how a call of the engine ends: PAUSED can be continued ---------------------------------------------
FINISHED, FAULTED, DEADLOCKED, LIMITED, PAUSED = range(5)

# Times are bus cycles. An event's key holds its time above 22 bits of kind and number, which leaves
# 41 bits; later times are held as the last of them. No run goes past half of that.
HORIZON = 2**40
LAST_TIME = 2**41 - 1
NEVER = 2**41

# --- the calendar of events -----------------------------------------------------------------------------
# A list of events for each of the cycles ahead, at the place of the cycle modulo SPAN: one array of words.
SPAN = 64 * 32
PRESENT = 0  # the cycle in progress; -1 at start
FREE_NODE = 1  # the first node that is in no list
SUMMARY = 2  # a bit for each word of the next part that is not 0
USED = 3  # a bit for each list that has nodes
LISTS = USED + SPAN // 64  # the first node of each list, 0 for none
NODES = LISTS + SPAN  # of two words: the event's key, and the next node

# --- indices of the scalars ------------------------------------------------------------------------------
(
    WIDTH, BEAT_SHIFT,  # bytes of a beat, and their logarithm
    ISSUE, MVM_CYCLES, LANES, GPEU_LATENCY, READ_OUTSTANDING, WRITE_OUTSTANDING, READ_LATENCY,
    WRITE_LATENCY, REGISTER_LATENCY, LIMIT, IS_FLOAT, IS_NARROW, IB, OB, OLDEST_FIRST,
    CORES,  # initiators from this number on are fetch ports
    BLOCK,  # instructions of a block that is fetched, 0 if every program fits the instruction memory
    MEMORY_READS, MEMORY_WRITES,  # bursts that the memory takes at a time, 0 for any number
    BANKS, INTERLEAVE, BANK_CYCLES,  # 0 banks: no conflicts
    VALUES,  # 0: timing only
    MEMORY_BYTES,
    SUMS_FIT,  # no sum of an MVM leaves int32
    SHARED,  # all targets share one set of channels
    ENTRY_BYTES,  # of an entry of shared memory that has an attribute
    STOP_AT,  # pause before the first event in or after this cycle
    # What changes during a run:
    READS_PENDING,  # bursts granted AR and not yet R
    WRITES_PENDING,  # bursts of stores granted AW and not yet B
    STORE_RESPONSE,  # the cycle of the last B grant for a store
    TRACED,  # records in the trace
    RETRY,  # when the next channel can be granted of those that are asked for, as far as that is known
) = range(35)  # fmt: skip
SCALARS = 35

# --- indices of the parameters, in the order of `cim.isa.interpreter.PARAMETERS`, all of 32 bits ---------
OFFSET, ADC_MUL, MUL_POS, MUL_NEG, Y_ZP = range(5)

# --- indices of the counters of a core; what can be counted from the program alone is not among them -----
(
    LOAD_CYCLES, STORE_CYCLES, CALL_CYCLES, WAIT_CYCLES, STALL_AR, STALL_R, STALL_AW, STALL_W, STALL_B,
    READS_ISSUED, READS_DONE, WRITES_ISSUED, WRITES_DONE, CALLS_ISSUED, CALLS_DONE,
    BYTES_READ, BYTES_WRITTEN, FETCH_CYCLES,
) = range(18)  # fmt: skip
COUNTERS = 18

# --- channels ----------------------------------------------------------------------------------------------
# Set 0 (the memory's, or everyone's) has AR, R, AW, B, W; with one set per target, core k has AW, B, W from
# FIRST_OF_TARGETS + 3k on. B and W follow AW in both, so that one number tells where a write goes.
AR, R, AW, B, W = range(5)
FIRST_OF_TARGETS = 5
CHANNELS_OF_TARGET = 3

# --- bursts: a plain function, which the engine compiles for itself ---------------------------------------
BEATS_LIMIT = 256
BOUNDARY = 4096


def burst_stop(begin: int, stop: int, width: int) -> int:
    """Where the burst that begins at a byte ends: the access, 256 beats, or the 4 KiB boundary."""
    # Width and boundary are powers of two.
    return min(stop, (begin & -width) + BEATS_LIMIT * width, (begin & -BOUNDARY) + BOUNDARY)


# --- records of the trace ------------------------------------------------------------------------------------
(
    ON_CHANNEL,  # a burst occupies `channel` from `begin` to `end`, asked for since `since`
    EXECUTED,  # an instruction, from its start to its completion
    ARRIVED,  # a CALL of `core` reaches core `channel` in cycle `begin`
    FETCHING,  # a core waits for a block of instructions
    STORED,  # bytes `since` to before `end` of a store reach memory in cycle `begin`
) = range(5)

TRACE: np.dtype[Any] = np.dtype(
    [
        ("begin", np.int64),
        ("end", np.int64),
        ("since", np.int64),
        ("core", np.uint32),  # initiator: cores by position, then their fetch ports
        ("at", np.uint32),  # position of the instruction in the array of all instructions
        ("channel", np.uint32),
        ("kind", np.uint32),
    ]
)

INSTRUCTION: np.dtype[Any] = np.dtype(
    [
        ("op", np.uint8),
        ("buffer", np.uint8),  # of load and store; dst of GPEU
        ("a", np.uint8),  # of load and store: 1 if the memory counts it
        ("b", np.uint8),  # of a store that is counted: readers
        ("source", np.uint8),  # of the second GPEU operand
        ("lo", np.uint16),
        ("hi", np.uint16),  # length of GPEU
        ("arg", np.uint32),  # address, immediate bits, WAIT value, or index of the called core
    ],
    align=True,
)

CORE: np.dtype[Any] = np.dtype(
    [
        ("pc", np.int64),  # position in the array of all instructions
        ("end", np.int64),
        (
            "time",
            np.int64,
        ),  # start of the instruction in progress; the finish of a core that is done
        ("cells", np.int64),  # position of the crossbar content
        ("rows", np.int64),
        ("columns", np.int64),
        ("rows_ready", np.int64),  # every used row of ib has been written
        ("waiting", np.int64),
        ("goal", np.int64),  # SEQ_NR waited for
        ("seq_nr", np.int64),
        ("fault", np.int64),
        # The access in progress: bytes from `address` to before `stop`; `next` is the first one whose burst
        # has not been granted AR or AW, `head` the first of the oldest burst that has not moved its data.
        ("address", np.int64),
        ("stop", np.int64),
        ("next", np.int64),
        ("head", np.int64),
        ("flight", np.int64),  # bursts granted AR or AW and not yet R or B
        ("oldest", np.int64),  # place of the oldest of them in the ring of ready times
        ("responses", np.int64),  # write responses that are ready
        ("asked", np.int64),  # cycle of the pending AR or AW request
        ("stuck", np.int64),  # the next burst waits for the outstanding limit
        ("drained", np.int64),  # cycle after the last beat of the burst last granted R
        ("write_set", np.int64),  # AW channel of the write in progress
        # Instruction fetch. Of a core: the end of its block, the number of the block, whether it waits for
        # it, blocks fetched so far, when the last of them had come, whether the next one is on its way.
        ("block_end", np.int64),
        ("block", np.int64),
        ("starved", np.int64),
        ("fetched", np.int64),
        ("fetched_at", np.int64),
        ("fetching", np.int64),
        # Of a load that the memory counts: its bursts that have reached the memory and wait for valid entries; the
        # next initiator that waits for the same entry, plus 1.
        ("held", np.int64),
        ("next_held", np.int64),
        ("first", np.int64),  # position of the first instruction
        ("program", np.int64),  # address of the program in shared memory
    ]
)

CHANNEL: np.dtype[Any] = np.dtype(
    [
        ("free", np.int64),  # first cycle in which it is free
        # Round robin: the place of the last granted member, -1 at start, and the 64-bit words of a bitmap of
        # pending members. Oldest first: where the oldest request is in a ring of places, and its length.
        ("last", np.int64),
        ("words", np.int64),
        ("words_at", np.int64),  # where bitmap or ring begin in `requests`
        ("pending", np.int64),  # how many members ask for it
        ("listed", np.int64),  # is among those that take part in arbitration
        ("busy", np.int64),  # cycles it was occupied
        ("members", np.int64),  # 0: every core, at the place of its index
        ("members_at", np.int64),
    ]
)

BUFFER: np.dtype[Any] = np.dtype(
    [
        ("length", np.int64),
        ("bytes", np.int64),  # of an element in memory: 1 or 4
        ("signed", np.int64),
        ("low", np.int64),  # saturation; the whole int64 range where values wrap
        ("high", np.int64),
    ]
)
