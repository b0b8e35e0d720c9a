"""Assembles sources into one object: sections and symbols here, instructions and data next door."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cim.asm import data, directives, messages
from cim.asm.blocks import FlatRun, If, Let, Node, Statement, read_blocks
from cim.asm.expansion import MAX_BYTES, Expander, Lanes, Piece, Scope
from cim.asm.expressions import DEFINED, ExpressionError, Number, Value, evaluate
from cim.asm.find_files import Files
from cim.asm.flat import WORD_BYTES, groups_of, piece_of, single_piece, statements_of
from cim.asm.image import Location
from cim.asm.instructions import Context, Use, encode_piece
from cim.asm.objects import (
    RELOCATION,
    Attributes,
    CoreAttributes,
    Object,
    Symbol,
)
from cim.asm.preprocess import Preprocessor
from cim.asm.sections import Block, Sections
from cim.asm.syntax import Expression, Label, Line, Place
from cim.asm.where import Where
from cim.diagnostics import CimError, Diagnostic, Note, Source, Span
from cim.files import read_regular
from cim.isa.load import load_isa

BLOCK_DIRECTIVES = (
    ".for", ".endfor", ".rept", ".endr", ".if", ".elif", ".else", ".endif", ".ifdef", ".ifndef", ".let",
    ".include", ".macro", ".endm", ".irp",
)  # fmt: skip


def assemble(
    sources: Iterable[Source],
    name: str,
    read_file: Callable[[Path], bytes] = read_regular,
    include: Iterable[Path] = (),
    defines: Mapping[str, int] | None = None,
    by_shape: bool = True,
    remark: Callable[[Diagnostic], None] = lambda _: None,
) -> Object:
    """One object from one or more sources.

    `.incbin` looks beside the source, then in the folders of `include`, and reads through `read_file`.
    `by_shape` parses lines of the same shape once, and changes nothing but the time it takes. `remark` is
    given warnings and what `.print` says. Raises `CimError` with every error of every source.
    """
    assembler = Assembler(name, read_file, list(include), dict(defines or {}), remark)
    for source in sources:
        assembler.add(source, by_shape)
    return assembler.finish()


class Assembler:
    """The state of one assembly: the object so far, the current core, section and file-level names."""

    def __init__(
        self, name: str, read_file: Callable[[Path], bytes], include: list[Path],
        defines: dict[str, int], remark: Callable[[Diagnostic], None],
    ) -> None:  # fmt: skip
        self.isa = load_isa()
        self.name = name
        self.files = Files(read_file, tuple(include))
        self.remark = remark
        self.attributes = Attributes()
        self.sections = Sections()
        self.symbols: dict[str, Symbol] = {}
        # A symbol keeps its number when it is defined later.
        self.symbol_numbers: dict[str, int] = {}
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
        self.recorded_names: dict[
            str, str
        ] = {}  # what .file says lines of a source are recorded as
        self.core: CoreAttributes | None = None
        self.sections.current = None
        self.constants: dict[str, Number] = dict(self.defines)
        self.constant_places: dict[str, tuple[Where, Place]] = {}
        self.exported: set[str] = set()  # names of .globl
        self.late: dict[str, Expression] = {}  # .equ that stands further down
        self.resolving: list[str] = []

    # --- a file ------------------------------------------------------------------------------------------

    def add(self, source: Source, by_shape: bool = True) -> None:
        """Assemble one more source into the object."""
        self._new_file(source)
        self.sources.append(source)
        lines = Preprocessor(source, self.files.source, self.found).lines()
        nodes, found = read_blocks(lines, by_shape)
        self.found += found
        self.late = directives.equ_expressions(nodes)
        self._top_nodes(nodes)

    def _top_nodes(self, nodes: Iterable[Node | FlatRun]) -> None:
        for node in nodes:
            if isinstance(node, FlatRun):
                self._emit_run(node)
            else:
                self._try(node.where, self._top_level, node)

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
        # Symbols by name, in whatever order they were met.
        names = sorted(self.symbols)
        renumber = np.zeros(len(names), dtype=np.uint32)
        renumber[[self.symbol_numbers[name] for name in names]] = np.arange(len(names))
        sections = self.sections.finish(renumber)
        return Object(self.name, sections, [self.symbols[n] for n in names], self.attributes)

    def _top_level(self, node: Node) -> None:
        if isinstance(node, If):
            # Outside loops a branch is chosen now, so that it may hold any directive.
            for condition, body in node.branches:
                if condition is None or self.constant(condition):
                    self._top_nodes(body)
                    break
            return
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
            if name.startswith(DEFINED):
                return Value(int(self.is_defined(name.removeprefix(DEFINED))))
            if name in scope:
                return Value(scope[name])
            if name in self.constants:
                return Value(self.constants[name])
            if name in self.isa.buffers:
                raise ExpressionError(f"the buffer '{name}' has no number", place)
            if name in self.late:
                return Value(self._late(name, place))
            if name == ".":
                return self._here(scope, place)
            known = self.symbols.get(name)
            if known is not None and known.section is not None:
                return Value(0, name, (known.section, known.value))
            return Value(0, name)

        return find

    def _late(self, name: str, place: Place) -> int | float:
        """The value of an `.equ` that stands further down. Raises `ExpressionError` for a circle."""
        if name in self.resolving:
            circle = " -> ".join([*self.resolving[self.resolving.index(name) :], name])
            raise ExpressionError(f"'{name}' is defined by itself: {circle}", place)
        self.resolving.append(name)
        try:
            return self.constant(self.late[name])
        finally:
            self.resolving.pop()

    def is_constant(self, name: str) -> bool:
        """Whether a name is a `.let`, `.set` or `.equ` constant."""
        return name in self.constants or name in self.late

    def is_defined(self, name: str) -> bool:
        """Whether a name is a constant or a symbol that has been defined so far."""
        symbol = self.symbols.get(name)
        return name in self.constants or (symbol is not None and symbol.section is not None)

    def _here(self, scope: Scope, place: Place) -> Value:
        """`.`: the place of the current statement, from the beginning of its core or region."""
        section = self.sections.here
        if section is None or scope:
            raise ExpressionError("'.' has no value outside a core or region, or in a loop", place)
        if section.kind == "crossbar":
            raise ExpressionError("'.' has no address in a crossbar", place)
        assert self.sections.current is not None
        return Value(section.size, section.owner, (self.sections.current, 0))

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
        symbol = self.symbols.get(name)
        if symbol is not None and symbol.section is not None:
            raise ExpressionError(f"'{name}' is already a {symbol.kind}", place)
        self.constants[name] = self.constant(value)
        self.constant_places[name] = (where, place)

    def define_label(self, where: Where, label: Label) -> None:
        """A label at the current end of the current section."""
        current, section = self.sections.current, self.sections.here
        if current is None or section is None:
            raise ExpressionError("a label must be in a core or region", label.place)
        self.define_symbol(where, label.name, label.place, "label", current, section.size, 0, False)

    def define_symbol(
        self, where: Where, name: str, place: Place, kind: str, section: int, value: int, size: int,
        is_global: bool,
    ) -> None:  # fmt: skip
        """Add a defined symbol. Raises nothing: a second definition is reported with both places."""
        if name.lower() in self.isa.buffers:
            raise ExpressionError(f"'{name}' is a buffer and must not be a symbol", place)
        if self.is_constant(name):
            raise ExpressionError(f"'{name}' is already a constant (.let, .equ or -D)", place)
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
        is_global = is_global or name in self.exported
        self.symbol_numbers.setdefault(name, len(self.symbols))
        self.symbols[name] = Symbol(name, kind, section, value, size, is_global)
        self.symbol_places[name] = (where, place)
        self.definitions[name] = self._location(where)

    def location_id(self, where: Where) -> int:
        """The line's index in the object's locations, under the name that `.file` set."""
        return self.locations.setdefault(self._location(where), len(self.locations))

    def _location(self, where: Where) -> Location:
        name = where.source.name
        return Location(self.recorded_names.get(name, name), where.line)

    # --- sections and their content ----------------------------------------------------------------------

    def pad(self, statement: Statement, gap: Callable[[int], int]) -> None:
        """Add `gap(size)` zero bytes to the current section, which must be data. Raises `ExpressionError`."""
        section = self.sections.here
        if section is None:
            raise ExpressionError(
                f"{statement.tree.op} must be in a region or crossbar", statement.tree.op_place
            )
        size = gap(section.size)
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
        self.sections.add(Block(np.zeros(size, dtype=np.uint8), np.zeros(0, dtype="<u4")))

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
            raise directives.unknown(f"directive '{tree.op}'", tree.op, known, tree.op_place)
        return WORD_BYTES

    def _opener(self, where: Where) -> Callable[[str], bytes]:
        """Reads files that a line names."""
        return lambda name: self.files.find(name, where.source)[1]

    def _emit_run(self, run: FlatRun) -> None:
        """Instructions outside blocks: all lines of a shape at once, or where that fails one by one."""
        if not self.sections.in_text:
            for statement in statements_of(run):
                self._try(statement.where, self._top_level, statement)
            return
        ids = np.array([self.location_id(where) for where in run.wheres])
        block = Block(np.zeros(WORD_BYTES * len(run.wheres), np.uint8), ids.astype("<u4"))
        for indices in groups_of(run):
            piece = piece_of(run, indices)
            try:
                if piece is not None:
                    self._emit_piece(piece, block)
                    continue
            except ExpressionError:
                pass  # said below, with its line and the numbers that stand there
            for index in indices.tolist():
                where = run.wheres[index]
                self._try(where, lambda i: self._emit_piece(single_piece(run, i), block), index)
        self.sections.add(block)

    def _try(self, where: Where, action: Callable[[Any], None], argument: object) -> None:
        """Have a fault of a line reported, and go on."""
        try:
            action(argument)
        except ExpressionError as problem:
            self.found.append(Diagnostic(problem.message, where.span(problem.place)))

    def _emit_block(self, node: Node) -> None:
        size, pieces = self.expander.expand([node], {})
        pieces = [p for p in pieces if p.statement.tree.op not in (None, *messages.DIRECTIVES)]
        if self.sections.here is None:
            if pieces:
                raise ExpressionError(
                    "this must be in a core or region: .core or .region must come first",
                    pieces[0].statement.tree.op_place,
                )
            return
        in_text = self.sections.in_text
        words = size // WORD_BYTES if in_text else 0
        block = Block(np.zeros(size, dtype=np.uint8), np.zeros(words, dtype="<u4"))
        for piece in pieces:
            self._try(piece.statement.where, lambda p: self._emit_piece(p, block), piece)
            if in_text:
                first = piece.offsets // WORD_BYTES
                for word in range(_words(piece.statement.tree)):
                    block.lines[first + word] = self.location_id(piece.statement.where)
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

    def _relocate(self, piece: Piece, block: Block, use: Use, within: int) -> None:
        section = self.sections.here
        assert section is not None
        if use.symbol not in self.symbols:
            self.symbol_numbers[use.symbol] = len(self.symbols)
            self.symbols[use.symbol] = Symbol(use.symbol, "label", None, 0, 0, True)
        table = np.zeros(piece.lanes.count, dtype=RELOCATION)
        table["offset"] = section.size + piece.offsets + within
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
