"""Where the linker's errors are: the place in the source, with its line and a caret if the file is there."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

from cim.asm.objects import Object, Section, SourcePlace
from cim.diagnostics import Diagnostic, Note, Source, Span
from cim.files import read_regular

SHOWN = 4  # of many places so many are shown with their line, the others are named


class Places:
    """Finds source lines: under the name that is recorded, or beside the file that names them."""

    def __init__(self) -> None:
        self.sources: dict[tuple[str, str], Source | None] = {}

    def use(self, obj: Object, section: Section, offset: int) -> SourcePlace | None:
        """Where the symbol of a relocation stands."""
        if section.kind == "text":
            word = offset // 8
            location = obj.attributes.locations[int(section.lines[word])]
            column = int(section.columns[word]) if len(section.columns) else 0
            return SourcePlace(location.file, location.line, column)
        uses = obj.attributes.uses.get(section.name, [])
        at = bisect_right(uses, offset, key=lambda use: use.offset)
        return uses[at - 1].place if at else None

    def span(self, place: SourcePlace, beside: str, word: str = "") -> Span | None:
        """The columns of the word on its line, or of the statement; None if the line cannot be found.

        `beside` is the path of the file that names the place.
        """
        source = self._source(place.file, beside)
        text = "" if source is None else source.line(place.line)
        if source is None or not text.strip():
            return None
        # Out of a macro the line is another one: its text is not what the column was counted in.
        if place.column and text.startswith(word, place.column - 1):
            return Span(source, place.line, place.column, place.column + len(word))
        code = re.split("#|//", text)[0].rstrip() or text.rstrip()
        return Span(source, place.line, len(text) - len(text.lstrip()) + 1, len(code) + 1)

    def _source(self, file: str, beside: str) -> Source | None:
        key = (file, str(Path(beside).parent))
        if key not in self.sources:
            self.sources[key] = None
            for path in (Path(file), Path(beside).parent / file):
                try:
                    text = read_regular(path).decode("utf-8-sig")
                except (OSError, ValueError):
                    continue
                self.sources[key] = Source(file, text)
                break
        return self.sources[key]

    def diagnostic(
        self, message: str, place: SourcePlace | None, beside: str, word: str = "",
        notes: Iterable[Note] = (),
    ) -> Diagnostic:  # fmt: skip
        """An error at a place, or in the file `beside` where there is none."""
        if place is None:
            return Diagnostic(message, where=beside, notes=tuple(notes))
        span = self.span(place, beside, word)
        return Diagnostic(message, span, "" if span else str(place), tuple(notes))

    def note(
        self, text: str, place: SourcePlace | None, beside: str, word: str = "", shown: bool = True
    ) -> Note:
        """A note at a place: `TEXT here` with its line, or else `TEXT at PLACE`."""
        span = self.span(place, beside, word) if place is not None and shown else None
        return Note(f"{text} here", span) if span else Note(f"{text} at {place or beside}")
