"""`cim-size`: how many bytes of what objects, archives and images hold."""

from __future__ import annotations

import sys

from cim import console
from cim.diagnostics import CimError, Diagnostic


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return console.run("cim-size", lambda: _main(argv))


def _main(argv: list[str] | None) -> int:
    parser = console.parser(
        "cim-size",
        "Show bytes of programs (text), regions with content (data), placeholders (bss) and crossbar cells.",
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a .o, .a or .cfg")
    parser.add_argument("-t", "--totals", action="store_true", help="a last line with the sums")
    arguments = parser.parse_intermixed_args(argv)
    # Imported late: --help must not wait for NumPy.
    from cim.asm.image import Image
    from cim.asm.inputs import open_any
    from cim.asm.symbol_table import Sizes, sizes

    found: list[Diagnostic] = []
    rows: list[tuple[Sizes, str]] = []
    for name in arguments.files:
        try:
            opened = open_any(name)
        except CimError as problem:
            found += problem.diagnostics
            continue
        if isinstance(opened, Image):
            rows.append((sizes(opened), name))
        else:
            rows += [(sizes(obj), obj.name) for obj in opened]
    if arguments.totals:
        rows.append((sum((row for row, _ in rows), Sizes()), "(TOTALS)"))
    print(f"{'text':>10} {'data':>10} {'bss':>10} {'crossbar':>10} {'total':>10}  file")
    for row, name in rows:
        print(
            f"{row.text:>10} {row.data:>10} {row.bss:>10} {row.crossbar:>10} {row.total:>10}  {name}"
        )
    if found:
        raise CimError(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
