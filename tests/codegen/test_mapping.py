"""im2col: every cell of the kernel matrix that can be other than 0 lies in one core."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cim.codegen.layer import Activation, Layer
from cim.codegen.mapping import ifm_pieces, map_layer, tile_cells
from cim.codegen.window import Window


def layer_of(kernel, channels, outputs, groups, image=(6, 5), dilations=(1, 1)):
    """A float layer whose weights are all different and none 0."""
    shape = (*kernel, channels // groups, outputs)
    weights = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    return Layer(
        "n", "Conv", "NCHW", "x", "y", (1, channels, *image), (), np.dtype("f4"), np.dtype("f4"), weights,
        None, (1, 1), dilations, (2, 2, 2, 2), Activation(), None, groups,
    )  # fmt: skip


layers = st.builds(
    lambda kernel, groups, c, k: layer_of(kernel, groups * c, groups * k, groups),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 5),
)


@given(layers, st.integers(1, 12), st.integers(1, 20))
def test_the_blocks_of_all_cores_are_the_weights(layer, outputs, inputs):
    mapping = map_layer(layer, outputs, inputs)
    seen = np.zeros(layer.matrix_shape, dtype=np.float32)
    covered = np.zeros(layer.matrix_shape, dtype=int)
    for tile in mapping.tiles:
        block = tile_cells(layer, mapping.window, tile)
        assert 1 <= tile.rows <= inputs
        assert 1 <= tile.columns <= outputs
        assert block.shape == (tile.rows, tile.columns)
        assert block.any(axis=0).all(), "a column of nothing but zeros"
        assert block.any(axis=1).all(), "a row of nothing but zeros"
        place = np.ix_(tile.row_ids, range(tile.channel, tile.channel_end))
        seen[place] += block
        covered[place] += 1
    # Each weight once, at (ky, kx, its channel) and its output channel; all else is 0.
    ky, kx, c, k = layer.weights.shape
    wanted = np.zeros((ky, kx, c * layer.groups, k), dtype=np.float32)
    for column in range(k):
        group = column * layer.groups // k
        wanted[:, :, group * c : (group + 1) * c, column] = layer.weights[:, :, :, column]
    assert np.array_equal(seen, wanted.reshape(layer.matrix_shape))
    assert covered.max() == 1
    assert [tile.number for tile in mapping.tiles] == list(range(mapping.p_h * mapping.p_v))


@given(layers, st.integers(1, 12), st.integers(1, 20))
def test_the_cores_of_a_group_of_outputs_are_a_chain(layer, outputs, inputs):
    mapping = map_layer(layer, outputs, inputs)
    ky, kx, c, _ = layer.weights.shape
    assert mapping.p_v == -(-ky * kx * c // inputs)
    for hg in range(mapping.p_h):
        chain = [tile for tile in mapping.tiles if tile.hg == hg]
        assert [tile.vg for tile in chain] == list(range(mapping.p_v))
        assert len({(tile.channel, tile.channel_end) for tile in chain}) == 1


def test_groups_are_packed_evenly_into_as_few_cores_as_possible():
    mapping = map_layer(layer_of((3, 3), 32, 32, 32), 128, 128)  # 14 blocks of 9 rows fit
    assert (mapping.p_v, [tile.columns for tile in mapping.tiles]) == (1, [10, 11, 11])


def test_packed_channels_are_loaded_together():
    layer = layer_of((3, 3), 8, 8, 8)
    (tile,) = map_layer(layer, 8, 72).tiles
    pieces = ifm_pieces(layer, Window(), tile)
    # Eight neighbouring channels of three neighbouring pixels lie in one piece.
    assert [(piece.lo, piece.hi) for piece in pieces] == [(0, 24), (24, 48), (48, 72)]
