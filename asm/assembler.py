"""Assembles sources into one object: the order of things here, the bytes in `emission.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm import data, directives, emission, padding
from cim.asm.batches import FlatRun
from cim.asm.blocks import SECTION_OPENERS, Broken, If, Let, Node, Statement, read_blocks
from cim.asm.expansion import Expander
from cim.asm.expressions import ExpressionError
from cim.asm.find_files import Files
from cim.asm.forecast import MAX_PASSES, Forecast, Sized, Stretch, circles
from cim.asm.image import Location
from cim.asm.locations import Locations
from cim.asm.names import Names
from cim.asm.objects import (
    Attributes,
    CoreAttributes,
    Object,
)
from cim.asm.preprocess import Preprocessor
from cim.asm.recorded import Recorded
from cim.asm.sections import Sections
from cim.asm.syntax import Place
from cim.asm.where import Where
from cim.diagnostics import CimError, Diagnostic, Source, Span
from cim.files import read_regular
from cim.isa.load import load_isa


def assemble(
    sources: Iterable[Source],
    name: str,
    read_file: Callable[[Path], bytes] = read_regular,
    include: Iterable[Path] = (),
    defines: Mapping[str, int] | None = None,
    by_shape: bool = True,
    remark: Callable[[Diagnostic], None] = lambda _: None,
    keep_local: bool = False,
) -> Object:
    """One object from one or more sources.

    `.incbin` looks beside the source, then in the folders of `include`, and reads through `read_file`.
    `by_shape` parses lines of the same shape once, and changes nothing but the time it takes. `remark` is
    given warnings and what `.print` says. `keep_local` keeps local labels as symbols. Raises `CimError` with
    every error of every source.
    """
    files = Files(read_file, tuple(include))
    parsed = [_parse(source, files, by_shape) for source in sources]
    if any(one.is_incomplete for one in parsed):
        # What an include would have brought is missing everywhere: only what is wrong by itself is said.
        raise CimError([diagnostic for one in parsed for diagnostic in _in_order(one)])
    forecast = Forecast()
    for _ in range(MAX_PASSES):
        remarks: list[Diagnostic] = []
        assembler = Assembler(name, files, dict(defines or {}), remarks.append, forecast)
        for one in parsed:
            assembler.add(one)
        seen, forecast = forecast, assembler.names.forecast()
        if assembler.is_final(seen, forecast):
            break
    else:
        if not assembler.found:  # what is wrong may be why
            message = f"sizes still change after {MAX_PASSES} passes"
            assembler.found.append(Diagnostic(message, where=name))
    for diagnostic in remarks:
        remark(diagnostic)
    return assembler.finish(keep_local)


@dataclass(frozen=True)
class _Parsed:
    """The nodes of a source, what is wrong with its lines, and which lines those are."""

    source: Source
    nodes: list[Node | FlatRun | Broken]
    found: list[Diagnostic]
    macros: Collection[str]
    is_incomplete: bool  # a file that it includes could not be read


def _in_order(parsed: _Parsed) -> list[Diagnostic]:
    return sorted(parsed.found, key=lambda d: _sort_key(d, {id(parsed.source): 0}))


def _parse(source: Source, files: Files, by_shape: bool) -> _Parsed:
    found: list[Diagnostic] = []
    plain = [*load_isa().by_mnemonic, *data.ELEMENT_BYTES] if by_shape else ()
    preprocessor = Preprocessor(source, files.source, found, plain)
    nodes, more = read_blocks(preprocessor.lines(), by_shape)
    return _Parsed(source, nodes, found + more, preprocessor.macros, preprocessor.is_incomplete)


class Assembler:
    """The state of one assembly: the object so far, the current core, section and file-level names."""

    def __init__(
        self, name: str, files: Files, defines: dict[str, int],
        remark: Callable[[Diagnostic], None], forecast: Forecast,
    ) -> None:  # fmt: skip
        self.isa = load_isa()
        self.name = name
        self.files = files
        self.remark = remark
        self.attributes = Attributes()
        self.sections = Sections()
        self.sources: list[Source] = []
        self.found: list[Diagnostic] = []
        self.locations = Locations()
        self.names = Names(
            self.isa, self.sections, self.attributes.cores, defines, forecast, self.found.append,
            self.location,
        )  # fmt: skip
        self.expander = Expander(
            self.names.lookup, partial(emission.size_of, self), self.found.append, self.names
        )
        self.sized: list[Sized] = []
        self.ambient: tuple[
            Stretch, ...
        ] = ()  # what the conditions around the current line depend on

    def _new_file(self, source: Source) -> None:
        self.source = source
        self.recorded = Recorded()
        self.core: CoreAttributes | None = None
        self.macros: Collection[str] = ()
        self.is_lost = False  # whether what stands here belongs to a section that could not begin
        self.sections.current = None
        self.names.new_file()

    # --- a file ------------------------------------------------------------------------------------------

    def add(self, parsed: _Parsed) -> None:
        """Assemble one more source into the object."""
        self._new_file(parsed.source)
        self.macros = parsed.macros
        self.sources.append(parsed.source)
        self.found += parsed.found
        self.names.late = directives.equ_expressions(parsed.nodes)
        self._top_nodes(parsed.nodes)

    def is_final(self, seen: Forecast, made: Forecast) -> bool:
        """Whether another pass would find nothing else; finds circles, which no pass would end.

        Where nothing changes any more, what has been guessed is asked for once more, to be refused.
        """
        if seen.is_last or not (self.names.incomplete or self.names.foretold):
            return True
        circular = circles(self.sized)
        if circular:  # what else was found may come from sizes that are none
            self.found[:] = circular
        made.is_last = made == seen and self.names.guessed
        return bool(circular) or (made == seen and not self.names.guessed)

    def _top_nodes(self, nodes: Iterable[Node | FlatRun | Broken]) -> None:
        for node in nodes:
            if isinstance(node, FlatRun):
                if not self.is_lost:
                    emission.emit_run(self, node)
            elif isinstance(node, Broken):
                self._lose(node.op)
            else:
                self.attempt(node.where, self.top_level, node)

    def finish(self, keep_local: bool) -> Object:
        """The object. Raises `CimError` with all errors found."""
        self.names.resolve_local()
        self._check_regions()
        if self.found:
            order = {id(source): index for index, source in enumerate(self.sources)}
            self.found.sort(key=lambda d: _sort_key(d, order))
            raise CimError(self.found)
        self.attributes.uses = self.sections.uses()
        self.attributes.definitions = {
            key: location
            for key, location in self.names.definitions.items()
            if self.names.symbols[key].is_global
        }
        table = self.names.table(keep_local)
        sections = self.sections.finish(table.number, table.moved)
        self.attributes.locations = self.locations.resolve(sections)
        return Object(self.name, sections, table.symbols, self.attributes)

    def _check_regions(self) -> None:
        """Refuse more content than a region's shape has room for."""
        sizes = {s.owner: s.size for s in self.sections.all if s.kind == "region"}
        for region in self.attributes.regions:
            size, room = sizes[region.name], self.names.symbols[region.name].size
            if size > room:
                where, place = self.names.places[region.name]
                message = (
                    f"region '{region.name}' has {size} bytes of content, its shape and type are {room}: "
                    f"{size - room} too many"
                )
                self.found.append(Diagnostic(message, where.span(place)))

    def top_level(self, node: Node) -> None:
        """Assemble a node that is in no block. Raises `ExpressionError`."""
        self.names.stretches = []
        if isinstance(node, If):
            self._top_if(node)
            return
        if isinstance(node, Let):
            self.names.define_constant(node.where, node.name, node.place, node.value)
            return
        if self.is_lost and self._is_skipped(node):
            return
        if isinstance(node, Statement):
            for label in node.tree.labels:
                self.names.define_label(node.where, label)
            handler = directives.HANDLERS.get(node.tree.op or "")
            if handler is not None:
                self._direct(handler, node)
                return
            if node.tree.op is None:
                return
        emission.emit_block(self, node)

    def _direct(self, handler: Callable[[Assembler, Statement], None], node: Statement) -> None:
        """Do what a directive says. Where one that begins a section is wrong, the section's content is skipped."""
        op = node.tree.op or ""
        try:
            handler(self, node)
        except ExpressionError:
            if op in SECTION_OPENERS:
                self._lose(op)
            raise
        if op in SECTION_OPENERS:
            self.is_lost = False

    def _lose(self, op: str) -> None:
        self.is_lost = True
        self.sections.current = None
        if op == ".core":
            self.core = None

    def _is_skipped(self, node: Node) -> bool:
        """Whether a node is content of a section that has not begun, or of a core that is none."""
        op = node.tree.op if isinstance(node, Statement) else None
        if op in (".crossbar", ".param", ".text"):
            return self.core is None
        return op not in directives.HANDLERS or op in padding.HANDLERS

    def _top_if(self, node: If) -> None:
        """Outside loops a branch is chosen now, so that it may hold any directive."""
        around = self.ambient
        for condition, body in node.branches:
            chosen = condition is None or self.names.constant(condition)
            self.ambient += tuple(self.names.stretches)
            if chosen:
                self._top_nodes(body)
                break
        self.ambient = around

    def note_size(self, where: Where, place: Place) -> None:
        """Remember what the size of the current line depends on."""
        self.names.order += 1
        section = self.sections.here
        stretches = (*self.ambient, *self.names.stretches)
        if section is not None and stretches:
            self.sized.append(Sized(where, place, section.name, self.names.order, stretches))

    def location_keys(self, where: Where, count: int = 1) -> NDArray[np.uint64]:
        """The keys of lines in a row, under the name that `.file` set."""
        location = self.location(where)
        return self.locations.keys(location.file, location.line, count)

    def location(self, where: Where) -> Location:
        """Where a line says that it comes from."""
        return self.recorded.location(where)

    def attempt(self, where: Where, action: Callable[[Any], None], argument: object) -> None:
        """Have a fault of a line reported, and go on."""
        try:
            action(argument)
        except ExpressionError as problem:
            self.found.append(Diagnostic(problem.message, where.span(problem.place)))


def _sort_key(diagnostic: Diagnostic, order: Mapping[int, int]) -> tuple[int, int, int]:
    """By the line of the file that led to it; what one line led to stays in order."""
    span = _root(diagnostic.span)
    if span is None:
        return len(order), 0, 0
    column = span.column if span is diagnostic.span else 0
    return order.get(id(span.source), len(order)), span.line, column


def _root(span: Span | None) -> Span | None:
    """The place in the assembled file itself that an include or macro was expanded at."""
    while span is not None and span.source.origin is not None:
        span = span.source.origin.span
    return span
