"""Groups the lines of a file into statements, `.let`, `.for` and `.if` blocks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cim.asm.batches import FlatRun
from cim.asm.expressions import DEFINED
from cim.asm.shapes import parse_line
from cim.asm.syntax import Expression, Keyword, Line, LineError, Op, Place, parse_whole_line
from cim.asm.where import Where
from cim.diagnostics import Diagnostic


@dataclass(slots=True)
class Statement:
    """An instruction or directive with its labels; `tree.op` is None for labels alone."""

    where: Where
    tree: Line


@dataclass(slots=True)
class Let:
    """`.let NAME = EXPRESSION`."""

    where: Where
    name: str
    place: Place
    value: Expression


@dataclass(slots=True)
class For:
    """`.for NAME, FIRST, LAST`: the body for NAME = FIRST to LAST - 1."""

    where: Where
    name: str
    first: Expression
    last: Expression
    body: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class If:
    """`.if` with its `.elif`s and `.else`: the first branch whose condition holds (None: always)."""

    where: Where
    branches: list[tuple[Expression | None, list[Node]]] = field(default_factory=list)


@dataclass(slots=True)
class Broken:
    """A line that begins a section, and cannot be read."""

    where: Where
    op: str


BLOCK_DIRECTIVES = (
    ".for", ".endfor", ".rept", ".endr", ".if", ".elif", ".else", ".endif", ".ifdef", ".ifndef", ".let",
    ".include", ".macro", ".endm", ".endmacro", ".irp",
)  # fmt: skip
SECTION_OPENERS = (".core", ".crossbar", ".text", ".region", ".section", ".data", ".bss")
REPT = f"{DEFINED}rept"  # the counter of .rept; no source can write such a name
Node = Statement | Let | For | If
MAX_NESTED = 64
ENDS = {".for": ".endfor", ".rept": ".endr"}


def _opener(block: For) -> str:
    """The directive that began a loop."""
    return ".rept" if block.name in (REPT, ".rept") else ".for"


class _Stop(Exception):
    def __init__(self, message: str, place: Place) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


def read_blocks(
    lines: Iterable[tuple[Where, str] | FlatRun], by_shape: bool = True
) -> tuple[list[Node | FlatRun | Broken], list[Diagnostic]]:
    """All nodes of some lines, and a diagnostic for every line that cannot be used.

    With `by_shape` lines of the same shape are parsed once; the result means the same without.
    """
    reader = _Reader()
    parse = parse_line if by_shape else parse_whole_line
    found: list[Diagnostic] = []
    for item in lines:
        if isinstance(item, FlatRun) and not reader.open:
            reader.top.append(item)
            continue
        for where, text in item.lines() if isinstance(item, FlatRun) else (item,):
            try:
                reader.add(where, parse(text))
            except (LineError, _Stop) as problem:
                found.append(Diagnostic(problem.message, where.span(problem.place)))
                # A block whose opening line is wrong is still a block: its end must not be an error as well.
                word = text.split(maxsplit=1)[0].lower() if text.split() else ""
                if word in (".for", ".rept", ".if", ".ifdef", ".ifndef"):
                    reader.open_broken(where, word)
                elif word in SECTION_OPENERS and not reader.open:
                    reader.top.append(Broken(where, word))
    found += reader.unclosed()
    if reader.too_deep:  # what is so deep is not looked at any further
        return [], [*found, *reader.too_deep[:1]]
    return reader.top, found


class _Reader:
    def __init__(self) -> None:
        self.top: list[Node | FlatRun | Broken] = []
        self.open: list[For | If] = []
        self.too_deep: list[Diagnostic] = []
        self.bodies: list[list[Any]] = [self.top]

    def add(self, where: Where, tree: Line) -> None:
        handler = {
            ".for": self._for, ".endfor": self._endfor, ".if": self._if, ".elif": self._elif,
            ".else": self._else, ".endif": self._endif, ".let": self._let, ".rept": self._rept,
            ".endr": self._endr, ".ifdef": self._ifdef, ".ifndef": self._ifdef,
        }.get(tree.op or "")  # fmt: skip
        if handler is None:
            if tree.op is not None or tree.labels:
                self.bodies[-1].append(Statement(where, tree))
            return
        if tree.labels:
            raise _Stop(f"a label must not stand before {tree.op}", tree.labels[0].place)
        handler(where, tree)

    def open_broken(self, where: Where, word: str) -> None:
        zero = Expression((), Place(1, 2))
        loop = word in (".for", ".rept")
        block: For | If = For(where, word, zero, zero) if loop else If(where)
        self._push(block, [])

    def unclosed(self) -> Iterable[Diagnostic]:
        """A diagnostic for every block that has no end."""
        if self.open and self.top and self.top[-1] is self.open[0]:
            self.top.pop()  # nobody knows what belongs to it
        for block in self.open:
            text = block.where.source.line(block.where.line)
            word = text.split()[0]
            start = text.index(word) + 1
            end = ENDS.get(word.lower(), ".endif")
            yield Diagnostic(f"{word} has no {end}", block.where.columns(start, start + len(word)))

    def _push(self, block: For | If, body: list[Node]) -> None:
        if len(self.open) == MAX_NESTED:
            text = block.where.source.line(block.where.line)
            start = len(text) - len(text.lstrip()) + 1
            self.too_deep.append(
                Diagnostic(
                    f"blocks are nested deeper than {MAX_NESTED} levels",
                    block.where.columns(start, start + len(text.split()[0])),
                )
            )
        self.open.append(block)
        self.bodies.append(body)

    def _pop(self, tree: Line, kind: type, opener: str) -> None:
        if not self.open or not isinstance(self.open[-1], kind):
            raise _Stop(f"{tree.op} without {opener}", tree.op_place)
        block = self.open.pop()
        self.bodies.pop()
        if isinstance(block, For) and opener != _opener(block):
            raise _Stop(
                f"{_opener(block)} must end with {ENDS[_opener(block)]}, not {tree.op}",
                tree.op_place,
            )

    def _for(self, where: Where, tree: Line) -> None:
        match tree.operands:
            case (Expression() as name, Expression() as first, Expression() as last) if (
                name.bare_name
            ):
                block = For(where, name.bare_name, first, last)
            case _:
                raise _Stop(".for must be: .for NAME, FIRST, LAST (LAST excluded)", tree.op_place)
        self.bodies[-1].append(block)
        self._push(block, block.body)

    def _endfor(self, where: Where, tree: Line) -> None:
        del where
        self._pop(tree, For, ".for")

    def _rept(self, where: Where, tree: Line) -> None:
        match tree.operands:
            case (Expression() as count,):
                zero = Expression((Op("num", 0, count.place),), count.place)
                block = For(where, REPT, zero, count)
            case _:
                raise _Stop(".rept must be: .rept COUNT", tree.op_place)
        self.bodies[-1].append(block)
        self._push(block, block.body)

    def _endr(self, where: Where, tree: Line) -> None:
        del where
        self._pop(tree, For, ".rept")

    def _condition(self, tree: Line) -> Expression:
        match tree.operands:
            case (Expression() as condition,):
                return condition
        raise _Stop(f"{tree.op} must have one expression", tree.op_place)

    def _if(self, where: Where, tree: Line) -> None:
        block = If(where, [(self._condition(tree), [])])
        self.bodies[-1].append(block)
        self._push(block, block.branches[0][1])

    def _ifdef(self, where: Where, tree: Line) -> None:
        match tree.operands:
            case (Expression() as name,) if name.bare_name:
                code = [Op("name", DEFINED + name.bare_name, name.place)]
            case _:
                raise _Stop(f"{tree.op} must be: {tree.op} NAME", tree.op_place)
        if tree.op == ".ifndef":
            code.append(Op("unary", "!", name.place))
        block = If(where, [(Expression(tuple(code), name.place), [])])
        self.bodies[-1].append(block)
        self._push(block, block.branches[0][1])

    def _branch(self, tree: Line, condition: Expression | None) -> None:
        block = self.open[-1] if self.open else None
        if not isinstance(block, If):
            raise _Stop(f"{tree.op} without .if", tree.op_place)
        if block.branches and block.branches[-1][0] is None:
            raise _Stop(f"{tree.op} after .else", tree.op_place)
        block.branches.append((condition, []))
        self.bodies[-1] = block.branches[-1][1]

    def _elif(self, where: Where, tree: Line) -> None:
        del where
        self._branch(tree, self._condition(tree))

    def _else(self, where: Where, tree: Line) -> None:
        del where
        if tree.operands:
            raise _Stop(".else takes nothing", tree.operands[0].place)
        self._branch(tree, None)

    def _endif(self, where: Where, tree: Line) -> None:
        del where
        self._pop(tree, If, ".if")

    def _let(self, where: Where, tree: Line) -> None:
        match tree.operands:
            case (Keyword(name=name, value=Expression() as value, place=place),):
                self.bodies[-1].append(Let(where, name, place, value))
            case _:
                raise _Stop(".let must be: .let NAME = EXPRESSION", tree.op_place)
