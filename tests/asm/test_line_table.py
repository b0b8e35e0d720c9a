"""DWARF line tables: exact round trip, and the real readelf and pyelftools as clients."""

import io
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from hypothesis import given
from hypothesis import strategies as st

from cim.asm.assembler import assemble
from cim.asm.elf import read_object, write_object
from cim.asm.image import Location
from cim.asm.line_table import Program, read_line_tables, write_line_tables
from cim.asm.objects import Object
from cim.diagnostics import Source

FIRST = """.mode i8
.core one, 0
.for k, 0, 3
  wait k
  wait k + 100
.endfor
.file "else/where.s"
wait 7
.core two, 1
wait 9
wait 9
"""


def example() -> Object:
    return assemble([Source("first.s", FIRST)], "first.o")


def lines_of(obj: Object) -> list[list[Location]]:
    return [[obj.attributes.locations[i] for i in s.lines.tolist()] for s in obj.sections]


locations = st.builds(
    Location, st.sampled_from(["a.s", "b/c.s", "ü d.s"]), st.integers(0, 40) | st.integers(0, 2**33)
)


wide = st.sampled_from([0, 0, 1, 7, 127, 128, 2**31])


@given(st.lists(st.lists(locations, max_size=30), max_size=3), st.data())
def test_write_and_read_are_inverse(programs: list[list[Location]], data: st.DataObject) -> None:
    known = list({location: None for program in programs for location in program})
    ids = [np.array([known.index(line) for line in p], dtype="<u4") for p in programs]
    columns = [np.array([data.draw(wide) for _ in p], dtype="<u4") for p in programs]
    made = [Program("c", i, c) for i, c in zip(ids, columns, strict=True)]
    sections = dict(write_line_tables(made, known))
    counts = [len(p) for p in programs]
    lines, back, found = read_line_tables(sections.get(".debug_line", b""), counts)
    assert [part.tolist() for part in lines] == [part.tolist() for part in ids]
    assert [part.tolist() for part in back] == [part.tolist() for part in columns]
    assert found == known  # known is in the order of first use


def test_long_programs_come_back() -> None:
    count = 500_000
    lines = np.random.default_rng(0).integers(0, 1000, count).astype("<u4")
    known = [Location(f"f{i % 5}.s", 977 * i) for i in range(1000)]
    (_, content), *_ = write_line_tables([Program("c", lines, lines % 90)], known)
    (back,), _, found = read_line_tables(content, [count])
    assert [found[i] for i in back[:2000]] == [known[i] for i in lines[:2000]]


def readelf(path: Path, *options: str) -> str:
    if shutil.which("readelf") is None:
        pytest.skip("needs readelf (binutils)")
    done = subprocess.run(["readelf", *options, path], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout


def test_readelf_shows_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "first.o"
    path.write_bytes(write_object(example()))
    readelf(path, "-a", "-W")
    text = readelf(path, "-W", "--debug-dump=decodedline")
    rows = [line.split()[:3] for line in text.splitlines() if line[:1].isalpha() and "0x" in line]
    assert ["first.s", "5", "0x8"] in rows
    assert any(row[0].endswith("where.s") and row[1:] == ["8", "0x30"] for row in rows)
    info = readelf(path, "--debug-dump=info")
    assert "DW_AT_name        : one" in info
    assert "DW_AT_name        : two" in info


def test_pyelftools_decodes_the_same_lines() -> None:
    obj = example()
    dwarf = ELFFile(io.BytesIO(write_object(obj))).get_dwarf_info()
    units = list(dwarf.iter_CUs())
    assert len(units) == 2
    for unit, wanted in zip(units, lines_of(obj), strict=True):
        program = dwarf.line_program_for_CU(unit)
        names = [entry.name.decode() for entry in program["file_entry"]]
        shown: list[Location] = []
        states = [entry.state for entry in program.get_entries() if entry.state is not None]
        for state, after in pairwise(states):
            location = Location(names[state.file - 1], state.line)
            shown += [location] * ((after.address - state.address) // 8)
        assert shown == wanted
        assert states[-1].end_sequence


def test_objects_without_programs_have_no_debug_sections() -> None:
    obj = assemble([Source("r.s", ".mode i8\n.region x, i8, [4]\n.core a, 0\n")], "r.o")
    raw = write_object(obj)
    assert ELFFile(io.BytesIO(raw)).get_section_by_name(".debug_line") is None
    assert lines_of(read_object(raw, "r.o")) == lines_of(obj)


@given(st.data())
def test_a_damaged_line_table_is_a_value_error_or_other_lines(data) -> None:
    lines = example().sections[0].lines
    (_, content), *_ = write_line_tables(
        [Program("c", lines, 3 * lines)], example().attributes.locations
    )
    raw = bytearray(content)
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        (back,), _, found = read_line_tables(bytes(raw), [len(lines)])
    except ValueError:
        return
    assert len(back) == len(lines)
    assert int(back.max()) < len(found)
