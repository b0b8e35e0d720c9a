"""A new instruction is an edit of the spec: every tool then knows it, without any other change."""

from pathlib import Path

import numpy as np
import pytest

from cim.asm import cli_as, cli_isa, cli_ld, cli_objdump
from cim.asm.read_image import read_image
from cim.emulator import cli as cli_emu
from cim.isa.interpreter import CoreProgram, Interpreter
from cim.isa.load import load_isa, spec_text

NEW = '''
[extension.reverse]
version = "0.1"
prose = "Signs turned round."

[extension.reverse.format.shifted]
opcode = "5:0"
dst = "8:6"
a = "11:9"
last = "21:12"
zero = "63:22"

[extension.reverse.instruction."gpeu.neg"]
mnemonic = "gpeu.neg"
class = "gpeu"
format = "shifted"
fixed = { opcode = 40 }
syntax = "gpeu.neg {dst}, {a}, len={len}"
exceptions = ["buffer_range"]
prose = "Negate."
operation = """
require(len <= length(dst) and len <= length(a), "buffer_range")
dst[0:len] = zeros(len) - a[0:len]
"""
[extension.reverse.instruction."gpeu.neg".operands]
dst = { kind = "buffer", field = "dst" }
a = { kind = "buffer", field = "a" }
len = { kind = "unsigned", field = "last", bias = 1, default = "columns" }
'''
PROGRAM = """
.machine "default", "core.crossbar=4x4"
.mode i8
.extension reverse
.region x, i32, [4]
.word 5, -7, 0, 2_000_000_000
.region y, i32, [4]
.core only, 0
load pb[0:4], x
GPEU.NEG ob, pb, len=4
store y, ob[0:4]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "isa.toml").write_text(spec_text("isa.toml") + NEW)
    (tmp_path / "p.s").write_text(PROGRAM)
    monkeypatch.setenv("CIM_SPEC", str(tmp_path / "isa.toml"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_is_assembled_linked_interpreted_and_disassembled(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_as.main(["p.s", "-o", "p.o"]) == 0
    assert cli_ld.main(["p.o", "-o", "p"]) == 0
    image = read_image("p.cfg")
    assert image.config.extensions == ["reverse"]
    (core,) = image.config.cores
    memory = image.memory()
    Interpreter(
        load_isa(), image.config.numeric_mode, (4, 4), memory, [CoreProgram(image.words(core))],
        image.config.extensions,
    ).run()  # fmt: skip
    y = image.config.region("y")
    values = memory[y.address :][: y.size_bytes].view("<i4")
    np.testing.assert_array_equal(values, [-5, 7, 0, -2_000_000_000])
    for file in ("p.o", "p.cfg"):
        assert cli_objdump.main(["-d", file]) == 0
        text = capsys.readouterr().out
        assert "gpeu.neg ob, pb, len=4" in text
        assert ".extension reverse" in text
    (folder / "again.s").write_text(text)
    assert cli_as.main(["again.s", "-o", "again.o"]) == 0


def test_it_is_documented_and_exported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del folder
    assert cli_isa.main(["explain", "neg"]) == 0
    assert "needs  .extension reverse" in capsys.readouterr().out
    for kind, needle in (
        ("md", "## gpeu.neg"),
        ("c", "CIM_GPEU_NEG_MATCH"),
        ("sv", "CIM_GPEU_NEG_MATCH"),
        ("json", '"gpeu.neg"'),
    ):
        assert cli_isa.main(["export", kind]) == 0
        assert needle in capsys.readouterr().out
    assert cli_isa.main(["encode", "gpeu.neg ob, pb, len=4"]) == 0
    word = capsys.readouterr().out.strip()
    assert cli_isa.main(["decode", word]) == 0
    assert capsys.readouterr().out.strip() == "gpeu.neg ob, pb, len=4"


def test_it_needs_its_extension(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "q.s").write_text(PROGRAM.replace(".extension reverse\n", ""))
    assert cli_as.main(["q.s", "-o", "q.o"]) == 1
    assert "q.s:9:1: error: gpeu.neg needs .extension reverse before it" in capsys.readouterr().err


def test_a_machine_without_it_refuses_the_image(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli_as.main(["p.s", "-o", "p.o"]) == 0
    assert cli_ld.main(["p.o", "-o", "p"]) == 0
    assert cli_emu.main(["p.cfg"]) == 1
    assert "uses 'gpeu.neg', which the emulator's engine does not have" in capsys.readouterr().err
    monkeypatch.delenv("CIM_SPEC")
    assert cli_emu.main(["p.cfg"]) == 1
    assert (
        "needs ISA extension 'reverse', this toolchain has attribute_buffer"
        in capsys.readouterr().err
    )
    assert folder.exists()
