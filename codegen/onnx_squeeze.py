"""A Squeeze or Transpose behind a convolution moves behind the element-wise operators that follow it, which a layer can take in.

TensorFlow has 1-D convolutions as 2-D ones of height 1, and takes the height out before bias and activation; channels are last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_rewrite import Replacement

CONVOLUTIONS = ("Conv", "ConvTranspose")
# Their constants are broadcast, and become what they would be before the Squeeze or Transpose.
BROADCAST = ("Add", "Sub", "Mul", "Div", "PRelu")
# All that work on each element alone and that a float or quantized layer takes in, with the QuantizeLinear behind them.
# Their other inputs are one number each and stay as they are, as do those of BatchNormalization, along axis 1.
UNIFORM = ("Relu", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish", "Neg", "QuantizeLinear")
# What makes of an array that has the rank of the value behind a node that of the value before it.
Undo = Callable[[NDArray[Any]], NDArray[Any]]


def squeeze_later(graph: Graph, node: Node) -> Replacement | None:
    """Moves a Squeeze of spatial axes behind what follows it; None where nothing does that it can be moved behind."""
    shape = graph.type(node.input(0)).shape
    axes = _squeezed_axes(graph, node)
    if shape is None or axes is None or min(axes) < 2 or not _follows_convolution(graph, node):
        return None
    return _moved(graph, node, lambda array: np.expand_dims(array, tuple(axes)), True)


def transpose_later(graph: Graph, node: Node) -> Replacement | None:
    """Moves a Transpose likewise, also one behind a Squeeze."""
    shape = graph.type(node.input(0)).shape
    if shape is None or not _follows_convolution(graph, node):
        return None
    order = list(node.attribute("perm") or range(len(shape))[::-1])
    back = tuple(int(axis) for axis in np.argsort(order))
    return _moved(graph, node, lambda array: array.transpose(back), order[1:2] == [1])


def _follows_convolution(graph: Graph, node: Node) -> bool:
    """Whether a convolution makes the input, which nothing else uses; a Squeeze may be in between."""
    source = graph.producer.get(node.input(0))
    if source is None or graph.sole_consumer(node.input(0)) is not node:
        return False
    if source.operator == "Squeeze" and node.operator == "Transpose":
        return _follows_convolution(graph, source)
    return source.operator in CONVOLUTIONS


def _moved(graph: Graph, node: Node, undo: Undo, keeps_channels: bool) -> Replacement | None:
    """`node` behind the element-wise nodes that follow it; those along axis 1 only if it `keeps_channels` there."""
    shape = graph.type(node.outputs[0]).shape
    if shape is None:
        return None
    moved = _followers(graph, node.outputs[0], shape, keeps_channels)
    if not moved:
        return None
    made = Replacement(graph, node)
    whole = {node.outputs[0]: node.input(0)}  # before the node, by the name behind it
    for follower in moved:
        made.also.append(follower)
        proto = follower.named_proto()
        for place, name in enumerate(proto.input):
            if name in whole:
                proto.input[place] = whole[name]
            elif follower.operator in BROADCAST:
                proto.input[place] = _before(made, name, len(shape), undo)
        (value,) = follower.outputs
        proto.output[0] = whole[value] = graph.unused(f"{follower.name}/before")
        made.nodes.append(proto)
    for follower in moved:
        (value,) = follower.outputs
        if value in graph.outputs or any(n not in moved for n in graph.consumers(value)):
            made.nodes.append(_again(made, whole[value], value))
    return made


def _squeezed_axes(graph: Graph, node: Node) -> list[int] | None:
    """The axes, counted from 0; None where they are not known."""
    shape = graph.type(node.input(0)).shape
    if shape is None:
        return None
    stated = graph.constant(node.input(1)) if node.input(1) else node.attribute("axes")
    if node.input(1) and stated is None:
        return None
    if stated is None:
        stated = [axis for axis, size in enumerate(shape) if size == 1]
    return sorted({int(axis) % len(shape) for axis in stated}) or None


def _followers(
    graph: Graph, start: str, shape: tuple[int, ...], keeps_channels: bool
) -> list[Node]:
    """The element-wise nodes that work on `start` and constants alone, in order.

    Where one user of a value is no such node, none of its users is moved: the Squeeze or Transpose is needed there anyway.
    """
    ends = set(graph.outputs)  # values that must have their shape
    while True:
        reached, moved = {start} - ends, []
        for node in graph.nodes:
            if node.operator == "BatchNormalization" and not keeps_channels:
                continue
            if reached.intersection(node.reads) and _is_elementwise(graph, node, reached, shape):
                moved.append(node)
                reached.update(set(node.outputs) - ends)
        needed = {v for v in reached if any(user not in moved for user in graph.consumers(v))}
        if not needed:
            return moved
        ends |= needed


def _is_elementwise(graph: Graph, node: Node, reached: set[str], shape: tuple[int, ...]) -> bool:
    """Whether the node maps values of that shape, and constants, to one of that shape."""
    arrays = [graph.constant(name) for name in node.proto.input if name and name not in reached]
    if len(node.outputs) != 1 or any(array is None for array in arrays):
        return False
    shapes = [array.shape for array in arrays if array is not None]
    first, others = node.input(0) in reached, reached.intersection(node.proto.input[1:])
    if node.operator in BROADCAST:
        return (first or node.operator != "PRelu") and all(_broadcasts(s, shape) for s in shapes)
    if not first or others:
        return False
    if node.operator == "BatchNormalization":
        return bool(node.attribute("spatial", 1))
    return node.operator in UNIFORM and all(int(np.prod(s)) == 1 for s in shapes)


def _broadcasts(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether a constant of shape `own` leaves `shape` what it is."""
    try:
        return np.broadcast_shapes(own, shape) == shape
    except ValueError:
        return False


def _before(made: Replacement, name: str, rank: int, undo: Undo) -> str:
    """A constant that broadcasts to the value of that rank, as one that broadcasts to the value before."""
    array = made.graph.constant(name)
    assert array is not None  # as for every operand of a follower
    if array.ndim == 0:
        return name
    aligned = array.reshape((1,) * (rank - array.ndim) + array.shape)
    return made.constant(undo(aligned), "constant")


def _again(made: Replacement, value: str, output: str) -> onnx.NodeProto:
    """The Squeeze or Transpose again, of another value; the first keeps its name."""
    proto = made.node.named_proto()
    if any(other.name == proto.name for other in made.nodes):
        proto.name = made.graph.unused(f"{proto.name}/{output}")
    proto.input[0], proto.output[0] = value, output
    return proto
