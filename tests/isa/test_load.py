"""A spec that does not hold together is refused, with its own message at its own line."""

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


def test_an_instruction_is_added_by_the_spec_alone() -> None:
    new = """
[instruction."gpeu.neg"]
mnemonic = "gpeu.neg"
class = "gpeu"
format = "gpeu"
fixed = { opcode = 4, sub = 20, b = 0, imm = 0 }
syntax = "gpeu.neg {dst}, {a}, len={len}"
exceptions = ["buffer_range"]
prose = "Negate."
operation = \"\"\"
require(len <= length(dst), "buffer_range")
dst[0:len] = zeros(len) - a[0:len]
\"\"\"
[instruction."gpeu.neg".operands]
dst = { kind = "buffer", field = "dst" }
a = { kind = "buffer", field = "a" }
len = { kind = "unsigned", field = "last", bias = 1, default = "columns" }
"""
    import numpy as np

    from cim.isa.encoding import encode
    from cim.isa.interpreter import CoreProgram, Interpreter
    from cim.isa.numerics import NumericMode

    isa = read_isa(Source("isa.toml", TEXT + new))
    load = encode(isa.instructions["load"], {"buffer": 2, "lo": 0, "hi": 2, "address": 0})
    neg = encode(isa.instructions["gpeu.neg"], {"dst": 1, "a": 2, "len": 2})
    store = encode(isa.instructions["store"], {"buffer": 1, "lo": 0, "hi": 2, "address": 8})
    memory = np.zeros(16, dtype=np.uint8)
    memory[:8] = np.array([5, -7], dtype="<i4").view(np.uint8)
    program = CoreProgram(np.array([load, neg, store]))
    Interpreter(isa, NumericMode("i8", "i8", "i8"), (4, 4), memory, [program]).run()
    assert memory[8:].view("<i4").tolist() == [-5, 7]
