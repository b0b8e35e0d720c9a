"""The language of `operation` texts: a small subset of Python, checked here and run by the interpreter.

Statements: assignment to a name or to a buffer slice, `if` without `else`, calls of the state-changing
primitives. Expressions: operands, state, constants, slices, arithmetic, comparisons, `and`, calls of the
primitives below. Nothing else, so that a hardware engineer can read an operation as pseudocode. Names and
types are checked when the spec is loaded.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

# Types: int, number (int32 or float32 by mode), bool, mask (a bool per element), vector, buffer, matrix, text.
STATE: Mapping[str, str] = {
    **dict.fromkeys(("ib", "ob", "pb", "rb"), "buffer"),
    **dict.fromkeys(("offset", "adc_mul", "mul_pos", "mul_neg", "y_zp"), "vector"),
    **dict.fromkeys(("SEQ_NR", "rows", "columns", "memory_bytes", "core_count"), "int"),
    **dict.fromkeys(("integer", "narrow"), "bool"),
    "W": "matrix",
}
OPERAND_TYPES: Mapping[str, str] = {
    "buffer": "buffer",
    "unsigned": "int",
    "address": "int",
    "core": "int",
    "bits": "number",
}


@dataclass(frozen=True)
class Primitive:
    """What a primitive takes and gives; `result` is empty for those that are called for their effect."""

    parameters: tuple[str, ...]
    result: str


PRIMITIVES: Mapping[str, Primitive] = {
    "require": Primitive(("bool", "text"), ""),
    "length": Primitive(("buffer",), "int"),
    "element_bytes": Primitive(("buffer",), "int"),
    "read_memory": Primitive(("int", "buffer", "int"), "vector"),
    "write_memory": Primitive(("int", "buffer", "int", "int"), ""),
    "written": Primitive(("buffer", "int"), "bool"),
    "matvec": Primitive(("matrix", "vector"), "vector"),
    "rint": Primitive(("vector",), "vector"),
    "f32": Primitive(("vector",), "vector"),
    "where": Primitive(("mask", "vector", "vector"), "vector"),
    "maximum": Primitive(("vector", "vector"), "vector"),
    "minimum": Primitive(("vector", "vector"), "vector"),
    "zeros": Primitive(("int",), "vector"),
    "increment_seq_nr": Primitive(("int",), ""),
    "block_until": Primitive(("bool",), ""),
    "valid": Primitive(("int", "int"), "bool"),
    "count_read": Primitive(("int", "int"), ""),
    "make_valid": Primitive(("int", "int", "int"), ""),
}
SCALARS = ("int", "number")  # taken for a vector too: the same value for every element


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


def check(text: str, operands: Mapping[str, str], exceptions: tuple[str, ...]) -> Operation:
    """Check an operation text; `operands` maps the instruction's operands to their kinds.

    Raises `OperationError` with the line for a construct, name, type or exception that is not allowed.
    """
    try:
        tree = ast.parse(text)
    except SyntaxError as problem:
        raise OperationError(f"not valid Python: {problem.msg}", problem.lineno or 1) from None
    checker = _Checker({name: OPERAND_TYPES[kind] for name, kind in operands.items()}, exceptions)
    for statement in tree.body:
        checker.statement(statement)
    return Operation(text, compile(tree, "<operation>", "exec"))


class _Checker:
    def __init__(self, operands: Mapping[str, str], exceptions: tuple[str, ...]) -> None:
        self.given = {**STATE, **operands}
        self.exceptions = exceptions
        self.local: dict[str, str] = {}

    def statement(self, node: ast.stmt) -> None:
        """Check one statement."""
        match node:
            case ast.If(test=test, body=body, orelse=[]):
                self.expect(test, "bool", "the condition of `if`")
                for inner in body:
                    self.statement(inner)
            case ast.If():
                raise OperationError("`if` must not have an `else`", node.lineno)
            case ast.Assign(targets=[target], value=value):
                self.assignment(target, value)
            case ast.Assign():
                raise OperationError("an assignment must have one target", node.lineno)
            case ast.Expr(value=ast.Call() as call):
                if self.call(call):
                    raise OperationError(
                        f"'{ast.unparse(call.func)}' has no effect as a statement", node.lineno
                    )
            case _:
                raise OperationError(
                    f"{type(node).__name__} is not allowed in an operation", node.lineno
                )

    def assignment(self, target: ast.expr, value: ast.expr) -> None:
        """Check `name = value` or `buffer[lo:hi] = value`."""
        match target:
            case ast.Name(id=name):
                if name in self.given or name in PRIMITIVES:
                    raise OperationError(f"'{name}' must not be assigned as a whole", target.lineno)
                found = self.type_of(value)
                if self.local.setdefault(name, found) != found:
                    raise OperationError(
                        f"'{name}' is {_a(self.local[name])}, must not become {_a(found)}",
                        target.lineno,
                    )
            case ast.Subscript(value=buffer, slice=ast.Slice() as part):
                self.expect(buffer, "buffer", "the target of a slice assignment")
                self.bounds(part)
                self.expect(value, "vector", "what is assigned to a buffer slice")
            case _:
                raise OperationError("the target must be a name or a buffer slice", target.lineno)

    def bounds(self, part: ast.Slice) -> None:
        """Check the bounds of a slice; both must be there."""
        if part.lower is None or part.upper is None or part.step is not None:
            raise OperationError("a slice must be [LO:HI]", part.lineno)
        self.expect(part.lower, "int", "a slice bound")
        self.expect(part.upper, "int", "a slice bound")

    def expect(self, node: ast.expr, wanted: str, what: str) -> None:
        """Raise unless the expression has the type, or is a scalar where a vector is wanted."""
        found = self.type_of(node)
        if found != wanted and not (wanted == "vector" and found in SCALARS):
            raise OperationError(f"{what} must be {_a(wanted)}, not {_a(found)}", node.lineno)

    def type_of(self, node: ast.expr) -> str:
        """The type of an expression. Raises `OperationError` for what is not in the language."""
        match node:
            case ast.Constant(value=int()) if not isinstance(node.value, bool):
                return "int"
            case ast.Constant(value=str()):
                return "text"
            case ast.Name(id=name):
                known = self.given.get(name) or self.local.get(name)
                if known is None:
                    raise OperationError(f"unknown name '{name}'", node.lineno)
                return known
            case ast.Subscript(value=value, slice=ast.Slice() as part):
                self.bounds(part)
                if self.type_of(value) not in ("buffer", "vector"):
                    raise OperationError("only buffers and vectors have slices", node.lineno)
                return "vector"
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult()):
                return self.arithmetic(node)
            case ast.Compare(
                ops=[ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE() | ast.Eq()], comparators=[right]
            ):
                pair = self.type_of(node.left), self.type_of(right)
                if pair == ("int", "int"):
                    return "bool"
                if pair[0] == "vector" and pair[1] in ("vector", *SCALARS):
                    return "mask"
                raise OperationError(
                    f"cannot compare {_a(pair[0])} with {_a(pair[1])}", node.lineno
                )
            case ast.BoolOp(op=ast.And(), values=values):
                for value in values:
                    self.expect(value, "bool", "a side of `and`")
                return "bool"
            case ast.Call():
                result = self.call(node)
                if not result:
                    raise OperationError(f"'{ast.unparse(node.func)}' has no value", node.lineno)
                return result
        raise OperationError(f"{type(node).__name__} is not allowed in an operation", node.lineno)

    def arithmetic(self, node: ast.BinOp) -> str:
        """The type of a sum, difference or product: integers, or element by element."""
        types = {self.type_of(node.left), self.type_of(node.right)}
        if types == {"int"}:
            return "int"
        if "vector" in types and types <= {"vector", *SCALARS}:
            return "vector"
        left, right = self.type_of(node.left), self.type_of(node.right)
        raise OperationError(f"cannot calculate with {_a(left)} and {_a(right)}", node.lineno)

    def call(self, node: ast.Call) -> str:
        """Check a call; returns the type of its value, empty where it has none."""
        name = ast.unparse(node.func)
        primitive = PRIMITIVES.get(name)
        if primitive is None or node.keywords:
            raise OperationError(f"'{name}' is no primitive", node.lineno)
        if len(node.args) != len(primitive.parameters):
            count = len(primitive.parameters)
            raise OperationError(f"{name} takes {count} values, not {len(node.args)}", node.lineno)
        for number, (argument, wanted) in enumerate(
            zip(node.args, primitive.parameters, strict=True), 1
        ):
            self.expect(argument, wanted, f"value {number} of {name}")
        if name == "require":
            self.exception(node.args[1])
        return primitive.result

    def exception(self, node: ast.expr) -> None:
        """The exception that a `require` names must be one of the instruction's."""
        if not isinstance(node, ast.Constant):
            raise OperationError("require must name its exception in quotes", node.lineno)
        if node.value not in self.exceptions:
            raise OperationError(
                f"exception {node.value!r} is not listed for this instruction", node.lineno
            )


def _a(type_name: str) -> str:
    return {"int": "an int", "text": "a text"}.get(type_name, f"a {type_name}")
