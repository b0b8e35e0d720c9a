"""How a program can fail at run time."""

from __future__ import annotations

from cim.diagnostics import CimError, ExitCode


class RunFault(CimError):
    """An instruction raised an exception of the spec."""

    exit_code = ExitCode.FAULT

    exception: str
    core: int
    pc: int
    cycle: int


class DeadlockError(CimError):
    """Every unfinished core waits for CALLs that will not come.

    `blocked` maps core numbers to instruction indices, `cycle` is that of the last event.
    """

    exit_code = ExitCode.DEADLOCK

    blocked: dict[int, int]
    cycle: int


class CycleLimit(CimError):
    """The inference takes more cycles than allowed."""

    exit_code = ExitCode.CYCLE_LIMIT
