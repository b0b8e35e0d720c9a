"""`cim-ar`: makes, lists and unpacks archives of objects, in the format of the system's `ar`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from cim import console
from cim.asm.archive import Member, read_archive, write_archive
from cim.diagnostics import CimError, Diagnostic, did_you_mean, error
from cim.files import read_bytes, write_all

_OPERATIONS = "rtx"
_MODIFIERS = "csvD"  # s and D change nothing: no index is needed, times and owners are 0 always


def main(argv: list[str] | None = None) -> int:
    """The command line; returns the exit code."""
    return console.run("cim-ar", lambda: _main(sys.argv[1:] if argv is None else argv))


def _main(argv: list[str]) -> int:
    parser = console.parser(
        "cim-ar",
        "Archives of objects. r: put FILEs in, instead of members of the same name (c: say nothing where the "
        "archive is new; s, D: accepted, they hold always); t: list; x: write members to the current folder "
        "(v: name them).",
    )
    parser.add_argument("operation", metavar="rcs|t|x", help="one of r, t, x with modifiers")
    parser.add_argument("archive", metavar="LIB.a")
    parser.add_argument("files", nargs="*", metavar="FILE", help="objects, or names of members")
    if argv and argv[0][:1] == "-" and argv[0][1:2] != "-":
        argv = [argv[0][1:], *argv[1:]]  # ar -rcs is ar rcs
    arguments = parser.parse_args(argv)
    letters = arguments.operation
    chosen = [letter for letter in letters if letter in _OPERATIONS]
    if len(chosen) != 1 or set(letters) - set(_OPERATIONS + _MODIFIERS):
        parser.error(
            f"the operation must be one of r, t and x with modifiers of {_MODIFIERS}, not '{letters}'"
        )
    if chosen == ["r"]:
        return _replace(arguments)
    members = _chosen(read_archive(read_bytes(arguments.archive), arguments.archive), arguments)
    if chosen == ["x"]:
        _extract(members, arguments.archive)
    if chosen == ["t"] or "v" in letters:
        for member in members:
            print(member.name)
    return 0


def _replace(arguments: argparse.Namespace) -> int:
    path = Path(arguments.archive)
    members: dict[str, Member] = {}
    if path.exists():
        members = _by_name(read_archive(read_bytes(path), arguments.archive), arguments.archive)
    elif "c" not in arguments.operation:
        print(f"cim-ar: note: {path} is new", file=sys.stderr)
    found: list[Diagnostic] = []
    new: dict[str, str] = {}
    for file in arguments.files:
        name = Path(file).name
        if name in new:
            found.append(
                Diagnostic(f"is a member '{name}', and {new[name]} is too: names must differ", where=file)
            )  # fmt: skip
        new[name] = file
        try:
            members[name] = Member(name, read_bytes(file))
        except CimError as problem:
            found += problem.diagnostics
    if found:
        raise CimError(found)
    write_all({path: write_archive(members.values())})
    return 0


def _by_name(members: Iterable[Member], archive: str) -> dict[str, Member]:
    made: dict[str, Member] = {}
    for member in members:
        if member.name in made:
            raise error(f"has two members '{member.name}': names must differ", where=archive)
        made[member.name] = member
    return made


def _chosen(members: list[Member], arguments: argparse.Namespace) -> list[Member]:
    """The members that are named, or all."""
    if not arguments.files:
        return members
    names = {member.name for member in members}
    missing = [name for name in arguments.files if name not in names]
    if missing:
        raise CimError(
            Diagnostic(f"has no member '{name}'{did_you_mean(name, names)}", where=arguments.archive)
            for name in missing
        )  # fmt: skip
    return [member for member in members if member.name in arguments.files]


def _extract(members: list[Member], archive: str) -> None:
    for name in _by_name(members, archive):
        # A name with a folder would be written outside of where the user is.
        if Path(name).name != name or name in ("", ".", ".."):
            raise error(
                f"has a member '{name}': must be a file name without a folder", where=archive
            )
    write_all({Path(member.name): member.content for member in members})


if __name__ == "__main__":
    sys.exit(main())
