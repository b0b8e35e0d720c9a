"""Cuts a layer's matrix into the tiles that the cores hold: im2col, or with shifted duplicates of the kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cim.codegen.layer import Layer
from cim.codegen.window import MAX_CORES, Cut, Window, choose_window, cut, grid, taps


@dataclass(frozen=True, eq=False)
class Tile:
    """Core C[hg, vg]: rows `row_ids` of the mapped matrix and output channels channel..channel_end-1.

    Rows count in the order (pixel of the window, c) over all channels; they ascend. With im2col the window is
    the kernel, and a row is (ky, kx, c). The columns are the channels, `copies` times: once for each output of the
    window, in the order of the OFM.
    """

    number: int
    hg: int
    vg: int
    row_ids: NDArray[np.int64]
    channel: int
    channel_end: int
    copies: int = 1

    @property
    def name(self) -> str:
        """The core's name in assembly."""
        return f"C{self.hg}_{self.vg}"

    @property
    def rows(self) -> int:
        """Used crossbar inputs."""
        return int(self.row_ids.size)

    @property
    def channels(self) -> int:
        """Output channels."""
        return self.channel_end - self.channel

    @property
    def columns(self) -> int:
        """Used crossbar outputs."""
        return self.channels * self.copies

    @property
    def channel_slice(self) -> slice:
        """The channels as a slice of the kernel matrix."""
        return slice(self.channel, self.channel_end)

    @property
    def channel_ids(self) -> NDArray[np.int64]:
        """The output channel of each column."""
        return np.tile(np.arange(self.channel, self.channel_end), self.copies)


