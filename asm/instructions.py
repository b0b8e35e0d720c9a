"""Turns an instruction statement, in all its lanes at once, into words and relocations."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.expansion import Lanes, Piece
from cim.asm.expressions import ExpressionError, Value, not_constant, shown, symbol_place
from cim.asm.objects import RelocationType
from cim.asm.syntax import Expression, Items, Keyword, Line, Operand, Place, Slice, Text
from cim.diagnostics import did_you_mean
from cim.isa.buffer_ranges import beyond_buffers, buffer_lengths
from cim.isa.encoding import OperandError, encode, immediate_bits
from cim.isa.machine import Machine
from cim.isa.model import Instruction, Isa, SyntaxPart
from cim.isa.printer import syntax_text


@dataclass(frozen=True)
class Context:
    """What an instruction needs to know about its surroundings. `columns` is None before `.crossbar`.

    `machine` is None where it is not known yet: then buffers may have any length.
    """

    isa: Isa
    extensions: Sequence[str]
    mode: str | None
    columns: int | None
    evaluate: Callable[[Expression, Lanes], Value]
    machine: Machine | None = None
    macros: Collection[str] = ()  # names, for a hint, as the next
    constants: Collection[str] = ()


@dataclass(frozen=True)
class Use:
    """A relocation of one statement: the same type and symbol in all lanes, an addend for each."""

    type: RelocationType
    symbol: str
    addends: NDArray[np.int64]
    place: Place


# An operand as it was written: an expression, a buffer's code, or None where it was left out.
_Bound = dict[str, tuple[Expression | int | None, Place]]


def encode_piece(piece: Piece, context: Context) -> tuple[NDArray[np.uint64], list[Use]]:
    """The words of an instruction statement. Raises `ExpressionError` at the operand to blame."""
    tree = piece.statement.tree
    instruction, bound = _match(tree, context)
    if context.mode is not None and context.mode not in instruction.modes:
        raise ExpressionError(
            f"{instruction.mnemonic} does not exist in mode {context.mode} "
            f"(only in {', '.join(instruction.modes)})",
            tree.op_place,
        )
    if instruction.extension and instruction.extension not in context.extensions:
        raise ExpressionError(
            f"{instruction.mnemonic} needs .extension {instruction.extension} before it",
            tree.op_place,
        )
    values: dict[str, Any] = {}
    uses: list[Use] = []
    for name, (written, place) in bound.items():
        values[name] = _value(instruction, name, written, place, piece.lanes, context, uses)
    try:
        words = encode(instruction, values)
    except OperandError as problem:
        _, place = bound[problem.operand]
        lane = piece.lanes.describe(problem.index)
        raise ExpressionError(f"{problem}{f' (where {lane})' if lane else ''}", place) from None
    _check_buffers(instruction, values, bound, piece.lanes, context)
    return np.broadcast_to(words, (piece.lanes.count,)), uses


def _check_buffers(
    instruction: Instruction, values: dict[str, Any], bound: _Bound, lanes: Lanes, context: Context
) -> None:
    """Refuse what would be a fault at run time whatever happens: elements that the buffer does not have."""
    if context.machine is None:
        return
    lengths = buffer_lengths(context.isa, context.machine)
    beyond = beyond_buffers(context.isa, instruction, values, lengths)
    if beyond is None:
        return
    value = int(np.atleast_1d(values[beyond.operand])[beyond.index])
    lane = lanes.describe(beyond.index) if np.size(values[beyond.operand]) > 1 else ""
    raise ExpressionError(
        f"{beyond.operand} is {value}, but {beyond.buffer} has {beyond.length} elements on a "
        f"{context.machine.core.crossbar} crossbar{f' (where {lane})' if lane else ''}",
        bound[beyond.operand][1],
    )


def _match(tree: Line, context: Context) -> tuple[Instruction, _Bound]:
    isa = context.isa
    forms = isa.by_mnemonic.get(tree.op or "")
    if forms is None:
        hint = did_you_mean(tree.op or "", [*isa.by_mnemonic, *context.macros])
        if not hint and not tree.operands:
            hint = "; a label ends with ':'"
        raise ExpressionError(f"unknown instruction '{tree.op}'{hint}", tree.op_place)
    for form in forms:
        bound = _bind(form, tree, isa)
        if bound is not None:
            return form, bound
    _explain_buffer(forms, tree.operands, isa)
    usage = " or ".join(f"'{syntax_text(form)}'" for form in forms)
    raise ExpressionError(f"the operands must be as in {usage}", _whole(tree))


def _explain_buffer(forms: list[Instruction], operands: tuple[Operand, ...], isa: Isa) -> None:
    """Raise the better message where the only fault is a misspelled buffer."""
    for form in forms:
        for part, operand in zip(form.syntax, operands, strict=False):
            name = None
            if part.shape == "slice" and isinstance(operand, Slice):
                name = operand.name
            elif (
                isinstance(operand, Expression) and form.operands[part.operands[0]].kind == "buffer"
            ):
                name = operand.bare_name
            if name is not None and name.lower() not in isa.buffers:
                raise ExpressionError(
                    f"'{name}' is no buffer; there are {', '.join(isa.buffers)}", operand.place
                )


def _whole(tree: Line) -> Place:
    if not tree.operands:
        return tree.op_place
    return Place(tree.operands[0].place.start, tree.operands[-1].place.end)


def _bind(form: Instruction, tree: Line, isa: Isa) -> _Bound | None:
    """The operands of a form as written, or None where the statement has another form."""
    bound: _Bound = {}
    rest = list(tree.operands)
    for part in form.syntax:
        if part.shape == "keyword":
            name = part.operands[0]
            given = rest.pop(0) if rest and _is_keyword(rest[0], name) else None
            if given is None:
                bound[name] = (None, tree.op_place)
            elif isinstance(given, Keyword) and isinstance(given.value, Expression):
                bound[name] = (given.value, given.value.place)
            else:
                return None
        elif not rest or not _bind_part(form, part, rest.pop(0), isa, bound):
            return None
    return None if rest else bound


def _is_keyword(operand: Operand, name: str) -> bool:
    return isinstance(operand, Keyword) and operand.name.lower() == name


def _bind_part(
    form: Instruction, part: SyntaxPart, operand: Operand, isa: Isa, bound: _Bound
) -> bool:
    if part.shape == "slice":
        if not isinstance(operand, Slice) or operand.name.lower() not in isa.buffers:
            return False
        buffer, lo, hi = part.operands
        bound[buffer] = (isa.buffers[operand.name.lower()].code, operand.place)
        bound[lo] = (operand.lo, operand.lo.place)
        bound[hi] = (operand.hi, operand.hi.place)
        return True
    if isinstance(operand, (Slice, Text, Items, Keyword)):
        return False
    name = part.operands[0]
    as_buffer = (operand.bare_name or "").lower()
    if form.operands[name].kind == "buffer":
        if as_buffer not in isa.buffers:
            return False
        bound[name] = (isa.buffers[as_buffer].code, operand.place)
        return True
    if as_buffer in isa.buffers:
        return False
    bound[name] = (operand, operand.place)
    return True


def _value(
    instruction: Instruction, name: str, written: Expression | int | None, place: Place,
    lanes: Lanes, context: Context, uses: list[Use],
) -> Any:  # fmt: skip
    """The operand's number, scalar or one a lane; a symbol becomes a `Use` and the number 0."""
    operand = instruction.operands[name]
    if isinstance(written, int):
        return written
    if written is None:
        if context.columns is None:
            raise ExpressionError(
                f"{name}= must be given: the core has no .crossbar before this line", place
            )
        return context.columns
    value = context.evaluate(written, lanes)
    if value.symbol is not None:
        kinds = {"address": RelocationType.ADDRESS, "core": RelocationType.CORE}
        if operand.kind == "address" and value.is_core:
            raise ExpressionError(
                f"must be an address, not the number of core '{value.symbol}'", place
            )
        if operand.kind not in kinds and value.is_core:
            raise ExpressionError(
                f"core '{value.symbol}' is not in this assembly: its number can stand in call and in data, "
                "not here",
                place,
            )
        if operand.kind == "bits":
            raise ExpressionError(
                f"'{shown(value.symbol)}' must be a buffer ({', '.join(context.isa.buffers)}) or a constant",
                place,
            )
        if operand.kind not in kinds:
            raise not_constant(value, place, [*lanes.scope, *context.constants])
        addends = np.broadcast_to(np.asarray(value.number, dtype=np.int64), (lanes.count,))
        at = symbol_place(written, value)
        uses.append(Use(kinds[operand.kind], value.symbol, addends, at))
        return 0
    if operand.kind == "bits":
        if context.mode is None:
            raise ExpressionError(".mode must come before an immediate", place)
        try:
            bits = immediate_bits(value.number, context.mode)
            return bits if bits.ndim else int(bits)
        except ValueError as problem:
            raise ExpressionError(str(problem), place) from None
    if isinstance(value.number, float):
        raise ExpressionError(f"{name} must be an integer, not {value.number}", place)
    if isinstance(value.number, int) and not -(2**62) < value.number < 2**62:
        raise ExpressionError(
            f"{name} is {value.number}, must be {operand.minimum} to {operand.maximum}", place
        )
    return value.number
