"""Gemm in every form, as a Gemm with one constant matrix on the right, nothing transposed, and a row vector as C."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_operands import row_vector
from cim.codegen.onnx_rewrite import Replacement

# What a quantized layer can have as its own before the QuantizeLinear, and treats all elements alike.
ACTIVATIONS = ("Relu", "LeakyRelu", "Clip")


def gemm(graph: Graph, node: Node) -> Replacement | None:
    """Replaces a Gemm with transA, with its constant on the left, or with a C that is no row vector.

    The constant may stand behind a DequantizeLinear if the other operand does too. What C is then, its layer finds out.
    """
    a, b, c = (node.input(i) for i in range(3))
    beta = float(node.attribute("beta", 1.0))
    c = c if beta != 0 else ""
    on_left = _is_matrix(graph, a) and not _is_matrix(graph, b)
    if not (on_left or _is_matrix(graph, b)) or graph.type(node.outputs[0]).dtype != np.float32:
        return None
    y_shape = graph.type(node.outputs[0]).shape
    if y_shape is None or any(len(graph.type(v).shape or ()) != 2 for v in (a, b)):
        return None
    made = Replacement(graph, node)
    quantized = not graph.is_constant(a if on_left else b)
    if on_left:
        if quantized and graph.dequantize(b) is None:
            return None
        return _from_left(made, c, beta, y_shape, quantized)
    turn_a = bool(node.attribute("transA", 0))
    apart = bool(c) and not quantized and not _is_row(graph, c, y_shape)
    if not (turn_a or apart):
        return None
    inputs = [turned(made, a) if turn_a else a, b]
    if c and not apart:
        inputs.append(c)
    y = _product(made, inputs, beta, turn_b=bool(node.attribute("transB", 0)))
    made.end(_plus(made, y, c, beta) if apart else y, node.outputs[0])
    return made


def _from_left(
    made: Replacement, c: str, beta: float, y_shape: tuple[int, ...], quantized: bool
) -> Replacement | None:
    """(A B + C)^T = B^T A^T + C^T, and transposed back: behind the QuantizeLinear, where one follows."""
    graph, node = made.graph, made.node
    turn_x = not node.attribute("transB", 0)
    turn_w = not node.attribute("transA", 0)
    inputs = [turned(made, node.input(1)) if turn_x else node.input(1), node.input(0)]
    constant = graph.constant(c) if c else None
    apart = bool(c) and not quantized and constant is None
    if constant is not None:
        try:
            across = np.broadcast_to(constant, y_shape).T
        except ValueError:
            return None
        apart = not quantized and row_vector(across, y_shape[::-1]) is None
        if not apart:
            inputs.append(made.constant(across, "c"))
    elif c and quantized:
        addend = _turned_addend(made, c)
        if addend is None:
            return None
        inputs.append(addend)
    y = _product(made, inputs, beta, turn_w)
    output = node.outputs[0]
    if quantized:
        for after in _up_to_quantize(graph, output):
            attributes = {a.name: helper.get_attribute_value(a) for a in after.proto.attribute}
            others = list(after.proto.input)[1:]
            y = made.add(after.operator, [y, *others], name=after.name, **attributes)
            made.also.append(after)
            output = after.outputs[0]
    y = made.add("Transpose", [y], perm=[1, 0])
    made.end(_plus(made, y, c, beta) if apart else y, output)
    return made


def _product(made: Replacement, inputs: list[str], beta: float, turn_b: bool) -> str:
    """The Gemm itself, under the node's name."""
    alpha = float(made.node.attribute("alpha", 1.0))
    return made.add("Gemm", inputs, name=made.node.name, alpha=alpha, beta=beta, transA=0, transB=int(turn_b))  # fmt: skip


def _plus(made: Replacement, y: str, c: str, beta: float) -> str:
    """The sum y + beta * c."""
    if beta != 1:
        c = made.add("Mul", [c, made.constant(np.array(beta, np.float32), "beta")])
    return made.add("Add", [y, c])


def _is_row(graph: Graph, c: str, y_shape: tuple[int, ...]) -> bool:
    constant = graph.constant(c)
    return constant is not None and row_vector(constant, y_shape) is not None


def _is_matrix(graph: Graph, value: str) -> bool:
    """A constant, or the DequantizeLinear of one."""
    source = graph.dequantize(value)
    return graph.is_constant(value if source is None else source.input(0))


def _up_to_quantize(graph: Graph, value: str) -> list[Node]:
    """The QuantizeLinear that alone uses `value`, with activations before it; none where elements are not treated alike."""
    found: list[Node] = []
    while (node := graph.sole_consumer(value)) is not None:
        others = [name for name in node.proto.input[1:] if name]
        if node.input(0) != value or not all(_is_number(graph, name) for name in others):
            break
        found.append(node)
        if node.operator == "QuantizeLinear":
            return found
        if node.operator not in ACTIVATIONS:
            break
        value = node.outputs[0]
    return []


def _is_number(graph: Graph, value: str) -> bool:
    constant = graph.constant(value)
    return constant is not None and constant.size == 1


def _has_many_scales(graph: Graph, source: Node) -> bool:
    """Whether a DequantizeLinear has more scales than one, or may have."""
    shape = graph.type(source.input(1)).shape
    return shape is None or int(np.prod(shape)) != 1 or bool(source.attribute("block_size", 0))


def turned(made: Replacement, value: str) -> str:
    """A transposed matrix; before its DequantizeLinear, where it has one, so that the layer finds that."""
    source = made.graph.dequantize(value)
    if source is None or _has_many_scales(made.graph, source):
        return made.add("Transpose", [value], perm=[1, 0])
    integers = made.add("Transpose", [source.input(0)], perm=[1, 0])
    return made.add("DequantizeLinear", [integers, *source.proto.input[1:]])


def _turned_addend(made: Replacement, value: str) -> str | None:
    """A transposed C of any shape; constant integers, where it has them, so that the layer finds those."""
    graph = made.graph
    shape = graph.type(value).shape
    if shape is None or len(shape) > 2:
        return None
    source = graph.dequantize(value)
    stored = None if source is None else graph.constant(source.input(0))
    if source is not None and stored is not None and not source.attribute("block_size", 0):
        axes: dict[str, Any] = {}
        if _has_many_scales(graph, source):
            if not shape:
                return None
            axes = {"axis": 1 - (source.attribute("axis", 1) % len(shape) + 2 - len(shape))}
        across = stored.reshape((1,) * (2 - len(shape)) + shape).T if shape else stored
        integers = made.constant(across, "c")
        return made.add("DequantizeLinear", [integers, *source.proto.input[1:]], **axes)
    if len(shape) == 2:
        return made.add("Transpose", [value], perm=[1, 0])
    return made.reshape(value, (*shape, 1)) if shape else value
