"""The directives that open sections and describe the program: what makes the text the whole program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from cim.asm import byte_sections, padding
from cim.asm.arguments import Arguments, unknown
from cim.asm.blocks import Statement
from cim.asm.expansion import MAX_BYTES
from cim.asm.expressions import ExpressionError
from cim.asm.local_labels import is_local
from cim.asm.objects import CoreAttributes, ModeAttributes, RegionAttributes
from cim.asm.recorded import MAX_LINE
from cim.asm.syntax import Expression, Operand, Place
from cim.diagnostics import CimError
from cim.isa.interpreter import PARAMETERS
from cim.isa.machine import load_machine
from cim.isa.numerics import DTYPES, NumericMode

if TYPE_CHECKING:
    from cim.asm.assembler import Assembler


ROLES = ("data", "ifm", "ofm", "partial_sum", "bias")


def _file(assembler: Assembler, statement: Statement) -> None:
    arguments = Arguments(assembler, statement, '.file "NAME"')
    name = _file_name(arguments)
    arguments.done()
    assembler.recorded.rename(statement.where, name)


def _file_name(arguments: Arguments) -> str:
    name, place = arguments.word()
    if not name or "\0" in name:
        raise ExpressionError("the name of a file must not be empty", place)
    return name


def _line(assembler: Assembler, statement: Statement) -> None:
    arguments = Arguments(assembler, statement, '.line NUMBER, "FILE"')
    place = statement.tree.operands[0].place if statement.tree.operands else statement.tree.op_place
    number = arguments.integer()
    name = _file_name(arguments) if arguments.positional else None
    arguments.done()
    if not 1 <= number < MAX_LINE:
        raise ExpressionError(f"the line must be 1 to {MAX_LINE - 1}, not {number}", place)
    assembler.recorded.mark(statement.where, number, name)


def _machine(assembler: Assembler, statement: Statement) -> None:
    arguments = Arguments(assembler, statement, '.machine "NAME", "SECTION.KEY=VALUE", …')
    name, place = arguments.word()
    settings = dict(arguments.word() for _ in list(arguments.positional))
    arguments.done()
    try:
        machine = load_machine(name, settings)
    except CimError as problem:
        first = problem.diagnostics[0]
        setting = first.where.removeprefix("--set").strip()
        about = f"'{setting}': " if setting else ""
        raise ExpressionError(about + first.message, settings.get(setting, place)) from None
    if assembler.attributes.machine is None and any(
        section.kind == "text" and section.size for section in assembler.sections.all
    ):
        raise ExpressionError(
            ".machine must stand before the first instruction", statement.tree.op_place
        )
    known = assembler.attributes.machine
    if known is not None and known != machine:
        raise ExpressionError(
            "a .machine before is another one; a program has one machine", statement.tree.op_place
        )
    assembler.attributes.machine = machine


def _extension(assembler: Assembler, statement: Statement) -> None:
    arguments = Arguments(assembler, statement, ".extension NAME")
    name, place = arguments.word()
    arguments.done()
    known = assembler.isa.extensions
    if name not in known:
        raise ExpressionError(
            f"unknown extension '{name}'; this toolchain has {', '.join(known)}", place
        )
    if name not in assembler.attributes.extensions:
        assembler.attributes.extensions.append(name)


def _mode(assembler: Assembler, statement: Statement) -> None:
    arguments = Arguments(assembler, statement, ".mode f32|i8|i8n, ifm=TYPE, ofm=TYPE")
    mode, place = arguments.word()
    default = "f32" if mode == "f32" else "i8"
    ifm = str(arguments.keyword("ifm", default))
    ofm = str(arguments.keyword("ofm", default))
    arguments.done()
    try:
        NumericMode(mode, ifm, ofm)
    except ValueError as problem:
        raise ExpressionError(str(problem), place) from None
    made = ModeAttributes(mode, ifm, ofm)
    if assembler.attributes.mode not in (None, made):
        raise ExpressionError("a .mode before is another one; a program has one mode", place)
    assembler.attributes.mode = made


def _core(assembler: Assembler, statement: Statement) -> None:
    arguments = Arguments(assembler, statement, ".core NAME, NUMBER, hg=HG, vg=VG")
    name, place = arguments.word()
    number = arguments.integer()
    hg, vg = arguments.keyword_integer("hg", 0), arguments.keyword_integer("vg", 0)
    arguments.done()
    limit = 0xFFFF
    if not 0 <= number <= limit:
        raise ExpressionError(f"the core's number is {number}, must be 0 to {limit}", place)
    for other in assembler.attributes.cores:
        if other.number == number:
            raise ExpressionError(f"core number {number} is already '{other.name}'", place)
    assembler.core = CoreAttributes(name, number, hg, vg)
    section = assembler.sections.open("text", name, 64)
    assembler.names.define_symbol(statement.where, name, place, "core", section, 0, 0, True)
    assembler.attributes.cores.append(assembler.core)


def _current_core(assembler: Assembler, statement: Statement) -> CoreAttributes:
    if assembler.core is None:
        raise ExpressionError(f"{statement.tree.op} must come after .core", statement.tree.op_place)
    return assembler.core


def _text(assembler: Assembler, statement: Statement) -> None:
    Arguments(assembler, statement, ".text").done()
    assembler.sections.open("text", _current_core(assembler, statement).name, 64)


def _crossbar(assembler: Assembler, statement: Statement) -> None:
    arguments = Arguments(assembler, statement, ".crossbar rows=ROWS, columns=COLUMNS")
    core = _current_core(assembler, statement)
    rows = arguments.keyword_integer("rows", None)
    columns = arguments.keyword_integer("columns", None)
    arguments.done()
    if not (rows and columns):
        raise ExpressionError("rows and columns must be at least 1", statement.tree.op_place)
    if core.rows:
        raise ExpressionError(f"'{core.name}' already has a crossbar", statement.tree.op_place)
    core.rows, core.columns = rows, columns
    assembler.sections.open("crossbar", core.name, 8)


def _param(assembler: Assembler, statement: Statement) -> None:
    arguments = Arguments(assembler, statement, ".param NAME, VALUE, …")
    core = _current_core(assembler, statement)
    name, place = arguments.word()
    if name not in PARAMETERS:
        raise unknown(f"parameter '{name}'", name, PARAMETERS, place)
    values = core.parameters.setdefault(name, [])
    type_name, _ = PARAMETERS[name]
    while arguments.positional:
        values.append(_parameter_value(arguments, type_name, arguments.next(), name))
    arguments.done()
    if not values:
        raise arguments.misuse()


def _parameter_value(arguments: Arguments, type_name: str, operand: Operand, name: str) -> float:
    if not isinstance(operand, Expression):
        raise arguments.misuse(operand.place)
    value = arguments.assembler.names.constant(operand)
    if type_name == "f32":
        with np.errstate(over="ignore"):
            number = float(DTYPES["f32"].type(value))
        if not np.isfinite(number):
            raise ExpressionError(f"{name} is {value}, must fit a float32", operand.place)
        return number
    if isinstance(value, float) or not -(2**31) <= value < 2**31:
        raise ExpressionError(
            f"{name} is {value}, must be an integer from {-(2**31)} to {2**31 - 1}", operand.place
        )
    return value


def _region(assembler: Assembler, statement: Statement) -> None:
    usage = ".region NAME, TYPE, [SHAPE], role=, layout=, scale=, zero_point=, align="
    arguments = Arguments(assembler, statement, usage)
    name, place = arguments.word()
    type_name, type_place = arguments.word()
    shape_operand = arguments.next()
    shape = arguments.value(shape_operand)
    if type_name not in DTYPES:
        raise unknown(
            f"type '{type_name}'; there are {', '.join(DTYPES)}", type_name, DTYPES, type_place
        )
    if not isinstance(shape, list) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise ExpressionError(
            "the shape must be like [8, 8, 3], each dimension an integer from 0",
            shape_operand.place,
        )
    role = str(arguments.keyword("role", "data"))
    if role not in ROLES:
        raise unknown(
            f"role '{role}'; there are {', '.join(ROLES)}",
            role,
            ROLES,
            arguments.keywords["role"].place,
        )
    scale = arguments.keyword("scale", None)
    region = RegionAttributes(
        name=name,
        type=type_name,  # type: ignore[arg-type]  # one of DTYPES, checked above
        shape=shape,
        role=role,
        layout=str(arguments.keyword("layout", "")),
        scale=None if scale is None else float(scale),
        zero_point=int(arguments.keyword("zero_point", 0)),
        align=arguments.keyword_integer("align", 64),
    )
    arguments.done()
    if region.align & (region.align - 1) or not region.align:
        raise ExpressionError("align must be a power of two", statement.tree.op_place)
    size = DTYPES[type_name].itemsize
    for length in shape:
        size *= length
    if size > MAX_BYTES:
        raise ExpressionError(
            f"the region has {size} bytes, more than the {MAX_BYTES} that an address reaches",
            shape_operand.place,
        )
    section = assembler.sections.open("region", name, region.align)
    assembler.names.define_symbol(statement.where, name, place, "region", section, 0, size, True)
    assembler.names.shapes[name] = tuple(assembler.names.stretches)
    assembler.attributes.regions.append(region)


def _section(assembler: Assembler, statement: Statement) -> None:
    """A byte section, or back to a region or program that has been begun."""
    arguments = Arguments(assembler, statement, '.section NAME, "aw", nobits')
    name, place = arguments.word()
    if name == ".text":
        arguments.done()
        assembler.sections.open("text", _current_core(assembler, statement).name, 64)
        return
    if any(region.name == name for region in assembler.attributes.regions):
        arguments.done()
        assembler.sections.open("region", name, 1)
        return
    placeholder = byte_sections.is_placeholder_name(name)
    if arguments.positional:
        flags, flags_place = arguments.word()
        if "x" in flags:
            raise ExpressionError("programs must stand in .core, not in a section", flags_place)
        if set(flags) - set("aw"):
            raise ExpressionError(f'the flags must be "a" or "aw", not "{flags}"', flags_place)
    if arguments.positional:
        kind, kind_place = arguments.word()
        if kind not in ("progbits", "nobits"):
            raise ExpressionError(f"must be progbits or nobits, not {kind}", kind_place)
        placeholder = kind == "nobits"
    arguments.done()
    _open_bytes(assembler, statement, name, place, placeholder)


def _open_bytes(
    assembler: Assembler, statement: Statement, name: str, place: Place, placeholder: bool
) -> None:
    reason = byte_sections.why_not(name)
    if reason:
        raise ExpressionError(reason, place)
    sections = assembler.sections
    known = len(sections.all)
    index = sections.open(byte_sections.KIND, name, 1)
    if index < known:
        if len(statement.tree.operands) > 1 and placeholder != sections.in_placeholder:
            raise ExpressionError(f"'{name}' is already of the other kind", place)
        return
    if placeholder:
        sections.placeholders.add(index)
    assembler.names.define_symbol(
        statement.where, name, place, "section", index, 0, 0, is_global=False
    )


def _data(assembler: Assembler, statement: Statement) -> None:
    """`.data` and `.bss`."""
    name = statement.tree.op or ""
    Arguments(assembler, statement, name).done()
    placeholder = byte_sections.is_placeholder_name(name)
    _open_bytes(assembler, statement, name, statement.tree.op_place, placeholder)


def _layer(assembler: Assembler, statement: Statement) -> None:
    arguments = Arguments(assembler, statement, ".layer KEY=VALUE, …")
    for name in list(arguments.keywords):
        assembler.attributes.layer[name] = arguments.keyword(name, None)
    arguments.done()


def _globl(assembler: Assembler, statement: Statement) -> None:
    """May stand before or after the label; a name that is never defined is the linker's to find."""
    arguments = Arguments(assembler, statement, ".globl NAME")
    name, place = arguments.word()
    arguments.done()
    if is_local(name):
        raise ExpressionError(f"'{name}' is local, as names that begin with .L are", place)
    assembler.names.export(name)


