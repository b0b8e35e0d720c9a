"""Archives: our own, the system's, damaged ones, and the command line."""

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim.asm import cli_ar
from cim.asm.archive import Member, read_archive, write_archive
from cim.diagnostics import CimError

LONG = "a_name_that_is_longer_than_fifteen_characters.o"
MEMBERS = [Member("short.o", b"abc"), Member(LONG, b""), Member("exactly_15_ch.o", b"x" * 10)]

names = st.text(st.characters(codec="utf-8", exclude_characters="/\n\0"), min_size=1, max_size=30)
members = st.lists(st.builds(Member, names, st.binary(max_size=20)), max_size=5)


@given(members)
def test_write_and_read_are_inverse(made: list[Member]) -> None:
    assert read_archive(write_archive(made), "lib.a") == made


@pytest.mark.skipif(shutil.which("ar") is None, reason="needs ar (binutils)")
def test_the_system_reads_ours_and_ours_the_systems(tmp_path: Path) -> None:
    (tmp_path / "ours.a").write_bytes(write_archive(MEMBERS))
    listed = subprocess.run(
        ["ar", "t", tmp_path / "ours.a"], capture_output=True, text=True, check=True
    )
    assert listed.stdout.split() == [m.name for m in MEMBERS]
    content = subprocess.run(
        ["ar", "p", tmp_path / "ours.a"], capture_output=True, check=True
    ).stdout
    assert content == b"".join(m.content for m in MEMBERS)
    for member in MEMBERS:
        (tmp_path / member.name).write_bytes(member.content)
    subprocess.run(["ar", "rcs", "theirs.a", *[m.name for m in MEMBERS]], cwd=tmp_path, check=True)
    assert read_archive((tmp_path / "theirs.a").read_bytes(), "theirs.a") == MEMBERS
    subprocess.run(["ar", "rcsT", "thin.a", "short.o"], cwd=tmp_path, check=True)
    with pytest.raises(CimError, match="is a thin archive"):
        read_archive((tmp_path / "thin.a").read_bytes(), "thin.a")


def test_bsd_names_are_read() -> None:
    header = b"#1/8".ljust(48) + b"11".ljust(10) + b"`\n"
    raw = b"!<arch>\n" + header + b"name.o\0\0abc\n"
    assert read_archive(raw, "lib.a") == [Member("name.o", b"abc")]


@given(st.data())
def test_a_damaged_archive_is_a_diagnostic(data) -> None:
    raw = bytearray(write_archive(MEMBERS))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with suppress(CimError):
        read_archive(bytes(raw[: data.draw(st.integers(0, len(raw)))]), "lib.a")


# --- cim-ar ------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.o").write_bytes(b"A")
    (tmp_path / LONG).write_bytes(b"long")
    return tmp_path


def listed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    capsys.readouterr()
    assert cli_ar.main(["t", "lib.a"]) == 0
    return capsys.readouterr().out.split()


def test_make_list_and_unpack(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_ar.main(["rcs", "lib.a", "a.o", LONG]) == 0
    assert listed(capsys) == ["a.o", LONG]
    (folder / "a.o").write_bytes(b"B")
    (folder / "b.o").write_bytes(b"new")
    assert cli_ar.main(["-rs", "lib.a", "a.o", "b.o"]) == 0
    assert listed(capsys) == ["a.o", LONG, "b.o"]
    (folder / "a.o").unlink()
    (folder / "b.o").unlink()
    assert cli_ar.main(["xv", "lib.a", "a.o"]) == 0
    assert capsys.readouterr().out == "a.o\n"
    assert (folder / "a.o").read_bytes() == b"B"
    assert not (folder / "b.o").exists()
    assert cli_ar.main(["x", "lib.a"]) == 0
    assert (folder / "b.o").read_bytes() == b"new"


def test_a_new_archive_is_noted_without_c(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_ar.main(["r", "lib.a", "a.o"]) == 0
    assert capsys.readouterr().err == "cim-ar: note: lib.a is new\n"


def test_errors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "d").mkdir()
    (folder / "d/a.o").write_bytes(b"A")
    for arguments, message in (
        (["rc", "lib.a", "a.o", "none.o"], "none.o: error: cannot read"),
        (["rc", "lib.a", "a.o", "d/a.o"], "d/a.o: error: is a member 'a.o', and a.o is too"),
        (["t", "none.a"], "none.a: error: cannot read"),
        (["t", "a.o"], "a.o: error: is not an archive"),
    ):
        assert cli_ar.main(arguments) == 1
        assert message in capsys.readouterr().err
        assert not (folder / "lib.a").exists()
    assert cli_ar.main(["rc", "lib.a", "a.o"]) == 0
    assert cli_ar.main(["x", "lib.a", "b.o"]) == 1
    assert "lib.a: error: has no member 'b.o'; did you mean 'a.o'?" in capsys.readouterr().err
    (folder / "evil.a").write_bytes(write_archive([Member("../x", b"")]))
    assert cli_ar.main(["x", "evil.a"]) == 1
    assert "has a member '../x': must be a file name" in capsys.readouterr().err
    for operation in ("rt", "q", "s"):
        with pytest.raises(SystemExit) as raised:
            cli_ar.main([operation, "lib.a"])
        assert raised.value.code == 2
