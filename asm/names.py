"""The names of an assembly: symbols, local labels and constants, and what an expression finds under them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cim.asm.expansion import Scope
from cim.asm.expressions import DEFINED, ExpressionError, Spot, Value, evaluate, not_constant, shown
from cim.asm.forecast import Forecast, Stretch, whole
from cim.asm.image import Location
from cim.asm.local_labels import PREFIX, NumericLabels, is_local, named_key
from cim.asm.objects import CoreAttributes, SourcePlace, Symbol
from cim.asm.sections import Sections
from cim.asm.syntax import Expression, Label, Op, Place
from cim.asm.where import Where
from cim.diagnostics import Diagnostic, Note, did_you_mean
from cim.isa.model import Isa


@dataclass(frozen=True)
class SymbolTable:
    """The symbols of the object.

    `number` and `moved` say for each symbol of the assembly which of them it became, and by how many bytes
    addends move with that: a local label becomes its section and an offset.
    """

    symbols: list[Symbol]
    number: NDArray[np.uint32]
    moved: NDArray[np.int64]


class Names:
    """All names so far. `forecast` is what the pass before found, `location_of` the line that is recorded."""

    def __init__(
        self, isa: Isa, sections: Sections, cores: list[CoreAttributes], defines: Mapping[str, int],
        forecast: Forecast, report: Callable[[Diagnostic], None],
        location_of: Callable[[Where], Location],
    ) -> None:  # fmt: skip
        self.isa = isa
        self.sections = sections
        self.cores = cores
        self.defines = defines
        self.before = forecast
        self.report = report
        self.location_of = location_of
        self.symbols: dict[str, Symbol] = {}
        self.numbers: dict[str, int] = {}  # a symbol keeps its number when it is defined later
        self.places: dict[str, tuple[Where, Place]] = {}
        self.spots: dict[str, Spot] = {}
        self.definitions: dict[str, SourcePlace] = {}
        self.numeric = NumericLabels()
        self.homes: dict[str, list[str]] = {}  # of each `.Lname` the sections that define it
        self.uses: dict[str, tuple[Where, Place]] = {}  # of local labels that are not defined yet
        self.shapes: dict[str, tuple[Stretch, ...]] = {}
        self.order = 0  # grows with every label and line
        self.stretches: list[Stretch] = []  # what the values of the current line depend on
        self.incomplete = False  # whether something was asked for that stands further down
        self.foretold = False  # whether something was answered by the pass before
        self.guessed = False  # whether something was taken as 0 until a later pass knows it
        self.new_file()

    def new_file(self) -> None:
        """Constants and numeric labels belong to one file."""
        self.constants: dict[str, int | float] = dict(self.defines)
        self.constant_places: dict[str, tuple[Where, Place]] = {}
        self.constant_stretches: dict[str, tuple[Stretch, ...]] = {}
        self.exported: set[str] = set()  # names of .globl
        self.late: dict[str, Expression] = {}  # .equ that stands further down
        self.resolving: list[str] = []
        self.numeric.new_file()

    # --- looking up --------------------------------------------------------------------------------------

    def lookup(self, scope: Scope) -> Callable[[str, Place], Value]:
        """The resolver for names inside loops: loop variables, then constants, else a symbol."""

        def find(name: str, place: Place) -> Value:
            if name.startswith(DEFINED):
                return Value(int(self.is_defined(name.removeprefix(DEFINED))))
            if name in scope:
                return Value(scope[name])
            if name in self.constants:
                self.stretches += self.constant_stretches.get(name, ())
                return Value(self.constants[name])
            if name in self.isa.buffers:
                raise ExpressionError(f"the buffer '{name}' has no number", place)
            if name in self.late:
                return Value(self._late(name, place))
            if name == ".":
                return self._here(scope, place)
            key = self._key(name, place)
            return Value(0, key, self._spot(key))

        return find

    def constant(self, expression: Expression) -> int | float:
        """A number that does not depend on loops. Raises `ExpressionError` for an address."""
        value = evaluate(expression, self.lookup({}), self)
        if value.symbol is not None or isinstance(value.number, np.ndarray):
            raise not_constant(value, expression.place, self.constants, ".let or .equ")
        return value.number

    def _key(self, name: str, place: Place) -> str:
        """A symbol's name, or the key of the local label that is meant here."""
        if not is_local(name):
            return name
        if name[0].isdecimal():
            if self.resolving:
                raise ExpressionError(
                    f"'{name}' depends on the line, and must not be in an .equ that stands after its use",
                    place,
                )
            return self.numeric.used(name, place)
        return named_key(name, self.sections.here.name if self.sections.here else "")

    def _spot(self, key: str) -> Spot | None:
        """Where a symbol stands, so far as this pass or the one before knows it."""
        if key in self.spots:
            return self.spots[key]
        if key in self.before.spots:
            self.foretold = True
            return self.before.spots[key]
        if key.startswith(PREFIX):
            return self._elsewhere(shown(key))
        return None

    def _elsewhere(self, name: str) -> Spot | None:
        """Where a `.Lname` of another section stands, if there is only one."""
        homes = self.homes.get(name, []) or self.before.homes.get(name, [])
        if len(homes) != 1:
            return None
        self.foretold = True  # the own section may still define it: then the next pass knows
        key = named_key(name, homes[0])
        return self.spots[key] if key in self.spots else self.before.spots[key]

    def _late(self, name: str, place: Place) -> int | float:
        """The value of an `.equ` that stands further down. Raises `ExpressionError` for a circle."""
        if name in self.resolving:
            circle = " -> ".join([*self.resolving[self.resolving.index(name) :], name])
            raise ExpressionError(f"'{name}' is defined by itself: {circle}", place)
        self.resolving.append(name)
        try:
            return self.constant(self.late[name])
        except ExpressionError as problem:
            # The columns are those of another line.
            where = f" (in .equ '{name}')" if len(self.resolving) == 1 else ""
            raise ExpressionError(f"{problem.message}{where}", place) from None
        finally:
            self.resolving.pop()

    def _here(self, scope: Scope, place: Place) -> Value:
        """`.`: the place of the current statement, from the beginning of its core or region."""
        section = self.sections.here
        if section is None or scope:
            raise ExpressionError("'.' has no value outside a core or region, or in a loop", place)
        if section.kind == "crossbar":
            raise ExpressionError("'.' has no address in a crossbar", place)
        return Value(section.size, section.owner, Spot(section.name, 0, self.order))

    def is_constant(self, name: str) -> bool:
        """Whether a name is a `.let`, `.set` or `.equ` constant."""
        return name in self.constants or name in self.late

    def is_defined(self, name: str) -> bool:
        """Whether a name is a constant or a symbol that has been defined so far."""
        return name in self.constants or self._key(name, Place(1, 2)) in self.spots

    # --- what expressions ask ----------------------------------------------------------------------------

    def distance(self, left: Value, right: Value) -> Value | None:
        """Notes what the distance of two labels depends on; 0 so long as it is not known yet."""
        a, b = left.spot, right.spot
        if a is None or b is None:
            return Value(0) if self._may_guess() else None
        if a.section == b.section:
            what = f"the distance from '{shown(right.symbol)}' to '{shown(left.symbol)}'"
            first, last = sorted((a.order, b.order))
            self.stretches.append(Stretch(a.section, first, last, what))
        return None

    def _may_guess(self) -> bool:
        """Whether to go on with 0 for something that stands further down."""
        self.incomplete = True
        if not self.before.is_last:
            self.guessed = True
        return not self.before.is_last

    def function(self, name: str, argument: Value, op: Op) -> Value:
        """`sizeof`, `core`, `hg` and `vg` of a name. Raises `ExpressionError`."""
        of = argument.symbol
        if of is None or argument.is_core or is_local(of) or not _is_zero(argument):
            wanted = "a core, region or section" if name == "sizeof" else "a core"
            raise ExpressionError(f"{name} takes the name of {wanted}", op.place)
        return Value(self._size(of, op)) if name == "sizeof" else self._of_core(name, of, op)

    def _size(self, name: str, op: Op) -> int:
        symbol = self.symbols.get(name)
        if symbol is not None and symbol.kind == "region":
            self.stretches += self.shapes.get(name, ())
            return symbol.size
        if name in self.before.sizes:
            self.foretold = True
            self.stretches += self.before.shapes.get(name, ())
            return self.before.sizes[name]
        if self._may_guess():
            return 0
        if symbol is not None and symbol.kind == "label":
            raise ExpressionError(f"'{name}' is a label, which has no size", op.place)
        raise ExpressionError(
            f"'{name}' is no core, region or section of this assembly, so its size is not known"
            f"{did_you_mean(name, self.before.sizes)}",
            op.place,
        )

    def _of_core(self, function: str, name: str, op: Op) -> Value:
        known = next((core for core in self.cores if core.name == name), None)
        if known is None and name in self.before.cores:
            self.foretold = True
            known = self.before.cores[name]
        if known is not None:
            return Value({"core": known.number, "hg": known.hg, "vg": known.vg}[function])
        symbol = self.symbols.get(name)
        if symbol is not None and symbol.section is not None:
            raise ExpressionError(
                f"'{name}' is a {symbol.kind}, {function} takes the name of a core", op.place
            )
        if function == "core":
            self.incomplete = True
            return Value(0, name, is_core=True)
        if self._may_guess():
            return Value(0)
        raise ExpressionError(
            f"core '{name}' is not in this assembly, so {function}({name}) is not known"
            f"{did_you_mean(name, self.before.cores)}",
            op.place,
        )

    # --- defining ----------------------------------------------------------------------------------------

    def define_constant(self, where: Where, name: str, place: Place, value: Expression) -> None:
        """`.let`, `.set` and `.equ` outside loops."""
        symbol = self.symbols.get(name)
        if symbol is not None and symbol.section is not None:
            raise ExpressionError(f"'{name}' is already a {symbol.kind}", place)
        self.constants[name] = self.constant(value)
        self.constant_places[name] = (where, place)
        self.constant_stretches[name] = tuple(self.stretches)

    def define_label(self, where: Where, label: Label) -> None:
        """A label at the current end of the current section."""
        current, section = self.sections.current, self.sections.here
        if current is None or section is None:
            raise ExpressionError("a label must be in a core or region", label.place)
        key = label.name
        if key[0].isdecimal():
            key = self.numeric.define(key)
        elif is_local(key):
            key = named_key(key, section.name)
            self.homes.setdefault(label.name, []).append(section.name)
        self.define_symbol(where, key, label.place, "label", current, section.size, 0, False)

    def define_symbol(
        self, where: Where, key: str, place: Place, kind: str, section: int, value: int, size: int,
        is_global: bool,
    ) -> None:  # fmt: skip
        """Add a defined symbol. Raises nothing: a second definition is reported with both places."""
        name = shown(key)
        if name.lower() in self.isa.buffers:
            raise ExpressionError(f"'{name}' is a buffer and must not be a symbol", place)
        if self.is_constant(name):
            raise ExpressionError(f"'{name}' is already a constant (.let, .equ or -D)", place)
        if kind != "label" and is_local(name):
            raise ExpressionError(f"'{name}' begins with .L, as only local labels do", place)
        known = self.symbols.get(key)
        if known is not None and known.section is not None:
            first_where, first_place = self.places[key]
            self.report(
                Diagnostic(
                    f"'{name}' is already defined",
                    where.span(place),
                    notes=(Note("first defined here", first_where.span(first_place)),),
                )
            )
            return
        self.numbers.setdefault(key, len(self.symbols))
        self.symbols[key] = Symbol(
            name, kind, section, value, size, is_global or name in self.exported
        )
        self.order += 1
        self.spots[key] = Spot(self.sections.all[section].name, value, self.order)
        self.places[key] = (where, place)
        location = self.location_of(where)
        self.definitions[key] = SourcePlace(location.file, location.line, place.start)

    def export(self, name: str) -> None:
        """`.globl`, before or after the definition."""
        self.exported.add(name)
        symbol = self.symbols.get(name)
        if symbol is not None:
            self.symbols[name] = replace(symbol, is_global=True)

    def reference(self, key: str, where: Where, place: Place) -> int:
        """The number of a symbol that a relocation names; it may be defined later, or elsewhere."""
        if key not in self.symbols:
            self.numbers[key] = len(self.symbols)
            self.symbols[key] = Symbol(shown(key), "label", None, 0, 0, True)
        if is_local(key) and self.symbols[key].section is None:
            self.uses.setdefault(key, (where, place))
        return self.numbers[key]

    # --- the end -----------------------------------------------------------------------------------------

    def forecast(self) -> Forecast:
        """What this pass found, for the next."""
        made = Forecast(
            dict(self.spots),
            {},
            {core.name: core for core in self.cores},
            dict(self.shapes),
            self.homes,
        )
        for symbol in self.symbols.values():
            if symbol.kind == "region":
                made.sizes[symbol.name] = symbol.size
        for section in self.sections.all:
            if section.kind in ("text", "section"):
                made.sizes[section.owner] = section.size
                made.shapes[section.owner] = (
                    whole(section.name, f"the size of '{section.owner}'"),
                )
        return made

    def resolve_local(self) -> None:
        """Give each `.Lname` that its own section does not define the only one there is; report the others."""
        for key, (where, place) in self.uses.items():
            if self.symbols[key].section is not None:
                continue
            name = shown(key)
            homes = self.homes.get(name, [])
            if len(homes) == 1:
                home = self.symbols[named_key(name, homes[0])]
                self.symbols[key] = home
                if not homes[0].startswith(".crossbar"):
                    continue
            if name[0].isdecimal():
                message = f"there is no label '{name}:' after this line"
            elif len(homes) == 1:
                message = f"'{name}' is in a crossbar, which has no address"
            elif homes:
                message = (
                    f"'{name}' is not defined here, but in {' and '.join(homes)}: which is meant?"
                )
            else:
                known = did_you_mean(name, self.homes)
                message = f"the local label '{name}' is not defined{known}"
            self.report(Diagnostic(message, where.span(place)))

    def table(self, keep_local: bool) -> SymbolTable:
        """The symbols by name, in whatever order they were met. Local labels only where they are kept."""
        keys = sorted(
            (
                key
                for key in self.symbols
                if (keep_local and key in self.spots) or not is_local(key)
            ),
            key=lambda key: (self.symbols[key].name, key),
        )
        position = {key: index for index, key in enumerate(keys)}
        number = np.zeros(len(self.symbols), dtype=np.uint32)
        moved = np.zeros(len(self.symbols), dtype=np.int64)
        for key, symbol in self.symbols.items():
            at = self.numbers[key]
            if not is_local(key):
                number[at] = position[key]
            elif (
                symbol.section is not None and self.sections.all[symbol.section].kind != "crossbar"
            ):
                number[at] = position[self.sections.all[symbol.section].owner]
                moved[at] = symbol.value
        return SymbolTable([self.symbols[key] for key in keys], number, moved)


def _is_zero(value: Value) -> bool:
    return isinstance(value.number, int) and value.number == 0
