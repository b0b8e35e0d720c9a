"""The figures of the paper, drawn from this toolchain's own points. Each is a matplotlib figure of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cim.emulator import layout
from cim.emulator.recording import Recording, releases
from cim.explore.claims import CALL_LIMITS, PAPER_CORES
from cim.explore.mappings import compare_mappings
from cim.explore.measure import Point, pick, side, speedups

mpl.rcParams.update({
    "font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.7,
    "legend.frameon": False, "svg.hashsalt": "cim", "pdf.fonttype": 42,
})  # fmt: skip

# Schemes differ in colour and in marker, so that they stay apart in black and white.
SCHEME_STYLE: dict[str, dict[str, Any]] = {
    "linear": {"color": "#1f5fa8", "marker": "o"},
    "cyclic": {"color": "#c0392b", "marker": "s"},
    "ring": {"color": "#3a8f4d", "marker": "^"},
}
WORK_COLOURS = {"mvm": "#c9d6e4", "access": "#5b7fa3", "wait": "#eab54a", "call": "#c0392b"}
WORK_NAMES = {
    "mvm": "MVM and GPEU (output vector)",
    "access": "LOAD, STORE",
    "wait": "WAIT",
    "call": "CALL",
}
LIMIT: dict[str, Any] = {"color": "#444444", "linestyle": "--", "linewidth": 0.8}


@dataclass(frozen=True)
class Timeline:
    """The recording of a scheme for Fig. 4, with the output vector of each instruction."""

    scheme: str
    recording: Recording
    outputs: dict[int, int]


def figure4(timelines: Sequence[Timeline]) -> Figure:
    """Conflicting cores and their output vectors over time, one panel a scheme."""
    figure = Figure(figsize=(7.2, 1.35 * len(timelines) + 0.6), layout="constrained")
    panels = figure.subplots(len(timelines), 1, sharex=True)
    for axes, timeline in zip(np.atleast_1d(panels), timelines, strict=True):
        _draw_timeline(axes, timeline)
    axes.set_xlabel("bus cycles")
    handles = [Patch(color=WORK_COLOURS[kind], label=WORK_NAMES[kind]) for kind in WORK_COLOURS]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_timeline(axes: Any, timeline: Timeline) -> None:
    recording = timeline.recording
    program = recording.prepared.program
    done = recording.records(layout.EXECUTED)
    kinds = {
        layout.WAIT: "wait",
        layout.CALL: "call",
        layout.LOAD: "access",
        layout.STORE: "access",
    }
    for kind, colour in WORK_COLOURS.items():
        for core in range(len(recording.prepared.configs)):
            mine = done[done["core"] == core]
            chosen = [kinds.get(int(op), "mvm") == kind for op in program["op"][mine["at"]]]
            spans = [(int(r["begin"]), int(r["end"] - r["begin"])) for r in mine[chosen]]
            axes.broken_barh(spans, (core - 0.4, 0.8), facecolors=colour, linewidth=0)
    for record in done[program["op"][done["at"]] == layout.MVM]:
        middle = (int(record["begin"]) + int(record["end"])) / 2
        number = timeline.outputs[int(record["at"])]
        axes.text(middle, int(record["core"]), str(number), ha="center", va="center", fontsize=6)
    for wait, call in releases(recording):
        axes.annotate(
            "", (int(wait["end"]), int(wait["core"])), (int(call["begin"]), int(call["core"])),
            arrowprops={"arrowstyle": "-|>", "color": WORK_COLOURS["call"], "linewidth": 0.5, "mutation_scale": 5},
        )  # fmt: skip
    cores = recording.prepared.configs
    axes.set_yticks(range(len(cores)), [f"$C_{{0,{core.vg}}}$" for core in cores])
    axes.invert_yaxis()
    axes.set_title(f"{timeline.scheme}: {int(done['end'].max()):,} cycles", loc="left", fontsize=8)


def figure5(points: Sequence[Point], labels: Sequence[str]) -> Figure:
    """Speedup against the limit P_V over the bus width, one panel a layer."""
    found = speedups(points)
    crossbars = sorted({p.crossbar for p in points}, key=side)
    columns = 4
    rows = -(-len(labels) // columns)
    figure = Figure(figsize=(7.2, 1.9 * rows + 0.4), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes, label in zip(panels.flat, labels, strict=False):
        cores = []
        for crossbar in crossbars:
            filled = crossbar == crossbars[0]
            mine = list(pick(points, label=label, crossbar=crossbar))
            cores.append(str(mine[0].cores))
            axes.axhline(mine[0].p_v, **LIMIT)
            # A little beside each other, since the schemes are nearly equal.
            for shift, (scheme, style) in zip((0.94, 1, 1.06), SCHEME_STYLE.items(), strict=True):
                line = sorted(pick(mine, scheme=scheme), key=lambda p: p.bus_bytes)
                axes.plot(
                    [shift * p.bus_bytes for p in line], [found[p] for p in line], linewidth=0.9, markersize=3,
                    markerfacecolor=style["color"] if filled else "white", **style,
                )  # fmt: skip
        widths = sorted({p.bus_bytes for p in pick(points, label=label)})
        axes.set_xscale("log", base=2)
        axes.set_xticks(widths, [str(width) for width in widths])
        axes.minorticks_off()
        axes.set_ylim(0)
        axes.set_title(f"layer {label}: {' / '.join(cores)} cores", fontsize=8)
    for axes in panels.flat[len(labels) :]:
        axes.set_axis_off()
    figure.supxlabel("bus width (bytes)")
    figure.supylabel("speedup over sequential")
    handles = [
        mpl.lines.Line2D([], [], label=scheme, markersize=4, **style)
        for scheme, style in SCHEME_STYLE.items()
    ]
    handles.append(mpl.lines.Line2D([], [], label="limit $P_V$", **LIMIT))
    for crossbar, face in zip(crossbars, ("black", "white"), strict=False):
        handles.append(
            mpl.lines.Line2D(
                [],
                [],
                marker="o",
                color="black",
                markerfacecolor=face,
                linestyle="",
                markersize=4,
                label=crossbar,
            )
        )
    panels.flat[len(labels)].legend(handles=handles, loc="center")
    return figure


def figure6(points: Sequence[Point], scheme: str = "cyclic") -> Figure:
    """Speedup by its limit over the number of cores; one panel a crossbar, one line a bus width."""
    found = speedups(points)
    crossbars = sorted({p.crossbar for p in points}, key=side)
    widths = sorted({p.bus_bytes for p in points})
    figure = Figure(figsize=(7.2, 2.6), layout="constrained")
    panels = figure.subplots(1, len(crossbars), sharex=True, sharey=True, squeeze=False)[0]
    colours = mpl.colormaps["viridis"](np.linspace(0.05, 0.9, len(widths)))
    markers = "osv^D"
    for axes, crossbar in zip(panels, crossbars, strict=True):
        for width, colour, marker in zip(widths, colours, markers, strict=False):
            # A chain of one core has nothing to synchronize.
            line = [
                p
                for p in pick(points, crossbar=crossbar, bus_bytes=width, scheme=scheme)
                if p.p_v > 1
            ]
            worst: dict[int, float] = {}
            for p in line:
                worst[p.cores] = min(worst.get(p.cores, np.inf), found[p] / p.p_v)
            cores = sorted(worst)
            axes.plot(
                cores, [worst[c] for c in cores], color=colour, marker=marker, markersize=3, linewidth=0.9,
                label=f"{width} bytes",
            )  # fmt: skip
        axes.axhline(0.9, **LIMIT)
        axes.axvline(PAPER_CORES, **LIMIT | {"linestyle": ":"})
        axes.set_xscale("log", base=2)
        ticks = [4**power for power in range(1, 6)]
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_title(crossbar, fontsize=8)
        axes.set_xlabel("cores")
    panels[0].set_ylabel("speedup / limit, worst layer")
    panels[0].set_ylim(0, 1.05)
    handles, names = panels[0].get_legend_handles_labels()
    figure.legend(handles, names, title="bus width", loc="outside lower center", ncols=len(names))
    return figure


def figure7(points: Sequence[Point], labels: Sequence[str]) -> Figure:
    """CALL bytes by bytes of data, per layer and crossbar; dashed what the paper claims for each crossbar."""
    crossbars = sorted({p.crossbar for p in points}, key=side)
    figure = Figure(figsize=(4.6, 2.5), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(crossbars)
    colours = ("#14324f", "#5b8db8", "#c9d6e4")
    for at, (crossbar, colour) in enumerate(zip(crossbars, colours, strict=False)):
        shares = []
        for label in labels:
            mine = next(pick(points, label=label, crossbar=crossbar, scheme="linear"))
            shares.append(100 * mine.call_bytes / mine.data_bytes)
        places = np.arange(len(labels)) + (at - (len(crossbars) - 1) / 2) * width
        axes.bar(
            places, shares, width, color=colour, edgecolor="black", linewidth=0.4, label=crossbar
        )
        axes.axhline(CALL_LIMITS[crossbar], zorder=0, **LIMIT)
    axes.set_xticks(range(len(labels)), [f"{label}" for label in labels])
    axes.set_xlabel("layer of Table I")
    axes.set_ylabel("CALL bytes / data bytes (%)")
    figure.legend(loc="outside upper center", ncols=len(crossbars))
    return figure


def sensitivity(
    points: Sequence[Point], labels: Sequence[str], groups: dict[str, list[tuple[str, ...]]]
) -> Figure:
    """Speedup by its limit of each scheme under other machine settings, one panel a kind of setting."""
    found = speedups(points)
    figure = Figure(figsize=(7.2, 2.1 * len(groups)), layout="constrained")
    panels = figure.subplots(len(groups), len(labels), sharey=True, squeeze=False)
    for number, (row, (title, runs)) in enumerate(zip(panels, groups.items(), strict=True)):
        for axes, label in zip(row, labels, strict=True):
            for scheme, style in SCHEME_STYLE.items():
                values = []
                for settings in runs:
                    mine = next(pick(points, label=label, scheme=scheme, settings=settings))
                    values.append(found[mine] / mine.p_v)
                axes.plot(range(len(runs)), values, linewidth=0.9, markersize=3, **style)
            names = [settings[-1].partition("=")[2] for settings in runs]
            axes.set_xticks(range(len(runs)), names, rotation=30, ha="right", fontsize=6)
            axes.set_ylim(0, 1.05)
            axes.axhline(1, **LIMIT)
            if number == 0:
                axes.set_title(f"layer {label}", fontsize=8)
        row[0].set_ylabel(f"{title}\nspeedup / limit", fontsize=7)
    handles = [
        mpl.lines.Line2D([], [], label=scheme, markersize=4, **style)
        for scheme, style in SCHEME_STYLE.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def mapping_figure(points: Sequence[Point], scheme: str = "ring") -> Figure:
    """Speedup over im2col, and IFM traffic by that of im2col; one column a crossbar, one group of bars a layer."""
    rows = compare_mappings(points)
    crossbars = list(dict.fromkeys(row.crossbar for row in rows))
    labels = list(dict.fromkeys(row.label for row in rows))
    figure = Figure(figsize=(7.2, 7.4), layout="constrained")
    panels = figure.subplots(2, len(crossbars), sharex="row", sharey=True, squeeze=False)
    for column, crossbar in enumerate(crossbars):
        mine = {row.label: row for row in rows if row.crossbar == crossbar}
        for at, (mapping, colour) in enumerate({"sdk": "#5b8db8", "vw-sdk": "#14324f"}.items()):
            places = np.arange(len(labels)) + (at - 0.5) * 0.38
            speedup = np.array([mine[label].speedup(mapping, scheme) for label in labels])
            traffic = [mine[label].traffic(mapping) for label in labels]
            above, below = panels[:, column]
            above.barh(places, speedup - 1, 0.38, left=1, color=colour, label=mapping)
            below.barh(places, traffic, 0.38, color=colour)
        for axes in panels[:, column]:
            axes.axvline(1, **LIMIT)
        above.set_title(crossbar, fontsize=8)
        above.set_xlabel("speedup over im2col")
        above.set_xscale("log", base=2)
        ticks = [2**power for power in range(-1, 5)]
        above.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        below.set_xlabel("IFM values / those of im2col")
    for axes in panels[:, 0]:
        axes.set_yticks(range(len(labels)), [_short(label) for label in labels], fontsize=6)
    panels[0, 0].invert_yaxis()  # shared by all
    handles, names = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return figure


def _short(label: str) -> str:
    """A label of a network's layer, short enough for an axis."""
    text = label.replace("mobilenet", "MobileNet").replace("resnet18", "ResNet-18")
    name, found, groups = text.partition(" in ")
    return f"{name} (depthwise)" if found and groups else name
