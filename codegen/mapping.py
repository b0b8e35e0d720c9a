"""im2col: cuts a layer's kernel matrix into the tiles that the cores hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cim.codegen.layer import Layer


@dataclass(frozen=True, eq=False)
class Tile:
    """Core C[hg, vg]: rows `row_ids` of the kernel matrix and columns (output channels) column..column_end-1.

    Rows count in the order (ky, kx, c) over all channels; they ascend.
    """

    number: int
    hg: int
    vg: int
    row_ids: NDArray[np.int64]
    column: int
    column_end: int

    @property
    def name(self) -> str:
        """The core's name in assembly."""
        return f"C{self.hg}_{self.vg}"

    @property
    def rows(self) -> int:
        """Used crossbar inputs."""
        return int(self.row_ids.size)

    @property
    def columns(self) -> int:
        """Used crossbar outputs."""
        return self.column_end - self.column

    @property
    def column_slice(self) -> slice:
        """The columns as a slice of the kernel matrix."""
        return slice(self.column, self.column_end)


@dataclass(frozen=True)
class Mapping:
    """Which core holds which part of the kernel matrix; `tiles` in the order of their core numbers."""

    p_v: int
    p_h: int
    tiles: tuple[Tile, ...]

    @property
    def cores(self) -> int:
        """P_V * P_H."""
        return len(self.tiles)


def map_layer(layer: Layer, outputs: int, inputs: int) -> Mapping:
    """Tiles for crossbars of `outputs` x `inputs` (M x N).

    Without groups P_V = ceil(rows / N) and P_H = ceil(K / M). With groups the kernel matrix is
    block-diagonal, and parts of it that are zero get no core: where a group's block fits a crossbar, as many
    groups as fit are packed into one and P_V = 1; else each group is cut like a layer of its own, and P_V is
    that of a group.
    """
    ky, kx, channels, all_columns = layer.weights.shape
    rows, columns = ky * kx * channels, all_columns // layer.groups
    p_v = -(-rows // inputs)
    packed = min(inputs // rows, outputs // columns, layer.groups)
    if layer.groups > 1 and packed >= 1:
        # Evenly: as few cores as with full crossbars, and none has more to move than the others.
        shares = -(-layer.groups // packed)
        spans = [
            (share * layer.groups // shares, (share + 1) * layer.groups // shares)
            for share in range(shares)
        ]
        tiles = tuple(
            Tile(hg, hg, 0, _rows_of(layer, first, last), first * columns, last * columns)
            for hg, (first, last) in enumerate(spans)
        )
        return Mapping(1, shares, tiles)
    per_group = -(-columns // outputs)
    made = []
    for hg in range(layer.groups * per_group):
        group, part = divmod(hg, per_group)
        own = _rows_of(layer, group, group + 1)
        column = group * columns + part * outputs
        column_end = min(column + outputs, (group + 1) * columns)
        for vg in range(p_v):
            piece = own[vg * inputs : (vg + 1) * inputs]
            made.append(Tile(hg * p_v + vg, hg, vg, piece, column, column_end))
    return Mapping(p_v, layer.groups * per_group, tuple(made))


def _rows_of(layer: Layer, first: int, last: int) -> NDArray[np.int64]:
    """The kernel matrix rows of groups first..last-1, in ascending order."""
    ky, kx, channels, _ = layer.weights.shape
    pixels = np.arange(ky * kx, dtype=np.int64) * channels * layer.groups
    own = np.arange(first * channels, last * channels, dtype=np.int64)
    return np.asarray(pixels[:, None] + own[None, :]).reshape(-1)


@dataclass(frozen=True)
class Piece:
    """Input-buffer elements lo..hi-1 lie at consecutive IFM elements from `offset` on."""

    lo: int
    hi: int
    offset: int


def ifm_pieces(layer: Layer, tile: Tile) -> list[Piece]:
    """The contiguous parts of a tile's slice of an im2col row.

    Offsets count elements of the padded [H][W][C] image from the output's own corner.
    """
    _, width, channels = layer.padded
    _, kx_size, _, _ = layer.weights.shape
    ky, kx, c = _unravel(tile.row_ids, kx_size, channels)
    offsets = (ky * layer.dilations[0] * width + kx * layer.dilations[1]) * channels + c
    cuts = np.flatnonzero(np.diff(offsets) != 1) + 1
    starts = [0, *cuts.tolist()]
    ends = [*cuts.tolist(), tile.rows]
    return [Piece(lo, hi, int(offsets[lo])) for lo, hi in zip(starts, ends, strict=True)]


def _unravel(
    rows: NDArray[np.int64], kx_size: int, channels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Kernel matrix rows as (ky, kx, c)."""
    return rows // (kx_size * channels), rows // channels % kx_size, rows % channels
