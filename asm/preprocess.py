"""From files to lines: `.include`, `.macro` and `.irp` work on text, before anything is parsed.

Every line knows where it comes from. A line out of a macro is a line of a source of its own, with the arguments
filled in, whose origin is the line that called the macro; diagnostics show the whole chain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from cim.asm.batches import Batch, FlatRun, batch_at
from cim.asm.syntax import canonical_op
from cim.asm.where import Where
from cim.diagnostics import Diagnostic, Note, Source

MAX_DEPTH = 200
CLOSING = {".endmacro": ".endm"}  # as LLVM writes it
_LABELS = r"\s*(?:(?:[A-Za-z_.$][A-Za-z0-9_.$]*|[0-9]+)\s*:\s*)*"
_WORD = re.compile(_LABELS + r"([A-Za-z_.$][A-Za-z0-9_.$]*)(?![A-Za-z0-9_.$]|\s*:)")
_PARAMETER = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*(:req|:vararg)?\s*(?:=\s*(.*))?$")
_COMMENT = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|(#.*|//.*)')


@dataclass(frozen=True)
class _Parameter:
    name: str
    kind: str
    default: str | None


@dataclass
class _Macro:
    name: str
    parameters: list[_Parameter]
    source: Source
    first_line: int
    body: list[str] = field(default_factory=list)


@dataclass
class _Input:
    """Lines that are being read, and how deep they are nested."""

    source: Source
    depth: int
    next: int = 0
    batch: Batch | None = None


class Preprocessor:
    """Gives the lines of a source with includes and macros expanded.

    `read_include` finds an included file (given its name and the including source) or raises OSError.
    Problems are added to `found`. Runs of plain lines that begin with one of `plain` are given as such; without
    any, all lines are given one by one.
    """

    def __init__(
        self, source: Source, read_include: Callable[[str, Source], Source], found: list[Diagnostic],
        plain: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.plain = set(plain)
        self.read_include = read_include
        self.found = found
        self.stack = [_Input(source, 0)]
        self.macros: dict[str, _Macro] = {}
        self.counter = 0
        self.is_incomplete = False  # whether an include could not be read

    def lines(self) -> Iterator[tuple[Where, str] | FlatRun]:
        """Every line to parse."""
        while self.stack:
            current = self.stack[-1]
            texts = current.source.lines
            if current.next >= len(texts):
                self.stack.pop()
                continue
            run = self._run(current)
            if run is not None:
                current.next += len(run)
                yield run
                continue
            text = texts[current.next]
            where = Where(current.source, current.source.first_line + current.next)
            current.next += 1
            word = first_word(text)
            if word in _HANDLERS:
                _HANDLERS[word](self, where, text)
            elif word in self.macros:
                label, call = split_label(text)
                if label:
                    yield where, label
                self._expand(where, self.macros[word], call, text)
            else:
                yield where, text

    def _run(self, current: _Input) -> FlatRun | None:
        """The run of plain lines that comes next, if one does."""
        if current.batch is None or current.next >= current.batch.end:
            current.batch = batch_at(current.source, current.next, self.plain)
        return current.batch.run_at(current.next) if current.batch else None

    def fail(self, message: str, where: Where, text: str, start: int = 0, end: int = 0) -> None:
        """Report a problem at columns of a line, by default at its first word."""
        if not start:
            start = len(text) - len(text.lstrip()) + 1
            end = start + len(text.split(maxsplit=1)[0])
        self.found.append(Diagnostic(message, where.columns(start, end)))

    def _push(self, where: Where, text: str, source: Source, what: str) -> None:
        depth = self.stack[-1].depth + 1 if self.stack else 1
        if depth > MAX_DEPTH:
            # Everything that is nested is given up, or each level would fail again.
            del self.stack[1:]
            self.fail(
                f"{what} is nested deeper than {MAX_DEPTH} levels: it contains itself", where, text
            )
            return
        self.stack.append(_Input(source, depth))

    # --- .include ----------------------------------------------------------------------------------------

    def include(self, where: Where, text: str) -> None:
        """`.include "FILE"`."""
        match = re.match(r'\s*\.include\s+"([^"]+)"\s*$', _without_comment(text), re.IGNORECASE)
        if match is None:
            self.fail('must be: .include "FILE"', where, text)
            self.is_incomplete = True
            return
        span = where.columns(match.start(1), match.end(1) + 2)
        try:
            read = self.read_include(match[1], where.source)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            self.found.append(Diagnostic(f"cannot read '{match[1]}': {reason}", span))
            self.is_incomplete = True
            return
        source = Source(read.name, read.text, origin=Note("included from here", span))
        self._push(where, text, source, f"'{match[1]}'")

    # --- .macro ------------------------------------------------------------------------------------------

    def macro(self, where: Where, text: str) -> None:
        """`.macro NAME PARAMETER, PARAMETER=DEFAULT, REST:vararg` up to `.endm`."""
        match = re.match(
            r"\s*\.macro\s+([A-Za-z_.$][A-Za-z0-9_.$]*)\s*,?\s*(.*)$",
            _without_comment(text),
            re.IGNORECASE,
        )
        body = self._body(where, text, ".macro", ".endm")
        if match is None:
            self.fail("must be: .macro NAME PARAMETER, PARAMETER=DEFAULT, …", where, text)
            return
        name = match[1].lower()
        parameters = []
        for part in _split_arguments(match[2]):
            found = _PARAMETER.match(part.strip())
            if found is None:
                self.fail(f"'{part.strip()}' is no parameter", where, text)
                return
            parameters.append(_Parameter(found[1], found[2] or "", found[3]))
        if any(parameter.kind == ":vararg" for parameter in parameters[:-1]):
            self.fail("only the last parameter may be :vararg", where, text)
            return
        if name in self.macros:
            self.fail(f"macro '{name}' is already defined", where, text)
            return
        self.macros[name] = _Macro(name, parameters, where.source, where.line + 1, body)
        op = canonical_op(name)
        if op in self.plain:  # lines that begin so are, or may be, calls of the macro from now on
            self.plain.remove(op)
            for current in self.stack:
                if current.batch is not None:
                    current.batch.mark(self.plain)

    def _body(self, where: Where, text: str, opener: str, closer: str) -> list[str]:
        """The lines up to the matching closer, which are taken off the input."""
        current = self.stack[-1]
        depth = 1
        body: list[str] = []
        openers = (".macro",) if opener == ".macro" else (".irp", ".rept")
        while current.next < len(current.source.lines):
            line = current.source.lines[current.next]
            current.next += 1
            word = first_word(line)
            word = CLOSING.get(word, word)
            depth += (word in openers) - (word == closer)
            if not depth:
                return body
            body.append(line)
        self.fail(f"{opener} has no {closer}", where, text)
        return body

    def _expand(self, where: Where, macro: _Macro, call: str, text: str) -> None:
        values = self._bind(where, macro, _without_comment(call), text)
        if values is None:
            return
        self.counter += 1
        lines = [_substitute(line, values, self.counter) for line in macro.body]
        start = _word_start(text) + 1
        origin = Note(
            f"in the expansion of macro '{macro.name}'",
            where.columns(start, start + len(macro.name)),
        )
        source = Source(macro.source.name, "\n".join(lines), macro.first_line, origin)
        self._push(where, text, source, f"macro '{macro.name}'")

    def _bind(self, where: Where, macro: _Macro, call: str, text: str) -> dict[str, str] | None:
        """The text of each parameter. None, and a diagnostic, where the arguments do not fit."""
        given = [part.strip() for part in _split_arguments(call)]
        positional = []
        values: dict[str, str] = {}
        names = [parameter.name for parameter in macro.parameters]
        for part in given:
            keyword = re.match(r"([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)\s*(.*)$", part)
            if keyword and keyword[1] in names:
                values[keyword[1]] = keyword[2]
            else:
                positional.append(part)
        for number, parameter in enumerate(macro.parameters):
            if parameter.kind == ":vararg":
                values.setdefault(parameter.name, ", ".join(positional[number:]))
                positional = positional[:number]
            elif number < len(positional) and positional[number]:
                if parameter.name in values:
                    self.fail(f"'{parameter.name}' is given twice", where, text)
                    return None
                values[parameter.name] = positional[number]
            elif parameter.name not in values:
                if parameter.default is None and parameter.kind == ":req":
                    self.fail(f"macro '{macro.name}' needs '{parameter.name}'", where, text)
                    return None
                values[parameter.name] = (parameter.default or "").strip()
        if len(positional) > len(names):
            self.fail(
                f"macro '{macro.name}' takes {len(names)} argument{'s' if len(names) != 1 else ''}, not {len(positional)}",
                where,
                text,
            )
            return None
        return values

    # --- .irp ---------------------------------------------------------------------------------------------

    def irp(self, where: Where, text: str) -> None:
        """`.irp NAME, VALUE, VALUE, …` up to `.endr`: the body once for each value."""
        match = re.match(
            r"\s*\.irp\s+([A-Za-z_][A-Za-z0-9_]*)\s*,?(.*)$", _without_comment(text), re.IGNORECASE
        )
        first = where.line + 1
        body = self._body(where, text, ".irp", ".endr")
        if match is None:
            self.fail("must be: .irp NAME, VALUE, …", where, text)
            return
        name, start = match[1], match.start(1) + 1
        for value in reversed(_split_arguments(match[2])):
            self.counter += 1
            filled = {name: value.strip()}
            lines = [_substitute(line, filled, self.counter) for line in body]
            origin = Note(
                f"in .irp with {name} = {value.strip()}", where.columns(start, start + len(name))
            )
            source = Source(where.source.name, "\n".join(lines), first, origin)
            self._push(where, text, source, ".irp")

    def stray_end(self, where: Where, text: str) -> None:
        """`.endm` without `.macro`."""
        self.fail(f"{first_word(text)} without .macro", where, text)


_HANDLERS: dict[str, Callable[[Preprocessor, Where, str], None]] = {
    ".include": Preprocessor.include,
    ".macro": Preprocessor.macro,
    ".endm": Preprocessor.stray_end,
    ".endmacro": Preprocessor.stray_end,
    ".irp": Preprocessor.irp,
}


def first_word(text: str) -> str:
    """The word behind a line's labels, in lower case; empty where there is none."""
    match = _WORD.match(text)
    return match[1].lower() if match else ""


