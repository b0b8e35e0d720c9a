"""Float layers: Conv, Gemm and MatMul with constant float32 weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.layer import Layer
from cim.codegen.onnx_affine import affine_after
from cim.codegen.onnx_geometry import Geometry, geometry_of
from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_operands import (
    Match,
    channel_bias,
    fused_activation,
    required_constant,
    row_vector,
    without_zeros,
)
from cim.codegen.onnx_reasons import NotMappedError, shown

FLOAT = np.dtype(np.float32)


def float_layer(graph: Graph, node: Node) -> Match:
    """The layer of a Conv, Gemm or MatMul, with what its weights take in and a fused activation.

    Raises `NotMappedError` for what cannot run on the cores.
    """
    x = node.input(0)
    weights = required_constant(graph, node.input(1), "weights")
    for role, dtype in (("input", graph.type(x).dtype), ("weights", weights.dtype)):
        if dtype != FLOAT:
            raise NotMappedError(f"the type of the {role}", dtype or "not known", "float32")
    geometry = geometry_of(graph, node, x, weights)
    bias = _bias(graph, node, geometry)
    matrix = geometry.hwio(weights)
    if node.operator == "Gemm":
        matrix = matrix * np.float32(node.attribute("alpha", 1.0))
    axis = 1 if geometry.layout == "NCHW" else len(geometry.output_shape) - 1
    affine = affine_after(graph, node.outputs[0], geometry.output_shape, axis)
    fused = fused_activation(graph, affine.value, geometry.output_shape, axis)
    scale, shift = affine.scale * fused.scale, affine.shift * fused.scale + fused.shift
    if np.any(scale != 1):
        matrix = (matrix * scale).astype(FLOAT)
    if affine.nodes or fused.scale != 1 or fused.shift != 0:
        bias = ((0 if bias is None else bias) * scale + shift).astype(FLOAT)
    layer = Layer(
        name=node.name,
        operator=node.operator,
        layout=geometry.layout,
        input_name=x,
        output_name=fused.value,
        input_shape=geometry.input_shape,
        output_shape=geometry.output_shape,
        input_dtype=FLOAT,
        output_dtype=FLOAT,
        weights=matrix,
        bias=None if bias is None else without_zeros(bias),
        strides=geometry.strides,
        dilations=geometry.dilations,
        pads=geometry.pads,
        groups=geometry.groups,
        activation=fused.activation,
        quantization=None,
    )
    return Match(layer, (node, *affine.nodes, *fused.nodes))


def _bias(graph: Graph, node: Node, geometry: Geometry) -> NDArray[Any] | None:
    """The third operand of Conv [K] or Gemm (anything that is the same in every row)."""
    name = node.input(2)
    beta = float(node.attribute("beta", 1.0)) if node.operator == "Gemm" else 1.0
    if not name or beta == 0.0:
        return None
    if node.operator != "Gemm":
        return channel_bias(graph, name, geometry.output_shape[1], FLOAT)
    bias = required_constant(graph, name, "bias")
    row = row_vector(bias, geometry.output_shape)
    if row is None:
        found = f"C of shape {shown(bias.shape)}"
        raise NotMappedError(found, "different from row to row", "one row vector")
    return (row * np.float32(beta)).astype(FLOAT)
