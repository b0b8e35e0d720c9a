"""The syntax tree of a line, and the parser that makes it: Lark with `grammar.lark`, nothing beside it.

A tree knows columns, not the file and line it came from, so equal lines of many files share one tree.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken, VisitError


@dataclass(frozen=True, slots=True)
class Place:
    """Columns `start` to `end - 1`, from 1, of the line that is parsed."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Op:
    """One step of an expression in postfix order: num, name, unary, binary or call (`value` is name, count)."""

    kind: str
    value: Any
    place: Place


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression in postfix order: no recursion, however long it is."""

    code: tuple[Op, ...]
    place: Place

    @property
    def bare_name(self) -> str | None:
        """The name, where the expression is nothing but one (`1b` and `1f` are not names)."""
        op = self.code[0]
        if len(self.code) != 1 or op.kind != "name" or op.value[0].isdecimal():
            return None
        return str(op.value)


@dataclass(frozen=True, slots=True)
class Slice:
    """`name[lo:hi]`."""

    name: str
    lo: Expression
    hi: Expression
    place: Place


@dataclass(frozen=True, slots=True)
class Text:
    """A string, escapes resolved."""

    value: str
    place: Place


@dataclass(frozen=True, slots=True)
class Items:
    """`[a, b, …]`."""

    items: tuple[Operand, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Keyword:
    """`name=value`."""

    name: str
    value: Operand
    place: Place


Operand = Expression | Slice | Text | Items | Keyword


@dataclass(frozen=True, slots=True)
class Label:
    """`name:`, or `7:` with the number as its name."""

    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class Line:
    """Labels, then perhaps a statement; `op` is in lower case."""

    labels: tuple[Label, ...]
    op: str | None
    op_place: Place
    operands: tuple[Operand, ...]


# What GNU as and LLVM also call our directives.
ALIASES = {
    ".2byte": ".half", ".short": ".half", ".hword": ".half", ".4byte": ".word", ".long": ".word",
    ".int": ".word", ".8byte": ".quad", ".single": ".float", ".zero": ".space", ".skip": ".space",
    ".global": ".globl", ".string": ".asciz",
}  # fmt: skip


def canonical_op(word: str) -> str:
    """The name under which a statement's first word is known, however it was written."""
    lower = word.lower()
    return ALIASES.get(lower, lower)


class LineError(Exception):
    """A line that cannot be parsed: columns and message."""

    def __init__(self, message: str, place: Place) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


