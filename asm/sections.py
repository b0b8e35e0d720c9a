"""The sections of an object while it is made: content is added in blocks and joined at the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.expressions import Ints
from cim.asm.objects import DataUse, Section, no_relocations


@dataclass
class Block:
    """What one top-level node adds to a section: bytes, the key of a line for each word of text, relocations."""

    content: NDArray[np.uint8]
    lines: NDArray[np.uint64]
    relocations: list[NDArray[Any]] = field(default_factory=list)
    columns: NDArray[np.uint32] | None = None  # of the symbols of instructions, as in `Section`
    uses: list[DataUse] = field(default_factory=list)  # of symbols in data

    def column(self, words: Ints, columns: int | Ints) -> None:
        """Where the symbols of some instructions stand."""
        if self.columns is None:
            self.columns = np.zeros(len(self.lines), dtype="<u4")
        self.columns[words] = columns


class Sections:
    """All sections so far; `current` is the position of the one that content goes to, if any."""

    def __init__(self) -> None:
        self.all: list[Section] = []
        self.blocks: list[list[Block]] = []
        self.current: int | None = None
        self.placeholders: set[int] = set()  # positions of byte sections without content

    @property
    def here(self) -> Section | None:
        """The current section."""
        return None if self.current is None else self.all[self.current]

    @property
    def in_text(self) -> bool:
        """Whether content goes to a core's program."""
        return self.here is not None and self.here.kind == "text"

    def open(self, kind: str, owner: str, align: int) -> int:
        """Continue the section of that kind and owner, or begin it; returns its position."""
        for index, section in enumerate(self.all):
            if section.kind == kind and section.owner == owner:
                self.current = index
                return index
        self.all.append(Section(kind, owner, align, 0, np.zeros(0, dtype=np.uint8)))
        self.blocks.append([])
        self.current = len(self.all) - 1
        return self.current

    @property
    def in_placeholder(self) -> bool:
        """Whether the current section must not have content."""
        return self.current in self.placeholders

    def add(self, block: Block) -> None:
        """Append to the current section, which must be there."""
        assert self.current is not None
        self.blocks[self.current].append(block)
        self.all[self.current].size += len(block.content)

    def finish(self, renumber: NDArray[np.uint32], moved: NDArray[np.int64]) -> list[Section]:
        """The sections with their content; relocations by offset, symbols by their new numbers.

        `moved` is added to the addends of each symbol.
        """
        for index, (section, blocks) in enumerate(zip(self.all, self.blocks, strict=True)):
            if not blocks or index in self.placeholders:
                continue
            section.data = np.concatenate([block.content for block in blocks])
            section.lines = np.concatenate([block.lines for block in blocks])
            section.columns = np.concatenate(
                [
                    np.zeros(len(b.lines), dtype="<u4") if b.columns is None else b.columns
                    for b in blocks
                ]
            )
            tables = [table for block in blocks for table in block.relocations]
            table = np.concatenate([no_relocations(), *tables])
            table = table[np.argsort(table["offset"], kind="stable")]
            table["addend"] += moved[table["symbol"]]
            table["symbol"] = renumber[table["symbol"]]
            section.relocations = table
        return self.all

    def uses(self) -> dict[str, list[DataUse]]:
        """Where the symbols of data stand: one entry wherever that changes."""
        found: dict[str, list[DataUse]] = {}
        for section, blocks in zip(self.all, self.blocks, strict=True):
            every = sorted((use for block in blocks for use in block.uses), key=lambda u: u.offset)
            kept = [
                use
                for before, use in zip([None, *every], every, strict=False)
                if before is None or before.place != use.place
            ]
            if kept:
                found[section.name] = kept
        return found
