"""Why a run failed, in the terms of the program's source: faults and deadlocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.image import Image
from cim.diagnostics import CimError, Diagnostic, Note, Source, Span
from cim.emulator import layout
from cim.emulator.errors import CycleLimit, DeadlockError, RunFault
from cim.emulator.prepare import Prepared
from cim.files import read_text
from cim.isa.encoding import decode
from cim.isa.load import load_isa
from cim.isa.printer import format_instruction

CORES_SHOWN = 20
CALLERS_SHOWN = 8


class Sources:
    """The source files of an image that can be found: beside the cfg, or where an absolute path says."""

    def __init__(self, image: Image) -> None:
        self.image = image
        self.found: dict[str, Source | None] = {}

    def source(self, file: str) -> Source | None:
        """A source file by the name that the image has for it."""
        if file not in self.found:
            try:
                self.found[file] = Source(file, read_text(self.image.path.parent / file))
            except CimError:
                self.found[file] = None
        return self.found[file]

    def span(self, prepared: Prepared, core: int, pc: int) -> Span | None:
        """The source line of an instruction, None if its file or line is not there."""
        location = self.image.location(prepared.configs[core], pc)
        source = self.source(location.file)
        if source is None or not source.line(location.line).strip():
            return None
        line = source.line(location.line)
        code = re.split("#|//", line)[0].rstrip() or line.rstrip()
        return Span(source, location.line, len(line) - len(line.lstrip()) + 1, len(code) + 1)


def place(prepared: Prepared, core: int, pc: int) -> str:
    """An instruction's index and source line, as in `instruction 3 (chain.s:14)`."""
    location = prepared.image.location(prepared.configs[core], pc)
    return f"instruction {pc} ({location.file}:{location.line})"


def instruction_text(prepared: Prepared, core: int, pc: int) -> str:
    """The instruction in assembly syntax."""
    words = prepared.image.words(prepared.configs[core])[pc : pc + 1]
    decoded = decode(load_isa(), words)
    if decoded.index[0] < 0:
        return f"the word {int(words[0]):#018x}"
    return f"'{format_instruction(load_isa(), decoded, 0, prepared.config.mode)}'"


def core_text(prepared: Prepared, core: int) -> str:
    """A core's number, and its name where it has one of its own."""
    config = prepared.configs[core]
    named = config.name and config.name != str(config.number)
    return f"core {config.number} '{config.name}'" if named else f"core {config.number}"


# --- faults ------------------------------------------------------------------------------------------------


def fault(
    prepared: Prepared, cores: NDArray[Any], written: NDArray[np.uint8], core: int, cycle: int
) -> RunFault:
    """The diagnostic of an instruction that raised an exception."""
    name = layout.EXCEPTIONS[int(cores[core]["fault"])]
    pc = int(cores[core]["pc"]) - prepared.span(core)[0]
    prose = load_isa().exceptions[name]
    text = instruction_text(prepared, core, pc)
    instruction = prepared.program[int(cores[core]["pc"])]
    diagnostic = Diagnostic(
        f"{core_text(prepared, core)}, {place(prepared, core, pc)}, cycle {cycle}: {text}: {prose}",
        Sources(prepared.image).span(prepared, core, pc),
        where=str(prepared.image.path),
        notes=(Note(_values(prepared, name, instruction, cores[core], written[core])),),
    )
    problem = RunFault([diagnostic])
    problem.exception, problem.core, problem.pc = name, prepared.configs[core].number, pc
    return problem


def cycle_limit(prepared: Prepared, cores: NDArray[Any], limit: int) -> CycleLimit:
    """Which cores a cycle limit has stopped, and where the first of them are."""
    open_ = [int(core) for core in np.flatnonzero(cores["pc"] < cores["end"])]
    notes = [
        Note(f"{core_text(prepared, core)} is at {_doing(prepared, cores, core)}")
        for core in open_[:CORES_SHOWN]
    ]
    if len(open_) > CORES_SHOWN:
        notes.append(Note(f"and {len(open_) - CORES_SHOWN} more"))
    return CycleLimit([
        Diagnostic(
            f"not finished after {limit} cycles: {len(open_)} of {len(cores)} cores go on (--max-cycles)",
            where=str(prepared.image.path),
            notes=tuple(notes),
        )
    ])  # fmt: skip


def _doing(prepared: Prepared, cores: NDArray[Any], core: int) -> str:
    pc = int(cores[core]["pc"]) - prepared.span(core)[0]
    text = f"{place(prepared, core, pc)}: {instruction_text(prepared, core, pc)}"
    if cores[core]["waiting"]:
        goal, now = int(cores[core]["goal"]), int(cores[core]["seq_nr"])
        text += f", blocked: SEQ_NR is {now}, the wait needs {goal}"
    return text


