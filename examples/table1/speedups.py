"""Counters and speedups of a layer of Table I, by the command-line tools.

    python examples/table1/speedups.py --layer 5 --crossbar 32x32 --bus 32

Makes the layer as a quantized ONNX model, compiles it for `pelke23` with each scheme, runs it, and prints the
counters beside Table II and the speedups as fractions of their limit P_V. Files stay in out/table1/.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

import numpy as np
from make_layer import make_layer, read_table
from rich.console import Console
from rich.table import Table

from cim.codegen import cli as cli_cc
from cim.emulator import cli as cli_emu

SCHEMES = ("sequential", "linear", "cyclic", "ring")
COUNTS = Path(__file__).with_name("table2_counts.csv")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--layer", type=int, default=5, choices=range(1, 8))
    parser.add_argument(
        "--crossbar", default="32x32", help="outputs x inputs (default: %(default)s)"
    )
    parser.add_argument("--bus", type=int, default=32, help="width in bytes (default: %(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    return parser.parse_args()


def run(tool, words: list[str]) -> None:
    if status := tool(words):
        sys.exit(status)


def main() -> None:
    args = arguments()
    row = next(row for row in read_table() if row.layer == args.layer)
    folder = Path("out/table1")
    folder.mkdir(parents=True, exist_ok=True)
    model, x = folder / f"layer{args.layer}.onnx", folder / f"layer{args.layer}.npy"
    model.write_bytes(make_layer(row).SerializeToString(deterministic=True))
    shape = (1, row.in_channels, row.input_h, row.input_w)
    np.save(x, np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8))
    settings = [f"core.crossbar={args.crossbar}", f"bus.width_bytes={args.bus}", *args.settings]
    flags = [word for setting in settings for word in ("--set", setting)]
    stats = {}
    for scheme in SCHEMES:
        target = folder / f"layer{args.layer}-{scheme}"
        run(
            cli_cc.main,
            [str(model), "--arch", "pelke23", "--sync", scheme, "-o", str(target), "-q", *flags],
        )
        figures = target / "stats.json"
        cfg = str(target / f"table1_layer{args.layer}.cfg")
        run(cli_emu.main, [cfg, "--input", str(x), "--stats", str(figures), "--check", "--quiet"])
        stats[scheme] = json.loads(figures.read_text())
    out = Console(highlight=False)
    show_counts(out, args, stats["linear"])
    show_speedups(out, args, stats, row.matrix_cols)


def show_counts(out: Console, args: argparse.Namespace, linear: dict) -> None:
    """The counters of a run beside Table II, where the paper has this crossbar."""
    ours = {
        "cores": linear["cores"],
        "load_values": linear["values"]["load"],
        "store_values": linear["values"]["store"],
        "calls": linear["instructions"]["call"],
    }
    with COUNTS.open(encoding="utf-8", newline="") as lines:
        rows = {(r["layer"], f"{r['crossbar']}x{r['crossbar']}"): r for r in csv.DictReader(lines)}
    paper = rows.get((str(args.layer), args.crossbar), {})
    table = Table(box=None, header_style="bold", pad_edge=False, title_justify="left",
                  title=f"layer {args.layer}, {args.crossbar} crossbars, {args.bus}-byte bus")  # fmt: skip
    for name in ("counter", "here", "paper", "difference"):
        table.add_column(name, justify="left" if name == "counter" else "right")
    for name, value in ours.items():
        known = int(paper[name]) if paper else None
        table.add_row(
            name, f"{value:,}", f"{known:,}" if known is not None else "",
            f"{value - known:,}" if known is not None else "",
        )  # fmt: skip
    out.print(table)


def show_speedups(
    out: Console, args: argparse.Namespace, stats: dict[str, dict], rows: int
) -> None:
    p_v = -(-rows // int(args.crossbar.split("x")[1]))
    base = stats["sequential"]["cycles"]
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("scheme", "cycles", "speedup", f"of the limit P_V = {p_v}"):
        table.add_column(name, justify="left" if name == "scheme" else "right")
    for scheme in SCHEMES:
        cycles = stats[scheme]["cycles"]
        table.add_row(scheme, f"{cycles:,}", f"{base / cycles:.2f}", f"{base / cycles / p_v:.3f}")
    out.print()
    out.print(table)


if __name__ == "__main__":
    main()
