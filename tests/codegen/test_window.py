"""Windows of several outputs: the published counts, the rules by which they are chosen, what the cores hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cim.codegen import cli
from cim.codegen.layer import Activation, Layer
from cim.codegen.mapping import ifm_pieces, map_layer, tile_cells
from cim.codegen.window import MAX_CORES, Window, choose_window, cut, grid, taps
from tests.codegen.models import operator, save


def layer_of(kernel, channels, outputs, image, strides=(1, 1), dilations=(1, 1), groups=1):
    weights = np.ones((*kernel, channels // groups, outputs), dtype=np.float32)
    return Layer(
        "n", "Conv", "NCHW", "x", "y", (1, channels, *image), (), np.dtype("f4"), np.dtype("f4"), weights,
        None, strides, dilations, (0, 0, 0, 0), Activation(), None, groups,
    )  # fmt: skip


# The layers of Rhe et al. (DATE 2022): image, kernel, input and output channels; no padding. The counts
# of im2col and of SDK there add up to 20,041 and 7,240, and VW-SDK is 1.69 times as fast as SDK.
RESNET18 = [(112, 7, 3, 64), (56, 3, 64, 64), (28, 3, 128, 128), (14, 3, 256, 256), (7, 3, 512, 512)]  # fmt: skip
PUBLISHED = {
    "im2col": [11_236, 5_832, 2_028, 720, 225],
    "sdk": [2_809, 1_458, 2_028, 720, 225],
    "vw-sdk": [1_431, 1_458, 676, 504, 225],
}


@pytest.mark.parametrize("mapping", PUBLISHED)
def test_mvms_are_the_published_computing_cycles(mapping):
    found = []
    for side, kernel, channels, outputs in RESNET18:
        layer = layer_of((kernel, kernel), channels, outputs, (side, side))
        mapped = map_layer(layer, 512, 512, mapping)
        found.append(mapped.vectors * mapped.cores)
    assert found == PUBLISHED[mapping]
    if mapping == "vw-sdk":
        assert round(sum(PUBLISHED["sdk"]) / sum(found), 2) == 1.69


layers = st.builds(
    lambda kernel, groups, c, k, image, strides, dilations: layer_of(
        kernel, groups * c, groups * k,
        tuple(side + (tap - 1) * gap for side, tap, gap in zip(image, kernel, dilations, strict=True)),
        strides, dilations, groups,
    ),
    st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(1, 3), st.integers(1, 5), st.integers(1, 5),
    st.tuples(st.integers(1, 9), st.integers(1, 9)), st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
)  # fmt: skip
crossbars = st.tuples(st.integers(1, 60), st.integers(1, 80))


@given(layers, crossbars)
def test_sdk_takes_the_largest_square_that_needs_no_more_cores(layer, crossbar):
    allowed = map_layer(layer, *crossbar).cores
    mapped = map_layer(layer, *crossbar, "sdk")
    window = mapped.window
    assert window.down == window.right
    assert mapped.cores <= allowed
    assert bool(mapped.reason) == (window.outputs == 1) == (mapped.kind == "im2col")
    for side in range(window.down + 1, min(layer.output_image) + 1):
        larger = cut(layer, Window(side, side), "sdk", *crossbar)
        assert larger is None or larger.cores > allowed


@given(layers, crossbars, st.integers(1, 40))
def test_vw_sdk_has_the_fewest_mvms(layer, crossbar, available):
    single = map_layer(layer, *crossbar)
    mapped = map_layer(layer, *crossbar, "vw-sdk", available)
    assert bool(mapped.reason) == (mapped.window.outputs == 1) == (mapped.kind == "im2col")
    assert mapped.cores <= max(available, single.cores)
    mvms = mapped.vectors * mapped.cores
    assert mvms <= single.vectors * single.cores
    height, width = layer.output_image
    for down in range(1, height + 1):
        for right in range(1, width + 1):
            made = cut(layer, Window(down, right), "vw-sdk", *crossbar)
            if (down, right) != (1, 1) and made is not None and made.cores <= available:
                assert mvms <= np.prod(grid(layer, Window(down, right))) * made.cores


@given(layers, crossbars, st.sampled_from(["sdk", "vw-sdk"]))
def test_every_weight_is_held_once_for_each_output_of_the_window(layer, crossbar, mapping):
    mapped = map_layer(layer, *crossbar, mapping)
    window, held = mapped.window, 0
    lines, line = taps(layer, window)
    for tile in mapped.tiles:
        cells = tile_cells(layer, window, tile)
        assert cells.shape == (tile.rows, tile.columns)
        assert tile.rows <= crossbar[1]
        assert tile.columns <= crossbar[0]
        held += np.count_nonzero(cells)
        pieces = ifm_pieces(layer, window, tile)
        assert sum(piece.hi - piece.lo for piece in pieces) == tile.rows
        end = (lines[-1] * layer.padded[1] + line[-1] + 1) * layer.padded[2]
        assert all(p.offset >= 0 and p.offset + p.hi - p.lo <= end for p in pieces)
    assert held == layer.weights.size * window.outputs
    share = held / (mapped.cores * crossbar[0] * crossbar[1])
    assert mapped.used(layer, crossbar[0] * crossbar[1]) == pytest.approx(share)


REASONS = [
    (layer_of((3, 3), 4, 4, (9, 3)), "sdk", 64, 64, "7x1 outputs have no square of neighbours"),
    (layer_of((3, 3), 4, 4, (9, 9)), "sdk", 3, 64, "a window of 2x2 outputs needs 4 columns, a crossbar has 3"),
    (layer_of((3, 3), 4, 16, (9, 9)), "sdk", 16, 64, "a window of 2x2 outputs needs 4 cores, im2col 1"),
    (layer_of((3, 3), 4, 16, (9, 9)), "vw-sdk", 16, 36, "no window that fits has fewer MVMs than im2col's 49"),
]  # fmt: skip


@pytest.mark.parametrize(("layer", "mapping", "outputs", "inputs", "reason"), REASONS)
def test_why_a_layer_is_mapped_with_im2col(layer, mapping, outputs, inputs, reason):
    choice = choose_window(layer, mapping, outputs, inputs, MAX_CORES)
    assert choice.window == Window()
    assert choice.reason == reason


def test_cim_cc_tells_the_window_or_the_reason(tmp_path, capsys):
    weights = np.ones((4, 2, 3, 3), dtype=np.float32)
    path = save(operator("Conv", [1, 2, 8, 8], {"w": weights}), tmp_path)
    run = ["-o", str(tmp_path / "out"), "--mapping", "sdk", "--set"]
    assert cli.main([str(path), *run, "core.crossbar=64x64"]) == 0
    assert "sdk 3x3" in capsys.readouterr().out
    assert cli.main([str(path), *run, "core.crossbar=4x64"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "n: im2col, since a window of 2x2 outputs needs 4 cores, im2col 1" in told
