"""What can be seen about CALL and WAIT without running: a WAIT that no number of CALLs can release."""

from __future__ import annotations

import numpy as np

from cim.asm.image import Image
from cim.asm.link_places import Places
from cim.asm.objects import SourcePlace
from cim.diagnostics import Diagnostic, Note
from cim.isa.encoding import WORD_BYTES, decode
from cim.isa.load import load_isa


def check_synchronization(image: Image) -> list[Diagnostic]:
    """A diagnostic for every core that waits for more CALLs than all programs hold for it."""
    isa = load_isa()
    classes = [instruction.timing_class for instruction in isa.instructions.values()]
    call, wait = classes.index("call"), classes.index("wait")
    calls: dict[int, int] = {}
    callers: dict[int, list[str]] = {}
    waits = {}
    for core in image.config.cores:
        first = core.entry // WORD_BYTES
        decoded = decode(isa, image.words(core)[first:])
        targets, counts = np.unique(
            decoded.operands["core"][decoded.index == call], return_counts=True
        )
        for target, count in zip(targets.tolist(), counts.tolist(), strict=True):
            calls[target] = calls.get(target, 0) + count
            callers.setdefault(target, []).append(f"{core.name} ({count})")
        values = np.where(decoded.index == wait, decoded.operands["value"], 0)
        if values.size and values.max() > 0:
            waits[core.number] = (core, values)
    found = []
    places = Places()
    for number, (core, values) in waits.items():
        total = calls.get(number, 0)
        beyond = np.flatnonzero(values > total)
        if not beyond.size:
            continue
        pc = int(beyond[0])  # counted from the entry
        location = image.location(core, core.entry // WORD_BYTES + pc)
        place = SourcePlace(location.file, location.line)
        who = ", ".join(callers.get(number, [])) or "no core"
        found.append(
            Diagnostic(
                f"wait {values[pc]} of core '{core.name}' can never end: all programs together have "
                f"{total} calls of it",
                places.span(place, str(image.path)),
                str(place),
                notes=(Note(f"it is called by {who}"), Note("--no-check links all the same")),
            )
        )
    known = {core.number for core in image.config.cores}
    for target in sorted(set(calls) - known):
        found.append(
            Diagnostic(
                f"core {target} is called by {', '.join(callers[target])}, but has no program",
                where=image.path.stem,
            )
        )
    return found
