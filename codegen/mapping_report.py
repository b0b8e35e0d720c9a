"""The page of `cim-cc --report`: what each layer became, where it lies on the cores, and what the host does."""

from __future__ import annotations

import colorsys
from collections.abc import Iterable
from html import escape
from itertools import groupby

from cim.codegen.compile_layer import CompiledLayer
from cim.codegen.driver import CompiledModel
from cim.codegen.estimate import estimate
from cim.codegen.mapping import Tile
from cim.codegen.turns import Turn

STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #1c2733; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1400px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 1.5rem; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 36px 0 8px; } h3 { font-size: 1rem; margin: 22px 0 4px; overflow-wrap: anywhere; }
.wide { overflow-x: auto; } td:first-child { overflow-wrap: anywhere; min-width: 11em; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; }
th, td { text-align: left; padding: 3px 10px 3px 0; border-bottom: 1px solid #e3e7eb; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
p.note { font-size: .88rem; margin: 4px 0; }
svg { display: block; max-width: 100%; height: auto; font-family: system-ui, sans-serif; }
"""
SIDE = 18  # of a core's square, in pixels, where there is room
WIDEST = 1100
GOLDEN = 0.618034  # neighbours in number are far apart in hue


def report(model: CompiledModel) -> str:
    """The whole page; it needs no other file and no script."""
    machine = model.machine
    parts = [
        f"<h1>{escape(model.name)} on {escape(machine.name)}</h1>",
        (
            f'<p class="note">Crossbars {machine.core.outputs}x{machine.core.inputs}, a bus of {machine.bus.width_bytes} bytes, MVMs of '
            f"{machine.mvm_cycles} cycles.</p>"
        ),
        "<h2>Layers</h2>",
        *_layers(model),
        "<h2>Mapping</h2>",
        (
            '<p class="note">A square is a core: a row for each horizontal group (output channels), a column for each vertical group (kernel '
            "rows). Filled is the share of its cells that hold a part of the matrix; the tip has the numbers.</p>"
        ),
    ]
    for _, group in groupby(model.layers, key=lambda one: one.layer.name):
        turns = list(group)
        parts.append(f"<h3>{escape(turns[0].layer.name)}</h3>")
        parts.append(_grid(turns, machine.core.inputs * machine.core.outputs))
        if len(turns) > 1:
            parts.append(
                f'<p class="note">{len(turns)} turns; squares of one colour are the same core.</p>'
            )
        if turns[0].mapping.reason:
            parts.append(f'<p class="note">im2col, since {escape(turns[0].mapping.reason)}</p>')
    body = "\n".join([*parts, *_host(model)])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(model.name)}</title>'
        f"<style>{STYLE}</style></head><body><main>\n{body}\n</main></body></html>\n"
    )


def _table(head: Iterable[str], rows: Iterable[Iterable[str]], texts: int) -> list[str]:
    """A table; the first `texts` columns are words, the others numbers."""

    def line(cells: Iterable[str], tag: str) -> str:
        return "".join(
            f"<{tag}{'' if i < texts else ' class=n'}>{escape(cell)}</{tag}>" for i, cell in enumerate(cells)
        )  # fmt: skip

    made = [f"<tr>{line(row, 'td')}</tr>" for row in rows]
    return ['<div class="wide"><table>', f"<tr>{line(head, 'th')}</tr>", *made, "</table></div>"]


def _layers(model: CompiledModel) -> list[str]:
    head = (
        "layer", "operator", "mapping", "scheme", "mode", "input", "output", "matrix", "P_V", "P_H", "cores", "cells used", "MACs",
        "cycles predicted", "at least", "limit",
    )  # fmt: skip
    rows = []
    predicted = total = 0
    for one in model.layers:
        layer, mapping, least = one.layer, one.mapping, estimate(one, model.machine)
        predicted += least.predicted
        total += least.cycles
        rows.append((
            one.title, layer.operator, mapping.title, one.schedule.scheme, one.mode.mode, _shape(layer.input_shape),
            _shape(layer.output_shape), _shape(layer.matrix_shape), str(mapping.p_v), str(mapping.p_h), str(one.turn.cores),
            f"{one.used(model.machine):.1%}", f"{one.macs:,}", f"{least.predicted:,}",
            f"{least.cycles:,}",
            "core" if least.core >= least.bus else "bus",
        ))  # fmt: skip
    if not rows:
        return ["<p>No layer runs on the cores.</p>"]
    used = sum(one.used(model.machine) * one.turn.cores for one in model.layers)
    used /= sum(one.turn.cores for one in model.layers)
    return [
        *_table(head, rows, 5),
        (
            '<p class="note">Layers, and the turns of a layer that has more cores than the machine, run one after another: '
            f"{predicted:,} cycles of the bus an image as predicted, {total:,} at least (the busiest core alone or the beats on the bus). "
            f"{used:.1%} of the cells of all "
            "layers' cores are used.</p>"
        ),
    ]


def _host(model: CompiledModel) -> list[str]:
    if model.partition is None or not model.partition.report:
        return []
    rows = [
        (
            entry.name,
            entry.operator,
            entry.reason.removeprefix(f"{entry.operator} '{entry.name}': "),
            f"{entry.share:.2%}",
        )
        for entry in sorted(model.partition.report, key=lambda entry: -entry.share)
    ]
    share = sum(entry.share for entry in model.partition.report)
    head = ("node", "operator", "why", "of the multiply-accumulates")
    return [
        "<h2>On the host</h2>",
        f'<p class="note">{len(rows)} nodes with {share:.1%} of the multiply-accumulates.</p>',
        *_table(head, rows, 3),
    ]


def _grid(turns: list[CompiledLayer], cells: int) -> str:
    """Cores as squares, P_H down and P_V across, each in a colour of its own."""
    mapping = turns[0].mapping
    side = max(2.0, min(float(SIDE), WIDEST / mapping.p_v))
    width, height = mapping.p_v * side, mapping.p_h * side
    squares = "".join(
        _square(tile, one.turn, side, tile.rows * tile.columns / cells)
        for one in turns
        for tile in one.turn.tiles
    )
    groups = f"{mapping.p_h} horizontal by {mapping.p_v} vertical groups"
    most = max(one.turn.cores for one in turns)
    title = f"{most} cores" + (f" in {len(turns)} turns" if len(turns) > 1 else "") + f", {groups}"
    return (
        f'<svg width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{title}">'
        f"<title>{title}</title>{squares}</svg>"
    )


def _square(tile: Tile, turn: Turn, side: float, used: float) -> str:
    colour = "#" + "".join(
        f"{round(255 * part):02x}"
        for part in colorsys.hls_to_rgb(tile.number * GOLDEN % 1, 0.45, 0.55)
    )
    x, y = tile.vg * side, tile.hg * side
    tip = (
        f"core {tile.number} = {tile.name}{turn.title}: channels {tile.channel} to {tile.channel_end - 1}, "
        f"{tile.rows} rows from {tile.row_ids[0]} to {tile.row_ids[-1]}, {used:.0%} of the cells"
    )
    filled = side * max(used, 0.04)
    return (
        f'<g><title>{tip}</title><rect x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" fill="#eef1f4" stroke="#fff" '
        f'stroke-width="{side / 12:g}"/><rect x="{x + side / 24:g}" y="{y + side - filled:g}" width="{side * 11 / 12:g}" height="{filled:g}" '
        f'fill="{colour}"/></g>'
    )


def _shape(sizes: Iterable[int]) -> str:
    return "x".join(map(str, sizes))
