"""What a run cost: the `--stats` file, and a short table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np

from cim.console import table_console
from cim.emulator import layout
from cim.emulator.prepare import Prepared
from cim.emulator.run import Result
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
    fetch: Annotated[
        int, _unit("bytes of instructions fetched while running; always 0 in timing v1")
    ]


class Stalls(msgspec.Struct, frozen=True):
    """Cycles between a request and its grant on a channel, and cycles blocked in WAIT."""

    seq_nr: CoreCycles
    ar: BurstCycles
    r: BurstCycles
    aw: BurstCycles
    w: BurstCycles
    b: BurstCycles


class CoreTime(msgspec.Struct, frozen=True):
    """Where the cores' time went; the eight add up to cores * cycles."""

    issue: CoreCycles
    load: CoreCycles
    store: CoreCycles
    mvm: CoreCycles
    gpeu: CoreCycles
    call: CoreCycles
    wait: CoreCycles
    idle: Annotated[int, _unit("core cycles between a core's last instruction and the end")]


class Transaction(msgspec.Struct, frozen=True):
    """Bursts granted an address, and bursts whose data or response has come back."""

    issued: Bursts
    completed: Bursts


class Transactions(msgspec.Struct, frozen=True):
    """Bursts of loads, of stores, and CALLs."""

    read: Transaction
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


class Stats(msgspec.Struct, frozen=True):
    """All figures of a run; for a batch the sums over its images. One clock: the bus clock."""

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


