"""What must fail whatever happens at run time is refused where it is written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim.asm.assembler import assemble
from cim.asm.disassembler import disassemble, image_as_object
from cim.asm.linker import link
from cim.diagnostics import CimError, Source
from cim.isa.buffer_ranges import buffer_lengths
from cim.isa.load import load_isa
from cim.isa.machine import load_machine

ISA = load_isa()
HEAD = '.machine "default", "core.crossbar={}x{}"\n.mode i8\n.core a, 0\n'


def build(text: str):
    return assemble([Source("t.s", text)], "t.o")


def errors(text: str) -> list[str]:
    with pytest.raises(CimError) as raised:
        build(text)
    return [diagnostic.render() for diagnostic in raised.value.diagnostics]


@given(
    st.integers(1, 300),
    st.integers(1, 300),
    st.sampled_from(sorted(ISA.buffers)),
    st.integers(-1, 1),
)
def test_a_slice_ends_where_the_buffer_ends(
    outputs: int, inputs: int, buffer: str, more: int
) -> None:
    length = int(buffer_lengths(ISA, load_machine("default", [f"core.crossbar={outputs}x{inputs}"]))[
        ISA.buffers[buffer].code
    ])  # fmt: skip
    head = HEAD.format(outputs, inputs)
    hi = length + more
    if hi < 1:
        return
    text = f"load {buffer}[0:{hi}], 0\nstore 0, {buffer}[{hi - 1}:{hi}]\n"
    if more <= 0:
        assert build(head + text).sections[0].size == 16
        return
    one, two = errors(head + text)
    says = f"hi is {hi}, but {buffer} has {length} elements on a {outputs}x{inputs} crossbar"
    assert one.startswith(f"t.s:4:11: error: {says}\n  load {buffer}[0:{hi}], 0\n            ^")
    assert two.startswith(f"t.s:5:{14 + len(str(hi - 1))}: error: {says}")


MISTAKES = {
    "gpeu.relu rb, ob, len=9": "t.s:4:23: error: len is 9, but rb has 8 elements on a 8x4 crossbar",
    "gpeu.relu ob, ib, len=5": "t.s:4:23: error: len is 5, but ib has 4 elements on a 8x4 crossbar",
    "gpeu.clr ib, len=5": "t.s:4:18: error: len is 5, but ib has 4 elements",
    ".crossbar rows=4, columns=8\n.fill 32, 2, 1\n.text\ngpeu.clr ib": "t.s:7:1: error: len is 8, but ib has 4",
    ".for k, 0, 9\nload ib[k:k+1], 0\n.endfor": (
        "t.s:5:11: error: hi is 5, but ib has 4 elements on a 8x4 crossbar (where k = 4)"
    ),
    ".for k, 0, 9\ngpeu.clr ib, len=3\nload ib[0:max(1, k)], 0\n.endfor": (
        "t.s:6:11: error: hi is 5, but ib has 4 elements on a 8x4 crossbar (where k = 5)"
    ),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes(text: str) -> None:
    assert errors(HEAD.format(8, 4) + text)[0].startswith(MISTAKES[text])


def test_without_a_machine_nothing_is_known() -> None:
    assert build(".mode i8\n.core a, 0\nload ib[0:1000], 0\n").sections[0].size == 8


def test_the_machine_stands_before_the_first_instruction() -> None:
    (found,) = errors('.mode i8\n.core a, 0\nmvm\n  .machine "default"\n')
    assert found.startswith("t.s:4:3: error: .machine must stand before the first instruction")


def test_the_disassembly_of_what_would_be_refused_still_assembles() -> None:
    machine = '.machine "default", "core.crossbar=4x4"\n'
    raw = ".mode i8\n.core a, 0\nload ib[0:100], 0x100\nload ib[0:4], 0x100\ngpeu.clr ob, len=7\n"
    image = link([build(raw), build(machine + ".core b, 1\nwait 0\n")], "out")
    seen = image_as_object(image)
    text = "\n".join(disassemble(seen))
    assert text.count(".quad") == 2
    again = build(text)
    assert np.array_equal(again.sections[0].data, seen.sections[0].data)


REGIONS = {
    ".region r, i8, [4], role=imf": (
        "t.s:1:21: error: unknown role 'imf'; there are data, ifm, ofm, partial_sum, bias; did you mean 'ifm'?"
    ),
    ".region r, i8, [4]\n.word 1, 2": (
        "t.s:1:9: error: region 'r' has 8 bytes of content, its shape and type are 4: 4 too many"
    ),
    ".region r, i32, [0, 4]\n.byte 1": "t.s:1:9: error: region 'r' has 1 bytes of content, its shape and type",
    ".region r, i8, [4, -1]": "t.s:1:16: error: the shape must be like [8, 8, 3], each dimension an integer from 0",
    ".region r, i8, [4.0]": "t.s:1:16: error: the shape must be like [8, 8, 3]",
}


@pytest.mark.parametrize("text", REGIONS)
def test_regions(text: str) -> None:
    assert errors(text)[0].startswith(REGIONS[text])


def test_less_content_than_the_shape_is_filled_with_zeros() -> None:
    image = link([build(".mode i8\n.region r, i8, [4]\n.byte 7\n.core a, 0\nwait 0\n")], "out")
    content = image.config.region("r").content
    assert image.content[content.offset :][:4] == bytes([7, 0, 0, 0])
