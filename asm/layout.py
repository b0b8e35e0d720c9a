"""Where regions and programs lie in shared memory: by a layout file where it says so, else one by one."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cim.asm.capacity import CorePart, RegionPart
from cim.diagnostics import CimError, Diagnostic, Source, Span, did_you_mean
from cim.isa.toml_source import locate, parse

PROGRAM_ALIGN = 64
ADDRESS_SPACE = 2**32


@dataclass(frozen=True)
class Layout:
    """Addresses of regions by name, and of the first program."""

    regions: Mapping[str, int] = field(default_factory=dict)
    programs: int | None = None
    source: Source = Source("", "")  # noqa: RUF009  (never changed)


def read_layout(source: Source) -> Layout:
    """The content of a layout file. Raises `CimError` with all that is wrong, each at its line.

    It is TOML: `programs = ADDRESS`, and a table `[regions]` of `NAME = ADDRESS`.
    """
    raw = parse(source)
    found = [
        Diagnostic(f"must be 'programs' or 'regions', not '{key}'", locate(source, key))
        for key in raw
        if key not in ("programs", "regions")
    ]
    regions = raw.get("regions", {})
    if not isinstance(regions, dict):
        found.append(
            Diagnostic(
                "regions must be a table of NAME = ADDRESS, not a value", locate(source, "regions")
            )
        )
        regions = {}
    addresses: list[tuple[tuple[str, ...], object]] = [
        (("regions", name), value) for name, value in regions.items()
    ]
    if "programs" in raw:
        addresses.append((("programs",), raw["programs"]))
    for path, value in addresses:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < ADDRESS_SPACE:
            found.append(
                Diagnostic(
                    f"the address of '{path[-1]}' must be an integer from 0 to {ADDRESS_SPACE - 1:#x}, "
                    f"not {value!r}",
                    locate(source, *path),
                )
            )
    if found:
        raise CimError(found)
    return Layout(regions, raw.get("programs"), source)


@dataclass(frozen=True, order=True)
class _Placed:
    start: int
    end: int
    what: str
    key: tuple[str, ...] = field(compare=False)

    def __str__(self) -> str:
        return f"{self.what} ({self.start:#x} to {self.end - 1:#x})"


def lay_out(
    layout: Layout, regions: Iterable[RegionPart], cores: Iterable[CorePart]
) -> tuple[int, list[Diagnostic]]:
    """Sets the address of each part; returns the bytes used, and what cannot be as the layout says.

    Regions that the layout does not name follow each other in the order given, around those that it does;
    programs come after all regions.
    """
    return _Placer(layout, list(regions), list(cores)).place()


class _Placer:
    def __init__(self, layout: Layout, regions: list[RegionPart], cores: list[CorePart]) -> None:
        self.layout = layout
        self.regions = regions
        self.cores = cores
        self.placed: list[_Placed] = []
        self.found: list[Diagnostic] = []

    def place(self) -> tuple[int, list[Diagnostic]]:
        known = {region.attributes.name for region in self.regions}
        for name in self.layout.regions:
            if name not in known:
                self.fail(
                    f"region '{name}' is not in the input{did_you_mean(name, known)}",
                    "regions", name,
                )  # fmt: skip
        free = []
        for region in self.regions:
            name = region.attributes.name
            if name in self.layout.regions:
                region.address = self.layout.regions[name]
                key = ("regions", name)
                self.aligned(f"region '{name}'", region.address, region.attributes.align, key)
                self.fixed(region.address, region.size, f"region '{name}'", key)
            else:
                free.append(region)
        if self.layout.programs is not None:
            self.aligned("the first program", self.layout.programs, PROGRAM_ALIGN, ("programs",))
            self.programs(self.layout.programs)
        self.overlaps()
        end = self.free(free)
        end = max([end, *(one.end for one in self.placed)])
        if self.layout.programs is None:
            end = self.programs(end)
        return end, self.found

    def fail(self, message: str, *key: str) -> None:
        """An error at the line of the layout file that asks for it."""
        self.found.append(Diagnostic(message, self.span(*key)))

    def span(self, *key: str) -> Span:
        return locate(self.layout.source, *key)

    def aligned(self, what: str, address: int, align: int, key: tuple[str, ...]) -> None:
        if address % align:
            self.fail(
                f"the address of {what} must be a multiple of {align}, not {address:#x}", *key
            )

    def fixed(self, start: int, size: int, what: str, key: tuple[str, ...]) -> None:
        if size:
            insort(self.placed, _Placed(start, start + size, what, key))

    def programs(self, at: int) -> int:
        """One program after the other; returns their end."""
        for core in self.cores:
            core.address = _align(at, PROGRAM_ALIGN)
            at = core.address + core.text.size
            a = core.attributes
            if self.layout.programs is not None:
                what = f"the program of core {a.number} '{a.name}'"
                self.fixed(core.address, core.text.size, what, ("programs",))
        return at

    def overlaps(self) -> None:
        last: _Placed | None = None
        for one in self.placed:
            if last is not None and one.start < last.end:
                self.fail(f"{one} overlaps {last}", *one.key)
            if last is None or one.end > last.end:
                last = one

    def free(self, regions: list[RegionPart]) -> int:
        """The regions that the layout does not name, around those that it does; returns their end."""
        at = index = 0
        for region in regions:
            start = _align(at, region.attributes.align)
            while index < len(self.placed) and self.placed[index].start < start + region.size:
                start = max(start, _align(self.placed[index].end, region.attributes.align))
                index += 1
            region.address = start
            at = start + region.size
        return at


def _align(address: int, to: int) -> int:
    return -(-address // to) * to
