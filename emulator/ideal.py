"""What a program takes with nothing in the way: each access alone on the bus, and the lower bound of a run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cim.emulator import layout
from cim.emulator.compiled import engine
from cim.emulator.layout import BEATS_LIMIT, BOUNDARY
from cim.emulator.prepare import Prepared
from cim.emulator.state import block_words, build_state, fetched_cores
from cim.isa.machine import Machine


@dataclass(frozen=True)
class Work:
    """By instruction: bus clock cycles from start to completion with no one else there, bursts, and beats.

    A WAIT takes no time. Conflicts of memory banks and the limits of the memory are left out.
    """

    cycles: NDArray[np.int64]
    bursts: NDArray[np.int64]
    beats: NDArray[np.int64]


@dataclass(frozen=True)
class Bound:
    """No run of the program on the machine takes fewer bus clock cycles than any of these.

    `core` is the busiest core alone, `dependency` the longest chain of instructions and CALLs, each
    access alone on the bus, and a channel's figure how long its busiest set is occupied.
    """

    core: int
    dependency: int
    ar: int
    r: int
    aw: int
    w: int
    b: int


def measure(prepared: Prepared, machine: Machine) -> Work:
    """The work of every instruction, by the formulas of spec/timing.md."""
    program = prepared.program
    op = program["op"]
    cycles = np.zeros(op.shape, dtype=np.int64)
    bursts = np.zeros(op.shape, dtype=np.int64)
    beats = np.zeros(op.shape, dtype=np.int64)
    lengths = program["hi"].astype(np.int64)
    gpeu = op >= layout.MOV
    rounds = -(-lengths[gpeu] // machine.core.gpeu_lanes)
    cycles[gpeu] = machine.core.gpeu_latency_cycles + rounds
    cycles[op == layout.MVM] = machine.mvm_cycles
    call = op == layout.CALL
    cycles[call] = call_arrival_cycles(machine) + 1
    bursts[call] = beats[call] = 1
    for kind in (layout.LOAD, layout.STORE):
        chosen = np.flatnonzero(op == kind)
        sizes = lengths[chosen] - program["lo"][chosen]
        sizes *= prepared.kinds["bytes"][program["buffer"][chosen]]
        # How an access is split depends on where in a 4 KiB page it begins.
        keys, back = np.unique(
            sizes * BOUNDARY + program["arg"][chosen] % BOUNDARY, return_inverse=True
        )
        parts = split(keys % BOUNDARY, keys // BOUNDARY, machine.bus.width_bytes)
        alone = _load_alone if kind == layout.LOAD else _store_alone
        cycles[chosen] = alone(parts, machine)[back]
        bursts[chosen] = (parts > 0).sum(axis=0)[back]
        beats[chosen] = parts.sum(axis=0)[back]
    return Work(cycles, bursts, beats)


def split(begin: NDArray[np.int64], size: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Beats of the bursts of accesses: [burst][access], 0 where an access has no such burst."""
    stop = begin + size
    begin = begin.copy()
    rows = []
    while (begin < stop).any():
        longest = (begin // width + BEATS_LIMIT) * width
        end = np.minimum(stop, np.minimum(longest, (begin // BOUNDARY + 1) * BOUNDARY))
        rows.append(np.where(begin < stop, -(-end // width) - begin // width, 0))
        begin = np.maximum(begin, end)
    return np.array(rows, dtype=np.int64).reshape(len(rows), begin.size)


def call_arrival_cycles(machine: Machine) -> int:
    """From the start of a CALL that nothing delays to its arrival."""
    return 2 + machine.bus.register_latency_cycles


def _load_alone(parts: NDArray[np.int64], machine: Machine) -> NDArray[np.int64]:
    finished: list[NDArray[np.int64]] = []
    address = np.full(parts.shape[1], -1)
    end = np.zeros(parts.shape[1], dtype=np.int64)
    for number, beats in enumerate(parts):
        address = address + 1
        if number >= machine.bus.read_outstanding:
            address = np.maximum(address, finished[number - machine.bus.read_outstanding])
        ready = address + 1 + machine.memory.read_latency_cycles
        end = np.where(beats > 0, np.maximum(ready, end) + beats, end)
        finished.append(end)
    return end


def _store_alone(parts: NDArray[np.int64], machine: Machine) -> NDArray[np.int64]:
    finished: list[NDArray[np.int64]] = []
    address = np.full(parts.shape[1], -1)
    sent = np.zeros(parts.shape[1], dtype=np.int64)
    end = np.zeros(parts.shape[1], dtype=np.int64)
    for number, beats in enumerate(parts):
        address = address + 1
        if number >= machine.bus.write_outstanding:
            address = np.maximum(address, finished[number - machine.bus.write_outstanding])
        sent = np.maximum(address + 1, sent) + beats
        # The response takes a cycle of B, after that of the burst before.
        response = np.maximum(sent + machine.memory.write_latency_cycles, end)
        end = np.where(beats > 0, response + 1, end)
        finished.append(end)
    return end


def lower_bound(prepared: Prepared, machine: Machine, work: Work | None = None) -> Bound:
    """The bounds of one inference. A program that deadlocks has those of what it can execute."""
    work = work or measure(prepared, machine)
    op, arg = prepared.program["op"], prepared.program["arg"]
    per_instruction = work.cycles + machine.core.issue_cycles
    sums = np.concatenate(([0], np.cumsum(per_instruction)))
    per_core = sums[prepared.cores["end"]] - sums[prepared.cores["pc"]]
    load, store, call = (op == kind for kind in (layout.LOAD, layout.STORE, layout.CALL))
    reads, beats = int(work.bursts[load].sum()), int(work.beats[load].sum())
    fetched_bursts, fetched_beats = _fetched(prepared, machine)
    writes, sent, calls = int(work.bursts[store].sum()), int(work.beats[store].sum()), 0
    most_called = 0
    if machine.bus.topology == "shared":
        calls = int(call.sum())
    elif call.any():
        most_called = int(np.unique(arg[call], return_counts=True)[1].max())
    return Bound(
        core=int(per_core.max(initial=0)),
        dependency=_without_contention(prepared, machine, work),
        ar=reads + fetched_bursts,
        r=beats + fetched_beats,
        aw=max(writes + calls, most_called),
        w=max(sent + calls, most_called),
        b=max(writes + calls, most_called),
    )


def _fetched(prepared: Prepared, machine: Machine) -> tuple[int, int]:
    """Bursts and beats of the instruction fetch of all cores."""
    block = block_words(prepared, machine)
    begins, sizes = [], []
    for core in prepared.cores[fetched_cores(prepared, machine)]:
        count = int(core["end"] - core["first"])
        for first in range(2 * block, count, block):
            begins.append(int(core["program"]) + 8 * first)
            sizes.append(8 * (min(first + block, count) - first))
    if not begins:
        return 0, 0
    parts = split(np.array(begins), np.array(sizes), machine.bus.width_bytes)
    return int((parts > 0).sum()), int(parts.sum())


def _without_contention(prepared: Prepared, machine: Machine, work: Work) -> int:
    """The latency if every access were alone on the bus: the engine, its accesses taking what `work` says."""
    memory = np.zeros(prepared.config.memory_bytes, dtype=np.uint8)
    state = build_state(prepared, machine, memory, layout.HORIZON, values=False, alone=work.cycles)
    _, cycle, _ = engine(state.arguments)(*state.arguments)
    return cycle
