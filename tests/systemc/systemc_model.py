"""Builds and runs the SystemC model, and has cim-emu say the same things of the same images."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from emulator_images import write_image
from numpy.typing import NDArray

from cim.asm.image import Image, Segment, digest
from cim.emulator import stats
from cim.emulator.prepare import prepare
from cim.emulator.run import CycleLimit, DeadlockError, RunFault, execute

SOURCES = Path(__file__).parent
BUILD = SOURCES.parents[1] / "build/systemc"
HEADERS = {"tlm": "libsystemc-dev", "nlohmann/json.hpp": "nlohmann-json3-dev"}
COUNTED = ("setup_cycles", "cycles", "instructions", "core_cycles", "stalls", "bytes")
COUNTED_AT_BUS = tuple(f"{name}_busy_cycles" for name in ("ar", "r", "aw", "w", "b"))


class MissingTool(Exception):
    """What the model needs and this computer has not."""


def build() -> Path:
    """The program, made anew where its sources have changed. Raises `MissingTool`."""
    for tool in ("g++", "make"):
        if shutil.which(tool) is None:
            raise MissingTool(f"needs {tool}")
    for header, package in HEADERS.items():
        command = ["g++", "-std=c++17", "-E", "-x", "c++", "-include", header, os.devnull]
        if subprocess.run(command, capture_output=True, check=False).returncode != 0:
            raise MissingTool(f"needs {header} (on Debian: {package})")
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "lock").open("w") as lock:  # workers of pytest build at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        command = ["make", "-s", "-j2", "-C", str(SOURCES), f"BUILD={BUILD}"]
        subprocess.run(command, check=True)
    return BUILD / "cim-systemc"


@dataclass(frozen=True)
class Outcome:
    """How an inference ended and what was counted; memory if it came to its end."""

    told: dict[str, Any]
    memory: NDArray[np.uint8] | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class Model:
    """The built program."""

    program: Path

    def run(
        self, images: Sequence[Image], folder: Path, limits: Sequence[int | None] = ()
    ) -> list[Outcome]:
        """Run images in one process; `limits` are cycle limits."""
        lines = []
        for number, image in enumerate(images):
            path = write_image(replace(image, path=folder / f"{number}/image.cfg"))
            limit = limits[number] if limits else None
            lines.append(f"{path}\t{'' if limit is None else limit}\t{path.with_suffix('.memory')}")
        (folder / "list").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        done = subprocess.run(
            [str(self.program), "--list", str(folder / "list")],
            env={**os.environ, "SYSTEMC_DISABLE_COPYRIGHT_MESSAGE": "1"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        outcomes = []
        for number, line in enumerate(done.stdout.splitlines()):
            told = json.loads(line)
            seconds = told.pop("seconds")
            path = folder / f"{number}/image.memory"
            memory = np.fromfile(path, np.uint8) if told["end"] == "done" else None
            path.unlink()
            outcomes.append(Outcome(told, memory, seconds))
        assert len(outcomes) == len(images)
        return outcomes


def emulate(image: Image, limit: int | None = None) -> Outcome:
    """What cim-emu makes of an image, in the model's words."""
    prepared = prepare(image)
    try:
        result = execute(prepared, max_cycles=limit)
    except RunFault as fault:
        told = {"cycle": fault.cycle, "core": fault.core, "exception": fault.exception}
        return Outcome({"end": "fault", **told})
    except DeadlockError as deadlock:
        told = {"cycle": deadlock.cycle, "core": min(deadlock.blocked)}
        return Outcome({"end": "deadlock", **told})
    except CycleLimit:
        return Outcome({"end": "limit", "cycle": limit})
    counted = msgspec.to_builtins(stats.collect([result]))
    told = {"end": "done", "finish": result.finish.tolist()}
    told |= {key: counted[key] for key in COUNTED}
    told["bus"] = {key: counted["bus"][key] for key in (*COUNTED_AT_BUS, "transactions")}
    return Outcome(told, result.memory)


def differences(image: Image, ours: Outcome, limit: int | None = None) -> list[str]:
    """In what the model and cim-emu differ; empty if they agree."""
    theirs = emulate(image, limit)
    told = dict(ours.told)
    if told["end"] != "done":
        del told["setup_cycles"]  # of which cim-emu tells nothing then
    found = [
        f"{key}: SystemC {told.get(key)}, cim-emu {theirs.told.get(key)}"
        for key in sorted(told.keys() | theirs.told.keys())
        if told.get(key) != theirs.told.get(key)
    ]
    if ours.memory is not None and theirs.memory is not None:
        at = np.flatnonzero(~same_bytes(image, ours.memory, theirs.memory))
        if at.size:
            found.append(f"memory: {at.size} bytes from {at[0]} on")
    return found


def same_bytes(
    image: Image, ours: NDArray[np.uint8], theirs: NDArray[np.uint8]
) -> NDArray[np.bool_]:
    """Which bytes agree. Floats are the same number, or differ as the order of additions may have it."""
    if image.config.mode != "f32":
        return ours == theirs
    whole = ours.size // 4 * 4
    floats = [memory[:whole].view("<f4") for memory in (ours, theirs)]
    close = np.isclose(*floats, rtol=1e-4, atol=1e-4, equal_nan=True)
    return np.concatenate([np.repeat(close, 4), ours[whole:] == theirs[whole:]])


def with_content(image: Image, name: str, content: bytes) -> Image:
    """The image with a region filled."""
    config = image.config
    padded = image.content + b"\0" * (-len(image.content) % 8)
    segment = Segment(len(padded), len(content))
    regions = [
        msgspec.structs.replace(one, content=segment) if one.name == name else one
        for one in config.regions
    ]
    whole = padded + content
    changed = msgspec.structs.replace(
        config, regions=regions, bin_size=len(whole), bin_sha256=digest(whole)
    )
    return replace(image, config=changed, content=whole)
