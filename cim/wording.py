"""What a validator says, in the words of these tools."""

from __future__ import annotations

import re

_TYPES = {
    "int": "an integer", "str": "a text", "float": "a number", "bool": "true or false", "array": "a list",
    "object": "a table", "null": "nothing",
}  # fmt: skip


def plain_rule(message: str) -> str:
    """A message of msgspec as what must hold, with the place first: `cores[0].number: must be an integer`."""
    text, _, place = message.partition(" - at `$")
    where = place.removesuffix("`").removeprefix(".")
    text = re.sub(r"^Object missing required field `(.*)`$", r"'\1' is missing", text)
    text = re.sub(r"^Object contains unknown field `(.*)`$", r"unknown key '\1'", text)
    text = re.sub(r"^Invalid enum value (.*)$", r"must not be \1", text)
    text = re.sub(r"^Expected ", "must be ", text).replace(", got ", ", not ")
    text = re.sub(r"`([a-z]+(?: \| [a-z]+)*)`", _types, text)
    return f"{where}: {text}" if where else text


def _types(match: re.Match[str]) -> str:
    return " or ".join(_TYPES.get(name, name) for name in match[1].split(" | "))
