"""What a run cost: the `--stats` file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from cim.emulator import layout
from cim.emulator.ideal import Bound, Work, lower_bound, measure
from cim.emulator.prepare import Prepared
from cim.emulator.run import Result
from cim.emulator.state import block_words, fetched_cores
from cim.isa.machine import Machine
from cim.isa.model import CLASSES


def _unit(description: str) -> msgspec.Meta:
    return msgspec.Meta(description=description)


Executed = Annotated[int, _unit("instructions executed")]
Elements = Annotated[int, _unit("buffer elements")]
Bytes = Annotated[int, _unit("bytes")]
CoreCycles = Annotated[int, _unit("core cycles: bus clock cycles, summed over the cores")]
BurstCycles = Annotated[
    int, _unit("bus clock cycles of waiting, summed over the bursts of all cores")
]
ChannelCycles = Annotated[int, _unit("bus clock cycles occupied, summed over the channel's sets")]
Bursts = Annotated[int, _unit("bursts")]


class Instructions(msgspec.Struct, frozen=True):
    """Executed instructions by class, all cores."""

    load: Executed
    store: Executed
    mvm: Executed
    gpeu: Executed
    call: Executed
    wait: Executed


class Values(msgspec.Struct, frozen=True):
    """Elements moved between buffers and shared memory."""

    load: Elements
    store: Elements


class ByteCounts(msgspec.Struct, frozen=True):
    """Bytes that instructions moved over the bus: payload, not whole beats. A CALL has 4."""

    load: Bytes
    store: Bytes
    call: Bytes
    fetch: Annotated[int, _unit("bytes of instructions fetched during inference")]


class Stalls(msgspec.Struct, frozen=True):
    """Cycles between a request and its grant on a channel, and cycles blocked in WAIT."""

    seq_nr: CoreCycles
    ar: BurstCycles
    r: BurstCycles
    aw: BurstCycles
    w: BurstCycles
    b: BurstCycles


class CoreTime(msgspec.Struct, frozen=True):
    """Where the cores' time went; the nine add up to cores * cycles."""

    issue: CoreCycles
    load: CoreCycles
    store: CoreCycles
    mvm: CoreCycles
    gpeu: CoreCycles
    call: CoreCycles
    wait: CoreCycles
    fetch: Annotated[int, _unit("core cycles of waiting for instructions")]
    idle: Annotated[int, _unit("core cycles between a core's last instruction and the end")]


class Transaction(msgspec.Struct, frozen=True):
    """Bursts granted an address, and bursts whose data or response has come back."""

    issued: Bursts
    completed: Bursts


class Transactions(msgspec.Struct, frozen=True):
    """Bursts of loads, of instruction fetches, of stores, and CALLs."""

    read: Transaction
    fetch: Transaction
    write: Transaction
    call: Transaction


class BusStats(msgspec.Struct, frozen=True):
    """Occupation of the channels."""

    ar_busy_cycles: ChannelCycles
    r_busy_cycles: ChannelCycles
    aw_busy_cycles: ChannelCycles
    w_busy_cycles: ChannelCycles
    b_busy_cycles: ChannelCycles
    transactions: Transactions


class OneCore(msgspec.Struct, frozen=True):
    """The time of one core by cause, in bus clock cycles; they add up to the latency of the inferences.

    Accesses count what they would take alone on the bus; what they took more is `bus`.
    """

    core: Annotated[int, _unit("its number")]
    issue: CoreCycles
    mvm: CoreCycles
    gpeu: CoreCycles
    load: CoreCycles
    store: CoreCycles
    call: CoreCycles
    seq_nr: Annotated[int, _unit("core cycles blocked in WAIT")]
    bus: Annotated[int, _unit("core cycles of waiting for bus and memory")]
    fetch: Annotated[int, _unit("core cycles of waiting for instructions")]
    idle: Annotated[int, _unit("core cycles after its last instruction")]


class Synchronization(msgspec.Struct, frozen=True):
    """CALL traffic against data traffic (loads and stores), in bytes and as shares."""

    call_bytes: Bytes
    data_bytes: Bytes
    of_data: Annotated[float, _unit("call_bytes / data_bytes; 0 without data")]
    of_all: Annotated[float, _unit("call_bytes / (call_bytes + data_bytes); 0 without either")]


