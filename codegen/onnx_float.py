"""Float layers: Conv, Gemm and MatMul with constant float32 weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.layer import Activation, Layer
from cim.codegen.onnx_activation import Fused, fused_activation
from cim.codegen.onnx_affine import affine_after
from cim.codegen.onnx_geometry import Geometry, geometry_of
from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_operands import (
    Match,
    channel_bias,
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
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = matrix * np.float32(node.attribute("alpha", 1.0))
        if np.isfinite(matrix).all() and not np.isfinite(scaled).all():
            raise NotMappedError("alpha", node.attribute("alpha"), "so that alpha * B is finite")
        matrix = scaled
    axis = 1 if geometry.layout == "NCHW" else len(geometry.output_shape) - 1
    taken = _taken_in(graph, node.outputs[0], matrix, bias, geometry.output_shape, axis)
    fused = taken.fused
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
        weights=taken.matrix,
        bias=None if taken.bias is None else without_zeros(taken.bias),
        strides=geometry.strides,
        dilations=geometry.dilations,
        pads=geometry.pads,
        groups=geometry.groups,
        activation=fused.activation,
        quantization=None,
    )
    return Match(layer, (node, *taken.nodes, *fused.nodes))


@dataclass(frozen=True)
class _TakenIn:
    """Weights and bias with what follows the sum in them, the nodes that it was, and the activation behind."""

    matrix: NDArray[Any]
    bias: NDArray[Any] | None
    nodes: tuple[Node, ...]
    fused: Fused


def _taken_in(
    graph: Graph, value: str, matrix: NDArray[Any], bias: NDArray[Any] | None,
    shape: tuple[int, ...], axis: int,
) -> _TakenIn:  # fmt: skip
    """Folds arithmetic and activation into weights and bias; nothing where finite ones would become infinite."""
    affine = affine_after(graph, value, shape, axis)
    fused = fused_activation(graph, affine.value, shape, axis)
    scale, shift = affine.scale * fused.scale, affine.shift * fused.scale + fused.shift
    if not affine.nodes and fused.scale == 1 and fused.shift == 0:
        return _TakenIn(matrix, bias, (), fused)
    with np.errstate(over="ignore", invalid="ignore"):
        folded = (matrix * scale).astype(FLOAT)
        moved = ((0 if bias is None else bias) * scale + shift).astype(FLOAT)
    if np.isfinite(folded).all() and np.isfinite(moved).all():
        return _TakenIn(folded, moved, affine.nodes, fused)
    plain = fused_activation(graph, value, shape, axis)
    if plain.scale != 1 or plain.shift != 0:
        plain = Fused(Activation(), (), value)
    return _TakenIn(matrix, bias, (), plain)


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
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = (row * np.float32(beta)).astype(FLOAT)
    if np.isfinite(row).all() and not np.isfinite(scaled).all():
        raise NotMappedError("beta", beta, "so that beta * C is finite")
    return scaled
