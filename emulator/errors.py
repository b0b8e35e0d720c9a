"""How a program can fail at run time."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from cim.diagnostics import CimError, ExitCode

SAME_RUN = (
    "compile again, or take all files from the same run"  # what to do about files that differ
)


class RunError(CimError):
    """An inference did not finish. `cycle` is that of its last event, `cores` the engine's records of the cores then."""

    cycle: int
    cores: NDArray[Any]


class RunFault(RunError):
    """An instruction raised an exception of the spec."""

    exit_code = ExitCode.FAULT

    exception: str
    core: int
    pc: int


class DeadlockError(RunError):
    """Every unfinished core waits for CALLs that will not come.

    `blocked` maps core numbers to instruction indices.
    """

    exit_code = ExitCode.DEADLOCK

    blocked: dict[int, int]


class CycleLimit(RunError):
    """The inference takes more cycles than allowed."""

    exit_code = ExitCode.CYCLE_LIMIT
