"""Which instructions name elements that a buffer of the machine does not have, as the spec's operations say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.isa.machine import Machine
from cim.isa.model import Instruction, Isa

_BOUND = re.compile(r"(\w+) <= length\((\w+)\)")  # in the `require` of an operation


@dataclass(frozen=True)
class Beyond:
    """The first instruction that does: its operand, position, buffer, and the buffer's elements."""

    operand: str
    index: int
    buffer: str
    length: int


def buffer_lengths(isa: Isa, machine: Machine) -> NDArray[np.int64]:
    """The elements of each buffer by its code."""
    sizes = {"crossbar_outputs": machine.core.outputs, "crossbar_inputs": machine.core.inputs}
    lengths = np.zeros(max(isa.buffer_names) + 1, dtype=np.int64)
    for buffer in isa.buffers.values():
        lengths[buffer.code] = sizes[buffer.length]
    return lengths


@lru_cache(maxsize=256)
def _bounds(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((match[1], match[2]) for match in _BOUND.finditer(text))


def _wrong(
    isa: Isa, instruction: Instruction, operands: Mapping[str, Any], lengths: NDArray[np.int64]
) -> Iterator[tuple[str, NDArray[Any], NDArray[np.bool_]]]:
    """For each bound of an operation the operand, the codes of its buffer, and where it does not hold."""
    for operand, of in _bounds(instruction.operation.text):
        is_operand = of in instruction.operands
        codes = np.atleast_1d(operands[of] if is_operand else isa.buffers[of].code)
        yield operand, codes, np.atleast_1d(operands[operand]) > lengths[codes]


def beyond_buffers(
    isa: Isa, instruction: Instruction, operands: Mapping[str, Any], lengths: NDArray[np.int64]
) -> Beyond | None:
    """What is out of range in instructions of one kind, given their operands (numbers or arrays)."""
    for operand, codes, wrong in _wrong(isa, instruction, operands, lengths):
        if wrong.any():
            index = int(np.argmax(wrong))
            code = int(np.broadcast_to(codes, wrong.shape)[index])
            return Beyond(operand, index, isa.buffer_names[code], int(lengths[code]))
    return None


def rows_beyond(
    isa: Isa, kinds: NDArray[np.int16], operands: Mapping[str, NDArray[np.int64]],
    lengths: NDArray[np.int64],
) -> NDArray[np.bool_]:  # fmt: skip
    """Which of decoded instructions are out of range; `kinds` has their position in the spec."""
    found = np.zeros(kinds.shape, dtype=bool)
    for number, instruction in enumerate(isa.instructions.values()):
        rows = np.flatnonzero(kinds == number)
        if rows.size:
            own = {name: operands[name][rows] for name in instruction.operands}
            for _, _, wrong in _wrong(isa, instruction, own, lengths):
                found[rows] |= wrong
    return found
