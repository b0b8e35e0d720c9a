"""An ONNX graph as the importer reads it: who makes and uses a value, its type, its constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from cim.codegen.onnx_reasons import Why
from cim.diagnostics import error

STANDARD_DOMAINS = ("", "ai.onnx")


@dataclass(frozen=True)
class TensorType:
    """What is known of a value before it is computed: None where it is not known."""

    dtype: np.dtype[Any] | None
    shape: tuple[int, ...] | None


@dataclass(frozen=True, eq=False)
class Node:
    """A node. `name` is unique in the graph; a node without one is called OPERATOR_INDEX."""

    name: str
    proto: onnx.NodeProto

    @property
    def operator(self) -> str:
        """The operator's type, with its domain where that is not the standard one."""
        if self.proto.domain in STANDARD_DOMAINS:
            return str(self.proto.op_type)
        return f"{self.proto.domain}.{self.proto.op_type}"

    def named_proto(self) -> onnx.NodeProto:
        """The node under its unique name: onnxruntime refuses models in which two have the same."""
        proto = onnx.NodeProto()
        proto.CopyFrom(self.proto)
        proto.name = self.name
        return proto

    @property
    def outputs(self) -> tuple[str, ...]:
        """The values that it makes; optional ones that are left out are not listed."""
        return tuple(name for name in self.proto.output if name)

    def input(self, index: int) -> str:
        """The name of input `index`; empty where it is left out."""
        return str(self.proto.input[index]) if index < len(self.proto.input) else ""

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Every value that it needs, with repetitions, those used inside its subgraphs included."""
        captured = [name for graph in subgraphs(self.proto) for name in _free_names(graph)]
        return tuple(name for name in self.proto.input if name) + tuple(captured)

    def attribute(self, name: str, default: Any = None) -> Any:
        """The value of an attribute: a number, bytes, or a list of them."""
        for attribute in self.proto.attribute:
            if attribute.name == name:
                return helper.get_attribute_value(attribute)
        return default


class Graph:
    """A checked model with fixed input shapes, all data loaded, constants folded to initializers.

    `nodes` are the live ones, those that an output needs, in topological order. `inputs` are the
    values that a run must give; an input with an initializer is a constant. `host` names the nodes that
    stay on the host as they are, and says why. `given` is the model before nodes were rewritten, for comparing;
    `origins` has for the name of each node that rewriting made the one of the node in `given` that it came from.
    """

    def __init__(
        self, model: onnx.ModelProto, path: str, host: Mapping[str, Why] | None = None,
        given: onnx.ModelProto | None = None, origins: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.model = model
        self.path = path
        self.host = host or {}
        self.origins = origins or {}
        self.given = model if given is None else given
        graph = model.graph
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.sparse = {tensor.values.name: tensor for tensor in graph.sparse_initializer}
        self.inputs = tuple(v.name for v in graph.input if v.name not in self.initializers)
        self.outputs = tuple(v.name for v in graph.output)
        self._values = {v.name: v for v in (*graph.value_info, *graph.output, *graph.input)}
        self._decoded: dict[str, NDArray[Any]] = {}
        every = _named(graph.node)
        self._every = every
        self.producer = {name: node for node in every for name in node.outputs}
        self.nodes = tuple(self._live(every))
        self._uses: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in node.reads:
                self._uses.setdefault(name, []).append(node)

    def named_model(self) -> onnx.ModelProto:
        """The whole model as it was given, its nodes under their unique names."""
        model = onnx.ModelProto()
        model.CopyFrom(self.given)
        del model.graph.node[:]
        model.graph.node.extend(node.named_proto() for node in _named(self.given.graph.node))
        return model

    def _live(self, nodes: list[Node]) -> list[Node]:
        needed = set(self.outputs)
        live = []
        for node in reversed(nodes):
            if needed.intersection(node.outputs):
                live.append(node)
                needed.update(node.reads)
        return live[::-1]

    def consumers(self, value: str) -> list[Node]:
        """The live nodes that use a value, one entry per use."""
        return self._uses.get(value, [])

    def sole_consumer(self, value: str) -> Node | None:
        """The node that alone uses a value, once; None where others do, or it is a graph output."""
        uses = self.consumers(value)
        return uses[0] if len(uses) == 1 and value not in self.outputs else None

    def dequantize(self, value: str) -> Node | None:
        """The DequantizeLinear that makes a value; None where it is not made by one."""
        node = self.producer.get(value)
        return node if node is not None and node.operator == "DequantizeLinear" else None

    def is_constant(self, value: str) -> bool:
        """Whether `constant` knows it."""
        return value in self.initializers

    def constant(self, value: str) -> NDArray[Any] | None:
        """The array behind a constant value, None for any other value.

        Raises `CimError` for data that does not fit its own shape and type.
        """
        if value not in self.initializers:
            return None
        if value not in self._decoded:
            self._decoded[value] = _to_array(self.initializers[value], self.path)
        return self._decoded[value]

    def type(self, value: str) -> TensorType:
        """Element type and shape of a value."""
        if value in self.initializers:
            tensor = self.initializers[value]
            return TensorType(_dtype(tensor.data_type), tuple(tensor.dims))
        info = self._values.get(value)
        if info is None or info.type.WhichOneof("value") != "tensor_type":
            return TensorType(None, None)
        return TensorType(_dtype(info.type.tensor_type.elem_type), fixed_shape(info))

    def unused(self, name: str) -> str:
        """`name`, or something like it, that no node or value has, nor had in `given`, and that was not given before."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    @cached_property
    def _taken(self) -> set[str]:
        given = _named(self.given.graph.node)
        names = {node.name for node in (*self._every, *given)} | set(self._values) | {""}
        return names.union(names_in(self.model.graph), names_in(self.given.graph))

    def declare(self, value: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        """Say what a value is that no node of the model makes, but a layer or host node that was added."""
        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        self._values[value] = helper.make_tensor_value_info(value, element, shape)

    def declare_constant(self, value: str, array: NDArray[Any]) -> str:
        """Add a constant for nodes that were added; its name."""
        self.initializers[value] = numpy_helper.from_array(array, value)
        return value

    def value_info(self, value: str) -> onnx.ValueInfoProto:
        """Name, type and shape as a subgraph that takes or gives this value must declare them.

        Raises `CimError` where the type is not known, as after an operator that ONNX does not
        define.
        """
        info = self._values.get(value)
        known = info is not None and info.type.WhichOneof("value") is not None
        if known and not self.is_constant(value):
            return info
        found = self.type(value)
        if found.dtype is None:
            node = self.producer.get(value)
            maker = f", made by {node.operator} '{node.name}'," if node is not None else ""
            raise error(
                f"the type of value '{value}'{maker} is not known",
                where=self.path,
                notes=["declare it in the model's value_info"],
            )
        element = helper.np_dtype_to_tensor_dtype(found.dtype)
        return helper.make_tensor_value_info(value, element, found.shape)


def fixed_shape(info: onnx.ValueInfoProto) -> tuple[int, ...] | None:
    """The shape of a tensor value; None where any dimension or the rank is unknown."""
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return None
    dims = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim)
    return None if any(d < 0 for d in dims) else dims


