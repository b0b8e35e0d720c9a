"""`--cref`: where each global symbol is defined and used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from cim.asm.objects import Object
from cim.asm.option_expressions import Defsym

_HEADINGS = ("symbol", "defined in", "used in")


def cross_reference_text(objects: Iterable[Object], defsyms: Mapping[str, Defsym]) -> str:
    """The table: a line for each symbol and section that uses it, with its first line and how many uses."""
    defined = {name: str(defsym) for name, defsym in defsyms.items()}
    uses: dict[str, list[str]] = {}
    for obj in objects:
        for symbol in obj.symbols:
            if symbol.is_global and symbol.section is not None:
                place = obj.attributes.definitions.get(symbol.name)
                text = f"{place.file}:{place.line}" if place is not None else obj.name
                defined.setdefault(symbol.name, text)
        for name, use in _uses(obj):
            uses.setdefault(name, []).append(use)
    rows = [_HEADINGS]
    for name in sorted(defined | uses):
        places = sorted(uses.get(name, [])) or ["-"]
        rows.append((name, defined.get(name, "-"), places[0]))
        rows += [("", "", place) for place in places[1:]]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c}" for a, b, c in rows]
    return "cross reference\n" + "\n".join(lines) + "\n"


def _uses(obj: Object) -> Iterable[tuple[str, str]]:
    """Global symbols that a section uses, and where."""
    for section in obj.sections:
        table = section.relocations
        numbers, first, counts = np.unique(table["symbol"], return_index=True, return_counts=True)
        for number, row, count in zip(numbers.tolist(), first, counts.tolist(), strict=True):
            symbol = obj.symbols[number]
            if not symbol.is_global:
                continue
            place = f"{obj.name} {section.name}"
            if section.kind == "text":
                index = int(section.lines[int(table["offset"][row]) // 8])
                location = obj.attributes.locations[index]
                place = f"{location.file}:{location.line}"
            yield symbol.name, place + (f" ({count} uses)" if count > 1 else "")
