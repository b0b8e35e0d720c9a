"""`sizeof`, `core`, `hg`, `vg` and distances that stand further down than they are used."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim.asm.assembler import assemble
from cim.asm.disassembler import disassemble
from cim.asm.elf import read_object, write_object
from cim.asm.linker import link
from cim.diagnostics import CimError, Diagnostic, Source
from tests.asm.test_elf import content


def build(*texts: str, remarks: list[Diagnostic] | None = None):
    sources = [Source(f"{i}.s", ".mode i8\n" + text) for i, text in enumerate(texts)]
    heard = remarks if remarks is not None else []
    return assemble(sources, "t.o", remark=heard.append)


def data(obj, owner: str) -> bytes:
    return next(s.data for s in obj.sections if s.owner == owner).tobytes()


def errors(*texts: str) -> list[str]:
    with pytest.raises(CimError) as raised:
        build(*texts)
    return [diagnostic.render() for diagnostic in raised.value.diagnostics]


CORES = ".core late, 3, hg=2, vg=7\nmvm\nmvm\n"


def test_functions_of_what_stands_further_down() -> None:
    use = ".region r, i8, [7]\n.byte sizeof(late), core(late), hg(late), vg(late), sizeof(r), sizeof(q)\n"
    text = use + CORES + ".region q, i32, [2, 3]\n"
    assert list(data(build(text), "r")) == [16, 3, 2, 7, 7, 24]
    assert list(data(build(use, CORES + ".region q, i32, [2, 3]\n"), "r")) == [16, 3, 2, 7, 7, 24]


def test_functions_choose_what_is_assembled() -> None:
    text = ".core a, 0\n.if sizeof(late) > 8\nwait 1\n.else\nwait 2\n.endif\n.rept core(late)\nmvm\n.endr\n"
    assert build(text + CORES).sections[0].size == 8 + 24


def test_an_equ_takes_a_distance_that_is_defined_after_it() -> None:
    text = '.equ n, end - start\n.region r, i8, [n + 2]\nstart: .byte n, sizeof(r)\n.ascii "abc"\nend:\n'
    assert list(data(build(text), "r")) == [5, 7, 97, 98, 99]


def test_another_pass_says_nothing_twice() -> None:
    heard: list[Diagnostic] = []
    build('.print "once"\n.region r, i8, [1]\n.byte e - s\ns: e:\n', remarks=heard)
    assert len(heard) == 1


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(0, 5), st.integers(0, 6), st.integers(0, 6)),
        max_size=6,
    )
)
def test_spaces_made_of_distances(lines: list[tuple[bool, int, int, int]]) -> None:
    """Either the sizes are those that the labels say, or the program says that they are circular."""
    count = len(lines)
    lines = [(m, size, *sorted((min(a, count), min(b, count)))) for m, size, a, b in lines]
    text = [".region r, i8, [100000]"]
    for index, (measured, size, a, b) in enumerate(lines):
        text.append(f"l{index}: .space {f'l{b} - l{a}' if measured else size}")
    text.append(f"l{count}:")

    def depends(index: int, seen: tuple[int, ...]) -> bool:
        """Whether the size of a line depends on itself."""
        measured, _, a, b = lines[index]
        inner = range(a, b) if measured else ()
        return any(i in seen or depends(i, (*seen, i)) for i in inner)

    if any(depends(index, (index,)) for index in range(count)):
        assert all("the size depends on itself" in found for found in errors("\n".join(text)))
        return

    def size_of(index: int) -> int:
        measured, size, a, b = lines[index]
        return sum(size_of(i) for i in range(a, b)) if measured else size

    made = build("\n".join(text))
    places = {symbol.name: symbol.value for symbol in made.symbols}
    ends = np.cumsum([0, *(size_of(index) for index in range(count))]).tolist()
    assert [places[f"l{index}"] for index in range(count + 1)] == ends


def test_the_core_number_of_another_object_is_a_relocation() -> None:
    uses = ".region r, i8, [14]\n.half core(far)\n.word core(far) + 1\n.quad core(far) + 2\n"
    one = build(uses + ".core a, 0\ncall core(far)\n")
    again = read_object(write_object(one), "t.o")
    assert content(again) == content(one)
    shown = "\n".join(disassemble(one))
    assert content(assemble([Source("d.s", shown)], "t.o")) == content(one)
    image = link([again, build(".core far, 9\nwait 1\n")], "out")
    start = image.config.region("r").content.offset
    numbers = np.frombuffer(image.content, np.uint8, 14, start)
    assert [numbers[:2].view("<u2")[0], *numbers[2:6].view("<u4"), *numbers[6:].view("<u8")] == [
        9,
        10,
        11,
    ]
    with pytest.raises(CimError, match="'far' is a region, not a core"):
        link([again, build(".region far, i8, [1]\n")], "out")


MISTAKES = {
    "s: .space e - s\ne:": (
        "0.s:4:4: error: the size depends on itself: on the distance from 's' to 'e', which holds this line"
    ),
    "a: .space d - c\nb:\nc: .space b - a\nd:": (
        "0.s:4:4: error: the size depends on itself: on the distance from 'c' to 'd', which holds another such "
        "line\n  a: .space d - c\n     ^^^^^^\n0.s:6:4: note: whose size depends on the distance from 'a' to 'b'"
    ),
    ".equ n, e - s\ns: .fill n, 1, 1\ne:": "0.s:5:4: error: the size depends on itself",
    ".core c, 0\n.rept sizeof(c)/8 + 1\nmvm\n.endr": (
        "0.s:5:7: error: the size depends on itself: on the size of 'c', which holds this line"
    ),
    ".byte e - s\n.if e - s\ns: .byte 1\n.endif\ne:": "0.s:4:9: error: cannot subtract the address 's' here: ",
    ".byte x - y": "0.s:4:9: error: cannot subtract the address 'y' here: 'x' is not defined in this assembly",
    "l: .region q, i8, [1]\nm: .byte m - l": (
        "0.s:5:12: error: cannot subtract the address 'l' here: 'm' is in .region.q, 'l' in .region.r, and only "
        "the linker knows how far apart they are"
    ),
    ".byte sizeof(nothing)": "0.s:4:7: error: 'nothing' is no core, region or section of this assembly, so its",
    ".byte sizeof(rr)": "; did you mean 'r'?",
    "l: .byte sizeof(l)": "0.s:4:10: error: 'l' is a label, which has no size",
    ".byte sizeof(3)": "0.s:4:7: error: sizeof takes the name of a core, region or section",
    ".byte sizeof(r + 1)": "0.s:4:7: error: sizeof takes the name of a core, region or section",
    ".byte sizeof(r, r)": "0.s:4:7: error: sizeof takes one name, not 2",
    ".byte hg(r)": "0.s:4:7: error: 'r' is a region, hg takes the name of a core",
    ".byte vg(far)": "0.s:4:7: error: core 'far' is not in this assembly, so vg(far) is not known",
    ".byte core(far)": "0.s:4:7: error: a core number needs .half, .word or .quad, not .byte",
    ".core a, 0\nwait core(far)": (
        "0.s:5:6: error: core 'far' is not in this assembly: its number can stand in call and in data, not here"
    ),
    ".core a, 0\nload ib[0:1], core(far)": (
        "0.s:5:15: error: must be an address, not the number of core 'far'"
    ),
    ".byte size(r)": "0.s:4:7: error: unknown function 'size'; there are min, max, sizeof, core, hg, vg",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_are_shown_where_they_stand(text: str) -> None:
    assert MISTAKES[text] in errors(".region r, i8, [1]\n.space 0\n" + text)[0]


LATE = {
    ".space N": 3, ".fill N, 1, 1": 3, ".org N + 2": 5, ".align N + 1": 4, ".byte N": 1, ".half N, -N": 4,
    ".rept N\n.byte 1\n.endr": 3, ".for k, N, 2*N\n.byte k\n.endfor": 3, ".if N == 3\n.byte 1\n.endif": 1,
    ".assert N == 3": 0, ".set m, N\n.space m": 3, ".let m = N\n.space m": 3, ".equ m, N\n.space m": 3,
    ".region q, i8, [N]\n.space 3": 3, ".for k, 0, 2\n.if k == N - 3\n.byte 1\n.endif\n.endfor": 1,
    ".core c, N + 1, hg=N, vg=N\n.crossbar rows=N, columns=1\n.space 6\n.param offset, N\n.region q, i8, [1]\n.byte N": 1,
    '.incbin "f", N - 3, N': 3,
}  # fmt: skip


@pytest.mark.parametrize("late", ["e - s", "sizeof(z)", "core(z)"])
@pytest.mark.parametrize("text", LATE)
def test_every_directive_takes_what_stands_further_down(text: str, late: str) -> None:
    before = f".mode i8\n.region r, i8, [99]\n.byte 0\n{text.replace('N', f'({late})')}\n"
    after = ".region t, i8, [3]\ns: .byte 1, 2, 3\ne:\n.section z\n.space 3\n"
    if late == "core(z)":
        after = ".core z, 3\n"
    made = assemble([Source("t.s", before + after)], "t.o", lambda _: b"abcdef")
    owner = "q" if ".region q" in text else "r"
    size = next(section.size for section in made.sections if section.owner == owner)
    placed = text.startswith((".org", ".align"))
    assert size == LATE[text] + (owner == "r" and not placed)


def test_what_never_comes_is_told_with_the_chain_that_led_there() -> None:
    text = ".macro m x\n.for k, 0, 2\n.word \\x + k\n.endfor\n.endm\n.region r, i8, [99]\n.byte 0\nm 9f\n.if 1\nm .Lx\n.endif\n"
    one, two = errors(text)
    assert one.split("\n") == [
        "0.s:4:7: error: there is no label '9:' after this line",
        "  .word 9f + k",
        "        ^^",
        "0.s:9:1: note: in the expansion of macro 'm'",
        "  m 9f",
        "  ^",
    ]
    assert two.startswith(
        "0.s:4:7: error: the local label '.Lx' is not defined\n  .word .Lx + k\n        ^^^\n0.s:11:1: note"
    )


@pytest.mark.parametrize(("directive", "bytes_"), [(".half", 2), (".word", 4), (".quad", 8)])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_core_numbers_of_other_objects_are_range_checked(
    directive: str, bytes_: int, more: int
) -> None:
    high = min(2 ** (8 * bytes_), 2**63) - 1
    for value, right in ((more, more >= 0), (high + more, more <= 0)):
        text = f".region r, i8, [8]\n{directive} core(far) + {value - 9}\n.core a, 0\n"
        objects = [build(text), build(".core far, 9\n")]
        if right:
            image = link(objects, "out")
            start = image.config.region("r").content.offset
            assert int.from_bytes(image.content[start : start + bytes_], "little") == value
            continue
        with pytest.raises(
            CimError, match=rf"0\.s:3:12: error: 'far' .* must be 0 to {high} in {bytes_} bytes"
        ):
            link(objects, "out")
