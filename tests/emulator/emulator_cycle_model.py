"""A second implementation of spec/timing.md: every cycle in turn, no events, nothing shared with the engine.

It knows no values: an image is a list of programs of `Step`s. Slow, and meant to be compared with the
document line by line.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from cim.isa.machine import Machine


@dataclass
class Step:
    """kind: load, store, mvm, gpeu, call or wait. `value`: address, length, target or WAIT value."""

    kind: str
    value: int = 0
    size: int = 0


@dataclass
class Burst:
    core: int
    beats: int
    last: bool
    ready: int = 0  # R: data ready; B: response ready


@dataclass
class CoreModel:
    program: list[Step]
    pc: int = 0
    start: int = 0  # of the instruction in progress
    active: bool = False  # the instruction has started its action
    complete: int = 0  # of the instruction before
    seq_nr: int = 0
    bursts: deque[Burst] = field(default_factory=deque)  # not yet granted AR or AW
    request_from: int = 0  # the first cycle in which the next burst may ask
    in_flight: list[int] = field(
        default_factory=list
    )  # cycles at which places become free; -1: unknown
    reads: deque[Burst] = field(default_factory=deque)
    responses: deque[Burst] = field(default_factory=deque)
    drained: int = 0  # R: the cycle after the last beat of its last granted burst
    done: int = -1  # completion cycle of the access, once known


def split(address: int, size: int, width: int, core: int) -> deque[Burst]:
    """The bursts of an access, beat by beat."""
    words = list(range(address // width, (address + size - 1) // width + 1))
    bursts: deque[Burst] = deque()
    group: list[int] = []
    for word in words:
        if group and (len(group) == 256 or word * width % 4096 == 0):
            bursts.append(Burst(core, len(group), False))
            group = []
        group.append(word)
    bursts.append(Burst(core, len(group), True))
    return bursts


class Arbiter:
    """Round-robin over core numbers, or by age."""

    def __init__(self, rule: str, count: int) -> None:
        self.rule = rule
        self.count = count
        self.last = -1
        self.free = 0
        self.since: dict[int, tuple[int, int]] = {}  # core: cycle of asking, 1 for a late one

    def asks(self, core: int, t: int, late: bool = False) -> None:
        """The core asks from cycle t on, if it does not ask already."""
        self.since.setdefault(core, (t, int(late)))

    def pick(self, asking: list[int], t: int) -> int:
        for core in asking:
            self.asks(core, t)
        if self.rule == "round_robin":
            chosen = min(asking, key=lambda core: (core - self.last - 1) % self.count)
        else:
            chosen = min(asking, key=lambda core: (self.since[core], core))
        self.last = chosen
        del self.since[chosen]
        return chosen


def simulate(programs: list[list[Step]], machine: Machine) -> tuple[int, list[int]] | None:
    """Latency and the finish of each core; None for a deadlock."""
    core_, bus, memory = machine.core, machine.bus, machine.memory
    count = len(programs)
    cores = [CoreModel(list(program)) for program in programs]
    arbiters: dict[tuple[str, int], Arbiter] = {}
    w_free: dict[int, int] = {}
    effects: dict[int, list[Burst]] = {}
    calls: dict[int, list[int]] = {}

    def arbiter(name: str, where: int) -> Arbiter:
        return arbiters.setdefault((name, where), Arbiter(bus.arbitration, count))

    def set_of(core: CoreModel) -> int:
        step = core.program[core.pc]
        return step.value if step.kind == "call" and bus.topology == "per_target" else -1

    def asking_address(t: int, kinds: tuple[str, ...], limit: int) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for number, core in enumerate(cores):
            if not (core.active and core.bursts) or core.program[core.pc].kind not in kinds:
                continue
            busy = sum(1 for until in core.in_flight if until < 0 or until > t)
            if t >= core.request_from and busy < limit:
                found.setdefault(set_of(core), []).append(number)
        return found

    quiet = 0
    t = 0
    while any(core.pc < len(core.program) for core in cores):
        moved = False
        # (1) B-ready effects
        for target in calls.pop(t, []):
            cores[target].seq_nr += 1
            moved = True
        for burst in effects.pop(t, []):
            cores[burst.core].responses.append(burst)
            moved = True
        # cores: what completes, what starts (several local steps may fall in the same cycle)
        for number, core in enumerate(cores):
            while core.pc < len(core.program):
                step = core.program[core.pc]
                if not core.active:
                    core.start = core.complete + core_.issue_cycles
                    if t < core.start:
                        moved = True
                        break
                    core.active = True
                    core.done = -1
                    if step.kind == "mvm":
                        core.done = core.start + core_.mvm_cycles
                    elif step.kind == "gpeu":
                        core.done = (
                            core.start
                            + core_.gpeu_latency_cycles
                            + -(-step.value // core_.gpeu_lanes)
                        )
                    elif step.kind in ("load", "store"):
                        core.bursts = split(step.value, step.size, bus.width_bytes, number)
                        core.request_from = core.start
                        core.in_flight = []
                    elif step.kind == "call":
                        core.bursts = deque([Burst(number, 1, True)])
                        core.request_from = core.start
                        core.in_flight = []
                if step.kind == "wait" and core.done < 0 and core.seq_nr >= step.value:
                    core.done = t
                if core.done < 0 or t < core.done:
                    moved = moved or core.done >= 0
                    break
                core.complete = core.done
                core.active = False
                core.pc += 1
        # (2) arbitration
        for where, asking in asking_address(t, ("load",), bus.read_outstanding).items():
            core = cores[arbiter("AR", where).pick(asking, t)]
            burst = core.bursts.popleft()
            burst.ready = t + 1 + memory.read_latency_cycles
            core.reads.append(burst)
            core.in_flight.append(-1)
            core.request_from = t + 1
            moved = True
        for where, asking in asking_address(t, ("store", "call"), bus.write_outstanding).items():
            number = arbiter("AW", where).pick(asking, t)
            core = cores[number]
            burst = core.bursts.popleft()
            begin = max(t + 1, w_free.get(where, 0))
            w_free[where] = begin + burst.beats
            is_call = core.program[core.pc].kind == "call"
            latency = bus.register_latency_cycles if is_call else memory.write_latency_cycles
            burst.ready = w_free[where] + latency
            effects.setdefault(burst.ready, []).append(burst)
            if is_call:
                calls.setdefault(burst.ready, []).append(core.program[core.pc].value)
            core.in_flight.append(-1)
            core.request_from = t + 1
            moved = True
        r = arbiter("R", -1)
        asking = [n for n, core in enumerate(cores) if core.reads and core.reads[0].ready <= t]
        for number in asking:
            if t >= cores[number].drained:
                r.asks(number, t)
        if r.free <= t and asking:
            core = cores[r.pick(asking, t)]
            burst = core.reads.popleft()
            r.free = t + burst.beats
            core.drained = r.free
            core.in_flight[core.in_flight.index(-1)] = r.free
            if burst.last:
                core.done = r.free
            moved = True
        waiting: dict[int, list[int]] = {}
        for number, core in enumerate(cores):
            if core.responses:
                waiting.setdefault(set_of(core), []).append(number)
        for where, asking in waiting.items():
            number = arbiter("B", where).pick(asking, t)
            core = cores[number]
            burst = core.responses.popleft()
            if core.responses:
                arbiter("B", where).asks(number, t, late=True)
            core.in_flight[core.in_flight.index(-1)] = t + 1
            if burst.last:
                core.done = t + 1
            moved = True
        outstanding = (
            effects or calls or r.free > t or any(core.reads or core.bursts for core in cores)
        )
        quiet = 0 if moved or outstanding else quiet + 1
        if quiet > 3:
            return None
        t += 1
    finishes = [core.complete for core in cores]
    return max(finishes, default=0), finishes
