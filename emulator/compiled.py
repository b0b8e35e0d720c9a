"""Obtains the compiled engine, from numba's cache where that can be had.

The cache is `cim-toolchain/<hash>` in `$XDG_CACHE_HOME` or `~/.cache`; the hash covers everything that is
compiled in. A cache holds code that will be run, so it is used only in a folder that belongs to the user
alone; without one (no home, a full or read-only disk) the engine is compiled in every process.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import pickle
import platform
import stat
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

SOURCES = (
    "engine.py",
    "bus.py",
    "attributes.py",
    "fetch.py",
    "channels.py",
    "events.py",
    "values.py",
    "layout.py",
)
COMPILE_SECONDS = 10  # about, on the machine it was measured on

Simulate = Callable[..., tuple[int, int, int]]
_compiled: list[Simulate] = []  # empty until the first run


def engine(*arguments: Any) -> Simulate:
    """`engine.simulate`, compiled for the types of `state.Timing` and `state.Values`.

    Compiles at most once in a process, and says so on stderr if that is a terminal.
    """
    if not _compiled:
        _compiled.append(_obtain(arguments))
    return _compiled[0]


def _obtain(arguments: tuple[Any, ...]) -> Simulate:
    numba = importlib.import_module("numba")
    source: Any = importlib.import_module("cim.emulator.engine")
    simulate = source.simulate
    signature = tuple(numba.typeof(argument) for argument in arguments)
    folder = _prepare_folder(numba.__version__)
    cached = folder is not None and any(folder.rglob("*.nbi"))
    if not cached and sys.stderr.isatty():
        print(f"compiling the emulator, once (about {COMPILE_SECONDS} s)", file=sys.stderr)
    if folder is not None and _enable_cache(numba.config, simulate, folder):
        try:
            simulate.compile(signature)
            return _typed(simulate)
        except (OSError, EOFError, ValueError, pickle.PickleError):
            # The disk is full, or a cache file is damaged: compile without it.
            simulate = numba.njit(simulate.py_func, **source.OPTIONS)
    simulate.compile(signature)
    return _typed(simulate)


def _typed(simulate: Any) -> Simulate:
    made: Simulate = simulate
    return made


def _enable_cache(config: Any, simulate: Any, folder: Path) -> bool:
    """Point one function's cache at a folder; the setting of the process is left as it was."""
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        simulate.enable_caching()
    except (OSError, RuntimeError):  # numba finds the folder unusable
        return False
    finally:
        config.CACHE_DIR = before
    return True


def cache_folder(numba_version: str) -> Path | None:
    """Where the cache of this source, numba and Python lies; None without a home."""
    digest = hashlib.sha256()
    for name in SOURCES:
        digest.update(resources.files("cim.emulator").joinpath(name).read_bytes())
    digest.update(f"{numba_version} {sys.version} {platform.machine()}".encode())
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():  # as the XDG specification has it, a relative path counts as unset
        try:
            home = Path.home()
        except RuntimeError:
            return None
        if not home.is_dir():
            return None
        base = home / ".cache"
    return base / "cim-toolchain" / digest.hexdigest()[:24]


def _prepare_folder(numba_version: str) -> Path | None:
    """The cache folder, made if need be; None if there is none that only the user can write."""
    folder = cache_folder(numba_version)
    if folder is None:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for place in (folder.parent, folder):
            state = place.stat()
            others = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if hasattr(os, "geteuid") and (state.st_uid != os.geteuid() or others):
                return None
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None
