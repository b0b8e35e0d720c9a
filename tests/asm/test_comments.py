"""Comments and the ends of lines: whatever a comment holds, the line after it is a line of its own."""

import pytest

from cim.asm.assembler import assemble
from cim.asm.elf import write_object
from cim.diagnostics import CimError, Source

HEAD = ".mode i8\n.core a, 0\n.crossbar rows=4, columns=4\n.fill 16, 2, 1\n.text\n"
MANY = 20  # lines, so that they also go as a run
SPECIAL = [*map(chr, range(1, 256)), "\u2028", "\u2029", "\ufeff", "\U0001d11e", "'\"", "\"'", '\\"', "/*", "*/", "//", "##",
           "\\n", "\\", '"""', "'a", ".endm", ".macro m"]  # fmt: skip


def content(text: str) -> bytes:
    """The object, without what names its lines."""
    sections = assemble([Source("t.s", text)], "t.o").sections
    return b"|".join(section.data.tobytes() for section in sections)


@pytest.mark.parametrize("mark", ["#", "//"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_character_in_a_comment(mark: str, end: str) -> None:
    inside = [char for char in SPECIAL if char not in "\r\n"]
    body = [f"wait {number} {mark} {char}" for number, char in enumerate(inside)]
    alone = [f"{mark}{char}" for char in inside]
    plain = [f"wait {number}" for number in range(len(inside))]
    expected = content(HEAD + "\n".join(plain))
    for final in ("", end):
        assert content(HEAD.replace("\n", end) + end.join(body) + final) == expected
        mixed = [line for pair in zip(alone, body, strict=True) for line in pair]
        assert content(HEAD.replace("\n", end) + end.join(mixed) + final) == expected


@pytest.mark.parametrize("count", [1, MANY])
def test_a_mistake_behind_any_comment_is_in_its_own_line(count: int) -> None:
    for char in SPECIAL:
        if char in "\r\n":
            continue
        text = HEAD + f"wait 1 # {char}\r\n" * count + "wait -1"
        with pytest.raises(CimError) as raised:
            assemble([Source("t.s", text)], "t.o")
        (found,) = raised.value.diagnostics
        assert str(found.span) == f"t.s:{6 + count}:6"


def test_an_object_is_the_same_with_either_end_of_lines() -> None:
    text = HEAD + "wait 1 # it's\n" * MANY
    one, two = (
        write_object(assemble([Source("t.s", t)], "t.o"))
        for t in (text, text.replace("\n", "\r\n"))
    )
    assert one == two
