"""Hypothesis strategies made from the spec, for the tests of every stage (needs the `dev` extra)."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from cim.isa.load import load_isa
from cim.isa.model import Instruction, Operand


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


def words() -> st.SearchStrategy[int]:
    """64-bit words: random ones, and legal ones with a few bits flipped."""
    from cim.isa.encoding import encode

    legal = instances().map(lambda x: int(encode(x.instruction, x.operands)))
    flips = st.lists(st.integers(0, 63), max_size=3)
    near = st.tuples(legal, flips).map(lambda t: t[0] ^ sum(1 << bit for bit in set(t[1])))
    return st.integers(0, 2**64 - 1) | near
