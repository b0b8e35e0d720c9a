"""The language of `operation` texts: a small subset of Python, checked here and run by the interpreter.

Statements: assignment to a name or to a buffer slice, `if` without `else`, calls of the state-changing
primitives. Expressions: operands, state, constants, slices, arithmetic, comparisons, `and`, calls of the
primitives below. Nothing else, so that a hardware engineer can read an operation as pseudocode.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

# State that an operation may name; the interpreter provides each of them.
STATE = frozenset(
    [
        "ib",
        "ob",
        "pb",
        "rb",
        "W",
        "offset",
        "adc_mul",
        "mul_pos",
        "mul_neg",
        "y_zp",
        "SEQ_NR",
        "rows",
        "columns",
        "memory_bytes",
        "core_count",
        "integer",
        "narrow",
    ]
)
PRIMITIVES = frozenset(
    [
        "require",
        "length",
        "element_bytes",
        "read_memory",
        "write_memory",
        "written",
        "matvec",
        "rint",
        "f32",
        "where",
        "maximum",
        "minimum",
        "zeros",
        "increment_seq_nr",
        "block_until",
    ]
)
_STATEMENTS = frozenset(
    ["require", "write_memory", "increment_seq_nr", "block_until"]
)  # called for their effect

_ALLOWED = (
    ast.Assign, ast.Expr, ast.If, ast.Name, ast.Load, ast.Store, ast.Constant, ast.Call, ast.Subscript,
    ast.Slice, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.Compare, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq,
    ast.BoolOp, ast.And,
)  # fmt: skip


class OperationError(ValueError):
    """An operation text that is outside the language; `line` counts from 1 within the text."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Operation:
    """A checked operation text."""

    text: str
    code: CodeType

    def run(self, environment: Mapping[str, Any]) -> None:
        """Execute with the given state, operands and primitives."""
        exec(self.code, {"__builtins__": {}}, dict(environment))  # noqa: S102  (checked subset)


def check(text: str, operands: frozenset[str], exceptions: tuple[str, ...]) -> Operation:
    """Check an operation text against the language and the instruction's operands.

    Raises `OperationError` with the line for a construct, name or exception that is not allowed.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as problem:
        raise OperationError(f"not valid Python: {problem.msg}", problem.lineno or 1) from None
    local: set[str] = set()
    for statement in tree.body:
        _check_statement(statement, operands, local, exceptions)
    return Operation(text, compile(tree, "<operation>", "exec"))


def _check_statement(
    node: ast.stmt, operands: frozenset[str], local: set[str], exceptions: tuple[str, ...]
) -> None:
    if isinstance(node, ast.If):
        if node.orelse:
            raise OperationError("`if` must not have an `else`", node.lineno)
        _check_expression(node.test, operands, local)
        for inner in node.body:
            _check_statement(inner, operands, local, exceptions)
    elif isinstance(node, ast.Assign):
        _check_expression(node.value, operands, local)
        if len(node.targets) != 1:
            raise OperationError("an assignment must have one target", node.lineno)
        _check_target(node.targets[0], operands, local)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        _check_expression(node.value, operands, local)
        name = getattr(node.value.func, "id", "")
        if name not in _STATEMENTS:
            raise OperationError(f"'{name}' has no effect as a statement", node.lineno)
        if name == "require":
            _check_require(node.value, exceptions)
    else:
        raise OperationError(f"{type(node).__name__} is not allowed in an operation", node.lineno)


def _check_target(node: ast.expr, operands: frozenset[str], local: set[str]) -> None:
    if isinstance(node, ast.Name):
        if node.id in operands | STATE | PRIMITIVES:
            raise OperationError(f"'{node.id}' must not be assigned as a whole", node.lineno)
        local.add(node.id)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        _check_expression(node.value, operands, local)
        _check_expression(node.slice, operands, local)
    else:
        raise OperationError("the target must be a name or a buffer slice", node.lineno)


def _check_require(call: ast.Call, exceptions: tuple[str, ...]) -> None:
    if len(call.args) != 2 or not isinstance(call.args[1], ast.Constant):
        raise OperationError("require needs a condition and an exception's name", call.lineno)
    if call.args[1].value not in exceptions:
        raise OperationError(
            f"exception {call.args[1].value!r} is not listed for this instruction", call.lineno
        )


def _check_expression(node: ast.AST, operands: frozenset[str], local: set[str]) -> None:
    for inner in ast.walk(node):
        line = getattr(inner, "lineno", 1)
        if not isinstance(inner, _ALLOWED):
            raise OperationError(f"{type(inner).__name__} is not allowed in an operation", line)
        if isinstance(inner, ast.Call) and (
            not isinstance(inner.func, ast.Name)
            or inner.func.id not in PRIMITIVES
            or inner.keywords
        ):
            raise OperationError(f"'{ast.unparse(inner.func)}' is no primitive", line)
        if isinstance(inner, ast.Name) and inner.id not in operands | STATE | PRIMITIVES | local:
            raise OperationError(f"unknown name '{inner.id}'", line)
