"""A run again, event by event: the engine says when, the reference interpreter says what.

The engine runs first, to the end or to where it fails; its records are the events. They are then applied
one after another to a state of the interpreter, which executes the spec's operations. A load takes its bytes and a
store leaves its own burst by burst, at the cycles that spec/timing.md gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cim.emulator import layout
from cim.emulator.errors import RunError
from cim.emulator.prepare import Prepared
from cim.emulator.recording import Recording
from cim.emulator.run import execute
from cim.isa.interpreter import CoreProgram, CoreState, Interpreter
from cim.isa.load import load_isa
from cim.isa.machine import Machine

# Kinds of events, in the order in which those of one cycle happen: arrivals before reads before cores.
STORED, CALLED, READ, ENDED, BEGAN = range(5)


class Event(NamedTuple):
    """Something that happens in a bus cycle. `core` is a position; `at` that of the instruction in all programs."""

    time: int
    kind: int
    core: int
    at: int
    extra: int  # STORED: address; CALLED: the called core
    stop: int  # STORED: end address


@dataclass
class CoreView:
    """Where a core is: `pc` in its program, and since when the instruction there runs (None: not yet)."""

    pc: int = 0
    since: int | None = None


class Replay:
    """The events of a run and the state after those that have been applied.

    `failure` is what ended the run early, None if it finished; `cycles` is when it ended.
    """

    def __init__(
        self, prepared: Prepared, machine: Machine, memory: NDArray[np.uint8], max_cycles: int | None
    ) -> None:  # fmt: skip
        self.prepared = prepared
        self.machine = machine
        self.initial = memory
        self.recording = Recording(prepared, machine)
        self.failure: RunError | None = None
        self.cycles = 0
        self.stuck: NDArray[Any] = prepared.cores[:0]
        try:
            result = execute(
                prepared, memory, machine, max_cycles, values=False, sink=self.recording
            )
            self.cycles = result.cycles
        except RunError as failure:
            self.failure = failure
            self.cycles = failure.cycle
            self.stuck = failure.cores
        self._events = self._collect()
        self.restart()

    def restart(self) -> None:
        """Go back to the beginning."""
        prepared = self.prepared
        config = prepared.config
        programs: list[CoreProgram | None] = [None] * (max(prepared.names, default=-1) + 1)
        for core in prepared.configs:
            programs[core.number] = CoreProgram(
                prepared.image.words(core),
                prepared.image.weights(core),
                prepared.image.parameters(core),
            )
        shape = (config.machine.core.outputs, config.machine.core.inputs)
        self.interpreter = Interpreter(
            load_isa(), config.numeric_mode, shape, self.initial.copy(), programs, config.extensions
        )
        firsts = prepared.cores["first"] - prepared.starts
        self.cores = [CoreView(int(pc)) for pc in firsts]
        self.position = 0
        self.now = 0
        # Bytes that a load in progress has got, and where its next burst begins.
        self._latched: dict[int, bytearray] = {}

    def state(self, core: int) -> CoreState:
        """The interpreter's state of a core, by position."""
        state = self.interpreter.cores[self.prepared.names[core]]
        assert state is not None
        return state

    def finished(self, core: int) -> bool:
        """Whether a core has completed its program."""
        return self.cores[core].pc >= len(self.state(core).decoded.index)

    def peek(self) -> Event | None:
        """The next event, None at the end."""
        if self.position >= len(self._events["time"]):
            return None
        at = self.position
        return Event(*(int(self._events[name][at]) for name in Event._fields))

    def step(self) -> Event | None:
        """Apply the next event and return it, None at the end."""
        event = self.peek()
        if event is None:
            self.now = max(self.now, self.cycles)
            return None
        self.position += 1
        self.now = event.time
        self._apply(event)
        return event

    # --- what events do ------------------------------------------------------------------------------------

    def _apply(self, event: Event) -> None:
        view = self.cores[event.core]
        op = int(self.prepared.program["op"][event.at])
        if event.kind == BEGAN:
            view.since = event.time
            if op == layout.LOAD:
                self._latched[event.core] = bytearray()
        elif event.kind == STORED:
            self._store(event)
        elif event.kind == CALLED:
            self._execute(event.core, view.pc)
        elif event.kind == READ:
            self._read(event)
        else:
            if op == layout.LOAD:
                self._load(event.core, view.pc)
            elif op not in (layout.STORE, layout.CALL):
                self._execute(event.core, view.pc)
            view.pc += 1
            view.since = None

    def _execute(self, core: int, pc: int) -> None:
        """The spec's operation of an instruction."""
        state = self.state(core)
        state.pc = pc
        done = self.interpreter.step(self.prepared.names[core])
        assert done, "the engine and the interpreter disagree on SEQ_NR"

    def _bytes(self, core: int, at: int) -> tuple[NDArray[np.uint8], int]:
        """The bytes of the elements that an access names, and the address of the first."""
        instruction = self.prepared.program[at]
        name = load_isa().buffer_names[int(instruction["buffer"])]
        buffer = self.state(core).buffers[name].data
        part = buffer[int(instruction["lo"]) : int(instruction["hi"])]
        return part.view(np.uint8), int(instruction["arg"])

    def _store(self, event: Event) -> None:
        content, address = self._bytes(event.core, event.at)
        part = content[event.extra - address : event.stop - address]
        self.interpreter.memory[event.extra : event.stop] = part

    def _read(self, event: Event) -> None:
        """One burst of a load: bytes of memory as they are in this cycle."""
        content, address = self._bytes(event.core, event.at)
        latched = self._latched[event.core]
        begin = address + len(latched)
        stop = layout.burst_stop(begin, address + content.size, self.machine.bus.width_bytes)
        latched += self.interpreter.memory[begin:stop].tobytes()

    def _load(self, core: int, pc: int) -> None:
        self._execute(core, pc)
        at = int(self.prepared.starts[core]) + pc
        content, _ = self._bytes(core, at)
        content[:] = np.frombuffer(self._latched.pop(core), dtype=np.uint8)

    # --- events from records -------------------------------------------------------------------------------

    def _collect(self) -> dict[str, NDArray[np.int64]]:
        parts = [
            *self._instruction_events(),
            _events(self.recording.records(layout.STORED), STORED, "begin", "since", "end"),
            _events(self.recording.records(layout.ARRIVED), CALLED, "begin", "channel", "end"),
        ]
        bursts = self.bursts = self.recording.records(layout.ON_CHANNEL)
        of_cores = bursts["core"] < len(self.prepared.configs)
        parts.append(_events(bursts[(bursts["channel"] == layout.R) & of_cores], READ, "begin"))
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        # A WAIT that is satisfied at once begins and ends in one cycle, in this order.
        order = np.lexsort((joined["core"], joined["rank"], joined["time"]))
        return {name: joined[name][order] for name in Event._fields}

    def _instruction_events(self) -> list[dict[str, NDArray[np.int64]]]:
        executed = self.recording.records(layout.EXECUTED)
        begins = _events(executed, BEGAN, "begin")
        ends = _events(executed, ENDED, "end")
        at_once = executed["begin"] == executed["end"]
        ends["rank"] = np.where(at_once, BEGAN + 1, ENDED)
        # What was in progress when the run failed has begun, too.
        open_ = [
            core
            for core in range(self.stuck.size)
            if self.stuck["pc"][core] < self.stuck["end"][core]
            and self.stuck["time"][core] <= self.cycles
            and not self.stuck["fault"][core]
        ]
        records = np.zeros(len(open_), dtype=layout.TRACE)
        records["core"] = open_
        records["at"] = self.stuck["pc"][open_]
        records["begin"] = self.stuck["time"][open_]
        return [begins, ends, _events(records, BEGAN, "begin")]


def _events(
    records: NDArray[Any], kind: int, time: str, extra: str = "channel", stop: str = "end"
) -> dict[str, NDArray[np.int64]]:
    """Records as columns of events; `rank` orders the events of a cycle."""
    kinds = np.full(records.size, kind, dtype=np.int64)
    columns = {"core": "core", "at": "at", "extra": extra, "stop": stop, "time": time}
    found = {name: records[field].astype(np.int64) for name, field in columns.items()}
    return {**found, "kind": kinds, "rank": kinds.copy()}
