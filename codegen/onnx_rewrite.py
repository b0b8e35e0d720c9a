"""Rewrites matrix operators into the forms that become layers, with glue for the host around them.

Such forms are a product with one constant matrix on the right, and a convolution. What they are made
from: constants on the left, one matrix for each entry of a batch, transposed inputs, transposed
convolutions, a Pad before a convolution. Every rewriter gives the same numbers as the node that it
replaces, or leaves it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from cim.codegen.onnx_graph import Graph, Node


class Replacement:
    """The nodes and constants that take the place of one node; names start with the node's own.

    `also` are further nodes of the graph that it stands for.
    """

    def __init__(self, graph: Graph, node: Node) -> None:
        self.graph = graph
        self.node = node
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.also: list[Node] = []

    def constant(self, array: NDArray[Any], role: str) -> str:
        """Adds a constant; its name."""
        name = self._fresh(role)
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def add(
        self, operator: str, inputs: Iterable[str], name: str = "", domain: str = "", **attributes: Any
    ) -> str:  # fmt: skip
        """Adds a node; the name of what it makes, a new one. Its own name is `name`, or the same new one."""
        output = self._fresh(operator)
        made = helper.make_node(operator, list(inputs), [output], name or output, domain=domain, **attributes)  # fmt: skip
        self.nodes.append(made)
        return output

    def reshape(self, value: str, shape: Iterable[int]) -> str:
        """`value` with another shape."""
        return self.add("Reshape", [value, self.constant(np.array([*shape], np.int64), "shape")])

    def end(self, value: str, output: str) -> None:
        """Gives `value`, made by the last node, the name `output`."""
        assert self.nodes[-1].output[0] == value
        self.nodes[-1].output[0] = output

    def _fresh(self, role: str) -> str:
        number = len(self.nodes) + len(self.constants)
        return self.graph.unused(f"{self.node.name}/{role}_{number}")


Rewriter = Callable[[Graph, Node], Replacement | None]


def rewritten(
    graph: Graph, rewriters: dict[str, Rewriter], infer: Callable[[onnx.ModelProto], onnx.ModelProto]
) -> Graph:  # fmt: skip
    """The graph with every node replaced for which there is a replacement, and so on; `infer` finds shapes anew.

    Nodes that are to be on the host stay.
    """
    while (changed := _once(graph, rewriters, infer)) is not graph:
        graph = changed
    return graph


def _once(
    graph: Graph, rewriters: dict[str, Rewriter], infer: Callable[[onnx.ModelProto], onnx.ModelProto]
) -> Graph:  # fmt: skip
    """All replacements of one pass; the graph itself where there are none."""
    made: dict[Node, Replacement] = {}
    dropped: set[Node] = set()
    for node in graph.nodes:
        rewrite = rewriters.get(node.operator)
        if rewrite is None or node.name in graph.host or node in dropped:
            continue
        replacement = rewrite(graph, node)
        if replacement is not None:
            made[node] = replacement
            dropped.update(replacement.also)
    if not made:
        return graph
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    del model.graph.node[:]
    origins = dict(graph.origins)
    for node in graph.nodes:
        if node in made:
            origin = graph.origins.get(node.name, node.name)
            origins.update((proto.name, origin) for proto in made[node].nodes)
            model.graph.node.extend(made[node].nodes)
            model.graph.initializer.extend(made[node].constants)
        elif node not in dropped:
            model.graph.node.append(node.named_proto())
    return Graph(infer(model), graph.path, graph.host, graph.given, origins)
