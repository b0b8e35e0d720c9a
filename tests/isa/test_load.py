"""A spec that does not hold together is refused, with its own message at its own line."""

import re

import pytest

from cim.diagnostics import CimError, Source
from cim.isa.load import load_isa, read_isa, spec_text

TEXT = spec_text("isa.toml")


def change(old: str, new: str, count: int = 1) -> str:
    assert old in TEXT
    return TEXT.replace(old, new, count)


def test_the_shipped_spec_loads() -> None:
    isa = load_isa()
    assert {i.timing_class for i in isa.instructions.values()} == {
        "load",
        "store",
        "mvm",
        "gpeu",
        "call",
        "wait",
    }


BROKEN = {
    "overlap": (change('lo = "18:9"', 'lo = "18:8"'), "bit 8 already belongs to 'buffer'"),
    "gap": (change('zero = "31:29"', 'zero = "31:30"'), "bit 29 belongs to no field"),
    "wide": (change('address = "63:32"', 'address = "64:32"'), "bits 64:32 are not within 63:0"),
    "not bits": (change('lo = "18:9"', 'lo = "18-9"'), "bits must be"),
    "fixed value": (change("opcode = 3 }", "opcode = 64 }"), "64 does not fit 'opcode' (0 to 63)"),
    "fixed field": (change("opcode = 3 }", "opcode = 3, x = 1 }"), "no field 'x'"),
    "clash": (
        change("fixed = { opcode = 2 }", "fixed = { opcode = 1 }"),
        "a word could be both 'load' and 'store'",
    ),
    "all zero": (change("fixed = { opcode = 3 }", "fixed = { opcode = 0 }"), "all-zero word"),
    "unused field": (change("sub = 0, b = 0, imm = 0", "sub = 0, imm = 0"), "field 'b' must be"),
    "unknown name": (
        change("block_until(SEQ_NR >= value)", "block_until(SEQ_NR >= valu)"),
        "unknown name 'valu'",
    ),
    "forbidden construct": (
        change("increment_seq_nr(core)\n", "increment_seq_nr(core if core else 1)\n"),
        "IfExp is not allowed",
    ),
    "python": (change("block_until(SEQ_NR >= value)", "block_until(SEQ_NR >="), "not valid Python"),
    "missing operand": (change('syntax = "call {core}"', 'syntax = "call"'), "differ in 'core'"),
    "unknown exception": (
        change('exceptions = ["no_such_core"]', 'exceptions = ["no_core"]'),
        "unknown exception 'no_core'",
    ),
    "unlisted exception": (
        change('exceptions = ["no_such_core"]', "exceptions = []"),
        "exception 'no_such_core' is not listed",
    ),
    "format": (change('format = "value"', 'format = "valu"'), "unknown format 'valu'"),
    "class": (change('class = "wait"', 'class = "weit"'), "class must be one of"),
    "mode": (change('modes = ["f32"]', 'modes = ["f16"]'), "unknown mode 'f16'"),
    "kind": (change('kind = "core"', 'kind = "cor"'), "kind must be one of"),
    "toml": (change('name = "cim"', 'name = "cim'), "not valid TOML"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_spec_is_refused_at_its_line(kind: str) -> None:
    text, message = BROKEN[kind]
    with pytest.raises(CimError) as raised:
        read_isa(Source("isa.toml", text))
    (diagnostic,) = raised.value.diagnostics
    assert message in diagnostic.message
    changed = [
        n
        for n, (a, b) in enumerate(zip(text.split("\n"), TEXT.split("\n"), strict=False), 1)
        if a != b
    ]
    assert diagnostic.span is not None
    if kind in ("overlap", "fixed value", "unknown name", "forbidden construct", "format", "class"):
        assert diagnostic.span.line == changed[0]
    elif kind == "unlisted exception":  # the line that raises it
        assert "no_such_core" in diagnostic.span.source.line(diagnostic.span.line)
    else:  # the head of the table that the line belongs to
        assert diagnostic.span.line <= changed[0]


TYPES = {
    "block_until(SEQ_NR >= value)": (
        "block_until(SEQ_NR)",
        "value 1 of block_until must be a bool, not an int",
    ),
    "ob[0:columns] = result": ("ob[0:columns] = W", "must be a vector, not a matrix"),
    "result = result + offset[0:columns]": (
        "result = result + W",
        "cannot calculate with a vector and a matrix",
    ),
    "dst[0:len] = a[0:len] * imm": (
        "dst[0:len] = a * imm",
        "cannot calculate with a buffer and a number",
    ),
    "f32(result)": ("f32(result, 3)", "f32 takes 1 values, not 2"),
    "written(ib, rows)": ("written(rows, ib)", "value 1 of written must be a buffer, not an int"),
    "ib[0:rows]": ("ib[0:]", "a slice must be [LO:HI]"),
    "rint(f32(result) * adc_mul[0:columns])": (
        "rows",
        "'result' is a vector, must not become an int",
    ),
    "dst[0:len] = zeros(len)": ("zeros(len)", "'zeros' has no effect as a statement"),
    "if integer:": ("if rows:", "the condition of `if` must be a bool, not an int"),
    "maximum(a[0:len], 0)": (
        "maximum(a[0:len] >= 0, 0)",
        "value 1 of maximum must be a vector, not a mask",
    ),
}


@pytest.mark.parametrize("old", TYPES)
def test_operations_are_type_checked(old: str) -> None:
    new, message = TYPES[old]
    text = change(old, new)
    with pytest.raises(CimError) as raised:
        read_isa(Source("isa.toml", text))
    (diagnostic,) = raised.value.diagnostics
    assert message in diagnostic.message
    assert diagnostic.span is not None
    assert new.split("\n")[0] in text.split("\n")[diagnostic.span.line - 1]


EXTENSION = """
[extension.toy]
version = "0.1"
prose = "For this test."
[extension.toy.instruction.mvm2]
mnemonic = "mvm2"
class = "mvm"
format = "plain"
fixed = { opcode = 9 }
syntax = "mvm2"
prose = "Nothing."
operation = "ob[0:columns] = zeros(columns)"
"""


def test_extensions_are_blocks_of_their_own() -> None:
    isa = read_isa(Source("isa.toml", TEXT + EXTENSION))
    assert isa.instructions["mvm2"].extension == "toy"
    assert isa.instructions["mvm"].extension == ""
    assert isa.extensions["toy"].version == "0.1"
    for old, new, message in (
        ('version = "0.1"\n', "", "'version' is missing"),
        ("opcode = 9", "opcode = 3", "a word could be both 'mvm' and 'mvm2'"),
        ("zeros(columns)", "zeroes(columns)", "'zeroes' is no primitive"),
    ):
        with pytest.raises(CimError, match=message):
            read_isa(Source("isa.toml", TEXT + EXTENSION.replace(old, new)))
    double = EXTENSION.replace("instruction.mvm2", "instruction.mvm")
    with pytest.raises(CimError, match="'mvm' is already an instruction"):
        read_isa(Source("isa.toml", TEXT + double))


def test_timing_must_name_every_class() -> None:
    with pytest.raises(CimError, match=r"\[timing\] must have exactly"):
        read_isa(
            Source(
                "isa.toml", re.sub(r'^mvm = "core\.mvm_cycles.*\n', "", TEXT, flags=re.MULTILINE)
            )
        )
