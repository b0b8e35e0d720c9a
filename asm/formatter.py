"""The one layout of assembly text: `cim-as --format`.

Line by line: code is laid out anew from the grammar's tokens, comments are kept as they are. What is text to
the assembler stays text: arguments of macros, and lines whose tokens are only known once a macro is expanded.
"""

from __future__ import annotations

from dataclasses import dataclass

from cim.asm.blocks import BLOCK_DIRECTIVES
from cim.asm.data import DIRECTIVES as DATA
from cim.asm.directives import HANDLERS
from cim.asm.messages import DIRECTIVES as MESSAGES
from cim.asm.padding import HANDLERS as PADDING
from cim.asm.preprocess import first_word, split_comment, split_label
from cim.asm.shapes import SPACE, parse_line
from cim.asm.syntax import ALIASES, LineError, canonical_op
from cim.asm.text_layout import INDENT, with_comment
from cim.asm.token_layout import laid_out
from cim.diagnostics import CimError, Diagnostic, Source, Span
from cim.isa.load import load_isa

CLOSERS = {".endfor": (".for",), ".endr": (".rept", ".irp"), ".endif": (".if", ".ifdef", ".ifndef"),
           ".endm": (".macro",), ".endmacro": (".macro",)}  # fmt: skip
OPENERS = frozenset(opener for openers in CLOSERS.values() for opener in openers)
LOOP_ENDS = {".endfor", ".endr"}
MIDDLES = (".elif", ".else")
TEXTUAL = (
    ".macro",
    ".endm",
    ".endmacro",
    ".irp",
    ".include",
)  # read by the preprocessor, which has no tokens


def _end_of(opener: str) -> str:
    """The directive that ends a block."""
    return next(end for end, openers in CLOSERS.items() if opener in openers)


@dataclass(frozen=True)
class _Line:
    """One line without what is around it; a comment of its own goes with the code that follows, at `before`."""

    code: str
    comment: str
    level: int = 0
    before: int = 0


def format_text(source: Source) -> str:
    """The text in its layout. Raises `CimError` with all lines that cannot be parsed."""
    formatter = _Formatter(source)
    lines = [formatter.line(number, text) for number, text in enumerate(source.lines, 1)]
    formatter.check_blocks()
    if formatter.found:
        raise CimError(formatter.found)
    return "".join(f"{line}\n" for line in _joined(lines))


def _joined(lines: list[_Line]) -> list[str]:
    """The lines with their indentation, bottom-up: a comment of its own stands where the next line does."""
    made: list[str] = []
    level = 0
    for line in reversed(lines):
        if not line.code and not line.comment:
            if made and made[-1]:
                made.append("")
            continue
        if line.code:
            level = line.before
        if not line.code:
            made.append(INDENT * level + line.comment)
        elif line.comment:
            made.append(with_comment(INDENT * line.level + line.code, line.comment))
        else:
            made.append(INDENT * line.level + line.code)
    while made and not made[-1]:
        made.pop()
    return made[::-1]


class _Formatter:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.found: list[Diagnostic] = []
        self.open: list[tuple[str, Span]] = []
        self.macros = {
            text.split()[1].lower().rstrip(",")
            for text in source.lines
            if first_word(text) == ".macro" and len(text.split()) > 1
        }
        # Blocks may be opened and closed by what macros expand to and what is included.
        self.may_be_split = any(first_word(text) in (".macro", ".include") for text in source.lines)
        self.instructions = load_isa().by_mnemonic
        self.known = {*self.instructions, *DATA, *HANDLERS, *MESSAGES, *BLOCK_DIRECTIVES, *ALIASES}

    def line(self, number: int, text: str) -> _Line:
        """One line in its layout."""
        code, comment = split_comment(text)
        word = first_word(code)
        if not code.strip(SPACE):
            return _Line("", comment)
        before = len(self.open)
        if word in CLOSERS:
            self._close(word, number, text)
        level = len(self.open) - (word in MIDDLES and bool(self.open))
        if word in OPENERS:
            self.open.append((word, self._span(number, text)))
        if self._is_content(word) and not split_label(code)[0].strip(SPACE):
            level = before = max(level, 1)
        return _Line(self._code(number, text, code, word), comment, level, before)

    def check_blocks(self) -> None:
        """Report blocks without an end."""
        for word, span in self.open:
            if not self.may_be_split:
                self.found.append(Diagnostic(f"{word} has no {_end_of(word)}", span))

    def _is_content(self, word: str) -> bool:
        """Whether the statement makes bytes, as instructions, data and calls of macros do."""
        op = canonical_op(word)
        return bool(word) and (
            op in self.instructions or op in DATA or op in PADDING or self._is_call(word)
        )

    def _is_call(self, word: str) -> bool:
        return word in self.macros or word not in self.known

    def _close(self, word: str, number: int, text: str) -> None:
        if self.open and self.open[-1][0] in CLOSERS[word]:
            self.open.pop()
        elif word in (".endm", ".endmacro") and any(opener == ".macro" for opener, _ in self.open):
            while self.open.pop()[0] != ".macro":  # blocks that the macro only begins
                pass
        elif self.open and not self.may_be_split and {word, _end_of(self.open[-1][0])} <= LOOP_ENDS:
            opener, _ = self.open.pop()
            message = f"{opener} must end with {_end_of(opener)}, not {word}"
            self.found.append(Diagnostic(message, self._span(number, text)))
        elif not self.may_be_split:
            openers = " or ".join(CLOSERS[word])
            self.found.append(Diagnostic(f"{word} without {openers}", self._span(number, text)))

    def _span(self, number: int, text: str) -> Span:
        start = len(text) - len(text.lstrip(SPACE)) + 1
        return Span(self.source, number, start, start + len(text.split(maxsplit=1)[0]))

    def _code(self, number: int, text: str, code: str, word: str) -> str:
        in_template = any(opener in (".macro", ".irp") for opener, _ in self.open)
        if in_template and "\\" in code and word not in TEXTUAL:
            return code.strip(SPACE)
        if word in TEXTUAL or (word and self._is_call(word)):
            label, rest = split_label(code)
            name = word if word in TEXTUAL else code[len(label) : len(code) - len(rest)]
            parts = (part.strip(SPACE) for part in (label, name, rest))
            return " ".join(part for part in parts if part)
        try:
            parse_line(text)
        except LineError as problem:
            if in_template:  # it may be meant for another macro, and is said where it is expanded
                return code.strip(SPACE)
            span = Span(self.source, number, problem.place.start, problem.place.end)
            self.found.append(Diagnostic(problem.message, span))
            return code.strip(SPACE)
        return laid_out(code)
