"""Charts as SVG: only shapes and text, so that a page needs no script and prints as it looks.

Every function returns an `<svg>` that scales with its column. Colours differ in lightness, each a step from the next,
so that they stay apart in black and white.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

WIDTH = 960
LEFT, RIGHT = 104, 12
AXIS = 26
INK = "#1c2733"


def svg(height: float, title: str, parts: Sequence[str]) -> str:
    """A drawing of the common width, with a title for those who cannot see it."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def text(x: float, y: float, content: str, anchor: str = "start", size: int = 13) -> str:
    """One line of text; y is its baseline."""
    return (
        f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" font-size="{size}" fill="{INK}">'
        f"{escape(content)}</text>"
    )


def rect(x: float, y: float, width: float, height: float, fill: str, tip: str = "") -> str:
    """A filled rectangle, with a tooltip."""
    inside = f"<title>{escape(tip)}</title>" if tip else ""
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}">{inside}</rect>'


def plot_width() -> float:
    """Units between the axis on the left and the right end."""
    return WIDTH - LEFT - RIGHT


def time_axis(cycles: int, y: float) -> str:
    """Ticks at round numbers of bus cycles."""
    step = round_step(cycles / 6)
    parts = []
    for tick in range(0, cycles + 1, step):
        x = LEFT + plot_width() * tick / max(cycles, 1)
        anchor = "end" if x > WIDTH - 60 else "middle"
        parts.append(f'<path d="M{x:g} {y:g}v5" stroke="{INK}"/>')
        parts.append(text(x, y + 19, f"{tick:,}", anchor, 12))
    return "".join(parts)


def round_step(about: float) -> int:
    """1, 2 or 5 times a power of ten, at least `about`."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= about:
                return factor * power
        power *= 10


def heat_map(
    codes: NDArray[np.int64], colours: Sequence[str], labels: Sequence[tuple[int, str]], cycles: int,
    edges: NDArray[np.int64], title: str,
) -> str:  # fmt: skip
    """Rows of coloured cells over time. `codes` is [row][part], `labels` names some rows."""
    rows = codes.shape[0]
    height = float(max(min(14 * rows, 420), 28))
    tall = height / rows
    xs = LEFT + plot_width() * edges / max(int(edges[-1]), 1)
    parts = []
    for code, colour in enumerate(colours):
        path = []
        for row in range(rows):
            line = np.concatenate(([False], codes[row] == code, [False]))
            starts = np.flatnonzero(~line[:-1] & line[1:])
            stops = np.flatnonzero(line[:-1] & ~line[1:])
            y = row * tall
            path += [
                f"M{xs[a]:.1f} {y:.2f}H{xs[b]:.1f}v{tall:.2f}H{xs[a]:.1f}z"
                for a, b in zip(starts, stops, strict=True)
            ]
        if path:
            parts.append(
                f'<path d="{"".join(path)}" fill="{colour}" shape-rendering="crispEdges"/>'
            )
    parts += [
        text(LEFT - 8, max((row + 0.5) * tall + 4, 11), label, "end", 12) for row, label in labels
    ]
    parts.append(
        f'<rect x="{LEFT}" y="0" width="{plot_width():g}" height="{height:g}" fill="none" stroke="{INK}"/>'
    )
    parts.append(time_axis(cycles, height))
    return svg(height + AXIS, title, parts)


def areas(
    shares: NDArray[np.float64], colours: Sequence[str], names: Sequence[str], cycles: int,
    edges: NDArray[np.int64], title: str,
) -> str:  # fmt: skip
    """Shares [layer][part] of one whole, stacked over time."""
    height = 150.0
    xs = LEFT + plot_width() * edges / max(int(edges[-1]), 1)
    tops = np.concatenate([np.zeros((1, shares.shape[1])), np.cumsum(shares, axis=0)])
    parts = []
    for layer, (colour, name) in enumerate(zip(colours, names, strict=True)):
        path = ""
        for side, order in ((tops[layer + 1], 1), (tops[layer], -1)):
            points = [
                f"{xs[part + corner]:.1f} {height * (1 - min(side[part], 1.0)):.1f}"
                for part in range(shares.shape[1])
                for corner in (0, 1)
            ][::order]
            path += ("M" if order == 1 else "L") + "L".join(points)
        mean = float((shares[layer] * np.diff(edges)).sum() / max(int(edges[-1]), 1))
        parts.append(
            f'<path d="{path}z" fill="{colour}"><title>{escape(name)}: {mean:.1%}</title></path>'
        )
    parts.append(
        f'<rect x="{LEFT}" y="0" width="{plot_width():g}" height="{height:g}" fill="none" stroke="{INK}"/>'
    )
    parts += [text(LEFT - 8, y, label, "end", 12) for y, label in ((12, "100 %"), (height, "0 %"))]
    parts.append(time_axis(cycles, height))
    return svg(height + AXIS, title, parts)


def small_multiples(
    shares: NDArray[np.float64], names: Sequence[str], edges: NDArray[np.int64], colour: str, title: str
) -> str:  # fmt: skip
    """One strip for each row of shares, 0 to 1 over time, with its mean at the right."""
    tall, gap = 44.0, 10.0
    xs = LEFT + (plot_width() - 70) * edges / max(int(edges[-1]), 1)
    parts = []
    for row, name in enumerate(names):
        top = row * (tall + gap)
        path = f"M{xs[0]:.1f} {top + tall:g}"
        for part, share in enumerate(shares[row]):
            y = top + tall * (1 - min(float(share), 1.0))
            path += f"L{xs[part]:.1f} {y:.1f}L{xs[part + 1]:.1f} {y:.1f}"
        path += f"L{xs[-1]:.1f} {top + tall:g}z"
        mean = float((shares[row] * np.diff(edges)).sum() / max(int(edges[-1]), 1))
        parts.append(rect(LEFT, top, plot_width() - 70, tall, "#f3f5f7"))
        parts.append(f'<path d="{path}" fill="{colour}"/>')
        parts.append(f'<path d="M{LEFT} {top + tall:g}h{plot_width() - 70:g}" stroke="{INK}"/>')
        parts.append(text(LEFT - 8, top + tall / 2 + 5, name, "end"))
        parts.append(text(WIDTH - RIGHT, top + tall / 2 + 5, f"{mean:.1%}", "end"))
    height = len(names) * (tall + gap)
    return svg(height, title, parts)


def bars(rows: Sequence[tuple[str, float, str, str]], title: str, label_width: int = 250) -> str:
    """Horizontal bars from (label, value, what to write behind it, colour), on one scale from 0."""
    largest = max((value for _, value, _, _ in rows), default=0) or 1
    room = WIDTH - label_width - 150
    parts = []
    for row, (label, value, written, colour) in enumerate(rows):
        y = row * 26
        parts.append(text(label_width - 10, y + 17, label, "end"))
        parts.append(rect(label_width, y + 3, max(room * value / largest, 1), 19, colour, written))
        parts.append(text(label_width + room * value / largest + 8, y + 17, written))
    return svg(len(rows) * 26 + 4, title, parts)
