"""Directives that only say something: `.error`, `.warning`, `.print`, `.assert`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cim.asm.blocks import Statement
from cim.asm.expansion import Lanes
from cim.asm.expressions import ExpressionError, Value
from cim.asm.syntax import Expression, Text
from cim.diagnostics import Diagnostic

DIRECTIVES = frozenset({".error", ".warning", ".print", ".assert"})


def handle(
    statement: Statement,
    lanes: Lanes,
    evaluate: Callable[[Expression, Lanes], Value],
    report: Callable[[Diagnostic], None],
) -> None:
    """Act on a message directive, once however many lanes it has.

    Raises `ExpressionError` for `.error` and for an `.assert` that does not hold; warnings and prints go to
    `report`.
    """
    tree = statement.tree
    if not lanes.count:
        return
    if tree.op == ".assert":
        _assert(statement, lanes, evaluate)
        return
    match tree.operands:
        case (Text(value=message),):
            pass
        case ():
            message = f"{tree.op} directive"
        case _:
            raise ExpressionError(f'{tree.op} must be: {tree.op} "TEXT"', tree.op_place)
    if tree.op == ".error":
        raise ExpressionError(message, tree.op_place)
    severity = "warning" if tree.op == ".warning" else "note"
    report(Diagnostic(message, statement.where.span(tree.op_place), severity=severity))


def _assert(
    statement: Statement, lanes: Lanes, evaluate: Callable[[Expression, Lanes], Value]
) -> None:
    tree = statement.tree
    match tree.operands:
        case (Expression() as condition,):
            message = "the assertion does not hold"
        case (Expression() as condition, Text(value=message)):
            pass
        case _:
            raise ExpressionError('.assert must be: .assert EXPRESSION, "TEXT"', tree.op_place)
    value = evaluate(condition, lanes)
    if value.symbol is not None:
        raise ExpressionError("an address cannot be asserted: the linker sets it", condition.place)
    holds = np.atleast_1d(np.asarray(value.number) != 0)
    if not holds.all():
        lane = lanes.describe(int(np.argmin(holds))) if holds.size > 1 else ""
        raise ExpressionError(f"{message}{f' (where {lane})' if lane else ''}", condition.place)