@dataclass(frozen=True)
class Mapping:
    """Which core holds which part of the matrix; `tiles` in the order of their core numbers.

    `kind` is im2col wherever the window is a single output. `windows` are those down and right: each core
    does one MVM for each. `reason` says why it is im2col where something else was asked for.
    """

    kind: str
    window: Window
    windows: tuple[int, int]
    p_v: int
    p_h: int
    tiles: tuple[Tile, ...]
    reason: str = ""

    @property
    def title(self) -> str:
        """The kind, and the window where it has several outputs."""
        return self.kind + (
            f" {self.window.down}x{self.window.right}" if self.window.outputs > 1 else ""
        )

    @property
    def cores(self) -> int:
        """P_V * P_H."""
        return len(self.tiles)

    @property
    def vectors(self) -> int:
        """Windows of one inference: what the cores of a chain hand on, and MVMs of each core."""
        return self.windows[0] * self.windows[1]

    def held(self, layer: Layer, tiles: Iterable[Tile]) -> int:
        """Weights that lie in the crossbars of some tiles, each as often as it is there."""
        # Between shifted duplicates, and with groups, most of the mapped matrix is zeros.
        kernel_h, kernel_w, _, outputs = layer.weights.shape
        lines, line = taps(layer, self.window)
        pixels = int(lines.size) * int(line.size)
        held = 0
        for tile in tiles:
            packed = max(tile.channels * layer.groups // outputs, 1)
            held += tile.rows * tile.channels // packed
        return int(held * kernel_h * kernel_w * self.window.outputs // pixels)

    def used(self, layer: Layer, cells: int) -> float:
        """The share of the crossbars' cells, `cells` each, that hold a weight."""
        return self.held(layer, self.tiles) / (self.cores * cells)

    @property
    def ifm_values(self) -> int:
        """Elements of the IFM that all cores load in one inference."""
        return self.vectors * sum(tile.rows for tile in self.tiles)


def map_layer(
    layer: Layer, outputs: int, inputs: int, mapping: str = "im2col", available: int = MAX_CORES
) -> Mapping:
    """Tiles for crossbars of `outputs` x `inputs` (M x N); `mapping` is one of `window.MAPPINGS`.

    No window is chosen that needs more than `available` cores; im2col itself may.
    """
    choice = choose_window(layer, mapping, outputs, inputs, available)
    window = choice.window
    kind = mapping if window.outputs > 1 else "im2col"
    made = cut(layer, window, kind, outputs, inputs)
    assert made is not None
    tiles = _packed(layer, window, made) if made.packed else _cut(layer, window, kind, made, inputs)
    return Mapping(
        kind, window, grid(layer, window), made.p_v, made.p_h, tuple(tiles), choice.reason
    )


def _packed(layer: Layer, window: Window, made: Cut) -> list[Tile]:
    """Evenly: as few cores as with full crossbars, and none has more to move than the others."""
    columns = layer.weights.shape[3] // layer.groups
    tiles = []
    for hg in range(made.p_h):
        first, last = (at * layer.groups // made.p_h for at in (hg, hg + 1))
        rows = _rows_of(layer, window, first, last).reshape(-1)
        tiles.append(Tile(hg, hg, 0, rows, first * columns, last * columns, window.outputs))
    return tiles


def _cut(layer: Layer, window: Window, kind: str, made: Cut, inputs: int) -> list[Tile]:
    columns = layer.weights.shape[3] // layer.groups
    per_group = made.p_h // layer.groups
    tiles = []
    for hg in range(made.p_h):
        group, part = divmod(hg, per_group)
        own = _rows_of(layer, window, group, group + 1)
        channel = group * columns + part * made.channels
        channel_end = min(channel + made.channels, (group + 1) * columns)
        for vg in range(made.p_v):
            if kind == "vw-sdk":  # all pixels of some channels
                held = inputs // len(own)
                piece = own[:, vg * held : (vg + 1) * held].reshape(-1)
            else:
                piece = own.reshape(-1)[vg * inputs : (vg + 1) * inputs]
            number = hg * made.p_v + vg
            tiles.append(Tile(number, hg, vg, piece, channel, channel_end, window.outputs))
    return tiles


def _rows_of(layer: Layer, window: Window, first: int, last: int) -> NDArray[np.int64]:
    """The matrix rows of groups first..last-1: [pixel of the window][channel], ascending."""
    channels = layer.weights.shape[2]
    lines, line = taps(layer, window)
    pixels = np.arange(lines.size * line.size, dtype=np.int64) * channels * layer.groups
    own = np.arange(first * channels, last * channels, dtype=np.int64)
    return np.asarray(pixels[:, None] + own[None, :])


def tile_cells(layer: Layer, window: Window, tile: Tile) -> NDArray[np.generic]:
    """What the tile's crossbar holds, [rows][columns]: each duplicate of the kernel where its output reads."""
    y, x, c = _places(layer, window, tile)
    kernel_h, kernel_w, channels, _ = layer.weights.shape
    parts = []
    for i in range(window.down):
        for j in range(window.right):
            ky, ky_rest = np.divmod(y - i * layer.strides[0], layer.dilations[0])
            kx, kx_rest = np.divmod(x - j * layer.strides[1], layer.dilations[1])
            inside = (ky_rest == 0) & (ky >= 0) & (ky < kernel_h)
            inside &= (kx_rest == 0) & (kx >= 0) & (kx < kernel_w)
            rows = np.where(inside, (ky * kernel_w + kx) * channels * layer.groups + c, 0)
            cells = layer.block(rows, tile.channel_slice)
            parts.append(np.where(inside[:, None], cells, cells.dtype.type(0)))
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class Piece:
    """Input-buffer elements lo..hi-1 lie at consecutive IFM elements from `offset` on."""

    lo: int
    hi: int
    offset: int


def ifm_pieces(layer: Layer, window: Window, tile: Tile) -> list[Piece]:
    """The contiguous parts of what a tile reads of a window.

    Offsets count elements of the padded [H][W][C] image from the window's own corner.
    """
    _, width, channels = layer.padded
    y, x, c = _places(layer, window, tile)
    offsets = (y * width + x) * channels + c
    cuts = np.flatnonzero(np.diff(offsets) != 1) + 1
    starts = [0, *cuts.tolist()]
    ends = [*cuts.tolist(), tile.rows]
    return [Piece(lo, hi, int(offsets[lo])) for lo, hi in zip(starts, ends, strict=True)]


def _places(
    layer: Layer, window: Window, tile: Tile
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The tile's rows as row and column of the padded image, from the window's corner, and channel."""
    lines, line = taps(layer, window)
    pixel, c = np.divmod(tile.row_ids, layer.weights.shape[2] * layer.groups)
    return lines[pixel // line.size], line[pixel % line.size], c
