"""How long a layer takes, before it is assembled: at least, and as predicted.

At least: the busiest core alone, or the beats on the bus, by the formulas of spec/timing.md, sections 2 to 5, for
accesses that start at a beat and are one burst, on a bus with nobody else. `cim-emu` counts what the program takes,
and has the sharper bound.

Predicted: what waiting for the bus and for each other adds.

- Cores that are not in step (`linear`, `central`, and the chains of `sequential`) meet on the bus by chance. They are a closed
  queue, each with d beats an output on the channel with the most and the rest of its time elsewhere: mean value analysis (Reiser
  and Lavenberg, "Mean-Value Analysis of Closed Multichain Queuing Networks", JACM 27(2), 1980). In `linear` and `central` the last
  core of a chain begins to finish when the first output has come down to it.
- In `cyclic` and `ring` every core waits for its neighbour's last output, which keeps all of them in step: all load at the same
  time, and one after the other comes out of it. A step takes the core's time and, for each other core, the beats of its
  longest access.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

import numpy as np

from cim.codegen.compile_layer import CompiledLayer
from cim.codegen.mapping import Tile, ifm_pieces
from cim.codegen.parameters import requantization
from cim.isa.machine import Machine
from cim.isa.numerics import DTYPES


@dataclass(frozen=True)
class Estimate:
    """Bus clock cycles of one image: `core` and `bus` (read data or writes) at least, and `predicted`."""

    core: int
    bus: int
    predicted: int

    @property
    def cycles(self) -> int:
        """The larger of both bounds."""
        return max(self.core, self.bus)


@dataclass(frozen=True)
class _Work:
    """What one core does alone in one image, and for one output the beats of its IFM slice and of partial sums loaded.

    `hop` are the cycles from a predecessor's CALL to its own.
    """

    chain: int
    cycles: int
    reads: int
    writes: int
    ifm: int
    sums: float
    hop: int


def estimate(compiled: CompiledLayer, machine: Machine) -> Estimate:
    """The bounds and the prediction of a compiled layer, or of a turn of it, on its machine."""
    bias = requantization(compiled.layer, compiled.mode.mode).bias is not None
    work = [_work(compiled, tile, machine, bias) for tile in compiled.turn.tiles]
    reads, writes = sum(one.reads for one in work), sum(one.writes for one in work)
    core = max((one.cycles for one in work), default=0)
    if machine.bus.topology == "per_target":  # CALLs go over channels of their own
        writes -= compiled.schedule.calls
    bus = max(reads, writes)
    outputs = compiled.mapping.vectors
    chains = [list(group) for _, group in groupby(work, key=lambda one: one.chain)]
    predicted = 0.0
    if outputs and work:
        predicted = _predicted(compiled.schedule.scheme, chains, outputs, bus)
    return Estimate(core, bus, max(round(predicted), core, bus))


def _predicted(scheme: str, chains: Sequence[Sequence[_Work]], outputs: int, beats: int) -> float:
    cores = sum(map(len, chains))
    longest = max(map(len, chains))
    each = beats / cores / outputs  # beats of a core for an output

    @cache
    def queued(cycles: int, count: int) -> float:
        """A core's cycles where `count` of them share the bus."""
        return outputs * _response(count, cycles / outputs - each, each)

    if scheme == "sequential":
        return max(sum(queued(one.cycles, len(chains)) for one in chain) for chain in chains)
    work = [one for chain in chains for one in chain]
    busiest = max(one.cycles for one in work)
    if scheme in ("cyclic", "ring") and longest > 1:
        access = max(max(one.ifm, one.sums) for one in work)
        return busiest + outputs * (cores - 1) * access
    return queued(busiest, cores) + (longest - 1) * max(one.hop for one in work)


def _response(count: int, elsewhere: float, served: float) -> float:
    """The time of a round of one of `count` customers of a closed queue, by mean value analysis."""
    waiting = 0.0
    time = elsewhere + served
    for customers in range(1, count + 1):
        at_server = served * (1 + waiting)
        time = elsewhere + at_server
        waiting = customers * at_server / time
    return time


def _work(compiled: CompiledLayer, tile: Tile, machine: Machine, bias: bool) -> _Work:
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
    call = issue + 3 + machine.bus.register_latency_cycles
    added = vectors - firsts  # loads of partial sums and of the bias, with their additions
    handed = vectors - lasts
    core = vectors * (sum(map(load, slices)) + issue + machine.mvm_cycles)
    core += added * (load(sums) + gpeu) + handed * store(sums) + lasts * (gpeu + store(finished))
    core += plan.calls * call
    return _Work(
        chain=tile.hg,
        cycles=core,
        reads=vectors * sum(slices) + added * sums,
        writes=handed * sums + lasts * finished + plan.calls,
        ifm=sum(slices),
        sums=sums * added / max(vectors, 1),
        hop=load(sums) + gpeu + store(sums) + (0 if plan.central else call),
    )
