"""The command lines of assembler, linker and disassembler."""

from pathlib import Path

import pytest

from cim.asm import cli_as, cli_ld, cli_objdump

EXAMPLE = Path(__file__).parents[2] / "examples/handwritten/handover.s"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h.s").write_text(EXAMPLE.read_text())
    assert cli_as.main(["h.s", "-o", "h.o"]) == 0
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_assemble_link_and_look(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_ld.main(["h.o", "-o", "h", "-Map", "h.map", "--print-memory-usage"]) == 0
    assert names(folder) == ["h.bin", "h.cfg", "h.map", "h.o", "h.s"]
    usage = capsys.readouterr().out
    assert "cores" in usage
    assert "32 (100.0%)" in usage
    assert "program of core 1 'tail'" in (folder / "h.map").read_text()
    for file in ("h.o", "h.cfg"):
        assert cli_objdump.main([file, "-d", "-h", "-t", "-r", "-s"]) == 0
        assert "gpeu.relu rb, ob, len=4" in capsys.readouterr().out
    assert cli_objdump.main(["-S", "h.o"]) == 0
    assert "  # h.s:21: call tail" in capsys.readouterr().out


def test_the_listing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_as.main(["h.s", "-o", "h.o", "-a"]) == 0
    listing = capsys.readouterr().out.split("\n")
    assert listing[19].split() == ["19", "8", "0000000000000003", "1", "mvm"]
    assert cli_as.main(["h.s", "-o", "h.o", "-a=h.lst"]) == 0
    assert (folder / "h.lst").read_text().split("\n")[:-1] == listing[:-1]


def test_the_listing_of_lines_that_say_where_they_come_from(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "l.s").write_text(
        '.file "made.c"\n.mode i8\n.core a, 0\nwait 0\n.line 1_0\nwait 1\n.line 3, "x.c"\n\nwait 2\n'
    )
    assert cli_as.main(["l.s", "-o", "l.o", "-a"]) == 0
    lines = capsys.readouterr().out.splitlines()
    words = {line.split()[0]: line.split()[2] for line in lines if "wait" in line}
    assert words == {n: f"0000000{k}00000006" for k, n in enumerate("469")}


def test_a_failing_run_leaves_old_output_alone_and_makes_no_new(folder: Path) -> None:
    before = (folder / "h.o").read_bytes()
    (folder / "bad.s").write_text("lod\n")
    assert cli_as.main(["bad.s", "-o", "h.o"]) == 1
    assert cli_as.main(["bad.s", "-o", "new.o"]) == 1
    assert (folder / "h.o").read_bytes() == before
    (folder / "one.s").write_text(".mode i8\n.core a, 0\nwait 1\n")
    assert cli_as.main(["one.s", "-o", "one.o"]) == 0
    assert cli_ld.main(["one.o", "-o", "one"]) == 1
    assert names(folder) == ["bad.s", "h.o", "h.s", "one.o", "one.s"]
    assert cli_ld.main(["one.o", "-o", "one", "--no-check"]) == 0
    assert "one.cfg" in names(folder)


def test_defines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "d.s").write_text(".mode i8\n.core a, 0\nwait N\n")
    assert cli_as.main(["d.s", "-o", "d.o", "-D", "N=0x10"]) == 0
    assert cli_objdump.main(["-d", "d.o"]) == 0
    assert "wait 16" in capsys.readouterr().out
    assert cli_as.main(["d.s", "-o", "d.o", "-D", "N=x"]) == 2
    assert capsys.readouterr().err == (
        "-D:1:3: error: 'x' is not defined by a -D before this one\n  N=x\n    ^\n"
    )
    assert cli_as.main(["d.s", "-o", "d.o", "-D", "A", "-D", "N=A + 4*2"]) == 0
    assert cli_objdump.main(["-d", "d.o"]) == 0
    assert "wait 9" in capsys.readouterr().out
    for bad, found in {
        "N=1 +": "-D:1:6: error: the line ends too early",
        "N=007": "-D:1:3: error: '007' must not start with 0",
        "N=1.5": "-D:1:3: error: must be an integer, not 1.5",
        "=3": "-D:1:1: error: unexpected '='",
        "N=1/0": "-D:1:4: error: division by zero",
        'N="x"': "-D:1:1: error: must be NAME=EXPRESSION",
    }.items():
        assert cli_as.main(["d.s", "-o", "d.o", "-D", bad]) == 2
        assert capsys.readouterr().err.startswith(found)


def test_the_name_may_carry_a_suffix(folder: Path) -> None:
    assert cli_ld.main(["h.o", "-o", "out.cfg"]) == 0
    assert cli_ld.main(["h.o", "-o", "v1.2"]) == 0
    assert {"out.cfg", "out.bin", "v1.2.cfg", "v1.2.bin"} <= set(names(folder))


def test_errors_of_all_objects_are_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_ld.main(["no1.o", "no2.o", "-o", "x"]) == 1
    assert capsys.readouterr().err.count("cannot read") == 2
