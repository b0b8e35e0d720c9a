"""Integer layers: QDQ forms of Conv, Gemm and MatMul, QLinear operators, and the Integer operators.

A QDQ layer runs from the integer tensor before its input's DequantizeLinear to the one after its
QuantizeLinear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.layer import Activation, Layer, Quantization
from cim.codegen.onnx_activation import Fused, fused_activation
from cim.codegen.onnx_bias import InexactBiasError, integer_bias, positive, refuse_blocks, same_rows
from cim.codegen.onnx_geometry import Geometry, geometry_of
from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_operands import (
    Match,
    added_operand,
    channel_bias,
    required_constant,
    without_zeros,
)
from cim.codegen.onnx_reasons import NotMappedError, OnlySumsError, shown

BYTES = (np.dtype(np.int8), np.dtype(np.uint8))
INT32 = np.iinfo(np.int32)
FLOAT = np.dtype(np.float32)


@dataclass(frozen=True)
class Input:
    """The integer input tensor with its one scale and zero point."""

    name: str
    scale: np.float32
    zero_point: int


@dataclass(frozen=True)
class Weights:
    """Integer weights as the model stores them; scales and zero points for one or all channels."""

    values: NDArray[Any]
    scale: NDArray[np.float32]
    zero_point: NDArray[np.int32]


@dataclass(frozen=True)
class Output:
    """The output tensor; scale None for an int32 one."""

    name: str
    scale: np.float32 | None
    zero_point: int


@dataclass(frozen=True)
class Finish:
    """What follows the sum: bias (int32), activation, and the nodes that make them."""

    bias: NDArray[Any] | None
    activation: Activation
    nodes: tuple[Node, ...]


def qdq_layer(graph: Graph, node: Node) -> Match:
    """The layer of a Conv, Gemm or MatMul between DequantizeLinear and QuantizeLinear.

    Raises `NotMappedError` for what cannot run on the cores.
    """
    x = _dequantized_input(graph, node.input(0))
    source = graph.producer[node.input(1)]
    values = required_constant(graph, source.input(0), "weights")
    geometry = geometry_of(graph, node, x.name, values)
    weights = Weights(values, *weight_numbers(graph, source, values, geometry.axis))
    alpha = beta = 1.0
    if node.operator == "Gemm":
        alpha, beta = _finite(node, "alpha"), _finite(node, "beta")
        weights = _times(alpha, weights)
    bias_name = node.input(2) if beta != 0 else ""
    value, nodes = node.outputs[0], [node]
    if node.operator == "MatMul" and (found := added_operand(graph, value)) is not None:
        add, bias_name = found
        nodes.append(add)
        value = add.outputs[0]
    axis = 1 if geometry.layout == "NCHW" else len(geometry.output_shape) - 1
    fused = fused_activation(graph, value, geometry.output_shape, axis)
    if fused.scale != 1 or fused.shift != 0 or fused.activation.kind == "hard_swish":
        fused = Fused(Activation(), (), value)  # only float layers can have it
    quantize = _quantize_node(graph, fused.value)
    bias = None
    if bias_name:
        unit = x.scale * weights.scale
        try:
            bias = integer_bias(graph, bias_name, unit, geometry, beta)
        except InexactBiasError as inexact:
            if alpha == beta == 1:
                raise
            # Quantizers give a bias the scale x_scale * w_scale, whose multiples alpha and beta seldom leave whole.
            raise OnlySumsError(*inexact.why) from inexact
    output = Output(
        quantize.outputs[0],
        _scale(graph, quantize.input(1), "y_scale"),
        _zero_point(graph, quantize.input(2), "y_zero_point"),
    )
    finish = Finish(bias, fused.activation, (*nodes, *fused.nodes, quantize))
    return _match(graph, node, geometry, x, weights, output, finish)


def _finite(node: Node, name: str) -> float:
    """Alpha or beta of a Gemm. Raises `NotMappedError` where it is not finite."""
    number = float(node.attribute(name, 1.0))
    if not np.isfinite(number):
        raise NotMappedError(name, number, "finite")
    return number


def _times(alpha: float, weights: Weights) -> Weights:
    """Weights that stand for alpha times what they stood for.

    The scale becomes float32(w_scale * |alpha|), before anything is multiplied with it. The sign goes into the cells:
    `~w - ~w_zp` is `-(w - w_zp)`, and has the type of w. With alpha 0 all cells are 0.
    """
    if alpha == 1 or weights.values.dtype not in BYTES:  # other types are refused later
        return weights
    if alpha == 0:
        zeros = np.zeros_like(weights.zero_point)
        return Weights(np.zeros_like(weights.values), weights.scale, zeros)
    with np.errstate(over="ignore", under="ignore"):
        scale = positive(weights.scale * np.float32(abs(alpha)), "alpha * w_scale")
    if alpha > 0:
        return Weights(weights.values, scale, weights.zero_point)
    zero_point = np.invert(weights.zero_point.astype(weights.values.dtype)).astype(np.int32)
    return Weights(np.invert(weights.values), scale, zero_point)


def qlinear_layer(graph: Graph, node: Node) -> Match:
    """The layer of a QLinearConv or QLinearMatMul. Raises `NotMappedError` like `qdq_layer`."""
    x = Input(
        node.input(0),
        _scale(graph, node.input(1), "x_scale"),
        _zero_point(graph, node.input(2), "x_zero_point"),
    )
    values = required_constant(graph, node.input(3), "weights")
    geometry = geometry_of(graph, node, x.name, values)
    scale = _vector(graph, node.input(4), "w_scale", values, geometry).astype(np.float32)
    zero_point = _vector(graph, node.input(5), "w_zero_point", values, geometry).astype(np.int32)
    bias = None
    if node.input(8):
        bias = channel_bias(graph, node.input(8), geometry.output_shape[1], np.dtype(np.int32))
    output = Output(
        node.outputs[0],
        _scale(graph, node.input(6), "y_scale"),
        _zero_point(graph, node.input(7), "y_zero_point"),
    )
    weights = Weights(values, scale, zero_point)
    return _match(graph, node, geometry, x, weights, output, Finish(bias, Activation(), (node,)))


def qgemm_layer(graph: Graph, node: Node) -> Match:
    """The layer of a QGemm with an 8-bit output. Raises `NotMappedError` like `qdq_layer`.

    Its C is in units of alpha * a_scale * b_scale, and so alpha is taken into the weights' scale.
    """
    x = Input(
        node.input(0),
        _scale(graph, node.input(1), "a_scale"),
        _zero_point(graph, node.input(2), "a_zero_point"),
    )
    values = required_constant(graph, node.input(3), "weights")
    geometry = geometry_of(graph, node, x.name, values)
    scale = _vector(graph, node.input(4), "w_scale", values, geometry).astype(np.float32)
    zero_point = np.zeros(1, dtype=np.int32)
    if node.input(5):
        zero_point = _vector(graph, node.input(5), "w_zero_point", values, geometry).astype(
            np.int32
        )
    bias = None
    if node.input(6):
        stored = required_constant(graph, node.input(6), "C")
        if stored.dtype != np.int32:
            raise NotMappedError("the type of C", stored.dtype, "int32")
        bias = same_rows(stored, geometry.output_shape)
    output = Output(
        node.outputs[0],
        _scale(graph, node.input(7), "y_scale"),
        _zero_point(graph, node.input(8), "y_zero_point"),
    )
    weights = Weights(values, scale * np.float32(node.attribute("alpha", 1.0)), zero_point)
    return _match(graph, node, geometry, x, weights, output, Finish(bias, Activation(), (node,)))


def integer_layer(graph: Graph, node: Node) -> Match:
    """The layer of a ConvInteger or MatMulInteger, whose output is the int32 sum itself."""
    values = required_constant(graph, node.input(1), "weights")
    zero_point = _zero_point(graph, node.input(2), "x_zero_point") if node.input(2) else 0
    x = Input(node.input(0), np.float32(1), zero_point)
    geometry = geometry_of(graph, node, x.name, values)
    weight_zero = np.zeros(1, dtype=np.int32)
    if node.input(3):
        found = _vector(graph, node.input(3), "w_zero_point", values, geometry)
        weight_zero = found.astype(np.int32)
    weights = Weights(values, np.ones(1, dtype=np.float32), weight_zero)
    output = Output(node.outputs[0], None, 0)
    return _match(graph, node, geometry, x, weights, output, Finish(None, Activation(), (node,)))


def _match(
    graph: Graph,
    node: Node,
    geometry: Geometry,
    x: Input,
    weights: Weights,
    output: Output,
    finish: Finish,
) -> Match:
    types = {
        "input": graph.type(x.name).dtype,
        "weights": weights.values.dtype,
        "output": graph.type(output.name).dtype,
    }
    for role, dtype in types.items():
        if dtype not in BYTES and not (role == "output" and output.scale is None):
            raise NotMappedError(f"the type of the {role}", dtype or "not known", "int8 or uint8")
    bias = None if finish.bias is None else without_zeros(finish.bias)
    quantization = Quantization(
        x_scale=x.scale,
        x_zp=x.zero_point,
        w_scale=weights.scale,
        w_zp=weights.zero_point,
        y_scale=output.scale,
        y_zp=output.zero_point,
    )
    layer = Layer(
        name=node.name,
        operator=node.operator,
        layout=geometry.layout,
        input_name=x.name,
        output_name=output.name,
        input_shape=geometry.input_shape,
        output_shape=geometry.output_shape,
        input_dtype=np.dtype(types["input"]),
        output_dtype=np.dtype(np.int32) if output.scale is None else np.dtype(types["output"]),
        weights=geometry.hwio(weights.values),
        bias=bias,
        strides=geometry.strides,
        dilations=geometry.dilations,
        pads=geometry.pads,
        groups=geometry.groups,
        activation=finish.activation,
        quantization=quantization,
    )
    _require_representable(layer, quantization)
    return Match(layer, finish.nodes)


def _require_representable(layer: Layer, q: Quantization) -> None:
    """Every factor is a positive finite float32, and no sum leaves the range of int32."""
    if q.y_scale is not None:
        with np.errstate(over="ignore", under="ignore"):
            factors = (q.x_scale * q.w_scale) / q.y_scale
        if not np.all(np.isfinite(factors) & (factors > 0)):
            bad = factors[~(np.isfinite(factors) & (factors > 0))][0]
            raise NotMappedError("x_scale * w_scale / y_scale", bad, "a positive float32")
    limits = np.iinfo(layer.input_dtype)
    widest = max(int(limits.max) - q.x_zp, q.x_zp - int(limits.min))
    sums = np.abs(layer.cells.astype(np.int64)).sum(axis=0) * widest
    if layer.bias is not None:
        sums = sums + np.abs(layer.bias.astype(np.int64))
    if sums.max() > INT32.max:
        raise NotMappedError("the largest sum", int(sums.max()), f"<= {INT32.max} (int32)")


# --- DequantizeLinear and QuantizeLinear ---


def _dequantized_input(graph: Graph, value: str) -> Input:
    node = graph.dequantize(value)
    if node is None:
        made_by = graph.producer.get(value)
        maker = "a graph input or constant" if made_by is None else f"made by {made_by.operator}"
        raise NotMappedError(
            f"input '{value}'", maker, "the output of a DequantizeLinear, as the weights are"
        )
    refuse_blocks(node)
    return Input(
        node.input(0),
        _scale(graph, node.input(1), "x_scale"),
        _zero_point(graph, node.input(2), "x_zero_point"),
    )


def _quantize_node(graph: Graph, value: str) -> Node:
    node = graph.sole_consumer(value)
    if node is not None and node.operator == "QuantizeLinear" and node.input(0) == value:
        refuse_blocks(node)
        return node
    if value in graph.outputs:
        found = "a graph output"
    elif node is not None:
        found = f"used by {node.operator} '{node.name}'"
    else:
        found = f"used {len(graph.consumers(value))} times"
    raise OnlySumsError(f"value '{value}'", found, "used by one QuantizeLinear alone")


def _scale(graph: Graph, value: str, role: str) -> np.float32:
    """The one scale of an activation tensor."""
    array = positive(required_constant(graph, value, role), role)
    if array.size != 1:
        raise NotMappedError(f"{role}'s number of elements", array.size, "1")
    return np.float32(array.reshape(-1)[0])


def _zero_point(graph: Graph, value: str, role: str) -> int:
    """The one zero point of an activation tensor; 0 where it is left out."""
    if not value:
        return 0
    array = required_constant(graph, value, role)
    if array.size != 1:
        raise NotMappedError(f"{role}'s number of elements", array.size, "1")
    return int(array.reshape(-1)[0])


def weight_numbers(
    graph: Graph, source: Node, values: NDArray[Any], axis: int
) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Scales and zero points of the weights' DequantizeLinear, 1 or K each."""
    refuse_blocks(source)
    scale = positive(required_constant(graph, source.input(1), "w_scale"), "w_scale")
    zero_point = np.zeros(scale.shape, dtype=np.int32)
    if source.input(2):
        zero_point = required_constant(graph, source.input(2), "w_zero_point").astype(np.int32)
    if max(scale.size, zero_point.size) > 1:
        stated = source.attribute("axis", 1)
        if stated not in (axis, axis - values.ndim):
            raise NotMappedError("the axis of w_scale", stated, f"{axis} (the output channels)")
    _require_channels(scale, "w_scale", values.shape[axis])
    _require_channels(zero_point, "w_zero_point", values.shape[axis])
    return scale.reshape(-1), zero_point.reshape(-1)


def _vector(
    graph: Graph, value: str, role: str, values: NDArray[Any], geometry: Geometry
) -> NDArray[Any]:
    """A scale or zero point of weights that one operator takes itself, 1 or K elements."""
    array = required_constant(graph, value, role)
    if role == "w_scale":
        positive(array, role)
    _require_channels(array, role, values.shape[geometry.axis])
    return array.reshape(-1)


def _require_channels(array: NDArray[Any], role: str, channels: int) -> None:
    if array.size != 1 and not (array.size == channels and array.shape[-1] == channels):
        raise NotMappedError(
            f"the shape of {role}", shown(array.shape), f"1 or {channels} elements"
        )
