"""`cim-nm` and `cim-size` on objects and images; the system's nm agrees on objects."""

import shutil
import subprocess
from pathlib import Path

import pytest

from cim.asm import cli_as, cli_ld, cli_nm, cli_size

SOURCE = """.mode i8
.region x, i8, [8], role=ifm
.region table, i32, [4]
.word 1, 2
.core head, 0
.crossbar rows=1, columns=2
.half 1, 2
.text
load ib[0:1], x
inner: load ib[0:1], other
call tail
shown: wait 0
.globl shown
"""
OTHER = """.mode i8
.region other, i8, [8]
.core tail, 1
wait 1
"""
LISTED = """\
0000000000000000 T head
0000000000000008 t inner
                 U other
0000000000000018 T shown
0000000000000000 D table
                 U tail
0000000000000000 B x
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in (("a", SOURCE), ("b", OTHER)):
        (tmp_path / f"{name}.s").write_text(text)
        assert cli_as.main([f"{name}.s", "-o", f"{name}.o"]) == 0
    assert cli_ld.main(["a.o", "b.o", "-o", "all"]) == 0
    return tmp_path


def nm(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli_nm.main(list(arguments)) == 0
    return capsys.readouterr().out


def test_symbols_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert nm(capsys, "a.o") == LISTED
    if shutil.which("nm") is not None:
        done = subprocess.run(["nm", "a.o"], capture_output=True, text=True, check=True)
        assert sorted(done.stdout.split("\n")) == sorted(LISTED.split("\n"))


def test_what_is_shown_can_be_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def names(*arguments: str) -> list[str]:
        return [line.split()[-1] for line in nm(capsys, "a.o", *arguments).splitlines()]

    assert names("-u") == ["other", "tail"]
    assert names("--defined-only") == ["head", "inner", "shown", "table", "x"]
    assert names("-g", "--defined-only") == ["head", "shown", "table", "x"]
    assert names("-n") == ["other", "tail", "head", "table", "x", "inner", "shown"]
    assert "0000000000000000 0000000000000010 D table" in nm(capsys, "-S", "a.o")


def test_several_files_and_images(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = nm(capsys, "a.o", "all.cfg", "-n")
    assert text.startswith("\na.o:\n")
    assert text.split("\nall.cfg:\n")[1] == (
        "0000000000000000 B other\n0000000000000040 D table\n0000000000000080 B x\n"
        "00000000000000c0 T head\n0000000000000100 T tail\n"
    )


def test_sizes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_size.main(["a.o", "b.o", "all.cfg", "-t"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows == [
        ["text", "data", "bss", "crossbar", "total", "file"],
        ["32", "16", "8", "4", "60", "a.o"],
        ["8", "0", "8", "0", "16", "b.o"],
        ["40", "16", "16", "4", "76", "all.cfg"],
        ["80", "32", "32", "8", "152", "(TOTALS)"],
    ]


@pytest.mark.parametrize("tool", [cli_nm, cli_size])
def test_errors(tool, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "bad.o").write_text("hello")
    assert tool.main(["none.o", "a.o", "bad.o"]) == 1
    shown = capsys.readouterr()
    assert "none.o: error: cannot read: No such file or directory" in shown.err
    assert "bad.o: error: is not an object of cim-as" in shown.err
    assert "a.o" in shown.out
    with pytest.raises(SystemExit) as raised:
        tool.main([])
    assert raised.value.code == 2
