"""Opens what the tools are given: sources, objects, archives of objects, images."""

from __future__ import annotations

import sys
from pathlib import Path

from cim.asm.archive import MAGIC, read_archive
from cim.asm.disassembler import image_as_object
from cim.asm.elf import read_object
from cim.asm.image import Image
from cim.asm.objects import Object
from cim.asm.read_image import read_image
from cim.diagnostics import CimError, Diagnostic, Source, error
from cim.files import decode_text, read_bytes, read_text


def is_archive(raw: bytes) -> bool:
    """Whether the bytes are an archive, thin ones (which are refused later) included."""
    return raw.startswith((MAGIC, b"!<thin>\n"))


def read_members(raw: bytes, name: str) -> list[Object]:
    """The objects of an archive, each named `ARCHIVE(MEMBER)`. Raises `CimError` with all bad members."""
    objects: list[Object] = []
    found: list[Diagnostic] = []
    for member in read_archive(raw, name):
        try:
            objects.append(read_object(member.content, f"{name}({member.name})"))
        except CimError as problem:
            found += problem.diagnostics
    if found:
        raise CimError(found)
    return objects


def open_any(name: str) -> list[Object] | Image:
    """The objects of a `.o` (one) or `.a`, or the image of a `.cfg`. Raises `CimError`."""
    if Path(name).suffix == ".cfg":
        return read_image(name)
    raw = read_bytes(name)
    return read_members(raw, name) if is_archive(raw) else [read_object(raw, name)]


def open_objects(name: str) -> list[Object]:
    """As `open_any`; an image is seen as an object without symbols."""
    opened = open_any(name)
    return [image_as_object(opened)] if isinstance(opened, Image) else opened


def open_source(name: str) -> Source:
    """A `.s` file, or with `-` what stdin says. Raises `CimError`."""
    if name == "-":
        return Source("<stdin>", decode_text(sys.stdin.buffer.read(), "<stdin>"))
    try:
        name.encode()
    except UnicodeEncodeError:
        raise error(
            "the name of the file is not UTF-8, objects could not hold it", where=name
        ) from None
    return Source(name, read_text(name))
