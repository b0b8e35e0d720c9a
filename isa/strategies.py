"""Hypothesis strategies made from the spec, for the tests of every stage (needs the `dev` extra)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from cim.isa.encoding import encode, immediate_bits
from cim.isa.load import load_isa
from cim.isa.model import Instruction, Operand
from cim.isa.numerics import NumericMode


@dataclass(frozen=True)
class Instance:
    """An instruction with a value for each operand; buffers as codes, immediates as bits."""

    instruction: Instruction
    operands: dict[str, int]


def operand_values(operand: Operand) -> st.SearchStrategy[int]:
    """Values that can be encoded, the ends of the range often."""
    if operand.kind == "buffer":
        return st.sampled_from(sorted(load_isa().buffer_names))
    ends = st.sampled_from([operand.minimum, operand.maximum])
    return ends | st.integers(operand.minimum, operand.maximum)


def _keeps(instruction: Instruction, operands: dict[str, int]) -> bool:
    for constraint in instruction.constraints:
        left, relation, right = constraint.split()
        holds = {"<": operands[left] < operands[right], "<=": operands[left] <= operands[right],
                 "!=": operands[left] != operands[right]}[relation]  # fmt: skip
        if not holds:
            return False
    return True


def instances(mode: str | None = None) -> st.SearchStrategy[Instance]:
    """Any instruction with any operands that can be encoded, of one numeric mode if given."""
    chosen = [i for i in load_isa().instructions.values() if mode is None or mode in i.modes]
    return st.sampled_from(chosen).flatmap(
        lambda i: (
            st.fixed_dictionaries({n: operand_values(o) for n, o in i.operands.items()})
            .filter(lambda operands: _keeps(i, operands))
            .map(lambda operands: Instance(i, operands))
        )
    )


def boundary_words() -> NDArray[np.uint64]:
    """For every operand of every instruction the words with it at the ends of its field, the rest small.

    Not all are legal: `lo` at its maximum is above a small `hi`.
    """
    made = []
    for instruction in load_isa().instructions.values():
        small = {name: operand.minimum for name, operand in instruction.operands.items()}
        base = int(encode(instruction, small).reshape(1)[0])
        for operand in instruction.operands.values():
            field = operand.field
            for value in (0, 1, field.limit - 1, field.limit):
                made.append(base & ~field.mask | value << field.lsb)
    return np.array(made, dtype=np.uint64)


def words() -> st.SearchStrategy[int]:
    """64-bit words: random ones, and legal ones with a few bits flipped."""
    legal = instances().map(lambda x: int(encode(x.instruction, x.operands)))
    flips = st.lists(st.integers(0, 63), max_size=3)
    near = st.tuples(legal, flips).map(lambda t: t[0] ^ sum(1 << bit for bit in set(t[1])))
    return st.integers(0, 2**64 - 1) | near


@st.composite
def executable(
    draw: st.DrawFn,
    mode: NumericMode,
    shape: tuple[int, int],
    memory_bytes: int,
    faulty: bool = False,
) -> int:
    """A word that a single core with a crossbar of `shape` (M, N) can execute, in a memory of that size.

    Valid once all of `ib` has been written. With `faulty` it may also raise any exception of the spec.
    """
    isa = load_isa()
    if faulty and draw(st.integers(0, 19)) == 0:
        return draw(words())
    chosen = draw(st.sampled_from(["load", "store", "mvm", "gpeu", "gpeu", "gpeu"]))
    instruction = draw(
        st.sampled_from(
            [
                i
                for i in isa.instructions.values()
                if i.timing_class == chosen and (faulty or mode.mode in i.modes) and not i.extension
            ]
        )
    )
    lengths = {"crossbar_outputs": shape[0], "crossbar_inputs": shape[1]}
    buffers = {
        name: draw(st.sampled_from(sorted(isa.buffers)))
        for name, operand in instruction.operands.items()
        if operand.kind == "buffer"
    }
    # A parameter has M elements, so that no GPEU operation may be longer.
    limit = min(
        [lengths[isa.buffers[b].length] for b in buffers.values()]
        + ([shape[0]] if chosen == "gpeu" else [])
        or [1]
    )
    count = draw(st.integers(1, limit + 3 * faulty))
    operands: dict[str, int] = {name: isa.buffers[b].code for name, b in buffers.items()}
    for name, operand in instruction.operands.items():
        if operand.kind == "bits":
            floats = mode.mode == "f32"
            number = draw(
                st.floats(-100, 100, width=32) if floats else st.integers(-(2**31), 2**31 - 1)
            )
            operands[name] = int(immediate_bits(number, mode.mode))
        elif operand.kind == "address":
            top = 2**32 - 1 if faulty and draw(st.integers(0, 9)) == 0 else memory_bytes - 4 * count
            operands[name] = draw(st.integers(0, top))
        elif operand.kind == "unsigned":
            operands[name] = draw(st.integers(0, count - 1)) if name == "lo" else count
    return int(encode(instruction, operands).reshape(1)[0])


def straight_line(
    mode: NumericMode,
    shape: tuple[int, int],
    memory_bytes: int,
    faulty: bool = False,
    max_size: int = 25,
) -> st.SearchStrategy[list[int]]:
    """Programs of `executable` words; without `faulty` they begin by writing all of `ib`."""
    load = load_isa().instructions["load"]
    code = load_isa().buffers["ib"].code
    fill = int(encode(load, {"buffer": code, "lo": 0, "hi": shape[1], "address": 0}).reshape(1)[0])
    body = st.lists(executable(mode, shape, memory_bytes, faulty), max_size=max_size)
    begun = body.map(lambda program: [fill, *program])
    return (begun | body) if faulty else begun
