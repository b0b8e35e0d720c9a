"""What a float layer's weights and bias take in: BatchNormalization, and arithmetic with constants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.onnx_graph import Graph, Node

FLOAT = np.dtype(np.float32)


@dataclass(frozen=True)
class Affine:
    """Per output channel: sum * scale + shift, float64 [K]; the nodes that say so, and the value after them."""

    scale: NDArray[np.float64]
    shift: NDArray[np.float64]
    nodes: tuple[Node, ...]
    value: str

    @property
    def scales(self) -> bool:
        """Whether any scale is not 1."""
        return bool(np.any(self.scale != 1))


def affine_after(
    graph: Graph, value: str, output_shape: tuple[int, ...], axis: int, first: Node | None = None
) -> Affine:
    """The longest chain of foldable nodes from `value` on, each the only user of the one before.

    `first` is a user of `value` to begin with, although there are others. `axis` is the channel axis of `output_shape`.
    Computed in float64 and rounded once by the caller.
    """
    channels = output_shape[axis]
    scale, shift = np.ones(channels), np.zeros(channels)
    nodes: list[Node] = []
    node = first or graph.sole_consumer(value)
    while node is not None:
        step = affine_step(graph, node, value, output_shape, axis)
        if step is None:
            break
        with np.errstate(all="ignore"):
            new_scale, new_shift = scale * step[0], shift * step[0] + step[1]
            rounded = (new_scale.astype(FLOAT), new_shift.astype(FLOAT))
        if not all(np.isfinite(numbers).all() for numbers in rounded):
            break
        scale, shift = new_scale, new_shift
        nodes.append(node)
        value = node.outputs[0]
        node = graph.sole_consumer(value)
    return Affine(scale, shift, tuple(nodes), value)


Step = tuple[NDArray[np.float64], NDArray[np.float64]]


def affine_step(
    graph: Graph, node: Node, value: str, shape: tuple[int, ...], axis: int
) -> Step | None:  # fmt: skip
    """Scale and shift of one node; None where it is no such node."""
    channels = shape[axis]
    one, zero = np.ones(channels), np.zeros(channels)
    if node.operator == "BatchNormalization":
        return _batch_normalization(graph, node, value, shape, axis)
    if node.operator not in ("Add", "Sub", "Mul", "Div") or len(node.proto.input) != 2:
        return None
    first = node.input(0) == value
    other = graph.constant(node.input(1) if first else node.input(0))
    if other is None or other.dtype != FLOAT:
        return None
    vector = channel_vector(other, shape, axis)
    if vector is None:
        return None
    numbers = vector.astype(np.float64)
    if node.operator == "Add":
        return one, numbers
    if node.operator == "Sub":
        return (one, -numbers) if first else (-one, numbers)
    if node.operator == "Mul":
        return numbers, zero
    with np.errstate(all="ignore"):
        return (1 / numbers, zero) if first else None


def _batch_normalization(
    graph: Graph, node: Node, value: str, shape: tuple[int, ...], axis: int
) -> Step | None:
    """(x - mean) / sqrt(var + epsilon) * scale + B, along axis 1 as ONNX has it."""
    if node.input(0) != value or axis % len(shape) != 1 or len(node.outputs) != 1:
        return None
    if node.attribute("training_mode", 0) or not node.attribute("spatial", 1):
        return None
    numbers = [graph.constant(node.input(i)) for i in range(1, 5)]
    for array in numbers:
        if array is None or array.dtype != FLOAT or array.shape != (shape[axis],):
            return None
    gamma, beta, mean, variance = (np.asarray(array, np.float64) for array in numbers)
    with np.errstate(all="ignore"):
        scale = gamma / np.sqrt(variance + float(node.attribute("epsilon", 1e-5)))
        return scale, beta - mean * scale


def channel_vector(array: NDArray[Any], shape: tuple[int, ...], axis: int) -> NDArray[Any] | None:
    """The numbers that a constant operand means for each channel, [K]; None where they differ elsewhere.

    None also where the operand would make a larger value than `shape`.
    """
    if array.ndim > len(shape):
        return None
    sizes = (1,) * (len(shape) - array.ndim) + array.shape
    if any(size not in (1, full) for size, full in zip(sizes, shape, strict=True)):
        return None
    array = array.reshape(sizes)
    axis %= len(shape)
    for other in range(len(shape)):
        if other != axis and array.shape[other] > 1:
            if not np.array_equal(array, np.broadcast_to(array.take([0], other), array.shape)):
                return None
            array = array.take([0], other)
    return np.broadcast_to(array.reshape(-1), (shape[axis],)).copy()