def _values(
    prepared: Prepared, name: str, instruction: Any, core: Any, written: NDArray[np.uint8]
) -> str:
    """The numbers that made an instruction raise an exception."""
    if name == "buffer_range":
        return _buffer_values(prepared, instruction)
    if name == "memory_range":
        kind = prepared.kinds[instruction["buffer"]]
        size = (int(instruction["hi"]) - int(instruction["lo"])) * int(kind["bytes"])
        address = int(instruction["arg"])
        return (
            f"the access is bytes {address:#x} to {address + size - 1:#x}, shared memory ends at "
            f"{prepared.config.memory_bytes - 1:#x} ({prepared.config.memory_bytes} bytes)"
        )
    if name == "rows_not_loaded":
        rows = int(core["rows"])
        missing = np.flatnonzero(written[:rows] == 0)
        return (
            f"{missing.size} of {rows} rows have not been loaded, the first is row {missing[0]}: "
            "load them into ib first"
        )
    if name == "no_such_core":
        numbers = prepared.names
        if len(numbers) == 1:
            return f"the image has one core, number {numbers[0]}"
        return f"the image has {len(numbers)} cores, numbers {numbers[0]} to {numbers[-1]}"
    if name == "no_crossbar":
        return "give the core weights, as with .crossbar"
    return f"the numeric mode is {prepared.config.mode}"


def _buffer_values(prepared: Prepared, instruction: Any) -> str:
    names = load_isa().buffer_names
    codes = [int(instruction["buffer"])]
    if instruction["op"] >= layout.MOV:
        codes += [int(instruction["a"])] if instruction["op"] != layout.CLR else []
        codes += [int(instruction["b"])] if instruction["source"] == layout.FROM_BUFFER else []
    hi = int(instruction["hi"])
    short = next((code for code in codes if prepared.kinds[code]["length"] < hi), None)
    if short is None:
        columns = prepared.config.machine.core.outputs
        return f"it needs {hi} parameters, a core has one a column: {columns}"
    length = int(prepared.kinds[short]["length"])
    return (
        f"it names elements {int(instruction['lo'])} to {hi - 1} of {names[short]}, "
        f"which has {length}: 0 to {length - 1}"
    )


# --- deadlocks ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Caller:
    """A core with CALLs to a blocked one: how many it has, has executed, and where the next one is."""

    core: int
    total: int
    executed: int
    next_pc: int | None


def callers_of(prepared: Prepared, cores: NDArray[Any], target: int) -> list[Caller]:
    """All cores that have CALLs to `target` in their program, in the order of core numbers."""
    at = np.flatnonzero(
        (prepared.program["op"] == layout.CALL) & (prepared.program["arg"] == target)
    )
    owners = np.searchsorted(prepared.starts, at, side="right") - 1
    found = []
    for owner in np.unique(owners):
        own = at[owners == owner]
        later = own[own >= cores[owner]["pc"]]
        next_pc = int(later[0]) - prepared.span(owner)[0] if later.size else None
        found.append(Caller(int(owner), own.size, own.size - later.size, next_pc))
    return found


def deadlock(prepared: Prepared, cores: NDArray[Any], cycle: int) -> DeadlockError:
    """One diagnostic that explains every blocked core, up to `CORES_SHOWN` of them."""
    blocked = [int(core) for core in np.flatnonzero(cores["pc"] < cores["end"])]
    sources = Sources(prepared.image)
    notes: list[Note] = []
    for core in blocked[:CORES_SHOWN]:
        notes += _blocked_notes(prepared, cores, core, sources)
    if len(blocked) > CORES_SHOWN:
        notes.append(Note(f"and {len(blocked) - CORES_SHOWN} more"))
    waits = "waits" if len(blocked) == 1 else "wait"
    waiting = cores["waiting"][blocked].astype(bool)
    for_what = " or ".join(
        [*(["CALLs"] if waiting.any() else []), *([] if waiting.all() else ["valid entries"])]
    )
    problem = DeadlockError([
        Diagnostic(
            f"deadlock: nothing moves after cycle {cycle}, and {len(blocked)} of {len(cores)} cores {waits} "
            f"for {for_what}",
            where=str(prepared.image.path),
            notes=tuple(notes),
        )
    ])  # fmt: skip
    starts = prepared.starts
    problem.blocked = {
        prepared.configs[core].number: int(cores[core]["pc"] - starts[core]) for core in blocked
    }
    return problem


