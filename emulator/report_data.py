"""What a report shows, gathered from the trace of a run as it comes, whatever the run's length."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.emulator import layout
from cim.emulator.binned import Binned, equal_parts
from cim.emulator.channel_names import ROLES, roles_of
from cim.emulator.ideal import Work, measure
from cim.emulator.prepare import Prepared
from cim.emulator.run import RunError, execute
from cim.isa.machine import Machine
from cim.isa.model import CLASSES

PARTS = 240
GROUPS = 128

# What a core does, in the order of the legend. What is left of a core's time is issue and idleness.
CAUSES = ("mvm", "gpeu", "access", "bus", "seq_nr", "fetch")
MVM, GPEU, ACCESS, BUS, SEQ_NR, FETCH = range(6)
_OF_CLASS = {
    "mvm": MVM,
    "gpeu": GPEU,
    "load": ACCESS,
    "store": ACCESS,
    "call": ACCESS,
    "wait": SEQ_NR,
}


class ReportData:
    """The sink of a run of `cycles` bus clock cycles.

    `time` is [cause][group of cores][part of the run], `busy` [channel][part], in cycles; `lines` is
    [location of the image][executions, cycles, cycles of waiting for bus or SEQ_NR].
    """

    def __init__(self, prepared: Prepared, machine: Machine, cycles: int) -> None:
        self.prepared = prepared
        self.cycles = cycles
        self.edges = equal_parts(0, cycles, PARTS)
        count = len(prepared.configs)
        self.groups = min(count, GROUPS)
        self.group_of = np.arange(count) * self.groups // count
        self.work: Work = measure(prepared, machine)
        self.cause_of = np.array([_OF_CLASS[name] for name in CLASSES])
        self._time = Binned(len(CAUSES) * self.groups, self.edges)
        self._busy = Binned(len(ROLES), self.edges)
        self.line_of = np.concatenate(
            [prepared.image.line_index(core) for core in prepared.configs]
        ).astype(np.int64)
        self.lines = np.zeros((len(prepared.config.locations), 3), dtype=np.int64)

    def __call__(self, part: NDArray[Any], _cycle: int) -> None:
        """One piece of the trace."""
        kinds = part["kind"]
        self._add_executed(part[kinds == layout.EXECUTED])
        bursts = part[kinds == layout.ON_CHANNEL]
        self._busy.add(roles_of(bursts["channel"]), bursts["begin"], bursts["end"])
        fetches = part[kinds == layout.FETCHING]
        self._add_time(FETCH, fetches["core"], fetches["begin"], fetches["end"])

    def _add_executed(self, done: NDArray[Any]) -> None:
        causes = self.cause_of[self.prepared.classes[done["at"]]]
        begins, ends = done["begin"], done["end"]
        alone = self.work.cycles[done["at"]]
        # Of an access, what it takes more than alone on the bus is shown before the rest of it.
        accesses = causes == ACCESS
        middles = np.where(accesses, ends - alone, begins)
        self._add_time(BUS, done["core"][accesses], begins[accesses], middles[accesses])
        for cause in (MVM, GPEU, ACCESS, SEQ_NR):
            chosen = causes == cause
            self._add_time(cause, done["core"][chosen], middles[chosen], ends[chosen])
        where = self.line_of[done["at"]]
        waits = np.where(accesses, middles - begins, np.where(causes == SEQ_NR, ends - begins, 0))
        for column, values in enumerate((np.ones_like(ends), ends - begins, waits)):
            np.add.at(self.lines[:, column], where, values)

    def _add_time(
        self, cause: int, cores: NDArray[Any], begins: NDArray[Any], ends: NDArray[Any]
    ) -> None:
        rows = cause * self.groups + self.group_of[cores.astype(np.int64)]
        self._time.add(rows, begins, ends)

    @property
    def time(self) -> NDArray[np.float64]:
        """[cause][group][part] cycles of the cores."""
        return self._time.cycles().reshape(len(CAUSES), self.groups, -1)

    @property
    def busy(self) -> NDArray[np.float64]:
        """[channel][part] cycles occupied."""
        return self._busy.cycles()

    @property
    def available(self) -> NDArray[np.float64]:
        """[group][part] cycles that the cores of a group have."""
        sizes = np.bincount(self.group_of, minlength=self.groups)
        return np.asarray(sizes[:, None] * np.diff(self.edges)[None, :], dtype=np.float64)


def gather(
    prepared: Prepared, machine: Machine, memory: NDArray[np.uint8], cycles: int, limit: int | None
) -> ReportData:
    """Run once more, for time alone, now that the number of cycles is known."""
    data = ReportData(prepared, machine, cycles)
    # A run that fails is reported up to where it does.
    with contextlib.suppress(RunError):
        execute(prepared, memory, machine, limit, values=False, sink=data)
    return data
