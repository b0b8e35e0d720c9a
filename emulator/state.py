"""The arrays of one run: from a prepared image and a machine to the state at cycle 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cim.emulator import layout
from cim.emulator.prepare import Prepared
from cim.isa.interpreter import ENTRY_BYTES
from cim.isa.load import load_isa
from cim.isa.machine import Machine

# The longest access has 1024 elements of 4 bytes: with beats of one byte 16 bursts of 256, one more for
# an unaligned start, one for the 4 KiB boundary. A larger outstanding limit changes nothing.
MOST_BURSTS = 18
TRACE_RECORDS = 1 << 18


class Timing(NamedTuple):
    """The arrays of a run that time depends on.

    Cores are counted by position. `ready` is a stack of cores that can go on, `asked` a list of channels that are
    asked for; both, and the heap, begin with their length. `ring` is [initiator][burst], when each burst in
    flight is ready. `attributes` is empty where the extension is not used. `written` is [core][row], whether the row of `ib` has been written.
    """

    program: NDArray[Any]
    cores: NDArray[Any]
    channels: NDArray[Any]
    requests: NDArray[np.uint64]
    members: NDArray[np.int64]
    kinds: NDArray[Any]
    scalars: NDArray[np.int64]
    written: NDArray[np.uint8]
    ring: NDArray[np.int64]
    counters: NDArray[np.int64]
    heap: NDArray[np.int64]
    calendar: NDArray[np.int64]
    asked: NDArray[np.int64]
    ready: NDArray[np.int64]
    banks: NDArray[np.int64]
    attributes: NDArray[np.int64]
    trace: NDArray[Any]
    alone: NDArray[np.int64]


class Values(NamedTuple):
    """The arrays of a run that hold values.

    `ints`, `floats` and `raw` are three views of the same buffers [core][buffer][element or byte], `parameters` and
    `factors` two views of [core][parameter][column], `constant_int` and `constant_float` two of one scratch vector.
    """

    memory: NDArray[np.uint8]
    ints: NDArray[np.int32]
    floats: NDArray[np.float32]
    raw: NDArray[np.uint8]
    cells_int: NDArray[np.int16]
    cells_f32: NDArray[np.float32]
    parameters: NDArray[np.int32]
    factors: NDArray[np.float32]
    constant_int: NDArray[np.int32]
    constant_float: NDArray[np.float32]
    sums: NDArray[np.int32]
    totals: NDArray[np.int64]


@dataclass(frozen=True)
class State:
    """One run: what the engine works on."""

    prepared: Prepared
    timing: Timing
    values: Values

    def executed(self) -> int:
        """Instructions that have completed."""
        count = len(self.prepared.configs)
        cores = self.timing.cores[:count]
        return int((cores["pc"] - cores["first"]).sum())


def build_state(
    prepared: Prepared,
    machine: Machine,
    memory: NDArray[np.uint8],
    limit: int,
    values: bool = True,
    traced: bool = False,
    alone: NDArray[np.int64] | None = None,
) -> State:
    """Everything that a run changes, in its state at cycle 0.

    With `alone` there is no bus: accesses take as many cycles as it has for each instruction.
    """
    core, bus = machine.core, machine.bus
    count = len(prepared.configs)
    block = block_words(prepared, machine) if alone is None else 0
    cores = _cores(prepared, machine, block)
    depth = min(max(bus.read_outstanding, bus.write_outstanding), _most_bursts(block))
    depth = 1 << (depth - 1).bit_length()  # a place in a ring is a remainder
    longest = max(core.inputs, core.outputs)
    channels, requests, members = _channels(prepared, machine, cores.size)
    # Values without which time passes alike need no room.
    stored = count if values else 0
    ints = np.zeros((stored, prepared.kinds.size, longest), dtype=np.int32)
    constant = np.zeros(longest, dtype=np.int32)
    scalars = _scalars(prepared, machine, limit, depth)
    scalars[layout.BLOCK] = block
    scalars[layout.VALUES] = values
    # One cycle must find room; see `engine.trace_reserve`.
    records = TRACE_RECORDS + 16 * (channels.size + cores.size) if traced else 0
    # At most two events a burst in flight and two of the core itself.
    events = cores.size * (2 * depth + 4)
    timing = Timing(
        program=prepared.program,
        cores=cores,
        channels=channels,
        requests=requests,
        members=members,
        kinds=prepared.kinds,
        scalars=scalars,
        written=np.zeros((count, core.inputs), dtype=np.uint8),
        ring=np.zeros((cores.size, depth), dtype=np.int64),
        counters=np.zeros((cores.size, layout.COUNTERS), dtype=np.int64),
        heap=np.zeros(events + 1, dtype=np.int64),
        calendar=empty_calendar(events),
        asked=np.zeros(channels.size + 1, dtype=np.int64),
        ready=np.concatenate(([count], np.arange(count))),
        banks=_banks(machine),
        attributes=_attributes(prepared),
        trace=np.zeros(records, dtype=layout.TRACE),
        alone=np.zeros(0, dtype=np.int64) if alone is None else alone,
    )
    return State(
        prepared,
        timing,
        Values(
            memory=memory,
            ints=ints,
            floats=ints.view(np.float32),
            raw=ints.view(np.uint8),
            cells_int=prepared.cells_int,
            cells_f32=prepared.cells_f32,
            parameters=prepared.parameters,
            factors=prepared.parameters.view(np.float32),
            constant_int=constant,
            constant_float=constant.view(np.float32),
            sums=np.zeros(longest, dtype=np.int32),
            totals=np.zeros(longest, dtype=np.int64),
        ),
    )


def empty_calendar(events: int) -> NDArray[np.int64]:
    """An empty calendar with a node for each event; see `layout`."""
    calendar = np.zeros(layout.NODES + 2 * events, dtype=np.int64)
    calendar[layout.PRESENT] = -1
    calendar[layout.FREE_NODE] = layout.NODES
    links = calendar[layout.NODES + 1 :: 2]
    links[:-1] = layout.NODES + 2 * np.arange(1, events)
    return calendar


def fetched_cores(prepared: Prepared, machine: Machine) -> NDArray[np.bool_]:
    """Which cores fetch their program while it runs, since it is larger than the instruction memory."""
    size = machine.core.instruction_memory_bytes
    lengths = prepared.cores["end"] - prepared.cores["first"]
    fetched: NDArray[np.bool_] = 8 * lengths > (np.inf if size == "unlimited" else size)
    return fetched


def block_words(prepared: Prepared, machine: Machine) -> int:
    """Instructions of half an instruction memory, 0 if every program fits into the whole."""
    size = machine.core.instruction_memory_bytes
    if size == "unlimited" or not fetched_cores(prepared, machine).any():
        return 0
    return size // 16


def _cores(prepared: Prepared, machine: Machine, block: int) -> NDArray[Any]:
    """The records of the cores and, where anything is fetched, of their fetch ports."""
    cores = prepared.cores.copy()
    if not block:
        return cores
    fetched = fetched_cores(prepared, machine)
    cores["block_end"] = np.where(fetched, cores["first"] + block, layout.NO_BLOCK)
    cores["fetched"] = 2
    return np.concatenate([cores, np.zeros(cores.size, dtype=layout.CORE)])


def _most_bursts(block: int) -> int:
    """A fetched block of any length has as many bursts as it has 4 KiB pages or 256 beats of a byte."""
    return max(MOST_BURSTS, 8 * block // 256 + 2)


def _banks(machine: Machine) -> NDArray[np.int64]:
    """When each bank is free, for reads and, if it has a port of their own, for writes."""
    memory = machine.memory
    count = 0 if memory.banks == "unlimited" else memory.banks
    return np.zeros((1 if memory.bank_ports == "shared" else 2, count), dtype=np.int64)


def _attributes(prepared: Prepared) -> NDArray[np.int64]:
    """An attribute for each entry of shared memory, where the programs use them: none is valid."""
    used = "attribute_buffer" in prepared.config.extensions
    entries = -(-prepared.config.memory_bytes // ENTRY_BYTES) if used else 0
    return np.zeros(entries, dtype=np.int64)


def _scalars(prepared: Prepared, machine: Machine, limit: int, depth: int) -> NDArray[np.int64]:
    buffers = load_isa().buffers
    values = {
        layout.WIDTH: machine.bus.width_bytes,
        layout.BEAT_SHIFT: machine.bus.width_bytes.bit_length() - 1,
        layout.ISSUE: machine.core.issue_cycles,
        layout.MVM_CYCLES: machine.mvm_cycles,
        layout.LANES: machine.core.gpeu_lanes,
        layout.GPEU_LATENCY: machine.core.gpeu_latency_cycles,
        layout.READ_OUTSTANDING: min(machine.bus.read_outstanding, depth),
        layout.WRITE_OUTSTANDING: min(machine.bus.write_outstanding, depth),
        layout.READ_LATENCY: machine.memory.read_latency_cycles,
        layout.WRITE_LATENCY: machine.memory.write_latency_cycles,
        layout.REGISTER_LATENCY: machine.bus.register_latency_cycles,
        layout.LIMIT: limit,
        layout.IS_FLOAT: prepared.config.mode == "f32",
        layout.IS_NARROW: prepared.config.mode == "i8n",
        layout.IB: buffers["ib"].code,
        layout.OB: buffers["ob"].code,
        layout.OLDEST_FIRST: machine.bus.arbitration == "oldest_first",
        layout.CORES: len(prepared.configs),
        layout.MEMORY_READS: _number(machine.memory.read_outstanding),
        layout.MEMORY_WRITES: _number(machine.memory.write_outstanding),
        layout.BANKS: _number(machine.memory.banks),
        layout.INTERLEAVE: machine.memory.bank_interleave_bytes,
        layout.BANK_CYCLES: machine.memory.bank_cycles,
        layout.MEMORY_BYTES: prepared.config.memory_bytes,
        layout.SUMS_FIT: prepared.sums_fit,
        layout.SHARED: machine.bus.topology == "shared",
        layout.ENTRY_BYTES: ENTRY_BYTES,
        layout.STOP_AT: layout.LAST_TIME,
        layout.STORE_RESPONSE: -1,
        layout.RETRY: layout.NEVER,
    }
    scalars = np.zeros(layout.SCALARS, dtype=np.int64)
    for index, value in values.items():
        scalars[index] = value
    return scalars


def _number(value: int | str) -> int:
    """A limit of the machine, 0 for none."""
    return value if isinstance(value, int) else 0


def _channels(
    prepared: Prepared, machine: Machine, initiators: int
) -> tuple[NDArray[Any], NDArray[np.uint64], NDArray[np.int64]]:
    """The channels, the room for their pending requests, and the callers of each target, sorted.

    On a target's channels only its callers can ever ask, so there is room for no other place.
    """
    per_target = machine.bus.topology == "per_target"
    by_age = machine.bus.arbitration == "oldest_first"
    count = len(prepared.configs)
    targets = count if per_target else 0
    channels = np.zeros(
        layout.FIRST_OF_TARGETS + layout.CHANNELS_OF_TARGET * targets, dtype=layout.CHANNEL
    )
    channels["last"] = 0 if by_age else -1
    channels["words"] = initiators if by_age else (initiators + 63) // 64
    if not per_target:
        members = np.zeros(0, dtype=np.int64)
    else:
        pairs = prepared.calls()
        members = np.ascontiguousarray(pairs[:, 1])
        begins = np.searchsorted(pairs[:, 0], np.arange(count + 1))
        of_targets = channels[layout.FIRST_OF_TARGETS :].reshape(count, layout.CHANNELS_OF_TARGET)
        of_targets["members_at"] = begins[:-1, None]
        of_targets["members"] = np.diff(begins)[:, None]
        places = of_targets["members"]
        of_targets["words"] = places if by_age else (places + 63) // 64
    words = channels["words"]
    channels["words_at"] = np.cumsum(words) - words
    return channels, np.zeros(int(words.sum()), dtype=np.uint64), members
