"""`paper.html`: the claims of the paper beside the measurements, with the figures, on one page."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from cim.codegen.schedule import SCHEMES
from cim.codegen.window import MAPPINGS
from cim.explore.central import BESIDE, Central, compare_central
from cim.explore.claims import PAPER_CORES, memory_saved
from cim.explore.mappings import SCHEMES as MAPPING_SCHEMES
from cim.explore.mappings import compare_mappings
from cim.explore.measure import Point, side
from cim.explore.past import PARALLEL, STATEMENTS, HeldBack, held_back, summary

if TYPE_CHECKING:
    from cim.explore.paper import Results

STYLE = """
body { margin: 0; color: #1c2733; background: #fff; font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 24px 20px 60px; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 40px; } h3 { font-size: 1rem; }
summary { cursor: pointer; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; }
th, td { text-align: left; padding: 4px 12px 4px 0; border-bottom: 1px solid #e3e7eb; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.yes { font-weight: 600; color: #20603d; } .no { font-weight: 600; color: #a3271c; }
figure { margin: 18px 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
figcaption { font-size: .9rem; }
.wide { overflow-x: auto; }
"""
CAPTIONS = {
    "fig4": "Fig. 4. Three conflicting cores and twelve output vectors (numbers), drawn from the emulator's trace. The MVM "
    "takes 100 cycles here and the bus has 4 bytes, so that accesses can be seen. Arrows lead from a CALL to the WAIT that "
    "it releases.",
    "fig5": "Fig. 5. Speedup over the sequential scheme against the limit P_V, the layers of Table I.",
    "fig6": "Fig. 6. Speedup of the cyclic scheme by its limit over the number of cores: every convolution of MobileNet and "
    "ResNet-18 with more than one output vector and more than one core in a chain; the worst layer for each number of "
    "cores. The dashed line is 90 %, the dotted one the paper's maximum of 1,024 cores.",
    "fig6_ring": "The same for the ring scheme, which is not the paper's.",
    "fig7": "Fig. 7. Bytes of CALLs by bytes of data.",
    "mappings": "Windows of several outputs against im2col, ring scheme, bus of 32 bytes: cycles, and values of the IFM that are "
    "loaded. The dashed line is im2col.",
    "sensitivity": "What the paper does not state: speedup by its limit at 32x32 and 32 bytes when one setting changes. "
    "Compiled once, run with each setting.",
}


def paper_page(results: Results, figures: dict[str, str]) -> bytes:
    """The page; `figures` are SVG texts by name."""
    parts = [
        "<h1>Mapping of CNNs on multi-core RRAM-based CIM architectures: the paper's results, measured again</h1>",
        (
            "<p>Every number here comes from compiling the layers and running them on the emulator, with the machine "
            "<code>pelke23</code>: int8 with narrow partial sums, MVM 1,000 cycles. The paper states no latency of MVM, memory or "
            "GPEU and no clock. All times are cycles of the bus clock.</p>"
        ),
        *_claims(results),
        *_table2(results),
        *(_figure(n, figures[n]) for n in CAPTIONS if n in figures and n != "mappings"),
        *_fits(results),
        *_area(),
        *_cycles(results),
        *_past(results),
        *_mappings(results, figures),
        *_central(results),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>The paper, measured again</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
    ).encode()


def _claims(results: Results) -> list[str]:
    rows = []
    for claim in results.claims:
        word = (
            '<span class="yes">holds</span>'
            if claim.holds
            else '<span class="no">does not hold</span>'
        )
        why = f"<br>{escape(claim.why)}" if claim.why else ""
        rows.append(
            f"<tr><td>{escape(claim.claim)}</td><td>{escape(claim.section)}</td>"
            f"<td>{escape(claim.measured)}{why}</td><td>{word}</td></tr>"
        )
    head = "<tr><th>the paper says</th><th>section</th><th>measured here</th><th></th></tr>"
    return ["<h2>Claims</h2>", '<div class="wide"><table>', head, *rows, "</table></div>"]


def _table2(results: Results) -> list[str]:
    names = ("cores", "load_values", "store_values", "calls")
    head = "".join(
        f'<th class="n">{name.replace("_", " ")}</th><th class="n">paper</th>' for name in names
    )
    rows = []
    for row in results.table2:
        cells = "".join(
            f'<td class="n">{getattr(row, name):,}</td><td class="n">{getattr(row, f"{name}_paper"):,}</td>'
            for name in names
        )
        rows.append(
            f'<tr><td class="n">{row.layer}</td><td>{row.crossbar}x{row.crossbar}</td>{cells}</tr>'
        )
    return [
        "<h2>Table II: our counters beside the paper's</h2>",
        f'<div class="wide"><table><tr><th class="n">layer</th><th>crossbar</th>{head}</tr>',
        *rows,
        "</table></div>",
    ]


def _figure(name: str, svg: str) -> str:
    drawing = re.sub("<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    return f"<figure>{drawing}<figcaption>{escape(CAPTIONS[name])}</figcaption></figure>"


def _area() -> list[str]:
    rows = []
    for cores in (16, 64, 256, PAPER_CORES, 4096):
        registers, attributes, saved = memory_saved(cores)
        rows.append(
            f'<tr><td class="n">{cores:,}</td><td class="n">{registers:,}</td><td class="n">{attributes:,}</td>'
            f'<td class="n">{saved:.1%}</td></tr>'
        )
    head = (
        '<table><tr><th class="n">cores</th><th class="n">bytes of registers</th>'
        '<th class="n">bytes of attributes</th><th class="n">saved</th></tr>'
    )
    return ["<h2>Area</h2>", head, *rows, "</table>"]


def _cycles(results: Results) -> list[str]:
    """Every cycle count of Table I beside its lower bound."""
    runs: dict[tuple[str, str, int], dict[str, Point]] = {}
    for p in results.table1:
        runs.setdefault((p.label, p.crossbar, p.bus_bytes), {})[p.scheme] = p
    shown = {key: mine for key, mine in runs.items() if set(SCHEMES) <= set(mine)}
    rows = []
    for (label, crossbar, width), mine in sorted(
        shown.items(), key=lambda item: (int(item[0][0]), side(item[0][1]), item[0][2])
    ):
        cells = "".join(
            f'<td class="n">{mine[s].cycles:,}</td><td class="n">{mine[s].lower_bound:,}</td>'
            for s in SCHEMES
        )
        rows.append(
            f'<tr><td class="n">{label}</td><td>{crossbar}</td><td class="n">{width}</td>{cells}</tr>'
        )
    head = "".join(f'<th class="n">{s}</th><th class="n">bound</th>' for s in SCHEMES)
    return [
        "<h2>Cycles and lower bounds</h2>",
        (
            "<p>The layers of Table I. The bound is computed from the program and the machine alone: the busiest core, the "
            "longest chain of instructions and CALLs, or what one channel of the bus must carry. No run takes fewer cycles.</p>"
        ),
        "<details><summary>All runs</summary>",
        '<div class="wide"><table><tr><th class="n">layer</th><th>crossbar</th><th class="n">bus bytes</th>',
        f"{head}</tr>",
        *rows,
        "</table></div></details>",
    ]


def _fits(results: Results) -> list[str]:
    """Which settings reproduce the paper best."""
    if not results.fits:
        return []
    most = max(sum(fit.holds) for fit in results.fits)
    best = [fit for fit in results.fits if sum(fit.holds) == most]
    rows = []
    for fit in results.fits:
        cells = "".join(
            f'<td class="{"yes" if held else "no"}">{"yes" if held else "no"}</td>'
            for held in fit.holds
        )
        rows.append(
            f"<tr><td>{escape(', '.join(fit.settings))}</td>{cells}<td class='n'>{sum(fit.holds)}</td></tr>"
        )
    head = "".join(f"<th>{escape(statement)}</th>" for statement in STATEMENTS)
    return [
        "<h3>Which settings reproduce the paper best</h3>",
        (
            f"<p>What section V-B says of 32x32 crossbars and a bus of 32 bytes, under each setting. Most, {most} of "
            f"{len(STATEMENTS)}, hold with {escape('; '.join(', '.join(fit.settings) for fit in best))}.</p>"
        ),
        f'<div class="wide"><table><tr><th>setting</th>{head}<th class="n">hold</th></tr>',
        *rows,
        "</table></div>",
    ]


def _past(results: Results) -> list[str]:
    """What binds where no scheme comes near the limit."""
    parts = [
        "<h2>Past the paper: what binds below 95 % of the limit</h2>",
        (
            "<p>Layers, crossbars and buses where every scheme stays below 95 % of the limit P_V. Where the fastest run is "
            "close to its lower bound, no schedule of the same program can be faster: the resource named must become "
            "wider, or the program must move less.</p>"
        ),
    ]
    for title, points in (
        ("Table I", results.table1),
        ("MobileNet and ResNet-18", results.networks),
    ):
        rows = held_back(points)
        if not rows:
            continue
        sentences = "".join(f"<li>{escape(sentence)}</li>" for sentence in summary(rows))
        shares = "".join(f'<th class="n">{scheme}</th>' for scheme in PARALLEL)
        parts += [
            f"<h3>{title}</h3><ul>{sentences}</ul><details><summary>{len(rows)} rows</summary>",
            '<div class="wide"><table><tr><th>layer</th><th>crossbar</th><th class="n">bus bytes</th>',
            f'<th class="n">cores</th>{shares}<th class="n">lower bound / cycles</th>',
            "<th>the bound is</th><th>fullest channel</th></tr>",
            *(_held_back_row(row) for row in rows),
            "</table></div></details>",
        ]
    return parts


def _held_back_row(row: HeldBack) -> str:
    p = row.best
    shares = "".join(f'<td class="n">{row.shares[s]:.1%}</td>' for s in PARALLEL)
    return (
        f'<tr><td>{escape(p.label)}</td><td>{p.crossbar}</td><td class="n">{p.bus_bytes}</td>'
        f'<td class="n">{p.cores:,}</td>{shares}<td class="n">{row.bound:.1%}</td><td>{escape(row.binding)}</td>'
        f"<td>{p.fullest_channel.upper()} {p.fullest_share:.0%}</td></tr>"
    )


def _mappings(results: Results, figures: dict[str, str]) -> list[str]:
    """Windows of several outputs against im2col."""
    compared = compare_mappings(results.mappings)
    if not compared:
        return []
    rows = []
    for one in compared:
        for mapping in MAPPINGS:
            runs = [one.runs[mapping, scheme] for scheme in MAPPING_SCHEMES]
            p = runs[0]
            cycles = "".join(
                f'<td class="n">{r.cycles:,}</td><td class="n">{r.lower_bound:,}</td>' for r in runs
            )
            rows.append(
                f"<tr><td>{escape(one.label)}</td><td>{one.crossbar}</td><td>{mapping}</td><td>{p.window}</td>"
                f'<td class="n">{p.cores:,}</td><td class="n">{p.cells_used:.1%}</td><td class="n">{p.mvms:,}</td>'
                f'<td class="n">{p.ifm_values:,}</td>{cycles}</tr>'
            )
    head = "".join(f'<th class="n">{s}</th><th class="n">bound</th>' for s in MAPPING_SCHEMES)
    counts = ", ".join(
        f"{mapping} in {sum(one.fewest() == mapping for one in compared)}" for mapping in MAPPINGS
    )
    return [
        "<h2>Past the paper: one MVM for several outputs</h2>",
        (
            "<p>Shifted duplicates of the kernel in one crossbar (<code>--mapping sdk</code>, a square window that needs no more "
            "cores than im2col; <code>vw-sdk</code>, the rectangle with the fewest MVMs), for every convolution of the two networks "
            f"with a kernel larger than one pixel. Fewest cycles of {len(compared)} layers and crossbars: {counts}. A window "
            "of 1x1 is im2col itself.</p>"
        ),
        _figure("mappings", figures["mappings"]) if "mappings" in figures else "",
        f"<details><summary>{len(rows)} rows</summary>",
        '<div class="wide"><table><tr><th>layer</th><th>crossbar</th><th>mapping</th><th>window</th><th class="n">cores</th>',
        '<th class="n">cells used</th><th class="n">MVMs</th><th class="n">IFM values</th>',
        f"{head}</tr>",
        *rows,
        "</table></div></details>",
    ]


def _central(results: Results) -> list[str]:
    """Synchronization by the memory beside CALL and WAIT."""
    compared = compare_central(results.table1)
    if not compared:
        return []
    rows = []
    for row in compared:
        p = row.run
        runs = [p, *row.beside.values()]
        cycles = "".join(
            f'<td class="n">{r.cycles:,}</td><td class="n">{r.lower_bound:,}</td>' for r in runs
        )
        rows.append(
            f'<tr><td class="n">{escape(p.label)}</td><td>{p.crossbar}</td><td class="n">{p.bus_bytes}</td>{cycles}'
            f'<td class="n">{p.data_bytes:,}</td><td class="n">{row.beside["linear"].call_bytes:,}</td>'
            f'<td class="n">{row.extra_data_bytes:,}</td><td class="n">{row.attribute_bytes:,}</td>'
            f'<td class="n">{row.register_bytes:,}</td></tr>'
        )
    head = "".join(
        f'<th class="n">{name}</th><th class="n">bound</th>' for name in ("central", *BESIDE)
    )
    faster = sum(row.cycles < 1 for row in compared)
    least, most = (pick(compared, key=lambda row: row.cycles) for pick in (min, max))
    worst = max(compared, key=lambda row: row.attribute_bytes + row.extra_data_bytes)
    return [
        "<h2>What the paper argues against: synchronization by the memory</h2>",
        (
            "<p>Scheme <code>central</code>: the memory keeps for each entry how many reads of it are to come, a read waits in the "
            "memory until there are some, and there is neither CALL nor WAIT. The order is that of linear. Each hop of a chain has "
            f"an area of its own. Of {len(compared)} runs {faster} take fewer cycles than linear: {least.cycles - 1:+.1%} to "
            f"{most.cycles - 1:+.1%}. What that costs most in memory is {_where(worst)}: {worst.extra_data_bytes:,} more bytes of "
            f"partial sums and {worst.attribute_bytes:,} bytes of attributes, where linear has {worst.register_bytes:,} bytes of "
            "sequence registers.</p>"
        ),
        f"<details><summary>{len(rows)} rows</summary>",
        '<div class="wide"><table><tr><th class="n">layer</th><th>crossbar</th><th class="n">bus bytes</th>',
        f'{head}<th class="n">data bytes</th><th class="n">CALL bytes of linear</th>',
        '<th class="n">more partial-sum bytes</th><th class="n">attribute bytes</th><th class="n">register bytes</th></tr>',
        *rows,
        "</table></div></details>",
    ]


def _where(row: Central) -> str:
    return f"layer {escape(row.run.label)} with {row.run.crossbar}"
