"""Archives of objects: the plain `ar` format with GNU's long names, as the system's `ar` reads and writes it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cim.diagnostics import error

MAGIC = b"!<arch>\n"
_THIN = b"!<thin>\n"
# Name, time, owner, group, mode, size, end mark: all of it text, filled up with spaces.
_HEADER = struct.Struct("16s12s6s6s8s10s2s")
_MARK = b"`\n"
_INDEXES = (b"/", b"/SYM64/", b"__.SYMDEF", b"__.SYMDEF SORTED")  # of symbols; none is needed here


@dataclass(frozen=True)
class Member:
    """A file in an archive."""

    name: str
    content: bytes


def write_archive(members: Iterable[Member]) -> bytes:
    """The bytes of the archive. Times and owners are 0, so that the same members give the same bytes."""
    names = bytearray()
    entries = []
    for member in members:
        name = member.name.encode(errors="surrogateescape") + b"/"
        if len(name) > 16:
            entries.append((b"/%d" % len(names), member.content))
            names += name + b"\n"
        else:
            entries.append((name, member.content))
    out = bytearray(MAGIC)
    if names:
        out += _entry(b"//", bytes(names), owner=b"", mode=b"")
    for name, content in entries:
        out += _entry(name, content)
    return bytes(out)


def _entry(name: bytes, content: bytes, owner: bytes = b"0", mode: bytes = b"644") -> bytes:
    fields = [name, owner, owner, owner, mode, b"%d" % len(content)]
    widths = (16, 12, 6, 6, 8, 10)
    text = b"".join(field.ljust(width) for field, width in zip(fields, widths, strict=True))
    return text + _MARK + content + b"\n" * (len(content) % 2)


def read_archive(raw: bytes, name: str) -> list[Member]:
    """The members in their order, an index of symbols left out. Raises `CimError` for a damaged archive."""
    if raw.startswith(_THIN):
        raise error("is a thin archive, which holds no members; must be made without T", where=name)
    if not raw.startswith(MAGIC):
        raise error("is not an archive: it does not begin with !<arch>", where=name)
    try:
        return list(_members(raw))
    except (ValueError, IndexError, struct.error) as problem:
        raise error(f"is a damaged archive: {problem}", where=name) from None


def _members(raw: bytes) -> Iterator[Member]:
    at = len(MAGIC)
    long_names = b""
    while at < len(raw):
        field, _, _, _, _, size_text, mark = _HEADER.unpack_from(raw, at)
        start = at + _HEADER.size
        if mark != _MARK or not size_text.strip().isdigit():
            raise ValueError(f"byte {at} is not the beginning of a member")
        size = int(size_text)
        content = raw[start : start + size]
        if len(content) != size:
            raise ValueError(f"the member at byte {at} must have {size} bytes, not {len(content)}")
        at = start + size + size % 2
        field = field.rstrip(b" ")
        if field == b"//":
            long_names = content
            continue
        if field in _INDEXES:
            continue
        if field.startswith(b"#1/"):  # BSD: the name stands before the content
            length = int(field[3:])
            name, content = content[:length].rstrip(b"\0"), content[length:]
            if name in _INDEXES:
                continue
        elif field.startswith(b"/"):
            place = int(field[1:])
            end = long_names.index(b"\n", place)
            name = long_names[place:end].removesuffix(b"/")
        else:
            name = field.removesuffix(b"/")
        yield Member(name.decode(errors="surrogateescape"), content)
