"""The bias of a quantized layer, in units of x_scale * w_scale, and checks of quantizers' numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.onnx_geometry import Geometry
from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_operands import required_constant, row_vector
from cim.codegen.onnx_reasons import NotMappedError, OnlySumsError, shown

INT32 = np.iinfo(np.int32)
FLOAT = np.dtype(np.float32)
FLOAT_ROUNDING = 2.0**-22  # relative: a unit in the last place of a scale, and one of a product


def refuse_blocks(node: Node) -> None:
    """Scales are one, or one a channel, and not one a block."""
    if node.attribute("block_size", 0):
        size = node.attribute("block_size")
        raise NotMappedError(f"block_size of {node.operator} '{node.name}'", size, "0")


def positive(array: NDArray[Any], role: str) -> NDArray[Any]:
    """Scales, after checking that they are float32 numbers above 0."""
    if array.dtype != FLOAT:
        raise NotMappedError(f"the type of {role}", array.dtype, "float32")
    wrong = array[~(np.isfinite(array) & (array > 0))]
    if wrong.size:
        raise NotMappedError(role, wrong.reshape(-1)[0], "positive and finite")
    return array


class InexactBiasError(NotMappedError):
    """A bias that is no whole multiple of x_scale * w_scale."""


def integer_bias(
    graph: Graph, value: str, unit: NDArray[np.float32], geometry: Geometry, beta: float = 1.0
) -> NDArray[Any]:
    """A bias times `beta` in units of x_scale * w_scale (and of alpha, if that is in w_scale), int32 [K].

    A bias with other scales, or a float one, is converted if the numbers that it stands for stay what they are (to
    float32 rounding); else `InexactBiasError`. Raises `OnlySumsError` for what is no one constant per channel of a
    matrix product, or is computed at run time: it is added to floats.
    """
    node = graph.dequantize(value)
    channels = geometry.output_shape[-1] if geometry.layout == "ROWS" else geometry.output_shape[1]
    rows = geometry.output_shape if geometry.layout == "ROWS" else (channels,)
    units = np.broadcast_to(unit, (channels,))
    if node is None:
        numbers = same_rows(_constant_bias(graph, value), rows)
        return _converted(numbers.astype(np.float64) * beta, units, "float")
    refuse_blocks(node)
    stored = _constant_bias(graph, node.input(0)).astype(np.int64)
    scale = positive(
        required_constant(graph, node.input(1), "the bias's scale"), "the bias's scale"
    )
    if node.input(2):
        zero_point = required_constant(graph, node.input(2), "the bias's zero point")
        stored = stored - _along(zero_point.astype(np.int64), node, stored.shape)
    integers = same_rows(stored, rows)
    scales = same_rows(np.broadcast_to(_along(scale, node, stored.shape), stored.shape), rows)
    if beta == 1 and np.array_equal(scales, units) and np.all(np.abs(integers) <= INT32.max):
        return integers.astype(np.int32)
    numbers = integers.astype(np.float64) * scales * beta
    return _converted(numbers, units, f"in units of {scales[0]:.9g}")


def _constant_bias(graph: Graph, value: str) -> NDArray[Any]:
    """The array of a bias; `OnlySumsError` for one that is computed at run time."""
    if not graph.is_constant(value):
        raise OnlySumsError(f"bias '{value}'", "computed at run time", "constant")
    return required_constant(graph, value, "bias")


def _along(numbers: NDArray[Any], node: Node, sizes: tuple[int, ...]) -> NDArray[Any]:
    """Per-channel numbers of a DequantizeLinear, shaped to broadcast against its input of these sizes."""
    if numbers.size == 1:
        return numbers.reshape(())
    axis = node.attribute("axis", 1)
    if not -len(sizes) <= axis < len(sizes) or numbers.shape != (sizes[axis],):
        accepted = (
            f"one or {sizes[axis] if -len(sizes) <= axis < len(sizes) else 'as many as channels'}"
        )
        raise NotMappedError("the bias's number of scales", numbers.size, accepted)
    shape = [1] * len(sizes)
    shape[axis] = numbers.size
    return numbers.reshape(shape)


def same_rows(numbers: NDArray[Any], rows: tuple[int, ...]) -> NDArray[Any]:
    """What a bias adds to every row. Raises `OnlySumsError` where the rows of a product differ."""
    row = row_vector(numbers, rows)
    if row is None:
        kind = OnlySumsError if len(rows) > 1 else NotMappedError
        found = f"different from row to row (shape {shown(numbers.shape)})"
        raise kind("bias", found, "one row vector")
    return row


def _converted(numbers: NDArray[Any], units: NDArray[np.float32], found: str) -> NDArray[Any]:
    """Float64 numbers in units, as int32."""
    integers = np.rint(numbers / units)
    near = np.abs(integers * units.astype(np.float64) - numbers) <= np.abs(numbers) * FLOAT_ROUNDING
    if not np.all(near) or np.any(np.abs(integers) > INT32.max):
        accepted = f"a multiple of x_scale * w_scale ({units[0]:.9g})"
        raise InexactBiasError("bias", found, accepted)
    return integers.astype(np.int32)
