"""`.section`, `.data` and `.bss`: bytes of shared memory that have a name, but no shape."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cim.asm.objects import Object, Section

_NAME = re.compile(r"[A-Za-z_.$][A-Za-z0-9_.$]*")
_TAKEN = re.compile(r"\.(text|crossbar|region|rela|debug_|cim|symtab|strtab|shstrtab)")
KIND = "section"


def why_not(name: str) -> str | None:
    """Why a section cannot have that name; None where it can."""
    if not _NAME.fullmatch(name):
        return f"'{name}' is no name"
    if _TAKEN.match(name):
        return f"'{name}' is a name that objects use for something else"
    return None


def is_placeholder_name(name: str) -> bool:
    """Whether a section of that name has no content, as in GNU as: `.bss` and `.bss.NAME`."""
    return name == ".bss" or name.startswith(".bss.")


def in_order(pieces: Iterable[tuple[Object, Section]]) -> list[tuple[Object, Section]]:
    """Sections of one name, from several objects, in the order in which they are joined.

    By the object's file name without its folder, then with it, then by content, so that the order in which the
    linker is given the objects means nothing.
    """
    return sorted(
        pieces,
        key=lambda one: (re.split(r"[/\\]", one[0].name)[-1], one[0].name, one[1].data.tobytes()),
    )
