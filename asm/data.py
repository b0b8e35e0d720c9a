"""Data directives: sizes first, then bytes, for all lanes of a statement at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.expansion import MAX_BYTES, Lanes, Piece
from cim.asm.expressions import ExpressionError, Number, Value, symbol_place
from cim.asm.instructions import Use
from cim.asm.objects import ADDRESS_DATA, CORE_DATA
from cim.asm.syntax import Expression, Line, Operand, Text

ELEMENT_BYTES = {".byte": 1, ".half": 2, ".word": 4, ".quad": 8, ".float": 4}
DIRECTIVES = frozenset({*ELEMENT_BYTES, ".ascii", ".asciz", ".space", ".fill", ".incbin"})

Evaluate = Callable[[Expression, Lanes], Value]
ReadFile = Callable[[str], bytes]


def _constant(operand: Operand, lanes: Lanes, evaluate: Evaluate, what: str) -> Number:
    if not isinstance(operand, Expression):
        raise ExpressionError(f"{what} must be a number", operand.place)
    value = evaluate(operand, lanes)
    if value.symbol is not None or isinstance(value.number, float):
        raise ExpressionError(f"{what} must be an integer constant", operand.place)
    if np.any(np.asarray(value.number) < 0):
        raise ExpressionError(f"{what} must not be negative", operand.place)
    largest = int(np.max(value.number)) if np.size(value.number) else 0
    if largest > MAX_BYTES:
        raise ExpressionError(
            f"{what} is {largest}, more than the {MAX_BYTES} bytes that an address reaches",
            operand.place,
        )
    return value.number


def size_of(tree: Line, lanes: Lanes, evaluate: Evaluate, read_file: ReadFile) -> Number:
    """Bytes that a data directive takes, one number or one a lane. Raises `ExpressionError`."""
    operands = tree.operands
    if tree.op in ELEMENT_BYTES:
        return element_bytes(tree)
    if tree.op == ".space":
        if len(operands) != 1:
            raise ExpressionError(".space must be: .space BYTES", tree.op_place)
        return _constant(operands[0], lanes, evaluate, "the size")
    if tree.op == ".fill":
        count, width, _ = _fill(tree)
        return _constant(count, lanes, evaluate, "the count") * _width(width, lanes, evaluate)
    return len(_bytes(tree, lanes, evaluate, read_file))


def element_bytes(tree: Line) -> int:
    """Bytes that a directive with one value an operand takes. Raises `ExpressionError` if it has none."""
    if not tree.operands:
        raise ExpressionError(f"{tree.op} needs a value", tree.op_place)
    return ELEMENT_BYTES[tree.op or ""] * len(tree.operands)


def content_of(
    piece: Piece, evaluate: Evaluate, read_file: ReadFile
) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[tuple[Use, int]]]:
    """A data statement's bytes for all lanes, their offsets, and its relocations with their offset in it."""
    tree = piece.statement.tree
    if tree.op in ELEMENT_BYTES:
        return _elements(piece, evaluate)
    if tree.op == ".fill":
        return _filled(piece, evaluate)
    if tree.op == ".space":
        return np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.int64), []
    content = np.frombuffer(_bytes(tree, piece.lanes, evaluate, read_file), dtype=np.uint8)
    offsets = piece.offsets[:, None] + np.arange(len(content))
    return np.tile(content, piece.lanes.count), offsets.ravel(), []


def _elements(
    piece: Piece, evaluate: Evaluate
) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[tuple[Use, int]]]:
    tree, count = piece.statement.tree, piece.lanes.count
    width = ELEMENT_BYTES[tree.op or ""]
    columns, uses = [], []
    for position, operand in enumerate(tree.operands):
        if not isinstance(operand, Expression):
            raise ExpressionError("must be a number", operand.place)
        value = evaluate(operand, piece.lanes)
        number = value.number
        if value.symbol is not None:
            use = _use(value, operand, width, tree, count)
            uses.append((use, position * width))
            number = 0
        columns.append(
            np.broadcast_to(_pack(number, tree.op or "", operand, piece.lanes), (count,))
        )
    content = np.stack(columns, axis=1)
    offsets = piece.offsets[:, None] + np.arange(width * len(columns))
    return content.view(np.uint8).ravel(), offsets.ravel(), uses


def _use(value: Value, operand: Expression, width: int, tree: Line, count: int) -> Use:
    types = CORE_DATA if value.is_core else ADDRESS_DATA
    if width not in types or tree.op == ".float":
        needs = (
            "a core number needs .half, .word or" if value.is_core else "an address needs .word or"
        )
        raise ExpressionError(f"{needs} .quad, not {tree.op}", operand.place)
    addends = np.broadcast_to(np.asarray(value.number, dtype=np.int64), (count,))
    place = symbol_place(operand, value)
    return Use(types[width], str(value.symbol), addends, place)


