"""Objects as ELF: round trip, and the real readelf and pyelftools as clients."""

import io
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.asm.assembler import assemble
from cim.asm.disassembler import disassemble
from cim.asm.elf import read_object, write_object
from cim.asm.objects import Object
from cim.diagnostics import CimError, Source
from cim.isa.encoding import immediate_value
from cim.isa.load import load_isa
from cim.isa.strategies import Instance, instances

EXAMPLE = Path(__file__).parents[2] / "examples/handwritten/handover.s"
ISA = load_isa()


def example() -> Object:
    return assemble([Source("handover.s", EXAMPLE.read_text())], "handover.o")


def content(obj: Object):
    """Everything of an object but where its lines came from."""
    sections = []
    for section in obj.sections:
        rows = sorted(
            (int(r["offset"]), int(r["type"]), obj.symbols[int(r["symbol"])].name, int(r["addend"]))
            for r in section.relocations
        )
        sections.append((section.name, section.align, section.data.tobytes(), rows))
    symbols = sorted((s.name, s.kind, s.section, s.value, s.size, s.is_global) for s in obj.symbols)
    a = obj.attributes
    return sections, symbols, a.mode, a.machine, a.cores, a.regions, a.layer


def test_write_and_read_are_inverse() -> None:
    raw = write_object(example())
    again = read_object(raw, "handover.o")
    assert content(again) == content(example())
    assert again.attributes == example().attributes
    assert [s.lines.tolist() for s in again.sections] == [
        s.lines.tolist() for s in example().sections
    ]
    assert write_object(again) == raw


def test_readelf_has_nothing_to_complain_about(tmp_path: Path) -> None:
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf (binutils)")
    path = tmp_path / "h.o"
    path.write_bytes(write_object(example()))
    done = subprocess.run(["readelf", "-a", path], capture_output=True, text=True, check=True)
    assert not done.stderr
    assert "arning" not in done.stdout
    assert "rror" not in done.stdout
    assert ".text.head" in done.stdout


def test_pyelftools_sees_symbols_and_relocations() -> None:
    elf = ELFFile(io.BytesIO(write_object(example())))
    symbols = {s.name: s for s in elf.get_section_by_name(".symtab").iter_symbols()}
    assert symbols["head"]["st_info"]["type"] == "STT_FUNC"
    assert symbols["x"]["st_info"]["type"] == "STT_OBJECT"
    assert symbols["x"]["st_size"] == 8
    relocations = list(elf.get_section_by_name(".rela.text.tail").iter_relocations())
    assert [r["r_addend"] for r in relocations] == [4, 0, 0]


def reassembled(obj: Object) -> Object:
    return assemble([Source("d.s", "\n".join(disassemble(obj)))], obj.name)


def test_the_disassembly_of_the_example_assembles_to_the_same() -> None:
    assert content(reassembled(example())) == content(example())


def operand_text(x: Instance, mode: str) -> str:
    parts = []
    for part in x.instruction.syntax:
        texts = []
        for name in part.operands:
            operand, value = x.instruction.operands[name], x.operands[name]
            if operand.kind == "buffer":
                texts.append(ISA.buffer_names[value])
            elif operand.kind == "bits":
                number = immediate_value(value, mode)
                texts.append(str(np.float32(number)) if mode == "f32" else str(number))
            else:
                texts.append(str(value))
        shape = {"slice": "{0}[{1}:{2}]", "plain": "{0}", "keyword": part.operands[0] + "={0}"}
        parts.append(shape[part.shape].format(*texts))
    return f"{x.instruction.mnemonic} {', '.join(parts)}"


def finite(x: Instance, mode: str) -> bool:
    bits = x.operands.get("imm")
    return mode != "f32" or bits is None or np.isfinite(immediate_value(bits, mode))


@st.composite
def objects(draw):
    """Random programs of one or two cores with data, symbols and relocations, as text."""
    mode = draw(st.sampled_from(["f32", "i8", "i8n"]))
    lines = [f".mode {mode}", ".extension attribute_buffer"]
    for number in range(draw(st.integers(1, 2))):
        rows, columns = draw(st.integers(1, 3)), draw(st.integers(1, 3))
        lines += [f".core c{number}, {number}, hg={draw(st.integers(0, 3))}, vg=1"]
        lines += [f".crossbar rows={rows}, columns={columns}"]
        cells = draw(
            st.lists(st.integers(-256, 255), min_size=rows * columns, max_size=rows * columns)
        )
        directive = ".float" if mode == "f32" else ".half"
        lines += [f"{directive} {', '.join(str(c) for c in cells)}", ".text"]
        lines += [
            f".param mul_pos, {draw(st.floats(width=32, allow_nan=False, allow_infinity=False))!r}"
        ]
        instance = instances(mode).filter(lambda x: finite(x, mode))
        for index, x in enumerate(draw(st.lists(instance, max_size=6))):
            if draw(st.booleans()):
                lines.append(f"l{number}_{index}:")
            lines.append(operand_text(x, mode))
        lines += [f"load ib[0:1], r {draw(st.sampled_from(['+ 3', '- 1', '']))}", "call c0"]
        lines += [f".quad {draw(st.sampled_from(['0', 'r', '0xFFFF_FFFF_FFFF_FFFF']))}"]
    lines += [".region r, i32, [8]"]
    if draw(st.booleans()):
        lines += [".byte 1, 2, 3", ".word r + 4"]
    return "\n".join(lines)


@settings(max_examples=80)
@given(objects())
def test_text_binary_text_binary(text: str) -> None:
    obj = assemble([Source("t.s", text)], "t.o")
    raw = write_object(obj)
    back = read_object(raw, "t.o")
    again = reassembled(back)
    assert content(again) == content(obj)
    assert "\n".join(disassemble(again)) == "\n".join(disassemble(back))


@settings(max_examples=150)
@given(st.data())
def test_a_damaged_object_is_a_diagnostic(data) -> None:
    raw = bytearray(write_object(example()))
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    raw = raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw
    # Whatever else comes out is a fault: this fails with anything but success or a diagnostic.
    with suppress(CimError):
        read_object(bytes(raw), "bad.o")


def test_other_files_are_refused() -> None:
    for raw in (b"", b"hello", b"\x7fELF" + bytes(60)):
        with pytest.raises(CimError, match="is not an object of cim-as"):
            read_object(raw, "x.o")
