"""What a network's run cost: the sum over its layers, each layer, and the host's nodes."""

from __future__ import annotations

from typing import Any

import msgspec

from cim.asm.network_file import HostNode
from cim.console import table_console
from cim.emulator.stats import Stats, print_summary


class NetworkStats(msgspec.Struct, frozen=True):
    """`total` sums the layers (they run one after another); `cores` is then the largest layer's."""

    total: Stats
    layers: dict[str, Stats]
    host: list[HostNode]


def total_of(layers: list[Stats]) -> Stats:
    """The sum of layers that run one after another on the same machine."""
    return Stats(**_summed([msgspec.structs.asdict(layer) for layer in layers]))


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


def encode_network_stats(stats: NetworkStats) -> bytes:
    """The `--stats` file: the keys of a single layer for the total, then `layers` and `host`."""
    content = msgspec.to_builtins(stats.total)
    content |= {
        "layers": msgspec.to_builtins(stats.layers),
        "host": msgspec.to_builtins(stats.host),
    }
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def print_network_summary(stats: NetworkStats) -> None:
    """Cycles per layer, then the total, on stdout."""
    from rich.table import Table

    images = len(stats.total.cycles_per_image)
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("layer", overflow="fold")
    for title in ("cores", "cycles an image", "share"):
        table.add_column(title, justify="right")
    for name, layer in stats.layers.items():
        share = layer.cycles / stats.total.cycles if stats.total.cycles else 0.0
        table.add_row(name, f"{layer.cores:,}", f"{layer.cycles / images:,.1f}", f"{share:.1%}")
    out = table_console()
    out.print(table)
    out.print()
    print_summary(stats.total)
    on_host = sum(node.share for node in stats.host)
    out.print(f"on the host: {len(stats.host)} nodes, {on_host:.1%} of the multiply-accumulates")
