"""`cim-ld -e LABEL`: which core starts at another place than its first instruction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cim.asm.capacity import CorePart
from cim.asm.objects import Object, Symbol
from cim.diagnostics import Diagnostic, did_you_mean
from cim.isa.encoding import WORD_BYTES


def set_entries(
    labels: Iterable[str],
    cores: Iterable[CorePart],
    objects: Iterable[Object],
    exported: Mapping[str, tuple[Object, Symbol]],
) -> list[Diagnostic]:
    """Sets the entry of each core that holds one of the labels; returns what cannot be.

    A label that is not global will do, where only one object has one of that name.
    """
    by_section = {id(core.text): core for core in cores}
    local: dict[str, list[tuple[Object, Symbol]]] = {}
    for obj in objects:
        for symbol in obj.symbols:
            if not symbol.is_global and symbol.section is not None:
                local.setdefault(symbol.name, []).append((obj, symbol))
    found: list[Diagnostic] = []
    chosen: dict[int, str] = {}

    def fail(message: str) -> None:
        found.append(Diagnostic(message, where=f"--entry {label}"))

    for label in labels:
        places = [exported[label]] if label in exported else local.get(label, [])
        if not places:
            fail(f"there is no label '{label}'{did_you_mean(label, [*exported, *local])}")
            continue
        if len(places) > 1:
            names = " and ".join(sorted({obj.name for obj, _ in places}))
            fail(
                f"'{label}' is a local label more than once, in {names}; .globl makes one of them global"
            )
            continue
        obj, symbol = places[0]
        core = None if symbol.section is None else by_section.get(id(obj.sections[symbol.section]))
        if core is None:
            fail(f"'{label}' must be a label in the program of a core")
        elif symbol.value % WORD_BYTES or symbol.value >= max(core.text.size, 1):
            fail(f"'{label}' stands behind the last instruction of core '{core.attributes.name}'")
        elif id(core) in chosen:
            fail(f"core '{core.attributes.name}' already starts at '{chosen[id(core)]}'")
        else:
            chosen[id(core)] = label
            core.entry = symbol.value
    return found
