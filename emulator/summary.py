"""The table of a run that `cim-emu` prints."""

from __future__ import annotations

import msgspec
from rich.table import Table

from cim.console import table_console
from cim.emulator.stats import Totals, synchronization


def print_summary(stats: Totals, least: int, binding: str = "") -> None:
    """A table on stdout. `least` is the lower bound in bus cycles, `binding` what it comes from."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    microseconds = stats.cycles / stats.frequency_hz * 1e6
    table.add_row("inference", f"{stats.cycles:,}", f"bus cycles ({microseconds:,.3f} us)")
    if len(stats.cycles_per_image) > 1:
        table.add_row("", f"{len(stats.cycles_per_image):,}", "images, one after another")
    because = f" ({BINDINGS[binding]})" if binding else ""
    table.add_row("  lower bound", f"{least:,}", f"bus cycles{because}")
    table.add_row("  reached", _share(least, stats.cycles), "of the lower bound")
    table.add_row("setup", f"{stats.setup_cycles:,}", "bus cycles")
    table.add_row("cores", f"{stats.cores:,}", "")
    total = sum(msgspec.structs.astuple(stats.instructions))
    table.add_row("instructions", f"{total:,}", "executed")
    # Not cores * cycles: the layers of a network have different numbers of cores.
    times = msgspec.structs.asdict(stats.core_cycles)
    for name in ("mvm", "gpeu", "load", "store", "call", "wait", "fetch", "idle"):
        if times[name] or name != "fetch":
            what = "idle" if name == "idle" else f"in {name}"
            table.add_row(f"  {what}", _share(times[name], sum(times.values())), "of core time")
    moved = stats.bytes
    table.add_row("bus traffic", f"{sum(msgspec.structs.astuple(moved)):,}", "bytes")
    for name, size in msgspec.structs.asdict(moved).items():
        if size or name != "fetch":
            table.add_row(f"  {name}", f"{size:,}", "bytes")
    overhead = synchronization(moved.call, moved.load + moved.store)
    table.add_row("  CALLs are", f"{overhead.of_data:.2%}", "of loads and stores")
    for name in ("ar", "r", "aw", "w", "b"):
        busy = getattr(stats.bus, f"{name}_busy_cycles")
        table.add_row(f"  {name.upper()} busy", _share(busy, stats.cycles), "of the inference")
    table_console().print(table)


BINDINGS = {
    "core": "the busiest core",
    "dependency": "the longest chain of instructions and CALLs",
    "ar": "read addresses on the bus",
    "r": "read data on the bus",
    "aw": "write addresses on the bus",
    "w": "write data on the bus",
    "b": "write responses on the bus",
}


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"
