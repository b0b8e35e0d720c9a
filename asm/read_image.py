"""Reads an image from its two files, and refuses what does not hold together."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec

from cim.asm.image import (
    BIN_HEADER,
    BIN_MAGIC,
    FORMAT_VERSION,
    Config,
    CoreConfig,
    Image,
    Segment,
    digest,
)
from cim.diagnostics import error
from cim.files import read_bytes
from cim.isa.interpreter import PARAMETERS
from cim.isa.load import load_isa
from cim.isa.machine import MAX_CROSSBAR
from cim.isa.numerics import DTYPES
from cim.wording import plain_rule


def read_image(path: str | Path) -> Image:
    """Read `NAME.cfg` and its bin.

    Raises `CimError` for a file that is no cfg, a newer version, an unknown extension, a bin that does not
    fit the digest, and for segments outside the bin or the memory.
    """
    path = Path(path)
    config = _decode_config(path)
    if config.bin_name != Path(config.bin_name).name:
        raise error(
            "is not a valid cfg: bin_name must be a file name without a folder", where=str(path)
        )
    bin_path = path.with_name(config.bin_name)
    content = read_bytes(bin_path)
    if len(content) != config.bin_size or digest(content) != config.bin_sha256:
        raise error(
            f"does not belong to {path.name}: SHA-256 is {digest(content)[:16]}… ({len(content)} bytes), "
            f"the cfg names {config.bin_sha256[:16]}… ({config.bin_size} bytes)",
            where=str(bin_path),
            notes=["link again, or take both files from the same run"],
        )
    if content[:16] != BIN_HEADER.pack(BIN_MAGIC, FORMAT_VERSION, 0):
        raise error(f"is not a bin image of format version {FORMAT_VERSION}", where=str(bin_path))
    image = Image(config, content, path)
    check_image(image)
    return image


def _decode_config(path: Path) -> Config:
    try:
        raw = msgspec.json.decode(read_bytes(path))
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise error(f"is not JSON: {problem}", where=str(path)) from None
    if not isinstance(raw, dict) or raw.get("format") != "cim-cfg":
        raise error('is not a cfg of cim-ld: it has no "format": "cim-cfg"', where=str(path))
    isa = load_isa()
    for what, found, known in (
        ("cfg format version", raw.get("format_version"), FORMAT_VERSION),
        ("ISA", raw.get("isa"), isa.name),
        ("ISA version", raw.get("isa_version"), isa.version),
    ):
        if found != known:
            raise error(f"{what} is {found}, this toolchain reads {known}", where=str(path))
    try:
        config = msgspec.convert(raw, Config)
        config.numeric_mode  # noqa: B018  (raises for types that do not go together)
    except (msgspec.ValidationError, ValueError) as problem:
        raise error(f"is not a valid cfg: {plain_rule(str(problem))}", where=str(path)) from None
    missing = set(config.extensions) - set(isa.extensions)
    if missing:
        raise error(
            f"needs ISA extension '{min(missing)}', this toolchain has {', '.join(isa.extensions)}",
            where=str(path),
        )
    return config


def check_image(image: Image) -> None:
    """Whatever the cfg points at must lie inside the bin and the memory, and have the size it claims.

    Raises `CimError` for the first that does not.
    """
    _Checker(image).check()


class _Checker:
    def __init__(self, image: Image) -> None:
        self.image = image
        self.config = image.config

    def require(self, condition: bool, what: str) -> None:
        """Raise unless the condition holds."""
        if not condition:
            raise error(f"is not a valid cfg: {what}", where=str(self.image.path))

    def inside(self, segment: Segment, what: str, size: int) -> None:
        """A segment must lie inside the bin and have the size that the rest of the cfg says."""
        end = segment.offset + segment.size
        self.require(end <= len(self.image.content), f"{what} lies outside the bin")
        self.require(segment.size == size, f"{what} has {segment.size} bytes, must have {size}")

    def check(self) -> None:
        config, core = self.config, self.config.machine.core
        self.require(
            min(core.outputs, core.inputs) >= 1 and max(core.outputs, core.inputs) <= MAX_CROSSBAR,
            f"core.crossbar is {core.crossbar}, both sides must be 1 to {MAX_CROSSBAR}",
        )
        wanted = {"i8": "wide", "i8n": "narrow"}.get(config.mode, core.partial_sum)
        self.require(wanted == core.partial_sum, f"mode {config.mode} needs {wanted} partial sums")
        self.require(config.memory_bytes <= 2**32, "memory_bytes is more than an address reaches")
        numbers = [one.number for one in config.cores]
        self.require(len(set(numbers)) == len(numbers), "two cores have the same number")
        if isinstance(core.count, int):
            self.require(
                max(numbers, default=0) < core.count, f"the machine has {core.count} cores"
            )
        names = [region.name for region in config.regions]
        self.require(len(set(names)) == len(names), "two regions have the same name")
        for one in config.cores:
            self.core(one)
        self.regions()
        self.overlaps()
        self.turn()

    def core(self, core: CoreConfig) -> None:
        """Program, lines, crossbar content and parameters of one core."""
        config, machine = self.config, self.config.machine.core
        who = f"core {core.number}"
        self.require(
            core.rows <= machine.inputs and core.columns <= machine.outputs,
            f"{who} uses {core.columns}x{core.rows} of a {machine.crossbar} crossbar",
        )
        words = core.program.size // 8
        self.inside(core.program, f"the program of {who}", 8 * words)
        self.require(
            core.entry % 8 == 0 and core.entry < max(core.program.size, 1),
            f"the entry of {who} is {core.entry}, which is none of its instructions",
        )
        self.inside(core.lines, f"the lines of {who}", 4 * words)
        self.require(
            core.address + core.program.size <= config.memory_bytes,
            f"the program of {who} lies outside the memory",
        )
        index = self.image.line_index(core)
        self.require(
            not index.size or int(index.max()) < len(config.locations),
            f"a line of {who} is not among the locations",
        )
        cells = core.rows * core.columns * config.numeric_mode.cell.itemsize
        self.require(
            (core.weights is None) == (cells == 0), f"{who} must have weights for its cells"
        )
        if core.weights is not None:
            self.inside(core.weights, f"the weights of {who}", cells)
        for name, segment in core.parameters.items():
            self.require(name in PARAMETERS, f"{who} has an unknown parameter '{name}'")
            self.inside(segment, f"parameter {name} of {who}", 4 * core.columns)

    def regions(self) -> None:
        """Size and place of every region, and its content."""
        for region in self.config.regions:
            size = math.prod(region.shape) * DTYPES[region.type].itemsize
            self.require(
                size == region.size_bytes,
                f"region {region.name} has {region.size_bytes} bytes, its shape and type are {size}",
            )
            self.require(
                region.address + region.size_bytes <= self.config.memory_bytes,
                f"region {region.name} lies outside the memory",
            )
            if region.content is not None:
                self.inside(region.content, f"region {region.name}", region.size_bytes)

    def overlaps(self) -> None:
        """No two of regions and programs may share a byte."""
        spans = [(r.address, r.size_bytes, f"region {r.name}") for r in self.config.regions]
        spans += [
            (c.address, c.program.size, f"the program of core {c.number}")
            for c in self.config.cores
        ]
        end, before = 0, ""
        for address, size, what in sorted(span for span in spans if span[1]):
            self.require(address >= end, f"{what} overlaps {before}")
            end, before = address + size, what

    def turn(self) -> None:
        """The cores of a folded layer's turn are those that its description says."""
        layer = self.config.layer
        if layer is None or not layer.turn_ends:
            return
        ends, p_v = layer.turn_ends, layer.vertical_groups
        self.require(
            ends == sorted(set(ends)) and ends[-1] == p_v * layer.horizontal_groups,
            f"turns that end before cores {ends} are not those of {p_v} x {layer.horizontal_groups} cores",
        )
        self.require(layer.turn < len(ends), f"layer.turn is {layer.turn} of {len(ends)} turns")
        begin, end = [0, *ends][layer.turn : layer.turn + 2]
        cores = sorted(self.config.cores, key=lambda core: core.number)
        places = [(core.hg, core.vg) for core in cores]
        self.require(
            places == [divmod(number, p_v) for number in range(begin, end)],
            f"its cores are not cores {begin} to {end - 1} of the whole layer, which turn {layer.turn + 1} has",
        )
