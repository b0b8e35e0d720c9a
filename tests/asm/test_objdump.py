"""`cim-objdump`: -l, --core, --loops, archives."""

from pathlib import Path

import pytest

from cim.asm import cli_ar, cli_as, cli_ld, cli_objdump

SOURCE = """.mode i8
.region x, i8, [64]
.core head, 0
.crossbar rows=1, columns=2
.half 1, 2
.text
.for k, 0, 20
  load ib[0:1], x + k
  call tail
.endfor
middle: mvm
.core tail, 1
wait 20
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.s").write_text(SOURCE)
    assert cli_as.main(["p.s", "-o", "p.o"]) == 0
    assert cli_ld.main(["p.o", "-o", "p"]) == 0
    return tmp_path


def dump(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert cli_objdump.main(list(arguments)) == 0
    return capsys.readouterr().out.splitlines()


def test_file_and_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for file in ("p.o", "p.cfg"):
        lines = dump(capsys, "-l", file)
        place = lines.index("  # p.s:11")
        assert lines[place + 1].split()[0] == "mvm"
        assert lines.count("  # p.s:8") == 20
    assert "  # p.s:11: middle: mvm" in dump(capsys, "-S", "-l", "p.o")


def test_one_core(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    by_name = dump(capsys, "-d", "-h", "-t", "-r", "p.o", "--core", "head")
    assert by_name == dump(capsys, "-d", "-h", "-t", "-r", "p.o", "--core", "0")
    text = "\n".join(by_name)
    assert ".core head" in text
    assert ".crossbar rows=1" in text
    assert "tail" in text
    assert ".core tail" not in text
    assert ".region" not in text
    # What is shown assembles, and is the same core.
    lines = dump(capsys, "-d", "--core", "head", "p.o")
    (folder / "again.s").write_text("\n".join(lines))
    assert cli_as.main(["again.s", "-o", "again.o"]) == 0
    assert dump(capsys, "-d", "again.o") == lines
    assert ".core tail, 1, hg=0, vg=0" in dump(capsys, "-d", "--core", "1", "p.cfg")


def test_a_core_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_objdump.main(["-d", "--core", "heat", "p.o"]) == 1
    assert capsys.readouterr().err == (
        "p.o: error: core must be one of head (0), tail (1), not heat; did you mean 'head'?\n"
    )


def test_loops(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = dump(capsys, "--loops", "p.o")
    place = next(i for i, line in enumerate(lines) if ".for" in line)
    assert lines[place] == f"{'.for i, 0, 20':<42} #      0: 40 instructions"
    assert lines[place + 1 : place + 5] == [
        "  load ib[0:1], x + i", "  call tail", ".endfor", "middle:",
    ]  # fmt: skip
    (folder / "again.s").write_text("\n".join(lines))
    assert cli_as.main(["again.s", "-o", "again.o"]) == 0
    assert dump(capsys, "-d", "again.o") == dump(capsys, "-d", "p.o")
    for other in ("-S", "-l"):
        with pytest.raises(SystemExit) as raised:
            cli_objdump.main(["--loops", other, "p.o"])
        assert raised.value.code == 2


def test_archives(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.s").write_text(".mode i8\n.core other, 2\nmvm\n")
    assert cli_as.main(["q.s", "-o", "q.o"]) == 0
    assert cli_ar.main(["rcs", "l.a", "p.o", "q.o"]) == 0
    lines = dump(capsys, "-h", "l.a")
    assert [line for line in lines if line.startswith("#")] == ["# l.a(p.o)", "# l.a(q.o)"]
    assert dump(capsys, "-d", "--core", "other", "l.a") == dump(capsys, "-d", "q.o")
    assert cli_objdump.main(["-d", "--core", "none", "l.a"]) == 1
    assert capsys.readouterr().err.count("error: core must be one of") == 2
