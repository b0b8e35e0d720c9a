"""`.section`, `.data`, `.bss`: bytes with a name, from the text through objects and links to the image."""

import io
import shutil
import subprocess
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.asm import cli_as, cli_ld, cli_nm, cli_size
from cim.asm.assembler import assemble
from cim.asm.disassembler import disassemble
from cim.asm.elf import read_object, write_object
from cim.asm.image import Image
from cim.asm.layout import Layout
from cim.asm.linker import LinkOptions, link
from cim.asm.objects import MAX_ALIGN
from cim.asm.unused_regions import unused_regions
from cim.diagnostics import CimError, Source
from tests.asm.test_elf import content

CORE = ".mode i8\n.core a, 0\n"


def build(text: str, name: str = "t"):
    return assemble([Source(f"{name}.s", text)], f"{name}.o")


def error(text: str) -> str:
    with pytest.raises(CimError) as raised:
        build(text)
    return raised.value.diagnostics[0].render()


def bytes_of(image: Image, name: str) -> bytes:
    region = image.config.region(name)
    assert region.type == "u8"
    assert region.shape == [region.size_bytes]
    if region.content is None:
        return b""
    return image.content[region.content.offset : region.content.offset + region.content.size]


def test_sections_are_left_and_come_back_to() -> None:
    text = (
        '.data\n.byte 1\n.region r, i8, [4]\n.byte 2\n.core a, 0\nwait 1\n.section x, "aw"\n.byte 3\n.data\n'
        ".byte 4\n.section r\n.byte 5\n.section .text\nwait 2\n.section .data\n.byte 6\n.section x\n.byte 7\n"
    )
    made = build(".mode i8\n" + text)
    assert {s.name: s.data.tobytes() for s in made.sections if s.kind != "text"} == {
        ".data": b"\1\4\6", ".region.r": b"\2\5", "x": b"\3\7",
    }  # fmt: skip
    assert [s.size for s in made.sections if s.kind == "text"] == [16]


def test_an_empty_section_keeps_its_alignment() -> None:
    one = build(CORE + ".data\n.byte 1\n", "a")
    two = build(".data\n.align 32\nl: .globl l\n", "b")
    three = build(".data\n.byte 2\n.section q\n.word l\n", "c")
    image = link([three, two, one], "out")
    start = image.config.region(".data").address
    assert bytes_of(image, ".data") == b"\1" + bytes(31) + b"\2"
    assert int.from_bytes(bytes_of(image, "q"), "little") == start + 32


def test_a_placeholder_takes_no_room_in_files() -> None:
    made = build(
        CORE
        + 'load ib[0:1], end - 1\n.bss\n.space 1_000_000\nend:\n.section y, "aw", nobits\n.byte 0\n'
    )
    assert len(write_object(made)) < 3000
    image = link([made], "out")
    assert image.config.region(".bss").size_bytes == 1_000_000
    assert image.config.region(".bss").content is None
    assert image.config.region("y").content is None


names = st.sampled_from([".data", ".bss", "x", ".rodata.str"])
parts = st.lists(
    st.tuples(names, st.sampled_from([1, 2, 16, 128]), st.integers(0, 9), st.booleans()), max_size=8
)


def text_of(part: list[tuple[str, int, int, bool]], own: str) -> str:
    lines = [".mode i8"]
    for index, (name, align, size, referred) in enumerate(part):
        fill = ".space {}" if name == ".bss" else f".fill {{}}, 1, {ord(own)}"
        lines += [f".section {name}", f".align {align}", f"{own}{index}: {fill.format(size)}"]
        if referred and name != ".bss":
            lines.append(f".word {own}{index} + 1, {name}")
    return "\n".join(lines)


@settings(max_examples=60)
@given(st.lists(parts, min_size=1, max_size=3), st.randoms())
def test_objects_of_any_order_link_to_the_same_image(every, random) -> None:
    objects = [build(text_of(part, "abc"[i]), "abc"[i]) for i, part in enumerate(every)]
    objects.append(build(CORE, "z"))
    for obj in objects:
        again = read_object(write_object(obj), obj.name)
        assert content(again) == content(obj)
        assert write_object(again) == write_object(obj)
        text = "\n".join(disassemble(obj))
        assert content(assemble([Source("d.s", text)], obj.name)) == content(obj)
    image = link(objects, "out")
    shuffled = list(objects)
    random.shuffle(shuffled)
    assert link(shuffled, "out").content == image.content
    for obj in objects:
        for symbol in obj.symbols:
            if symbol.kind == "label":
                own = obj.sections[symbol.section].owner
                part = every["abc".index(symbol.name[0])][int(symbol.name[1:])]
                assert part[0] == own
    for part, own in zip(every, "abc", strict=False):
        for name, _, size, _ in part:
            assert bytes_of(image, name).count(own.encode()) >= (size if name != ".bss" else 0)
    assert all(image.config.region(o.owner).address % o.align == 0 for b in objects for o in b.sections
               if o.kind == "section")  # fmt: skip


def test_readelf_and_pyelftools_see_them(tmp_path: Path) -> None:
    raw = write_object(build(CORE + ".data\n.align 16\n.word 1\n.bss\n.space 9\n"))
    elf = ELFFile(io.BytesIO(raw))
    assert elf.get_section_by_name(".data")["sh_addralign"] == 16
    assert elf.get_section_by_name(".bss")["sh_type"] == "SHT_NOBITS"
    assert elf.get_section_by_name(".bss")["sh_size"] == 9
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf (binutils)")
    path = tmp_path / "t.o"
    path.write_bytes(raw)
    done = subprocess.run(["readelf", "-a", path], capture_output=True, text=True, check=True)
    assert not done.stderr
    assert "arning" not in done.stdout


