"""The command line of `cim-explore`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from cim import console
from cim.diagnostics import error
from cim.files import write_all

DESCRIPTION = "Explores designs: the tables and figures of the paper at one command."


def main(argv: Sequence[str] | None = None) -> int:
    """Run `cim-explore` and return its exit code."""
    args = make_parser().parse_args(argv)
    return console.run("cim-explore", lambda: run(args))


def make_parser() -> argparse.ArgumentParser:
    """The options of `cim-explore`."""
    parser = console.parser("cim-explore", DESCRIPTION)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    paper = commands.add_parser(
        "paper",
        help="all tables, figures and claims of the paper, as CSV, figures and one page",
        allow_abbrev=False,
    )
    paper.add_argument("-o", metavar="DIR", dest="folder", default="paper", help="where to (paper)")
    paper.add_argument(
        "--no-networks", action="store_true",
        help="leave out Fig. 6, whose layers come from Keras models (needs TensorFlow)",
    )  # fmt: skip
    return parser


def run(args: argparse.Namespace) -> int:
    """The body of the command. Raises `CimError` for everything that goes wrong."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise error(
            "figures need matplotlib", notes=["pip install 'cim-toolchain[explore]'"]
        ) from None
    mpl.use("agg")
    _check_folder(Path(args.folder))
    from cim.explore.paper import paper_files, run_paper

    results = run_paper(with_networks=not args.no_networks)
    files = paper_files(results, Path(args.folder))
    write_all(files)
    for claim in results.claims:
        print(f"{'holds ' if claim.holds else 'DIFFERS'}  {claim.claim}: {claim.measured}")
    print(
        f"written to {args.folder}/paper.html, with {len(files) - 1} tables and figures beside it"
    )
    return 0


def _check_folder(folder: Path) -> None:
    """Raise `CimError` if the results could not be written, before minutes are spent on them."""
    if folder.exists() and not folder.is_dir():
        raise error("is a file; the results need a folder", where=str(folder))
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryDirectory(dir=there):
            pass
    except OSError as problem:
        raise error(
            f"cannot be made or written: {there}: {problem.strerror}", where=str(folder)
        ) from None


if __name__ == "__main__":
    sys.exit(main())