def _extern(assembler: Assembler, statement: Statement) -> None:
    """Whatever is not defined here is looked for by the linker, so that there is nothing to do."""
    Arguments(assembler, statement, ".extern NAME").word()


def equ_expressions(nodes: Iterable[object]) -> dict[str, Expression]:
    """The values of all `.equ` outside blocks, by name: they may be used before they stand."""
    found: dict[str, Expression] = {}
    for node in nodes:
        if isinstance(node, Statement) and node.tree.op == ".equ":
            match node.tree.operands:
                case (Expression() as name, Expression() as value) if name.bare_name:
                    found.setdefault(name.bare_name, value)
    return found


def _constant(assembler: Assembler, statement: Statement) -> None:
    op = statement.tree.op
    match statement.tree.operands:
        case (Expression() as name, Expression() as value) if name.bare_name:
            known = assembler.names.constant_places.get(name.bare_name)
            if op == ".equ" and known is not None:
                raise ExpressionError(
                    f"'{name.bare_name}' is already set on line {known[0].line}; .set may change it",
                    name.place,
                )
            assembler.names.define_constant(statement.where, name.bare_name, name.place, value)
        case _:
            raise ExpressionError(f"must be: {op} NAME, EXPRESSION", statement.tree.op_place)


HANDLERS: dict[str, Callable[[Assembler, Statement], None]] = {
    ".file": _file,
    ".machine": _machine,
    ".extension": _extension,
    ".mode": _mode,
    ".core": _core,
    ".text": _text,
    ".crossbar": _crossbar,
    ".param": _param,
    ".region": _region,
    ".section": _section,
    ".data": _data,
    ".bss": _data,
    ".line": _line,
    ".layer": _layer,
    ".globl": _globl,
    ".extern": _extern,
    **padding.HANDLERS,
    ".equ": _constant,
    ".set": _constant,
}