def _named(protos: Any) -> list[Node]:
    counts: dict[str, int] = {}
    for proto in protos:
        counts[proto.name] = counts.get(proto.name, 0) + 1
    taken = set(counts)
    nodes = []
    for index, proto in enumerate(protos):
        name = proto.name
        if not name or counts[name] > 1:
            name = f"{name or proto.op_type}_{index}"
            while name in taken:
                name += "_"
            taken.add(name)
        nodes.append(Node(name, proto))
    return nodes


def subgraphs(proto: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs among a node's attributes."""
    for attribute in proto.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def names_in(graph: onnx.GraphProto) -> Iterator[str]:
    """Every name of a node or value in a graph and in the subgraphs of its nodes."""
    yield from (value.name for value in (*graph.input, *graph.output))
    yield from (tensor.name for tensor in graph.initializer)
    yield from (tensor.values.name for tensor in graph.sparse_initializer)
    for node in graph.node:
        yield from (node.name, *node.input, *node.output)
        for inner in subgraphs(node):
            yield from names_in(inner)


def _free_names(graph: onnx.GraphProto) -> Iterator[str]:
    """The names that a subgraph takes from outside."""
    known = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    known |= {t.values.name for t in graph.sparse_initializer}
    for node in graph.node:
        inner = [name for sub in subgraphs(node) for name in _free_names(sub)]
        for name in (*node.input, *inner):
            if name and name not in known:
                yield name
        known.update(node.output)
    for output in graph.output:
        if output.name not in known:
            yield output.name


def _to_array(tensor: onnx.TensorProto, path: str) -> NDArray[Any]:
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError) as problem:
        raise error(f"constant '{tensor.name}' cannot be read: {problem}", where=path) from problem


def _dtype(element: int) -> np.dtype[Any] | None:
    try:
        dtype: np.dtype[Any] = np.dtype(helper.tensor_dtype_to_np_dtype(element))
    except KeyError:
        return None
    return dtype
