"""Archives as inputs of `cim-ld`: -L, -l, and which members are pulled in."""

from pathlib import Path

import pytest

from cim.asm import cli_ar, cli_as, cli_ld, cli_nm
from cim.asm.read_image import read_image

MAIN = ".mode i8\n.core a, 0\nload ib[0:4], x\ncall b\n"
DATA = ".mode i8\n.region x, i8, [8]\n"
OTHER = ".mode i8\n.core b, 1\nwait 1\nload ib[0:4], deep\n"
DEEP = ".mode i8\n.region deep, i8, [8]\n"
UNUSED = ".mode i8\n.region unused, i8, [8]\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()
    for name, text in (
        ("main", MAIN), ("data", DATA), ("other", OTHER), ("deep", DEEP), ("unused", UNUSED),
    ):  # fmt: skip
        (tmp_path / f"{name}.s").write_text(text)
        assert cli_as.main([f"{name}.s", "-o", f"{name}.o"]) == 0
    # deep stands before what needs it, in another archive.
    assert cli_ar.main(["rcs", "lib/libone.a", "deep.o", "data.o", "unused.o"]) == 0
    assert cli_ar.main(["rcs", "lib/libtwo.a", "other.o"]) == 0
    return tmp_path


def regions(name: str) -> list[str]:
    return [region.name for region in read_image(f"{name}.cfg").config.regions]


def test_only_what_is_needed_is_pulled_in(folder: Path) -> None:
    assert cli_ld.main(["main.o", "-L", "none", "-Llib", "-lone", "-l", "two", "-o", "out"]) == 0
    assert regions("out") == ["deep", "x"]
    assert cli_ld.main(["lib/libtwo.a", "-o", "paths", "lib/libone.a", "main.o"]) == 0
    assert (folder / "paths.bin").read_bytes() == (folder / "out.bin").read_bytes()
    assert cli_ld.main(["main.o", "other.o", "deep.o", "data.o", "-o", "flat"]) == 0
    assert (folder / "flat.bin").read_bytes() == (folder / "out.bin").read_bytes()


def test_the_first_definition_is_taken(folder: Path) -> None:
    (folder / "x.s").write_text(".mode i8\n.region x, i8, [99]\n")
    assert cli_as.main(["x.s", "-o", "x.o"]) == 0
    assert cli_ar.main(["rcs", "lib/libx.a", "x.o"]) == 0
    for order, size in ((["-lx", "-lone"], 99), (["-lone", "-lx"], 8)):
        assert cli_ld.main(["main.o", "-Llib", *order, "-ltwo", "-o", "out"]) == 0
        assert read_image("out.cfg").config.region("x").size_bytes == size


def test_messages_name_the_member(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_ld.main(["main.o", "-Llib", "-lone", "-o", "out"]) == 1
    assert "main.s:4:6: error: undefined symbol 'b'" in capsys.readouterr().err
    (folder / "bad.o").write_text("bad")
    assert cli_ar.main(["rcs", "lib/libbad.a", "bad.o"]) == 0
    assert cli_ld.main(["main.o", "-Llib", "-lbad", "-o", "out"]) == 1
    assert "lib/libbad.a(bad.o): error: is not an object" in capsys.readouterr().err


def test_a_missing_library_names_the_folders(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_ld.main(["main.o", "-Llib", "-L", "other", "-lzero", "-o", "out"]) == 1
    assert capsys.readouterr().err == (
        "-l zero: error: there is no libzero.a in the folders of -L\n"
        "note: searched: lib\nnote: searched: other\n"
    )
    assert cli_ld.main(["main.o", "-lzero", "-o", "out"]) == 1
    assert "note: no folder was searched: -L DIR names one" in capsys.readouterr().err


def test_nm_shows_members(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_nm.main(["-g", "lib/libone.a"]) == 0
    assert capsys.readouterr().out.startswith(
        "\nlib/libone.a(deep.o):\n0000000000000000 B deep\n\nlib/libone.a(data.o):\n"
    )
