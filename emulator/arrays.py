"""NumPy arrays in files."""

from __future__ import annotations

import io
import tokenize
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.diagnostics import error
from cim.files import read_bytes


def read_npy(path: str) -> NDArray[Any]:
    """An array from a `.npy` file. Raises `CimError` for a file that is none; never unpickles."""
    loaded = _load(path)
    if not isinstance(loaded, np.ndarray):
        raise error("is not a .npy file but an archive of several arrays", where=path)
    return loaded


def read_npz(path: str) -> dict[str, NDArray[Any]]:
    """Arrays by name from a `.npz` file. Raises `CimError` as `read_npy`."""
    loaded = _load(path)
    if isinstance(loaded, np.ndarray):
        raise error("is not a .npz file but a single array", where=path)
    return dict(loaded)


def _load(path: str) -> Any:
    try:
        loaded = np.load(io.BytesIO(read_bytes(path)), allow_pickle=False)
        return loaded if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}  # fmt: skip
    # NumPy reads headers with Python's own parser, whose errors it lets through.
    except (ValueError, EOFError, OSError, TypeError, KeyError, SyntaxError, OverflowError, MemoryError,
            tokenize.TokenError, zipfile.BadZipFile) as problem:  # fmt: skip
        reason = "it holds Python objects" if "allow_pickle" in str(problem) else str(problem)
        kind = ".npz" if path.endswith(".npz") else ".npy"
        raise error(f"is not a {kind} file that can be read: {reason}", where=path) from None


def npy_bytes(values: NDArray[Any]) -> bytes:
    """The content of a `.npy` file."""
    out = io.BytesIO()
    np.save(out, values, allow_pickle=False)
    return out.getvalue()
