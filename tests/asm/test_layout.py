"""Layout files: what they place, what goes around it, and every way in which they can be wrong."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim.asm import cli_as, cli_ld
from cim.asm.assembler import assemble
from cim.asm.image import Image
from cim.asm.layout import Layout, read_layout
from cim.asm.linker import LinkOptions, link
from cim.asm.read_image import check_image
from cim.diagnostics import CimError, Source

TEXT = """.mode i8
.region x, i8, [100]
.region y, i8, [100]
.region z, i8, [10], align=16
.core a, 0
load ib[0:4], z
mvm
.core b, 1
mvm
"""


def linked(toml: str) -> Image:
    layout = read_layout(Source("l.toml", toml))
    return link([assemble([Source("t.s", TEXT)], "t.o")], "out", LinkOptions(layout))


def addresses(image: Image) -> dict[str, int]:
    config = image.config
    return {part.name: part.address for part in [*config.regions, *config.cores]}


def test_what_is_not_named_goes_around() -> None:
    assert addresses(linked("")) == {"x": 0, "y": 0x80, "z": 0xF0, "a": 0x100, "b": 0x140}
    assert addresses(linked("[regions]\ny = 0x40\n")) == {
        "x": 0xC0, "y": 0x40, "z": 0x130, "a": 0x140, "b": 0x180,
    }  # fmt: skip
    image = linked("programs = 0\n[regions]\nx = 0x1000\n")
    assert addresses(image) == {"x": 0x1000, "y": 0x80, "z": 0xF0, "a": 0, "b": 0x40}
    assert image.config.memory_bytes == 0x1000 + 100
    check_image(image)


ERRORS = {
    "[regions]\nx = 0\ny = 64\n": [
        "l.toml:3:1: error: region 'y' (0x40 to 0xa3) overlaps region 'x' (0x0 to 0x63)"
    ],
    "programs = 0x40\n[regions]\nx = 0\n": [
        "l.toml:1:1: error: the program of core 0 'a' (0x40 to 0x4f) overlaps region 'x' (0x0 to 0x63)",
    ],
    "programs = 8\n[regions]\ny = 1_001\nz = 2_000": [
        "l.toml:3:1: error: the address of region 'y' must be a multiple of 64, not 0x3e9",
        "l.toml:1:1: error: the address of the first program must be a multiple of 64, not 0x8",
    ],
    "[regions]\nxx = 0\n": [
        "l.toml:2:1: error: region 'xx' is not in the input; did you mean 'x'?"
    ],
    "[regions]\nx = -1\ny = 1.5\nz = 0x1_0000_0000": [
        "l.toml:2:1: error: the address of 'x' must be an integer from 0 to 0xffffffff, not -1",
        "l.toml:3:1: error: the address of 'y' must be an integer from 0 to 0xffffffff, not 1.5",
        "l.toml:4:1: error: the address of 'z' must be an integer from 0 to 0xffffffff, not 4294967296",
    ],
    "region = 1\nregions = 2": [
        "l.toml:1:1: error: must be 'programs' or 'regions', not 'region'",
        "l.toml:2:1: error: regions must be a table of NAME = ADDRESS, not a value",
    ],
    "programs = x\n": ["l.toml:1:12: error: not valid TOML"],
}


@pytest.mark.parametrize("toml", ERRORS)
def test_errors(toml: str) -> None:
    with pytest.raises(CimError) as raised:
        linked(toml)
    shown = [d.render() for d in raised.value.diagnostics]
    assert len(shown) == len(ERRORS[toml])
    for got, want in zip(shown, ERRORS[toml], strict=True):
        assert got.startswith(want)


@given(
    st.dictionaries(st.sampled_from("xyz"), st.integers(0, 12).map(lambda n: 64 * n)),
    st.none() | st.integers(0, 12).map(lambda n: 64 * n),
)
def test_no_layout_makes_an_image_with_overlaps(regions: dict[str, int], programs) -> None:
    obj = assemble([Source("t.s", TEXT)], "t.o")
    try:
        image = link([obj], "out", LinkOptions(Layout(regions, programs)))
    except CimError as problem:
        assert all("overlaps" in d.message for d in problem.diagnostics)  # noqa: PT017
        return
    check_image(image)
    assert {name: addresses(image)[name] for name in regions} == regions


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.s").write_text(TEXT)
    Path("l.toml").write_text("[regions]\nx = 0x200\n")
    assert cli_as.main(["t.s", "-o", "t.o"]) == 0
    assert cli_ld.main(["t.o", "-T", "l.toml", "-o", "out", "-Map", "out.map"]) == 0
    assert "0x200        100  region x" in Path("out.map").read_text()
    assert cli_ld.main(["t.o", "-T", "none.toml", "-o", "out"]) == 1
    assert "none.toml: error: cannot read" in capsys.readouterr().err
