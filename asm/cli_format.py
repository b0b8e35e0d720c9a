"""`cim-as --format`: sources in the one layout."""

from __future__ import annotations

import sys
from pathlib import Path

from cim import console
from cim.diagnostics import CimError, Diagnostic, Source


def main(argv: list[str]) -> int:
    """The command line after `--format`; returns the exit code."""
    parser = console.parser(
        "cim-as --format",
        "Print sources in the one layout of assembly text. Comments are kept, and what the text means.",
    )
    parser.add_argument("sources", nargs="+", metavar="FILE.s", help="a source; - reads stdin")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("-i", "--in-place", action="store_true", help="write the files, print nothing")
    how.add_argument(
        "--check", action="store_true", help="name the files that would change; exit 1 if any would"
    )
    arguments = parser.parse_args(argv)
    if arguments.in_place and "-" in arguments.sources:
        parser.error("-i needs files, not -")
    # Imported late: --help must not wait for NumPy and Lark.
    from cim.asm.formatter import format_text
    from cim.asm.inputs import open_source
    from cim.files import write_all

    made: list[tuple[str, Source, str]] = []
    found: list[Diagnostic] = []
    for name in arguments.sources:
        try:
            source = open_source(name)
            made.append((name, source, format_text(source)))
        except CimError as problem:
            found += problem.diagnostics
    if found:
        raise CimError(found)
    changed = {name: text for name, source, text in made if text != source.text}
    if arguments.check:
        for name in changed:
            print(f"{name}: would be laid out anew", file=sys.stderr)
        return 1 if changed else 0
    if arguments.in_place:
        write_all({Path(name): text.encode() for name, text in changed.items()})
        return 0
    sys.stdout.write("".join(text for _, _, text in made))
    return 0
