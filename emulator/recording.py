"""What happened in a run, cycle by cycle: the records that traces, reports and the debugger are made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.emulator import layout
from cim.emulator.prepare import Prepared
from cim.isa.machine import Machine


@dataclass(frozen=True)
class Window:
    """The part of a run to keep: bus cycles `first` to before `stop`, and core numbers, None for all."""

    first: int = 0
    stop: int = layout.LAST_TIME
    cores: frozenset[int] | None = None


@dataclass
class Recording:
    """Takes the trace of `run.execute` as its sink, and keeps what overlaps the window.

    `cycles` is the end of the last thing recorded. CALLs are kept from the beginning on, whatever the
    window: which of them releases a WAIT is a matter of counting.
    """

    prepared: Prepared
    machine: Machine
    window: Window = field(default_factory=Window)
    cycles: int = 0
    _parts: list[NDArray[Any]] = field(default_factory=list)
    _calls: list[NDArray[Any]] = field(default_factory=list)
    _sorted: dict[int, NDArray[Any]] = field(default_factory=dict)

    def __call__(self, part: NDArray[Any], cycle: int) -> None:
        """One piece of the trace."""
        self._sorted.clear()
        # A burst of a store has an address where others have their end.
        ends = np.where(part["kind"] == layout.STORED, part["begin"], part["end"])
        self.cycles = max(self.cycles, cycle, int(ends.max(initial=0)))
        calls = part["kind"] == layout.ARRIVED
        self._calls.append(part[calls])
        kept = ~calls & (part["begin"] < self.window.stop)
        kept &= (ends > self.window.first) | (part["begin"] >= self.window.first)
        if self.window.cores is not None:
            kept &= np.isin(part["core"] % len(self.prepared.configs), self._positions())
        self._parts.append(part[kept])

    def _positions(self) -> list[int]:
        cores = self.window.cores or ()
        return [at for at, number in enumerate(self.prepared.names) if number in cores]

    def records(self, kind: int) -> NDArray[Any]:
        """The records of one kind (of `layout`), by begin and then by initiator."""
        if kind not in self._sorted:
            parts = self._calls if kind == layout.ARRIVED else self._parts
            found = [part[part["kind"] == kind] for part in parts]
            joined = np.concatenate(found) if found else np.zeros(0, dtype=layout.TRACE)
            self._sorted[kind] = joined[np.lexsort((joined["core"], joined["begin"]))]
        return self._sorted[kind]


def releases(recording: Recording) -> list[tuple[Any, Any]]:
    """The WAITs that had to wait, each with the CALL that released it: (EXECUTED, ARRIVED) records."""
    executed = recording.records(layout.EXECUTED)
    program = recording.prepared.program
    waits = executed[program["op"][executed["at"]] == layout.WAIT]
    waits = waits[waits["end"] > waits["begin"]]
    calls = recording.records(layout.ARRIVED)
    calls = calls[np.argsort(calls["channel"], kind="stable")]  # by target, then by time
    starts = np.searchsorted(calls["channel"], waits["core"])
    goals = program["arg"][waits["at"]].astype(np.int64)
    return [
        (wait, calls[start + goal - 1])
        for wait, start, goal in zip(waits, starts, goals, strict=True)
    ]


def parse_cores(text: str) -> frozenset[int]:
    """Core numbers from a list such as `0,3-7`. Raises `ValueError` for anything else."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise ValueError(f"'{text}' must be core numbers such as 0,3-7")
        stop = int(last) if dash else int(first)
        if stop < int(first) or stop > 65535:
            raise ValueError(f"'{part}' must be core numbers from 0 to 65535, in ascending order")
        numbers.update(range(int(first), stop + 1))
    return frozenset(numbers)
