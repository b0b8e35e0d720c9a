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
    """kind: load, store, take, put, mvm, gpeu, call or wait. `value`: address, length, target or WAIT value."""

    kind: str
    value: int = 0
    size: int = 0
    readers: int = 0  # of put


@dataclass
class Burst:
    port: Port
    begin: int  # bytes
    stop: int
    beats: int
    last: bool
    ready: int = -1  # R: data ready; B: response ready; unknown before it has been served

    @property
    def entries(self) -> range:
        """Those that its bytes lie in."""
        return range(self.begin // 2, (self.stop - 1) // 2 + 1)


@dataclass
class Port:
    """An initiator, and its access in progress."""

    number: int
    where: int = -1  # which set of channels: the memory's or everyone's, or a target's
    is_call: bool = False
    target: int = 0
    is_take: bool = False
    readers: int = 0  # of a put
    held: deque[Burst] = field(default_factory=deque)  # of a take: not yet admitted
    bursts: deque[Burst] = field(default_factory=deque)  # not yet granted AR or AW
    request_from: int = 0  # the first cycle in which the next burst may ask
    in_flight: list[int] = field(
        default_factory=list
    )  # cycles at which places become free; -1: unknown
    reads: deque[Burst] = field(default_factory=deque)
    unserved: deque[Burst] = field(
        default_factory=deque
    )  # writes that have not arrived, oldest first
    responses: deque[Burst] = field(default_factory=deque)
    drained: int = 0  # R: the cycle after the last beat of its last granted burst
    done: int = -1  # completion cycle of the access, once known

    def begin(self, bursts: deque[Burst], start: int) -> None:
        self.bursts = bursts
        self.request_from = start
        self.in_flight = []
        self.done = -1


@dataclass
class CoreModel:
    program: list[Step]
    port: Port
    block: int  # instructions of a block, 0 if the program is not fetched
    fetch: Port | None = None
    pc: int = 0
    start: int = 0  # of the instruction in progress
    active: bool = False  # the instruction has started its action
    complete: int = 0  # of the instruction before, or the coming of its block
    done: int = -1
    seq_nr: int = 0
    finish: int = 0
    come: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 0})  # F(k), where known
    ended: dict[int, int] = field(default_factory=dict)  # T(k)
    base: int = 0


