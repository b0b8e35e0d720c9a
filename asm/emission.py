"""Turns statements into the bytes, lines and relocations of the current section."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cim.asm import data, directives, messages
from cim.asm.arguments import unknown
from cim.asm.batches import FlatRun
from cim.asm.blocks import BLOCK_DIRECTIVES, For, Node, Statement
from cim.asm.expansion import Lanes, Piece
from cim.asm.expressions import ExpressionError, Number, shown
from cim.asm.flat import (
    WORD_BYTES,
    groups_of,
    piece_of,
    single_piece,
    sizes_of,
    statements_of,
    tree_of,
)
from cim.asm.instructions import Context, Use, encode_piece
from cim.asm.local_labels import is_local
from cim.asm.objects import RELOCATION, DataUse, RelocationType, SourcePlace
from cim.asm.sections import Block
from cim.asm.syntax import Line, Place
from cim.asm.where import Where

if TYPE_CHECKING:
    from cim.asm.assembler import Assembler


def size_of(assembler: Assembler, statement: Statement, lanes: Lanes) -> Number:
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
        messages.handle(statement, lanes, assembler.expander.evaluate, assembler.remark)
        return 0
    if tree.op in data.DIRECTIVES:
        return data.size_of(
            tree, lanes, assembler.expander.evaluate, _opener(assembler, statement.where)
        )
    if tree.op.startswith("."):
        known = [
            *directives.HANDLERS,
            *data.DIRECTIVES,
            *messages.DIRECTIVES,
            *BLOCK_DIRECTIVES,
        ]
        raise unknown(f"directive '{tree.op}'", tree.op, known, tree.op_place)
    return WORD_BYTES


def _opener(assembler: Assembler, where: Where) -> Callable[[str], bytes]:
    """Reads files that a line names."""
    return lambda name: assembler.files.find(name, where.source)[1]


def emit_run(assembler: Assembler, run: FlatRun) -> None:
    """Plain lines outside blocks: all lines of a shape at once, or where that fails one by one."""
    shapes = np.unique(run.shapes).tolist()
    try:
        together = all(_belongs_here(assembler, tree_of(run, shape)) for shape in shapes)
        sizes = sizes_of(run)
    except ExpressionError:
        together = False
    if not together:
        for statement in statements_of(run):
            assembler.attempt(statement.where, assembler.top_level, statement)
        return
    offsets = np.cumsum(sizes) - sizes
    keys = assembler.location_keys(run.where(0), len(run))
    words = sizes // WORD_BYTES if assembler.sections.in_text else 0
    block = Block(np.zeros(sizes.sum(), np.uint8), np.repeat(keys, words))
    for indices in groups_of(run):
        try:
            _emit_piece(assembler, piece_of(run, indices, offsets, sizes), block)
        except ExpressionError:
            # Said line by line, with the numbers that stand there.
            for index in indices.tolist():
                piece = single_piece(run, index, offsets, sizes)
                assembler.attempt(
                    piece.statement.where, lambda p: _emit_piece(assembler, p, block), piece
                )
    assembler.sections.add(block)


def _belongs_here(assembler: Assembler, tree: Line) -> bool:
    """Whether the current section may hold an instruction, or data of this kind."""
    if assembler.sections.in_text:
        return tree.op == ".quad" or tree.op not in data.DIRECTIVES
    return assembler.sections.here is not None and tree.op in data.DIRECTIVES


def emit_block(assembler: Assembler, node: Node) -> None:
    """Add a statement, loop or condition to the current section. Raises `ExpressionError`."""
    size, pieces = assembler.expander.expand([node], {})
    assembler.note_size(node.where, _place_of(node))
    pieces = [p for p in pieces if p.statement.tree.op not in (None, *messages.DIRECTIVES)]
    if assembler.sections.here is None:
        if pieces:
            raise ExpressionError(
                "this must be in a core or region: .core or .region must come first",
                pieces[0].statement.tree.op_place,
            )
        return
    in_text = assembler.sections.in_text
    if in_text:  # whole words, whatever data stands there by mistake
        size += -size % WORD_BYTES
    words = size // WORD_BYTES if in_text else 0
    block = Block(np.zeros(size, dtype=np.uint8), np.zeros(words, dtype=np.uint64))
    for piece in pieces:
        assembler.attempt(piece.statement.where, lambda p: _emit_piece(assembler, p, block), piece)
        if in_text:
            first = piece.offsets // WORD_BYTES
            for word in range(_words(piece.statement.tree)):
                block.lines[first + word] = assembler.location_keys(piece.statement.where)
    assembler.sections.add(block)


def _emit_piece(assembler: Assembler, piece: Piece, block: Block) -> None:
    """Fill in the bytes and relocations of a piece. Raises `ExpressionError`."""
    tree = piece.statement.tree
    in_text = assembler.sections.in_text
    if tree.op in data.DIRECTIVES:
        if in_text and tree.op != ".quad":
            raise ExpressionError(
                f"{tree.op} must not be in a program: only instructions and .quad words are",
                tree.op_place,
            )
        opener = _opener(assembler, piece.statement.where)
        raw, offsets, uses = data.content_of(piece, assembler.expander.evaluate, opener)
        if assembler.sections.in_placeholder and (raw.any() or uses):
            raise ExpressionError(
                f"{tree.op} must be 0 here: the section has no content", tree.op_place
            )
        block.content[offsets] = raw
        for use, within in uses:
            _relocate(assembler, piece, block, use, within)
    else:
        if not in_text:
            raise ExpressionError(
                "an instruction must be in a core's program: .core or .text must come first",
                tree.op_place,
            )
        words, instruction_uses = encode_piece(piece, _context(assembler))
        block.content.view("<u8")[piece.offsets // WORD_BYTES] = words
        for use in instruction_uses:
            _relocate(assembler, piece, block, use, 0)


def _context(assembler: Assembler) -> Context:
    mode = assembler.attributes.mode
    columns = (
        assembler.core.columns if assembler.core is not None and assembler.core.columns else None
    )
    return Context(
        assembler.isa,
        assembler.attributes.extensions,
        mode.mode if mode else None,
        columns,
        assembler.expander.evaluate,
        assembler.attributes.machine,
        assembler.macros,
        assembler.names.constants,
    )


def _relocate(assembler: Assembler, piece: Piece, block: Block, use: Use, within: int) -> None:
    section = assembler.sections.here
    assert section is not None
    if is_local(use.symbol):
        _check_local(assembler, piece, use)
    table = np.zeros(piece.lanes.count, dtype=RELOCATION)
    table["offset"] = section.size + piece.offsets + within
    table["type"] = use.type
    table["symbol"] = assembler.names.reference(use.symbol, piece.statement.where, use.place)
    table["addend"] = use.addends
    block.relocations.append(table)
    if section.kind == "text":
        words = (piece.offsets + within) // WORD_BYTES
        block.column(words, piece.columns(use.place.start))
        return
    location = assembler.location(piece.statement.where)
    lines, columns = np.broadcast_arrays(
        location.line + piece.lines_on(), piece.columns(use.place.start), table["offset"]
    )[:2]
    block.uses += [
        DataUse(offset, SourcePlace(location.file, line, column))
        for offset, line, column in zip(
            table["offset"].tolist(), lines.tolist(), columns.tolist(), strict=True
        )
    ]


def _check_local(assembler: Assembler, piece: Piece, use: Use) -> None:
    """Refuse a local label where it means nothing."""
    name, spot = shown(use.symbol), assembler.names.spots.get(use.symbol)
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
