"""`--set` of the emulator: only what changes when things happen, not what a program must look like."""

from __future__ import annotations

from collections.abc import Sequence

from cim.diagnostics import Diagnostic, UsageError
from cim.isa.machine import TIMING_KEYS, Machine, apply_settings


def timing_machine(machine: Machine, settings: Sequence[str]) -> Machine:
    """The machine with settings applied. Raises `UsageError` for keys that shape the program."""
    known = machine.settings()
    wrong = []
    for setting in settings:
        key = setting.partition("=")[0]
        if key in known and key not in TIMING_KEYS:
            wrong.append(
                Diagnostic(f"{key} shapes the program; give it to cim-cc", where=f"--set {setting}")
            )
    if wrong:
        raise UsageError(wrong)
    return apply_settings(machine, settings)
