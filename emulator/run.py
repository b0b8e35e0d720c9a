"""Runs an image: sets up the state, calls the compiled engine, and says what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.image import Image
from cim.diagnostics import Diagnostic, error
from cim.emulator import explain, layout
from cim.emulator.compiled import engine
from cim.emulator.errors import CycleLimit, DeadlockError, RunFault
from cim.emulator.prepare import Prepared, checked_machine, prepare
from cim.isa.load import load_isa
from cim.isa.machine import Machine

__all__ = ["CycleLimit", "DeadlockError", "Result", "RunFault", "execute", "run_image"]

# The longest access has 1024 elements of 4 bytes: with beats of one byte 16 bursts of 256, one more for
# an unaligned start, one for the 4 KiB boundary. A larger outstanding limit changes nothing.
MOST_BURSTS = 18


@dataclass(frozen=True)
class Result:
    """What a run leaves behind.

    `memory` is shared memory after the inference, `cycles` its latency in bus cycles, `finish` the cycle in
    which each core completed its last instruction. `counters` is [core][index of `layout`], `busy` the
    occupied cycles of the channels AR, R, AW, B, W summed over their sets. Cores are in the order of
    `prepared.configs`.
    """

    prepared: Prepared
    machine: Machine
    memory: NDArray[np.uint8]
    cycles: int
    finish: NDArray[np.int64]
    counters: NDArray[np.int64]
    busy: NDArray[np.int64]


@dataclass(frozen=True)
class State:
    """The arrays of one run, in the order in which the engine takes them."""

    prepared: Prepared
    cores: NDArray[Any]
    channels: NDArray[Any]
    memory: NDArray[np.uint8]
    counters: NDArray[np.int64]
    written: NDArray[np.uint8]
    arguments: tuple[Any, ...]


def run_image(
    image: Image,
    memory: NDArray[np.uint8] | None = None,
    machine: Machine | None = None,
    max_cycles: int | None = None,
) -> Result:
    """Run an image once from a fresh state; see `execute`."""
    return execute(prepare(image), memory, machine, max_cycles)


def execute(
    prepared: Prepared,
    memory: NDArray[np.uint8] | None = None,
    machine: Machine | None = None,
    max_cycles: int | None = None,
) -> Result:
    """Run a prepared image once: SEQ_NR and buffers cleared, `memory` (or the image's own) copied.

    `machine` may differ from the image's in timing. Raises `RunFault`, `DeadlockError`, or `CycleLimit`
    when the inference takes more than `max_cycles`; `CimError` for a machine or memory that does not fit.
    """
    machine = checked_machine(prepared.image, machine)
    size = prepared.config.memory_bytes
    if memory is None:
        memory = prepared.image.memory()
    elif memory.dtype != np.uint8 or memory.shape != (size,):
        raise error(
            f"memory must be {size} uint8, not {'x'.join(map(str, memory.shape))} {memory.dtype}"
        )
    else:
        memory = memory.copy()
    limit = layout.HORIZON if max_cycles is None else min(max_cycles, layout.HORIZON)
    state = build_state(prepared, machine, memory, limit)
    end, cycle, core = engine(state.arguments)(*state.arguments)
    if end == layout.FAULTED:
        raise explain.fault(prepared, state.cores, state.written, core, cycle)
    if end == layout.DEADLOCKED:
        raise explain.deadlock(prepared, state.cores, cycle)
    if end == layout.LIMITED:
        raise CycleLimit(
            [Diagnostic(f"not finished after {limit} cycles", where=str(prepared.image.path))]
        )
    return Result(
        prepared,
        machine,
        memory,
        cycle,
        state.cores["time"].copy(),
        state.counters,
        _busy(state.channels),
    )


def build_state(
    prepared: Prepared, machine: Machine, memory: NDArray[np.uint8], limit: int
) -> State:
    """Everything that a run changes, in its state at cycle 0."""
    core, bus = machine.core, machine.bus
    count = len(prepared.configs)
    depth = min(max(bus.read_outstanding, bus.write_outstanding), MOST_BURSTS)
    longest = max(core.inputs, core.outputs)
    cores = prepared.cores.copy()
    channels, requests, members = _channels(prepared, machine)
    ints = np.zeros((count, prepared.kinds.size, longest), dtype=np.int32)
    written = np.zeros((count, core.inputs), dtype=np.uint8)
    counters = np.zeros((count, layout.COUNTERS), dtype=np.int64)
    constant = np.zeros(longest, dtype=np.int32)
    parameters = prepared.parameters
    arguments = (
        prepared.program,
        cores,
        channels,
        requests,
        members,
        prepared.kinds,
        _scalars(prepared, machine, limit, depth),
        memory,
        ints,
        ints.view(np.float32),
        ints.view(np.uint8),
        prepared.cells_int,
        prepared.cells_f32,
        *(parameters[name] for name in ("offset", "adc_mul", "mul_pos", "mul_neg", "y_zp")),
        written,
        np.zeros((count, depth), dtype=np.int64),
        counters,
        # A core has at most one request and a response a burst in flight; a channel one event.
        np.zeros(count * (depth + 2) + channels.size + 2, dtype=np.int64),
        np.zeros(channels.size + 1, dtype=np.int64),
        np.zeros(count + 1, dtype=np.int64),
        constant,
        constant.view(np.float32),
        np.zeros(longest, dtype=np.int32),
        np.zeros(longest, dtype=np.int64),
        int(bus.topology == "shared"),
    )
    return State(prepared, cores, channels, memory, counters, written, arguments)


def _scalars(prepared: Prepared, machine: Machine, limit: int, depth: int) -> NDArray[np.int64]:
    buffers = load_isa().buffers
    values = {
        layout.WIDTH: machine.bus.width_bytes,
        layout.ISSUE: machine.core.issue_cycles,
        layout.MVM_CYCLES: machine.core.mvm_cycles,
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
    }
    scalars = np.zeros(layout.SCALARS, dtype=np.int64)
    for index, value in values.items():
        scalars[index] = value
    return scalars


def _channels(
    prepared: Prepared, machine: Machine
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
    channels["words"] = count if by_age else (count + 63) // 64
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


def _busy(channels: NDArray[Any]) -> NDArray[np.int64]:
    first = layout.FIRST_OF_TARGETS
    busy = channels["busy"][:first].astype(np.int64)
    of_targets = channels["busy"][first:].reshape(-1, layout.CHANNELS_OF_TARGET)
    busy[layout.AW :] += of_targets.sum(axis=0)
    return busy
