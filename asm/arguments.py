"""The operands of a directive, taken one after another, each with the message for what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cim.asm.blocks import Statement
from cim.asm.expressions import ExpressionError
from cim.asm.syntax import Expression, Items, Keyword, Operand, Place, Text
from cim.diagnostics import did_you_mean

if TYPE_CHECKING:
    from cim.asm.assembler import Assembler


def unknown(what: str, word: str, known: Iterable[str], place: Place) -> ExpressionError:
    """`unknown WHAT`, with the closest known word."""
    return ExpressionError(f"unknown {what}{did_you_mean(word, known)}", place)


class Arguments:
    """The operands of a directive: positional ones first, then keywords, each taken once."""

    def __init__(self, assembler: Assembler, statement: Statement, usage: str) -> None:
        self.assembler = assembler
        self.tree = statement.tree
        self.usage = usage
        self.positional = [o for o in self.tree.operands if not isinstance(o, Keyword)]
        self.keywords = {o.name: o for o in self.tree.operands if isinstance(o, Keyword)}
        self.taken: set[str] = set()

    def misuse(self, place: Place | None = None) -> ExpressionError:
        """An error that says how the directive is written."""
        return ExpressionError(f"must be: {self.usage}", place or self.tree.op_place)

    def next(self) -> Operand:
        """The next positional operand. Raises `ExpressionError` where there is none."""
        if not self.positional:
            raise self.misuse()
        return self.positional.pop(0)

    def word(self) -> tuple[str, Place]:
        """A bare name or a string."""
        operand = self.next()
        return self._as_word(operand), operand.place

    def integer(self) -> int:
        """The next positional operand, which must be an integer."""
        operand = self.next()
        return self._as_integer(operand)

    def keyword(self, name: str, default: Any) -> Any:
        """A keyword's value: text for a name or string, number, or list; `default` when it is missing."""
        self.taken.add(name)
        return self.value(self.keywords[name].value) if name in self.keywords else default

    def keyword_integer(self, name: str, default: int | None) -> int:
        """A keyword that is an integer from 0; it must be given where there is no default."""
        self.taken.add(name)
        if name not in self.keywords:
            if default is None:
                raise self.misuse()
            return default
        value = self._as_integer(self.keywords[name].value)
        if value < 0:
            raise ExpressionError(f"{name} must not be negative", self.keywords[name].place)
        return value

    def value(self, operand: Operand) -> Any:
        """An operand as text, number or list; a name that is no constant is text."""
        if isinstance(operand, Text):
            return operand.value
        if isinstance(operand, Items):
            return [self.value(item) for item in operand.items]
        if isinstance(operand, Expression):
            name = operand.bare_name
            if name is not None and not self.assembler.names.is_constant(name):
                return name
            return self.assembler.names.constant(operand)
        raise self.misuse(operand.place)

    def done(self) -> None:
        """Refuse what nobody asked for."""
        if self.positional:
            raise self.misuse(self.positional[0].place)
        for name, operand in self.keywords.items():
            if name not in self.taken:
                raise unknown(f"option '{name}'", name, self.taken, operand.place)

    def _as_word(self, operand: Operand) -> str:
        if isinstance(operand, Text):
            return operand.value
        if isinstance(operand, Expression) and operand.bare_name:
            return operand.bare_name
        raise self.misuse(operand.place)

    def _as_integer(self, operand: Operand) -> int:
        if not isinstance(operand, Expression):
            raise self.misuse(operand.place)
        value = self.assembler.names.constant(operand)
        if isinstance(value, float):
            raise ExpressionError(f"must be an integer, not {value}", operand.place)
        return value
