"""Printing and parsing an instruction are inverse, for every instruction, operand and mode."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

from cim.asm.assembler import assemble
from cim.diagnostics import Source
from cim.isa.encoding import decode, encode, immediate_value
from cim.isa.load import load_isa
from cim.isa.model import MODES
from cim.isa.printer import format_instruction
from cim.isa.strategies import Instance, boundary_words, instances

ISA = load_isa()


def assembled(lines: list[str], mode: str) -> np.ndarray:
    kind = "f32" if mode == "f32" else "i8"
    head = f".mode {mode}, ifm={kind}, ofm={kind}\n.extension attribute_buffer\n.core a, 0\n"
    obj = assemble([Source("t.s", head + "\n".join(lines))], "t.o")
    return obj.sections[0].data.view("<u8")


def finite(mode: str, x: Instance) -> bool:
    bits = x.operands.get("imm")
    return mode != "f32" or bits is None or bool(np.isfinite(immediate_value(bits, mode)))


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=150)
@given(x=instances())
def test_parse_inverts_print(mode: str, x: Instance) -> None:
    assume(mode in x.instruction.modes)
    words = encode(x.instruction, x.operands).reshape(1)
    assume(finite(mode, x))
    text = format_instruction(ISA, decode(ISA, words), 0, mode)
    np.testing.assert_array_equal(assembled([text], mode), words)
    np.testing.assert_array_equal(assembled([text.upper()], mode), words)


def test_every_word_at_a_boundary_is_printed_and_parsed() -> None:
    words = boundary_words()
    decoded = decode(ISA, words)
    legal = decoded.index >= 0
    in_mode = np.array(
        [i < 0 or "i8" in list(ISA.instructions.values())[i].modes for i in decoded.index]
    )
    chosen = words[legal & in_mode]
    again = decode(ISA, chosen)
    lines = [format_instruction(ISA, again, i, "i8") for i in range(len(chosen))]
    np.testing.assert_array_equal(assembled(lines, "i8"), chosen)
    assert len(chosen) > 100
