"""The activation behind a matrix operator, where the layer can have it as its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cim.codegen.layer import Activation
from cim.codegen.onnx_affine import affine_after, affine_step, channel_vector
from cim.codegen.onnx_graph import Graph, Node

# HardSwish is x * clip(SLOPE * x + OFFSET, 0, 1).
SLOPE, OFFSET = 1 / 6, 1 / 2


@dataclass(frozen=True)
class Fused:
    """An activation, the nodes that it stands for, and the value after it.

    It works on sum * scale + shift, which a float layer's weights and bias take in.
    """

    activation: Activation
    nodes: tuple[Node, ...]
    value: str
    scale: float = 1.0
    shift: float = 0.0


def fused_activation(graph: Graph, value: str, shape: tuple[int, ...], axis: int) -> Fused:
    """The Relu, LeakyRelu, PRelu, Clip, HardSigmoid or HardSwish that alone uses `value`, else no activation.

    `axis` is the channel axis of the value's `shape`. A HardSigmoid has scale and shift of its own. A HardSwish may
    be one operator, or the arithmetic that it stands for.
    """
    node = graph.sole_consumer(value)
    found = (
        _spelled_out(graph, value, shape, axis)
        if node is None
        else _one(graph, node, value, shape, axis)
    )
    return found or Fused(Activation(), (), value)


def _one(graph: Graph, node: Node, value: str, shape: tuple[int, ...], axis: int) -> Fused | None:
    """The activation that one node is."""
    if node.input(0) != value:
        return None
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
        return None
    return Fused(activation, (node,), node.outputs[0], scale, shift)


def _spelled_out(graph: Graph, value: str, shape: tuple[int, ...], axis: int) -> Fused | None:
    """A HardSwish as a product of `value` with a clipped straight line of it, both of which alone use it.

    As in x * HardSigmoid(x) and x * Clip(x + 3, 0, 6) / 6; the constant factors may stand anywhere.
    """
    uses = graph.consumers(value)
    if len(uses) != 2 or value in graph.outputs:
        return None
    for start, product in (uses, uses[::-1]):
        line = affine_after(graph, value, shape, axis, start)
        node = graph.sole_consumer(line.value) if line.nodes else start
        clip = None if node is None else _one(graph, node, line.value, shape, axis)
        if clip is None or clip.activation.kind != "clip":
            continue
        factor = affine_after(graph, clip.value, shape, axis)
        if product.operator != "Mul" or graph.sole_consumer(factor.value) is not product or np.any(factor.shift):  # fmt: skip
            continue
        nodes = [*line.nodes, *clip.nodes, *factor.nodes, product]
        whole = factor.scale
        behind = graph.sole_consumer(product.outputs[0])
        for last in (None, behind):
            if last is not None:
                step = affine_step(graph, last, product.outputs[0], shape, axis)
                if step is None or np.any(step[1]):
                    break
                nodes, whole = [*nodes, last], whole * step[0]
            if _is_hard_swish(line.scale * clip.scale, line.shift * clip.scale + clip.shift, clip.activation, whole):  # fmt: skip
                return Fused(Activation("hard_swish"), tuple(nodes), nodes[-1].outputs[0])
    return None


def _is_hard_swish(
    slope: NDArray[np.float64], offset: NDArray[np.float64], clip: Activation, factor: NDArray[np.float64]
) -> bool:  # fmt: skip
    """Whether clip(slope * x + offset) * factor is what HardSwish multiplies x with, to float32."""
    with np.errstate(all="ignore"):
        numbers = np.stack([slope * factor, offset * factor, clip.low * factor, clip.high * factor])
        found = numbers.astype(np.float32)
    return bool(np.all(found == np.array([[SLOPE], [OFFSET], [0], [1]], np.float32)))


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
