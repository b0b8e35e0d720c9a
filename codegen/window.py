"""How many neighbouring outputs one MVM yields: im2col's single one, or a window of shifted duplicates of the kernel.

With im2col a column of the mapped matrix is a kernel, and one MVM makes one output vector. With *shift and
duplicate kernel* (SDK; Zhang et al., "Efficient and Robust RRAM-Based Convolutional Weight Mapping with Shifted
and Duplicated Kernel", IEEE TCAD 2021) the rows are all pixels that `down` x `right` neighbouring outputs read, and
each kernel stands there once for every one of these outputs, shifted to where that output reads. Inputs that several
outputs share are loaded once; the cells between are zeros. *Variable-window SDK* (VW-SDK; Rhe et al., "VW-SDK:
Efficient Convolutional Weight Mapping Using Variable Windows for Processing-In-Memory Architectures", DATE 2022,
arXiv:2112.11282) lets the window be any rectangle, and a core holds all its pixels of some channels.

The window that is chosen:

- `sdk`: the largest square that needs no more cores than im2col. All channels; rows are cut as with im2col.
- `vw-sdk`: the rectangle with the fewest MVMs, windows x P_V x P_H (what the paper calls computing cycles, on
  one array); among those with as many, the fewest cores, then the smallest. A core holds floor(N / pixels) input
  and floor(M / outputs of the window) output channels.

Where that is a window of one output, the layer is mapped with im2col.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cim.codegen.layer import Layer

MAPPINGS = ("im2col", "sdk", "vw-sdk")
MAX_CORES = 65536  # core numbers have 16 bits


@dataclass(frozen=True)
class Window:
    """`down` x `right` neighbouring outputs of one MVM."""

    down: int = 1
    right: int = 1

    @property
    def outputs(self) -> int:
        """Duplicates of each kernel."""
        return self.down * self.right


@dataclass(frozen=True)
class Cut:
    """A layer cut into cores: P_V cores in a chain, P_H chains, each with `channels` output channels at most.

    `packed` groups share a core; 0 where a group takes a core or more of its own.
    """

    p_v: int
    p_h: int
    channels: int
    packed: int

    @property
    def cores(self) -> int:
        """P_V * P_H."""
        return self.p_v * self.p_h


def taps(layer: Layer, window: Window) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows and the columns of pixels that a window reads, ascending, from its corner in the padded image.

    Every pair of the two is read by one of the window's outputs at least.
    """

    def line(axis: int, count: int) -> NDArray[np.int64]:
        outputs = np.arange(count) * layer.strides[axis]
        kernel = np.arange(layer.weights.shape[axis]) * layer.dilations[axis]
        return np.unique(outputs[:, None] + kernel)

    return line(0, window.down), line(1, window.right)


def grid(layer: Layer, window: Window) -> tuple[int, int]:
    """Windows down and right. The last one of a line ends at the border, and may overlap the one before."""
    height, width = layer.output_image
    return -(-height // window.down), -(-width // window.right)


def cut(layer: Layer, window: Window, mapping: str, outputs: int, inputs: int) -> Cut | None:
    """How crossbars of `outputs` x `inputs` (M x N) hold the layer; None where the window does not fit one.

    Without groups, im2col: P_V = ceil(rows / N), P_H = ceil(K / M). With groups the matrix is block-diagonal, and
    parts of it that are zero get no core: where a group's block fits a crossbar, as many groups as fit are packed
    into one and P_V = 1; else each group is cut like a layer of its own, and P_V is that of a group.
    """
    _, _, channels, all_columns = layer.weights.shape
    lines, line = taps(layer, window)
    pixels, columns = lines.size * line.size, all_columns // layer.groups
    rows = pixels * channels
    packed = min(inputs // rows, outputs // (columns * window.outputs), layer.groups)
    if layer.groups > 1 and packed >= 1:
        return Cut(1, -(-layer.groups // packed), packed * columns, packed)
    held = outputs // window.outputs
    if held == 0 or (mapping == "vw-sdk" and inputs < pixels):
        return None
    p_v = -(-channels // (inputs // pixels)) if mapping == "vw-sdk" else -(-rows // inputs)
    return Cut(p_v, layer.groups * -(-columns // held), held, 0)


@dataclass(frozen=True)
class Choice:
    """A window, and why it is a single output where one of several was asked for."""

    window: Window
    reason: str = ""


def choose_window(layer: Layer, mapping: str, outputs: int, inputs: int, available: int) -> Choice:
    """The window by the rules above, among those that need at most `available` cores."""
    if mapping == "sdk":
        return _square(layer, outputs, inputs)
    if mapping == "vw-sdk":
        return _rectangle(layer, outputs, inputs, available)
    return Choice(Window())


def _im2col(layer: Layer, outputs: int, inputs: int) -> Cut:
    made = cut(layer, Window(), "im2col", outputs, inputs)
    assert made is not None  # one output fits any crossbar
    return made


def _square(layer: Layer, outputs: int, inputs: int) -> Choice:
    height, width = layer.output_image
    if min(height, width) < 2:
        return Choice(Window(), f"{height}x{width} outputs have no square of neighbours")
    if outputs < 4:
        return Choice(
            Window(), f"a window of 2x2 outputs needs 4 columns, a crossbar has {outputs}"
        )
    allowed = _im2col(layer, outputs, inputs).cores
    best, least = Window(), 0
    for side in range(2, min(height, width) + 1):
        made = cut(layer, Window(side, side), "sdk", outputs, inputs)
        if made is None:
            break
        least = least or made.cores
        if made.cores <= allowed:
            best = Window(side, side)
    if best.outputs > 1:
        return Choice(best)
    return Choice(best, f"a window of 2x2 outputs needs {least} cores, im2col {allowed}")


def _rectangle(layer: Layer, outputs: int, inputs: int, available: int) -> Choice:
    height, width = layer.output_image
    base = _im2col(layer, outputs, inputs).cores
    best, cost = Window(), (layer.outputs * base, base, 1)
    for down in range(1, min(height, outputs) + 1):
        for right in range(1 if down > 1 else 2, min(width, outputs // down) + 1):
            window = Window(down, right)
            made = cut(layer, window, "vw-sdk", outputs, inputs)
            if made is None:
                break
            if made.cores > available:
                continue
            above, across = grid(layer, window)
            best, cost = min(
                (best, cost),
                (window, (above * across * made.cores, made.cores, window.outputs)),
                key=lambda candidate: candidate[1],
            )
    if best.outputs > 1:
        return Choice(best)
    return Choice(best, f"no window that fits has fewer MVMs than im2col's {cost[0]:,}")
