"""TOML files whose errors point at a line: tomllib reads the values, this finds where they stand."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from cim.diagnostics import CimError, Source, Span, error

_HEADER = re.compile(r"^\s*\[\[?\s*([^\]]+?)\s*\]\]?")
_KEY = re.compile(r"^\s*([A-Za-z0-9_.\-\"]+?)\s*=")
_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)")


def parse(source: Source) -> dict[str, Any]:
    """The values of a TOML text. Raises `CimError` at the place of a syntax error."""
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as problem:
        raise _syntax_error(source, str(problem)) from None


def _syntax_error(source: Source, message: str) -> CimError:
    found = _POSITION.search(message)
    if found is None:
        return error(message, where=source.name)
    line, column = int(found[1]), int(found[2])
    text = _POSITION.sub("", message).strip()
    return error(f"not valid TOML: {text}", Span(source, line, column, column + 1))


def locate(source: Source, *path: str) -> Span:
    """Where the table or key `path` stands; the closest enclosing table, or line 1, if it has no line."""
    return _search(source, path) or (locate(source, *path[:-1]) if path else Span(source, 1, 1, 2))


def _search(source: Source, path: tuple[str, ...]) -> Span | None:
    table: tuple[str, ...] = ()
    for number, line in enumerate(source.lines, 1):
        if header := _HEADER.match(line):
            table = _split(header[1])
            if table == path:
                return _span(source, number, line)
        elif (key := _KEY.match(line)) and table + _split(key[1]) == path:
            return _span(source, number, line)
    return None


def _split(dotted: str) -> tuple[str, ...]:
    return tuple(part.strip('"') for part in re.findall(r'"[^"]*"|[^."]+', dotted))


def _span(source: Source, number: int, line: str) -> Span:
    start = len(line) - len(line.lstrip()) + 1
    return Span(source, number, start, len(line.split("#", maxsplit=1)[0].rstrip()) + 1)
