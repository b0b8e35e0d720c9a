"""The manual: an instruction's encoding, syntax, semantics and timing side by side, from the spec."""

from __future__ import annotations

from collections.abc import Iterator

from cim.isa.diagram import diagram
from cim.isa.encoding import decode, encode
from cim.isa.model import MODES, Instruction, Isa, Operand
from cim.isa.printer import format_instruction, syntax_text

# Which buffers an example names, in the order of its operands, by timing class.
_EXAMPLE_BUFFERS = {"load": ("ib",), "store": ("rb",), "gpeu": ("rb", "ob", "pb")}
_EXAMPLE_VALUES = {"address": 0x100, "core": 1, "bits": 6, "unsigned": 32}


def example_operands(isa: Isa, instruction: Instruction) -> dict[str, int]:
    """Operand values that make a sensible example."""
    buffers = iter(_EXAMPLE_BUFFERS.get(instruction.timing_class, ()))
    values = {
        name: isa.buffers[next(buffers)].code
        if operand.kind == "buffer"
        else min(_EXAMPLE_VALUES[operand.kind], operand.maximum)
        for name, operand in instruction.operands.items()
    }
    return values | ({"lo": 0} if "lo" in values else {})


def example(isa: Isa, instruction: Instruction) -> tuple[str, int]:
    """An example of the instruction as text and word."""
    mode = next(mode for mode in ("i8", *MODES) if mode in instruction.modes)
    words = encode(instruction, example_operands(isa, instruction)).reshape(1)
    return format_instruction(isa, decode(isa, words), 0, mode), int(words[0])


def operand_rows(isa: Isa, instruction: Instruction) -> list[tuple[str, str, str, str]]:
    """Name, kind, range and bits of each operand."""
    return [
        (name, operand.kind, _range(isa, operand), _bits(operand))
        for name, operand in instruction.operands.items()
    ]


def _range(isa: Isa, operand: Operand) -> str:
    if operand.kind == "buffer":
        return ", ".join(isa.buffers)
    if operand.kind == "bits":
        return "an int32, in mode f32 a float32"
    text = f"{operand.minimum} to {operand.maximum}"
    return f"{text}; without it the used {operand.default}" if operand.default else text


def _bits(operand: Operand) -> str:
    field = operand.field
    return f"{field.lsb + field.width - 1}:{field.lsb}"


_LENGTHS = {"crossbar_inputs": "N", "crossbar_outputs": "M"}


def explain(isa: Isa, instruction: Instruction) -> Iterator[str]:
    """Everything about one instruction, as plain text."""
    yield f"{syntax_text(instruction)}"
    yield ""
    yield from (f"  {line}" for line in instruction.prose.split("\n"))
    yield ""
    yield from (f"  {line}" for line in diagram(instruction))
    yield f"  match {instruction.match:#018x}, mask {instruction.mask:#018x}"
    yield ""
    for name, kind, limits, bits in operand_rows(isa, instruction):
        yield f"  {name.upper():<8} {kind:<9} bits {bits:<6} {limits}"
    for constraint in instruction.constraints:
        yield f"  must hold: {constraint}"
    yield ""
    if any(operand.kind == "buffer" for operand in instruction.operands.values()):
        for buffer in isa.buffers.values():
            yield f"  {buffer.name}  {buffer.prose}; {_LENGTHS[buffer.length]} elements"
        yield "  (of an MxN crossbar, M outputs x N inputs; the numeric mode sets the element types)"
        yield ""
    yield "  operation"
    yield from (f"    {line}" for line in instruction.operation.text.strip().split("\n"))
    yield ""
    for name in instruction.exceptions:
        yield f"  raises {name}: {isa.exceptions[name]}"
    yield f"  time   {isa.timing[instruction.timing_class]}"
    if instruction.modes != MODES:
        yield f"  modes  {', '.join(instruction.modes)}"
    if instruction.extension:
        yield f"  needs  .extension {instruction.extension}"
    text, word = example(isa, instruction)
    yield ""
    yield f"  example  {text}    =  {word:#018x}"


def manual(isa: Isa) -> str:
    """The manual in Markdown."""
    return "\n".join(_manual(isa)) + "\n"


def _manual(isa: Isa) -> Iterator[str]:
    yield f"# Instruction set {isa.name}, version {isa.version}"
    yield ""
    yield "Generated from [isa.toml](isa.toml) by `cim-isa export md`; do not edit."
    yield ""
    yield (
        f"Words have {isa.word_bits} bits and are little-endian. The all-zero word is illegal, unused bits must be "
        "zero. The machine's state, the numeric modes and the language of the operations are described in "
        "[machine.md](machine.md), what cores may assume of each other in [memory-model.md](memory-model.md), time "
        "in [timing.md](timing.md)."
    )
    yield ""
    yield "| instruction | class | bits 63:0 match | mask |"
    yield "|---|---|---|---|"
    for i in isa.instructions.values():
        anchor = i.name.replace(".", "")
        yield f"| [`{syntax_text(i)}`](#{anchor}) | {i.timing_class} | `{i.match:#018x}` | `{i.mask:#018x}` |"
    yield ""
    yield "## Buffers"
    yield ""
    yield "| buffer | code | elements | element type | |"
    yield "|---|---|---|---|---|"
    for b in isa.buffers.values():
        yield f"| `{b.name}` | {b.code} | {b.length} | {b.type} | {b.prose} |"
    yield ""
    yield (
        "`crossbar_inputs` is N and `crossbar_outputs` M of an MxN crossbar. A word with any other buffer code "
        "is illegal."
    )
    yield ""
    yield "## Exceptions"
    yield ""
    yield "| exception | when |"
    yield "|---|---|"
    for name, prose in isa.exceptions.items():
        yield f"| `{name}` | {prose} |"
    for extension in isa.extensions.values():
        yield ""
        yield f"Extension `{extension.name}`, version {extension.version}: {extension.prose}"
    for i in isa.instructions.values():
        yield ""
        yield from _section(isa, i)


def _section(isa: Isa, i: Instruction) -> Iterator[str]:
    yield f"## {i.name}"
    yield ""
    yield f"`{syntax_text(i)}`"
    yield ""
    yield i.prose
    yield ""
    yield "```text"
    yield from diagram(i)
    yield "```"
    yield ""
    if i.operands:
        yield "| operand | kind | bits | range |"
        yield "|---|---|---|---|"
        for name, kind, limits, bits in operand_rows(isa, i):
            yield f"| `{name}` | {kind} | {bits} | {limits} |"
        yield ""
    for constraint in i.constraints:
        yield f"`{constraint}` must hold; a word that breaks it is illegal."
        yield ""
    yield "```python"
    yield i.operation.text.strip()
    yield "```"
    yield ""
    if i.exceptions:
        yield f"Raises {', '.join(f'`{name}`' for name in i.exceptions)}."
    yield f"Time: {isa.timing[i.timing_class]}"
    if i.modes != MODES:
        yield f"Only in mode {' and '.join(f'`{mode}`' for mode in i.modes)}; illegal in others."
    if i.extension:
        yield f"Part of extension `{i.extension}`."
    text, word = example(isa, i)
    yield ""
    yield f"Example: `{text}` is `{word:#018x}`."
