"""A layer of one or more turns: images that run one after another in the same shared memory.

Before each turn the host loads its programs and programs the cores; every SEQ_NR and buffer is cleared, and the regions of shared
memory keep what the turn before has left there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.asm.image import Image
from cim.diagnostics import error
from cim.emulator import host
from cim.emulator.prepare import Prepared
from cim.emulator.run import Progress, Result, execute, shown_after
from cim.isa.machine import Machine

# In place of the memory of a run: a part of that, however small, would keep it all.
NOTHING = np.zeros(0, dtype=np.uint8)


@dataclass(frozen=True)
class TurnsRun:
    """The output of a layer, and of each turn the runs, one an image of the batch; their memory is not kept."""

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
            results[number].append(replace(result, memory=NOTHING))
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
        found = _different(image, first)
        if (turn := host.layer_of(image).turn) != number:
            found = f"is turn {turn + 1}, must be turn {number + 1}"
        if found:
            raise error(
                found, where=str(image.path),
                notes=["all turns of a layer must come from the same run of cim-cc"],
            )  # fmt: skip


def _different(image: Image, first: Image) -> str:
    """Where an image differs from the first turn in what all turns have in common; nothing if nowhere."""
    own, wanted = _shared(image), _shared(first)
    for what in own | wanted:
        if own.get(what) != wanted.get(what):
            return f"has {what} {own.get(what, 'none')}, {first.path.name} has {wanted.get(what, 'none')}"
    return ""


def _shared(image: Image) -> dict[str, object]:
    """What all turns of a layer have in common, by name: machine, numbers, places in memory, and what is computed."""
    layer, config = host.layer_of(image), image.config
    described = {field: getattr(layer, field) for field in layer.__struct_fields__}
    del described["turn"]
    described["reference"] = f"{layer.reference.path} with SHA-256 {layer.reference.digest[:16]}…"
    places = {
        f"region {one.name} at": f"{one.address:#x} with {one.size_bytes} bytes"
        for one in config.regions
    }
    numbers = {"mode": config.mode, "ifm": config.ifm, "ofm": config.ofm}
    machine = {"machine": config.machine.name, **config.machine.settings()}
    return {**machine, **numbers, **described, **places}


def _turns(count: int) -> str:
    return f"{count} turn{'s' if count > 1 else ''}"
