"""The instruction set for other languages: a C header, a SystemVerilog package, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from cim.isa.model import Instruction, Isa, Operand
from cim.isa.printer import syntax_text


def _upper(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name).upper()


def _operand_names(isa: Isa) -> list[str]:
    return sorted({name for i in isa.instructions.values() for name in i.operands})


def _formats(isa: Isa) -> Iterator[tuple[str, str, int, int]]:
    """Format, field, lsb and width, reserved fields left out."""
    for name, fields in isa.formats.items():
        for field in fields:
            if not field.reserved:
                yield name, field.name, field.lsb, field.width


# --- C -------------------------------------------------------------------------------------------------------


def c_header(isa: Isa) -> str:
    """A header for C99: constants, encoders, and a decoder that accepts just what Python accepts."""
    return "\n".join(_c_lines(isa)) + "\n"


def _c_lines(isa: Isa) -> Iterator[str]:
    yield f"/* Instruction set {isa.name}, version {isa.version}."
    yield "   Generated from spec/isa.toml by `cim-isa export c`; do not edit. */"
    yield "#ifndef CIM_ISA_H"
    yield "#define CIM_ISA_H"
    yield ""
    yield "#include <stdint.h>"
    yield ""
    yield f'#define CIM_ISA_VERSION "{isa.version}"'
    yield f"#define CIM_WORD_BITS {isa.word_bits}"
    yield ""
    for buffer in isa.buffers.values():
        yield f"#define CIM_BUFFER_{_upper(buffer.name)} {buffer.code}"
    yield ""
    for name, field, lsb, width in _formats(isa):
        prefix = f"CIM_{_upper(name)}_{_upper(field)}"
        yield f"#define {prefix}_LSB {lsb}"
        yield f"#define {prefix}_WIDTH {width}"
    yield ""
    for i in isa.instructions.values():
        yield f"/* {syntax_text(i)} */"
        yield f"#define CIM_{_upper(i.name)}_MATCH UINT64_C({i.match:#018x})"
        yield f"#define CIM_{_upper(i.name)}_MASK  UINT64_C({i.mask:#018x})"
    yield ""
    yield "enum cim_kind {"
    yield "    CIM_ILLEGAL = -1,"
    for number, i in enumerate(isa.instructions.values()):
        yield f"    CIM_{_upper(i.name)} = {number},"
    yield "};"
    yield ""
    yield "/* Operands that an instruction does not have are 0. */"
    yield "struct cim_instruction {"
    yield "    enum cim_kind kind;"
    for name in _operand_names(isa):
        yield f"    int64_t {name};"
    yield "};"
    yield ""
    yield "static inline struct cim_instruction cim_decode(uint64_t word)"
    yield "{"
    zeros = ", ".join(["CIM_ILLEGAL", *("0" for _ in _operand_names(isa))])
    yield f"    struct cim_instruction out = {{{zeros}}};"
    for i in isa.instructions.values():
        yield from _c_decode(isa, i)
    yield "    return out;"
    yield "}"
    for i in isa.instructions.values():
        yield ""
        yield from _c_encode(i)
    yield ""
    yield "#endif"


def _c_field(operand: Operand) -> str:
    shifted = f"(word >> {operand.field.lsb})" if operand.field.lsb else "word"
    raw = f"(int64_t)({shifted} & UINT64_C({operand.field.limit:#x}))"
    return f"{raw} + {operand.bias}" if operand.bias else raw


def _c_decode(isa: Isa, i: Instruction) -> Iterator[str]:
    name = _upper(i.name)
    codes = sorted(isa.buffer_names)
    assert codes == list(range(len(codes))), "buffer codes have a gap"
    yield f"    if ((word & CIM_{name}_MASK) == CIM_{name}_MATCH) {{"
    for operand in i.operands.values():
        yield f"        int64_t {operand.name} = {_c_field(operand)};"
    conditions = [f"{o.name} < {len(codes)}" for o in i.operands.values() if o.kind == "buffer"]
    conditions += list(i.constraints)
    if conditions:
        yield f"        if (!({' && '.join(conditions)}))"
        yield "            return out;"
    yield f"        out.kind = CIM_{name};"
    for field in i.operands:
        yield f"        out.{field} = {field};"
    yield "        return out;"
    yield "    }"


def _c_encode(i: Instruction) -> Iterator[str]:
    name = _upper(i.name)
    parameters = ", ".join(f"int64_t {operand}" for operand in i.operands) or "void"
    yield f"static inline uint64_t cim_encode_{name.lower()}({parameters})"
    yield "{"
    terms = [f"CIM_{name}_MATCH"]
    for o in i.operands.values():
        value = f"({o.name} - {o.bias})" if o.bias else o.name
        field = f"((uint64_t){value} & UINT64_C({o.field.limit:#x}))"
        terms.append(f"{field} << {o.field.lsb}" if o.field.lsb else field)
    if len(terms) == 1:
        yield f"    return {terms[0]};"
    else:
        yield "    return " + "\n        | ".join(f"({term})" for term in terms) + ";"
    yield "}"


# --- SystemVerilog ---------------------------------------------------------------------------------------------


def sv_package(isa: Isa) -> str:
    """A SystemVerilog package: constants, an enum of instructions, and a function that recognizes them."""
    return "\n".join(_sv_lines(isa)) + "\n"


def _sv_lines(isa: Isa) -> Iterator[str]:
    yield f"// Instruction set {isa.name}, version {isa.version}."
    yield "// Generated from spec/isa.toml by `cim-isa export sv`; do not edit."
    yield "package cim_isa_pkg;"
    yield ""
    yield f"  localparam int CIM_WORD_BITS = {isa.word_bits};"
    yield ""
    for buffer in isa.buffers.values():
        yield f"  localparam logic [2:0] CIM_BUFFER_{_upper(buffer.name)} = 3'd{buffer.code};"
    yield ""
    for name, field, lsb, width in _formats(isa):
        prefix = f"CIM_{_upper(name)}_{_upper(field)}"
        yield f"  localparam int {prefix}_LSB = {lsb};"
        yield f"  localparam int {prefix}_MSB = {lsb + width - 1};"
    yield ""
    for i in isa.instructions.values():
        yield f"  // {syntax_text(i)}"
        for what, value in (("MATCH", i.match), ("MASK", i.mask)):
            yield f"  localparam logic [63:0] CIM_{_upper(i.name)}_{what} = 64'h{value:016x};"
    yield ""
    count = len(isa.instructions)
    width = max(1, count.bit_length())
    yield f"  typedef enum logic [{width - 1}:0] {{"
    for number, i in enumerate(isa.instructions.values()):
        yield f"    CIM_{_upper(i.name)} = {width}'d{number},"
    yield f"    CIM_ILLEGAL = {width}'d{count}"
    yield "  } cim_kind_t;"
    yield ""
    yield "  function automatic cim_kind_t cim_decode(input logic [63:0] word);"
    yield "    cim_decode = CIM_ILLEGAL;"
    for i in isa.instructions.values():
        name = _upper(i.name)
        tests = [f"(word & CIM_{name}_MASK) == CIM_{name}_MATCH"]
        for o in i.operands.values():
            if o.kind == "buffer":
                tests.append(f"{_sv_field(o)} < {len(isa.buffers)}")
        tests += [_sv_constraint(i, constraint) for constraint in i.constraints]
        yield f"    if ({' && '.join(tests)})"
        yield f"      cim_decode = CIM_{name};"
    yield "  endfunction"
    yield ""
    yield "endpackage"


def _sv_field(operand: Operand) -> str:
    return f"word[{operand.field.lsb + operand.field.width - 1}:{operand.field.lsb}]"


def _sv_constraint(i: Instruction, constraint: str) -> str:
    """`lo < hi` on fields: both sides one bit wider, so that a bias cannot overflow."""
    left, relation, right = constraint.split()

    def side(name: str) -> str:
        operand = i.operands[name]
        bias = f" + {operand.field.width + 1}'d{operand.bias}" if operand.bias else ""
        return f"{{1'b0, {_sv_field(operand)}}}{bias}"

    return f"({side(left)} {relation} {side(right)})"


# --- JSON --------------------------------------------------------------------------------------------------------


def isa_json(isa: Isa) -> str:
    """Everything that the spec says, resolved, for tools that do not read Python."""
    content = {
        "name": isa.name,
        "version": isa.version,
        "word_bits": isa.word_bits,
        "buffers": {
            b.name: {"code": b.code, "length": b.length, "type": b.type, "prose": b.prose}
            for b in isa.buffers.values()
        },
        "exceptions": dict(isa.exceptions),
        "extensions": {
            e.name: {"version": e.version, "prose": e.prose} for e in isa.extensions.values()
        },
        "timing": dict(isa.timing),
        "formats": {
            name: [{"name": f.name, "lsb": f.lsb, "width": f.width} for f in fields]
            for name, fields in isa.formats.items()
        },
        "instructions": [_instruction_json(i) for i in isa.instructions.values()],
    }
    return json.dumps(content, indent=1) + "\n"


def _instruction_json(i: Instruction) -> dict[str, object]:
    return {
        "name": i.name,
        "extension": i.extension,
        "mnemonic": i.mnemonic,
        "class": i.timing_class,
        "format": i.format,
        "match": f"{i.match:#018x}",
        "mask": f"{i.mask:#018x}",
        "syntax": syntax_text(i),
        "operands": {
            o.name: {
                "kind": o.kind,
                "lsb": o.field.lsb,
                "width": o.field.width,
                "bias": o.bias,
                "minimum": o.minimum,
                "maximum": o.maximum,
                "default": o.default,
            }
            for o in i.operands.values()
        },
        "constraints": list(i.constraints),
        "modes": list(i.modes),
        "exceptions": list(i.exceptions),
        "operation": i.operation.text,
        "prose": i.prose,
    }
