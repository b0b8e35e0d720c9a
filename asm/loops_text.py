"""A program with its runs of alike instructions as `.for` blocks: what was unrolled, rolled again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np

from cim.asm.program_text import Program
from cim.asm.reroll import Item, Loop, Roller
from cim.asm.text_layout import INDENT, with_comment
from cim.isa.encoding import ILLEGAL, immediate_value

VARIABLES = "ijklmn"


def rolled_lines(program: Program) -> Iterator[str]:
    """The lines of the program. They assemble to the same words and relocations."""
    items, names = _items(program)
    writer = _Writer(program, names)
    # A label must not be in a loop: between two labels the rolling begins anew.
    places = sorted({0, len(items), *(place // 8 for place in program.labels)})
    for start, end in zip(places, [*places[1:], len(items)], strict=True):
        yield from program.labels.get(8 * start, ())
        for item in Roller().roll(items[start:end]):
            yield from writer.lines(item, [""] * len(item.values), 0)


def _items(program: Program) -> tuple[list[Item], list[tuple[str, ...]]]:
    """Each instruction as an item, and the names of the operands that its values are."""
    isa, decoded = program.isa, program.decoded
    instructions = list(isa.instructions.values())
    shapes: dict[object, int] = {}
    items: list[Item] = []
    names: list[tuple[str, ...]] = []
    columns = {name: values.tolist() for name, values in decoded.operands.items()}
    for pc, number in enumerate(decoded.index.tolist()):
        row = program.relocations.get(pc)
        values: dict[str, int] = {}
        key: list[object] = [number]
        if row is not None:
            key += [int(row["type"]), int(row["symbol"])]
        if number == ILLEGAL:
            key.append(int(program.words[pc]))
            if row is not None:
                values[""] = int(row["addend"])
        else:
            symbol = program.symbol_operand(pc)
            for name, operand in instructions[number].operands.items():
                value = columns[name][pc]
                if operand.kind == "buffer" or (operand.kind == "bits" and program.mode == "f32"):
                    key.append(value)
                elif name == symbol:
                    values[name] = int(row["addend"]) if row is not None else value
                elif operand.kind == "bits":
                    values[name] = int(immediate_value(value, program.mode))
                else:
                    values[name] = value
        shape = shapes.setdefault(tuple(key), -1 - len(shapes))  # the roller's are not negative
        items.append(Item(shape, np.array(list(values.values()), dtype=np.int64), pc))
        names.append(tuple(values))
    return items, names


class _Writer:
    def __init__(self, program: Program, names: list[tuple[str, ...]]) -> None:
        self.program = program
        self.names = names
        taken = {symbol.name for symbol in program.obj.symbols}
        self.free = (name for name in _variables() if name not in taken)
        self.variables: list[str] = []

    def variable(self, depth: int) -> str:
        """The variable of loops inside `depth` others."""
        while len(self.variables) <= depth:
            self.variables.append(next(self.free))
        return self.variables[depth]

    def lines(self, item: Item, moved: Sequence[str], depth: int) -> Iterator[str]:
        """The lines of an item; `moved` is what loops around it add to each of its values."""
        if isinstance(item.what, int):
            pc = item.what
            if not depth:
                yield self.program.line(pc)
                return
            suffixes = dict(zip(self.names[pc], moved, strict=True))
            used = {name: suffix for name, suffix in suffixes.items() if suffix}
            yield INDENT * depth + self.program.instruction(pc, used)
            return
        loop = item.what
        variable = self.variable(depth)
        head = f"{INDENT * depth}.for {variable}, 0, {loop.count}"
        if not depth:
            start = _first(item)
            head = with_comment(head, f"# {8 * start:6x}: {_instructions(item)} instructions")
        yield head
        texts = [
            before + p.text(variable) for before, p in zip(moved, loop.progressions, strict=True)
        ]
        at = 0
        for inner in loop.body:
            yield from self.lines(inner, texts[at : at + len(inner.values)], depth + 1)
            at += len(inner.values)
        yield f"{INDENT * depth}.endfor"


def _variables() -> Iterator[str]:
    yield from VARIABLES
    yield from (f"loop{number}" for number in count())


def _first(item: Item) -> int:
    while isinstance(item.what, Loop):
        item = item.what.body[0]
    return item.what


def _instructions(item: Item) -> int:
    if isinstance(item.what, int):
        return 1
    return item.what.count * sum(_instructions(inner) for inner in item.what.body)