def test_the_other_tools(tmp_path: Path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.s").write_text(CORE + "load ib[0:1], l\n.data\nl: .byte 1\n.bss\nb: .space 5\n")
    Path("b.s").write_text(".data\n.byte 7\n.section unused\n.byte 1\n")
    for name in "ab":
        assert cli_as.main([f"{name}.s", "-o", f"{name}.o"]) == 0
    assert cli_nm.main(["a.o"]) == 0
    assert [line.split()[1:] for line in capsys.readouterr().out.splitlines()] == [
        ["b", ".bss"], ["d", ".data"], ["T", "a"], ["b", "b"], ["d", "l"],
    ]  # fmt: skip
    assert cli_size.main(["a.o"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split() == ["8", "1", "5", "0", "14", "a.o"]
    Path("l.toml").write_text('[regions]\n".data" = 0x4000\n')
    assert cli_ld.main(["b.o", "a.o", "-o", "i", "-T", "l.toml", "-Map", "m", "--cref"]) == 0
    assert "      0x4000          2  region .data u8 [2]" in Path("m").read_text()
    assert (
        cli_ld.main(["b.o", "a.o", "-o", "i", "--gc-sections", "--print-gc-sections", "-Map", "m"])
        == 0
    )
    dropped = capsys.readouterr().err.splitlines()
    assert [line.rsplit("'")[1] for line in dropped] == [".bss", ".data", "unused"]
    assert "          1  region .data u8 [1]" in Path("m").read_text()


def test_a_layout_may_name_a_section_that_is_dropped() -> None:
    objects = [build(CORE), build(".section x\n.byte 1\n", "b")]
    dropped = frozenset((obj.name, name) for name, obj in unused_regions(objects))
    image = link(objects, "out", LinkOptions(Layout({"x": 64}), leave_out=dropped))
    assert image.config.regions == []


MISTAKES = {
    '.section x, "ax"': "t.s:1:13: error: programs must stand in .core, not in a section",
    '.section x, "q"': 't.s:1:13: error: the flags must be "a" or "aw", not "q"',
    '.section x, "aw", bits': "t.s:1:19: error: must be progbits or nobits, not bits",
    ".section .text.a": "t.s:1:10: error: '.text.a' is a name that objects use for something else",
    ".section .rela.data": "t.s:1:10: error: '.rela.data' is a name that objects use for something else",
    '.section "a b"': "t.s:1:10: error: 'a b' is no name",
    ".section .text": "t.s:1:1: error: .section must come after .core",
    ".section": 't.s:1:1: error: must be: .section NAME, "aw", nobits',
    '.data\n.section .data, "aw", nobits': "t.s:2:10: error: '.data' is already of the other kind",
    ".bss\n.byte 0, 1": "t.s:2:1: error: .byte must be 0 here: the section has no content",
    ".bss\nl: .word l": "t.s:2:4: error: .word must be 0 here: the section has no content",
    ".data\nmvm": "t.s:2:1: error: an instruction must be in a core's program",
    ".core x, 0\n.section x": "t.s:2:10: error: 'x' is already defined",
    ".region r, i8, [4], align=4\n.align 8": (
        "t.s:2:8: error: the region begins at a multiple of 4 only: its .region needs align=8"
    ),
    ".data 4": "t.s:1:7: error: must be: .data",
    f".data\n.align {2 * MAX_ALIGN}": f"t.s:2:8: error: must be a power of two from 1 to {MAX_ALIGN}",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_shown_where_they_stand(text: str) -> None:
    assert error(text).startswith(MISTAKES[text])


def test_a_region_and_a_section_of_one_name_are_refused() -> None:
    with pytest.raises(
        CimError, match=r"a\.o: error: section 'x' has the name of a region in t\.o"
    ):
        link([build(CORE + ".region x, i8, [1]\n"), build(".section x\n", "a")], "out")
    with pytest.raises(CimError, match="duplicate symbol 'x'"):
        link([build(CORE + ".region x, i8, [1]\n"), build(".region x, i8, [1]\n", "a")], "out")


def test_lines_of_generated_text_are_recorded_under_their_own_name() -> None:
    text = (
        '.mode i8\n.core a, 0\nmvm\n.line 100, "gen.c"\nmvm\nmvm\n.line 7\nmvm\n.file "other"\n'
        '.line 1, "b.c"\nmvm\n'
    )
    made = build(text)
    found = [
             (made.attributes.locations[i].file, made.attributes.locations[i].line)
             for i in made.sections[0].lines.tolist()]  # fmt: skip
    assert found == [("t.s", 3), ("gen.c", 100), ("gen.c", 101), ("gen.c", 7), ("b.c", 1)]
    assert error(text + "mvm 3\n").startswith("t.s:12:5: error")
    for bad, where in ((".line 0", "1:7"), (".line 2_147_483_648", "1:7"), ('.line 1, ""', "1:10"),
                       ('.file ""', "1:7"), (".line 1.5", "1:7"), (".line", "1:1")):  # fmt: skip
        assert error(bad).startswith(f"t.s:{where}: error: ")
