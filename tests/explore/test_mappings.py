"""The comparison of mappings: every layer, crossbar, mapping and scheme has its run, and the page shows it."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cim.codegen.layer import Activation, Layer, Quantization
from cim.codegen.window import MAPPINGS
from cim.explore.figures import mapping_figure
from cim.explore.mappings import CROSSBARS, SCHEMES, compare_mappings, mapping_tasks
from cim.explore.measure import run_all


def quantized(kernel, channels, outputs, image, groups=1):
    rng = np.random.default_rng(0)
    weights = rng.integers(-100, 100, (*kernel, channels // groups, outputs)).astype(np.int8)
    one = np.float32(1)
    scales = Quantization(one, 0, np.ones(1, np.float32), np.zeros(1, np.int32), one, 0)
    height, width = (side - tap + 1 for side, tap in zip(image, kernel, strict=True))
    return Layer(
        "n", "Conv", "NCHW", "x", "y", (1, channels, *image), (1, outputs, height, width), np.dtype("u1"),
        np.dtype("u1"), weights, None, (1, 1), (1, 1), (0, 0, 0, 0), Activation(), scales, groups,
    )  # fmt: skip


LAYERS = {
    "wide": quantized((3, 3), 64, 24, (8, 7)),
    "depthwise in 16 groups": quantized((3, 3), 16, 16, (6, 6), groups=16),
    "pointwise": quantized((1, 1), 64, 64, (6, 6)),
}


@pytest.fixture(scope="module")
def points():
    return [p for made in run_all(mapping_tasks(LAYERS, "pelke23")) for p in made]


def test_pixels_are_left_out_and_all_else_is_compared(points):
    rows = compare_mappings(points)
    assert [(row.label, row.crossbar) for row in rows] == [
        (label, f"{n}x{n}") for n in CROSSBARS for label in ("wide", "depthwise in 16 groups")
    ]
    for row in rows:
        assert set(row.runs) == set(itertools.product(MAPPINGS, SCHEMES))
        for scheme in SCHEMES:
            assert row.speedup("im2col", scheme) == 1
        assert row.traffic("im2col") == 1
        best = min(p.cycles for p in row.runs.values())
        assert best in {row.runs[row.fewest(), scheme].cycles for scheme in SCHEMES}
        for p in row.runs.values():
            down, right = map(int, p.window.split("x"))
            layer = LAYERS[row.label]
            height, width = layer.output_image
            windows = -(-height // down) * -(-width // right)
            assert p.mvms == windows * p.cores
            side = int(p.crossbar.partition("x")[0])
            assert p.cells_used * p.cores * side**2 == pytest.approx(
                layer.weights.size * down * right
            )


def test_larger_windows_load_less(points):
    for row in compare_mappings(points):
        for mapping in ("sdk", "vw-sdk"):
            if row.runs[mapping, "ring"].window != "1x1":
                assert row.traffic(mapping) < 1
    assert any(p.window != "1x1" and p.p_v > 1 for p in points)
    assert any(p.window != "1x1" and p.p_v == 1 for p in points)


def test_the_figure_has_a_bar_for_each_mapping_layer_and_crossbar(points):
    figure = mapping_figure(points)
    assert len(figure.axes) == 2 * len(CROSSBARS)
    for axes in figure.axes:
        assert len(axes.patches) == 2 * 2
