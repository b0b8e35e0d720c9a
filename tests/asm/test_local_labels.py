"""Numeric labels (`1:`, `1b`, `1f`) and `.Lname`: which label is meant, and what is kept of them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim.asm import cli_as, cli_nm
from cim.asm.assembler import assemble
from cim.asm.disassembler import disassemble
from cim.asm.elf import read_object, write_object
from cim.asm.linker import link
from cim.diagnostics import CimError, Source
from cim.isa.encoding import decode
from cim.isa.load import load_isa
from tests.asm.test_elf import content

HEAD = ".mode i8\n.region r, i8, [64]\n"


def build(text: str, files: dict[str, str] | None = None, **options):
    def read_file(path: Path) -> bytes:
        if files is None or path.name not in files:
            raise FileNotFoundError(2, "No such file or directory", str(path))
        return files[path.name].encode()

    return assemble([Source("t.s", text)], "t.o", read_file, **options)


def words(text: str, files: dict[str, str] | None = None) -> list[int]:
    """What `.word 1b` and the like stand for: the addends in region r, in the order of the program."""
    return build(HEAD + text, files).sections[0].relocations["addend"].tolist()


def first_error(text: str, by_shape: bool = True) -> str:
    with pytest.raises(CimError) as raised:
        build(text, by_shape=by_shape)
    return raised.value.diagnostics[0].render()


events = st.lists(
    st.tuples(st.sampled_from("dbf"), st.integers(0, 3), st.integers(0, 8)), max_size=25
)


@given(events)
def test_back_is_the_last_before_and_forward_the_next_after(
    todo: list[tuple[str, int, int]],
) -> None:
    at, lines, places, uses = 0, [], [], []
    for index, (what, number, gap) in enumerate(todo):
        if what == "d":
            lines.append(f"{number}: .space {gap}")
            places.append((index, number, at))
            at += gap
        else:
            uses.append((index, what, number))
            lines.append(f".word {number}{what}")
            at += 4
    expected = []
    possible = True
    for index, what, number in uses:
        before = [a for i, n, a in places if n == number and i < index]
        after = [a for i, n, a in places if n == number and i > index]
        chosen = before[-1:] if what == "b" else after[:1]
        possible = possible and bool(chosen)
        expected += chosen
    text = ".mode i8\n.region r, i8, [400]\n" + "\n".join(lines)
    if not possible:
        assert "there is no label" in first_error(text)
        return
    made = build(text)
    assert made.sections[0].relocations["addend"].tolist() == expected
    assert [symbol.name for symbol in made.symbols] == ["r"]
    again = assemble([Source("d.s", "\n".join(disassemble(made)))], "t.o")
    assert content(again) == content(made)


def test_numeric_labels_in_macros_and_includes_count_as_they_are_expanded() -> None:
    text = '.macro m\n1: .word 1b\n.endm\nm\nm\n1: m\n.include "i.inc"\n.word 1b\n'
    assert words(text, {"i.inc": "2: .word 1b, 2b\n1:\n"}) == [0, 4, 8, 8, 12, 20]


def test_a_numeric_label_before_a_macro_call_whose_name_it_holds() -> None:
    made = build(HEAD + ".macro m\n.word am\n.endm\nam: m\n")
    assert made.sections[0].size == 4


def test_an_equ_and_a_loop_may_use_them() -> None:
    text = "1: .space 3\n2:\n.equ n, 2b - 1b\n.for k, 0, 2\n.word 1b + k*n, 3f\n.endfor\n3:\n"
    made = build(HEAD + text)
    assert made.sections[0].relocations["addend"].tolist() == [0, 19, 3, 19]


def test_each_core_has_its_own_names() -> None:
    text = """.mode i8
