"""Slips on the command line, output that nobody reads, code pages, homes: kinds of fault that users meet first."""

import contextlib
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODEL = ROOT / "examples/digits/digits_int8.onnx"
SOURCE = ROOT / "examples/handwritten/handover.s"
MODULES = {
    "cim-as": "cim.asm.cli_as", "cim-ld": "cim.asm.cli_ld", "cim-ar": "cim.asm.cli_ar", "cim-nm": "cim.asm.cli_nm",
    "cim-size": "cim.asm.cli_size", "cim-objdump": "cim.asm.cli_objdump", "cim-isa": "cim.asm.cli_isa",
    "cim-cc": "cim.codegen.cli", "cim-emu": "cim.emulator.cli",
}  # fmt: skip


def run(
    tool: str, *arguments: object, folder: Path, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """A tool in a process of its own, as a user starts it."""
    return subprocess.run(
        [sys.executable, "-m", MODULES[tool], *map(str, arguments)], cwd=folder, capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


def here(
    tool: str, *arguments: object, folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Exit code and standard error of a tool in this process, which is sooner."""
    with contextlib.chdir(folder):
        try:
            status = importlib.import_module(MODULES[tool]).main(list(map(str, arguments)))
        except SystemExit as end:
            status = end.code
    return status, capsys.readouterr().err


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    (tmp_path / "h.s").write_text(SOURCE.read_text())
    assert here("cim-as", "h.s", "-o", "h.o", folder=tmp_path, capsys=capsys) == (0, "")
    assert here("cim-ld", "h.o", "-o", "h", folder=tmp_path, capsys=capsys) == (0, "")
    return tmp_path


USAGE = [
    ("cim-cc", MODEL, "--set"), ("cim-cc", MODEL, "--set", "foo"), ("cim-cc", MODEL, "--set", "core.crossbar=axb"),
    ("cim-cc", MODEL, "--set", "foo.bar=1"), ("cim-cc", MODEL, "--dim", "x"), ("cim-cc", MODEL, "--dim", "x=y"),
    ("cim-cc", MODEL, "--input-shape", "q"), ("cim-cc", MODEL, "--input-shape", "x=1xq"), ("cim-cc", MODEL, "-o", ""),
    ("cim-cc", MODEL, "--sync", "none"), ("cim-emu", "h.cfg", "--set", "foo"), ("cim-emu", "h.cfg", "--load", "x"),
    ("cim-emu", "h.cfg", "--set", "bus.width_bytes=x"), ("cim-emu", "h.cfg", "--set", "core.count=2"),
    ("cim-emu", "h.cfg", "--load", "=f"), ("cim-emu", "h.cfg", "--dump", "x="), ("cim-emu", "h.cfg", "--max-cycles", "0"),
    ("cim-as", "h.s", "-o", "x.o", "-D"), ("cim-as", "h.s", "-o", "x.o", "-D", "1=2"), ("cim-as", "h.s"),
    ("cim-as", "h.s", "-o", "x.o", "-D", "N=1 +"), ("cim-ld", "h.o", "-o", "x", "--defsym", "N"),
    ("cim-ld", "h.o", "-o", ""), ("cim-ld", "h.o", "-o", "."), ("cim-ld", "h.o", "-o", "new/"), ("cim-ld", "h.o"),
    ("cim-ar", "q", "x.a", "h.o"), ("cim-objdump", "h.o"), ("cim-nm",), ("cim-size",), ("cim-isa", "nothing"),
]  # fmt: skip


@pytest.mark.parametrize(
    "words", USAGE, ids=lambda words: " ".join(map(str, words)).replace(str(MODEL), "MODEL")
)
def test_a_slip_is_told_and_exits_with_2(words: tuple[object, ...], folder: Path, capsys) -> None:
    before = snapshot(folder)
    status, said = here(str(words[0]), *words[1:], folder=folder, capsys=capsys)
    assert status == 2, said
    assert "error: " in said
    assert "`" not in said  # a library's own words
    assert snapshot(folder) == before


@pytest.mark.parametrize(
    ("words", "message"),
    [(("cim-as", "h.s", "-o", ""), "an output must have a name"), (("cim-as", "h.s", "-o", "."), ".: error: is a folder"),
     (("cim-as", "h.s", "-o", "x.o", "--MD", "."), "is a folder; the output must be a file"),
     (("cim-as", "", "-o", "x.o"), "name is empty"), (("cim-objdump", "-d", ""), "name is empty"),
     (("cim-emu", ""), "name is empty"), (("cim-emu", "h.cfg", "--stats", "."), "is a folder")],
)  # fmt: skip
def test_names_that_are_no_files(
    words: tuple[str, ...], message: str, folder: Path, capsys
) -> None:
    before = snapshot(folder)
    status, said = here(*words, folder=folder, capsys=capsys)
    assert (status, message in said) == (1, True), said
    assert snapshot(folder) == before


READ = [("cim-objdump", "-d", "-h", "-t", "-r", "-s", "h.o"), ("cim-nm", "h.o"), ("cim-size", "h.o"), ("cim-isa", "export", "md"),
        ("cim-as", "h.s", "-o", "again.o", "-a"), ("cim-emu", "h.cfg"), ("cim-as", "--format", "h.s")]  # fmt: skip


@pytest.mark.parametrize("words", READ, ids=lambda words: words[0])
def test_a_reader_that_has_gone_is_no_fault(words: tuple[str, ...], folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", MODULES[words[0]], *words[1:]], cwd=folder, stdout=write, stderr=subprocess.PIPE,
        check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("environment", [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "PYTHONCOERCECLOCALE": "0"},
    {"HOME": "/nonexistent", "XDG_CACHE_HOME": "/nonexistent"},
], ids=["ascii", "no home"])  # fmt: skip
def test_other_code_pages_and_homes(environment: dict[str, str], folder: Path) -> None:
    name = "größe→"
    text = SOURCE.read_text().replace("# the input vector", "# größe → 𝄞")
    (folder / f"{name}.s").write_text(text, encoding="utf-8")
    (folder / f"{name}bad.s").write_text(text + "  wait é\n", encoding="utf-8")

    def works(*words: object, status: int = 0) -> str:
        done = run(str(words[0]), *words[1:], folder=folder, **environment)
        said = (done.stdout + done.stderr).decode("latin-1")
        assert done.returncode == status, said
        assert "Traceback" not in said
        assert "internal error" not in said
        return said

    works("cim-as", f"{name}.s", "-o", f"{name}.o", "-a", "-g", "--MD", f"{name}.d")
    assert "unexpected character" in works("cim-as", f"{name}bad.s", "-o", "bad.o", status=1)
    works("cim-as", "--format", f"{name}.s")
    works(
        "cim-ld", f"{name}.o", "-o", name, "-Map", f"{name}.map", "--print-memory-usage", "--cref"
    )
    works("cim-ar", "rc", f"{name}.a", f"{name}.o")
    for file in (f"{name}.o", f"{name}.cfg"):
        works("cim-objdump", "-d", "-S", "-h", "-t", "-r", file)
        works("cim-nm", file)
        works("cim-size", file)
    works("cim-emu", f"{name}.cfg")
    works("cim-cc", MODEL, "--layer", "digits_1/conv2_1/BiasAdd", "-o", name)
    works("cim-isa", "list")


@pytest.mark.parametrize(
    "stage",
    ["text", "include", "meaning", "warning", "undefined", "duplicate", "check", "image", "model"],
)
@pytest.mark.parametrize("old", [False, True])
def test_a_failure_leaves_the_folder_as_it_was(stage: str, old: bool, folder: Path, capsys) -> None:
    text = (folder / "h.s").read_text()
    (folder / "bad.s").write_text(text + {
        "text": "  wait (\n", "include": '.include "none"\n', "meaning": "  wait -1\n", "warning": '.warning "w"\n',
        "undefined": "  call nobody\n", "check": "  wait 77\n",
    }.get(stage, ""))  # fmt: skip
    links = stage in ("undefined", "duplicate", "check")
    if links:
        assert here("cim-as", "bad.s", "-o", "bad.o", folder=folder, capsys=capsys) == (0, "")
    if old:
        for name in (
            "out.o",
            "out.bin",
            "out.cfg",
            "out.map",
            "out.lst",
            "out.d",
            "out.json",
            "out/x",
        ):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text("old")
    if stage == "image":
        raw = bytearray((folder / "h.bin").read_bytes())
        raw[-1] ^= 1
        (folder / "h.bin").write_bytes(raw)
    before = snapshot(folder)
    if stage == "image":
        status, said = here("cim-emu", "h.cfg", "--stats", "out.json", folder=folder, capsys=capsys)
    elif stage == "model":
        status, said = here("cim-cc", "h.s", "-o", "out", folder=folder, capsys=capsys)
    elif links:
        inputs = ["h.o", "bad.o"] if stage == "duplicate" else ["bad.o"]
        status, said = here(
            "cim-ld", *inputs, "-o", "out", "-Map", "out.map", folder=folder, capsys=capsys
        )
    else:
        status, said = here(
            "cim-as",
            "bad.s",
            "-o",
            "out.o",
            "-a=out.lst",
            "--MD",
            "out.d",
            "--fatal-warnings",
            folder=folder,
            capsys=capsys,
        )
    assert status == 1, said
    assert "error: " in said
    assert snapshot(folder) == before
