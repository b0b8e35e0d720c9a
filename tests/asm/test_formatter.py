"""The formatter's laws, and that what the tools write is already in the layout."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.asm import cli_as, cli_objdump
from cim.asm.assembler import assemble
from cim.asm.formatter import format_text
from cim.asm.preprocess import split_comment
from cim.diagnostics import CimError, Source
from tests.asm.test_elf import objects
from tests.asm.test_shapes import lines

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = ".mode i8\n.core a, 0\n.crossbar rows=4, columns=4\n.fill 16, 2, 1\n.text\n"


def formatted(text: str) -> str:
    return format_text(Source("t.s", text))


def comments(text: str) -> list[str]:
    found = [split_comment(line)[1] for line in Source("t.s", text).lines]
    return [comment for comment in found if comment]


def content(text: str):
    """All of an object but the places of its lines; None for a text with errors."""
    try:
        obj = assemble([Source("t.s", text)], "t.o")
    except CimError:
        return None
    sections = [
        (s.kind, s.owner, s.align, s.size, s.data.tobytes(), s.relocations.tobytes())
        for s in obj.sections
    ]
    attributes = msgspec.structs.replace(obj.attributes, locations=[], definitions={}, uses={})
    return sections, obj.symbols, attributes


remarks = st.sampled_from(["", "# it's \"", " // 1, 2 \\n", "\t# x  "])
blocks = st.sampled_from(
    [".for k,0 , 3", ".endfor", ".rept  2", ".endr", ".IF 1<2", ".elif 0", ".ELSE", ".endif", ".irp v,1, 2",
     ".macro m a , b=2", ".endm", "m 1 , (2 , 3)", "  m  b=4", " wait \\a+ 1", "wait \\v", "l\\@: mvm", ".ifdef  x",
     "wait\tk*4 +1", "LOAD IB[ k : 4],4* k", "gpeu.ADD OB ,ob, Pb,LEN = 3", "1: wait 1", ".let q=1 - -1", "",
     '.ascii "# \\" //"', "mvm", ".quad 2-1,- 1,!(1|2)", "x:", ".set ib_1,3", "\ufeffmvm", "\u00a0", ".WORD\f1"]
)  # fmt: skip


@settings(max_examples=400)
@given(
    st.lists(st.tuples(st.one_of(blocks, lines()), remarks)),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
)
def test_the_laws(parts, head: bool, end: str) -> None:
    text = (HEAD if head else "") + end.join(
        line if remark and split_comment(line)[1] else line + remark for line, remark in parts
    )
    try:
        made = formatted(text)
    except CimError:
        assert content(text) is None
        return
    assert formatted(made) == made
    assert comments(made) == comments(text)
    assert content(made) == content(text)


spaces = st.sampled_from([" ", "  ", "\t"])


@settings(max_examples=60)
@given(objects(), st.data())
def test_programs_keep_their_meaning(text: str, data: st.DataObject) -> None:
    wild = "\n".join(
        data.draw(spaces) + line.replace(", ", data.draw(spaces) + "," + data.draw(spaces))
        if '"' not in line
        else line
        for line in text.split("\n")
    )
    made = formatted(wild)
    assert content(wild) is not None
    assert content(made) == content(wild)
    assert formatted(made) == made


def test_the_layout() -> None:
    text = """

    .core a,0   # first



    # about the loop
    .For k,0 , 4 // four
    L1:  LOAD IB[ k*4 : k * 4+4 ],x+4 * -k
    .if  k%2==0&&!(k<<2>3)
    gpeu.ADD   OB,ob,Pb , LEN = 4
    hand  C1 ,  from=3
    # about the else
    .else
    .let  y=3
    .endif
    .endfor
    1: 2:mvm   # a comment that stays where it is
    .macro  hand a , b=2
    wait   \\a   +  1
    .endm
    .region x,i8,[ 1 ,2],role = ifm
    .word 1,- 2,'a'
    .align 8

    """
    assert (
        formatted(text)
        == """\
.core a, 0                                 # first

# about the loop
.for k, 0, 4                               // four
  L1: load ib[k*4:k*4 + 4], x + 4*-k
  .if k%2 == 0 && !(k << 2 > 3)
    gpeu.add ob, ob, pb, len=4
    hand C1 ,  from=3
    # about the else
  .else
    .let y = 3
  .endif
.endfor
1: 2: mvm                                  # a comment that stays where it is
.macro hand a , b=2
  wait   \\a   +  1
.endm
.region x, i8, [1, 2], role=ifm
  .word 1, -2, 'a'
  .align 8
"""
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [(".for k, 0, 2\n", "t.s:1:1: error: .for has no .endfor"), ("mvm\n .endif", "t.s:2:2: error: .endif without .if"),
     ("wait (1\nwait 2]", "t.s:2:7: error: unexpected ']'"), ("wait 007", "t.s:1:6: error: '007' must not start")],
)  # fmt: skip
def test_mistakes_are_said(text: str, message: str) -> None:
    with pytest.raises(CimError, match="error") as raised:
        formatted(text)
    assert message in str(raised.value)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.s").write_text("mvm # x\n")
    assert cli_as.main(["--format", "-i", "good.s"]) == 0
    (tmp_path / "ugly.s").write_bytes(b"\xef\xbb\xbf MVM\r\n")
    (tmp_path / "bad.s").write_text("wait (\n")
    return tmp_path


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_as.main(["--format", "good.s", "ugly.s"]) == 0
    assert capsys.readouterr().out == f"{'  mvm':<42} # x\n  mvm\n"
    assert cli_as.main(["--format", "--check", "good.s"]) == 0
    assert cli_as.main(["--format", "--check", "good.s", "ugly.s"]) == 1
    assert capsys.readouterr().err == "ugly.s: would be laid out anew\n"
    assert cli_as.main(["--format", "-i", "ugly.s", "bad.s", "missing.s"]) == 1
    said = capsys.readouterr().err
    assert "bad.s:1:7: error" in said
    assert "missing.s: error: cannot read" in said
    assert (folder / "ugly.s").read_bytes() == b"\xef\xbb\xbf MVM\r\n"
    assert cli_as.main(["-i", "ugly.s", "--format"]) == 0
    assert (folder / "ugly.s").read_bytes() == b"  mvm\n"
    with pytest.raises(SystemExit, match="2"):
        cli_as.main(["--format", "-i", "-"])


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.s")), ids=lambda path: path.name)
def test_the_examples_are_in_the_layout(path: Path) -> None:
    assert formatted(path.read_text()) == path.read_text()


@settings(max_examples=40)
@given(text=objects(), flags=st.sampled_from([(), ("-l",), ("-S",), ("--loops",)]))
def test_disassemblies_are_in_the_layout(tmp_path_factory, text: str, flags) -> None:
    from contextlib import redirect_stdout
    from io import StringIO

    folder = tmp_path_factory.mktemp("o")
    (folder / "t.s").write_text(text)
    assert cli_as.main([str(folder / "t.s"), "-o", str(folder / "t.o")]) == 0
    out = StringIO()
    with redirect_stdout(out):
        assert (
            cli_objdump.main(
                [str(folder / "t.o"), "-d", *flags]
                if flags != ("--loops",)
                else [str(folder / "t.o"), "--loops"]
            )
            == 0
        )
    assert formatted(out.getvalue()) == out.getvalue()
