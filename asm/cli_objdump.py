"""`cim-objdump`: shows objects (`.o`), archives (`.a`) and images (`.cfg`)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cim import console
from cim.diagnostics import CimError, Diagnostic

if TYPE_CHECKING:
    from cim.asm.objects import Object


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return console.run("cim-objdump", lambda: _main(argv))


def _main(argv: list[str] | None) -> int:
    parser = console.parser(
        "cim-objdump", "Show what is in an object (.o), an archive (.a) or an image (.cfg)."
    )
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("-d", dest="disassemble", action="store_true",
                        help="assembly that assembles to the same bytes")  # fmt: skip
    parser.add_argument(
        "-S", dest="source", action="store_true", help="-d with the source lines between"
    )
    parser.add_argument(
        "-l", dest="lines", action="store_true", help="-d with file and line before instructions"
    )
    parser.add_argument(
        "--loops", action="store_true", help="-d with runs of instructions rolled into .for blocks"
    )
    parser.add_argument(
        "--core", metavar="NAME|NUMBER", help="show only this core: its program and crossbar"
    )
    parser.add_argument("-h", dest="headers", action="store_true", help="sections")
    parser.add_argument("-t", dest="symbols", action="store_true", help="symbols")
    parser.add_argument("-r", dest="relocations", action="store_true", help="relocations")
    parser.add_argument("-s", dest="contents", action="store_true", help="contents in hexadecimal")
    arguments = parser.parse_intermixed_args(argv)
    located = arguments.source or arguments.lines
    if arguments.loops and located:
        parser.error("--loops cannot go with -S or -l: an instruction of a loop has many lines")
    disassembling = arguments.disassemble or located or arguments.loops
    chosen = [disassembling, arguments.headers, arguments.symbols,
              arguments.relocations, arguments.contents]  # fmt: skip
    if not any(chosen):
        parser.error("at least one of -d -S -l --loops -h -t -r -s must be given")
    # Imported late, here and below: --help must not wait for NumPy.
    from cim.asm.inputs import open_objects

    found: list[Diagnostic] = []
    for name in arguments.files:
        try:
            opened = open_objects(name)
            if arguments.core is not None:
                opened = _with_core(opened, arguments.core)
        except CimError as problem:
            found += problem.diagnostics
            continue
        for obj in opened:
            if len(arguments.files) > 1 or len(opened) > 1:
                print(f"# {obj.name}")
            for part, wanted in zip(_parts(obj, name, arguments), chosen, strict=True):
                if wanted:
                    for line in part:
                        print(line)
    if found:
        raise CimError(found)
    return 0


def _with_core(objects: list[Object], which: str) -> list[Object]:
    """Of the objects of one file those that have the core."""
    from cim.asm.one_core import only_core

    made: list[Object] = []
    problems: list[CimError] = []
    for obj in objects:
        try:
            made.append(only_core(obj, which))
        except CimError as problem:
            problems.append(problem)
    if problems and not made:
        raise CimError([d for problem in problems for d in problem.diagnostics])
    return made


def _parts(obj: Object, name: str, arguments: argparse.Namespace) -> list[Iterator[str]]:
    """What each option shows, made when it is asked for."""
    from cim.asm.disassembler import disassemble
    from cim.asm.program_text import Show

    sources = _sources(obj, name) if arguments.source else None
    show = Show(sources, arguments.lines, arguments.loops)
    return [
        disassemble(obj, show),
        _headers(obj),
        _symbols(obj),
        _relocations(obj),
        _contents(obj),
    ]


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
        if section.has_content:
            yield f"{section.name}:"
        for start in range(0, len(section.data), 16):
            yield f"{start:>10x} {section.data[start : start + 16].tobytes().hex(' ', 4)}"


if __name__ == "__main__":
    sys.exit(main())