_DECIMAL = re.compile(r"(?:0|[1-9][0-9]*(?:_[0-9]+)*)")
_BASES = (
    (re.compile(r"0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*"), 16),
    (re.compile(r"0[bB][01]+(?:_[01]+)*"), 2),
    (re.compile(r"0[oO][0-7]+(?:_[0-7]+)*"), 8),
    (_DECIMAL, 10),
)
_FLOAT = re.compile(r"[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "\\": "\\", '"': '"', "'": "'"}


def read_number(text: str, place: Place) -> int | float:
    """An integer (decimal, 0x, 0b, 0o, `_` between digits) or a decimal float. Raises `LineError`."""
    for pattern, base in _BASES:
        if pattern.fullmatch(text):
            value = int(text.replace("_", ""), base)
            if value >= 2**64:
                raise LineError(f"'{text}' does not fit 64 bits", place)
            return value
    if text.isdigit() and not text.strip("0"):
        raise LineError(f"'{text}' must be written 0", place)
    if text.isdigit():
        raise LineError(f"'{text}' must not start with 0; octal is 0o{text.lstrip('0')}", place)
    if _FLOAT.fullmatch(text):
        return float(text)
    raise LineError(f"'{text}' is not a number", place)


def check_numeric_label(text: str, place: Place) -> None:
    """Raise `LineError` unless the text is a plain decimal number."""
    read_number(text, place)
    if not text.isdecimal():
        raise LineError(f"a numeric label must be a decimal number, not '{text}'", place)


def _unescape(text: str, place: Place) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise LineError(f"unknown escape '\\{match[1]}'", place)
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", replace, text)


def _place(token: Token) -> Place:
    start = token.column or 1
    return Place(start, start + len(token))


def _joined(ops: list[Op]) -> Place:
    return Place(min(op.place.start for op in ops), max(op.place.end for op in ops))


@v_args(inline=True)
class _Builder(Transformer[Token, Line]):
    """Turns Lark's tree into ours, bottom-up. An expression is a list of `Op` until it is complete."""

    def start(self, *parts: Label | tuple[Token, tuple[Operand, ...]]) -> Line:
        labels = tuple(part for part in parts if isinstance(part, Label))
        for part in parts:
            if not isinstance(part, Label):
                op, operands = part
                return Line(labels, canonical_op(str(op)), _place(op), operands)
        return Line(labels, None, Place(1, 1), ())

    def label(self, name: Token) -> Label:
        if name.type == "NUMBER":
            check_numeric_label(str(name), _place(name))
        return Label(str(name), _place(name))

    def statement(self, op: Token, *operands: Operand) -> tuple[Token, tuple[Operand, ...]]:
        return op, operands

    def keyword(self, name: Token, value: Operand) -> Keyword:
        place = _place(name)
        return Keyword(str(name), value, Place(place.start, value.place.end))

    def slice(self, name: Token, lo: Expression, hi: Expression) -> Slice:
        return Slice(str(name), lo, hi, Place(_place(name).start, hi.place.end + 1))

    def items(self, *parts: Token | Operand) -> Items:
        items = tuple(part for part in parts if not isinstance(part, Token))
        first, last = parts[0], parts[-1]
        assert isinstance(first, Token)
        assert isinstance(last, Token)
        return Items(items, Place(_place(first).start, _place(last).end))

    def string(self, token: Token) -> Text:
        return Text(_unescape(str(token)[1:-1], _place(token)), _place(token))

    def expression(self, ops: list[Op]) -> Expression:
        return Expression(tuple(ops), _joined(ops))

    def number(self, token: Token) -> list[Op]:
        place = _place(token)
        return [Op("num", read_number(str(token), place), place)]

    def character(self, token: Token) -> list[Op]:
        place = _place(token)
        return [Op("num", ord(_unescape(str(token)[1:-1], place)), place)]

    def name(self, token: Token) -> list[Op]:
        return [Op("name", str(token), _place(token))]

    local = name

    def call(self, name: Token, *arguments: list[Op]) -> list[Op]:
        ops = [op for argument in arguments for op in argument]
        ops.append(Op("call", (str(name), len(arguments)), _place(name)))
        return ops

    def unary(self, operator: Token, operand: list[Op]) -> list[Op]:
        operand.append(Op("unary", str(operator), _place(operator)))
        return operand

    def _binary(self, left: list[Op], operator: Token, right: list[Op]) -> list[Op]:
        left.extend(right)  # in place: a long sum stays linear
        left.append(Op("binary", str(operator), _place(operator)))
        return left

    logical_or = logical_and = bit_or = bit_xor = bit_and = _binary
    equality = relation = shift = sum = product = _binary


@cache
def _parser() -> Lark:
    text = resources.files("cim.asm").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(
        text, parser="lalr", lexer="basic", transformer=_Builder(), maybe_placeholders=False
    )


_SHOWN = {
    "COMMA": "','", "COLON": "':'", "EQUAL": "'='", "LSQB": "'['", "RSQB": "']'", "LPAR": "'('", "RPAR": "')'",
    "NAME": "a name", "NUMBER": "a number", "STRING": "a string", "$END": "the end of the line",
}  # fmt: skip


def terminal_pattern(name: str) -> str:
    """The regular expression of a terminal of the grammar."""
    return str(_parser().get_terminal(name).pattern.to_regexp())


def tokens_of(text: str) -> list[Token]:
    """The tokens of a line that can be parsed, without its comment."""
    return list(_parser().lex(text))


def parse_whole_line(text: str) -> Line:
    """The tree of one line without its line end, by Lark. Raises `LineError`."""
    parse: Callable[[str], Any] = _parser().parse
    try:
        line = parse(text)
    except VisitError as problem:  # raised while the tree is built, i.e. by us
        if isinstance(problem.orig_exc, LineError):
            raise problem.orig_exc from None
        raise
    except UnexpectedInput as problem:
        raise _syntax_error(text, problem) from None
    assert isinstance(line, Line)
    return line


def _syntax_error(text: str, problem: UnexpectedInput) -> LineError:
    if isinstance(problem, UnexpectedCharacters):
        column = problem.column
        char = text[column - 1]
        if char == '"':
            return LineError("the string has no end", Place(column, len(text) + 1))
        if char == "'":
            message = "a character constant must be one character between quotes, as in 'a'"
            return LineError(message, Place(column, column + 1))
        if char == "\\":
            message = "'\\' stands before the parameters of a macro, in its body only"
            return LineError(message, Place(column, column + 1))
        # What cannot be seen, or looks like something else, goes by its name.
        name = "" if char.isascii() else f" ({unicodedata.name(char, 'no character')})"
        return LineError(f"unexpected character {char!r}{name}", Place(column, column + 1))
    assert isinstance(problem, UnexpectedToken)
    expected = [
        _SHOWN[name] for name in sorted(problem.accepts or problem.expected) if name in _SHOWN
    ]
    hint = f"; expected {' or '.join(expected)}" if 0 < len(expected) <= 4 else ""
    if problem.token.type == "$END":
        return LineError(f"the line ends too early{hint}", Place(len(text) + 1, len(text) + 2))
    return LineError(f"unexpected '{problem.token}'{hint}", _place(problem.token))