.core a, 0
wait 0
.Lhere: load ib[0:4], .Lhere
load ib[0:4], .Lend
.Lend:
.core b, 1
.Lhere: load ib[0:4], .Lhere
load ib[0:4], .Lonly
.region r, i8, [8]
.byte 0
.Lonly:
"""
    made = build(text)
    assert not [s for s in made.symbols if s.name.startswith(".L")]
    tables = [(s.owner, s.relocations["addend"].tolist()) for s in made.sections]
    assert tables == [("a", [8, 24]), ("b", [0, 1]), ("r", [])]
    image = link([made], "out")
    a, b = image.config.cores
    assert decode(load_isa(), image.words(a)).operands["address"][1] == a.address + 8
    assert decode(load_isa(), image.words(b)).operands["address"][0] == b.address


def test_they_are_kept_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "t.s"
    source.write_text(".mode i8\n.core a, 0\n.Lx: mvm\n1: mvm\n1: mvm\nplain: mvm\n.Lend:\n")
    for flags, names in (
        ([], ["a", "plain"]),
        (["-g"], [".Lend", ".Lx", "1", "1", "a", "plain"]),
        (["-L"], [".Lend", ".Lx", "1", "1", "a", "plain"]),
        (["--keep-locals"], [".Lend", ".Lx", "1", "1", "a", "plain"]),
    ):
        path = tmp_path / "t.o"
        assert cli_as.main([str(source), "-o", str(path), *flags]) == 0
        assert cli_nm.main([str(path)]) == 0
        assert [line.split()[-1] for line in capsys.readouterr().out.splitlines()] == names
        made = read_object(path.read_bytes(), "t.o")
        again = assemble(
            [Source("d.s", "\n".join(disassemble(made)))], "t.o", keep_local=bool(flags)
        )
        assert content(again) == content(made)
        assert write_object(read_object(path.read_bytes(), "t.o")) == path.read_bytes()


MISTAKES = {
    ".word 1b": "t.s:3:7: error: there is no label '1:' before this line; '1f' is the next after it",
    ".word 1f": "t.s:3:7: error: there is no label '1:' after this line",
    "1: .word 2f - 1b": "t.s:3:13: error: there is no label '2:' after this line",
    "007: .byte 1": "t.s:3:1: error: '007' must not start with 0; octal is 0o7",
    "0x1: .byte 1": "t.s:3:1: error: a numeric label must be a decimal number, not '0x1'",
    "1_0: .byte 1": "t.s:3:1: error: a numeric label must be a decimal number, not '1_0'",
    "1.5: .byte 1": "t.s:3:1: error: a numeric label must be a decimal number, not '1.5'",
    "1: 08: .byte 08": "t.s:3:4: error: '08' must not start with 0; octal is 0o8",
    ".word 01b": "t.s:3:7: error: '01b' is not a number",
    ".equ 1b, 3": "t.s:3:1: error: must be: .equ NAME, EXPRESSION",
    ".word n\n1: .byte 1\n2:\n.equ n, 2b - 1b": "t.s:3:7: error: '2b' depends on the line, and must not be in an .equ that stands after its use (in .equ 'n')",
    ".for k, 0, 2\n1: .byte 1\n.endfor": "t.s:4:1: error: a label must not be in a loop",
    ".word .Lx": "t.s:3:7: error: the local label '.Lx' is not defined",
    ".Lxy: .word .Lxx": "t.s:3:13: error: the local label '.Lxx' is not defined; did you mean '.Lxy'?",
    ".Lx: .byte 1\n.Lx:": "t.s:4:1: error: '.Lx' is already defined",
    ".globl .Lx\n.Lx:": "t.s:3:8: error: '.Lx' is local, as names that begin with .L are",
    ".region .Lr, i8, [1]": "t.s:3:9: error: '.Lr' begins with .L, as only local labels do",
    ".core a, 0\nmvm\nload  ib[0:4], .Lx": "t.s:5:16: error: the local label '.Lx' is not defined",
    ".core a, 0\n.Lx: call .Lx": "t.s:4:11: error: '.Lx' is a label, call needs a core",
    ".Lx:\n.region q, i8, [1]\n.Lx:\n.core a, 0\nload ib[0:1], .Lx": (
        "t.s:7:15: error: '.Lx' is not defined here, but in .region.r and .region.q: which is meant?"
    ),
    ".core a, 0\n.crossbar rows=1, columns=1\n.Lx: .half 1\n.text\nload ib[0:1], .Lx": (
        "t.s:7:15: error: '.Lx' is in a crossbar, which has no address"
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_shown_where_they_stand(text: str) -> None:
    found = first_error(HEAD + text)
    assert found.startswith(MISTAKES[text])
    assert found == first_error(HEAD + text, by_shape=False)
