"""Expressions against Python's integers."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.asm.expressions import ExpressionError, Value, evaluate
from cim.asm.shapes import parse_line
from cim.asm.syntax import LineError, Place

VARIABLES = {"x": np.array([-3, 0, 7, 100]), "y": np.array([2, -5, 1, 3])}


def value_of(text: str):
    def lookup(name: str, place: Place) -> Value:
        return Value(VARIABLES[name]) if name in VARIABLES else Value(0, name)

    return evaluate(parse_line(f".e {text}").operands[0], lookup)


def c_divide(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


OPERATORS = {
    "||": lambda a, b: int(bool(a) or bool(b)),
    "&&": lambda a, b: int(bool(a) and bool(b)),
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": c_divide,
    "%": lambda a, b: a - c_divide(a, b) * b,
}
LEVELS = [["||"], ["&&"], ["|"], ["^"], ["&"], ["==", "!="], ["<", "<=", ">", ">="], ["<<", ">>"],
          ["+", "-"], ["*", "/", "%"]]  # fmt: skip
LEVEL = {operator: level for level, group in enumerate(LEVELS) for operator in group}

leaves = st.integers(0, 300).map(str) | st.sampled_from(["x", "y"])
trees = st.recursive(
    leaves,
    lambda inner: (
        st.tuples(st.sampled_from(sorted(OPERATORS)), inner, inner)
        | st.tuples(st.sampled_from(["-", "~", "!"]), inner)
    ),
    max_leaves=12,
)


def write(tree, level: int = 0) -> str:
    """Text with no more parentheses than C's precedence needs."""
    if isinstance(tree, str):
        return tree
    if len(tree) == 2:
        return f"{tree[0]} {write(tree[1], 10)}"
    own = LEVEL[tree[0]]
    text = f"{write(tree[1], own)} {tree[0]} {write(tree[2], own + 1)}"
    return f"({text})" if own < level else text


def compute(tree, lane: int) -> int:
    if isinstance(tree, str):
        return int(VARIABLES[tree][lane]) if tree in VARIABLES else int(tree)
    if len(tree) == 2:
        inner = compute(tree[1], lane)
        return {"-": -inner, "~": ~inner, "!": int(not inner)}[tree[0]]
    a, b = compute(tree[1], lane), compute(tree[2], lane)
    if tree[0] in ("<<", ">>") and not 0 <= b <= 63:
        raise ValueError
    result = OPERATORS[tree[0]](a, b)
    if not -(2**63) <= result < 2**63:
        raise ValueError
    return result


@settings(max_examples=400)
@given(trees)
def test_expressions_equal_python_or_are_refused(tree) -> None:
    try:
        expected = [compute(tree, lane) for lane in range(4)]
    except (ValueError, ZeroDivisionError):
        with pytest.raises(ExpressionError):
            value_of(write(tree))
        return
    # Arrays are refused as soon as the bounds of an operation could overflow; never a wrong number.
    with suppress(ExpressionError):
        assert np.broadcast_to(value_of(write(tree)).number, 4).tolist() == expected


def test_a_long_expression_needs_no_recursion() -> None:
    assert value_of("+".join(["1"] * 50_000)).number == 50_000
    assert value_of("-" * 2_000 + "1").number == 1


def test_addresses_move_and_nothing_else() -> None:
    assert value_of("ifm + 4 * 3 - 2") == Value(10, "ifm")
    assert value_of("8 + ifm") == Value(8, "ifm")
    for text in ("ifm * 2", "-ifm", "ifm + ofm", "4 - ifm", "ifm - ofm", "ifm < 3", "min(ifm, 3)"):
        with pytest.raises(ExpressionError):
            value_of(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [("0x1F", 31), ("0b101", 5), ("0o17", 15), ("1_000", 1000), ("'a'", 97), ("0", 0), ("0x1e-5", 25),
     ("1.5", 1.5), ("-2e-3", -0.002), ("0xAB_CD", 0xABCD), ("min(3, 4)", 3), ("max(3, 4)", 4)],
)  # fmt: skip
def test_literals(text: str, number: float) -> None:
    assert value_of(text).number == number


@pytest.mark.parametrize(
    "text", ["00", "08", "0x_1", "1_", "0b2", "0o8", "12ab", "1.2.3", "'ab'", "0xg"]
)
def test_bad_literals(text: str) -> None:
    with pytest.raises(LineError):
        value_of(text)