class LowerBound(msgspec.Struct, frozen=True):
    """What no run of this program on this machine can go below, and how near this one came."""

    cycles: Annotated[int, _unit("the largest of the bounds, for all images: bus clock cycles")]
    efficiency: Annotated[float, _unit("this figure / the cycles of the run")]
    binding: Annotated[str, _unit("which bound is the largest")]
    core_cycles: Annotated[int, _unit("busiest core alone, per image: bus clock cycles")]
    dependency_cycles: Annotated[
        int, _unit("longest chain of instructions and CALLs, per image: bus clock cycles")
    ]
    ar_cycles: Annotated[int, _unit("busiest AR, per image: bus clock cycles")]
    r_cycles: Annotated[int, _unit("busiest R, per image: bus clock cycles")]
    aw_cycles: Annotated[int, _unit("busiest AW, per image: bus clock cycles")]
    w_cycles: Annotated[int, _unit("busiest W, per image: bus clock cycles")]
    b_cycles: Annotated[int, _unit("busiest B, per image: bus clock cycles")]


class Totals(msgspec.Struct, frozen=True):
    """What adds up over images and layers. One clock: the bus clock."""

    cycles: Annotated[int, _unit("inference: bus clock cycles, for a batch the total")]
    cycles_per_image: Annotated[list[int], _unit("inference of each image: bus clock cycles")]
    setup_cycles: Annotated[int, _unit("setup, with the IFM of every image: bus clock cycles")]
    cores: Annotated[int, _unit("cores that have a program")]
    frequency_hz: Annotated[int, _unit("the bus clock: hertz")]
    instructions: Instructions
    values: Values
    bytes: ByteCounts
    stalls: Stalls
    core_cycles: CoreTime
    bus: BusStats


class Stats(Totals, frozen=True):
    """All figures of a run; for a batch the sums over its images."""

    synchronization: Synchronization
    lower_bound: LowerBound
    per_core: list[OneCore]


