"""Source lines as numbers while an object is made, so that many of them are handled at once."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from cim.asm.image import Location
from cim.asm.objects import Section

_LINE_BITS = 32


class Locations:
    """A line's key is its file's number and, in the low bits, its line."""

    def __init__(self) -> None:
        self.files: dict[str, int] = {}

    def keys(self, file: str, first_line: int, count: int) -> NDArray[np.uint64]:
        """The keys of `count` lines in a row."""
        number = self.files.setdefault(file, len(self.files)) << _LINE_BITS
        return np.arange(number + first_line, number + first_line + count, dtype=np.uint64)

    def resolve(self, sections: Iterable[Section]) -> list[Location]:
        """Make the sections' keys indices into the list that is returned, in the order of their first use."""
        sections = list(sections)
        keys = np.concatenate([np.zeros(0, np.uint64), *(section.lines for section in sections)])
        used, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype="<u4")
        rank[order] = np.arange(len(order))
        indices = rank[inverse]
        at = 0
        for section in sections:
            section.lines = indices[at : at + len(section.lines)]
            at += len(section.lines)
        files = list(self.files)
        ordered = used[order]
        numbers = (ordered >> np.uint64(_LINE_BITS)).tolist()
        lines = (ordered & np.uint64(2**_LINE_BITS - 1)).tolist()
        return [Location(files[number], line) for number, line in zip(numbers, lines, strict=True)]
