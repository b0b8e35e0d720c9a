"""`NAME=EXPRESSION` of the command line: `-D` and `--defsym`, with errors that point into the option."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cim.asm.expressions import ExpressionError, Value, evaluate
from cim.asm.syntax import Expression, Keyword, LineError, Place, parse_whole_line
from cim.diagnostics import CimError, Diagnostic, Source, Span, UsageError, error

_HEAD = ".let "  # what the grammar knows NAME=EXPRESSION behind


@dataclass(frozen=True)
class Defsym:
    """A symbol that the command line defines: `symbol + number`, or a number where `symbol` is None."""

    text: str
    number: int
    symbol: str | None
    span: Span

    def __str__(self) -> str:
        return f"--defsym {self.text}"


def option_span(option: str, text: str, place: Place) -> Span:
    """Columns of the option's text."""
    return Span(Source(option, text), 1, place.start - len(_HEAD), place.end - len(_HEAD))


def read_options(
    option: str, texts: Iterable[str], name_of: Callable[[str, Place], Value]
) -> dict[str, tuple[str, Value, Span]]:
    """Text, value and place of the value of each NAME=EXPRESSION; each may use those before it.

    `name_of` gives the value of other names. Raises `UsageError` with all that is wrong.
    """
    made: dict[str, tuple[str, Value, Span]] = {}

    def lookup(name: str, place: Place) -> Value:
        return made[name][1] if name in made else name_of(name, place)

    problems: list[CimError] = []
    for text in texts:
        try:
            match parse_whole_line(_HEAD + text).operands:
                case (Keyword(name=name, value=Expression() as expression),):
                    value = evaluate(expression, lookup)
                    span = option_span(option, text, expression.place)
                    if isinstance(value.number, float):
                        raise error(f"must be an integer, not {value.number}", span)
                    made[name] = (text, value, span)
                case _:
                    whole = Place(len(_HEAD) + 1, len(_HEAD) + 1 + len(text))
                    raise error("must be NAME=EXPRESSION", option_span(option, text, whole))
        except (LineError, ExpressionError) as problem:
            problems.append(error(problem.message, option_span(option, text, problem.place)))
        except CimError as problem:
            problems.append(problem)
    if problems:
        raise UsageError([d for problem in problems for d in problem.diagnostics])
    return made


def read_constants(option: str, texts: Iterable[str]) -> dict[str, int]:
    """Integers by name, for `-D`; NAME alone is 1. Raises `UsageError`."""

    def no_name(name: str, place: Place) -> Value:
        raise ExpressionError(f"'{name}' is not defined by a -D before this one", place)

    full = [text if "=" in text else f"{text}=1" for text in texts]
    return {
        name: int(value.number)
        for name, (_, value, _) in read_options(option, full, no_name).items()
    }


def read_defsyms(texts: Iterable[str]) -> dict[str, Defsym]:
    """Symbols by name, for the linker's `--defsym`. Raises `UsageError`."""
    made: dict[str, Defsym] = {}
    read = read_options("--defsym", texts, lambda name, _: Value(0, name))
    for name, (text, value, span) in read.items():
        number = int(value.number)
        if value.symbol is None and not 0 <= number < 2**63:
            raise UsageError([Diagnostic(f"the value is {number}, must be 0 to 2**63 - 1", span)])
        made[name] = Defsym(text, number, value.symbol, span)
    return made
