"""Archives as inputs of the linker: finds `-l NAME`, and pulls in the members that are needed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cim.asm.objects import Object
from cim.diagnostics import error


def find_library(name: str, folders: Iterable[str]) -> str:
    """The path of `libNAME.a`, or of FILE for `:FILE`, in the first folder that has it.

    Raises `CimError` with the folders searched.
    """
    file = name[1:] if name.startswith(":") else f"lib{name}.a"
    searched = list(folders)
    for folder in searched:
        path = Path(folder) / file
        if path.is_file():
            return str(path)
    notes = [f"searched: {folder}" for folder in searched]
    raise error(
        f"there is no {file} in the folders of -L",
        where=f"-l {name}",
        notes=notes or ["no folder was searched: -L DIR names one"],
    )


def pull_members(
    objects: Iterable[Object],
    archives: Iterable[list[Object]],
    defined: Iterable[str] = (),
    wanted: Iterable[str] = (),
) -> list[Object]:
    """The objects, then the members that define a symbol undefined so far, until nothing changes.

    Where several members define a symbol, the first of the first archive is taken. `defined` are symbols
    that need none, `wanted` ones that no object need name.
    """
    pulled = list(objects)
    offered: dict[str, Object] = {}
    for members in archives:
        for member in members:
            for name in defined_names(member):
                offered.setdefault(name, member)
    known = set(defined)
    for obj in pulled:
        known.update(defined_names(obj))
    waiting = [list(wanted), *map(undefined_names, pulled)]
    while waiting:
        for name in waiting.pop(0):
            if name in known or name not in offered:
                continue
            pulled.append(offered[name])
            waiting.append(undefined_names(offered[name]))
            known.update(defined_names(offered[name]))
    return pulled


def defined_names(obj: Object) -> list[str]:
    """The global symbols that an object defines."""
    return [s.name for s in obj.symbols if s.is_global and s.section is not None]


def undefined_names(obj: Object) -> list[str]:
    """The symbols that an object needs from others."""
    return [symbol.name for symbol in obj.symbols if symbol.section is None]
