"""`--core` of `cim-objdump`: an object as if one core stood in it alone."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np

from cim.asm.objects import Object
from cim.diagnostics import did_you_mean, error


def only_core(obj: Object, which: str) -> Object:
    """The program and crossbar of the core of that name or number; what they use is undefined.

    Raises `CimError` with the cores that there are.
    """
    cores = obj.attributes.cores
    chosen = [core for core in cores if which in (core.name, str(core.number))]
    if not chosen:
        names = [core.name for core in cores]
        listed = ", ".join(f"{core.name} ({core.number})" for core in cores[:8]) or "none"
        more = f" and {len(cores) - 8} more" if len(cores) > 8 else ""
        raise error(
            f"core must be one of {listed}{more}, not {which}{did_you_mean(which, names)}",
            where=obj.name,
        )
    (core,) = chosen[:1]
    kept = [
        index
        for index, section in enumerate(obj.sections)
        if section.kind in ("text", "crossbar") and section.owner == core.name
    ]
    place = {old: new for new, old in enumerate(kept)}
    used = {int(i) for index in kept for i in np.unique(obj.sections[index].relocations["symbol"])}
    wanted = [
        number
        for number, symbol in enumerate(obj.symbols)
        if number in used or symbol.section in place
    ]
    renumber = np.zeros(len(obj.symbols), dtype=np.uint32)
    renumber[wanted] = np.arange(len(wanted))
    sections = []
    for index in kept:
        section = replace(obj.sections[index], relocations=obj.sections[index].relocations.copy())
        section.relocations["symbol"] = renumber[section.relocations["symbol"]]
        sections.append(section)
    symbols = []
    for number in wanted:
        symbol = obj.symbols[number]
        if symbol.section in place:
            symbols.append(replace(symbol, section=place[symbol.section]))
        else:
            symbols.append(
                replace(symbol, kind="label", section=None, value=0, size=0, is_global=True)
            )
    attributes = msgspec.structs.replace(obj.attributes, cores=[core], regions=[], layer={})
    return Object(obj.name, sections, symbols, attributes)