def split(address: int, size: int, width: int, port: Port) -> deque[Burst]:
    """The bursts of an access, beat by beat."""
    words = list(range(address // width, (address + size - 1) // width + 1))
    groups: list[list[int]] = [[]]
    for word in words:
        if groups[-1] and (len(groups[-1]) == 256 or word * width % 4096 == 0):
            groups.append([])
        groups[-1].append(word)
    return deque(
        Burst(
            port,
            max(address, group[0] * width),
            min(address + size, (group[-1] + 1) * width),
            len(group),
            group is groups[-1],
        )
        for group in groups
    )


class Arbiter:
    """Round-robin over initiators, or by age."""

    def __init__(self, rule: str, count: int) -> None:
        self.rule = rule
        self.count = count
        self.last = -1
        self.free = 0
        self.since: dict[int, tuple[int, int]] = {}  # port: cycle of asking, 1 for a late one

    def asks(self, port: int, t: int, late: bool = False) -> None:
        """The port asks from cycle t on, if it does not ask already."""
        self.since.setdefault(port, (t, int(late)))

    def pick(self, asking: list[Port], t: int) -> Port:
        for port in asking:
            self.asks(port.number, t)
        if self.rule == "round_robin":
            chosen = min(asking, key=lambda port: (port.number - self.last - 1) % self.count)
        else:
            chosen = min(asking, key=lambda port: (self.since[port.number], port.number))
        self.last = chosen.number
        del self.since[chosen.number]
        return chosen


class Banks:
    """The memory's banks, for reads and for writes."""

    def __init__(self, machine: Machine) -> None:
        self.memory = machine.memory
        reads: dict[int, int] = {}
        separate = self.memory.bank_ports == "separate"
        self.free = {"read": reads, "write": {} if separate else reads}

    def serve(self, kind: str, burst: Burst, a: int) -> int:
        memory = self.memory
        if not isinstance(memory.banks, int):
            return a
        served = []
        free = self.free[kind]
        unit = burst.begin // memory.bank_interleave_bytes
        while unit * memory.bank_interleave_bytes < burst.stop:
            bank = unit % memory.banks
            served.append(max(a, free.get(bank, 0)))
            free[bank] = served[-1] + memory.bank_cycles
            unit += 1
        return max(served)


class Model:
    """The whole machine."""

    def __init__(self, programs: list[list[Step]], machine: Machine, bases: list[int]) -> None:
        self.machine = machine
        count = len(programs)
        size = machine.core.instruction_memory_bytes
        self.ports = [Port(number) for number in range(2 * count)]
        self.cores = []
        for number, program in enumerate(programs):
            fetched = isinstance(size, int) and 8 * len(program) > size
            core = CoreModel(list(program), self.ports[number], size // 16 if fetched else 0)
            core.base = bases[number]
            if fetched:
                core.fetch = self.ports[count + number]
            self.cores.append(core)
        self.arbiters: dict[tuple[str, int], Arbiter] = {}
        self.w_free: dict[int, int] = {}
        self.banks = Banks(machine)
        self.reads_at_memory: dict[int, Burst] = {}
        self.writes_at_memory: dict[int, Burst] = {}
        self.arrivals: dict[int, list[Burst]] = {}
        self.read_places: list[Burst] = []  # granted AR, not yet R
        self.write_places = 0  # granted AW, not yet finished
        self.fetched_bytes = 0
        self.to_come: dict[int, int] = {}  # reads of each entry

    def arbiter(self, name: str, where: int) -> Arbiter:
        rule = self.machine.bus.arbitration
        return self.arbiters.setdefault((name, where), Arbiter(rule, len(self.ports)))

    # --- one cycle ---------------------------------------------------------------------------------------

    def cycle(self, t: int) -> bool:
        """Everything that happens in cycle t; False if nothing did."""
        moved = self.reach_memory(t)
        for burst in sorted(self.arrivals.pop(t, []), key=lambda burst: burst.port.number):
            if burst.port.is_call:
                self.cores[burst.port.target].seq_nr += 1
            elif burst.port.readers:
                self.to_come |= dict.fromkeys(burst.entries, burst.port.readers)
            burst.port.responses.append(burst)
            moved = True
        for port in self.ports:
            self.admit(port, t)
        for core in self.cores:
            moved |= self.run(core, t)
        for core in self.cores:
            if core.fetch is not None:
                moved |= self.fetch(core, t)
        granted = [self.grant_ar(t), self.grant_aw(t), self.grant_r(t), self.grant_b(t)]
        return moved or any(granted)

    def reach_memory(self, t: int) -> bool:
        memory = self.machine.memory
        write = self.writes_at_memory.pop(t, None)
        read = self.reads_at_memory.pop(t, None)
        if write is not None:
            older = [b.ready for b in write.port.unserved if b is not write and b.ready >= 0]
            served = self.banks.serve("write", write, t) + memory.write_latency_cycles
            write.ready = max([served, *older])
            self.arrivals.setdefault(write.ready, []).append(write)
        if read is not None and read.port.is_take:
            read.port.held.append(read)
            self.admit(read.port, t)
        elif read is not None:
            read.ready = self.banks.serve("read", read, t) + memory.read_latency_cycles
        return read is not None or write is not None

    def admit(self, port: Port, t: int) -> None:
        """The bursts of a take that have reached the memory, as far as their entries are valid."""
        while port.held and all(self.to_come.get(entry) for entry in port.held[0].entries):
            burst = port.held.popleft()
            for entry in burst.entries:
                self.to_come[entry] -= 1
            burst.ready = (
                self.banks.serve("read", burst, t) + self.machine.memory.read_latency_cycles
            )

    def run(self, core: CoreModel, t: int) -> bool:
        """What completes and what starts; several local steps may fall in the same cycle."""
        k, bus = self.machine.core, self.machine.bus
        moved = False
        while core.pc < len(core.program):
            step = core.program[core.pc]
            if not core.active:
                if core.block and core.pc % core.block == 0:
                    come = core.come.get(core.pc // core.block)
                    if come is None:
                        return moved
                    core.complete = max(core.complete, come)
                core.start = core.complete + k.issue_cycles
                if t < core.start:
                    return True
                core.active = True
                core.done = -1
                port = core.port
                if step.kind == "mvm":
                    core.done = core.start + self.machine.mvm_cycles
                elif step.kind == "gpeu":
                    beats = -(-step.value // k.gpeu_lanes)
                    core.done = core.start + k.gpeu_latency_cycles + beats
                elif step.kind in ("load", "store", "take", "put"):
                    port.is_call, port.where = False, -1
                    port.is_take, port.readers = step.kind == "take", step.readers
                    port.begin(split(step.value, step.size, bus.width_bytes, port), core.start)
                elif step.kind == "call":
                    port.is_call, port.target = True, step.value
                    port.where = step.value if bus.topology == "per_target" else -1
                    port.begin(deque([Burst(port, 0, 1, 1, True)]), core.start)
            if step.kind in ("load", "store", "take", "put", "call"):
                core.done = core.port.done
            if step.kind == "wait" and core.done < 0 and core.seq_nr >= step.value:
                core.done = t
            if core.done < 0 or t < core.done:
                return moved or core.done >= 0
            core.complete = core.finish = core.done
            core.active = False
            core.pc += 1
            if core.block and core.pc % core.block == 0:
                core.ended[core.pc // core.block - 1] = core.done
            moved = True
        return moved

    def fetch(self, core: CoreModel, t: int) -> bool:
        """Begin the fetch of the next block in the cycle in which its time has come."""
        port = core.fetch
        assert port is not None
        bus = self.machine.bus
        if port.done >= 0:  # the block before has come, or is about to
            core.come[max(core.come) + 1] = port.done
            port.done = -1
        block = max(core.come) + 1
        begin = block * core.block
        busy = port.bursts or port.reads or begin >= len(core.program)
        if busy or block - 2 not in core.ended:
            return False
        start = max(core.ended[block - 2], core.come[block - 1])
        if t < start:
            return True
        assert t == start
        size = 8 * (min(begin + core.block, len(core.program)) - begin)
        self.fetched_bytes += size
        port.begin(split(core.base + 8 * begin, size, bus.width_bytes, port), t)
        return True

    # --- channels ----------------------------------------------------------------------------------------

    def asking(self, t: int, reads: bool) -> dict[int, list[Port]]:
        bus = self.machine.bus
        limit = bus.read_outstanding if reads else bus.write_outstanding
        ports = []
        for core in self.cores:
            if core.active and (core.program[core.pc].kind in ("load", "take")) == reads:
                ports.append(core.port)
        if reads:
            ports += [core.fetch for core in self.cores if core.fetch is not None]
        found: dict[int, list[Port]] = {}
        for port in ports:
            busy = sum(1 for until in port.in_flight if until < 0 or until > t)
            if port.bursts and t >= port.request_from and busy < limit:
                found.setdefault(-1 if reads else port.where, []).append(port)
        return found

    def grant_ar(self, t: int) -> bool:
        most = self.machine.memory.read_outstanding
        for where, asking in self.asking(t, reads=True).items():
            arbiter = self.arbiter("AR", where)
            for port in asking:
                arbiter.asks(port.number, t)
            busy = len(self.read_places) + (self.arbiter("R", -1).free > t)
            if isinstance(most, int) and busy >= most:
                return False
            port = arbiter.pick(asking, t)
            burst = port.bursts.popleft()
            self.reads_at_memory[t + 1] = burst
            self.read_places.append(burst)
            port.reads.append(burst)
            port.in_flight.append(-1)
            port.request_from = t + 1
            return True
        return False

    def grant_aw(self, t: int) -> bool:
        bus = self.machine.bus
        most = self.machine.memory.write_outstanding
        moved = False
        for where, asking in self.asking(t, reads=False).items():
            arbiter = self.arbiter("AW", where)
            for port in asking:
                arbiter.asks(port.number, t)
            if where == -1 and isinstance(most, int) and self.write_places >= most:
                continue
            port = arbiter.pick(asking, t)
            burst = port.bursts.popleft()
            begin = max(t + 1, self.w_free.get(where, 0))
            self.w_free[where] = begin + burst.beats
            if port.is_call:
                burst.ready = self.w_free[where] + bus.register_latency_cycles
                self.arrivals.setdefault(burst.ready, []).append(burst)
            else:
                self.writes_at_memory[self.w_free[where]] = burst
                self.write_places += 1
            port.unserved.append(burst)
            port.in_flight.append(-1)
            port.request_from = t + 1
            moved = True
        return moved

    def grant_r(self, t: int) -> bool:
        arbiter = self.arbiter("R", -1)
        asking = [p for p in self.ports if p.reads and 0 <= p.reads[0].ready <= t]
        for port in asking:
            if t >= port.drained:
                arbiter.asks(port.number, t)
        if arbiter.free > t or not asking:
            return False
        port = arbiter.pick(asking, t)
        burst = port.reads.popleft()
        self.read_places.remove(burst)
        arbiter.free = t + burst.beats
        port.drained = arbiter.free
        port.in_flight[port.in_flight.index(-1)] = arbiter.free
        if burst.last:
            port.done = arbiter.free
        return True

    def grant_b(self, t: int) -> bool:
        waiting: dict[int, list[Port]] = {}
        for port in self.ports:
            if port.responses:
                waiting.setdefault(port.where, []).append(port)
        finished = 0
        for where, asking in waiting.items():
            arbiter = self.arbiter("B", where)
            port = arbiter.pick(asking, t)
            burst = port.responses.popleft()
            port.unserved.remove(burst)
            if port.responses:
                arbiter.asks(port.number, t, late=True)
            port.in_flight[port.in_flight.index(-1)] = t + 1
            finished += not port.is_call
            if burst.last:
                port.done = t + 1
        # AW has been arbitrated for this cycle: the place is free from the next one on.
        self.write_places -= finished
        return bool(waiting)

    def busy(self, t: int) -> bool:
        """Whether something is on its way."""
        channels = self.arrivals or self.reads_at_memory or self.writes_at_memory
        return bool(
            channels
            or self.arbiter("R", -1).free > t
            or any(
                (port.reads and port.reads[0].ready > t)
                or (port.bursts and port.request_from > t)
                or any(until > t for until in port.in_flight)
                for port in self.ports
            )
        )


def simulate(
    programs: list[list[Step]], machine: Machine, bases: list[int] | None = None
) -> tuple[int, list[int]] | None:
    """Latency and the finish of each core; None for a deadlock. `bases`: the programs' addresses."""
    model = Model(programs, machine, bases or [0] * len(programs))
    quiet = t = 0
    while any(core.pc < len(core.program) for core in model.cores):
        moved = model.cycle(t)
        quiet = 0 if moved or model.busy(t) else quiet + 1
        if quiet > 3:
            return None
        t += 1
    finishes = [core.finish for core in model.cores]
    return max(finishes, default=0), finishes
