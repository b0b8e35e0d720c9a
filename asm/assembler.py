"""Assembles sources into one object: sections and symbols here, instructions and data next door."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cim.asm import data, directives
from cim.asm.blocks import Let, Node, Statement, Where, read_blocks
from cim.asm.expansion import Expander, Lanes, Piece, Scope
from cim.asm.expressions import ExpressionError, Number, Value, evaluate
from cim.asm.image import Location
from cim.asm.instructions import Context, Use, encode_piece
from cim.asm.objects import RELOCATION, Attributes, CoreAttributes, Object, Section, Symbol
from cim.asm.syntax import Expression, Label, Place
from cim.diagnostics import CimError, Diagnostic, Note, Source
from cim.isa.load import load_isa

WORD_BYTES = 8


def assemble(
    sources: Iterable[Source],
    name: str,
    read_file: Callable[[Path], bytes] = Path.read_bytes,
    include: Iterable[Path] = (),
    defines: Mapping[str, int] | None = None,
) -> Object:
    """One object from one or more sources.

    `.incbin` looks beside the source, then in the folders of `include`, and reads through `read_file`.
    Raises `CimError` with every error of every source.
    """
    assembler = Assembler(name, read_file, list(include), dict(defines or {}))
    for source in sources:
        assembler.add(source)
    return assembler.finish()


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
        self.chunks: dict[int, list[np.ndarray[Any, Any]]] = {}
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

    def add(self, source: Source) -> None:
        """Assemble one more source into the object."""
        self._new_file(source)
        self.sources.append(source)
        nodes, found = read_blocks(source)
        self.found += found
        for node in nodes:
            try:
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
        for index, chunks in self.chunks.items():
            if chunks:
                self.sections[index].data = np.concatenate(chunks)
        return Object(self.name, self.sections, list(self.symbols.values()), self.attributes)

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

    def _emit_block(self, node: Node) -> None:
        size, pieces = self.expander.expand([node], {})
        if self.section is None:
            if pieces:
                raise ExpressionError(
                    "this must be in a core or region: .core or .region must come first",
                    pieces[0].statement.tree.op_place,
                )
            return
        section = self.sections[self.section]
        content = np.zeros(size, dtype=np.uint8)
        lines = np.zeros(size // WORD_BYTES if section.kind == "text" else 0, dtype="<u4")
        for piece in pieces:
            try:
                self._emit_piece(piece, section, content, lines)
            except ExpressionError as problem:
                span = piece.statement.where.span(problem.place)
                self.found.append(Diagnostic(problem.message, span))
        self.chunks[self.section].append(content)
        section.lines = np.concatenate([section.lines, lines])
        section.size += size

    def _emit_piece(
        self, piece: Piece, section: Section, content: np.ndarray[Any, Any],
        lines: np.ndarray[Any, Any],
    ) -> None:  # fmt: skip
        tree = piece.statement.tree
        in_text = section.kind == "text"
        if tree.op is None:
            return
        if tree.op in data.DIRECTIVES:
            if in_text and tree.op != ".quad":
                raise ExpressionError(
                    f"{tree.op} must not be in a program: only instructions and .quad words are",
                    tree.op_place,
                )
            raw, offsets, uses = data.content_of(piece, self.expander.evaluate, self.open_file)
            content[offsets] = raw
            for use, within in uses:
                self._relocate(piece, section, use, within)
        else:
            if not in_text:
                raise ExpressionError(
                    "an instruction must be in a core's program: .core or .text must come first",
                    tree.op_place,
                )
            words, instruction_uses = encode_piece(piece, self._context())
            content.view("<u8")[piece.offsets // WORD_BYTES] = words
            for use in instruction_uses:
                self._relocate(piece, section, use, 0)
        if in_text:
            first = piece.offsets // WORD_BYTES
            for word in range(len(tree.operands) if tree.op == ".quad" else 1):
                lines[first + word] = self.location_id(piece.statement.where)

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

    def _relocate(self, piece: Piece, section: Section, use: Use, within: int) -> None:
        if use.symbol not in self.symbols:
            self.symbol_numbers[use.symbol] = len(self.symbols)
            self.symbols[use.symbol] = Symbol(use.symbol, "label", None, 0, 0, True)
        table = np.zeros(piece.lanes.count, dtype=RELOCATION)
        table["offset"] = section.size + piece.offsets + within
        table["type"] = use.type
        table["symbol"] = self.symbol_numbers[use.symbol]
        table["addend"] = use.addends
        section.relocations = np.concatenate([section.relocations, table])


def _sort_key(diagnostic: Diagnostic, order: Mapping[int, int]) -> tuple[int, int, int]:
    span = diagnostic.span
    return (order[id(span.source)], span.line, span.column) if span else (len(order), 0, 0)
