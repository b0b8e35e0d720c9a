"""im2col: cuts a layer's kernel matrix into the tiles that the cores hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cim.codegen.layer import Layer


@dataclass(frozen=True)
class Tile:
    """Core C[hg, vg]: kernel matrix rows row..row_end-1 and columns (output channels) column..column_end-1."""

    number: int
    hg: int
    vg: int
    row: int
    row_end: int
    column: int
    column_end: int

    @property
    def name(self) -> str:
        """The core's name in assembly."""
        return f"C{self.hg}_{self.vg}"

    @property
    def rows(self) -> int:
        """Used crossbar inputs."""
        return self.row_end - self.row

    @property
    def columns(self) -> int:
        """Used crossbar outputs."""
        return self.column_end - self.column


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
    """Tiles for crossbars of `outputs` x `inputs` (M x N): P_V = ceil(rows / N), P_H = ceil(K / M)."""
    rows, columns = layer.matrix.shape
    p_v, p_h = -(-rows // inputs), -(-columns // outputs)
    tiles = tuple(
        Tile(
            hg * p_v + vg, hg, vg,
            vg * inputs, min((vg + 1) * inputs, rows),
            hg * outputs, min((hg + 1) * outputs, columns),
        )
        for hg in range(p_h)
        for vg in range(p_v)
    )  # fmt: skip
    return Mapping(p_v, p_h, tiles)


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
    rows = np.arange(tile.row, tile.row_end)
    ky, kx, c = _unravel(rows, kx_size, channels)
    offsets = (ky * layer.dilations[0] * width + kx * layer.dilations[1]) * channels + c
    cuts = np.flatnonzero(np.diff(offsets) != 1) + 1
    starts = [0, *cuts.tolist()]
    ends = [*cuts.tolist(), len(rows)]
    return [Piece(lo, hi, int(offsets[lo])) for lo, hi in zip(starts, ends, strict=True)]


def _unravel(
    rows: NDArray[np.int64], kx_size: int, channels: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Kernel matrix rows as (ky, kx, c)."""
    return rows // (kx_size * channels), rows // channels % kx_size, rows % channels
