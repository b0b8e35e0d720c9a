"""Objects and images as assembly text that assembles to the same sections, relocations and attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from cim.asm import byte_sections
from cim.asm.directives_text import (
    machine_directive,
    parameter_lines,
    region_directive,
    value_text,
)
from cim.asm.image import Image
from cim.asm.objects import (
    DATA_BYTES,
    Attributes,
    CoreAttributes,
    ModeAttributes,
    Object,
    RegionAttributes,
    RelocationType,
    Section,
    Symbol,
)
from cim.asm.program_text import Show, labels_of, program_lines, symbol_text

VALUES_A_LINE = 16
ENTRY = ".Lentry"
DIRECTIVES = {2: ".half", 4: ".word", 8: ".quad"}


def disassemble(obj: Object, show: Show | None = None) -> Iterator[str]:
    """The lines of the assembly text; `show` says how programs are written."""
    attributes = obj.attributes
    if attributes.machine is not None:
        yield machine_directive(attributes.machine)
    if attributes.mode is not None:
        mode = attributes.mode
        yield f".mode {mode.mode}, ifm={mode.ifm}, ofm={mode.ofm}"
    for extension in attributes.extensions:
        yield f".extension {extension}"
    for key, value in attributes.layer.items():
        yield f".layer {key}={value_text(value)}"
    cores = {core.name: core for core in attributes.cores}
    regions = {region.name: region for region in attributes.regions}
    for index, section in enumerate(obj.sections):
        yield ""
        if section.kind == "text":
            yield from _core_lines(cores[section.owner])
            yield from program_lines(obj, index, show or Show())
        elif section.kind == "crossbar":
            core = cores[section.owner]
            yield f".crossbar rows={core.rows}, columns={core.columns}"
            mode_name = attributes.mode.mode if attributes.mode else "i8"
            yield from _cell_lines(section, mode_name)
        elif section.kind == byte_sections.KIND:
            yield _section_line(section)
            if section.align > 1:
                yield f"  .align {section.align}"
            yield from _data_lines(obj, index)
        else:
            r = regions[section.owner]
            yield region_directive(
                r.name, r.type, r.shape, r.role, r.layout, r.scale, r.zero_point, r.align
            )
            yield from _data_lines(obj, index)


def _core_lines(core: CoreAttributes) -> Iterator[str]:
    yield f".core {core.name}, {core.number}, hg={core.hg}, vg={core.vg}"
    for name, values in core.parameters.items():
        yield from parameter_lines(name, values)


def _cell_lines(section: Section, mode: str) -> Iterator[str]:
    if mode == "f32" and section.size % 4 == 0:
        for start in range(0, section.size, 4 * VALUES_A_LINE):
            part = section.data[start : start + 4 * VALUES_A_LINE]
            floats = part.view("<f4")
            if np.isfinite(floats).all():
                yield f"  .float {', '.join(str(v) for v in floats)}"
            else:
                yield f"  .word {', '.join(hex(v) for v in part.view('<u4'))}"
    elif section.size % 2 == 0:
        cells = section.data.view("<i2")
        for start in range(0, len(cells), VALUES_A_LINE):
            yield f"  .half {', '.join(str(v) for v in cells[start : start + VALUES_A_LINE])}"
    else:
        yield from _byte_lines(section.data)


def _byte_lines(data: np.ndarray[Any, Any]) -> Iterator[str]:
    for start in range(0, len(data), VALUES_A_LINE):
        yield f"  .byte {', '.join(str(v) for v in data[start : start + VALUES_A_LINE])}"


def _section_line(section: Section) -> str:
    by_name = byte_sections.is_placeholder_name(section.owner)
    if section.has_content == by_name and section.size:
        return f'.section {section.owner}, "aw", {"progbits" if by_name else "nobits"}'
    return f".section {section.owner}"


def _data_lines(obj: Object, index: int) -> Iterator[str]:
    section = obj.sections[index]
    labels = labels_of(obj, index)
    relocations = {int(row["offset"]): row for row in section.relocations}
    stops = sorted({*labels, *relocations, section.size})
    at = 0
    for stop in stops:
        if section.has_content:
            yield from _byte_lines(section.data[at:stop])
        elif section.size and stop > at:
            yield f"  .space {stop - at}"
        at = max(at, stop)
        yield from labels.get(stop, ())
        if stop in relocations:
            row = relocations[stop]
            width = DATA_BYTES[RelocationType(int(row["type"]))]
            yield f"  {DIRECTIVES[width]} {symbol_text(obj, row)}"
            at = stop + width


def image_as_object(image: Image) -> Object:
    """An image seen as an object without relocations, to be shown by the same code.

    Its only symbols are labels where cores do not start at their first instruction.
    """
    config = image.config
    attributes = Attributes(
        mode=ModeAttributes(config.mode, config.ifm, config.ofm),
        machine=config.machine,
        extensions=config.extensions,
        locations=config.locations,
    )
    sections: list[Section] = []
    symbols = []
    for core in config.cores:
        if core.entry:
            label = Symbol(ENTRY, "label", len(sections), core.entry, 0, False)
            symbols.append(label)
        parameters = {k: v.tolist() for k, v in image.parameters(core).items()}
        attributes.cores.append(
            CoreAttributes(
                core.name, core.number, core.hg, core.vg, core.rows, core.columns, parameters
            )
        )
        sections.append(
            Section("text", core.name, 64, core.program.size, image.words(core).view(np.uint8),
                    lines=image.line_index(core))
        )  # fmt: skip
        weights = image.weights(core)
        if weights is not None:
            raw = np.frombuffer(weights.tobytes(), dtype=np.uint8)
            sections.append(Section("crossbar", core.name, 8, len(raw), raw))
    for region in config.regions:
        attributes.regions.append(
            RegionAttributes(
                region.name, region.type, region.shape, region.role, region.layout, region.scale,
                region.zero_point, 64,
            )
        )  # fmt: skip
        content = b""
        if region.content is not None:
            start = region.content.offset
            content = image.content[start : start + region.content.size]
        raw = np.frombuffer(content, dtype=np.uint8)
        sections.append(Section("region", region.name, 64, len(raw), raw))
    return Object(str(image.path), sections, symbols, attributes)
