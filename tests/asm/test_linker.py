"""Linking: symbols across objects, layout, capacities, images."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.asm.assembler import assemble
from cim.asm.elf import read_object, write_object
from cim.asm.image import Image, encode_config
from cim.asm.linker import link
from cim.asm.read_image import read_image
from cim.asm.synchronization import check_synchronization
from cim.diagnostics import CimError, Source
from cim.files import write_all
from cim.isa.encoding import decode
from cim.isa.load import load_isa

DATA = ".mode i8\n.region x, i8, [8]\n.region y, i32, [4]\n"
CORE0 = ".mode i8\n.core a, 0\nload ib[0:4], x + 4\ncall b\n"
CORE1 = ".mode i8\n.core b, 1\nwait 1\nstore y, ob[0:4]\n"


def objects(*texts: str):
    return [assemble([Source(f"{i}.s", text)], f"{i}.o") for i, text in enumerate(texts)]


def linked(*texts: str) -> Image:
    return link(objects(*texts), "out")


def messages(*texts: str) -> list[str]:
    with pytest.raises(CimError) as raised:
        linked(*texts)
    return [d.render() for d in raised.value.diagnostics]


def test_symbols_resolve_across_objects() -> None:
    image = linked(DATA, CORE0, CORE1)
    a, b = image.config.cores
    first = decode(load_isa(), image.words(a)).operands
    assert first["address"][0] == image.config.region("x").address + 4
    assert first["core"][1] == 1
    assert (
        decode(load_isa(), image.words(b)).operands["address"][1]
        == image.config.region("y").address
    )
    assert image.location(a, 1).line == 4
    assert image.location(b, 1) == image.config.locations[3]


@given(st.permutations([0, 1, 2]))
def test_the_order_of_objects_does_not_matter(order: list[int]) -> None:
    made = objects(DATA, CORE0, CORE1)
    one, two = link(made, "out"), link([made[i] for i in order], "out")
    assert one.content == two.content
    assert encode_config(one.config) == encode_config(two.config)


def test_an_object_read_back_links_to_the_same_image() -> None:
    made = objects(DATA, CORE0, CORE1)
    again = [read_object(write_object(o), o.name) for o in made]
    assert encode_config(link(made, "out").config) == encode_config(link(again, "out").config)


def test_undefined_symbols_name_every_line_that_uses_them() -> None:
    text = CORE1 + "load ib[0:4], z\n.for k, 0, 3\nload ib[0:4], z + k\n.endfor\ncall c\n"
    found = messages(DATA, CORE0, text)
    assert found[0] == "2.s:5:15: error: undefined symbol 'z'\nnote: also used at 2.s:7:15"
    assert found[1] == "2.s:9:6: error: undefined symbol 'c'"
    assert (
        "did you mean 'regional'"
        in messages(".mode i8\n.region regional, i8, [1]\n.core a, 0\nload ib[0:1], regionl\n")[0]
    )


def test_duplicates_name_both_places() -> None:
    found = messages(DATA, CORE0, CORE1, ".region x, i8, [1]\n")
    assert found == ["3.s:1:9: error: duplicate symbol 'x'\nnote: first defined at 0.s:2:9"]
    found = messages(DATA, CORE0, CORE1, ".core c, 1\n")
    assert found == [
        "3.s:1:7: error: core number 1 is 'c' here and 'b' in 2.o\nnote: first defined at 2.s:2:7"
    ]


def test_a_call_needs_a_core() -> None:
    assert messages(DATA, CORE0.replace("call b", "call y"))[0].startswith(
        "1.s:4:6: error: 'y' is a region, not a core"
    )


MACHINE = '.machine "default", "core.crossbar=4x8", {}\n'
LIMITS = {
    "rows": ('"core.count=2"', ".crossbar rows=9, columns=4\n.fill 36, 2, 1\n",
             "core 'a' (number 0) uses 9 rows, a 4x8 crossbar has 8 inputs: 1 too many (core.crossbar)"),
    "columns": ('"core.count=2"', ".crossbar rows=8, columns=6\n.fill 48, 2, 1\n",
                "core 'a' (number 0) uses 6 columns, a 4x8 crossbar has 4 outputs: 2 too many"),
    "cells": ('"core.weight_bits=4"', ".crossbar rows=1, columns=3\n.half 7, -8, 8\n",
              "cell [row 0][column 2] of core 'a' (number 0) is 8, 4-bit cells hold -8 to 7"),
    "content": ('"core.count=2"', ".crossbar rows=2, columns=2\n.half 1, 2, 3\n",
                "the crossbar of core 'a' (number 0) has 6 bytes of content, 2 rows of 2 columns in mode "
                "i8 are 8"),
    "count": ('"core.count=1"', ".core b, 3\n", "core 3 does not exist: the machine 'default' has 1 cores, "
              "4 are needed (core.count)"),
    "memory": ('"memory.size_bytes=100"', ".region big, i8, [101]\n",
               "shared memory needs 128 bytes, 100 are there: 28 too many (memory.size_bytes)"),
    "parameter": ('"core.count=2"', ".crossbar rows=1, columns=3\n.half 1, 2, 3\n.param offset, 1, 2\n",
                  "parameter 'offset' of core 'a' (number 0) has 2 values, must have 1 or 3"),
    "region": ('"core.count=2"', ".region r, i8, [2]\n.byte 1, 2, 3\n",
               "region 'r' has 3 bytes of content, its shape and type are 2: 1 too many"),
    "mode": ('"core.partial_sum=narrow"', "mvm\n", "mode i8 needs core.partial_sum = wide, the machine "
             "'default' has narrow"),
}  # fmt: skip


@pytest.mark.parametrize("limit", LIMITS)
def test_what_does_not_fit_is_said_with_numbers(limit: str) -> None:
    setting, text, message = LIMITS[limit]
    found = messages(MACHINE.format(setting) + ".mode i8\n.core a, 0\n" + text)
    assert message in found[0]


def test_modes_and_machines_must_agree() -> None:
    assert (
        "1.o: error: has .mode i8n, ifm=i8, ofm=i8, 0.o has i8"
        in messages(DATA, CORE0.replace("i8\n", "i8n\n", 1))[0]
    )
    assert (
        "1.o: error: has another .machine than 0.o"
        in messages(DATA + '.machine "default"\n', '.machine "pelke23"\n' + CORE0)[0]
    )
    assert "no object has a .mode" in messages(".core a, 0\nmvm\n")[0]
    assert "there is no core" in messages(DATA)[0]


def test_data_relocations() -> None:
    text = DATA + ".core a, 0\nmvm\n.region t, i32, [4]\n.word x + 2, y\n.quad y\n"
    image = linked(text)
    config = image.config
    memory = image.memory()
    table = memory[config.region("t").address :][:16].view("<u4")
    x, y = config.region("x").address, config.region("y").address
    assert table.tolist() == [x + 2, y, y, 0]


def test_a_wait_that_nobody_can_release() -> None:
    image = linked(DATA, CORE0, CORE1.replace("wait 1", "wait 2"))
    (found,) = check_synchronization(image)
    assert found.render().startswith(
        "2.s:3: error: wait 2 of core 'b' can never end: all programs together have 1 calls of it\n"
        "note: it is called by a (1)"
    )
    assert check_synchronization(linked(DATA, CORE0, CORE1)) == []
    (found,) = check_synchronization(linked(DATA, CORE0.replace("call b", "call 7")))
    assert "core 7 is called by a (1), but has no program" in found.message


# --- images on disk ----------------------------------------------------------------------------------


def write(image: Image, folder: Path) -> Path:
    write_all({folder / "out.bin": image.content, folder / "out.cfg": encode_config(image.config)})
    return folder / "out.cfg"


def test_write_and_read(tmp_path: Path) -> None:
    image = linked(DATA, CORE0, CORE1)
    again = read_image(write(image, tmp_path))
    assert again.config == image.config
    assert again.content == image.content
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.bin", "out.cfg"]


@settings(max_examples=50)
@given(st.data())
def test_a_flipped_byte_in_the_bin_is_refused(tmp_path_factory, data) -> None:
    folder = tmp_path_factory.mktemp("flip")
    path = write(linked(DATA, CORE0, CORE1), folder)
    raw = bytearray((folder / "out.bin").read_bytes())
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    (folder / "out.bin").write_bytes(raw)
    with pytest.raises(CimError, match=r"does not belong to out\.cfg"):
        read_image(path)


def test_versions_and_extensions_are_named(tmp_path: Path) -> None:
    image = linked(DATA, CORE0, CORE1)
    for change, message in (
        ({"isa_version": "9.0"}, "ISA version is 9.0, this toolchain reads 1.0"),
        (
            {"extensions": ["loops"]},
            "needs ISA extension 'loops', this toolchain has attribute_buffer",
        ),
    ):
        config = type(image.config)(**{f: getattr(image.config, f) for f in image.config.__struct_fields__}
                                    | change)  # fmt: skip
        with pytest.raises(CimError, match=message):
            read_image(write(replace(image, config=config), tmp_path))
    path = write(image, tmp_path)
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 2'))
    with pytest.raises(CimError, match="cfg format version is 2, this toolchain reads 1"):
        read_image(path)


@settings(max_examples=100)
@given(st.data())
def test_a_damaged_cfg_is_a_diagnostic(tmp_path_factory, data) -> None:
    folder = tmp_path_factory.mktemp("cfg")
    path = write(linked(DATA, CORE0, CORE1), folder)
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(raw)
    try:
        image = read_image(path)
    except CimError:
        return
    # Accepted: then every array that it describes can be taken out of it.
    image.memory()
    for core in image.config.cores:
        image.words(core)
        image.weights(core)
        image.parameters(core)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(CimError, match=r"none\.cfg: error: cannot read: No such file"):
        read_image(tmp_path / "none.cfg")
    (tmp_path / "x.cfg").write_text("{}")
    with pytest.raises(CimError, match="is not a cfg of cim-ld"):
        read_image(tmp_path / "x.cfg")
    path = write(linked(DATA, CORE0, CORE1), tmp_path)
    (tmp_path / "out.bin").unlink()
    with pytest.raises(CimError, match=r"out\.bin: error: cannot read"):
        read_image(path)


def test_parameters_and_weights_arrive(tmp_path: Path) -> None:
    image = linked(
        DATA + ".core a, 0\n.crossbar rows=2, columns=3\n.half 1, 2, 3, 4, 5, -6\n"
        ".param offset, 7\n.param mul_pos, 0.5, 1, 1.5\n.text\nmvm\n"
    )
    (core,) = read_image(write(image, tmp_path)).config.cores
    weights = image.weights(core)
    assert weights is not None
    assert weights.tolist() == [[1, 2, 3], [4, 5, -6]]
    parameters = image.parameters(core)
    assert parameters["offset"].tolist() == [7, 7, 7]
    assert parameters["mul_pos"].dtype == np.float32
    assert parameters["mul_pos"].tolist() == [0.5, 1, 1.5]


REFUSED = {
    '"bin_name": "out.bin"': ('"bin_name": "../out.bin"', "bin_name must be a file name"),
    '"isa": "cim"': ('"isa": "mic"', "ISA is mic, this toolchain reads cim"),
    '"crossbar": "128x128"': ('"crossbar": "1x4096"', "both sides must be 1 to 1024"),
    '"partial_sum": "wide"': ('"partial_sum": "narrow"', "mode i8 needs wide partial sums"),
    '"count": "auto"': ('"count": 1', "the machine has 1 cores"),
    '"name": "y"': ('"name": "x"', "two regions have the same name"),
    '"size_bytes": 16': ('"size_bytes": 12', "region y has 12 bytes, its shape and type are 16"),
    '"address": 64': ('"address": 0', "region y overlaps region x"),
    '"number": 1': ('"number": 0', "two cores have the same number"),
    '"rows": 0': ('"rows": 500', "uses 0x500 of a 128x128 crossbar"),
    '"parameters": {}': (
        '"parameters": {"ofset": {"offset": 16, "size": 0}}',
        "unknown parameter 'ofset'",
    ),
    '"weights": null': ('"weights": {"offset": 16, "size": 2}', "must have weights for its cells"),
}


@pytest.mark.parametrize("old", REFUSED)
def test_a_cfg_that_does_not_hold_together_is_refused(old: str, tmp_path: Path) -> None:
    new, message = REFUSED[old]
    path = write(linked(DATA, CORE0, CORE1), tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(CimError) as raised:
        read_image(path)
    assert message in raised.value.diagnostics[0].message


def test_a_label_in_a_crossbar_has_no_address() -> None:
    cells = ".crossbar rows=1, columns=2\nwhere: .half 1, 2\n.text\nload ib[0:1], where\n"
    assert messages(f".mode i8\n.core a, 0\n{cells}") == [
        "0.o: error: 'where' is in .crossbar.a, which has no address"
    ]