def setup_cycles(prepared: Prepared, machine: Machine, images: int = 1) -> int:
    """Bus clock cycles of the setup phase, by the formula of spec/timing.md."""
    config = prepared.config
    width = machine.bus.width_bytes

    def transfer(size: int) -> int:
        return -(-size // width)

    contents = [core.program.size for core in config.cores]
    contents += [region.content.size for region in config.regions if region.content is not None]
    cell = config.numeric_mode.cell.itemsize
    cells = (prepared.cores["rows"] * prepared.cores["columns"] * cell).tolist()
    inputs = [region.size_bytes for region in config.regions if region.name == "ifm"]
    over_bus = sum(map(transfer, contents)) + sum(map(transfer, cells))
    over_bus += images * sum(map(transfer, inputs))
    registers = len(config.cores) + sum(
        segment.size // 4 for core in config.cores for segment in core.parameters.values()
    )
    rows = int(prepared.cores["rows"].max(initial=0))
    return (
        over_bus
        + rows * machine.setup.row_program_cycles
        + registers * machine.setup.register_write_cycles
    )


def collect(results: Sequence[Result]) -> Stats:
    """The statistics of one or more runs of the same image on the same machine."""
    prepared, machine = results[0].prepared, results[0].machine
    runs = len(results)
    cycles = [result.cycles for result in results]
    executed = {
        name: runs * int(np.count_nonzero(prepared.classes == number))
        for number, name in enumerate(CLASSES)
    }
    counters = np.sum([result.counters.sum(axis=0) for result in results], axis=0).tolist()
    busy = np.sum([result.busy for result in results], axis=0).tolist()
    values, sizes = _moved(prepared)
    return Stats(
        cycles=sum(cycles),
        cycles_per_image=cycles,
        setup_cycles=setup_cycles(prepared, machine, runs),
        cores=len(prepared.configs),
        frequency_hz=machine.clock.frequency_hz,
        instructions=Instructions(**executed),
        values=Values(load=runs * values["load"], store=runs * values["store"]),
        bytes=ByteCounts(
            load=runs * sizes["load"],
            store=runs * sizes["store"],
            call=4 * executed["call"],
            fetch=0,
        ),
        stalls=Stalls(
            seq_nr=counters[layout.WAIT_CYCLES],
            ar=counters[layout.STALL_AR],
            r=counters[layout.STALL_R],
            aw=counters[layout.STALL_AW],
            w=counters[layout.STALL_W],
            b=counters[layout.STALL_B],
        ),
        core_cycles=CoreTime(
            issue=runs * len(prepared.program) * machine.core.issue_cycles,
            load=counters[layout.LOAD_CYCLES],
            store=counters[layout.STORE_CYCLES],
            mvm=executed["mvm"] * machine.core.mvm_cycles,
            gpeu=runs * _gpeu_cycles(prepared, machine),
            call=counters[layout.CALL_CYCLES],
            wait=counters[layout.WAIT_CYCLES],
            idle=sum(int((result.cycles - result.finish).sum()) for result in results),
        ),
        bus=BusStats(
            ar_busy_cycles=busy[layout.AR],
            r_busy_cycles=busy[layout.R],
            aw_busy_cycles=busy[layout.AW],
            w_busy_cycles=busy[layout.W],
            b_busy_cycles=busy[layout.B],
            transactions=Transactions(
                read=Transaction(counters[layout.READS_ISSUED], counters[layout.READS_DONE]),
                write=Transaction(counters[layout.WRITES_ISSUED], counters[layout.WRITES_DONE]),
                call=Transaction(counters[layout.CALLS_ISSUED], counters[layout.CALLS_DONE]),
            ),
        ),
    )


def _moved(prepared: Prepared) -> tuple[dict[str, int], dict[str, int]]:
    """Elements and bytes of all loads and stores of one run."""
    values, sizes = {}, {}
    for name, op in (("load", layout.LOAD), ("store", layout.STORE)):
        chosen = prepared.program[prepared.program["op"] == op]
        elements = chosen["hi"].astype(np.int64) - chosen["lo"]
        values[name] = int(elements.sum())
        sizes[name] = int((elements * prepared.kinds["bytes"][chosen["buffer"]]).sum())
    return values, sizes


def _gpeu_cycles(prepared: Prepared, machine: Machine) -> int:
    lengths = prepared.program["hi"][prepared.program["op"] >= layout.MOV].astype(np.int64)
    lanes = machine.core.gpeu_lanes
    return int((-(-lengths // lanes) + machine.core.gpeu_latency_cycles).sum())


def encode_stats(stats: Stats) -> bytes:
    """The text of the `--stats` file."""
    return msgspec.json.format(msgspec.json.encode(stats), indent=2) + b"\n"


def print_summary(stats: Stats) -> None:
    """A short table on stdout."""
    from rich.table import Table

    def share(part: int, whole: int) -> str:
        return f"{100 * part / whole:.1f} %" if whole else "-"

    microseconds = stats.cycles / stats.frequency_hz * 1e6
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    table.add_row("inference", f"{stats.cycles:,}", f"bus cycles ({microseconds:,.3f} us)")
    if len(stats.cycles_per_image) > 1:
        table.add_row("", f"{len(stats.cycles_per_image):,}", "images, one after another")
    table.add_row("setup", f"{stats.setup_cycles:,}", "bus cycles")
    table.add_row("cores", f"{stats.cores:,}", "")
    total = sum(msgspec.structs.astuple(stats.instructions))
    table.add_row("instructions", f"{total:,}", "executed")
    # Not cores * cycles: the layers of a network have different numbers of cores.
    whole = sum(msgspec.structs.astuple(stats.core_cycles))
    for name in ("mvm", "gpeu", "load", "store", "call", "wait", "idle"):
        part = getattr(stats.core_cycles, name)
        table.add_row(
            f"  in {name}" if name != "idle" else "  idle", share(part, whole), "of core time"
        )
    moved = stats.bytes.load + stats.bytes.store + stats.bytes.call
    table.add_row("bus traffic", f"{moved:,}", "bytes loaded, stored and called")
    table.add_row("  R busy", share(stats.bus.r_busy_cycles, stats.cycles), "of the inference")
    table.add_row(
        "  W busy", share(stats.bus.w_busy_cycles, stats.cycles), "of the inference, all sets"
    )
    table_console().print(table)
