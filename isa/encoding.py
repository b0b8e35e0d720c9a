"""Words and operands, both ways, as NumPy arrays: the only code that knows bit positions."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cim.isa.model import Instruction, Isa, Operand

Words = NDArray[np.uint64]
WORD_BYTES = 8  # of an instruction
ILLEGAL = -1


class OperandError(ValueError):
    """An operand that cannot be encoded: which one, and the position of the first bad value."""

    def __init__(self, operand: str, index: int, message: str) -> None:
        super().__init__(message)
        self.operand = operand
        self.index = index


@dataclass(frozen=True)
class Decoded:
    """`index[i]` is the position of word i's instruction in `isa.instructions`, or `ILLEGAL`.

    `operands` holds one int64 array a name, zero where the instruction has no such operand.
    """

    index: NDArray[np.int16]
    operands: dict[str, NDArray[np.int64]]


def check_operand(operand: Operand, values: NDArray[np.int64]) -> None:
    """Raise `OperandError` with the range unless every value can be encoded."""
    bad = (values < operand.minimum) | (values > operand.maximum)
    if bad.any():
        index = int(np.argmax(bad))
        raise _out_of_range(operand, index, int(values.flat[index]))


def _out_of_range(operand: Operand, index: int, value: int) -> OperandError:
    text = f"{operand.name} is {value}, must be {operand.minimum} to {operand.maximum}"
    return OperandError(operand.name, index, text)


def encode(instruction: Instruction, operands: Mapping[str, ArrayLike]) -> Words:
    """The words of one instruction for arrays of operand values (scalars are broadcast).

    A buffer operand is its code, an immediate its 32 bits. Raises `OperandError` for a value out of range.
    """
    if all(isinstance(number, int) for number in operands.values()):
        one = _encode_one(instruction, cast("Mapping[str, int]", operands))
        return np.array(one, dtype=np.uint64)
    arrays = np.broadcast_arrays(
        *(np.asarray(operands[name], dtype=np.int64) for name in instruction.operands)
    )
    shape = arrays[0].shape if arrays else ()
    words = np.full(shape, instruction.match, dtype=np.uint64)
    values = dict(zip(instruction.operands, arrays, strict=True))
    for name, operand in instruction.operands.items():
        check_operand(operand, np.atleast_1d(values[name]))
        words |= (values[name] - operand.bias).astype(np.uint64) << np.uint64(operand.field.lsb)
    for constraint in instruction.constraints:
        holds = np.atleast_1d(_holds(constraint, values))
        if not holds.all():
            index = int(np.argmin(holds))
            bad = {name: np.atleast_1d(value).flat[index] for name, value in values.items()}
            raise _broken(instruction, constraint, index, bad)
    return words


def _encode_one(instruction: Instruction, values: Mapping[str, int]) -> int:
    """As `encode`, without arrays: ten times as fast for a single word."""
    word = instruction.match
    for name, operand in instruction.operands.items():
        value = values[name]
        if not operand.minimum <= value <= operand.maximum:
            raise _out_of_range(operand, 0, value)
        word |= (value - operand.bias) << operand.field.lsb
    for constraint in instruction.constraints:
        if not _holds(constraint, values):
            raise _broken(instruction, constraint, 0, values)
    return word


def _broken(
    instruction: Instruction, constraint: str, index: int, values: Mapping[str, int]
) -> OperandError:
    """The error for a constraint that operands break, all of which are shown in the order of the spec."""
    words = constraint.split()
    named = [name for name in instruction.operands if name in words]
    shown = ", ".join(f"{name} is {values[name]}" for name in named)
    return OperandError(words[0], index, f"{shown}; must be {constraint}")


def identify(isa: Isa, words: Words) -> NDArray[np.int16]:
    """The number of each word's instruction by opcode and reserved bits alone, else `ILLEGAL`."""
    index = np.full(words.shape, ILLEGAL, dtype=np.int16)
    for number, instruction in enumerate(isa.instructions.values()):
        index[(words & np.uint64(instruction.mask)) == np.uint64(instruction.match)] = number
    return index


def decode(isa: Isa, words: Words) -> Decoded:
    """Take words apart. A word with a reserved bit set, or that breaks a constraint, is illegal."""
    words = np.ascontiguousarray(words, dtype=np.uint64)
    index = identify(isa, words)
    names = {name for i in isa.instructions.values() for name in i.operands}
    operands = {name: np.zeros(words.shape, dtype=np.int64) for name in sorted(names)}
    codes = np.array([buffer.code for buffer in isa.buffers.values()])
    for number, instruction in enumerate(isa.instructions.values()):
        chosen = np.flatnonzero(index == number)
        if not chosen.size:
            continue
        values = {
            name: field_values(operand, words[chosen])
            for name, operand in instruction.operands.items()
        }
        legal = np.ones(chosen.shape, dtype=bool)
        for name, operand in instruction.operands.items():
            if operand.kind == "buffer":
                legal &= np.isin(values[name], codes)
        for constraint in instruction.constraints:
            legal &= _holds(constraint, values)
        index[chosen[~legal]] = ILLEGAL
        for name, value in values.items():
            operands[name][chosen[legal]] = value[legal]
    return Decoded(index, operands)


def field_values(operand: Operand, words: Words) -> NDArray[np.int64]:
    """An operand's values in words that are known to be of its instruction."""
    raw = (words >> np.uint64(operand.field.lsb)) & np.uint64(operand.field.limit)
    return raw.astype(np.int64) + operand.bias


def patch(operand: Operand, words: Words, values: NDArray[np.int64]) -> Words:
    """The words with one operand replaced. Raises `OperandError` for a value out of range."""
    check_operand(operand, values)
    cleared = words & np.uint64(~operand.field.mask & (2**64 - 1))
    return cleared | ((values - operand.bias).astype(np.uint64) << np.uint64(operand.field.lsb))


def _holds(constraint: str, values: Mapping[str, Any]) -> Any:
    """Whether a constraint holds: for numbers a bool, for arrays an array of them."""
    left, relation, right = constraint.split()
    return _RELATIONS[relation](values[left], values[right])


_RELATIONS = {"<": operator.lt, "<=": operator.le, "!=": operator.ne}


def immediate_bits(values: ArrayLike, mode: str) -> NDArray[np.int64]:
    """The 32 bits of GPEU immediates: float32 in mode `f32`, else int32. Raises `ValueError`."""
    if mode == "f32":
        with np.errstate(over="ignore"):
            return np.asarray(values, dtype=np.float32).view(np.uint32).astype(np.int64)
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iu" or np.any((numbers < -(2**31)) | (numbers >= 2**31)):
        raise ValueError(f"an immediate must be an integer from {-(2**31)} to {2**31 - 1}")
    return numbers.astype(np.int64) & 0xFFFFFFFF


def immediate_value(bits: int, mode: str) -> float:
    """The number that a GPEU immediate's bits mean: a float in mode `f32`, else an int."""
    if mode == "f32":
        return float(np.uint32(bits).view(np.float32))
    return int(np.uint32(bits).view(np.int32))
