"""`cim-ld`: --defsym, --cref, --gc-sections."""

from pathlib import Path

import pytest

from cim.asm import cli_as, cli_ld
from cim.asm.read_image import read_image
from cim.isa.encoding import decode
from cim.isa.load import load_isa

MAIN = """.mode i8
.region x, i8, [8], role=ifm
.region far, i8, [8]
.word table
.core a, 0
load ib[0:4], used
load ib[0:4], used + 4
load ib[0:4], place + 16
call b
"""
DATA = """.mode i8
.region used, i8, [8]
.word chain
.region chain, i8, [8]
.word used
.region table, i8, [8]
.core b, 1
wait 1
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("main", MAIN), ("data", DATA)):
        (tmp_path / f"{name}.s").write_text(text)
        assert cli_as.main([f"{name}.s", "-o", f"{name}.o"]) == 0
    return tmp_path


def link(*options: str) -> int:
    return cli_ld.main(["main.o", "data.o", "-o", "out", *options])


def test_defsym(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert link() == 1
    assert "undefined symbol 'place'" in capsys.readouterr().err
    assert link("--defsym", "place=0x100") == 0
    image = read_image("out.cfg")
    operands = decode(load_isa(), image.words(image.config.cores[0])).operands
    assert operands["address"][2] == 0x110
    assert link("--defsym", "place=0xFFFF_FFF0") == 1
    assert "main.s:8:15: error: 'place' +16: " in capsys.readouterr().err
    assert link("--defsym", "place=0", "--defsym", "used=4") == 1
    assert (
        "data.s:2:9: error: duplicate symbol 'used'\n  .region used, i8, [8]\n          ^^^^\n"
        "note: first defined at --defsym used=4" in capsys.readouterr().err
    )
    for bad, found in {
        "place": "--defsym:1:1: error: must be NAME=EXPRESSION\n  place\n  ^^^^^\n",
        "place=": "--defsym:1:7: error: the line ends too early",
        "place=usd + 4": "--defsym:1:7: error: undefined symbol 'usd'; did you mean 'used'?\n  place=usd + 4\n",
        "place=4 - used": "--defsym:1:9: error: cannot subtract the address 'used' here",
        "place=place": "--defsym:1:7: error: 'place' is defined by itself",
        "=3": "--defsym:1:1: error: unexpected '='",
        "place=-1": "--defsym:1:7: error: the value is -1, must be 0 to 2**63 - 1",
    }.items():
        # Only the symbols of the objects say whether one is undefined, or defined in a circle.
        assert link("--defsym", bad) == (1 if bad in ("place=usd + 4", "place=place") else 2)
        assert capsys.readouterr().err.startswith(found)


def test_defsym_of_other_symbols(folder: Path) -> None:
    assert (
        link("--defsym", "place=middle + 4*2", "--defsym", "n=8", "--defsym", "middle=used + n - 1")
        == 0
    )
    image = read_image("out.cfg")
    operands = decode(load_isa(), image.words(image.config.cores[0])).operands
    assert operands["address"][2] == image.config.region("used").address + 8 + 8 - 1 + 16
    assert link("--defsym", "place=b") == 0
    image = read_image("out.cfg")
    operands = decode(load_isa(), image.words(image.config.cores[0])).operands
    assert operands["address"][2] == image.config.cores[1].address + 16


def test_a_core_number_may_be_given(folder: Path) -> None:
    (folder / "c.s").write_text(".mode i8\n.core c, 0\ncall D\n.core d, 3\nwait 1\n")
    assert cli_as.main(["c.s", "-o", "c.o"]) == 0
    assert cli_ld.main(["c.o", "-o", "c", "--defsym", "D=3"]) == 0
    image = read_image("c.cfg")
    assert decode(load_isa(), image.words(image.config.cores[0])).operands["core"][0] == 3
    assert cli_ld.main(["c.o", "-o", "c", "--defsym", "D=d"]) == 0
    image = read_image("c.cfg")
    assert decode(load_isa(), image.words(image.config.cores[0])).operands["core"][0] == 3
    assert cli_ld.main(["c.o", "-o", "c", "--defsym", "D=d+8"]) == 1


CREF = """\
cross reference
symbol  defined in         used in
a       main.s:5           -
b       data.s:7           main.s:9
chain   data.s:4           data.o .region.used
far     main.s:3           -
place   --defsym place=16  main.s:8
table   data.s:6           main.o .region.far
used    data.s:2           data.o .region.chain
                           main.s:6 (2 uses)
x       main.s:2           -
"""


def test_cref(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert link("--defsym", "place=16", "--cref") == 0
    assert capsys.readouterr().out == CREF
    assert link("--defsym", "place=16", "--cref", "-Map=out.map") == 0
    assert capsys.readouterr().out == ""
    assert (folder / "out.map").read_text().endswith("\n\n" + CREF)


def test_gc_sections(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert link("--defsym", "place=0", "--gc-sections") == 0
    assert capsys.readouterr().err == ""
    assert [r.name for r in read_image("out.cfg").config.regions] == ["chain", "used", "x"]
    (folder / "l.toml").write_text("[regions]\nfar = 0\nx = 64\n")
    assert link("--defsym", "place=0", "--gc-sections", "--print-gc-sections", "-T", "l.toml") == 0
    assert capsys.readouterr().err == (
        "cim-ld: note: dropping unused region 'far' of main.o\n"
        "cim-ld: note: dropping unused region 'table' of data.o\n"
    )
    assert read_image("out.cfg").config.region("x").address == 64
