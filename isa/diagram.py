"""Bit-field diagrams of instructions as text."""

from __future__ import annotations

from cim.isa.model import Field, Instruction

ROW_BITS = 32


def field_label(instruction: Instruction, field: Field) -> str:
    """What stands in a field: an operand, a fixed number in binary, or zeros."""
    for name, operand in instruction.operands.items():
        if operand.field.name == field.name:
            return f"{name} - {operand.bias}" if operand.bias else name
    value = instruction.fixed.get(field.name, 0)
    if value == 0 and field.width > 6:
        return "0"
    return format(value, f"0{field.width}b")


def diagram(instruction: Instruction) -> list[str]:
    """Lines that draw the word, 32 bits a row, the high bits first."""
    lines: list[str] = []
    word_bits = sum(field.width for field in instruction.fields)
    for top in range(word_bits, 0, -ROW_BITS):
        low = top - ROW_BITS
        cells = []
        for field in sorted(instruction.fields, key=lambda f: -f.lsb):
            msb, lsb = min(field.lsb + field.width, top) - 1, max(field.lsb, low)
            if msb >= lsb:
                cells.append((msb, lsb, field_label(instruction, field)))
        lines += _row(cells)
    return lines


def _row(cells: list[tuple[int, int, str]]) -> list[str]:
    numbers, labels, rule = " ", "|", "+"
    for msb, lsb, label in cells:
        bits = str(msb) if msb == lsb else f"{msb} {lsb}"
        width = max(len(label), len(bits), 2 * (msb - lsb + 1)) + 2
        if msb == lsb:
            numbers += f"{msb}".center(width) + " "
        else:
            gap = width - 2 - len(str(msb)) - len(str(lsb))
            numbers += f" {msb}{' ' * gap}{lsb} " + " "
        labels += label.center(width) + "|"
        rule += "-" * width + "+"
    return [numbers.rstrip(), rule, labels, rule]
