"""A quantized layer whose float result others read: integer sums on the cores, scaled on the host.

That is a Conv, Gemm or MatMul between DequantizeLinear nodes that no QuantizeLinear follows at once, as before the Add
of a residual block where that is quantized as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from cim.codegen.onnx_geometry import geometry_of
from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_quantized import BYTES, qdq_layer, weight_numbers
from cim.codegen.onnx_reasons import NotMappedError, OnlySumsError
from cim.codegen.onnx_rewrite import Replacement

KEPT = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


def unquantized(graph: Graph, node: Node) -> Replacement | None:
    """Replaces such a node by ConvInteger or MatMulInteger, Cast, Mul and Add; None for any other."""
    x, w = (graph.dequantize(node.input(i)) for i in (0, 1))
    if x is None or w is None:
        return None
    if node.operator == "MatMul" and not _is_plain(graph, node):
        return _product(graph, node)
    try:
        qdq_layer(graph, node)
    except OnlySumsError:
        pass
    except NotMappedError:
        return None  # which the importer reports
    else:
        return None
    weights = graph.constant(w.input(0))
    x_scale = graph.constant(x.input(1))
    assert weights is not None  # or there was another reason
    assert x_scale is not None
    if weights.dtype not in BYTES or graph.type(x.input(0)).dtype not in BYTES:
        return None
    axis = geometry_of(graph, node, x.input(0), weights).axis
    scale, zero_point = weight_numbers(graph, w, weights, axis)
    made = Replacement(graph, node)
    alpha = beta = 1.0
    attributes: dict[str, Any] = {}
    if node.operator == "Conv":
        operator, along = "ConvInteger", (-1, *[1] * (weights.ndim - 2))
        attributes = {n: v for n in KEPT if (v := node.attribute(n)) is not None}
    else:
        operator, along = "MatMulInteger", (-1,)
        alpha, beta = float(node.attribute("alpha", 1.0)), float(node.attribute("beta", 1.0))
        weights = weights.T if axis == 0 else weights
    zero = zero_point if zero_point.size > 1 else zero_point.reshape(())
    inputs = [x.input(0), made.constant(weights, "weights"), x.input(2)]
    inputs[2] = inputs[2] or made.constant(np.zeros((), graph.type(x.input(0)).dtype), "zero_point")
    inputs.append(made.constant(zero.astype(weights.dtype), "zero_point"))
    sums = made.add(operator, inputs, name=node.name, **attributes)
    floats = made.add("Cast", [sums], to=onnx.TensorProto.FLOAT)
    factor = np.float32(alpha) * x_scale.reshape(()) * scale
    y = made.add("Mul", [floats, made.constant(factor.reshape(along), "factor")])
    bias = node.input(2)
    if bias and beta != 0:
        if node.operator == "Conv":
            bias = made.reshape(bias, along)
        if beta != 1:
            bias = made.add("Mul", [bias, made.constant(np.array(beta, np.float32), "beta")])
        y = made.add("Add", [y, bias])
    made.end(y, node.outputs[0])
    return made


def _is_plain(graph: Graph, node: Node) -> bool:
    """Whether a MatMul of dequantized operands has one constant matrix on the right, and more than a vector on the left."""
    right = graph.producer[node.input(1)].input(0)
    ranks = [len(graph.type(value).shape or ()) for value in node.proto.input]
    return graph.is_constant(right) and ranks[0] >= 2 and ranks[1] == 2


def _product(graph: Graph, node: Node) -> Replacement | None:
    """A MatMulInteger of the operands as they are, whichever is constant, Cast and Mul; None without 8-bit operands."""
    sources = [graph.producer[value] for value in node.proto.input]
    constant = [graph.is_constant(source.input(0)) for source in sources]
    if constant[0] == constant[1]:
        return None
    made = Replacement(graph, node)
    inputs, zeros = [source.input(0) for source in sources], []
    factor = np.ones((), np.float32)
    other_rank = len(graph.type(node.input(1)).shape or ())
    for place, source in enumerate(sources):
        element, shape = graph.type(source.input(0)).dtype, graph.type(source.input(0)).shape
        if element not in BYTES or not shape:
            return None
        axis = max(len(shape) - 2 + place, 0)
        stored = graph.constant(source.input(0))
        try:
            scale, zero = weight_numbers(
                graph, source, np.empty(shape) if stored is None else stored, axis
            )
        except NotMappedError:
            return None
        if max(scale.size, zero.size) > 1 and (stored is None or len(shape) == 1):
            return None
        # Scales of the left operand are one a row of the product, which has columns unless a vector is on the right.
        along = (-1, 1) if place == 0 and scale.size > 1 and other_rank > 1 else (-1,)
        factor = factor * scale.reshape(along if scale.size > 1 else ())
        zeros.append(
            made.constant(
                zero.reshape(() if zero.size == 1 else (-1,)).astype(element), "zero_point"
            )
        )
    sums = made.add("MatMulInteger", [*inputs, *zeros], name=node.name)
    floats = made.add("Cast", [sums], to=onnx.TensorProto.FLOAT)
    y = made.add("Mul", [floats, made.constant(factor, "factor")])
    made.end(y, node.outputs[0])
    return made
