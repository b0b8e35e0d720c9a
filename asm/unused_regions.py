"""`--gc-sections`: the regions that nothing kept refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from cim.asm.objects import Object, Section

KEPT_ROLES = ("ifm", "ofm")


def unused_regions(objects: Iterable[Object]) -> list[tuple[str, Object]]:
    """Names of regions and sections, and their objects: without role ifm or ofm, and reached from no program or kept region.

    What counts is a symbol: a program that writes a region's address as a number does not keep it.
    """
    every = list(objects)
    homes: dict[str, tuple[Object, Section]] = {}
    for obj in every:
        for symbol in obj.symbols:
            if symbol.is_global and symbol.section is not None:
                homes.setdefault(symbol.name, (obj, obj.sections[symbol.section]))
    waiting = list(_roots(every))
    kept = {id(section) for _, section in waiting}
    while waiting:
        obj, section = waiting.pop()
        for target in _referred(obj, section, homes):
            if id(target[1]) not in kept:
                kept.add(id(target[1]))
                waiting.append(target)
    unused = [
        (section.owner, obj)
        for obj in every
        for section in obj.sections
        if section.kind in ("region", "section") and id(section) not in kept
    ]
    return sorted(unused, key=lambda one: one[0])


def _roots(objects: Iterable[Object]) -> Iterator[tuple[Object, Section]]:
    for obj in objects:
        roles = {region.name: region.role for region in obj.attributes.regions}
        for section in obj.sections:
            if section.kind in ("text", "crossbar") or roles.get(section.owner) in KEPT_ROLES:
                yield obj, section


def _referred(
    obj: Object, section: Section, homes: dict[str, tuple[Object, Section]]
) -> Iterator[tuple[Object, Section]]:
    for index in np.unique(section.relocations["symbol"]).tolist():
        symbol = obj.symbols[index]
        if symbol.section is not None:
            yield obj, obj.sections[symbol.section]
        elif symbol.name in homes:
            yield homes[symbol.name]
