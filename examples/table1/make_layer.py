"""Make the layers of Table I of the paper as quantized ONNX models of one operator.

Each is a QLinearConv with uint8 input and output, int8 weights, one scale per tensor and no bias:
the paper's counts in Table II (`table2_counts.csv`) contain none. Weights are random with a fixed
seed; the output scale is such that random inputs fill the output's range without much saturation.

    python make_layer.py --layer 5 -o layer5.onnx
"""

from __future__ import annotations

import argparse
import csv
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TABLE = Path(__file__).with_name("table1_layers.csv")
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


def read_table(path: Path = TABLE) -> list[Row]:
    """All rows of a CSV file with the columns of `table1_layers.csv`."""
    with path.open(encoding="utf-8", newline="") as lines:
        return [
            Row(**{key: int(value) for key, value in row.items()}) for row in csv.DictReader(lines)
        ]


def make_layer(row: Row) -> onnx.ModelProto:
    """The layer of a row: input `x` uint8 [1, C, H, W], output `y`, no padding, stride 1."""
    rng = np.random.default_rng(row.layer)
    kernel = (row.kernel_h, row.kernel_w)
    weights = rng.integers(-127, 128, (row.out_channels, row.in_channels, *kernel), dtype=np.int8)
    depth = row.in_channels * row.kernel_h * row.kernel_w
    deviation = np.sqrt(depth) * 74.0 * 74.0  # of a sum of products of two uniform bytes
    y_scale = np.float32(X_SCALE * W_SCALE * deviation * 3.5 / 127)
    constants = {
        "x_scale": X_SCALE,
        "x_zero_point": np.uint8(X_ZERO_POINT),
        "w": weights,
        "w_scale": W_SCALE,
        "w_zero_point": np.int8(0),
        "y_scale": y_scale,
        "y_zero_point": np.uint8(Y_ZERO_POINT),
    }
    name = f"table1_layer{row.layer}"
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


def main() -> None:
    """Write one layer's model."""
    rows = {row.layer: row for row in read_table()}
    parser = argparse.ArgumentParser(description="Make a layer of Table I as an ONNX model.")
    parser.add_argument("--layer", type=int, required=True, choices=sorted(rows), help="its number")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the ONNX file to write")
    arguments = parser.parse_args()
    content = make_layer(rows[arguments.layer]).SerializeToString(deterministic=True)
    try:
        arguments.output.write_bytes(content)
    except OSError as problem:
        sys.exit(f"{arguments.output}: error: cannot write: {problem.strerror}")


if __name__ == "__main__":
    main()
