"""Errors that a person can act on: a place, the source line, a caret, and what to do about it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

MAX_ORIGINS = 6


class ExitCode(IntEnum):
    """What every tool's exit status means."""

    OK = 0
    INPUT = 1
    USAGE = 2
    FAULT = 3
    DEADLOCK = 4
    CYCLE_LIMIT = 5
    MISMATCH = 6
    INTERNAL = 70


@dataclass(frozen=True, eq=False)
class Source:
    """A text that diagnostics point into; `name` is what the user called it.

    A part of a file (a macro's body, its arguments filled in) counts its lines from `first_line`. `origin`
    says what brought the text in: the line that included it, or called the macro.
    """

    name: str
    text: str
    first_line: int = 1
    origin: Note | None = None

    @cached_property
    def lines(self) -> list[str]:
        """The lines without their ends; LF and CRLF both end a line."""
        return [line.removesuffix("\r") for line in self.text.split("\n")]

    def line(self, number: int) -> str:
        """The line of that number; empty past the end."""
        index = number - self.first_line
        return self.lines[index] if 0 <= index < len(self.lines) else ""


@dataclass(frozen=True)
class Span:
    """Characters `column` to `end - 1` (from 1) of one line (from 1) of a source."""

    source: Source
    line: int
    column: int
    end: int

    def __str__(self) -> str:
        return f"{self.source.name}:{self.line}:{self.column}"

    def draw(self) -> str:
        """The source line and a caret under the span; tabs stay tabs, so that the caret lines up."""
        text = self.source.line(self.line)
        lead = "".join("\t" if c == "\t" else " " for c in text[: self.column - 1])
        return f"  {text}\n  {lead}{'^' * max(1, self.end - self.column)}"


@dataclass(frozen=True)
class Note:
    """A second place, or a hint what to do, that belongs to a diagnostic."""

    message: str
    span: Span | None = None


@dataclass(frozen=True)
class Diagnostic:
    """One error or warning. `where` names the file when there is no span (a binary, a model)."""

    message: str
    span: Span | None = None
    where: str = ""
    notes: tuple[Note, ...] = field(default=())
    severity: str = "error"

    def render(self) -> str:
        """The text as it goes to stderr, without a final newline."""
        parts = [_headline(self.severity, self.message, self.span, self.where)]
        parts += [_headline("note", note.message, note.span, "") for note in _origins(self.span)]
        parts += [_headline("note", note.message, note.span, "") for note in self.notes]
        return "\n".join(parts)


def _origins(span: Span | None) -> Iterator[Note]:
    """What brought a span's source in, from the inside out; a long chain is cut in its middle."""
    chain = []
    while span is not None and span.source.origin is not None:
        chain.append(span.source.origin)
        span = span.source.origin.span
    if len(chain) > MAX_ORIGINS:
        skipped = len(chain) - MAX_ORIGINS
        half = MAX_ORIGINS // 2
        chain = [*chain[:half], Note(f"({skipped} more levels)"), *chain[-half:]]
    yield from chain


def _headline(severity: str, message: str, span: Span | None, where: str) -> str:
    if span is not None:
        return f"{span}: {severity}: {message}\n{span.draw()}"
    return f"{where}: {severity}: {message}" if where else f"{severity}: {message}"


class CimError(Exception):
    """Carries diagnostics to the command line, and the exit code that they mean."""

    exit_code = ExitCode.INPUT

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = list(diagnostics)
        self.limit: int | None = (
            None  # how many of them to print; None: as many as the console does
        )
        super().__init__("\n".join(d.render() for d in self.diagnostics))

    def __reduce__(self) -> tuple[Any, ...]:
        """Without this, a copy from another process would take its own text for the diagnostics."""
        return type(self).__new__, (type(self), *self.args), self.__dict__


class UsageError(CimError):
    """A command line that means nothing."""

    exit_code = ExitCode.USAGE


def usage_error(message: str, where: str) -> UsageError:
    """A `UsageError` about one option."""
    return UsageError([Diagnostic(message, where=where)])


def error(
    message: str, span: Span | None = None, where: str = "", notes: Iterable[str | Note] = ()
) -> CimError:
    """A `CimError` with a single diagnostic; plain strings become notes without a place."""
    made = tuple(n if isinstance(n, Note) else Note(n) for n in notes)
    return CimError([Diagnostic(message, span, where, made)])


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'X'?` where a known word is close, else the empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""
