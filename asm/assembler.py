"""Assembles sources into one object: sections and symbols here, instructions and data next door."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm import data, directives, messages
from cim.asm.arguments import unknown
from cim.asm.batches import FlatRun
from cim.asm.blocks import SECTION_OPENERS, Broken, For, If, Let, Node, Statement, read_blocks
from cim.asm.expansion import MAX_BYTES, Expander, Lanes, Piece
from cim.asm.expressions import ExpressionError, Number, shown
from cim.asm.find_files import Files
from cim.asm.flat import (
    WORD_BYTES,
    groups_of,
    piece_of,
    single_piece,
    sizes_of,
    statements_of,
    tree_of,
)
from cim.asm.forecast import MAX_PASSES, Forecast, Sized, Stretch, circles
from cim.asm.image import Location
from cim.asm.instructions import Context, Use, encode_piece
from cim.asm.local_labels import is_local
from cim.asm.locations import Locations
from cim.asm.names import Names
from cim.asm.objects import (
    RELOCATION,
    Attributes,
    CoreAttributes,
    DataUse,
    Object,
    RelocationType,
    SourcePlace,
)
from cim.asm.preprocess import Preprocessor
from cim.asm.recorded import Recorded
from cim.asm.sections import Block, Sections
from cim.asm.syntax import Line, Place
from cim.asm.where import Where
from cim.diagnostics import CimError, Diagnostic, Source, Span
from cim.files import read_regular
from cim.isa.load import load_isa

PADDING = (".align", ".balign", ".org")
BLOCK_DIRECTIVES = (
    ".for", ".endfor", ".rept", ".endr", ".if", ".elif", ".else", ".endif", ".ifdef", ".ifndef", ".let",
    ".include", ".macro", ".endm", ".endmacro", ".irp",
)  # fmt: skip


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
            self._location,
        )  # fmt: skip
        self.expander = Expander(self.names.lookup, self.size_of, self.found.append, self.names)
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
                    self._emit_run(node)
            elif isinstance(node, Broken):
                self._lose(node.op)
            else:
                self._try(node.where, self._top_level, node)

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

    def _top_level(self, node: Node) -> None:
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
        self._emit_block(node)

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
        return op not in directives.HANDLERS or op in PADDING

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

    def _location_keys(self, where: Where, count: int = 1) -> NDArray[np.uint64]:
        """The keys of lines in a row, under the name that `.file` set."""
        location = self._location(where)
        return self.locations.keys(location.file, location.line, count)

    def _location(self, where: Where) -> Location:
        return self.recorded.location(where)

    # --- sections and their content ----------------------------------------------------------------------

    def pad(self, statement: Statement, gap: Callable[[int], int]) -> None:
        """Add `gap(size)` zero bytes to the current section, which must be data. Raises `ExpressionError`."""
        section = self.sections.here
        if section is None:
            raise ExpressionError(
                f"{statement.tree.op} must be in a region or crossbar", statement.tree.op_place
            )
        size = gap(section.size)
        self.note_size(statement.where, statement.tree.op_place)
        if section.size + size > MAX_BYTES:
            raise ExpressionError(
                f"the section would have {section.size + size} bytes, more than an address reaches",
                statement.tree.op_place,
            )
        if section.kind == "text" and size:
            raise ExpressionError(
                "a program cannot be padded: there is no instruction that does nothing",
                statement.tree.op_place,
            )
        self.sections.add(Block(np.zeros(size, dtype=np.uint8), np.zeros(0, dtype=np.uint64)))

    def size_of(self, statement: Statement, lanes: Lanes) -> Number:
        """Bytes of a statement inside a block."""
        tree = statement.tree
        if tree.labels and lanes.scope:
            raise ExpressionError(
                "a label must not be in a loop, where it would have many places",
                tree.labels[0].place,
            )
        if tree.op in directives.HANDLERS:
            raise ExpressionError(f"{tree.op} must not be inside .for or .if", tree.op_place)
        if tree.op is None:
            return 0
        if tree.op in messages.DIRECTIVES:
            messages.handle(statement, lanes, self.expander.evaluate, self.remark)
            return 0
        if tree.op in data.DIRECTIVES:
            return data.size_of(tree, lanes, self.expander.evaluate, self._opener(statement.where))
        if tree.op.startswith("."):
            known = [
                *directives.HANDLERS,
                *data.DIRECTIVES,
                *messages.DIRECTIVES,
                *BLOCK_DIRECTIVES,
            ]
            raise unknown(f"directive '{tree.op}'", tree.op, known, tree.op_place)
        return WORD_BYTES

    def _opener(self, where: Where) -> Callable[[str], bytes]:
        """Reads files that a line names."""
        return lambda name: self.files.find(name, where.source)[1]

    def _emit_run(self, run: FlatRun) -> None:
        """Plain lines outside blocks: all lines of a shape at once, or where that fails one by one."""
        shapes = np.unique(run.shapes).tolist()
        try:
            together = all(self._belongs_here(tree_of(run, shape)) for shape in shapes)
            sizes = sizes_of(run)
        except ExpressionError:
            together = False
        if not together:
            for statement in statements_of(run):
                self._try(statement.where, self._top_level, statement)
            return
        offsets = np.cumsum(sizes) - sizes
        keys = self._location_keys(run.where(0), len(run))
        words = sizes // WORD_BYTES if self.sections.in_text else 0
        block = Block(np.zeros(sizes.sum(), np.uint8), np.repeat(keys, words))
        for indices in groups_of(run):
            try:
                self._emit_piece(piece_of(run, indices, offsets, sizes), block)
            except ExpressionError:
                # Said line by line, with the numbers that stand there.
                for index in indices.tolist():
                    piece = single_piece(run, index, offsets, sizes)
                    self._try(piece.statement.where, lambda p: self._emit_piece(p, block), piece)
        self.sections.add(block)

    def _belongs_here(self, tree: Line) -> bool:
        """Whether the current section may hold an instruction, or data of this kind."""
        if self.sections.in_text:
            return tree.op == ".quad" or tree.op not in data.DIRECTIVES
        return self.sections.here is not None and tree.op in data.DIRECTIVES

    def _try(self, where: Where, action: Callable[[Any], None], argument: object) -> None:
        """Have a fault of a line reported, and go on."""
        try:
            action(argument)
        except ExpressionError as problem:
            self.found.append(Diagnostic(problem.message, where.span(problem.place)))

    def _emit_block(self, node: Node) -> None:
        size, pieces = self.expander.expand([node], {})
        self.note_size(node.where, _place_of(node))
        pieces = [p for p in pieces if p.statement.tree.op not in (None, *messages.DIRECTIVES)]
        if self.sections.here is None:
            if pieces:
                raise ExpressionError(
                    "this must be in a core or region: .core or .region must come first",
                    pieces[0].statement.tree.op_place,
                )
            return
        in_text = self.sections.in_text
        if in_text:  # whole words, whatever data stands there by mistake
            size += -size % WORD_BYTES
        words = size // WORD_BYTES if in_text else 0
        block = Block(np.zeros(size, dtype=np.uint8), np.zeros(words, dtype=np.uint64))
        for piece in pieces:
            self._try(piece.statement.where, lambda p: self._emit_piece(p, block), piece)
            if in_text:
                first = piece.offsets // WORD_BYTES
                for word in range(_words(piece.statement.tree)):
                    block.lines[first + word] = self._location_keys(piece.statement.where)
        self.sections.add(block)

    def _emit_piece(self, piece: Piece, block: Block) -> None:
        """Fill in the bytes and relocations of a piece. Raises `ExpressionError`."""
        tree = piece.statement.tree
        in_text = self.sections.in_text
        if tree.op in data.DIRECTIVES:
            if in_text and tree.op != ".quad":
                raise ExpressionError(
                    f"{tree.op} must not be in a program: only instructions and .quad words are",
                    tree.op_place,
                )
            opener = self._opener(piece.statement.where)
            raw, offsets, uses = data.content_of(piece, self.expander.evaluate, opener)
            if self.sections.in_placeholder and (raw.any() or uses):
                raise ExpressionError(
                    f"{tree.op} must be 0 here: the section has no content", tree.op_place
                )
            block.content[offsets] = raw
            for use, within in uses:
                self._relocate(piece, block, use, within)
        else:
            if not in_text:
                raise ExpressionError(
                    "an instruction must be in a core's program: .core or .text must come first",
                    tree.op_place,
                )
            words, instruction_uses = encode_piece(piece, self._context())
            block.content.view("<u8")[piece.offsets // WORD_BYTES] = words
            for use in instruction_uses:
                self._relocate(piece, block, use, 0)

    def _context(self) -> Context:
        mode = self.attributes.mode
        columns = self.core.columns if self.core is not None and self.core.columns else None
        return Context(
            self.isa,
            self.attributes.extensions,
            mode.mode if mode else None,
            columns,
            self.expander.evaluate,
            self.attributes.machine,
            self.macros,
        )

    def _relocate(self, piece: Piece, block: Block, use: Use, within: int) -> None:
        section = self.sections.here
        assert section is not None
        if is_local(use.symbol):
            self._check_local(piece, use)
        table = np.zeros(piece.lanes.count, dtype=RELOCATION)
        table["offset"] = section.size + piece.offsets + within
        table["type"] = use.type
        table["symbol"] = self.names.reference(use.symbol, piece.statement.where, use.place)
        table["addend"] = use.addends
        block.relocations.append(table)
        if section.kind == "text":
            words = (piece.offsets + within) // WORD_BYTES
            block.column(words, piece.columns(use.place.start))
            return
        location = self._location(piece.statement.where)
        lines, columns = np.broadcast_arrays(
            location.line + piece.lines_on(), piece.columns(use.place.start), table["offset"]
        )[:2]
        block.uses += [
            DataUse(offset, SourcePlace(location.file, line, column))
            for offset, line, column in zip(
                table["offset"].tolist(), lines.tolist(), columns.tolist(), strict=True
            )
        ]

    def _check_local(self, piece: Piece, use: Use) -> None:
        """Refuse a local label where it means nothing."""
        name, spot = shown(use.symbol), self.names.spots.get(use.symbol)
        if use.type == RelocationType.CORE:
            raise ExpressionError(f"'{name}' is a label, call needs a core", use.place)
        if spot is None and piece.is_run:
            # Each line is tried by itself, so that a label that never comes is missed at its own place.
            raise ExpressionError(f"'{name}' is not defined yet", use.place)
        if spot is not None and spot.section.startswith(".crossbar"):
            raise ExpressionError(f"'{name}' is in a crossbar, which has no address", use.place)


def _place_of(node: Node) -> Place:
    """The columns that stand for a node in messages."""
    if isinstance(node, For):
        return Place(node.first.place.start, node.last.place.end)
    return node.tree.op_place if isinstance(node, Statement) else Place(1, 2)


def _words(tree: Line) -> int:
    """Words that a statement of a program takes; other data than .quad is refused there."""
    if tree.op not in data.DIRECTIVES:
        return 1
    return len(tree.operands) if tree.op == ".quad" else 0


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
