"""Operands and neighbours of a matrix operator: constants, row vectors, fused activations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.layer import Activation, Layer
from cim.codegen.onnx_affine import channel_vector
from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_reasons import NotMappedError, shown


@dataclass(frozen=True)
class Match:
    """A layer and the nodes that it replaces, in topological order."""

    layer: Layer
    nodes: tuple[Node, ...]


def required_constant(graph: Graph, value: str, role: str) -> NDArray[Any]:
    """The array of a constant operand. Raises `NotMappedError` where it is made at run time."""
    array = graph.constant(value) if value else None
    if array is None:
        who = f"{role} '{value}'" if value else role
        raise NotMappedError(who, "computed at run time" if value else "missing", "constant")
    return array


def channel_bias(graph: Graph, value: str, channels: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The bias of a convolution, [K]. Raises `NotMappedError` for another shape or type."""
    bias = required_constant(graph, value, "bias")
    if bias.dtype != dtype:
        raise NotMappedError("the type of the bias", bias.dtype, dtype)
    if bias.shape != (channels,):
        raise NotMappedError("the shape of the bias", shown(bias.shape), channels)
    return bias


def row_vector(array: NDArray[Any], output_shape: tuple[int, ...]) -> NDArray[Any] | None:
    """What an operand adds to every row [K] of an output [..., K]; None where rows differ.

    None also where the operand does not broadcast to the output.
    """
    try:
        rows = np.broadcast_to(array, output_shape).reshape(-1, output_shape[-1])
    except ValueError:
        return None
    return rows[0].copy() if np.array_equal(rows, np.broadcast_to(rows[0], rows.shape)) else None


def without_zeros(bias: NDArray[Any]) -> NDArray[Any] | None:
    """A bias; None for one that is all zero."""
    return bias if np.any(bias) else None


@dataclass(frozen=True)
class Fused:
    """An activation, the nodes that it stands for (none or one), and the value after it.

    It works on sum * scale + shift, which a float layer's weights and bias take in.
    """

    activation: Activation
    nodes: tuple[Node, ...]
    value: str
    scale: float = 1.0
    shift: float = 0.0


def fused_activation(graph: Graph, value: str, shape: tuple[int, ...], axis: int) -> Fused:
    """The Relu, LeakyRelu, PRelu, Clip, HardSigmoid or HardSwish that alone uses `value`, else no activation.

    `axis` is the channel axis of the value's `shape`. A HardSigmoid has scale and shift of its own.
    """
    node = graph.sole_consumer(value)
    if node is None or node.input(0) != value:
        return Fused(Activation(), (), value)
    scale, shift = 1.0, 0.0
    activation: Activation | None
    if node.operator == "HardSigmoid":
        scale = float(node.attribute("alpha", 0.2))
        shift = float(node.attribute("beta", 0.5))
        activation = Activation("clip", low=0.0, high=1.0)
    elif node.operator == "PRelu":
        activation = _slopes(graph, node, shape, axis)
    else:
        activation = _activation(graph, node)
    if activation is None or not np.isfinite([scale, shift]).all():
        return Fused(Activation(), (), value)
    return Fused(activation, (node,), node.outputs[0], scale, shift)


def _slopes(graph: Graph, node: Node, shape: tuple[int, ...], axis: int) -> Activation | None:
    """A PRelu whose constant slopes are one a channel."""
    constant = graph.constant(node.input(1))
    slopes = channel_vector(constant, shape, axis) if constant is not None else None
    if slopes is None or slopes.dtype != np.float32 or not np.isfinite(slopes).all():
        return None
    if np.all(slopes == slopes[0]):
        return Activation("leaky_relu", alpha=float(slopes[0]))
    return Activation("leaky_relu", slopes=tuple(slopes.tolist()))


def _activation(graph: Graph, node: Node) -> Activation | None:
    if node.operator == "Relu":
        return Activation("relu")
    if node.operator == "HardSwish":
        return Activation("hard_swish")
    if node.operator == "LeakyRelu":
        alpha = float(node.attribute("alpha", float(np.float32(0.01))))
        return Activation("leaky_relu", alpha=alpha) if np.isfinite(alpha) else None
    if node.operator == "Clip":
        low = _bound(graph, node, 1, "min", -np.inf)
        high = _bound(graph, node, 2, "max", np.inf)
        if low is None or high is None:
            return None
        return Activation("clip", low=low, high=high)
    return None


def _bound(graph: Graph, node: Node, index: int, name: str, missing: float) -> float | None:
    """A bound of Clip: an attribute up to opset 10, an optional input since; None if not constant.

    The largest float32, the attributes' default, counts as no bound.
    """
    bound = missing
    if node.input(index):
        array = graph.constant(node.input(index))
        if array is None or array.size != 1 or array.dtype != np.float32:
            return None
        bound = float(array.reshape(-1)[0])
    elif node.attribute(name) is not None:
        bound = float(node.attribute(name))
    if np.isnan(bound):
        return None
    return missing if abs(bound) >= np.finfo(np.float32).max and bound * missing > 0 else bound


def added_operand(graph: Graph, value: str) -> tuple[Node, str] | None:
    """The Add that alone uses `value`, and its other operand."""
    node = graph.sole_consumer(value)
    if node is None or node.operator != "Add":
        return None
    other = node.input(1) if node.input(0) == value else node.input(0)
    return node, other
