"""Runs an image on the compiled engine and says what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.image import Image
from cim.diagnostics import error
from cim.emulator import explain, layout
from cim.emulator.compiled import engine
from cim.emulator.errors import CycleLimit, DeadlockError, RunError, RunFault
from cim.emulator.prepare import Prepared, checked_machine, prepare
from cim.emulator.state import State, build_state
from cim.isa.machine import Machine

__all__ = [
    "CycleLimit",
    "DeadlockError",
    "Result",
    "RunError",
    "RunFault",
    "Sink",
    "execute",
    "run_image",
    "shown_after",
]

Sink = Callable[[NDArray[Any], int], None]
Progress = Callable[[int], None]
FIRST_STEP_CYCLES = 1 << 14


@dataclass(frozen=True)
class Result:
    """What a run leaves behind.

    `memory` is shared memory after the inference, `cycles` its latency in bus cycles, `finish` the cycle in
    which each core completed its last instruction. `counters` is [core][index of `layout`], `fetches` the same
    for the fetch ports (empty if every program fits the instruction memory), `busy` the occupied cycles
    of the channels AR, R, AW, B, W summed over their sets. Cores are in the order of `prepared.configs`.
    """

    prepared: Prepared
    machine: Machine
    memory: NDArray[np.uint8]
    cycles: int
    finish: NDArray[np.int64]
    counters: NDArray[np.int64]
    fetches: NDArray[np.int64]
    busy: NDArray[np.int64]


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
    *,
    values: bool = True,
    sink: Sink | None = None,
    progress: Progress | None = None,
) -> Result:
    """Run a prepared image once: SEQ_NR and buffers cleared, `memory` (or the image's own) copied.

    `machine` may differ from the image's in timing. Without `values` only time passes: no arithmetic is
    done and no data moves, with the same cycles and counters. `sink` gets the records of the trace
    (`layout.TRACE`) in pieces, each with the cycle before which they are complete; `progress` is told every
    now and then how many instructions are done. Raises `RunFault`, `DeadlockError`, or `CycleLimit` when
    the inference takes more than `max_cycles`; `CimError` for a machine or memory that does not fit.
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
    state = build_state(prepared, machine, memory, limit, values, traced=sink is not None)
    end, cycle, core = _run_to_the_end(state, sink, progress)
    count = len(prepared.configs)
    cores = state.timing.cores[:count]  # without the fetch ports
    failure: RunError | None = None
    if end == layout.DEADLOCKED:
        # The engine's last event; cores have gone on by themselves after it, and data has come.
        cycle = int(max(cores["time"].max(), cores["fetched_at"].max()))
        if cycle > limit:
            end = layout.LIMITED
    if end == layout.FAULTED:
        failure = explain.fault(prepared, cores, state.timing.written, core, cycle)
    elif end == layout.DEADLOCKED:
        failure = explain.deadlock(prepared, cores, cycle)
    elif end == layout.LIMITED:
        failure = explain.cycle_limit(prepared, cores, limit)
    if failure is not None:
        failure.cycle, failure.cores = cycle, cores.copy()
        raise failure
    return Result(
        prepared,
        machine,
        memory,
        cycle,
        cores["time"].copy(),
        state.timing.counters[:count],
        state.timing.counters[count:],
        _busy(state.timing.channels),
    )


def shown_after(before: int, progress: Progress | None) -> Progress | None:
    """Tells `progress` what it is told, and what was done before that."""
    return None if progress is None else lambda done: progress(before + done)


def _run_to_the_end(
    state: State, sink: Sink | None, progress: Progress | None
) -> tuple[int, int, int]:
    """Call the engine until it has finished, emptying the trace at each pause."""
    simulate = engine(state.timing, state.values)
    scalars = state.timing.scalars
    step = FIRST_STEP_CYCLES
    if progress is not None:
        scalars[layout.STOP_AT] = step
    while True:
        began = time.perf_counter()
        end, cycle, core = simulate(state.timing, state.values)
        if sink is not None:
            sink(state.timing.trace[: scalars[layout.TRACED]], cycle)
            scalars[layout.TRACED] = 0
        if end != layout.PAUSED:
            return end, cycle, core
        if progress is not None:
            progress(state.executed())
            if cycle >= scalars[layout.STOP_AT]:
                # Long enough to cost nothing, short enough for an eye.
                step = step * 2 if time.perf_counter() - began < 0.1 else max(step // 2, 1)
                scalars[layout.STOP_AT] = cycle + step


def _busy(channels: NDArray[Any]) -> NDArray[np.int64]:
    first = layout.FIRST_OF_TARGETS
    busy = channels["busy"][:first].astype(np.int64)
    of_targets = channels["busy"][first:].reshape(-1, layout.CHANNELS_OF_TARGET)
    busy[layout.AW :] += of_targets.sum(axis=0)
    return busy
