"""Links objects to an image: resolves symbols, lays out shared memory, checks every capacity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm import byte_sections, capacity
from cim.asm.capacity import CorePart, RegionPart, RegionPiece
from cim.asm.entries import set_entries
from cim.asm.image import Image
from cim.asm.layout import ADDRESS_SPACE, Layout, lay_out
from cim.asm.link_places import SHOWN, Places
from cim.asm.make_image import ImageMaker
from cim.asm.objects import (
    CORE_DATA,
    DATA_BYTES,
    Attributes,
    ModeAttributes,
    Object,
    RegionAttributes,
    RelocationType,
    Section,
    Symbol,
)
from cim.asm.option_expressions import Defsym
from cim.diagnostics import CimError, Diagnostic, Note, did_you_mean
from cim.isa.encoding import OperandError, field_values, identify, patch
from cim.isa.load import load_isa
from cim.isa.machine import Machine, load_machine
from cim.isa.numerics import NumericMode

SECTION_ALIGN = 64  # where the sections of one name begin, if none of them asks for more


@dataclass(frozen=True)
class LinkOptions:
    """What the command line adds to the objects.

    `defsyms` are numbers (addresses or core numbers), or other symbols, moved; `leave_out` names regions
    and byte sections that are dropped, each with its object; `entries` labels at which cores start.
    """

    layout: Layout = field(default_factory=Layout)
    defsyms: Mapping[str, Defsym] = field(default_factory=dict)
    leave_out: frozenset[tuple[str, str]] = frozenset()
    entries: tuple[str, ...] = ()


def link(objects: Iterable[Object], name: str, options: LinkOptions | None = None) -> Image:
    """The image of one or more objects; `name` is the path of its files without a suffix.

    The order of the objects does not matter: cores are sorted by number, regions by name.
    Raises `CimError` with every undefined or duplicate symbol and every capacity that is exceeded.
    """
    return _Linker(list(objects), name, options or LinkOptions()).link()


class _Linker:
    def __init__(self, objects: list[Object], name: str, options: LinkOptions) -> None:
        self.objects = objects
        self.options = options
        self.path = Path(f"{name}.cfg")
        self.isa = load_isa()
        self.found: list[Diagnostic] = []
        self.cores: list[CorePart] = []
        self.regions: list[RegionPart] = []
        self.globals: dict[str, tuple[Object, Symbol]] = {}
        self.places = Places()
        self.undefined: dict[str, list[tuple[Object, Section, NDArray[np.uint64]]]] = {}

    def link(self) -> Image:
        self.machine = self._same("machine", [o.attributes.machine for o in self.objects])
        self.mode = self._numeric_mode()
        self._collect_parts()
        self._collect_globals()
        self._place_defsyms()
        self.found += set_entries(self.options.entries, self.cores, self.objects, self.globals)
        self.stop_on_errors()
        self.found += capacity.check(
            self.machine, self.mode, self.cores, self.regions, self.path.stem
        )
        memory_bytes = self._layout()
        self.stop_on_errors()
        for core in self.cores:
            core.words = core.text.data.view("<u8").copy()
            self._relocate(core.obj, core.text, core.words.view(np.uint8), core.words)
        for region in self.regions:
            if not region.has_content():
                continue
            region.content = region.joined()
            for piece in region.pieces:
                self._relocate(piece.obj, piece.section, region.content[piece.offset :], None)
        self._report_undefined()
        self.stop_on_errors()
        maker = ImageMaker(
            self.isa, self.machine, self.mode, self.objects, self.cores, self.regions, self.path
        )
        return maker.image(memory_bytes)

    def fail(self, message: str, where: str = "", notes: Iterable[str] = ()) -> None:
        self.found.append(Diagnostic(message, where=where, notes=tuple(Note(n) for n in notes)))

    def stop_on_errors(self) -> None:
        if self.found:
            raise CimError(self.found)

    # --- collecting --------------------------------------------------------------------------------------

    def _same(self, what: str, values: list[Machine | None]) -> Machine:
        given = [(o, v) for o, v in zip(self.objects, values, strict=True) if v is not None]
        for obj, value in given[1:]:
            if value != given[0][1]:
                self.fail(f"has another .{what} than {given[0][0].name}", obj.name)
        return given[0][1] if given else load_machine()

    def _numeric_mode(self) -> NumericMode:
        given = [(o, o.attributes.mode) for o in self.objects if o.attributes.mode is not None]
        for obj, mode in given[1:]:
            if mode != given[0][1]:
                self.fail(
                    f"has .mode {_mode_text(mode)}, {given[0][0].name} has {_mode_text(given[0][1])}",
                    obj.name,
                )
        if not given:
            self.fail("no object has a .mode", self.path.stem)
            self.stop_on_errors()
        mode = given[0][1]
        made = NumericMode(mode.mode, mode.ifm, mode.ofm)
        wanted = {"i8": "wide", "i8n": "narrow"}.get(made.mode, self.machine.core.partial_sum)
        if wanted != self.machine.core.partial_sum:
            self.fail(
                f"mode {made.mode} needs core.partial_sum = {wanted}, the machine "
                f"'{self.machine.name}' has {self.machine.core.partial_sum}",
                given[0][0].name,
            )
        return made

    def _collect_parts(self) -> None:
        for obj in self.objects:
            sections = {(s.kind, s.owner): s for s in obj.sections}
            for core in obj.attributes.cores:
                text = sections.get(("text", core.name))
                if text is None:
                    self.fail(f"core '{core.name}' has no program section", obj.name)
                else:
                    crossbar = sections.get(("crossbar", core.name))
                    self.cores.append(CorePart(core, obj, text, crossbar))
            for region in obj.attributes.regions:
                section = sections.get(("region", region.name))
                if section is None:
                    self.fail(f"region '{region.name}' has no section", obj.name)
                elif (obj.name, region.name) not in self.options.leave_out:
                    self.regions.append(RegionPart(region, [RegionPiece(obj, section)]))
        self._collect_sections()
        self.cores.sort(key=lambda core: core.attributes.number)
        self.regions.sort(key=lambda region: region.attributes.name)
        self.core_numbers = {c.attributes.name: c.attributes.number for c in self.cores}
        if not self.cores:
            self.fail("there is no core in the input: nothing to link", self.path.stem)
        for one, two in zip(self.cores, self.cores[1:], strict=False):
            if one.attributes.number == two.attributes.number:
                self._fail_twice(
                    f"core number {two.attributes.number} is '{two.attributes.name}' here and "
                    f"'{one.attributes.name}' in {one.obj.name}",
                    (two.obj, two.attributes.name),
                    (one.obj, one.attributes.name),
                )

    def _collect_sections(self) -> None:
        """Sections of one name become one region, each piece at a multiple of its alignment."""
        by_name: dict[str, list[tuple[Object, Section]]] = {}
        for obj in self.objects:
            for section in obj.sections:
                left_out = (obj.name, section.owner) in self.options.leave_out
                if section.kind == byte_sections.KIND and not left_out:
                    by_name.setdefault(section.owner, []).append((obj, section))
        regions = {region.attributes.name: region for region in self.regions}
        for name, found in by_name.items():
            if name in regions:
                self.fail(
                    f"section '{name}' has the name of a region in {regions[name].pieces[0].obj.name}",
                    found[0][0].name,
                )
                continue
            pieces: list[RegionPiece] = []
            at, align = 0, SECTION_ALIGN
            for obj, section in byte_sections.in_order(found):
                at += -at % section.align
                pieces.append(RegionPiece(obj, section, at))
                at += section.size
                align = max(align, section.align)
            attributes = RegionAttributes(name, "u8", [at], align=align)
            self.regions.append(RegionPart(attributes, pieces))

    def _collect_globals(self) -> None:
        for name, defsym in self.options.defsyms.items():
            source = Object(str(defsym), [], [], Attributes())
            self.globals[name] = (source, _absolute(name, defsym.number))
        for obj in self.objects:
            for symbol in obj.symbols:
                if not symbol.is_global or symbol.section is None:
                    continue
                if symbol.name in self.globals:
                    first = self.globals[symbol.name][0]
                    self._fail_twice(
                        f"duplicate symbol '{symbol.name}'",
                        (obj, symbol.name),
                        (first, symbol.name),
                    )
                else:
                    self.globals[symbol.name] = (obj, symbol)

    def _place_defsyms(self) -> None:
        """Give the symbols that the command line makes of others the places of these."""
        defsyms = self.options.defsyms
        for name, defsym in defsyms.items():
            number, target, way = defsym.number, defsym.symbol, [name]
            while target is not None and target in defsyms and target not in way:
                way.append(target)
                number, target = number + defsyms[target].number, defsyms[target].symbol
            if target is None:
                self.globals[name] = (
                    Object(str(defsym), [], [], Attributes()),
                    _absolute(name, number),
                )
            elif target in way:
                self.found.append(Diagnostic(f"'{name}' is defined by itself", defsym.span))
            elif target not in self.globals:
                hint = did_you_mean(target, self.globals.keys() - {name})
                self.found.append(Diagnostic(f"undefined symbol '{target}'{hint}", defsym.span))
            else:
                owner, symbol = self.globals[target]
                if number:  # moved, it is a place, and no longer the core or region itself
                    symbol = replace(symbol, name=name, kind="label", value=symbol.value + number)
                self.globals[name] = (owner, symbol)

    def _fail_twice(
        self, message: str, second: tuple[Object, str], first: tuple[Object, str]
    ) -> None:
        """An error at the definition of a symbol, with a note where the first one is."""
        (obj, name), (other, other_name) = second, first
        before = other.attributes.definitions.get(other_name)
        note = self.places.note("first defined", before, other.name, other_name)
        place = obj.attributes.definitions.get(name)
        self.found.append(self.places.diagnostic(message, place, obj.name, name, [note]))

    # --- layout and relocation ---------------------------------------------------------------------------

    def _layout(self) -> int:
        """Addresses for regions and programs; returns the bytes used."""
        layout = self.options.layout
        known = {region.attributes.name for region in self.regions}
        gone = {name for _, name in self.options.leave_out} - known
        kept = {n: a for n, a in layout.regions.items() if n not in gone}
        at, found = lay_out(replace(layout, regions=kept), self.regions, self.cores)
        self.found += found
        self.addresses = {
            id(piece.section): region.address + piece.offset
            for region in self.regions
            for piece in region.pieces
        }
        self.addresses |= {id(core.text): core.address for core in self.cores}
        limit = self.machine.memory.size_bytes
        available = limit if isinstance(limit, int) else ADDRESS_SPACE
        if at > available:
            self.fail(
                f"shared memory needs {at} bytes, {available} are there: {at - available} too many "
                "(memory.size_bytes)",
                self.path.stem,
            )
        return at

    def _value(self, obj: Object, symbol: Symbol) -> tuple[int, str]:
        """What a defined symbol stands for: its address, and for a core its number, by kind."""
        if symbol.section is None:  # by --defsym
            return symbol.value, symbol.kind
        section = obj.sections[symbol.section]
        if id(section) not in self.addresses:
            self.fail(f"'{symbol.name}' is in {section.name}, which has no address", obj.name)
            return 0, symbol.kind
        return self.addresses[id(section)] + symbol.value, symbol.kind

    def _relocate(
        self, obj: Object, section: Section, content: NDArray[np.uint8],
        words: NDArray[np.uint64] | None,
    ) -> None:  # fmt: skip
        table = section.relocations
        numbers, first = np.unique(table["symbol"], return_index=True)
        for index in numbers[np.argsort(first)]:  # in the order of their first use
            symbol = obj.symbols[int(index)]
            rows = table[table["symbol"] == index]
            owner = obj
            if symbol.section is None:
                if symbol.name not in self.globals:
                    uses = self.undefined.setdefault(symbol.name, [])
                    uses.append((obj, section, rows["offset"][:10_000]))
                    continue
                owner, symbol = self.globals[symbol.name]
            for kind in np.unique(rows["type"]):
                chosen = rows[rows["type"] == kind]
                self._apply(
                    RelocationType(int(kind)), owner, symbol, obj, section, content, words, chosen
                )

    def _apply(
        self, kind: RelocationType, owner: Object, symbol: Symbol, obj: Object, section: Section,
        content: NDArray[np.uint8], words: NDArray[np.uint64] | None, rows: NDArray[Any],
    ) -> None:  # fmt: skip
        value, symbol_kind = self._value(owner, symbol)
        if kind == RelocationType.CORE or kind in CORE_DATA.values():
            if symbol_kind not in ("core", "absolute"):
                message = f"'{symbol.name}' is a {symbol_kind}, not a core"
                self._fail_use(message, symbol, obj, section, int(rows["offset"][0]))
                return
            value = self.core_numbers.get(symbol.name, value)
        values = value + rows["addend"]
        if kind in DATA_BYTES:
            width = DATA_BYTES[kind]
            high = 2 ** min(8 * width, 63) - 1
            bad = np.flatnonzero((values < 0) | (values > high))
            if bad.size:
                addend = int(rows["addend"][bad[0]])
                message = f"'{symbol.name}' {addend:+d} is {values[bad[0]]}, must be 0 to {high} in {width} bytes"
                self._fail_use(message, symbol, obj, section, int(rows["offset"][bad[0]]))
                return
            raw = values.astype(f"<u{width}").view(np.uint8).reshape(-1, width)
            content[rows["offset"].astype(np.int64)[:, None] + np.arange(width)] = raw
            return
        if words is None:
            self.fail(f"an instruction relocation in {section.name}", obj.name)
            return
        self._patch(kind, symbol, obj, section, words, rows, values)

    def _patch(
        self, kind: RelocationType, symbol: Symbol, obj: Object, section: Section,
        words: NDArray[np.uint64], rows: NDArray[Any], values: NDArray[np.int64],
    ) -> None:  # fmt: skip
        """Set the address or core operand of the instructions at the relocations."""
        wanted = "address" if kind == RelocationType.ADDRESS else "core"
        at = (rows["offset"] // 8).astype(np.int64)
        found = identify(self.isa, words[at])
        instructions = list(self.isa.instructions.values())
        for number in np.unique(found):
            operands = instructions[int(number)].operands.values() if number >= 0 else ()
            operand = next((o for o in operands if o.kind == wanted), None)
            chosen = found == number
            if operand is None:
                self.fail(f"a relocation meets an instruction without {wanted}", obj.name)
                continue
            if field_values(operand, words[at[chosen]]).any():
                self.fail(f"a relocation meets an operand {wanted} that is not zero", obj.name)
                continue
            try:
                words[at[chosen]] = patch(operand, words[at[chosen]], values[chosen])
            except OperandError as problem:
                offset = int(rows["offset"][chosen][problem.index])
                addend = int(rows["addend"][chosen][problem.index])
                message = f"'{symbol.name}' {addend:+d}: {problem}"
                self._fail_use(message, symbol, obj, section, offset)

    def _fail_use(
        self, message: str, symbol: Symbol, obj: Object, section: Section, offset: int
    ) -> None:
        """An error where a relocation's symbol stands."""
        place = self.places.use(obj, section, offset)
        self.found.append(self.places.diagnostic(message, place, obj.name, symbol.name))

    def _report_undefined(self) -> None:
        """One error for each symbol, with every place that uses it."""
        for name, uses in self.undefined.items():
            places = {
                (self.places.use(obj, section, offset), obj.name): None
                for obj, section, offsets in uses
                for offset in offsets.tolist()
            }
            (first, beside), *others = places
            notes = [
                self.places.note("also used", place, file, name, shown=index < SHOWN)
                for index, (place, file) in enumerate(others)
            ]
            message = f"undefined symbol '{name}'{did_you_mean(name, self.globals)}"
            self.found.append(self.places.diagnostic(message, first, beside, name, notes))


def _absolute(name: str, value: int) -> Symbol:
    return Symbol(name, "absolute", None, value, 0, True)


def _mode_text(mode: ModeAttributes) -> str:
    return f"{mode.mode}, ifm={mode.ifm}, ofm={mode.ofm}"
