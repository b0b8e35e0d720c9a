"""A product that stands in a model twice, once with something added, is computed once.

As tf2onnx has x W and x W + 3 of a Dense without bias and with a hard swish: it takes the 3 for the bias of the second.
"""

from __future__ import annotations

import onnx
from onnx import helper

from cim.codegen.onnx_graph import STANDARD_DOMAINS


def share_products(model: onnx.ModelProto) -> None:
    """Makes of each Gemm(x, W, C) beside a MatMul(x, W), with W constant, an Add of C to the MatMul, in place."""
    graph = model.graph
    constants = {tensor.name for tensor in graph.initializer}
    products = {
        tuple(node.input): node
        for node in graph.node
        if _is(node, "MatMul") and node.input[1] in constants
    }
    nodes: dict[str, onnx.NodeProto] = {}  # by the first value that each makes, if any
    for at, node in enumerate(graph.node):
        product = products.get(tuple(node.input[:2])) if _adds(node) else None
        if product is not None:
            nodes.setdefault(product.output[0], product)
            inputs = [product.output[0], node.input[2]]
            nodes[node.output[0]] = helper.make_node("Add", inputs, node.output, node.name)
        else:
            nodes.setdefault(next(filter(None, node.output), f"none of node {at}"), node)
    kept = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes.values()]
    del graph.node[:]
    graph.node.extend(kept)


def _is(node: onnx.NodeProto, operator: str) -> bool:
    return node.op_type == operator and node.domain in STANDARD_DOMAINS


def _adds(node: onnx.NodeProto) -> bool:
    """Whether it is A B + C, nothing transposed or scaled."""
    if not _is(node, "Gemm") or len(node.input) < 3 or not node.input[2]:
        return False
    numbers = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    plain = {"transA": 0, "transB": 0, "alpha": 1.0, "beta": 1.0}
    return all(numbers.get(name, own) == own for name, own in plain.items())