def _word_start(text: str) -> int:
    """Where the word of `_first_word`, which must be there, begins."""
    match = _WORD.match(text)
    assert match is not None
    return match.start(1)


def split_label(text: str) -> tuple[str, str]:
    """The labels before a macro call, and what follows its name."""
    at = _word_start(text)
    return text[:at].rstrip(), text[at + len(first_word(text)) :]


def _without_comment(text: str) -> str:
    return split_comment(text)[0].rstrip()


def split_comment(text: str) -> tuple[str, str]:
    """What stands before a line's comment, and the comment without the space behind it."""
    for match in _COMMENT.finditer(text):
        if match[1] is not None:
            return text[: match.start(1)], match[1].rstrip()
    return text, ""


def _split_arguments(text: str) -> list[str]:
    """Split at the commas that are not in quotes, brackets or parentheses."""
    parts, depth, quote, start = [], 0, "", 0
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[index - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    rest = text[start:]
    return [*parts, rest] if parts or rest.strip() else []


def _substitute(line: str, values: dict[str, str], counter: int) -> str:
    r"""Fill in `\NAME`, `\@` (a number of each expansion) and `\()` (nothing, to end a name)."""

    def replace(match: re.Match[str]) -> str:
        if match[0] == "\\@":
            return str(counter)
        if match[0] == "\\()":
            return ""
        return values.get(match[1], match[0])

    return re.sub(r"\\(?:@|\(\)|([A-Za-z_][A-Za-z0-9_]*))", replace, line)
