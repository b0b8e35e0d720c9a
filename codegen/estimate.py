"""How long a layer takes at least, before it is assembled: the busiest core alone, and the beats on the bus.

By the formulas of spec/timing.md, sections 2 to 5, for accesses that start at a beat and are one burst, on a bus with
nobody else. `cim-emu` counts what the program takes, and has the sharper bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cim.codegen.compile_layer import CompiledLayer
from cim.codegen.mapping import Tile, ifm_pieces
from cim.codegen.parameters import requantization
from cim.isa.machine import Machine
from cim.isa.numerics import DTYPES


@dataclass(frozen=True)
class Estimate:
    """Bus clock cycles that one image takes at least: `core` for the busiest core, `bus` for read data or writes."""

    core: int
    bus: int

    @property
    def cycles(self) -> int:
        """The larger of both."""
        return max(self.core, self.bus)


def estimate(compiled: CompiledLayer, machine: Machine) -> Estimate:
    """The bounds of a compiled layer on its machine."""
    bias = requantization(compiled.layer, compiled.mode.mode).bias is not None
    cores, reads, writes = [0], 0, 0
    for tile in compiled.turn.tiles:
        core, read, written = _tile(compiled, tile, machine, bias)
        cores.append(core)
        reads += read
        writes += written
    return Estimate(max(cores), max(reads, writes) if machine.bus.topology == "shared" else 0)


def _tile(
    compiled: CompiledLayer, tile: Tile, machine: Machine, bias: bool
) -> tuple[int, int, int]:
    """Cycles of one core alone, beats that it reads, and beats that it writes."""
    plan = compiled.schedule.plans[tile.number]
    steps = plan.expand()
    vectors = len(steps.output)
    # Those that add nothing, and those that hand no partial sum on.
    firsts = 0 if plan.resumes or bias else int(np.sum(steps.first))
    lasts = 0 if plan.pauses else int(np.sum(steps.last))
    width, issue = machine.bus.width_bytes, machine.core.issue_cycles
    sum_bytes = tile.columns * DTYPES[compiled.mode.partial_sum].itemsize
    element = DTYPES[compiled.mode.ifm].itemsize

    def load(beats: int) -> int:
        return issue + 1 + machine.memory.read_latency_cycles + beats

    def store(beats: int) -> int:
        return issue + 2 + machine.memory.write_latency_cycles + beats

    pieces = ifm_pieces(compiled.layer, compiled.mapping.window, tile)
    slices = [-(-(piece.hi - piece.lo) * element // width) for piece in pieces]
    sums = -(-sum_bytes // width)
    finished = -(-tile.channels * DTYPES[compiled.mode.ofm].itemsize // width)
    gpeu = issue + machine.core.gpeu_latency_cycles + -(-tile.columns // machine.core.gpeu_lanes)
    added = vectors - firsts  # loads of partial sums and of the bias, with their additions
    handed = vectors - lasts
    calls = plan.calls
    core = vectors * (sum(map(load, slices)) + issue + machine.mvm_cycles)
    core += added * (load(sums) + gpeu) + handed * store(sums) + lasts * (gpeu + store(finished))
    core += calls * (issue + 3 + machine.bus.register_latency_cycles)
    reads = vectors * sum(slices) + added * sums
    return core, reads, handed * sums + lasts * finished + calls
