"""`--report`: one page that shows where the time of a run went. It needs no network and no script."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from cim import __version__
from cim.emulator import charts
from cim.emulator.channel_names import ROLES
from cim.emulator.explain import Sources
from cim.emulator.instruction_texts import InstructionTexts
from cim.emulator.report_data import CAUSES, ReportData
from cim.emulator.stats import Stats
from cim.emulator.summary import BINDINGS
from cim.isa.machine import Machine

NAMES = {
    "mvm": "MVM",
    "gpeu": "GPEU",
    "access": "loads, stores and calls, as they would be alone",
    "bus": "waiting for bus and memory",
    "seq_nr": "waiting for SEQ_NR",
    "fetch": "waiting for instructions",
    "rest": "issue, and idle after the end",
}
# From dark to light, so that they stay apart in black and white.
COLOURS = {
    "mvm": "#14324f", "gpeu": "#6b2f5b", "access": "#2a7a74", "bus": "#d9773a", "seq_nr": "#e0b04c",
    "fetch": "#c5d7ea", "rest": "#f4f4f2",
}  # fmt: skip
BAR = "#3f6f9c"
BINDING_BAR = "#14324f"
LINES_SHOWN = 20
CORE_FILE = re.compile(r"\.core[0-9]{5}\.s$")
NEAR_FULL = 0.9

STYLE = """
:root { color-scheme: light; }
body { margin: 0; background: #fff; color: #1c2733; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 1.5rem; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 36px 0 8px; }
p.verdict { font-size: 1.15rem; border-left: 6px solid #d9773a; padding: 6px 14px; margin: 18px 0; background: #fbf6f1; }
dl.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px; margin: 18px 0; }
dl.figures div { border: 1px solid #c9d1d9; border-radius: 6px; padding: 8px 12px; }
dl.figures dt { font-size: .8rem; } dl.figures dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: auto; font-family: system-ui, sans-serif; }
.wide { overflow-x: auto; } .wide svg { min-width: 620px; }
ul.legend { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 4px 18px; font-size: .88rem; margin: 6px 0; }
ul.legend i { display: inline-block; width: 14px; height: 14px; border: 1px solid #1c2733; margin-right: 6px; vertical-align: -2px; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { text-align: left; padding: 3px 10px 3px 0; border-bottom: 1px solid #e3e7eb; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wide table { min-width: 620px; } .wide td:first-child code { white-space: nowrap; }
code { font-family: ui-monospace, monospace; font-size: .92em; overflow-wrap: anywhere; }
p.note { font-size: .88rem; margin: 6px 0; }
@media print { main { max-width: none; padding: 0; } h2 { break-after: avoid; } svg, table { break-inside: avoid; } }
"""


def html_report(
    data: ReportData, machine: Machine, stats: Stats | None = None, failure: str = ""
) -> bytes:
    """The page. A run that failed has no statistics, but a `failure`: the text of its error."""
    name = data.prepared.image.path.name
    parts = [
        f"<h1>{escape(name)}</h1>",
        (
            f"<p>A run on the machine <b>{escape(machine.name)}</b>, by cim-emu {escape(__version__)}. "
            "All times are cycles of the bus clock.</p>"
        ),
        f'<p class="verdict">{verdict(data, stats) if stats else _first_line(failure)}</p>',
        *([_figures(stats)] if stats else []),
        *_timeline(data),
        *_breakdown(data),
        *_channels(data),
        *(_bounds(stats) if stats else []),
        *_hot_lines(data),
        *_identity(data, machine),
    ]
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(name)}: where the time '
        'went</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
    )
    return page.encode()


def _first_line(failure: str) -> str:
    return f"<b>The run failed.</b> {escape(failure.splitlines()[0])}"


def verdict(data: ReportData, stats: Stats) -> str:
    """What limits the run, in one sentence, from its figures."""
    shares = data.busy.sum(axis=1) / max(data.cycles, 1)
    full = [
        name
        for name in ("AR", "R", "AW", "W", "B")
        if shares[ROLES.index(name)] > shares.max() - 0.001
    ]
    reached = f"The run reaches {stats.lower_bound.efficiency:.1%} of its lower bound, which is "
    reached += f"{BINDINGS[stats.lower_bound.binding]}."
    if shares.max() >= NEAR_FULL:
        those = f"channel {full[0]} is" if len(full) == 1 else f"channels {', '.join(full)} are"
        channel = f"{those} occupied {shares.max():.1%} of the time"
        return f"<b>The bus is the limit:</b> {channel}. {reached}"
    time = data.time.sum(axis=(1, 2))
    whole = data.available.sum()
    cause = CAUSES[int(np.argmax(time))]
    if cause == "mvm":
        return f"<b>The crossbars are the limit:</b> the cores spend {time[0] / whole:.1%} of their time in MVMs. {reached}"
    share = time[CAUSES.index(cause)] / whole
    return f"<b>The largest part</b> of the cores' time, {share:.1%}, is {NAMES[cause]}. {reached}"


def _figures(stats: Stats) -> str:
    microseconds = stats.cycles / stats.frequency_hz * 1e6
    total = sum(msgspec.structs.astuple(stats.instructions))
    figures = {
        "inference": f"{stats.cycles:,} cycles",
        f"at {stats.frequency_hz / 1e6:,g} MHz": f"{microseconds:,.1f} µs",
        "lower bound": f"{stats.lower_bound.cycles:,} cycles",
        "setup": f"{stats.setup_cycles:,} cycles",
        "cores": f"{stats.cores:,}",
        "instructions": f"{total:,}",
        "data over the bus": f"{stats.synchronization.data_bytes:,} bytes",
        "CALLs, of the data": f"{stats.synchronization.of_data:.2%}",
    }
    cells = "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in figures.items()
    )
    return f'<dl class="figures">{cells}</dl>'


def _legend(names: list[str]) -> str:
    items = "".join(
        f'<li><i style="background:{COLOURS[n]}"></i>{escape(NAMES[n])}</li>' for n in names
    )
    return f'<ul class="legend">{items}</ul>'


def _with_rest(data: ReportData) -> NDArray[np.float64]:
    """[cause and rest][group][part] cycles."""
    time = data.time
    rest = np.maximum(data.available - time.sum(axis=0), 0)
    return np.concatenate([time, rest[None]])


def _shown(time: NDArray[np.float64]) -> list[str]:
    """The causes that have any time."""
    names = [*CAUSES, "rest"]
    return [name for name, cycles in zip(names, time.sum(axis=(1, 2)), strict=True) if cycles > 0]


def _timeline(data: ReportData) -> list[str]:
    time = _with_rest(data)
    codes = time.argmax(axis=0)
    colours = [COLOURS[name] for name in (*CAUSES, "rest")]
    numbers = data.prepared.names
    step = max(1, -(-data.groups // 8))
    firsts = np.searchsorted(data.group_of, np.arange(data.groups))
    labels = [(row, f"core {numbers[firsts[row]]}") for row in range(0, data.groups, step)]
    count = len(numbers)
    note = (
        "Each row is a core"
        if data.groups == count
        else f"Each row is {count / data.groups:.3g} cores"
    )
    shares = time.sum(axis=1) / data.available.sum(axis=0)
    names = [*CAUSES, "rest"]
    return [
        "<h2>What the cores do, over time</h2>",
        _legend(_shown(time)),
        '<div class="wide">',
        charts.heat_map(codes, colours, labels, data.cycles, data.edges, "Cores over time, by what they mostly do"),
        "</div>",
        (f'<p class="note">{note}, each cell the cause that took most of its {_part_text(data)}. Of an access, the '
        "time that it takes more than alone on the bus counts as waiting, and is drawn first. Below, the shares of "
        "all cores together.</p>"),
        '<div class="wide">',
        charts.areas(
            shares, colours, [NAMES[name] for name in names], data.cycles, data.edges,
            "Shares of the cores' time, over time",
        ),
        "</div>",
    ]  # fmt: skip


def _part_text(data: ReportData) -> str:
    widths = np.diff(data.edges)
    if widths.min() == widths.max():
        return f"{widths[0]:,} cycles" if widths[0] > 1 else "cycle"
    return f"{widths.min():,} to {widths.max():,} cycles"


def _breakdown(data: ReportData) -> list[str]:
    time = _with_rest(data).sum(axis=(1, 2))
    whole = time.sum() or 1.0
    rows = [
        (NAMES[name], float(cycles), f"{cycles / whole:.1%}", COLOURS[name])
        for name, cycles in zip((*CAUSES, "rest"), time, strict=True)
        if cycles > 0
    ]
    return [
        "<h2>Where the cores' time went</h2>",
        '<div class="wide">',
        charts.bars(rows, "Time of all cores by cause", 350),
        "</div>",
    ]


def _channels(data: ReportData) -> list[str]:
    shares = data.busy / np.diff(data.edges)
    names = ["AR", "R", "AW", "B", "W"]
    order = [names.index(name) for name in ("AR", "R", "AW", "W", "B")]
    titles = {
        "AR": "AR address",
        "R": "R data",
        "AW": "AW address",
        "W": "W data",
        "B": "B response",
    }
    return [
        "<h2>How busy the bus is</h2>",
        '<div class="wide">',
        charts.small_multiples(
            shares[order], [titles[names[at]] for at in order], data.edges, BAR,
            "Share of cycles in which each channel is occupied",
        ),
        "</div>",
        ('<p class="note">Share of cycles in which a channel is occupied, over the same time as above; the mean stands '
        "at the right. With channels for each target they are added up.</p>"),
    ]  # fmt: skip


def _bounds(stats: Stats) -> list[str]:
    bound = stats.lower_bound
    figures = {name: getattr(bound, f"{name}_cycles") for name in BINDINGS}
    images = len(stats.cycles_per_image)
    rows = [("this run", stats.cycles / images, f"{stats.cycles / images:,.0f}", "#d9773a")]
    ordered = sorted(figures, key=lambda name: -figures[name])
    rows += [
        (
            BINDINGS[name],
            figures[name],
            f"{figures[name]:,}",
            BINDING_BAR if name == bound.binding else BAR,
        )
        for name in ordered
    ]
    return [
        "<h2>How near it comes to what is possible</h2>",
        '<div class="wide">',
        charts.bars(rows, "Cycles of the run and its lower bounds", 330),
        "</div>",
        (
            '<p class="note">No run of this program on this machine takes fewer cycles than any of the lower bars; the '
            f"largest, {escape(BINDINGS[bound.binding])}, decides.</p>"
        ),
    ]


def _hot_lines(data: ReportData) -> list[str]:
    """The lines of all cores' files of a compiled program count as one: `NAME.core*.s`."""
    locations = data.prepared.config.locations
    alike: dict[tuple[str, int], list[int]] = {}
    for index, place in enumerate(locations):
        alike.setdefault((CORE_FILE.sub(".core*.s", place.file), place.line), []).append(index)
    sums = {key: data.lines[indices].sum(axis=0).tolist() for key, indices in alike.items()}
    whole = sum(cycles for _, cycles, _ in sums.values()) or 1
    rows = []
    for key in sorted(sums, key=lambda key: -sums[key][1])[:LINES_SHOWN]:
        executions, cycles, waits = sums[key]
        if cycles:
            rows.append(
                f"<tr><td><code>{escape(key[0])}:{key[1]}</code></td>"
                f"<td><code>{escape(_source_text(data, alike[key]))}</code></td>"
                f'<td class="n">{executions:,}</td><td class="n">{cycles:,}</td>'
                f'<td class="n">{cycles / whole:.1%}</td><td class="n">{waits / cycles:.1%}</td></tr>'
            )
    head = (
        '<div class="wide"><table><thead><tr><th>line</th><th>source</th><th class="n">executed</th>'
        '<th class="n">core cycles</th><th class="n">share</th><th class="n">of it waiting</th></tr></thead><tbody>'
    )
    return ["<h2>The source lines that take longest</h2>", head, *rows, "</tbody></table></div>"]


def _source_text(data: ReportData, indices: list[int]) -> str:
    """A source line, or where the file is not there the first instruction that was made from it."""
    place = data.prepared.config.locations[indices[0]]
    source = Sources(data.prepared.image).source(place.file)
    if source is not None:
        return source.line(place.line).strip()
    at = np.flatnonzero(data.line_of == indices[0])
    return InstructionTexts(data.prepared).text(int(at[0])) if at.size else ""


def _identity(data: ReportData, machine: Machine) -> list[str]:
    config = data.prepared.config
    facts: dict[str, Any] = {
        "image": data.prepared.image.path,
        "SHA-256 of the bin": config.bin_sha256,
        "ISA": f"{config.isa} {config.isa_version}",
        "extensions": ", ".join(config.extensions) or "none",
        "numeric mode": config.mode,
        "layer": config.layer.name if config.layer else "none described",
        "scheme": config.layer.scheme if config.layer else "",
        **machine.settings(),
    }
    rows = "".join(
        f"<tr><td>{escape(key)}</td><td><code>{escape(str(value))}</code></td></tr>"
        for key, value in facts.items()
        if value != ""
    )
    return ["<h2>The program and the machine</h2>", f"<table><tbody>{rows}</tbody></table>"]