def _blocked_notes(
    prepared: Prepared, cores: NDArray[Any], core: int, sources: Sources
) -> list[Note]:
    if not cores[core]["waiting"]:
        return _memory_notes(prepared, cores, core, sources)
    pc = int(cores[core]["pc"]) - prepared.span(core)[0]
    goal, now = int(cores[core]["goal"]), int(cores[core]["seq_nr"])
    notes = [
        Note(
            f"{core_text(prepared, core)} is blocked at {place(prepared, core, pc)}: "
            f"{instruction_text(prepared, core, pc)}: SEQ_NR is {now}, the wait needs {goal}",
            sources.span(prepared, core, pc),
        )
    ]
    callers = callers_of(prepared, cores, core)
    number = prepared.configs[core].number
    # Those who still owe a CALL first: they are where to look.
    callers.sort(key=lambda caller: caller.next_pc is None)
    for caller in callers[:CALLERS_SHOWN]:
        notes.append(Note(_caller_text(prepared, cores, caller, number)))
    if len(callers) > CALLERS_SHOWN:
        notes.append(
            Note(f"  and {len(callers) - CALLERS_SHOWN} more cores that call core {number}")
        )
    total = sum(caller.total for caller in callers)
    if total < goal:
        calls = "CALL" if total == 1 else "CALLs"
        notes.append(
            Note(f"  {total} {calls} in all programs, the wait needs {goal}: a CALL is missing")
        )
    return notes


def _memory_notes(
    prepared: Prepared, cores: NDArray[Any], core: int, sources: Sources
) -> list[Note]:
    """A core whose access never ends: a TAKE that the memory holds back, or what finds the memory full of such."""
    begin, stop = bytes_of(prepared, prepared.program[int(cores[core]["pc"])])
    pc = int(cores[core]["pc"]) - prepared.span(core)[0]
    is_held = bool(cores[core]["held"])
    why = (
        f"not all entries of bytes {begin:#x} to {stop - 1:#x} are valid"
        if is_held
        else "the memory takes no more reads while those of TAKEs wait in it (memory.read_outstanding)"
    )
    notes = [
        Note(
            f"{core_text(prepared, core)} is blocked at {place(prepared, core, pc)}: "
            f"{instruction_text(prepared, core, pc)}: {why}",
            sources.span(prepared, core, pc),
        )
    ]
    if not is_held:
        return notes
    return notes + [Note(line) for line in who_puts(prepared, cores, begin, stop)]


def who_puts(prepared: Prepared, cores: NDArray[Any], begin: int, stop: int) -> list[str]:
    """Which cores have PUTs to some bytes, how many they have executed, and where the next one is."""
    program = prepared.program
    puts = np.flatnonzero((program["op"] == layout.STORE) & (program["a"] == 1))
    firsts, stops = bytes_of(prepared, program[puts])
    puts = puts[(firsts < stop) & (stops > begin)]
    owners = np.searchsorted(prepared.starts, puts, side="right") - 1
    lines = []
    for owner in np.unique(owners)[:CALLERS_SHOWN].tolist():
        own = puts[owners == owner]
        later = own[own >= cores[owner]["pc"]]
        text = f"  {core_text(prepared, owner)} has executed {own.size - later.size} of its {own.size} PUTs there"
        if later.size:
            where = place(prepared, owner, int(later[0]) - prepared.span(owner)[0])
            text += f", the next is {where}"
        lines.append(text)
    return lines if puts.size else ["  no program has a PUT there: one is missing"]


def bytes_of(prepared: Prepared, accesses: Any) -> tuple[Any, Any]:
    """Where the bytes of loads and stores begin and stop, of one or of an array."""
    begin = accesses["arg"].astype(np.int64)
    elements = accesses["hi"].astype(np.int64) - accesses["lo"]
    return begin, begin + elements * prepared.kinds["bytes"][accesses["buffer"]]


def _caller_text(prepared: Prepared, cores: NDArray[Any], caller: Caller, number: int) -> str:
    calls = "CALL" if caller.total == 1 else "CALLs"
    text = (
        f"  {core_text(prepared, caller.core)} has executed {caller.executed} of its {caller.total} {calls} "
        f"to core {number}"
    )
    if caller.next_pc is not None:
        text += f", the next is {place(prepared, caller.core, caller.next_pc)}"
    if cores[caller.core]["pc"] >= cores[caller.core]["end"]:
        return f"{text}; it has finished"
    return f"{text}; it is blocked itself"
