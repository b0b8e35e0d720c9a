"""A layer of one or more turns: images that run one after another in the same shared memory.

Before each turn the host loads its programs and programs the cores; every SEQ_NR and buffer is cleared, and the regions of shared
memory keep what the turn before has left there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.image import Image, LayerDescription
from cim.diagnostics import error
from cim.emulator import host
from cim.emulator.prepare import Prepared
from cim.emulator.run import Progress, Result, execute, shown_after
from cim.isa.machine import Machine


@dataclass(frozen=True)
class TurnsRun:
    """The output of a layer, and of each turn the runs, one an image of the batch."""

    output: NDArray[Any]
    results: list[list[Result]]


def run_turns(
    turns: Sequence[Prepared],
    x: NDArray[Any],
    machine: Machine,
    max_cycles: int | None = None,
    progress: Progress | None = None,
) -> TurnsRun:
    """Run the turns of a layer on `x`, image by image; `max_cycles` holds for a turn of an image.

    `progress` is told the instructions done in all. Raises what `execute` does, and `CimError` for an input that does not fit.
    """
    first, last = turns[0].image, turns[-1].image
    outputs: list[NDArray[Any]] = []
    results: list[list[Result]] = [[] for _ in turns]
    executed = 0
    for one in host.images_of(first, x):
        memory = first.memory()
        host.write_region(first, memory, first.config.region("ifm"), host.to_ifm(first, one))
        for number, prepared in enumerate(turns):
            if number > 0:
                memory = _continued(prepared.image, memory)
            result = execute(
                prepared, memory, machine, max_cycles, progress=shown_after(executed, progress)
            )
            executed += len(prepared.program)
            memory = result.memory
            results[number].append(result)
        outputs.append(host.from_ofm(last, memory))
    return TurnsRun(np.concatenate(outputs) if len(outputs) > 1 else outputs[0], results)


def _continued(image: Image, before: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Shared memory at the start of a later turn: its programs, and the regions as they are."""
    memory = image.memory()
    for region in image.config.regions:
        place = slice(region.address, region.address + region.size_bytes)
        memory[place] = before[place]
    return memory


def check_turns(images: Sequence[Image]) -> None:
    """Raise `CimError` unless the images are all turns of one layer, in order, that agree on memory and machine."""
    first = images[0]
    layer = host.layer_of(first)
    count = max(len(layer.turn_ends), 1)
    if len(images) != count:
        raise error(
            f"layer '{layer.name}' has {_turns(count)}, the network names {_turns(len(images))}",
            where=str(first.path), notes=["take network.json and the images from the same run of cim-cc"],
        )  # fmt: skip
    for number, image in enumerate(images):
        found = ""
        if host.layer_of(image).turn != number:
            found = f"is turn {host.layer_of(image).turn + 1}, must be turn {number + 1}"
        for what, own, wanted in zip(COMPARED, _compared(image), _compared(first), strict=True):
            if own != wanted and not found:
                found = f"has {what} {own}, {first.path.name} has {wanted}"
        if found:
            raise error(
                found, where=str(image.path),
                notes=["all turns of a layer must come from the same run of cim-cc"],
            )  # fmt: skip


# What turns have in common: of the description all but the turn's number.
SHARED = [field for field in LayerDescription.__struct_fields__ if field != "turn"]
COMPARED = [*SHARED, "regions", "mode", "machine"]


def _compared(image: Image) -> list[object]:
    layer, config = host.layer_of(image), image.config
    places = {one.name: f"{one.address:#x}+{one.size_bytes}" for one in config.regions}
    described = [getattr(layer, name) for name in SHARED]
    return [*described, places, config.numeric_mode, config.machine]


def _turns(count: int) -> str:
    return f"{count} turn{'s' if count > 1 else ''}"
