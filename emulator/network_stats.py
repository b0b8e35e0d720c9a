"""What a network's run cost: the sum over its layers, each layer, and the host's nodes."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from cim.asm.network_file import HostNode
from cim.console import table_console
from cim.emulator.stats import Stats, Synchronization, Totals, synchronization
from cim.emulator.summary import print_summary


class NetworkStats(Totals, frozen=True):
    """A layer's figures summed over the layers, which run one after another; `cores` is the largest's.

    A folded layer is there turn by turn, as "NAME (turn 1 of 3)"; where another layer has that name, one gets an apostrophe.
    """

    synchronization: Synchronization
    lower_bound_cycles: Annotated[
        int, msgspec.Meta(description="sum over the layers: bus clock cycles")
    ]
    efficiency: Annotated[float, msgspec.Meta(description="lower_bound_cycles / cycles")]
    layers: dict[str, Stats]
    host: list[HostNode]


def network_stats(layers: dict[str, Stats], host: list[HostNode], runs: int) -> NetworkStats:
    """The figures of a network that has run so many times; all zero where nothing runs on the cores.

    A convolution of a model with a batch of its own takes that image by image, a product all rows at once; so an entry of
    `cycles_per_image` is a run of the network, with its whole batch.
    """
    names = [field.name for field in msgspec.structs.fields(Totals)]
    parts = [{name: getattr(layer, name) for name in names} for layer in layers.values()]
    for part in parts:
        images = part["cycles_per_image"]
        each = len(images) // runs
        part["cycles_per_image"] = [sum(images[i * each : (i + 1) * each]) for i in range(runs)]
    total = _summed(parts or [_zeros(Totals)])
    least = sum(layer.lower_bound.cycles for layer in layers.values())
    moved = total["bytes"]
    return NetworkStats(
        **total,
        synchronization=synchronization(moved.call, moved.load + moved.store),
        lower_bound_cycles=least,
        efficiency=least / total["cycles"] if total["cycles"] else 1.0,
        layers=layers,
        host=host,
    )


def _zeros(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Every figure of a struct of figures, zero or empty."""
    made: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        inner = getattr(field.type, "__origin__", field.type)
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            made[field.name] = inner(**_zeros(inner))
        else:
            made[field.name] = [] if "list" in str(field.type) else 0
    return made


def _summed(parts: list[dict[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in parts[0]:
        values = [part[name] for part in parts]
        if name in ("cores", "frequency_hz"):
            made[name] = max(values)
        elif isinstance(values[0], list):
            made[name] = [sum(column) for column in zip(*values, strict=True)]
        elif isinstance(values[0], msgspec.Struct):
            inner = _summed([msgspec.structs.asdict(value) for value in values])
            made[name] = type(values[0])(**inner)
        else:
            made[name] = sum(values)
    return made


def print_network_summary(stats: NetworkStats) -> None:
    """Cycles per layer, then the total, on stdout."""
    from rich.table import Table

    if not stats.layers:
        print("no layer runs on the cores: everything was computed on the host")
        return
    images = len(stats.cycles_per_image)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("layer", overflow="fold")
    for title in ("cores", "cycles an image", "share", "of the lower bound"):
        table.add_column(title, justify="right")
    for name, layer in stats.layers.items():
        share = layer.cycles / stats.cycles if stats.cycles else 0.0
        table.add_row(name, f"{layer.cores:,}", f"{layer.cycles / images:,.1f}", f"{share:.1%}",
                      f"{layer.lower_bound.efficiency:.1%}")  # fmt: skip
    out = table_console()
    out.print(table)
    out.print()
    print_summary(stats, stats.lower_bound_cycles)
    on_host = sum(node.share for node in stats.host)
    nodes = f"{len(stats.host)} node{'s' if len(stats.host) != 1 else ''}"
    out.print(f"on the host: {nodes}, {on_host:.1%} of the multiply-accumulates")
