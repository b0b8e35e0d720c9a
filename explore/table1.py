"""The layers of Table I of the paper as quantized ONNX models of one operator, and the counts of Table II.

The paper is "Mapping of CNNs on multi-core RRAM-based CIM architectures" (Pelke et al., 2023). Each model is a
QLinearConv with uint8 input and output, int8 weights, one scale a tensor and no bias: the paper's counts
contain none. Weights are random with a fixed seed; the output scale is such that random inputs fill the
output's range without much saturation.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

X_SCALE, X_ZERO_POINT = np.float32(0.02), 120
W_SCALE = np.float32(0.005)
Y_ZERO_POINT = 128


@dataclass(frozen=True)
class Row:
    """A row of Table I: kernel, channels, size of the matrix (rows x columns) and of the input."""

    layer: int
    kernel_h: int
    kernel_w: int
    in_channels: int
    out_channels: int
    matrix_rows: int
    matrix_cols: int
    input_h: int
    input_w: int


@dataclass(frozen=True)
class Counts:
    """A row of Table II for one crossbar size: cores, values loaded and stored, CALLs."""

    layer: int
    crossbar: int
    cores: int
    load_values: int
    store_values: int
    calls: int


def read_table() -> list[Row]:
    """Table I."""
    return [Row(**row) for row in _read("table1_layers.csv")]


def read_counts() -> list[Counts]:
    """Table II."""
    return [Counts(**row) for row in _read("table2_counts.csv")]


def _read(name: str) -> list[dict[str, int]]:
    text = resources.files("cim.explore").joinpath("data", name).read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return [{key: int(value) for key, value in row.items()} for row in rows]


def make_layer(row: Row) -> onnx.ModelProto:
    """The layer of a row: input `x` uint8 [1, C, H, W], output `y`, no padding, stride 1."""
    rng = np.random.default_rng(row.layer)
    kernel = (row.kernel_h, row.kernel_w)
    weights = rng.integers(-127, 128, (row.out_channels, row.in_channels, *kernel), dtype=np.int8)
    depth = row.in_channels * row.kernel_h * row.kernel_w
    deviation = np.sqrt(depth) * 74.0 * 74.0  # of a sum of products of two uniform bytes
    y_scale = np.float32(X_SCALE * W_SCALE * deviation * 3.5 / 127)
    constants: dict[str, Any] = {
        "x_scale": X_SCALE,
        "x_zero_point": np.uint8(X_ZERO_POINT),
        "w": weights,
        "w_scale": W_SCALE,
        "w_zero_point": np.int8(0),
        "y_scale": y_scale,
        "y_zero_point": np.uint8(Y_ZERO_POINT),
    }
    return _model(f"table1_layer{row.layer}", row, kernel, constants)


def _model(
    name: str, row: Row, kernel: tuple[int, int], constants: dict[str, Any]
) -> onnx.ModelProto:
    node = helper.make_node(
        "QLinearConv", ["x", *constants], ["y"], name, kernel_shape=list(kernel)
    )
    x = [1, row.in_channels, row.input_h, row.input_w]
    y = [1, row.out_channels, row.input_h - kernel[0] + 1, row.input_w - kernel[1] + 1]
    graph = helper.make_graph(
        [node],
        name,
        [helper.make_tensor_value_info("x", TensorProto.UINT8, x)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, y)],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
