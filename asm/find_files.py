"""Finds the files that sources name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cim.diagnostics import Source


@dataclass(frozen=True)
class Files:
    """Finds the files that sources name: beside the source, then in the folders of `include`."""

    read: Callable[[Path], bytes]
    include: tuple[Path, ...]

    def find(self, name: str, beside: Source) -> tuple[Path, bytes]:
        """A file's path and content. Raises `OSError`."""
        folders = [Path(beside.name).parent, *self.include]
        for folder in folders[:-1]:
            try:
                return folder / name, self.read(folder / name)
            except FileNotFoundError:
                continue
        return folders[-1] / name, self.read(folders[-1] / name)

    def source(self, name: str, beside: Source) -> Source:
        """A file as a source. Raises `OSError`."""
        path, content = self.find(name, beside)
        try:
            return Source(str(path), content.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise OSError(0, "it is not UTF-8 text") from None
