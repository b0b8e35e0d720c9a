"""Assembles sources into one object: sections and symbols here, instructions and data next door."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm import data, directives
from cim.asm.blocks import FlatRun, Let, Node, Statement, Where, read_blocks
from cim.asm.expansion import Expander, Lanes, Piece, Scope
from cim.asm.expressions import ExpressionError, Number, Value, evaluate
from cim.asm.flat import groups_of, piece_of, single_piece, statements_of
from cim.asm.image import Location
from cim.asm.instructions import Context, Use, encode_piece
from cim.asm.objects import (
    RELOCATION,
    Attributes,
    CoreAttributes,
    Object,
    Section,
    Symbol,
    no_relocations,
)
from cim.asm.syntax import Expression, Label, Line, Place
from cim.diagnostics import CimError, Diagnostic, Note, Source
from cim.isa.load import load_isa

WORD_BYTES = 8


def assemble(
    sources: Iterable[Source],
    name: str,
    read_file: Callable[[Path], bytes] = Path.read_bytes,
    include: Iterable[Path] = (),
    defines: Mapping[str, int] | None = None,
    by_shape: bool = True,
) -> Object:
    """One object from one or more sources.

    `.incbin` looks beside the source, then in the folders of `include`, and reads through `read_file`.
    `by_shape` parses lines of the same shape once, and changes nothing but the time it takes. Raises `CimError` with every error of every source.
    """
    assembler = Assembler(name, read_file, list(include), dict(defines or {}))
    for source in sources:
        assembler.add(source, by_shape)
    return assembler.finish()


@dataclass
class _Block:
    """What one top-level node adds to a section: bytes, a location for each word of text, relocations."""

    content: NDArray[np.uint8]
    lines: NDArray[np.uint32]
    relocations: list[NDArray[Any]] = field(default_factory=list)


class Assembler:
    """The state of one assembly: the object so far, the current core, section and file-level names."""

    def __init__(
        self, name: str, read_file: Callable[[Path], bytes], include: list[Path],
        defines: dict[str, int],
    ) -> None:  # fmt: skip
        self.isa = load_isa()
        self.name = name
        self.read_file = read_file
        self.include = include
        self.attributes = Attributes()
        self.sections: list[Section] = []
        self.chunks: dict[int, list[_Block]] = {}
        self.symbols: dict[str, Symbol] = {}
        self.symbol_numbers: dict[
            str, int
        ] = {}  # a symbol keeps its number when it is defined later
        self.symbol_places: dict[str, tuple[Where, Place]] = {}
        self.defines: Mapping[str, Number] = defines
        self.definitions: dict[str, Location] = {}
        self.sources: list[Source] = []
        self.found: list[Diagnostic] = []
        self.locations: dict[Location, int] = {}
        self.expander = Expander(self.lookup, self.size_of, self.found.append)
        self._new_file(Source("", ""))

    def _new_file(self, source: Source) -> None:
        self.source = source
        self.recorded_name = source.name
        self.core: CoreAttributes | None = None
        self.section: int | None = None
        self.constants: dict[str, Number] = dict(self.defines)
        self.constant_places: dict[str, tuple[Where, Place]] = {}

    # --- a file ------------------------------------------------------------------------------------------

    def add(self, source: Source, by_shape: bool = True) -> None:
        """Assemble one more source into the object."""
        self._new_file(source)
        self.sources.append(source)
        nodes, found = read_blocks(source, by_shape)
        self.found += found
        for node in nodes:
            try:
                if isinstance(node, FlatRun):
                    self._emit_run(node)
                else:
                    self._top_level(node)
            except ExpressionError as problem:
                self.found.append(Diagnostic(problem.message, node.where.span(problem.place)))

    def finish(self) -> Object:
        """The object. Raises `CimError` with all errors found."""
        if self.found:
            order = {id(source): index for index, source in enumerate(self.sources)}
            self.found.sort(key=lambda d: _sort_key(d, order))
            raise CimError(self.found)
        self.attributes.locations = list(self.locations)
        self.attributes.definitions = {
            name: location
            for name, location in self.definitions.items()
            if self.symbols[name].is_global
        }
        for index, blocks in self.chunks.items():
            if not blocks:
                continue
            section = self.sections[index]
            section.data = np.concatenate([block.content for block in blocks])
            section.lines = np.concatenate([block.lines for block in blocks])
            tables = [table for block in blocks for table in block.relocations]
            section.relocations = np.concatenate([no_relocations(), *tables])
        return Object(self.name, self.sections, self._sorted_symbols(), self.attributes)

    def _sorted_symbols(self) -> list[Symbol]:
        """Symbols by name and relocations by offset, in whatever order they were met."""
        names = sorted(self.symbols)
        renumber = np.zeros(len(names), dtype=np.uint32)
        for number, name in enumerate(names):
            renumber[self.symbol_numbers[name]] = number
        for section in self.sections:
            if len(section.relocations):
                table = section.relocations[
                    np.argsort(section.relocations["offset"], kind="stable")
                ]
                table["symbol"] = renumber[table["symbol"]]
                section.relocations = table
        return [self.symbols[name] for name in names]

    def _top_level(self, node: Node) -> None:
        if isinstance(node, Let):
            self.define_constant(node.where, node.name, node.place, node.value)
            return
        if isinstance(node, Statement):
            for label in node.tree.labels:
                self.define_label(node.where, label)
            handler = directives.HANDLERS.get(node.tree.op or "")
            if handler is not None:
                handler(self, node)
                return
            if node.tree.op is None:
                return
        self._emit_block(node)

    # --- names -------------------------------------------------------------------------------------------

    def lookup(self, scope: Scope) -> Callable[[str, Place], Value]:
        """The resolver for names inside loops: loop variables, then constants, else a symbol."""

        def find(name: str, place: Place) -> Value:
            if name in scope:
                return Value(scope[name])
            if name in self.constants:
                return Value(self.constants[name])
            if name in self.isa.buffers:
                raise ExpressionError(f"the buffer '{name}' has no number", place)
            return Value(0, name)

        return find

    def constant(self, expression: Expression) -> int | float:
        """A number that does not depend on loops. Raises `ExpressionError` for an address."""
        value = evaluate(expression, self.lookup({}))
        if value.symbol is not None or isinstance(value.number, np.ndarray):
            raise ExpressionError(
                f"'{value.symbol}' must be a constant here (.let or .equ)", expression.place
            )
        return value.number

    def define_constant(self, where: Where, name: str, place: Place, value: Expression) -> None:
        """`.let`, `.set` and `.equ` outside loops."""
        self.constants[name] = self.constant(value)
        self.constant_places[name] = (where, place)

    def define_label(self, where: Where, label: Label) -> None:
        """A label at the current end of the current section."""
        if self.section is None:
            raise ExpressionError("a label must be in a core or region", label.place)
        value = self.sections[self.section].size
        self.define_symbol(where, label.name, label.place, "label", self.section, value, 0, False)

    def define_symbol(
        self, where: Where, name: str, place: Place, kind: str, section: int, value: int, size: int,
        is_global: bool,
    ) -> None:  # fmt: skip
        """Add a defined symbol. Raises nothing: a second definition is reported with both places."""
        if name.lower() in self.isa.buffers:
            raise ExpressionError(f"'{name}' is a buffer and must not be a symbol", place)
        known = self.symbols.get(name)
        if known is not None and known.section is not None:
            first_where, first_place = self.symbol_places[name]
            self.found.append(
                Diagnostic(
                    f"'{name}' is already defined",
                    where.span(place),
                    notes=(Note("first defined here", first_where.span(first_place)),),
                )
            )
            return
        is_global = is_global or (known is not None and known.is_global)
        self.symbol_numbers.setdefault(name, len(self.symbols))
        self.symbols[name] = Symbol(name, kind, section, value, size, is_global)
        self.symbol_places[name] = (where, place)
        self.definitions[name] = Location(self.recorded_name, where.line)

    def location_id(self, where: Where) -> int:
        """The line's index in the object's locations, under the name that `.file` set."""
        location = Location(self.recorded_name, where.line)
        return self.locations.setdefault(location, len(self.locations))

    # --- sections and their content ----------------------------------------------------------------------

    def open_section(self, kind: str, owner: str, align: int) -> int:
        """Continue the section of that kind and owner, or begin it; it becomes the current one."""
        for index, section in enumerate(self.sections):
            if section.kind == kind and section.owner == owner:
                self.section = index
                return index
        self.sections.append(Section(kind, owner, align, 0, np.zeros(0, dtype=np.uint8)))
        self.section = len(self.sections) - 1
        self.chunks[self.section] = []
        return self.section

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
        if tree.op in data.DIRECTIVES:
            return data.size_of(tree, lanes, self.expander.evaluate, self.open_file)
        if tree.op.startswith("."):
            known = [*directives.HANDLERS, *data.DIRECTIVES, ".for", ".endfor", ".if", ".let"]
            raise directives.unknown(f"directive '{tree.op}'", tree.op, known, tree.op_place)
        return WORD_BYTES

    def open_file(self, name: str) -> bytes:
        """The content of a file that a source names. Raises `OSError`."""
        folders = [Path(self.source.name).parent, *self.include]
        for folder in folders[:-1]:
            try:
                return self.read_file(folder / name)
            except FileNotFoundError:
                continue
        return self.read_file(folders[-1] / name)

    def _emit_run(self, run: FlatRun) -> None:
        """Instructions outside blocks: all lines of a shape at once, or where that fails one by one."""
        if self.section is None or self.sections[self.section].kind != "text":
            for statement in statements_of(run):
                self._try(statement.where, self._top_level, statement)
            return
        ids = np.array([self.location_id(Where(run.where.source, line)) for line in run.lines])
        block = _Block(np.zeros(WORD_BYTES * len(run.lines), np.uint8), ids.astype("<u4"))
        for indices in groups_of(run):
            piece = piece_of(run, indices)
            try:
                if piece is not None:
                    self._emit_piece(piece, block)
                    continue
            except ExpressionError:
                pass  # said below, with its line and the numbers that stand there
            for index in indices.tolist():
                where = Where(run.where.source, run.lines[index])
                self._try(where, lambda i: self._emit_piece(single_piece(run, i), block), index)
        self._add(block)

    def _try(self, where: Where, action: Callable[[Any], None], argument: object) -> None:
        """Have a fault of a line reported, and go on."""
        try:
            action(argument)
        except ExpressionError as problem:
            self.found.append(Diagnostic(problem.message, where.span(problem.place)))

    def _emit_block(self, node: Node) -> None:
        size, pieces = self.expander.expand([node], {})
        if self.section is None:
            if pieces:
                raise ExpressionError(
                    "this must be in a core or region: .core or .region must come first",
                    pieces[0].statement.tree.op_place,
                )
            return
        in_text = self.sections[self.section].kind == "text"
        words = size // WORD_BYTES if in_text else 0
        block = _Block(np.zeros(size, dtype=np.uint8), np.zeros(words, dtype="<u4"))
        for piece in pieces:
            if piece.statement.tree.op is None:
                continue
            self._try(piece.statement.where, lambda p: self._emit_piece(p, block), piece)
            if in_text:
                first = piece.offsets // WORD_BYTES
                for word in range(_words(piece.statement.tree)):
                    block.lines[first + word] = self.location_id(piece.statement.where)
        self._add(block)

    def _add(self, block: _Block) -> None:
        """Append a block to the current section."""
        assert self.section is not None
        self.chunks[self.section].append(block)
        self.sections[self.section].size += len(block.content)

    def _emit_piece(self, piece: Piece, block: _Block) -> None:
        """Fill in the bytes and relocations of a piece. Raises `ExpressionError`."""
        assert self.section is not None
        tree = piece.statement.tree
        in_text = self.sections[self.section].kind == "text"
        if tree.op in data.DIRECTIVES:
            if in_text and tree.op != ".quad":
                raise ExpressionError(
                    f"{tree.op} must not be in a program: only instructions and .quad words are",
                    tree.op_place,
                )
            raw, offsets, uses = data.content_of(piece, self.expander.evaluate, self.open_file)
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
        )

    def _relocate(self, piece: Piece, block: _Block, use: Use, within: int) -> None:
        assert self.section is not None
        if use.symbol not in self.symbols:
            self.symbol_numbers[use.symbol] = len(self.symbols)
            self.symbols[use.symbol] = Symbol(use.symbol, "label", None, 0, 0, True)
        table = np.zeros(piece.lanes.count, dtype=RELOCATION)
        table["offset"] = self.sections[self.section].size + piece.offsets + within
        table["type"] = use.type
        table["symbol"] = self.symbol_numbers[use.symbol]
        table["addend"] = use.addends
        block.relocations.append(table)


def _words(tree: Line) -> int:
    """Words that a statement of a program takes; other data than .quad is refused there."""
    if tree.op not in data.DIRECTIVES:
        return 1
    return len(tree.operands) if tree.op == ".quad" else 0


def _sort_key(diagnostic: Diagnostic, order: Mapping[int, int]) -> tuple[int, int, int]:
    span = diagnostic.span
    return (order[id(span.source)], span.line, span.column) if span else (len(order), 0, 0)
