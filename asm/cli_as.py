"""`cim-as`: assembles `.s` files to an object."""

from __future__ import annotations

import sys
from pathlib import Path

from cim import console
from cim.asm import cli_format
from cim.diagnostics import CimError, Diagnostic, error
from cim.files import check_outputs, read_regular, write_all


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return console.run("cim-as", lambda: _main(argv))


def _main(argv: list[str] | None) -> int:
    words = sys.argv[1:] if argv is None else argv
    if "--format" in words:
        return cli_format.main([word for word in words if word != "--format"])
    parser = console.parser(
        "cim-as", "Assemble one or more sources to one ELF object.", fromfile_prefix_chars="@"
    )
    parser.add_argument("sources", nargs="+", metavar="FILE.s", help="a source; - reads stdin")
    parser.add_argument(
        "-o", dest="output", required=True, metavar="FILE.o", help="the object to write"
    )
    parser.add_argument(
        "-I", dest="include", action="append", default=[], metavar="DIR",
        help="look for .include and .incbin files here too",
    )  # fmt: skip
    parser.add_argument(
        "-D", "--defsym", dest="defines", action="append", default=[], metavar="NAME=EXPRESSION",
        help="set a constant before the first line",
    )  # fmt: skip
    parser.add_argument(
        "-a", dest="listing", action="store_const", const="-",
        help="write a listing to stdout, or -a=FILE to a file",
    )  # fmt: skip
    parser.add_argument(
        "--listing", dest="listing", metavar="FILE", help="write a listing to a file"
    )
    parser.add_argument(
        "--MD", dest="depfile", metavar="FILE", help="write what the object depends on, for make"
    )
    parser.add_argument(
        "-g", "-L", "--keep-locals", dest="keep_local", action="store_true",
        help="keep local labels (1: and .Lname) as symbols; line tables are always there",
    )  # fmt: skip
    parser.add_argument("-W", "--no-warn", action="store_true", help="print no warnings")
    parser.add_argument("--fatal-warnings", action="store_true", help="a warning is an error")
    parser.add_argument(
        "--error-limit", type=int, default=console.ERROR_LIMIT, metavar="N",
        help="print at most N errors (default: %(default)s; 0: all)",
    )  # fmt: skip
    parser.add_argument(
        "--format", action="store_true", help="lay sources out anew instead; see --format --help"
    )
    # `-a` alone must not take the next word, a source, for its file.
    arguments = parser.parse_args(
        [f"--listing{w[2:]}" if w.startswith("-a=") else w for w in words]
    )
    # Imported late: --help must not wait for NumPy and Lark.
    from cim.asm.assembler import assemble
    from cim.asm.elf import write_object
    from cim.asm.inputs import open_source
    from cim.asm.listing import listing_text
    from cim.asm.option_expressions import read_constants

    listing_file = arguments.listing or "-"
    outputs = [arguments.output, arguments.depfile, None if listing_file == "-" else listing_file]
    check_outputs([name for name in outputs if name is not None], arguments.sources)
    sources = [open_source(name) for name in arguments.sources]
    names = [name for name in arguments.sources if name != "-"]
    include = [Path(folder) for folder in arguments.include]
    read: list[Path] = []

    def read_file(path: Path) -> bytes:
        content = read_regular(path)
        read.append(path)
        return content

    remarks: list[Diagnostic] = []
    try:
        obj = assemble(
            sources,
            arguments.output,
            read_file,
            include,
            read_constants("-D", arguments.defines),
            remark=remarks.append,
            keep_local=arguments.keep_local,
        )
    except CimError as problem:
        problem.limit = arguments.error_limit or len(problem.diagnostics)
        raise
    finally:
        shown = [r for r in remarks if r.severity != "warning" or not arguments.no_warn]
        for remark in shown:
            print(remark.render(), file=sys.stderr)
    if arguments.fatal_warnings and any(r.severity == "warning" for r in remarks):
        raise error("warnings are errors here (--fatal-warnings)", where="cim-as")
    files = {Path(arguments.output): write_object(obj)}
    listing = listing_text(obj, sources) if arguments.listing else ""
    if arguments.listing and arguments.listing != "-":
        files[Path(arguments.listing)] = listing.encode()
    if arguments.depfile:
        needed = " ".join(
            str(path).replace(" ", "\\ ") for path in dict.fromkeys([*map(Path, names), *read])
        )
        files[Path(arguments.depfile)] = f"{arguments.output}: {needed}\n".encode()
    write_all(files)
    if arguments.listing == "-":
        sys.stdout.write(listing)
    return 0


if __name__ == "__main__":
    sys.exit(main())