def setup_cycles(prepared: Prepared, machine: Machine, images: int = 1) -> int:
    """Bus clock cycles of the setup phase, by the formula of spec/timing.md.

    Of a layer of several turns each image needs every turn's setup anew; what lies in memory stays there.
    """
    config = prepared.config
    folded = config.layer is not None and bool(config.layer.turn_ends)
    later = config.layer is not None and config.layer.turn > 0
    width = machine.bus.width_bytes

    def transfer(size: int) -> int:
        return -(-size // width)

    loaded = 16 * block_words(prepared, machine)
    fetched: list[bool] = fetched_cores(prepared, machine).tolist()
    sizes = [core.program.size for core in prepared.configs]
    contents = [size for size, parts in zip(sizes, fetched, strict=True) if not parts]
    regions = [region.content.size for region in config.regions if region.content is not None]
    cell = config.numeric_mode.cell.itemsize
    cells = (prepared.cores["rows"] * prepared.cores["columns"] * cell).tolist()
    inputs = [region.size_bytes for region in config.regions if region.name == "ifm" and not later]
    registers = len(config.cores) + sum(
        segment.size // 4 for core in config.cores for segment in core.parameters.values()
    )
    rows = int(prepared.cores["rows"].max(initial=0))
    of_cores = sum(map(transfer, contents)) + sum(map(transfer, cells))
    of_cores += rows * machine.setup.row_program_cycles
    of_cores += registers * machine.setup.register_write_cycles
    of_image = sum(map(transfer, inputs)) + fetched.count(True) * transfer(loaded)
    return (images if folded else 1) * of_cores + sum(map(transfer, regions)) + images * of_image


def collect(results: Sequence[Result]) -> Stats:
    """The statistics of one or more runs of the same image on the same machine."""
    prepared, machine = results[0].prepared, results[0].machine
    runs = len(results)
    cycles = [result.cycles for result in results]
    executed = {
        name: runs * int(np.count_nonzero(prepared.classes == number))
        for number, name in enumerate(CLASSES)
    }
    per_core = np.sum([result.counters for result in results], axis=0)
    executed_in_all = int((prepared.cores["end"] - prepared.cores["first"]).sum())
    counters = per_core.sum(axis=0).tolist()
    fetches = np.sum([result.fetches.sum(axis=0) for result in results], axis=0).tolist()
    idle = np.sum([result.cycles - result.finish for result in results], axis=0)
    work = measure(prepared, machine)
    busy = np.sum([result.busy for result in results], axis=0).tolist()
    loads, stores = work.loads, work.stores
    alone = dict(zip(CLASSES, work.per_core.T, strict=True))
    return Stats(
        cycles=sum(cycles),
        cycles_per_image=cycles,
        setup_cycles=setup_cycles(prepared, machine, runs),
        cores=len(prepared.configs),
        frequency_hz=machine.clock.frequency_hz,
        instructions=Instructions(**executed),
        values=Values(load=runs * loads.elements, store=runs * stores.elements),
        bytes=ByteCounts(
            load=runs * loads.bytes,
            store=runs * stores.bytes,
            call=4 * executed["call"],
            fetch=fetches[layout.BYTES_READ],
        ),
        stalls=Stalls(
            seq_nr=counters[layout.WAIT_CYCLES],
            ar=counters[layout.STALL_AR] + fetches[layout.STALL_AR],
            r=counters[layout.STALL_R] + fetches[layout.STALL_R],
            aw=counters[layout.STALL_AW],
            w=counters[layout.STALL_W],
            b=counters[layout.STALL_B],
        ),
        core_cycles=CoreTime(
            issue=runs * executed_in_all * machine.core.issue_cycles,
            load=counters[layout.LOAD_CYCLES],
            store=counters[layout.STORE_CYCLES],
            mvm=runs * int(alone["mvm"].sum()),
            gpeu=runs * int(alone["gpeu"].sum()),
            call=counters[layout.CALL_CYCLES],
            wait=counters[layout.WAIT_CYCLES],
            fetch=counters[layout.FETCH_CYCLES],
            idle=int(idle.sum()),
        ),
        bus=BusStats(
            ar_busy_cycles=busy[layout.AR],
            r_busy_cycles=busy[layout.R],
            aw_busy_cycles=busy[layout.AW],
            w_busy_cycles=busy[layout.W],
            b_busy_cycles=busy[layout.B],
            transactions=Transactions(
                read=Transaction(counters[layout.READS_ISSUED], counters[layout.READS_DONE]),
                fetch=Transaction(fetches[layout.READS_ISSUED], fetches[layout.READS_DONE]),
                write=Transaction(counters[layout.WRITES_ISSUED], counters[layout.WRITES_DONE]),
                call=Transaction(counters[layout.CALLS_ISSUED], counters[layout.CALLS_DONE]),
            ),
        ),
        synchronization=synchronization(4 * executed["call"], runs * (loads.bytes + stores.bytes)),
        lower_bound=_lower_bound(lower_bound(prepared, machine, work), cycles),
        per_core=_per_core(prepared, machine, work, per_core, idle, runs),
    )


def synchronization(calls: int, data: int) -> Synchronization:
    """The overhead of `calls` bytes of CALLs beside `data` bytes of loads and stores."""
    whole = calls + data
    return Synchronization(
        calls, data, calls / data if data else 0.0, calls / whole if whole else 0.0
    )


def _lower_bound(bound: Bound, cycles: list[int]) -> LowerBound:
    figures = asdict(bound)
    binding = max(figures, key=lambda name: figures[name])
    least = len(cycles) * figures[binding]
    return LowerBound(
        cycles=least,
        efficiency=least / sum(cycles) if sum(cycles) else 1.0,
        binding=binding,
        **{f"{name}_cycles": figure for name, figure in figures.items()},
    )


def _per_core(
    prepared: Prepared, machine: Machine, work: Work, counters: NDArray[np.int64],
    idle: NDArray[np.int64], runs: int,
) -> list[OneCore]:  # fmt: skip
    """The time of each core by cause, over all runs."""
    issued = (prepared.cores["end"] - prepared.cores["first"]) * machine.core.issue_cycles
    classes = dict(zip(CLASSES, runs * work.per_core.T, strict=True))
    accesses = [classes[name] for name in ("load", "store", "call")]
    taken = counters[:, [layout.LOAD_CYCLES, layout.STORE_CYCLES, layout.CALL_CYCLES]].sum(axis=1)
    columns = {
        "core": np.array(prepared.names, dtype=np.int64),
        "issue": runs * issued,
        **{name: classes[name] for name in ("mvm", "gpeu", "load", "store", "call")},
        "seq_nr": counters[:, layout.WAIT_CYCLES],
        "bus": taken - np.sum(accesses, axis=0),
        "fetch": counters[:, layout.FETCH_CYCLES],
        "idle": idle,
    }
    rows = np.stack(list(columns.values()), axis=1).tolist()
    return [OneCore(*row) for row in rows]


def encode_stats(stats: Totals) -> bytes:
    """The text of the `--stats` file."""
    return msgspec.json.format(msgspec.json.encode(stats), indent=2) + b"\n"
