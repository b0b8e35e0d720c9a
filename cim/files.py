"""Files written whole or not at all, and read with an error that names them."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from cim.diagnostics import error


def write_all(files: Mapping[Path, bytes]) -> None:
    """Write every file, or leave the folder as it was: temporary names first, renamed at the end.

    A link is followed; a device or pipe is written to, last. Raises `CimError` when a folder cannot be made
    or written.
    """
    files = {Path(os.path.realpath(path)): content for path, content in files.items()}
    staged: list[tuple[str, Path]] = []
    umask = os.umask(0)
    os.umask(umask)
    path = Path()
    try:
        for path, content in files.items():
            if _is_special(path):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            staged.append((name, path))
            with os.fdopen(handle, "wb") as out:
                out.write(content)
            Path(name).chmod(0o666 & ~umask)
            if path.is_dir():
                raise IsADirectoryError(21, "Is a directory", str(path))
        while staged:
            name, path = staged[0]
            Path(name).replace(path)
            staged.pop(0)
        for path in filter(_is_special, files):
            path.write_bytes(files[path])
    except OSError as problem:
        raise error(f"cannot write: {problem.strerror}", where=str(path)) from problem
    finally:
        for name, _ in staged:
            Path(name).unlink(missing_ok=True)


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file() and not path.is_dir()


def check_outputs(outputs: Iterable[str | Path], inputs: Iterable[str | Path]) -> None:
    """Raise `CimError` if a tool would overwrite what it reads, or write two things to one file."""
    read = {os.path.realpath(path) for path in inputs}
    written: set[str] = set()
    for path in outputs:
        if not str(path):
            raise error("an output must have a name, not an empty one")
        if Path(path).is_dir():
            raise error("is a folder; the output must be a file", where=str(path))
        real = os.path.realpath(path)
        if _is_special(Path(real)):
            continue
        if real in read:
            raise error("is read by this command, and must not be its output", where=str(path))
        if real in written:
            raise error("is named for two outputs", where=str(path))
        written.add(real)


def read_bytes(path: str | Path) -> bytes:
    """The content of a file. Raises `CimError` with the reason the system gives."""
    if not str(path):
        raise error("cannot read a file whose name is empty")
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise error(f"cannot read: {problem.strerror}", where=str(path)) from problem


def read_regular(path: Path) -> bytes:
    """The content of a file that a source names; a device, which may never end, is refused. Raises OSError."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path.read_bytes()


def read_text(path: str | Path) -> str:
    """UTF-8 text, a BOM taken off. Raises `CimError` on a byte that is not UTF-8."""
    return decode_text(read_bytes(path), str(path))


def decode_text(content: bytes, where: str) -> str:
    """As `read_text`, for what has been read from `where`."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content[: problem.start].count(b"\n") + 1
        raise error(
            f"line {line} is not UTF-8 text (byte 0x{content[problem.start]:02x})", where=where
        ) from problem
