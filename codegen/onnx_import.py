"""ONNX models to units: layers for the CIM cores, and nodes for the host, with the reason."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import onnx

from cim.codegen.layer import Layer
from cim.codegen.onnx_control import host_work
from cim.codegen.onnx_custom import QGEMM
from cim.codegen.onnx_float import float_layer
from cim.codegen.onnx_graph import Graph, Node
from cim.codegen.onnx_load import load_graph, with_more_on_host
from cim.codegen.onnx_operands import Match
from cim.codegen.onnx_quantized import integer_layer, qdq_layer, qgemm_layer, qlinear_layer
from cim.codegen.onnx_reasons import INT32_OUTPUT, NotMappedError, Reason, Why
from cim.codegen.onnx_transposed import conv_transpose


@dataclass(frozen=True, eq=False)
class HostNode:
    """A node that the host runs, why, and its multiply-accumulates (0 for glue)."""

    node: Node
    reason: Reason
    macs: int


@dataclass(frozen=True, eq=False)
class LayerUnit:
    """A layer for the CIM cores and the nodes that it replaces."""

    layer: Layer
    nodes: tuple[Node, ...]


Unit = HostNode | LayerUnit


@dataclass(frozen=True, eq=False)
class Imported:
    """A model as units in topological order. Nodes that no output needs are left out."""

    graph: Graph
    units: tuple[Unit, ...]

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers in topological order."""
        return tuple(unit.layer for unit in self.units if isinstance(unit, LayerUnit))

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the whole model."""
        return sum(u.layer.macs if isinstance(u, LayerUnit) else u.macs for u in self.units)


def import_model(
    source: str | os.PathLike[str] | onnx.ModelProto,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, tuple[int, ...]] | None = None,
    host: Collection[str] = (),
    narrow: bool = False,
) -> Imported:
    """Read a model, from a file or from memory, and find the layers that the CIM cores can run.

    `host` names matrix operators that stay on the host. `dims` fixes symbolic dimensions (`--dim`), `input_shapes` inputs
    (`--input-shape`). `narrow` is for machines with narrow partial sums, whose layers cannot give int32. Raises
    `CimError` as `load_graph` does; a node that cannot be mapped is no error.
    """
    return import_graph(load_graph(source, dims, input_shapes, host), narrow)


def import_graph(graph: Graph, narrow: bool = False) -> Imported:
    """The units of a graph that has been read; `narrow` as for `import_model`.

    Nodes of the model whose rewritten form has a part that cannot be mapped stay on the host in their own form.
    """
    found = _units(graph)
    while refused := _refused(found, narrow):
        graph = with_more_on_host(graph, refused)
        found = _units(graph)
    return found


def _refused(found: Imported, narrow: bool) -> dict[str, Why]:
    """The nodes of the model as it was given that must not be rewritten, or not be layers, and why."""
    origins = found.graph.origins
    refused: dict[str, Why] = {}
    for unit in found.units:
        if isinstance(unit, LayerUnit):
            name, q = unit.layer.name, unit.layer.quantization
            if narrow and q is not None and q.y_scale is None:
                refused[origins.get(name, name)] = INT32_OUTPUT
        elif unit.node.name in origins and unit.reason.why is not None:
            refused[origins[unit.node.name]] = unit.reason.why
    return refused


def _units(graph: Graph) -> Imported:
    """The layers and host nodes of the graph as it is."""
    matches: dict[Node, Match] = {}
    reasons: dict[Node, Reason] = {}
    for node in graph.nodes:
        try:
            match = _recognize(graph, node)
        except NotMappedError as problem:
            reasons[node] = Reason(node.name, node.operator, problem.why)
        else:
            if match is not None:
                matches[node] = match
    replaced = {node for match in matches.values() for node in match.nodes}
    needed = _needed(graph, matches, replaced)
    # A layer stands where the last of its nodes stood: its input is made, its output not yet read.
    last = {match.nodes[-1]: match for match in matches.values()}
    units: list[Unit] = []
    for node in graph.nodes:
        if node in last:
            units.append(LayerUnit(last[node].layer, last[node].nodes))
        elif node not in replaced and node in needed:
            macs, otherwise = host_work(graph, node)
            reason = reasons.get(node, Reason(node.name, node.operator, otherwise=otherwise))
            units.append(HostNode(node, reason, macs))
    return Imported(graph, tuple(units))


def _recognize(graph: Graph, node: Node) -> Match | None:
    """The layer at a matrix operator; None for other operators. Raises `NotMappedError`."""
    find = RECOGNIZED.get(node.operator)
    if find is not None and node.name in graph.host:
        raise NotMappedError(*graph.host[node.name])
    return find(graph, node) if find is not None else None


def _conv_transpose(graph: Graph, node: Node) -> Match:
    """A ConvTranspose that could not be rewritten: says why."""
    conv_transpose(graph, node)
    raise AssertionError(f"{node.name} can be rewritten")


def _float_or_qdq(graph: Graph, node: Node) -> Match:
    quantized = graph.dequantize(node.input(1)) is not None
    return qdq_layer(graph, node) if quantized else float_layer(graph, node)


RECOGNIZED: dict[str, Callable[[Graph, Node], Match]] = {
    "Conv": _float_or_qdq,
    "ConvTranspose": _conv_transpose,
    "Gemm": _float_or_qdq,
    "MatMul": _float_or_qdq,
    "QLinearConv": qlinear_layer,
    "QLinearMatMul": qlinear_layer,
    "ConvInteger": integer_layer,
    "MatMulInteger": integer_layer,
    QGEMM: qgemm_layer,
}


def _needed(graph: Graph, matches: dict[Node, Match], replaced: set[Node]) -> set[Node]:
    """The host nodes whose values an output, a layer or another needed node reads."""
    wanted = set(graph.outputs) | {match.layer.input_name for match in matches.values()}
    needed = set()
    for node in reversed(graph.nodes):
        if node not in replaced and wanted.intersection(node.outputs):
            needed.add(node)
            wanted.update(node.reads)
    return needed
