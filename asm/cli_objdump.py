"""`cim-objdump`: shows objects (`.o`) and images (`.cfg`)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cim import console
from cim.files import read_bytes

if TYPE_CHECKING:
    from cim.asm.objects import Object


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return console.run("cim-objdump", lambda: _main(argv))


def _main(argv: list[str] | None) -> int:
    parser = console.parser("cim-objdump", "Show what is in an object (.o) or an image (.cfg).")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-d", dest="disassemble", action="store_true",
                        help="assembly that assembles to the same bytes")  # fmt: skip
    parser.add_argument(
        "-S", dest="source", action="store_true", help="-d with the source lines between"
    )
    parser.add_argument("-h", dest="headers", action="store_true", help="sections")
    parser.add_argument("-t", dest="symbols", action="store_true", help="symbols")
    parser.add_argument("-r", dest="relocations", action="store_true", help="relocations")
    parser.add_argument("-s", dest="contents", action="store_true", help="contents in hexadecimal")
    arguments = parser.parse_args(argv)
    chosen = [arguments.disassemble or arguments.source, arguments.headers, arguments.symbols,
              arguments.relocations, arguments.contents]  # fmt: skip
    if not any(chosen):
        parser.error("at least one of -d -S -h -t -r -s must be given")
    # Imported late, here and below: --help must not wait for NumPy.
    from cim.asm.disassembler import disassemble

    for name in arguments.files:
        obj = _open(name)
        if len(arguments.files) > 1:
            print(f"# {name}")
        parts = [
            disassemble(obj, _sources(obj, name) if arguments.source else None),
            _headers(obj),
            _symbols(obj),
            _relocations(obj),
            _contents(obj),
        ]
        for part, wanted in zip(parts, chosen, strict=True):
            if wanted:
                for line in part:
                    print(line)
    return 0


def _open(name: str) -> Object:
    from cim.asm.disassembler import image_as_object
    from cim.asm.elf import read_object
    from cim.asm.read_image import read_image

    if name.endswith(".cfg"):
        return image_as_object(read_image(name))
    return read_object(read_bytes(name), name)


def _sources(obj: Object, name: str) -> dict[tuple[str, int], str]:
    """The source lines that can be found, beside the file or by their own path."""
    lines: dict[tuple[str, int], str] = {}
    for file in {location.file for location in obj.attributes.locations}:
        for path in (Path(file), Path(name).parent / file):
            if path.is_file():
                texts = path.read_text(encoding="utf-8", errors="replace").splitlines()
                lines.update({(file, number): text for number, text in enumerate(texts, 1)})
                break
    return lines


def _headers(obj: Object) -> Iterator[str]:
    yield f"{'size':>10} {'align':>6} {'relocations':>12}  section"
    for section in obj.sections:
        yield f"{section.size:>10} {section.align:>6} {len(section.relocations):>12}  {section.name}"


def _symbols(obj: Object) -> Iterator[str]:
    yield f"{'value':>10} {'size':>10} {'bind':<6} {'kind':<6}  {'section':<24} name"
    for symbol in obj.symbols:
        section = "*UND*" if symbol.section is None else obj.sections[symbol.section].name
        bind = "global" if symbol.is_global else "local"
        yield (
            f"{symbol.value:>10x} {symbol.size:>10x} {bind:<6} {symbol.kind:<6}  {section:<24} {symbol.name}"
        )


def _relocations(obj: Object) -> Iterator[str]:
    from cim.asm.objects import RelocationType

    for section in obj.sections:
        if not len(section.relocations):
            continue
        yield f"{section.name}:"
        for row in section.relocations:
            kind = RelocationType(int(row["type"])).name
            name = obj.symbols[int(row["symbol"])].name
            yield f"{int(row['offset']):>10x} {kind:<8} {name} {int(row['addend']):+d}"


def _contents(obj: Object) -> Iterator[str]:
    for section in obj.sections:
        if section.size:
            yield f"{section.name}:"
        for start in range(0, section.size, 16):
            yield f"{start:>10x} {section.data[start : start + 16].tobytes().hex(' ', 4)}"


if __name__ == "__main__":
    sys.exit(main())
