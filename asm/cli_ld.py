"""`cim-ld`: links objects to `NAME.bin` and `NAME.cfg`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cim import console
from cim.diagnostics import CimError, Diagnostic, Source, error, usage_error
from cim.files import check_outputs, read_bytes, read_text, write_all

if TYPE_CHECKING:
    from cim.asm.objects import Object


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return console.run("cim-ld", lambda: _main(argv))


def _main(argv: list[str] | None) -> int:
    parser = console.parser("cim-ld", "Link objects to an image: NAME.bin and NAME.cfg.")
    parser.add_argument(
        "inputs", nargs="*", metavar="FILE", help="an object, or an archive of objects"
    )
    parser.add_argument("-o", dest="output", required=True, metavar="NAME", help="the image's name")
    parser.add_argument(
        "-L", dest="folders", action="append", default=[], metavar="DIR",
        help="look for libraries in this folder",
    )  # fmt: skip
    parser.add_argument(
        "-l", dest="libraries", action="append", default=[], metavar="NAME",
        help="link with libNAME.a: its members that define a symbol that is needed",
    )  # fmt: skip
    parser.add_argument(
        "-Map", "--Map", dest="map", metavar="FILE", help="write a map of memory and cores"
    )
    parser.add_argument(
        "-T", "--layout", dest="layout", metavar="FILE",
        help="lay out shared memory as this TOML says: programs = ADDRESS, [regions] NAME = ADDRESS",
    )  # fmt: skip
    parser.add_argument(
        "--defsym", dest="defsyms", action="append", default=[], metavar="NAME=EXPRESSION",
        help="define a symbol: an address, a core's number, or another symbol, moved",
    )  # fmt: skip
    parser.add_argument(
        "-e", "--entry", dest="entries", action="append", default=[], metavar="LABEL",
        help="the core that holds the label starts there, not at its first instruction",
    )  # fmt: skip
    parser.add_argument(
        "--gc-sections", action="store_true",
        help="drop regions without role ifm or ofm that no program or kept region refers to",
    )  # fmt: skip
    parser.add_argument(
        "--print-gc-sections", action="store_true", help="say on stderr which regions are dropped"
    )
    parser.add_argument(
        "--cref", action="store_true",
        help="where symbols are defined and used: at the end of the map, on stdout without a map",
    )  # fmt: skip
    parser.add_argument(
        "--print-memory-usage", action="store_true", help="print used and available memory"
    )
    parser.add_argument(
        "--check", action=argparse.BooleanOptionalAction, default=True,
        help="refuse a WAIT that no number of CALLs can release",
    )  # fmt: skip
    arguments = parser.parse_intermixed_args(argv)
    if not arguments.inputs:
        parser.error("at least one object or archive must be given")
    # Imported late: --help must not wait for NumPy.
    from cim.asm.cross_reference import cross_reference_text
    from cim.asm.image import encode_config
    from cim.asm.layout import Layout, read_layout
    from cim.asm.libraries import pull_members
    from cim.asm.linker import LinkOptions, link
    from cim.asm.memory_map import map_text, usage_text
    from cim.asm.option_expressions import read_defsyms
    from cim.asm.synchronization import check_synchronization

    objects, archives = _read(arguments)
    defsyms = read_defsyms(arguments.defsyms)
    wanted = [*arguments.entries, *(d.symbol for d in defsyms.values() if d.symbol)]
    objects = pull_members(objects, archives, defsyms, wanted)
    layout = Layout()
    if arguments.layout:
        layout = read_layout(Source(arguments.layout, read_text(arguments.layout)))
    dropped = _dropped(objects, arguments)
    name = arguments.output.removesuffix(".cfg").removesuffix(".bin")
    if name.endswith("/") or Path(name).name in ("", ".."):
        raise usage_error("must be the name of an image", f"-o {arguments.output}")
    image = link(
        objects,
        name,
        LinkOptions(layout, defsyms, dropped, tuple(dict.fromkeys(arguments.entries))),
    )
    if arguments.check and (found := check_synchronization(image)):
        raise CimError(found)
    files = {
        image.path.with_name(image.config.bin_name): image.content,
        image.path: encode_config(image.config),
    }
    maps = [arguments.map] if arguments.map else []
    check_outputs([*files, *maps], arguments.inputs)
    references = cross_reference_text(objects, defsyms) if arguments.cref else ""
    if arguments.map:
        text = map_text(image) + (f"\n{references}" if references else "")
        files[Path(arguments.map)] = text.encode()
    write_all(files)
    if not arguments.map:
        sys.stdout.write(references)
    if arguments.print_memory_usage:
        print(usage_text(image))
    return 0


def _read(arguments: argparse.Namespace) -> tuple[list[Object], list[list[Object]]]:
    """The objects, and the members of each archive: files first, then libraries, in their order."""
    from cim.asm.elf import read_object
    from cim.asm.inputs import is_archive, read_members
    from cim.asm.libraries import find_library

    objects: list[Object] = []
    archives: list[list[Object]] = []
    problems: list[Diagnostic] = []
    seen: dict[str, str] = {}
    for name, is_library in [(n, False) for n in arguments.inputs] + [
        (n, True) for n in arguments.libraries
    ]:
        try:
            path = find_library(name, arguments.folders) if is_library else name
            raw = read_bytes(path)
            if is_library or is_archive(raw):
                archives.append(read_members(raw, path))
            elif (first := seen.setdefault(os.path.realpath(path), path)) is not path:
                raise error(
                    f"is the same file as {first}: an object must be given once", where=path
                )
            else:
                objects.append(read_object(raw, path))
        except CimError as problem:
            problems += problem.diagnostics
    if problems:
        raise CimError(problems)
    return objects, archives


def _dropped(objects: list[Object], arguments: argparse.Namespace) -> frozenset[tuple[str, str]]:
    """The regions and byte sections that --gc-sections drops: objects and names."""
    from cim.asm.unused_regions import unused_regions

    if not arguments.gc_sections:
        return frozenset()
    unused = unused_regions(objects)
    if arguments.print_gc_sections:
        for name, obj in unused:
            print(f"cim-ld: note: dropping unused region '{name}' of {obj.name}", file=sys.stderr)
    return frozenset((obj.name, name) for name, obj in unused)


if __name__ == "__main__":
    sys.exit(main())
