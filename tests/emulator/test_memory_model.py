"""The litmus tests of spec/memory-model.md, taken from its text and run on many machines."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from cim.asm.assembler import assemble
from cim.asm.image import Image
from cim.asm.linker import link
from cim.diagnostics import Source
from cim.emulator.host import read_region
from cim.emulator.run import run_image
from cim.isa.machine import load_machine

DOCUMENT = Path(__file__).parents[2] / "spec/memory-model.md"

BLOCK = re.compile(r"^```asm\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(r"(?:^\|.*\|\n)+", re.MULTILINE)
PLACE = re.compile(r"`(\w+)\[(\d+)\]`")

# Every key that can move one access before or behind another.
SETTINGS = {
    "memory.read_latency_cycles": [0, 40],
    "memory.write_latency_cycles": [0, 9, 30],
    "bus.register_latency_cycles": [0, 40],
    "bus.width_bytes": [1, 4, 128],
    "bus.read_outstanding": [1, 4],
    "bus.write_outstanding": [1, 4],
    "bus.topology": ["shared", "per_target"],
    "bus.arbitration": ["round_robin", "oldest_first"],
    "core.gpeu_latency_cycles": [0, 60],
}
MACHINES = [
    load_machine("default", [f"{key}={value}" for key, value in zip(SETTINGS, values, strict=True)])
    for values in itertools.product(*SETTINGS.values())
]


@dataclass
class Litmus:
    name: str
    image: Image
    places: list[tuple[str, int]]
    allowed: set[tuple[int, ...]]


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip("|\n").split("|")]


def litmus_tests() -> list[Litmus]:
    _, text = DOCUMENT.read_text(encoding="utf-8").split("\n## Litmus tests\n")
    first, *sections = re.split(r"^### ", text, flags=re.MULTILINE)
    prologue = BLOCK.search(first)[1]
    tests = []
    for section in sections:
        name = section.partition("\n")[0]
        (program,) = BLOCK.findall(section)
        (table,) = TABLE.findall(section)
        head, _, *rows = table.splitlines()
        places = [(region, int(index)) for region, index in PLACE.findall(head)]
        results = [tuple(int(cell) for cell in cells(row)[: len(places)]) for row in rows]
        image = link([assemble([Source(DOCUMENT.name, prologue + program)], name)], "litmus")
        tests.append(Litmus(name, image, places, set(results)))
    return tests


TESTS = litmus_tests()


def outcome(test: Litmus, memory: np.ndarray) -> tuple[int, ...]:
    regions = {name: test.image.config.region(name) for name, _ in test.places}
    return tuple(
        int(read_region(test.image, memory, regions[name])[at]) for name, at in test.places
    )


def test_the_document_has_the_tests_that_it_names():
    assert [test.name.partition(".")[0] for test in TESTS] == [str(n) for n in range(1, 11)]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.name)
def test_exactly_the_allowed_results_occur(test):
    seen = {outcome(test, run_image(test.image, machine=machine).memory) for machine in MACHINES}
    assert seen == test.allowed
