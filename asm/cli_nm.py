"""`cim-nm`: lists the symbols of objects, archives and images, as `nm` does."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from cim import console
from cim.diagnostics import CimError, Diagnostic

if TYPE_CHECKING:
    from cim.asm.symbol_table import Row


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return console.run("cim-nm", lambda: _main(argv))


def _main(argv: list[str] | None) -> int:
    parser = console.parser(
        "cim-nm",
        "List symbols: value, type (T program, D data, B placeholder, U undefined; lower case: local) "
        "and name.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a .o, .a or .cfg")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "-u", "--undefined-only", dest="undefined", action="store_true", help="only undefined ones"
    )
    which.add_argument(
        "-U", "--defined-only", dest="defined", action="store_true", help="only defined ones"
    )
    parser.add_argument(
        "-g", "--extern-only", dest="external", action="store_true", help="only global ones"
    )
    parser.add_argument(
        "-n", "--numeric-sort", dest="numeric", action="store_true",
        help="sort by value instead of name",
    )  # fmt: skip
    parser.add_argument("-S", "--print-size", dest="size", action="store_true", help="show sizes")
    arguments = parser.parse_intermixed_args(argv)
    # Imported late: --help must not wait for NumPy.
    from cim.asm.image import Image
    from cim.asm.inputs import open_any
    from cim.asm.symbol_table import symbol_rows

    found: list[Diagnostic] = []
    several = len(arguments.files) > 1
    for name in arguments.files:
        try:
            opened = open_any(name)
        except CimError as problem:
            found += problem.diagnostics
            continue
        parts = [opened] if isinstance(opened, Image) else opened
        for part in parts:
            title = name if isinstance(part, Image) else part.name
            if several or title != name:
                print(f"\n{title}:")
            for line in _lines(symbol_rows(part), arguments):
                print(line)
    if found:
        raise CimError(found)
    return 0


def _lines(rows: list[Row], arguments: argparse.Namespace) -> list[str]:
    if arguments.undefined:
        rows = [row for row in rows if row.letter == "U"]
    if arguments.defined:
        rows = [row for row in rows if row.letter != "U"]
    if arguments.external:
        rows = [row for row in rows if row.letter.isupper()]
    rows = sorted(rows, key=lambda row: row.name)
    if arguments.numeric:
        rows.sort(key=lambda row: (row.letter != "U", row.value))
    lines = []
    for row in rows:
        value = " " * 16 if row.letter == "U" else f"{row.value:016x}"
        if arguments.size:
            value += " " * 17 if row.letter == "U" else f" {row.size:016x}"
        lines.append(f"{value} {row.letter} {row.name}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
