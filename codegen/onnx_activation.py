"""The activation behind a matrix operator, where the layer can have it as its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

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

    `axis` is the channel axis of the value's `shape`. A HardSigmoid has scale and shift of its own, and a clip those
    of the arithmetic behind it. HardSwish and PRelu may be one operator, or the arithmetic that it stands for.
    """
    node = graph.sole_consumer(value)
    found = (
        _spelled_out(graph, value, shape, axis)
        if node is None
        else _one(graph, node, value, shape, axis)
    )
    return found or Fused(Activation(), (), value)


def _one(graph: Graph, node: Node, value: str, shape: tuple[int, ...], axis: int) -> Fused | None:
    """The activation that one node is, and for a clip the arithmetic behind it."""
    if node.input(0) != value:
        return None
    scale, shift = 1.0, 0.0
    activation: Activation | None
    if node.operator == "HardSigmoid":
        scale = float(node.attribute("alpha", 0.2))
        shift = float(node.attribute("beta", 0.5))
        activation = Activation("clip", low=0.0, high=1.0)
    elif node.operator == "PRelu":
        constant = graph.constant(node.input(1))
        activation = None if constant is None else _slopes(constant, shape, axis)
    else:
        activation = _activation(graph, node)
    if activation is None or not np.isfinite([scale, shift]).all():
        return None
    fused = Fused(activation, (node,), node.outputs[0], scale, shift)
    return _with_arithmetic(graph, fused, shape, axis) if activation.kind == "clip" else fused


def _with_arithmetic(graph: Graph, clip: Fused, shape: tuple[int, ...], axis: int) -> Fused:
    """A clip that takes in arithmetic behind it, as in the Clip(x + 3, 0, 6) / 6 of a hard sigmoid.

    Factor and addend must be one number each for all channels, and the factor positive.
    """
    while (node := graph.sole_consumer(clip.value)) is not None:
        step = affine_step(graph, node, clip.value, shape, axis)
        if step is None or any(np.any(numbers != numbers[0]) for numbers in step):
            break
        factor, moved = float(step[0][0]), float(step[1][0])
        low, high = clip.activation.low * factor + moved, clip.activation.high * factor + moved
        numbers = np.array([clip.scale * factor, clip.shift * factor + moved, low, high])
        given = [clip.scale, clip.shift, clip.activation.low, clip.activation.high]
        with np.errstate(over="ignore"):
            kept = np.isfinite(numbers.astype(np.float32)) == np.isfinite(given)
        if not (factor > 0 and kept.all()):
            break
        activation = Activation("clip", low=low, high=high)
        clip = Fused(activation, (*clip.nodes, node), node.outputs[0], numbers[0], numbers[1])
    return clip


def _spelled_out(graph: Graph, value: str, shape: tuple[int, ...], axis: int) -> Fused | None:
    """A HardSwish or PRelu in arithmetic, whose first nodes, two, alone use `value`."""
    uses = graph.consumers(value)
    if len(uses) != 2 or value in graph.outputs:
        return None
    for first, second in (uses, uses[::-1]):
        found = _hard_swish(graph, value, shape, axis, first, second)
        found = found or _two_relus(graph, shape, axis, first, second)
        if found is not None:
            return found
    return None


def _two_relus(
    graph: Graph, shape: tuple[int, ...], axis: int, above: Node, negated: Node
) -> Fused | None:
    """A PRelu as Relu(x) - slopes * Relu(-x), with the factor -slopes, as Keras has it."""
    if above.operator != "Relu" or negated.operator != "Neg":
        return None
    below = graph.sole_consumer(negated.outputs[0])
    if below is None or below.operator != "Relu":
        return None
    product = graph.sole_consumer(below.outputs[0])
    if product is None or product.operator != "Mul":
        return None
    total = graph.sole_consumer(product.outputs[0])
    if total is None or total.operator != "Add":
        return None
    if graph.sole_consumer(above.outputs[0]) is not total:
        return None
    first = product.input(0) == below.outputs[0]
    factor = graph.constant(product.input(1) if first else product.input(0))
    activation = None if factor is None else _slopes(-factor, shape, axis)
    if activation is None:
        return None
    return Fused(activation, (above, negated, below, product, total), total.outputs[0])


def _hard_swish(
    graph: Graph, value: str, shape: tuple[int, ...], axis: int, start: Node, product: Node
) -> Fused | None:
    """A HardSwish as a product of `value` with a clipped straight line of it, both of which alone use it.

    As in x * HardSigmoid(x) and x * Clip(x + 3, 0, 6) / 6; the constant factors may stand anywhere.
    """
    line = affine_after(graph, value, shape, axis, start)
    node = graph.sole_consumer(line.value) if line.nodes else start
    clip = None if node is None else _one(graph, node, line.value, shape, axis)
    if clip is None or clip.activation.kind != "clip":
        return None
    if product.operator != "Mul" or graph.sole_consumer(clip.value) is not product:
        return None
    slope, offset = line.scale * clip.scale, line.shift * clip.scale + clip.shift
    nodes = (*line.nodes, *clip.nodes, product)
    for factor, behind in _factors_behind(graph, product.outputs[0], shape, axis):
        if _is_hard_swish(slope, offset, clip.activation, factor):
            nodes = (*nodes, *behind)
            return Fused(Activation("hard_swish"), nodes, nodes[-1].outputs[0])
    return None


def _factors_behind(
    graph: Graph, value: str, shape: tuple[int, ...], axis: int
) -> Iterator[tuple[NDArray[np.float64], tuple[Node, ...]]]:
    """Factor 1 by no node, and that of the node that alone uses `value`, if it multiplies with constants."""
    yield np.ones(1), ()
    node = graph.sole_consumer(value)
    step = None if node is None else affine_step(graph, node, value, shape, axis)
    if node is not None and step is not None and not np.any(step[1]):
        yield step[0], (node,)


def _is_hard_swish(
    slope: NDArray[np.float64], offset: NDArray[np.float64], clip: Activation, factor: NDArray[np.float64]
) -> bool:  # fmt: skip
    """Whether clip(slope * x + offset) * factor is what HardSwish multiplies x with, to float32."""
    wanted = (SLOPE, OFFSET, 0, 1)
    with np.errstate(all="ignore"):
        found = [
            (number * factor).astype(np.float32) for number in (slope, offset, clip.low, clip.high)
        ]
    return all(np.all(one == np.float32(own)) for one, own in zip(found, wanted, strict=True))


def _slopes(numbers: NDArray[Any], shape: tuple[int, ...], axis: int) -> Activation | None:
    """A PRelu whose slopes are one a channel."""
    slopes = channel_vector(numbers, shape, axis)
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
