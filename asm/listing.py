"""The listing: every source line with what it became."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from cim.asm.objects import Object
from cim.asm.recorded import Recorded
from cim.asm.where import Where
from cim.diagnostics import Source

FILE = re.compile(r'\s*\.file\s+"([^"]*)"', re.IGNORECASE)
LINE = re.compile(r'\s*\.line\s+(\d\w*)(?:\s*,\s*"([^"]*)")?\s*(?:#|//|$)', re.IGNORECASE)


def listing_text(obj: Object, sources: Iterable[Source]) -> str:
    """Per line: number, offset and word of its first instruction, how often it was unrolled, the text."""
    words: dict[int, tuple[int, int, int]] = {}  # by line: offset, word, count
    for section in obj.sections:
        if section.kind != "text" or not section.size:
            continue
        ids, first, counts = np.unique(section.lines, return_index=True, return_counts=True)
        for index, at, count in zip(ids.tolist(), first.tolist(), counts.tolist(), strict=True):
            words[index] = (8 * at, int(section.data.view("<u8")[at]), count)
    by_line = {
        (location.file, location.line): words[index]
        for index, location in enumerate(obj.attributes.locations)
        if index in words
    }
    lines = []
    for source in sources:
        lines.append(f"{'line':>6} {'offset':>8} {'word':>16} {'times':>7}  {source.name}")
        recorded = _recorded(source)
        for number, text in enumerate(source.lines, 1):
            location = recorded.location(Where(source, number))
            found = by_line.get((location.file, location.line))
            shown = f"{found[0]:>8x} {found[1]:016x} {found[2]:>7}" if found else f"{'':>33}"
            lines.append(f"{number:>6} {shown}  {text}".rstrip())
    return "\n".join(lines) + "\n"


def _recorded(source: Source) -> Recorded:
    """What the directives `.file` and `.line` of a source say its lines are."""
    recorded = Recorded()
    for number, text in enumerate(source.lines, 1):
        if found := FILE.match(text):
            recorded.rename(Where(source, number), found[1])
        elif found := LINE.match(text):
            recorded.mark(Where(source, number), int(found[1].replace("_", ""), 0), found[2])
    return recorded
