"""A line's code laid out anew from its tokens: spaces, and lower case where case means nothing."""

from __future__ import annotations

from lark import Token

from cim.asm.syntax import tokens_of
from cim.isa.load import load_isa

_TIGHT = frozenset({"PRODUCT"})  # `a + 2*b`
_LOOSE = frozenset(
    {"OR", "AND", "BIT_OR", "BIT_XOR", "BIT_AND", "EQUALITY", "RELATION", "SHIFT", "SIGN"}
)
_OPENING = frozenset({"LPAR", "LSQB"})
_BEFORE_UNARY = _TIGHT | _LOOSE | _OPENING | {"COMMA", "COLON", "EQUAL", "NOT"}


def laid_out(code: str) -> str:
    """Code without a comment, which must be a line that can be parsed."""
    tokens = tokens_of(code)
    at = _statement(tokens)
    words = _lowered(tokens, at)
    text = "".join(_labels(words[:at])) + "".join(_spaced(tokens[at:], words[at:]))
    again = tokens_of(text)
    assert [token.type for token in again] == [token.type for token in tokens]
    return text.strip()


def _statement(tokens: list[Token]) -> int:
    """The position of the statement's first word, behind the labels."""
    at = 0
    while at + 1 < len(tokens) and tokens[at + 1].type == "COLON":
        at += 2
    return at


def _labels(words: list[str]) -> list[str]:
    return [f"{name}: " for name in words[::2]]


def _lowered(tokens: list[Token], at: int) -> list[str]:
    """The tokens' texts, with mnemonics, directives, and the buffers and keywords of instructions in lower case."""
    words = [str(token) for token in tokens]
    if at == len(tokens):
        return words
    words[at] = words[at].lower()
    isa = load_isa()
    if words[at] not in isa.by_mnemonic:
        return words
    ends = [*(token.type for token in tokens[at + 1 :]), "COMMA"]
    for index in range(at + 1, len(tokens)):
        before, after = tokens[index - 1].type, ends[index - at]
        # A whole operand, or what a slice is taken of: a name in an expression may be a symbol of any case.
        begins = index == at + 1 or before == "COMMA"
        is_buffer = words[index].lower() in isa.buffers and after in ("COMMA", "LSQB")
        if tokens[index].type == "NAME" and begins and (is_buffer or after == "EQUAL"):
            words[index] = words[index].lower()
    return words


def _spaced(tokens: list[Token], words: list[str]) -> list[str]:
    """The statement's texts with the spaces between them."""
    made: list[str] = []
    before = ""
    for index, (token, word) in enumerate(zip(tokens, words, strict=True)):
        kind = token.type
        is_unary = kind in ("SIGN", "NOT") and (index == 1 or before in _BEFORE_UNARY)
        if index == 1:
            made.append(" ")
        if kind == "COMMA":
            made.append(", ")
        elif kind == "EQUAL" and words[0] == ".let":
            made.append(" = ")
        elif kind in _LOOSE and not is_unary:
            made.append(f" {word} ")
        else:
            made.append(word)
        # A unary operator is followed by its operand, never by another one's.
        before = "NOT" if is_unary else kind
    return made
