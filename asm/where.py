"""Where a line stands, for messages and line tables."""

from __future__ import annotations

from dataclasses import dataclass

from cim.asm.syntax import Place
from cim.diagnostics import Source, Span


@dataclass(frozen=True, slots=True)
class Where:
    """A line of a source; makes spans from the columns of its tree."""

    source: Source
    line: int

    def span(self, place: Place) -> Span:
        """The columns `place` of this line."""
        return Span(self.source, self.line, place.start, place.end)

    def columns(self, start: int, end: int) -> Span:
        """Columns `start` to `end - 1`, from 1."""
        return Span(self.source, self.line, start, end)
