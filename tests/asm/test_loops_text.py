"""Rolling programs into loops: the text assembles to the same bytes, and is short where it can be."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.asm.assembler import assemble
from cim.asm.disassembler import disassemble, image_as_object
from cim.asm.linker import link
from cim.asm.objects import Object
from cim.asm.program_text import Show
from cim.asm.progressions import FEWEST_FOR_JUMPS, Progression, fit
from cim.codegen.compile_layer import compile_layer
from cim.codegen.layer import Activation, Layer
from cim.codegen.schedule import SCHEMES
from cim.diagnostics import Source
from cim.isa.machine import load_machine


def assembled(text: str, weights: bytes = b"") -> Object:
    return assemble([Source("t.s", text)], "t.o", lambda _: weights)


def rolled(obj: Object) -> list[str]:
    return list(disassemble(obj, Show(loops=True)))


def content(obj: Object):
    sections = []
    for section in obj.sections:
        rows = [
            (int(r["offset"]), int(r["type"]), obj.symbols[int(r["symbol"])].name, int(r["addend"]))
            for r in section.relocations
        ]
        sections.append((section.name, section.align, section.data.tobytes(), rows))
    return sections, obj.symbols, obj.attributes.cores, obj.attributes.regions


def program_of(lines: list[str]) -> list[str]:
    """The lines of the one program, without comments."""
    start = next(i for i, line in enumerate(lines) if line.startswith(".core")) + 1
    end = lines.index("", start) if "" in lines[start:] else len(lines)
    return [line.split("#")[0].rstrip() for line in lines[start:end]]


def check(text: str) -> list[str]:
    obj = assembled(text)
    lines = rolled(obj)
    assert content(assembled("\n".join(lines))) == content(obj)
    return program_of(lines)


HEAD = ".mode i8\n.core a, 0\n"


def test_a_loop_of_loops() -> None:
    assert check(
        HEAD + ".for y, 0, 5\nwait y\n.for x, 0, 6\nload ib[x:x+2], r + 100*y + 4*x\n.endfor\n"
        "call b\nmvm\n.endfor\nwait 9\n"
    ) == [
        ".for i, 0, 5",
        "  wait i",
        "  .for j, 0, 6",
        "    load ib[j:2 + j], r + 100*i + 4*j",
        "  .endfor",
        "  call b",
        "  mvm",
        ".endfor",
        "  wait 9",
    ]


def test_the_ends_of_rows_are_jumps() -> None:
    assert check(
        HEAD
        + ".for g, 0, 40\nload ib[0:1], r + (3*g + 1)/14*1000 + (3*g + 1)%14*16\nmvm\n.endfor\n"
    ) == [
        ".for i, 0, 40",
        "  load ib[0:1], r + 16 + 48*i + 776*((3*i + 1)/14)",
        "  mvm",
        ".endfor",
    ]


def test_down_and_immediates_and_quads_and_names() -> None:
    assert check(
        HEAD + ".for k, 0, 9\nload ib[0:1], i - 8*k\ngpeu.add ob, ob, 7 - 3*k, len=4\n"
        ".quad 0xFFFF_FFFF_FFFF_FFFF\n.quad i + k\nload ib[0:1], 4096 - 4*k\n.endfor\n"
    ) == [
        ".for j, 0, 9",
        "  load ib[0:1], i - 8*j",
        "  gpeu.add ob, ob, 7 - 3*j, len=4",
        "  .quad 0xffffffffffffffff",
        "  .quad i + j",
        "  load ib[0:1], 0x1000 - 4*j",
        ".endfor",
    ]


def test_labels_stay_outside() -> None:
    text = "wait 1\nwait 2\nwait 3\nwait 4\n"
    assert check(f"{HEAD}{text}middle:\n{text}end:\n") == [
        ".for i, 0, 4", "  wait 1 + i", ".endfor", "middle:",
        ".for i, 0, 4", "  wait 1 + i", ".endfor", "end:",
    ]  # fmt: skip


instruction = st.sampled_from(
    ["mvm", "wait {0}", "load ib[{1}:{2}], r + {0}", "store {0}, rb[0:{2}]", "call b", "call {1}",
     "gpeu.add ob, ob, {0}, len={2}", "gpeu.mov rb, ob, len=1", ".quad 0", ".quad r - {0}", "wait k"]
)  # fmt: skip


@st.composite
def bodies(draw, depth: int = 0):
    """Random programs, many of them with loops, some with things that nearly are."""
    lines = []
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.integers(0, 3))
        if kind == 3 and depth < 3:
            variable = "xyz"[depth]
            count = draw(st.integers(1, 12))
            lines += [f".for {variable}, 0, {count}", *draw(bodies(depth + 1)), ".endfor"]
            continue
        numbers = []
        for _ in range(3):
            number = f"{draw(st.integers(0, 9))}"
            for variable in "xyz"[:depth]:
                step, width = draw(st.integers(0, 7)), draw(st.integers(1, 5))
                number += f" + {step}*{variable} + {draw(st.integers(0, 3))}*({variable}/{width})"
            numbers.append(number)
        numbers[2] = f"{numbers[1]} + 1"
        lines.append(draw(instruction).format(*numbers).replace("wait k", "wait 77"))
    return lines


@settings(max_examples=200)
@given(bodies(), st.sampled_from(["i8", "f32"]))
def test_random_programs_assemble_to_the_same(body: list[str], mode: str) -> None:
    lines = [line for line in body if mode == "i8" or "gpeu.add" not in line]
    text = f".mode {mode}\n.core b, 1\n" + "\n".join(lines or ["mvm"])
    plain = assembled(text)
    again = rolled(plain)
    assert content(assembled("\n".join(again))) == content(plain)
    assert len(again) <= len(list(disassemble(plain)))


@given(st.lists(st.integers(0, 3), max_size=200))
def test_random_instructions_assemble_to_the_same(kinds: list[int]) -> None:
    choice = ["mvm", "wait 1", "wait 2", "load ib[0:1], r"]
    check(HEAD + "\n".join(choice[kind] for kind in kinds))


def layer(channels: int, kernels: int, size: int, side: int) -> Layer:
    weights = np.ones((side, side, channels, kernels), dtype=np.float32)
    out = size - side + 1
    return Layer(
        "layer", "Conv", "NCHW", "x", "y", (1, channels, size, size), (1, kernels, out, out),
        np.dtype("f4"), np.dtype("f4"), weights, None, (1, 1), (1, 1), (0, 0, 0, 0),
        Activation("relu"), None,
    )  # fmt: skip


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_compiled_core_reads_as_it_was_written(scheme: str) -> None:
    machine = load_machine("default", ["core.crossbar=8x32"])
    compiled = compile_layer(layer(8, 8, 80, 3), machine, scheme, "layer")
    for name, text in list(compiled.program.texts.items())[:-1]:
        obj = assembled(text, compiled.program.weights[1])
        lines = rolled(obj)
        size = next(s.size for s in obj.sections if s.kind == "text")
        assert size // 8 > 20_000, name
        assert len(program_of(lines)) <= 40, name
        assert content(assembled("\n".join(lines)))[0][0] == content(obj)[0][0]


@settings(max_examples=25)
@given(
    st.integers(1, 5), st.integers(1, 4), st.integers(4, 13), st.integers(1, 4),
    st.sampled_from(SCHEMES), st.integers(1, 12),
)  # fmt: skip
def test_compiled_layers_assemble_to_the_same(c, k, size, side, scheme: str, rows: int) -> None:
    machine = load_machine("default", [f"core.crossbar=4x{rows}"])
    compiled = compile_layer(layer(c, k, size, side), machine, scheme, "layer")
    weights = compiled.program.weights[1]
    for text in compiled.program.texts.values():
        obj = assembled(text, weights)
        assert content(assembled("\n".join(rolled(obj)))) == content(obj)
    image = compiled.image()
    shown = image_as_object(image)
    again = assembled("\n".join(rolled(shown)))
    assert content(again)[0] == content(shown)[0]
    linked = link([again], "again")
    assert [image.words(core).tobytes() for core in image.config.cores] == [
        linked.words(core).tobytes() for core in linked.config.cores
    ]


def test_what_has_no_loops_takes_no_time() -> None:
    rng = np.random.default_rng(0)
    for count, text in ((4_000, "load ib[0:1], {}"), (4_000, "wait {}")):
        obj = assembled(HEAD + "\n".join(text.format(n) for n in rng.integers(0, 2**31, count)))
        start = time.perf_counter()
        assert len(rolled(obj)) > count * 0.9
        assert time.perf_counter() - start < 10  # under 2 s where this was written


# --- progressions ------------------------------------------------------------------------------------------


@given(
    st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 30), st.integers(0, 100),
    st.integers(2, 30), st.integers(2, 200),
)  # fmt: skip
def test_what_fits_gives_the_values_back(step, jump, a, b, w, count) -> None:
    k = np.arange(count)
    values = step * k + jump * ((a * k + b) // w)
    rows, (found,) = fit(values[:, None])
    assert rows >= min(count, 2)
    made = found.step * k + found.jump * ((found.a * k + found.b) // found.w)
    np.testing.assert_array_equal(made[:rows], values[:rows] - values[0])
    if count > 2 * w and a < w and count >= FEWEST_FOR_JUMPS:
        assert rows == count


def test_text_of_progressions() -> None:
    assert not Progression(0).text("k")
    assert Progression(1).text("k") == " + k"
    assert Progression(-4, 7, 1, 0, 5).text("k") == " - 4*k + 7*(k/5)"
    assert Progression(0, -1, 3, 2, 5).text("k") == " - ((3*k + 2)/5)"
