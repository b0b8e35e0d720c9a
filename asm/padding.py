"""The directives that fill up to an offset."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from cim.asm import byte_sections
from cim.asm.arguments import Arguments
from cim.asm.blocks import Statement
from cim.asm.expansion import MAX_BYTES
from cim.asm.expressions import ExpressionError
from cim.asm.objects import MAX_ALIGN
from cim.asm.sections import Block

if TYPE_CHECKING:
    from cim.asm.assembler import Assembler


def align(assembler: Assembler, statement: Statement) -> None:
    """`.align` and `.balign`: up to a multiple of a power of two."""
    arguments = Arguments(assembler, statement, f"{statement.tree.op} BYTES")
    place = statement.tree.operands[0].place if statement.tree.operands else statement.tree.op_place
    to = arguments.integer()
    arguments.done()
    if to < 1 or to & (to - 1) or to > MAX_ALIGN:
        raise ExpressionError(f"must be a power of two from 1 to {MAX_ALIGN}, not {to}", place)
    section = assembler.sections.here
    if section is not None and section.kind == byte_sections.KIND:
        section.align = max(section.align, to)
    elif section is not None and section.kind == "region" and to > section.align:
        raise ExpressionError(
            f"the region begins at a multiple of {section.align} only: its .region needs align={to}",
            place,
        )
    _pad(assembler, statement, lambda size: -size % to)


def org(assembler: Assembler, statement: Statement) -> None:
    """`.org`: up to an offset in the section."""
    arguments = Arguments(assembler, statement, ".org OFFSET")
    place = statement.tree.operands[0].place if statement.tree.operands else statement.tree.op_place
    target = arguments.integer()
    arguments.done()

    def gap(size: int) -> int:
        if target < size:
            raise ExpressionError(
                f"{target} is behind: the section already has {size} bytes", place
            )
        return target - size

    _pad(assembler, statement, gap)


def _pad(assembler: Assembler, statement: Statement, gap: Callable[[int], int]) -> None:
    """Add `gap(size)` zero bytes to the current section, which must be data. Raises `ExpressionError`."""
    section = assembler.sections.here
    if section is None:
        raise ExpressionError(
            f"{statement.tree.op} must be in a region or crossbar", statement.tree.op_place
        )
    size = gap(section.size)
    assembler.note_size(statement.where, statement.tree.op_place)
    if section.size + size > MAX_BYTES:
        raise ExpressionError(
            f"the section would have {section.size + size} bytes, more than an address reaches",
            statement.tree.op_place,
        )
    if section.kind == "text" and size:
        raise ExpressionError(
            "a program cannot be padded: there is no instruction that does nothing",
            statement.tree.op_place,
        )
    assembler.sections.add(Block(np.zeros(size, dtype=np.uint8), np.zeros(0, dtype=np.uint64)))


HANDLERS: dict[str, Callable[[Assembler, Statement], None]] = {
    ".align": align,
    ".balign": align,
    ".org": org,
}
