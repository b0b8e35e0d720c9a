"""Where a debugger stops: at instructions, when a SEQ_NR changes, when memory is written."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from cim.diagnostics import CimError, did_you_mean, error
from cim.emulator.explain import Sources
from cim.emulator.prepare import Prepared
from cim.emulator.replay import BEGAN, CALLED, STORED, Event
from cim.isa.numerics import DTYPES


@dataclass(frozen=True)
class Breakpoint:
    """Stops before one of its instructions (positions in all programs) begins."""

    text: str
    instructions: frozenset[int]

    def hit(self, event: Event) -> bool:
        """Whether to stop before this event."""
        return event.kind == BEGAN and event.at in self.instructions


@dataclass(frozen=True)
class SeqWatch:
    """Stops when a CALL reaches a core (a position)."""

    text: str
    core: int

    def hit(self, event: Event) -> bool:
        """Whether to stop after this event."""
        return event.kind == CALLED and event.extra == self.core


@dataclass(frozen=True)
class MemoryWatch:
    """Stops when a store reaches one of the bytes `begin` to before `stop`."""

    text: str
    begin: int
    stop: int

    def hit(self, event: Event) -> bool:
        """Whether to stop after this event."""
        return event.kind == STORED and event.extra < self.stop and event.stop > self.begin


Stop = Breakpoint | SeqWatch | MemoryWatch


def parse_core(prepared: Prepared, text: str) -> int:
    """The position of a core given by number or name. Raises `CimError`."""
    names = {core.name: at for at, core in enumerate(prepared.configs) if core.name}
    numbers = {str(number): at for at, number in enumerate(prepared.names)}
    if text in names | numbers:
        return (names | numbers)[text]
    raise error(f"no core is called '{text}'{did_you_mean(text, names)}")


def parse_breakpoint(prepared: Prepared, sources: Sources, text: str) -> Breakpoint:
    """`FILE:LINE`, `CORE:PC`, the name of a core, or a label of a source. Raises `CimError`."""
    place, colon, number = text.rpartition(":")
    if colon and number.isdecimal():
        files = {location.file for location in prepared.config.locations}
        chosen = {file for file in files if file == place or file.endswith(f"/{place}")}
        if chosen:
            return Breakpoint(text, _at_line(prepared, chosen, int(number), text))
        try:
            core = parse_core(prepared, place)
        except CimError:
            raise error(
                f"'{place}' is neither a source file of the image nor a core"
                f"{did_you_mean(place, files)}"
            ) from None
        begin, end = prepared.span(core)
        if int(number) >= end - begin:
            raise error(f"core {place} has {end - begin} instructions, 0 to {end - begin - 1}")
        return Breakpoint(text, frozenset({begin + int(number)}))
    labels = _labels(prepared, sources)
    if text in labels:
        files_lines = labels[text]
        return Breakpoint(text, frozenset().union(*(
            _at_line(prepared, {file}, line, text) for file, line in files_lines
        )))  # fmt: skip
    try:
        core = parse_core(prepared, text)
    except CimError:
        hint = did_you_mean(text, labels)
        raise error(f"'{text}' must be FILE:LINE, CORE:PC, a core or a label{hint}") from None
    return Breakpoint(text, frozenset({int(prepared.cores["first"][core])}))


def _at_line(prepared: Prepared, files: set[str], line: int, text: str) -> frozenset[int]:
    """The instructions of the first line from `line` on that has any."""
    lines = {
        index: location.line
        for index, location in enumerate(prepared.config.locations)
        if location.file in files and location.line >= line
    }
    if not lines:
        raise error(f"{text}: no instruction at this line or after it")
    first = min(lines.values())
    wanted = [index for index, number in lines.items() if number == first]
    found: list[int] = []
    for at, core in enumerate(prepared.configs):
        hits = np.flatnonzero(np.isin(prepared.image.line_index(core), wanted))
        found += (hits + int(prepared.starts[at])).tolist()
    return frozenset(found)


def _labels(prepared: Prepared, sources: Sources) -> dict[str, list[tuple[str, int]]]:
    """Labels of the source files that can be found, with where they stand."""
    found: dict[str, list[tuple[str, int]]] = {}
    for file in sorted({location.file for location in prepared.config.locations}):
        source = sources.source(file)
        for number, line in enumerate(source.lines if source else [], 1):
            for label in re.match(r"\s*((?:[A-Za-z_.$][\w.$]*:\s*)*)", line)[1].split(":"):  # type: ignore[index]
                if label.strip():
                    found.setdefault(label.strip(), []).append((file, number))
    return found


def parse_watch(prepared: Prepared, words: list[str]) -> SeqWatch | MemoryWatch:
    """`seq CORE`, `REGION`, `REGION[LO:HI]`, or `ADDRESS[:BYTES]`. Raises `CimError`."""
    text = " ".join(words)
    if words[:1] == ["seq"]:
        if len(words) != 2:
            raise error("must be: watch seq CORE")
        return SeqWatch(text, parse_core(prepared, words[1]))
    if len(words) != 1:
        raise error("must be: watch seq CORE, watch REGION[LO:HI], or watch ADDRESS[:BYTES]")
    begin, stop = parse_memory(prepared, words[0])
    return MemoryWatch(text, begin, stop)


def parse_memory(prepared: Prepared, text: str) -> tuple[int, int]:
    """The bytes (begin, stop) of `REGION`, `REGION[LO:HI]` (elements), or `ADDRESS[:BYTES]`. Raises `CimError`."""
    address = re.fullmatch(r"(0[xX][0-9a-fA-F]+|[0-9]+)(?::([0-9]+))?", text)
    if address:
        begin = int(address[1], 16 if address[1][:2] in ("0x", "0X") else 10)
        stop = begin + int(address[2] or 1)
    else:
        name, lo, hi = parse_slice(text)
        regions = {region.name: region for region in prepared.config.regions}
        if name not in regions:
            raise error(f"no region is called '{name}'{did_you_mean(name, regions)}")
        region = regions[name]
        size = DTYPES[region.type].itemsize
        length = region.size_bytes // size
        first, last = lo or 0, length if hi is None else hi
        if not 0 <= first < last <= length:
            raise error(f"region {name} has elements 0 to {length - 1}")
        begin, stop = region.address + first * size, region.address + last * size
    if stop > prepared.config.memory_bytes or begin >= stop:
        raise error(f"shared memory has {prepared.config.memory_bytes} bytes")
    return begin, stop


def parse_slice(text: str) -> tuple[str, int | None, int | None]:
    """`NAME`, `NAME[INDEX]` or `NAME[LO:HI]`. Raises `CimError`."""
    found = re.fullmatch(r"([^\[\]]+)(?:\[([0-9]+)(?::([0-9]+))?\])?", text)
    if not found:
        raise error(f"'{text}' must be NAME, NAME[INDEX] or NAME[LO:HI]")
    if found[2] is None:
        return found[1], None, None
    lo = int(found[2])
    return found[1], lo, lo + 1 if found[3] is None else int(found[3])
