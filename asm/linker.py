"""Links objects to an image: resolves symbols, lays out shared memory, checks every capacity."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from cim.asm import capacity
from cim.asm.capacity import CorePart, RegionPart
from cim.asm.image import (
    BIN_HEADER,
    BIN_MAGIC,
    FORMAT_VERSION,
    Config,
    CoreConfig,
    Image,
    LayerDescription,
    Location,
    Region,
    Segment,
    digest,
)
from cim.asm.objects import (
    ModeAttributes,
    Object,
    RelocationType,
    Section,
    Symbol,
)
from cim.diagnostics import CimError, Diagnostic, Note, did_you_mean
from cim.isa.encoding import OperandError, decode, field_values, patch
from cim.isa.interpreter import PARAMETERS
from cim.isa.load import load_isa
from cim.isa.machine import Machine, load_machine
from cim.isa.numerics import DTYPES, NumericMode

PROGRAM_ALIGN = 64
ADDRESS_SPACE = 2**32


def link(objects: Iterable[Object], name: str) -> Image:
    """The image of one or more objects; `name` is the path of its files without a suffix.

    The order of the objects does not matter: cores are sorted by number, regions by name.
    Raises `CimError` with every undefined or duplicate symbol and every capacity that is exceeded.
    """
    return _Linker(list(objects), name).link()


class _Linker:
    def __init__(self, objects: list[Object], name: str) -> None:
        self.objects = objects
        self.path = Path(f"{name}.cfg")
        self.isa = load_isa()
        self.found: list[Diagnostic] = []
        self.cores: list[CorePart] = []
        self.regions: list[RegionPart] = []
        self.globals: dict[str, tuple[Object, Symbol]] = {}

    def link(self) -> Image:
        self.machine = self._same("machine", [o.attributes.machine for o in self.objects])
        self.mode = self._numeric_mode()
        self._collect_parts()
        self._collect_globals()
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
            region.content = region.section.data.copy()
            self._relocate(region.obj, region.section, region.content, None)
        self.stop_on_errors()
        return self._image(memory_bytes)

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
                else:
                    self.regions.append(RegionPart(region, obj, section))
        self.cores.sort(key=lambda core: core.attributes.number)
        self.regions.sort(key=lambda region: region.attributes.name)
        self.core_numbers = {c.attributes.name: c.attributes.number for c in self.cores}
        if not self.cores:
            self.fail("there is no core in the input: nothing to link", self.path.stem)
        for one, two in zip(self.cores, self.cores[1:], strict=False):
            if one.attributes.number == two.attributes.number:
                self.fail(
                    f"core number {two.attributes.number} is '{two.attributes.name}' here and "
                    f"'{one.attributes.name}' in {one.obj.name}",
                    two.obj.name,
                )

    def _collect_globals(self) -> None:
        for obj in self.objects:
            for symbol in obj.symbols:
                if not symbol.is_global or symbol.section is None:
                    continue
                if symbol.name in self.globals:
                    first = self.globals[symbol.name][0]
                    before = first.attributes.definitions.get(symbol.name)
                    self.fail(
                        f"duplicate symbol '{symbol.name}'",
                        _place(obj.attributes.definitions.get(symbol.name), obj),
                        [f"first defined at {_place(before, first)}"],
                    )
                else:
                    self.globals[symbol.name] = (obj, symbol)

    # --- layout and relocation ---------------------------------------------------------------------------

    def _layout(self) -> int:
        """Regions by name, then programs by core number; returns the bytes used."""
        at = 0
        for region in self.regions:
            region.address = _align(at, region.attributes.align)
            at = region.address + region.size
        for core in self.cores:
            core.address = _align(at, PROGRAM_ALIGN)
            at = core.address + core.text.size
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
        assert symbol.section is not None
        section = obj.sections[symbol.section]
        if section.kind == "region":
            base = next(r.address for r in self.regions if r.section is section)
        else:
            base = next(c.address for c in self.cores if c.text is section)
        return base + symbol.value, symbol.kind

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
                    self._undefined(symbol, obj, section, rows)
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
        if kind == RelocationType.CORE:
            if symbol_kind != "core":
                where = self._line(obj, section, int(rows["offset"][0]))
                self.fail(f"'{symbol.name}' is a {symbol_kind}, call needs a core", where)
                return
            value = self.core_numbers[symbol.name]
        values = value + rows["addend"]
        if kind in (RelocationType.ABS32, RelocationType.ABS64):
            width = 4 if kind == RelocationType.ABS32 else 8
            if np.any((values < 0) | (values >= 2 ** min(8 * width, 63))):
                self.fail(f"'{symbol.name}' + addend does not fit {width} bytes", obj.name)
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
        found = decode(self.isa, words[at]).index
        instructions = list(self.isa.instructions.values())
        for number in np.unique(found):
            operands = instructions[int(number)].operands.values() if number >= 0 else ()
            operand = next((o for o in operands if o.kind == wanted), None)
            chosen = found == number
            if operand is None:
                self.fail(f"a relocation meets an instruction without {wanted}", obj.name)
                continue
            assert not field_values(operand, words[at[chosen]]).any()
            try:
                words[at[chosen]] = patch(operand, words[at[chosen]], values[chosen])
            except OperandError as problem:
                offset = int(rows["offset"][chosen][problem.index])
                addend = int(rows["addend"][chosen][problem.index])
                self.fail(
                    f"'{symbol.name}' {addend:+d}: {problem}", self._line(obj, section, offset)
                )

    def _line(self, obj: Object, section: Section, offset: int) -> str:
        if section.kind != "text":
            return obj.name
        return _place(obj.attributes.locations[int(section.lines[offset // 8])], obj)

    def _undefined(self, symbol: Symbol, obj: Object, section: Section, rows: NDArray[Any]) -> None:
        lines = list(
            dict.fromkeys(self._line(obj, section, int(o)) for o in rows["offset"][:10_000])
        )
        self.fail(
            f"undefined symbol '{symbol.name}'{did_you_mean(symbol.name, self.globals)}",
            lines[0],
            [f"also used at {line}" for line in lines[1:]],
        )

    # --- the image ---------------------------------------------------------------------------------------

    def _image(self, memory_bytes: int) -> Image:
        content = bytearray(BIN_HEADER.pack(BIN_MAGIC, FORMAT_VERSION, 0))

        def add(data: bytes) -> Segment:
            content.extend(bytes(-len(content) % 8))
            segment = Segment(len(content), len(data))
            content.extend(data)
            return segment

        locations: dict[Location, int] = {}
        cores = [self._core_config(core, add, locations) for core in self.cores]
        regions = [self._region_config(region, add) for region in self.regions]
        config = Config(
            isa=self.isa.name,
            isa_version=self.isa.version,
            extensions=sorted({e for o in self.objects for e in o.attributes.extensions}),
            machine=self.machine,
            mode=self.mode.mode,  # type: ignore[arg-type]  # NumericMode has checked them
            ifm=self.mode.ifm,  # type: ignore[arg-type]
            ofm=self.mode.ofm,  # type: ignore[arg-type]
            memory_bytes=memory_bytes,
            bin_name=self.path.with_suffix(".bin").name,
            bin_size=len(content),
            bin_sha256=digest(bytes(content)),
            regions=regions,
            cores=cores,
            locations=list(locations),
            layer=self._layer(),
        )
        return Image(config, bytes(content), self.path)

    def _core_config(self, core: CorePart, add: Any, locations: dict[Location, int]) -> CoreConfig:
        own = core.obj.attributes.locations
        used = np.unique(core.text.lines)
        renumber = np.zeros(int(used.max()) + 1 if used.size else 1, dtype="<u4")
        for index in used:
            renumber[index] = locations.setdefault(own[int(index)], len(locations))
        a = core.attributes
        parameters = {}
        for name in sorted(a.parameters):
            values = np.asarray(a.parameters[name], dtype=np.float64)
            vector = np.broadcast_to(values, (a.columns,)).astype(DTYPES[PARAMETERS[name][0]])
            parameters[name] = add(vector.tobytes())
        return CoreConfig(
            number=a.number,
            name=a.name,
            hg=a.hg,
            vg=a.vg,
            rows=a.rows,
            columns=a.columns,
            address=core.address,
            program=add(core.words.tobytes()),
            lines=add(renumber[core.text.lines].tobytes()),
            weights=add(core.crossbar.data.tobytes()) if core.crossbar is not None else None,
            parameters=parameters,
        )

    def _region_config(self, region: RegionPart, add: Any) -> Region:
        content = None
        if region.section.size:
            content = add(region.content.tobytes() + bytes(region.size - region.section.size))
        a = region.attributes
        return Region(
            name=a.name,
            role=a.role,
            address=region.address,
            size_bytes=region.size,
            type=a.type,
            shape=a.shape,
            layout=a.layout,
            scale=a.scale,
            zero_point=a.zero_point,
            content=content,
        )

    def _layer(self) -> LayerDescription | None:
        given = [o for o in self.objects if o.attributes.layer]
        if not given:
            return None
        if len(given) > 1:
            self.fail(f"{given[0].name} has a .layer too", given[1].name)
            self.stop_on_errors()
        raw = dict(given[0].attributes.layer)
        raw["reference"] = {
            "path": raw.pop("reference", None),
            "digest": raw.pop("reference_sha256", None),
        }
        try:
            return msgspec.convert(raw, LayerDescription)
        except msgspec.ValidationError as problem:
            self.fail(f".layer is not complete: {problem}", given[0].name)
            self.stop_on_errors()
            raise


def _align(address: int, to: int) -> int:
    return -(-address // to) * to


def _mode_text(mode: ModeAttributes) -> str:
    return f"{mode.mode}, ifm={mode.ifm}, ofm={mode.ofm}"


def _place(location: Location | None, obj: Object) -> str:
    return f"{location.file}:{location.line}" if location is not None else obj.name
