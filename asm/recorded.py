"""Under which file and line a source line is recorded: its own, or what `.file` and `.line` say."""

from __future__ import annotations

from bisect import bisect_right
from operator import itemgetter

from cim.asm.image import Location
from cim.asm.where import Where

MAX_LINE = 2**31


class Recorded:
    """The names and numbers of the lines of each source, by the source's name."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.marks: dict[
            str, list[tuple[int, int, str | None]]
        ] = {}  # from line, by how many, file

    def rename(self, where: Where, name: str) -> None:
        """`.file`: all lines of the source belong to another file."""
        self.names[where.source.name] = name

    def mark(self, where: Where, number: int, name: str | None) -> None:
        """`.line`: the next line is line `number`, of a file if one is given."""
        marks = self.marks.setdefault(where.source.name, [])
        first = where.line + 1
        at = bisect_right(marks, first, key=itemgetter(0))
        if at and marks[at - 1][0] == first:  # the same file once more, by .include
            at -= 1
            del marks[at]
        if name is None and at:
            name = marks[at - 1][2]
        marks.insert(at, (first, number - first, name))

    def location(self, where: Where) -> Location:
        """What is recorded for a line."""
        source = where.source.name
        name, line = self.names.get(source, source), where.line
        marks = self.marks.get(source)
        if marks:
            at = bisect_right(marks, line, key=itemgetter(0))
            if at:
                _, moved, file = marks[at - 1]
                return Location(file or name, line + moved)
        return Location(name, line)