def _pack(number: Number, op: str, operand: Operand, lanes: Lanes) -> NDArray[Any]:
    """The little-endian elements; a value that does not fit is an error, never cut off."""
    if op == ".float":
        with np.errstate(over="ignore"):
            return np.asarray(number, dtype="<f4")
    bits = 8 * ELEMENT_BYTES[op]
    low, high = -(2 ** (bits - 1)), 2**bits - 1
    if isinstance(number, float):
        raise ExpressionError(f"{op} must have an integer, not {number}", operand.place)
    flat = np.atleast_1d(np.asarray(number, dtype=object if isinstance(number, int) else np.int64))
    bad = (flat < low) | (flat > high)
    if bad.any():
        index = int(np.argmax(bad))
        lane = lanes.describe(index) if flat.size > 1 else ""
        raise ExpressionError(
            f"{op} is {flat[index]}, must be {low} to {high}{f' (where {lane})' if lane else ''}",
            operand.place,
        )
    if isinstance(number, int):
        return np.asarray(number & (2**bits - 1), dtype=f"<u{bits // 8}")
    return number.astype(f"<u{bits // 8}")


def _fill(tree: Line) -> tuple[Operand, Operand | None, Operand | None]:
    if not 1 <= len(tree.operands) <= 3:
        raise ExpressionError(".fill must be: .fill COUNT, BYTES, VALUE", tree.op_place)
    count, width, value = (*tree.operands, None, None)[:3]
    return count, width, value  # type: ignore[return-value]  # the first is never None


def _width(operand: Operand | None, lanes: Lanes, evaluate: Evaluate) -> int:
    if operand is None:
        return 1
    width = _constant(operand, lanes, evaluate, "the element size")
    if not isinstance(width, int) or width not in (1, 2, 4, 8):
        raise ExpressionError("the element size must be 1, 2, 4 or 8", operand.place)
    return width


def _filled(
    piece: Piece, evaluate: Evaluate
) -> tuple[NDArray[np.uint8], NDArray[np.int64], list[tuple[Use, int]]]:
    count_operand, width_operand, value_operand = _fill(piece.statement.tree)
    width = _width(width_operand, piece.lanes, evaluate)
    number: Number = 0
    if value_operand is not None:
        if not isinstance(value_operand, Expression):
            raise ExpressionError("the value must be a number", value_operand.place)
        value = evaluate(value_operand, piece.lanes)
        if value.symbol is not None:
            raise ExpressionError("the value must be a constant", value_operand.place)
        number = value.number
    op = {1: ".byte", 2: ".half", 4: ".word", 8: ".quad"}[width]
    element = np.broadcast_to(
        _pack(number, op, value_operand or count_operand, piece.lanes), (piece.lanes.count,)
    )
    repeats = piece.sizes // width
    content = np.repeat(element, repeats)
    lane = np.repeat(np.arange(piece.lanes.count), piece.sizes)
    within = np.arange(len(lane)) - np.repeat(np.cumsum(piece.sizes) - piece.sizes, piece.sizes)
    return content.view(np.uint8), piece.offsets[lane] + within, []


def _bytes(tree: Line, lanes: Lanes, evaluate: Evaluate, read_file: ReadFile) -> bytes:
    """The content of `.ascii` or `.incbin`."""
    texts = [operand for operand in tree.operands[:1] if isinstance(operand, Text)]
    if tree.op in (".ascii", ".asciz"):
        if len(tree.operands) != 1 or not texts:
            raise ExpressionError(f'{tree.op} must be: {tree.op} "TEXT"', tree.op_place)
        return texts[0].value.encode() + (b"\0" if tree.op == ".asciz" else b"")
    if not texts or len(tree.operands) > 3:
        raise ExpressionError('.incbin must be: .incbin "FILE", OFFSET, BYTES', tree.op_place)
    try:
        content = read_file(texts[0].value)
    except OSError as problem:
        raise ExpressionError(
            f"cannot read '{texts[0].value}': {problem.strerror}", texts[0].place
        ) from None
    numbers = [
        _constant(operand, lanes, evaluate, what)
        for operand, what in zip(tree.operands[1:], ("the offset", "the size"), strict=False)
    ]
    if not all(isinstance(number, int) for number in numbers):
        raise ExpressionError(".incbin must have the same bytes in all iterations", tree.op_place)
    offset = int(numbers[0]) if numbers else 0
    size = int(numbers[1]) if len(numbers) > 1 else len(content) - offset
    if offset > len(content):
        raise ExpressionError(
            f"'{texts[0].value}' has {len(content)} bytes, the offset must not be {offset}",
            tree.operands[1].place,
        )
    if offset + size > len(content):
        raise ExpressionError(
            f"'{texts[0].value}' has {len(content)} bytes, bytes {offset} to {offset + size} are needed",
            texts[0].place,
        )
    return content[offset : offset + size]
