"""Which core works on which output vectors in which order, and how it hands them on.

A plan is kept as loops over runs of consecutive outputs, because that is how it is written down; `expand`
gives the same as arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from cim.codegen.mapping import Mapping
from cim.codegen.turns import Turn

SCHEMES = ("sequential", "linear", "cyclic", "ring", "central")


@dataclass(frozen=True)
class Run:
    """Outputs start..stop-1 in ascending order.

    `first`: the core is their first owner in this turn: no WAIT, and it adds the bias unless the chain resumes.
    `last`: their last owner in this turn: no CALL, and it finishes the output unless the chain pauses. `waits` counts the core's WAITs before the run, within its loop's first round.
    """

    start: int
    stop: int
    first: bool
    last: bool
    waits: int


@dataclass(frozen=True)
class Loop:
    """`count` rounds; each adds `output_step` to the outputs and `wait_step` to the WAIT values of the runs."""

    count: int
    output_step: int
    wait_step: int
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class CorePlan:
    """One core's work. `successor` is a VG of the same HG, None where nobody follows.

    `each`: WAIT and CALL with every output; otherwise (sequential) once: `wait 1` first where there is a
    predecessor, one CALL at the end where there is a successor. `central`: neither; the memory keeps the order.
    A chain may take several turns: one that `resumes` begins with the sums that an earlier turn has left in memory,
    one that `pauses` leaves its own there for a later one.
    """

    vg: int
    loops: tuple[Loop, ...]
    successor: int | None
    predecessor: int | None
    each: bool
    central: bool = False
    resumes: bool = False
    pauses: bool = False

    @property
    def calls(self) -> int:
        """CALLs per inference."""
        if self.successor is None or self.central:
            return 0
        if not self.each:
            return 1
        return sum(
            loop.count * (run.stop - run.start)
            for loop in self.loops
            for run in loop.runs
            if not run.last
        )

    def expand(self) -> Steps:
        """The plan as arrays, in the order of execution."""
        outputs, firsts, lasts, waits = [], [], [], []
        for loop in self.loops:
            for round_ in range(loop.count):
                for run in loop.runs:
                    length = run.stop - run.start
                    outputs.append(np.arange(run.start, run.stop) + round_ * loop.output_step)
                    firsts.append(np.full(length, run.first))
                    lasts.append(np.full(length, run.last))
                    value = np.arange(1, length + 1) + run.waits + round_ * loop.wait_step
                    waits.append(np.zeros_like(value) if run.first or not self.each else value)
        if not outputs:
            none = np.zeros(0, dtype=np.int64)
            return Steps(none, none.astype(bool), none.astype(bool), none)
        return Steps(*(np.concatenate(parts) for parts in (outputs, firsts, lasts, waits)))


@dataclass(frozen=True)
class Steps:
    """Per output vector: its number, whether the core owns it first and last as in a `Run`, the WAIT value (0: none)."""

    output: NDArray[np.int64]
    first: NDArray[np.bool_]
    last: NDArray[np.bool_]
    wait: NDArray[np.int64]


@dataclass(frozen=True)
class Schedule:
    """The plans of a chain's or a turn's cores, in the order of their numbers."""

    scheme: str
    outputs: int
    plans: tuple[CorePlan, ...]

    @property
    def calls(self) -> int:
        """CALLs per inference."""
        return sum(plan.calls for plan in self.plans)


def schedule_turn(scheme: str, mapping: Mapping, turn: Turn) -> Schedule:
    """The schedule of the cores of a turn."""
    chains: dict[tuple[int, int], tuple[CorePlan, ...]] = {}
    plans: list[CorePlan] = []
    for _, group in groupby(turn.tiles, key=lambda tile: tile.hg):
        vgs = [tile.vg for tile in group]
        first, end = vgs[0], vgs[-1] + 1
        if (first, end) not in chains:
            made = make_schedule(scheme, mapping.vectors, end - first).plans
            chains[first, end] = tuple(_in_chain(plan, first, end, mapping.p_v) for plan in made)
        plans += chains[first, end]
    return Schedule(scheme, mapping.vectors, tuple(plans))


def _in_chain(plan: CorePlan, first: int, end: int, p_v: int) -> CorePlan:
    """A plan as one of vertical groups first..end-1 of P_V."""
    return replace(
        plan,
        vg=plan.vg + first,
        successor=None if plan.successor is None else plan.successor + first,
        predecessor=None if plan.predecessor is None else plan.predecessor + first,
        resumes=first > 0,
        pauses=end < p_v,
    )


def make_schedule(scheme: str, outputs: int, p_v: int) -> Schedule:
    """The schedule of one chain of P_V = `p_v` cores for `outputs` output vectors."""
    planner: Callable[[int, int, int], Sequence[Loop]] = {
        "sequential": _in_order,
        "linear": _in_order,
        "cyclic": _cyclic,
        "ring": _ring,
        "central": _in_order,
    }[scheme]
    rotating = scheme in ("cyclic", "ring")
    plans = []
    for vg in range(p_v):
        after = (vg - 1) % p_v if rotating else vg + 1
        before = (vg + 1) % p_v if rotating else vg - 1
        alone = p_v == 1
        loops = _in_order(0, outputs, 1) if alone else planner(vg, outputs, p_v)
        plans.append(
            CorePlan(
                vg,
                tuple(_without_empty(loop) for loop in loops if loop.count),
                None if alone or not 0 <= after < p_v else after,
                None if alone or not 0 <= before < p_v else before,
                each=scheme not in ("sequential", "central"),
                central=scheme == "central",
            )
        )
    return Schedule(scheme, outputs, tuple(plans))


def _without_empty(loop: Loop) -> Loop:
    runs = tuple(run for run in loop.runs if run.stop > run.start)
    return Loop(loop.count, loop.output_step, loop.wait_step, runs)


def _in_order(vg: int, outputs: int, p_v: int) -> Sequence[Loop]:
    """Every core takes the outputs from 0 upwards; core 0 is first, core P_V - 1 last owner."""
    return [Loop(1, 0, 0, (Run(0, outputs, vg == 0, vg == p_v - 1, 0),))]


def _cyclic(vg: int, outputs: int, p_v: int) -> Sequence[Loop]:
    """Groups of P_V outputs; in each, core v starts at output v and goes once round the group.

    The last group may have fewer outputs than P_V; those that do not exist are left out.
    """
    groups, rest = divmod(outputs, p_v)
    full = Loop(groups, p_v, p_v - 1, tuple(_group_runs(vg, p_v, p_v, 0, 0)))
    partial = _group_runs(vg, rest, p_v, groups * p_v, groups * (p_v - 1))
    return [full, Loop(1 if rest else 0, 0, 0, tuple(partial))]


def _group_runs(vg: int, size: int, p_v: int, base: int, waits: int) -> list[Run]:
    """Once round outputs base..base+size-1: v is first owner of its own, last owner of the one before."""
    before = (vg - 1) % p_v
    own_end = min(vg + 1, size)
    pieces = [(min(vg, size), own_end), (own_end, size), (0, min(vg, size))]
    runs = []
    for number, (start, stop) in enumerate(pieces):
        cuts = [start, *(c for c in (before, before + 1) if start < c < stop), stop]
        for a, b in pairwise(cuts):
            first, last = number == 0, a == before and b > a
            runs.append(Run(base + a, base + b, first, last, waits))
            waits += 0 if first else b - a
    return runs


def _ring(vg: int, outputs: int, p_v: int) -> Sequence[Loop]:
    """Core v starts at output floor(v * O / P_V) and goes once round all.

    The first owner of an output is the largest v that starts at or before it; from there it is handed on
    in descending order, so that core v is last owner of what core v - 1 starts with.
    """
    starts = [v * outputs // p_v for v in range(p_v)] + [outputs]
    own, end = starts[vg], starts[vg + 1]
    before = (vg - 1) % p_v
    last_from, last_to = starts[before], starts[before + 1]
    runs = [Run(own, end, True, False, 0)]
    waits = 0
    for start, stop in ((end, outputs), (0, own)):
        cuts = [start, *(c for c in (last_from, last_to) if start < c < stop), stop]
        for a, b in pairwise(cuts):
            runs.append(Run(a, b, False, last_from <= a < last_to, waits))
            waits += b - a
    return [Loop(1, 0, 0, tuple(runs))]
