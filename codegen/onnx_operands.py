"""Operands and neighbours of a matrix operator: constants, row vectors, the Add behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cim.codegen.layer import Layer
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


def added_operand(graph: Graph, value: str) -> tuple[Node, str] | None:
    """The Add that alone uses `value`, and its other operand."""
    node = graph.sole_consumer(value)
    if node is None or node.operator != "Add":
        return None
    other = node.input(1) if node.input(0) == value else node.input(0)
    return node, other
