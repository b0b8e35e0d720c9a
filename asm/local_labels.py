"""Labels that other objects never see: `1:` with `1b` and `1f`, and names that begin with `.L`.

Inside the assembler they go by keys: the name, `LOCAL`, and what tells it from others of its name. For a
numeric label that is how many of its number have been defined in the file; for `.Lname` the section that it
is defined in, so that each core may have its own.
"""

from __future__ import annotations

from cim.asm.expressions import LOCAL, ExpressionError
from cim.asm.syntax import Place

PREFIX = ".L"


def is_local(name: str) -> bool:
    """Whether a label of that name, or the name `1b`, is local."""
    return name.startswith(PREFIX) or name[0].isdecimal()


class NumericLabels:
    """How often each number has been defined so far; counted anew in each file."""

    def __init__(self) -> None:
        self.file = 0
        self.counts: dict[str, int] = {}

    def new_file(self) -> None:
        """Begin to count anew."""
        self.file += 1
        self.counts = {}

    def define(self, number: str) -> str:
        """The key of one more label of that number."""
        self.counts[number] = self.counts.get(number, 0) + 1
        return self._key(number, self.counts[number])

    def used(self, name: str, place: Place) -> str:
        """The key that `7b` or `7f` means here. Raises `ExpressionError` for `7b` without one before."""
        number = name[:-1]
        count = self.counts.get(number, 0)
        if name.endswith("f"):
            return self._key(number, count + 1)
        if not count:
            raise ExpressionError(
                f"there is no label '{number}:' before this line; '{number}f' is the next after it",
                place,
            )
        return self._key(number, count)

    def _key(self, number: str, count: int) -> str:
        return f"{number}{LOCAL}{self.file}.{count}"


def named_key(name: str, section: str) -> str:
    """The key of `.Lname` in a section."""
    return f"{name}{LOCAL}{section}"
