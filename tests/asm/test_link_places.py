"""The linker's errors: file, line and column, and the source line with its caret where it can be found."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim.asm import cli_ar, cli_as, cli_ld
from cim.asm.assembler import assemble
from cim.asm.elf import read_object, write_object
from cim.asm.linker import link
from cim.diagnostics import CimError, Source


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Assembles each text to its object, links them all, returns what is said."""
    monkeypatch.chdir(tmp_path)

    def run(texts: dict[str, str], *options: str, gone: bool = False) -> str:
        for name, text in texts.items():
            Path(name).write_text(text)
        sources = [name for name in texts if name.endswith(".s")]
        for name in sources:
            assert cli_as.main([name, "-o", Path(name).with_suffix(".o").name]) == 0
        for name in texts if gone else ():
            Path(name).unlink()
        objects = [Path(name).with_suffix(".o").name for name in sources]
        assert cli_ld.main([*objects, "-o", "out", *options]) == 1
        assert not Path("out.bin").exists()
        return capsys.readouterr().err

    return run


MAIN = """.mode i8
.macro get what
  load ib[0:4], \\what + 4
.endm
.core a, 0
\tload ib[0:4], 4 + gone    # with a tab
load ib[0:123], gone
get gone
.for k, 0, 3
load ib[0:4], gone + k
.endfor
.region r, i8, [64]
.word 1, gone
.include "x.inc"
"""
UNDEFINED = """main.s:6:20: error: undefined symbol 'gone'; did you mean 'goner'?
  \tload ib[0:4], 4 + gone    # with a tab
  \t                  ^^^^
main.s:7:17: note: also used here
  load ib[0:123], gone
                  ^^^^
main.s:3:3: note: also used here
    load ib[0:4], \\what + 4
    ^^^^^^^^^^^^^^^^^^^^^^^
main.s:10:15: note: also used here
  load ib[0:4], gone + k
                ^^^^
other.s:3:6: note: also used here
  call gone
       ^^^^
note: also used at main.s:13:10
note: also used at x.inc:1:7
"""


def test_every_use_of_an_undefined_symbol(run) -> None:
    other = ".mode i8\n.core b, 1\ncall gone\n.region goner, i8, [1]\n"
    texts = {"main.s": MAIN, "x.inc": ".word gone\n", "other.s": other}
    assert run(texts) == UNDEFINED
    lines = run(texts, gone=True).splitlines()
    assert lines[0] == "main.s:6:20: error: undefined symbol 'gone'; did you mean 'goner'?"
    assert lines[2] == "note: also used at main.s:3:17"


def test_the_source_is_found_beside_the_object(run, tmp_path: Path, monkeypatch, capsys) -> None:
    run({"a.s": ".mode i8\n.core a, 0\ncall b\n"})
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert cli_ld.main(["../a.o", "-o", "out"]) == 1
    assert capsys.readouterr().err == "a.s:3:6: error: undefined symbol 'b'\n  call b\n       ^\n"
    assert cli_ar.main(["rcs", "../l.a", "../a.o"]) == 0
    monkeypatch.chdir(tmp_path)
    Path("c.s").write_text(".mode i8\n.core c, 1\ncall a\n")
    assert cli_as.main(["c.s", "-o", "c.o"]) == 0
    assert cli_ld.main(["c.o", "l.a", "-o", "out"]) == 1
    assert capsys.readouterr().err == "a.s:3:6: error: undefined symbol 'b'\n  call b\n       ^\n"


def test_duplicates_are_shown_at_both_places(run) -> None:
    found = run(
        {"a.s": ".mode i8\n.core a, 0\nl: mvm\n.globl l\n", "b.s": "\n.region  l, i8, [1]\n"}
    )
    assert found == (
        "b.s:2:10: error: duplicate symbol 'l'\n  .region  l, i8, [1]\n           ^\n"
        "a.s:3:1: note: first defined here\n  l: mvm\n  ^\n"
    )
    found = run({"a.s": ".mode i8\n.core a, 3\n", "b.s": ".mode i8\n.core b, 3\n"})
    assert found == (
        "b.s:2:7: error: core number 3 is 'b' here and 'a' in a.o\n  .core b, 3\n        ^\n"
        "a.s:2:7: note: first defined here\n  .core a, 3\n        ^\n"
    )


def test_an_object_given_twice_is_told_as_that(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.s").write_text(".mode i8\n.core a, 0\nmvm\n")
    assert cli_as.main(["a.s", "-o", "a.o"]) == 0
    assert cli_ld.main(["a.o", "./a.o", "-o", "out"]) == 1
    assert capsys.readouterr().err == (
        "./a.o: error: is the same file as a.o: an object must be given once\n"
    )


DATA = ".mode i8\n.region r, i8, [16]\n"
RANGES = {
    ".core a, 0\nload ib[0:1], r - 1": (
        "m.s:4:15: error: 'r' -1: address is -1, must be 0 to 4294967295\n  load ib[0:1], r - 1\n                ^\n"
    ),
    ".core a, 0\ncall a + 65536": "m.s:4:6: error: 'a' +65536: core is 65536, must be 0 to 65535\n",
    ".core a, 0\n.region q, i8, [8]\n.word q, q - 3": "m.s:5:10: error: 'q' -3 is -3, must be 0 to 4294967295 in 4 bytes",
    ".core a, 0\n.region q, i8, [8]\n.quad q - 3": "m.s:5:7: error: 'q' -3 is -3, must be 0 to 9223372036854775807",
    ".core a, 0\ncall r": "m.s:4:6: error: 'r' is a region, not a core\n  call r\n       ^\n",
    ".core a, 0\nmvm\n  wait 1 + 1 # late": (
        "m.s:5:3: error: wait 2 of core 'a' can never end: all programs together have 0 calls of it\n"
        "    wait 1 + 1 # late\n    ^^^^^^^^^^\n"
    ),
}


@pytest.mark.parametrize("text", RANGES)
def test_what_does_not_fit(run, text: str) -> None:
    assert run({"m.s": DATA + text + "\n"}).startswith(RANGES[text])


@given(
    st.lists(
        st.tuples(st.integers(1, 9999), st.booleans(), st.integers(0, 3)), min_size=1, max_size=12
    )
)
def test_the_column_is_that_of_the_symbol_on_every_line(lines: list[tuple[int, bool, int]]) -> None:
    """Also for lines that are assembled together since they have one shape."""
    text = [".mode i8", ".core a, 0"]
    expected = []
    for number, (value, ahead, gap) in enumerate(lines, 3):
        head = f"load ib[0:{value % 9 + 1}]," + " " * gap + (f"{value} + " if ahead else "")
        text.append(f"{head}gone" + ("" if ahead else f" + {value}"))
        expected.append(f"t.s:{number}:{len(head) + 1}")
    made = assemble([Source("t.s", "\n".join(text))], "t.o")
    again = read_object(write_object(made), "t.o")
    for obj in (made, again):
        with pytest.raises(CimError) as raised:
            link([obj], "out")
        (found,) = raised.value.diagnostics
        assert [
            found.where,
            *(note.message.removeprefix("also used at ") for note in found.notes),
        ] == expected
