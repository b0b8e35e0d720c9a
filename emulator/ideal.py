"""What a program takes with nothing in the way: each access alone on the bus, and the lower bound of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cim.emulator import layout
from cim.emulator.compiled import engine
from cim.emulator.layout import BEATS_LIMIT, BOUNDARY
from cim.emulator.prepare import Prepared
from cim.emulator.state import block_words, build_state, fetched_cores
from cim.isa.machine import Machine
from cim.isa.model import CLASSES


@dataclass(frozen=True)
class Traffic:
    """What accesses move: elements of buffers, bytes, bursts, and beats of the bus."""

    elements: int
    bytes: int
    bursts: int
    beats: int


@dataclass(frozen=True)
class Work:
    """By instruction: bus clock cycles from start to completion with no one else there, and sums of them.

    A WAIT takes no time. Conflicts of memory banks and the limits of the memory are left out. `per_core` is [core
    by position][class of `CLASSES`], in cycles; `loads` and `stores` are all accesses of a kind.
    """

    cycles: NDArray[np.int64]
    per_core: NDArray[np.int64]
    loads: Traffic
    stores: Traffic


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
    op = np.ascontiguousarray(program["op"])
    cycles = np.zeros(op.shape, dtype=np.int64)
    places = {
        "load": np.flatnonzero(op == layout.LOAD),
        "store": np.flatnonzero(op == layout.STORE),
        "mvm": np.flatnonzero(op == layout.MVM),
        "gpeu": np.flatnonzero(op >= layout.MOV),
        "call": np.flatnonzero(op == layout.CALL),
    }
    rounds = -(-program["hi"][places["gpeu"]].astype(np.int64) // machine.core.gpeu_lanes)
    cycles[places["gpeu"]] = machine.core.gpeu_latency_cycles + rounds
    cycles[places["mvm"]] = machine.mvm_cycles
    cycles[places["call"]] = call_arrival_cycles(machine) + 1
    loads = _measure_accesses(prepared, machine, places["load"], cycles, _load_alone)
    stores = _measure_accesses(prepared, machine, places["store"], cycles, _store_alone)
    per_core = np.zeros((prepared.starts.size, len(CLASSES)), dtype=np.int64)
    for name, chosen in places.items():
        sums = np.concatenate(([0], np.cumsum(cycles[chosen])))
        begins, ends = np.searchsorted(chosen, [prepared.cores["first"], prepared.cores["end"]])
        per_core[:, CLASSES.index(name)] = sums[ends] - sums[begins]
    return Work(cycles, per_core, loads, stores)


def _measure_accesses(
    prepared: Prepared, machine: Machine, chosen: NDArray[np.intp], cycles: NDArray[np.int64],
    alone: Callable[[NDArray[np.int64], Machine], NDArray[np.int64]],
) -> Traffic:  # fmt: skip
    """Fill in the cycles of some accesses."""
    program = prepared.program
    elements = program["hi"][chosen].astype(np.int64) - program["lo"][chosen]
    sizes = elements * prepared.kinds["bytes"][program["buffer"][chosen]]
    begins = program["arg"][chosen].astype(np.int64)
    parts = split(begins, sizes, machine.bus.width_bytes)
    cycles[chosen] = alone(parts, machine)
    return Traffic(
        elements=int(elements.sum()),
        bytes=int(sizes.sum()),
        bursts=int(np.count_nonzero(parts)),
        beats=int(parts.sum()),
    )


def split(begin: NDArray[np.int64], size: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Beats of the bursts of accesses: [burst][access], 0 where an access has no such burst."""
    stop = begin + size
    beat = width.bit_length() - 1  # its logarithm
    rows = []
    while (begin < stop).any():
        # As in `layout.burst_stop`.
        longest = (begin & -width) + BEATS_LIMIT * width
        end = np.minimum(stop, np.minimum(longest, (begin & -BOUNDARY) + BOUNDARY))
        rows.append(np.where(begin < stop, (end - 1 >> beat) - (begin >> beat) + 1, 0))
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
    called = prepared.program["arg"][np.flatnonzero(prepared.program["op"] == layout.CALL)]
    issued = (prepared.cores["end"] - prepared.cores["pc"]) * machine.core.issue_cycles
    fetched_bursts, fetched_beats = _fetched(prepared, machine)
    calls = most_called = 0
    if machine.bus.topology == "shared":
        calls = called.size
    elif called.size:
        most_called = int(np.unique(called, return_counts=True)[1].max())
    writes = max(work.stores.bursts + calls, most_called)
    return Bound(
        core=int((work.per_core.sum(axis=1) + issued).max(initial=0)),
        dependency=_without_contention(prepared, machine, work),
        ar=work.loads.bursts + fetched_bursts,
        r=work.loads.beats + fetched_beats,
        aw=writes,
        w=max(work.stores.beats + calls, most_called),
        b=writes,
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
    _, cycle, _ = engine(state.timing, state.values)(state.timing, state.values)
    return cycle
