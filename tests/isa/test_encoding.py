"""Words and operands, both ways."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.isa.encoding import (
    ILLEGAL,
    OperandError,
    decode,
    encode,
    immediate_bits,
    immediate_value,
    patch,
)
from cim.isa.load import load_isa
from cim.isa.strategies import Instance, instances, words

ISA = load_isa()
ALL = list(ISA.instructions.values())


@given(st.lists(instances(), min_size=1, max_size=20))
def test_decode_inverts_encode(program: list[Instance]) -> None:
    encoded = np.array([encode(x.instruction, x.operands) for x in program], dtype=np.uint64)
    decoded = decode(ISA, encoded)
    for i, x in enumerate(program):
        assert ALL[decoded.index[i]] is x.instruction
        for name in decoded.operands:
            assert decoded.operands[name][i] == x.operands.get(name, 0)


@given(instances(), st.data())
def test_one_word_is_encoded_like_many(x: Instance, data: st.DataObject) -> None:
    values = dict(x.operands)
    if values and data.draw(st.booleans()):
        values[data.draw(st.sampled_from(sorted(values)))] = data.draw(st.integers(-2, 2**33))

    def outcome(operands):
        try:
            return np.atleast_1d(encode(x.instruction, operands)).tolist()
        except OperandError as problem:
            return problem.operand, problem.index, str(problem)

    arrays = {name: np.array([value]) for name, value in values.items()}
    assert outcome({name: int(value) for name, value in values.items()}) == outcome(arrays)


@settings(max_examples=300)
@given(words())
def test_encode_inverts_decode_for_every_accepted_word(word: int) -> None:
    decoded = decode(ISA, np.array([word], dtype=np.uint64))
    matching = [i for i in ALL if word & i.mask == i.match]
    assert len(matching) <= 1
    if decoded.index[0] == ILLEGAL:
        return
    instruction = ALL[decoded.index[0]]
    operands = {name: decoded.operands[name] for name in instruction.operands}
    assert np.atleast_1d(encode(instruction, operands)).tolist() == [word]


def test_a_million_random_words_are_at_most_one_instruction() -> None:
    random = np.random.default_rng(0).integers(0, 2**64, 1_000_000, dtype=np.uint64)
    matches = np.zeros(len(random), dtype=int)
    for instruction in ALL:
        matches += (random & np.uint64(instruction.mask)) == np.uint64(instruction.match)
    assert matches.max() <= 1


def test_all_zero_and_all_one_are_illegal() -> None:
    assert decode(ISA, np.array([0, 2**64 - 1], dtype=np.uint64)).index.tolist() == [ILLEGAL] * 2


@pytest.mark.parametrize("instruction", ALL, ids=lambda i: i.name)
def test_every_reserved_bit_makes_a_word_illegal(instruction) -> None:
    operands = {n: max(o.minimum, 1) for n, o in instruction.operands.items()}
    if "lo" in operands:
        operands["lo"] = 0
    word = int(encode(instruction, operands))
    reserved = [f for f in instruction.fields if f.reserved]
    for field in reserved:
        for bit in range(field.lsb, field.lsb + field.width):
            changed = np.array([word | 1 << bit], dtype=np.uint64)
            assert decode(ISA, changed).index[0] == ILLEGAL


@pytest.mark.parametrize("instruction", ALL, ids=lambda i: i.name)
def test_one_below_and_one_above_every_field_is_refused_with_the_range(instruction) -> None:
    good = {n: o.minimum for n, o in instruction.operands.items()}
    for name, operand in instruction.operands.items():
        for value in (operand.minimum - 1, operand.maximum + 1):
            with pytest.raises(OperandError) as raised:
                encode(instruction, good | {name: value})
            assert f"must be {operand.minimum} to {operand.maximum}" in str(raised.value)


def test_lo_must_be_below_hi() -> None:
    load = ISA.instructions["load"]
    with pytest.raises(OperandError, match="lo is 3, hi is 3; must be lo < hi"):
        encode(load, {"buffer": 0, "lo": 3, "hi": 3, "address": 0})
    # The same as a word: lo = 3 (bits 18:9), hi - 1 = 2 (bits 28:19).
    word = 1 | 3 << 9 | 2 << 19
    assert decode(ISA, np.array([word], dtype=np.uint64)).index[0] == ILLEGAL


def test_arrays_are_encoded_element_by_element() -> None:
    load = ISA.instructions["load"]
    addresses = np.arange(5) * 32
    together = encode(load, {"buffer": 2, "lo": 0, "hi": 32, "address": addresses})
    alone = [encode(load, {"buffer": 2, "lo": 0, "hi": 32, "address": a}) for a in addresses]
    assert together.tolist() == [int(w) for w in alone]


@given(instances(), st.integers(0, 2**32 - 1))
def test_patch_changes_one_operand_only(x: Instance, address: int) -> None:
    for name, operand in x.instruction.operands.items():
        if operand.kind != "address":
            continue
        word = np.atleast_1d(encode(x.instruction, x.operands))
        patched = patch(operand, word, np.array([address]))
        assert patched.tolist() == [int(encode(x.instruction, x.operands | {name: address}))]


@given(st.integers(-(2**31), 2**31 - 1))
def test_integer_immediates_survive(value: int) -> None:
    assert immediate_value(int(immediate_bits(value, "i8")), "i8") == value


@given(st.floats(width=32, allow_nan=False))
def test_float_immediates_survive(value: float) -> None:
    assert immediate_value(int(immediate_bits(value, "f32")), "f32") == value


@pytest.mark.parametrize("value", [-(2**31) - 1, 2**31, 0.5])
def test_integer_immediates_out_of_range_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="must be an integer from"):
        immediate_bits(value, "i8")
