"""Instructions as text, from the syntax in the spec: the other direction of what the assembler reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cim.isa.encoding import ILLEGAL, Decoded, immediate_value
from cim.isa.model import Instruction, Isa, Operand


def syntax_text(instruction: Instruction) -> str:
    """How to write the instruction, as in `gpeu.add DST, A, B[, len=LEN]`; what is in [, ] can be left out."""
    parts = []
    optional = ""
    for part in instruction.syntax:
        names = [name.upper() for name in part.operands]
        if part.shape == "slice":
            parts.append(f"{names[0]}[{names[1]}:{names[2]}]")
        elif part.shape == "keyword":
            optional += f"[, {part.operands[0]}={names[0]}]"
        else:
            parts.append(names[0])
    return f"{instruction.mnemonic} {', '.join(parts)}".rstrip() + optional


def format_instruction(
    isa: Isa, decoded: Decoded, index: int, mode: str, symbols: Mapping[str, str] | None = None
) -> str:
    """Word `index` as assembly that gives the same word; an illegal word as `<illegal>`.

    `symbols` replaces operands (by name) with the text of a relocation.
    """
    if decoded.index[index] == ILLEGAL:
        return "<illegal>"
    instruction = list(isa.instructions.values())[int(decoded.index[index])]
    shown = {
        name: (symbols or {}).get(name)
        or _operand_text(isa, operand, int(decoded.operands[name][index]), mode)
        for name, operand in instruction.operands.items()
    }
    parts = []
    for part in instruction.syntax:
        texts = [shown[name] for name in part.operands]
        if part.shape == "slice":
            parts.append(f"{texts[0]}[{texts[1]}:{texts[2]}]")
        elif part.shape == "keyword":
            parts.append(f"{part.operands[0]}={texts[0]}")
        else:
            parts.append(texts[0])
    return f"{instruction.mnemonic} {', '.join(parts)}".rstrip()


def _operand_text(isa: Isa, operand: Operand, value: int, mode: str) -> str:
    if operand.kind == "buffer":
        return isa.buffer_names[value]
    if operand.kind == "address":
        return hex(value)
    if operand.kind == "bits":
        number = immediate_value(value, mode)
        return str(np.float32(number)) if mode == "f32" else str(number)
    return str(value)
