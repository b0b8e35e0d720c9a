"""Evaluates expressions, over all iterations of the loops around them at once.

A value is a number, or a symbol plus a number that the linker will know. Numbers are Python integers and
floats, or int64 arrays with one element per iteration; an int64 that would overflow is an error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cim.asm.syntax import Expression, Op, Place
from cim.diagnostics import did_you_mean

Ints = NDArray[np.int64]
Number = int | float | Ints
INT64 = 2**63
DEFINED = "\1"  # before a name: whether it is defined, 1 or 0; no name in a source begins so


class ExpressionError(Exception):
    """Why an expression has no value, and the columns of the part to blame."""

    def __init__(self, message: str, place: Place) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


class Spot(NamedTuple):
    """A place in a section. `order` says which of two labels of one offset was defined first."""

    section: str
    offset: int
    order: int


LOCAL = "\2"  # in the key of a local label: what follows tells it from others of its name


def shown(key: str | None) -> str:
    """A symbol as it is written in the source."""
    return str(key).partition(LOCAL)[0]


@dataclass(frozen=True, slots=True)
class Value:
    """`symbol + number`, or a plain number where `symbol` is None.

    `spot` is where the symbol stands, if that is known in this assembly. `is_core` says that the number of
    the core of that name is meant, which the linker will know, not an address.
    """

    number: Number
    symbol: str | None = None
    spot: Spot | None = None
    is_core: bool = False


Lookup = Callable[[str, Place], Value]


class Program(Protocol):
    """What expressions ask about the program around them. `constants` are those known so far, by name."""

    constants: dict[str, int | float]

    def distance(self, left: Value, right: Value) -> Value | None:
        """Is asked for each difference of two addresses; None leaves its value to what they are."""

    def function(self, name: str, argument: Value, op: Op) -> Value:
        """The value of a function of `FUNCTIONS`. Raises `ExpressionError`."""


def not_constant(
    value: Value, place: Place, known: Iterable[str], kinds: str = "a loop variable, .let or .equ"
) -> ExpressionError:
    """The error for an address, or for a name that nothing defines, where a number must stand."""
    name = shown(value.symbol)
    return ExpressionError(
        f"'{name}' must be a constant here ({kinds}){did_you_mean(name, known)}", place
    )


FUNCTIONS = ("sizeof", "core", "hg", "vg")


def evaluate(expression: Expression, lookup: Lookup, program: Program | None = None) -> Value:
    """The value of an expression; `lookup` gives the value of a name. Raises `ExpressionError`."""
    stack: list[Value] = []
    for op in expression.code:
        if op.kind == "num":
            stack.append(Value(op.value))
        elif op.kind == "name":
            stack.append(lookup(op.value, op.place))
        elif op.kind == "unary":
            stack.append(_unary(op, stack.pop()))
        elif op.kind == "binary":
            right = stack.pop()
            left = stack.pop()
            known = None
            if program is not None and op.value == "-" and left.symbol and right.symbol:
                known = program.distance(left, right)
            stack.append(_binary(op, left, right) if known is None else known)
        else:
            name, count = op.value
            arguments = [stack.pop() for _ in range(count)][::-1]
            if name in FUNCTIONS and program is not None:
                stack.append(program.function(name, _only(op, name, arguments), op))
            else:
                stack.append(_call(op, name, arguments))
    return stack.pop()


def symbol_place(expression: Expression, value: Value) -> Place:
    """Where the symbol of its value stands in an expression; the expression, where it has another name there."""
    name = shown(value.symbol)
    names = (name,) if not name.isdecimal() else (f"{name}b", f"{name}f")
    named = (op.place for op in expression.code if op.kind == "name" and op.value in names)
    return next(named, expression.place)


def _plain(value: Value, op: Op) -> Number:
    if value.symbol is not None:
        raise ExpressionError(
            f"'{shown(value.symbol)}' must be a constant here (a loop variable, .let or .equ); "
            f"{'a core number' if value.is_core else 'an address'}, which the linker sets, can only be "
            "moved by + and -",
            op.place,
        )
    return value.number


def _integer(value: Value, op: Op) -> int | Ints:
    number = _plain(value, op)
    if isinstance(number, float):
        raise ExpressionError(f"'{op.value}' needs integers, not {number}", op.place)
    return number


def _unary(op: Op, value: Value) -> Value:
    if op.value == "+":
        return value
    if op.value == "-":
        return Value(_checked(-_plain(value, op), op))
    number = _integer(value, op)
    return Value(~number if op.value == "~" else _truth(number == 0))


def _binary(op: Op, left: Value, right: Value) -> Value:
    sign = op.value
    if sign == "-" and left.spot and right.spot and left.spot.section == right.spot.section:
        # Two places of one section: their distance is known, wherever the linker puts it.
        distance = left.spot.offset - right.spot.offset
        return Value(_arithmetic(op, _arithmetic(op, left.number, right.number), -distance))
    if sign in "+-" and (left.symbol or right.symbol):
        if right.symbol and (sign == "-" or left.symbol):
            raise ExpressionError(_why_not(sign, left, right), op.place)
        a, b = left.number, right.number
        if isinstance(a, float) or isinstance(b, float):
            raise ExpressionError("an address can only be moved by an integer", op.place)
        moved = _arithmetic(op, a, b)
        return Value(
            moved,
            left.symbol or right.symbol,
            left.spot or right.spot,
            left.is_core or right.is_core,
        )
    if sign in "+-*":
        return Value(_arithmetic(op, _plain(left, op), _plain(right, op)))
    if sign == "/" and (isinstance(left.number, float) or isinstance(right.number, float)):
        a, b = _plain(left, op), _plain(right, op)
        if isinstance(a, np.ndarray) or isinstance(b, np.ndarray) or b == 0:
            raise ExpressionError("this division has no value", op.place)
        return Value(a / b)
    x, y = _integer(left, op), _integer(right, op)
    if sign in _COMPARE:
        return Value(_truth(_COMPARE[sign](x, y)))
    if sign in "/%":
        if np.any(np.equal(y, 0)):
            raise ExpressionError("division by zero", op.place)
        return Value(_checked(_quotient(x, y) if sign == "/" else _remainder(x, y), op))
    if sign in ("<<", ">>"):
        if np.any(np.less(y, 0)) or np.any(np.greater(y, 63)):
            raise ExpressionError("a shift must be by 0 to 63", op.place)
        if sign == ">>":
            return Value(x >> y)
        return Value(_arithmetic(Op("binary", "*", op.place), x, _checked(_power(y), op)))
    return Value(_BITS[sign](x, y))


_COMPARE: Mapping[str, Callable[[int | Ints, int | Ints], bool | NDArray[np.bool_]]] = {
    "==": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "&&": np.logical_and,
    "||": np.logical_or,
}
_BITS: Mapping[str, Callable[[int | Ints, int | Ints], int | Ints]] = {
    "&": lambda x, y: x & y,
    "|": lambda x, y: x | y,
    "^": lambda x, y: x ^ y,
}


def _why_not(sign: str, left: Value, right: Value) -> str:
    """Why the symbol on the right cannot be added to or subtracted from the left side."""
    what = f"cannot {'subtract' if sign == '-' else 'add'} the address '{shown(right.symbol)}' here"
    if sign == "+" or left.symbol is None:
        return what
    if left.spot and right.spot:
        return (
            f"{what}: '{shown(left.symbol)}' is in {left.spot.section}, '{shown(right.symbol)}' in "
            f"{right.spot.section}, and only the linker knows how far apart they are"
        )
    unknown = shown((left if left.spot is None else right).symbol)
    if unknown.isdecimal():
        return f"there is no label '{unknown}:' after this line"
    return f"{what}: '{unknown}' is not defined in this assembly"


def _only(op: Op, name: str, arguments: list[Value]) -> Value:
    if len(arguments) != 1:
        raise ExpressionError(f"{name} takes one name, not {len(arguments)}", op.place)
    return arguments[0]


def _call(op: Op, name: str, arguments: list[Value]) -> Value:
    functions = {"min": np.minimum, "max": np.maximum}
    if name not in functions:
        known = ", ".join([*functions, *FUNCTIONS])
        raise ExpressionError(f"unknown function '{name}'; there are {known}", op.place)
    if len(arguments) != 2:
        raise ExpressionError(f"{name} takes 2 values, not {len(arguments)}", op.place)
    x, y = (_integer(argument, op) for argument in arguments)
    result = functions[name](x, y)
    return Value(result if isinstance(result, np.ndarray) else int(result))


def _truth(condition: object) -> int | Ints:
    if isinstance(condition, np.ndarray):
        return condition.astype(np.int64)
    return int(bool(condition))


def _power(exponent: int | Ints) -> int | Ints:
    # 2**63 does not fit an array's int64: left to Python's integers, which _checked then refuses.
    if isinstance(exponent, np.ndarray):
        if exponent.size and int(exponent.max()) > 62:
            return 1 << int(exponent.max())
        return np.asarray(np.left_shift(1, exponent), dtype=np.int64)
    return 1 << exponent


def _quotient(x: int | Ints, y: int | Ints) -> int | Ints:
    """The quotient, rounded towards zero."""
    floor = x // y
    return floor + _truth((floor < 0) & (floor * y != x))


def _remainder(x: int | Ints, y: int | Ints) -> int | Ints:
    """What is left over, with the sign of x."""
    return x - _quotient(x, y) * y


def _arrays(x: Number, y: Number) -> bool:
    return isinstance(x, np.ndarray) or isinstance(y, np.ndarray)


def _bound(x: Number) -> float:
    if isinstance(x, np.ndarray):
        return max(abs(int(x.max())), abs(int(x.min()))) if x.size else 0
    return abs(x)


def _arithmetic(op: Op, x: Number, y: Number) -> Number:
    """+, - or *, refused where an int64 could overflow."""
    if _arrays(x, y):
        for number in (x, y):
            if isinstance(number, float):
                raise ExpressionError(
                    f"a loop variable can only be combined with integers, not {number}", op.place
                )
        bound = _bound(x) * _bound(y) if op.value == "*" else _bound(x) + _bound(y)
        if bound >= INT64:
            raise ExpressionError("the result does not fit 64 bits", op.place)
    operations = {"+": operator.add, "-": operator.sub, "*": operator.mul}
    result: Number = operations[op.value](x, y)
    return _checked(result, op)


def _checked(number: Number, op: Op) -> Number:
    if isinstance(number, int) and not -INT64 <= number < INT64:
        raise ExpressionError("the result does not fit 64 bits", op.place)
    return number
