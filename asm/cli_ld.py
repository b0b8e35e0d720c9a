"""`cim-ld`: links objects to `NAME.bin` and `NAME.cfg`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from cim import console
from cim.diagnostics import CimError
from cim.files import read_bytes, write_all


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return console.run("cim-ld", lambda: _main(argv))


def _main(argv: list[str] | None) -> int:
    parser = console.parser("cim-ld", "Link objects to an image: NAME.bin and NAME.cfg.")
    parser.add_argument("objects", nargs="+", metavar="FILE.o")
    parser.add_argument("-o", dest="output", required=True, metavar="NAME", help="the image's name")
    parser.add_argument(
        "-Map", "--Map", dest="map", metavar="FILE", help="write a map of memory and cores"
    )
    parser.add_argument(
        "--print-memory-usage", action="store_true", help="print used and available memory"
    )
    parser.add_argument(
        "--check", action=argparse.BooleanOptionalAction, default=True,
        help="refuse a WAIT that no number of CALLs can release",
    )  # fmt: skip
    arguments = parser.parse_args(argv)
    # Imported late: --help must not wait for NumPy.
    from cim.asm.elf import read_object
    from cim.asm.image import encode_config
    from cim.asm.linker import link
    from cim.asm.memory_map import map_text, usage_text
    from cim.asm.synchronization import check_synchronization

    objects = []
    problems = []
    for name in arguments.objects:
        try:
            objects.append(read_object(read_bytes(name), name))
        except CimError as problem:
            problems += problem.diagnostics
    if problems:
        raise CimError(problems)
    name = arguments.output.removesuffix(".cfg").removesuffix(".bin")
    image = link(objects, name)
    if arguments.check and (found := check_synchronization(image)):
        raise CimError(found)
    files = {
        image.path.with_name(image.config.bin_name): image.content,
        image.path: encode_config(image.config),
    }
    if arguments.map:
        files[Path(arguments.map)] = map_text(image).encode()
    write_all(files)
    if arguments.print_memory_usage:
        print(usage_text(image))
    return 0


if __name__ == "__main__":
    sys.exit(main())
