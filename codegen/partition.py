"""Cuts a model into steps: layers for the CIM cores, and subgraphs for the host between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import onnx
from onnx import helper

from cim.codegen.layer import Layer
from cim.codegen.onnx_graph import Graph
from cim.codegen.onnx_import import HostNode, Imported, LayerUnit, Unit


@dataclass(frozen=True, eq=False)
class HostStep:
    """A subgraph for the host, an ONNX model of its own. Values have the names of the whole model.

    `nodes` names its nodes; it may have none and only give out constants.
    """

    model: onnx.ModelProto
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    nodes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class LayerStep:
    """A layer; reads `layer.input_name`, makes `layer.output_name`."""

    layer: Layer


Step = HostStep | LayerStep


@dataclass(frozen=True)
class HostEntry:
    """A line of the report: a node on the host, why, its MACs and their share (0 to 1)."""

    name: str
    operator: str
    reason: str
    macs: int
    share: float


@dataclass(frozen=True, eq=False)
class Partition:
    """Steps in an order in which they can run.

    A value is known by its name everywhere: a step's inputs are model inputs or outputs of earlier
    steps. A model output may be a model input. `macs` counts the whole model.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    steps: tuple[Step, ...]
    report: tuple[HostEntry, ...]
    macs: int


def partition(imported: Imported) -> Partition:
    """Schedule the units with as few host subgraphs as possible.

    Raises `CimError` where the type of a value between two steps is not known.
    """
    graph = imported.graph
    groups = min(
        (_schedule(imported.units, host_first) for host_first in (False, True)),
        key=len,
    )
    constants = [name for name in graph.outputs if graph.is_constant(name)]
    if constants and not any(isinstance(group[0], HostNode) for group in groups):
        groups = [*groups, []]
    made_by_host = [
        i for i, group in enumerate(groups) if not group or isinstance(group[0], HostNode)
    ]
    steps: list[Step] = []
    for index, group in enumerate(groups):
        if index in made_by_host:
            extra = constants if index == made_by_host[-1] else []
            steps.append(_host_step(graph, group, _reads(groups[index + 1 :]), extra))
        else:
            steps += [LayerStep(unit.layer) for unit in group if isinstance(unit, LayerUnit)]
    total = imported.macs
    report = tuple(
        HostEntry(
            u.node.name, u.node.operator, str(u.reason), u.macs, u.macs / total if total else 0.0
        )
        for u in imported.units
        if isinstance(u, HostNode)
    )
    return Partition(graph.inputs, graph.outputs, tuple(steps), report, total)


def _unit_reads(unit: Unit) -> tuple[str, ...]:
    return (unit.layer.input_name,) if isinstance(unit, LayerUnit) else unit.node.reads


def _unit_makes(unit: Unit) -> tuple[str, ...]:
    return (unit.layer.output_name,) if isinstance(unit, LayerUnit) else unit.node.outputs


def _reads(groups: Iterable[list[Unit]]) -> set[str]:
    return {name for group in groups for unit in group for name in _unit_reads(unit)}


def _schedule(units: Iterable[Unit], host_first: bool) -> list[list[Unit]]:
    """Groups of host nodes and groups of layers by turns, each as large as what can run allows."""
    waiting = list(units)
    pending = {name for unit in waiting for name in _unit_makes(unit)}
    groups: list[list[Unit]] = []
    host = host_first
    while waiting:
        group: list[Unit] = []
        left: list[Unit] = []
        for unit in waiting:  # in topological order, so one pass finds everything that can run
            is_host = isinstance(unit, HostNode)
            if is_host == host and not pending.intersection(_unit_reads(unit)):
                group.append(unit)
                pending.difference_update(_unit_makes(unit))
            else:
                left.append(unit)
        if group:
            groups.append(group)
        waiting = left
        host = not host
    return groups


def _host_step(
    graph: Graph, group: Iterable[Unit], read_later: set[str], constants: list[str]
) -> HostStep:
    nodes = [unit.node for unit in group if isinstance(unit, HostNode)]
    made = [name for node in nodes for name in node.outputs]
    wanted = read_later | set(graph.outputs)
    outputs = [name for name in made if name in wanted] + constants
    reads = [name for node in nodes for name in node.reads] + constants
    inputs = [name for name in dict.fromkeys(reads) if not _is_held(graph, name)]
    inputs = [name for name in inputs if name not in set(made)]
    model = onnx.ModelProto()
    model.ir_version = graph.model.ir_version
    model.opset_import.extend(graph.model.opset_import)
    model.producer_name = "cim-cc"
    model.graph.CopyFrom(
        helper.make_graph(
            [node.named_proto() for node in nodes],
            graph.model.graph.name or "host",
            [graph.value_info(name) for name in inputs],
            [graph.value_info(name) for name in outputs],
            [t for name, t in graph.initializers.items() if name in reads],
        )
    )
    sparse = [tensor for name, tensor in graph.sparse.items() if name in reads]
    model.graph.sparse_initializer.extend(sparse)
    return HostStep(model, tuple(inputs), tuple(outputs), tuple(node.name for node in nodes))


def _is_held(graph: Graph, name: str) -> bool:
    """Whether the subgraph holds the value itself."""
    return name in graph.initializers or name in graph.sparse
