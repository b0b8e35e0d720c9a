"""Control flow and recurrent operators, which run on the host: why, and their multiply-accumulates."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, shape_inference

from cim.codegen.onnx_geometry import multiply_accumulates
from cim.codegen.onnx_graph import STANDARD_DOMAINS, Graph, Node, TensorType
from cim.codegen.onnx_reasons import CONTROL_FLOW, NO_MATRIX, RECURRENT, STEPS_NOT_KNOWN

RECURRENT_OPERATORS = ("GRU", "LSTM", "RNN")
# What exporters give a Loop that only its condition ends.
NO_LIMIT = np.iinfo(np.int32).max


def host_work(graph: Graph, node: Node) -> tuple[int, str]:
    """The multiply-accumulates of a node, and why it is on the host if it is no matrix operator.

    Those of a body are counted once a step, or once where the number of steps is not known; a Loop has its most steps.
    Of an If the branch with more of them counts.
    """
    macs, known = _count(graph, node)
    if node.operator in RECURRENT_OPERATORS:
        return macs, RECURRENT
    if node.operator in BODIES:
        return macs, CONTROL_FLOW if known else STEPS_NOT_KNOWN
    return macs, NO_MATRIX


def _count(graph: Graph, node: Node) -> tuple[int, bool]:
    """The multiply-accumulates of a node, and whether the number of steps of each body in it is known."""
    if node.operator in RECURRENT_OPERATORS:
        return _recurrent(graph, node), True
    if node.operator not in BODIES:
        return multiply_accumulates(graph, node), True
    steps = _steps(graph, node)
    totals, known = [], steps is not None
    for name in BODIES[node.operator]:
        body = _body(graph, node, node.attribute(name))
        counts = [_count(body, inner) for inner in body.nodes]
        totals.append(sum(macs for macs, _ in counts))
        known = known and all(exact for _, exact in counts)
    return max(totals) * (1 if steps is None else steps), known


BODIES = {"If": ("then_branch", "else_branch"), "Loop": ("body",), "Scan": ("body",)}


def _recurrent(graph: Graph, node: Node) -> int:
    """Every step multiplies the input with W [directions, gates x hidden, input], and the state with R; 0 where shapes are unknown."""
    x, w, r = (graph.type(node.input(i)).shape for i in range(3))
    if not x or not w or not r:
        return 0
    vectors = x[0] * x[1]  # steps and batch, in either layout
    return vectors * int(np.prod(w, dtype=np.int64) + np.prod(r, dtype=np.int64))


def _steps(graph: Graph, node: Node) -> int | None:
    """How often the body runs; None where it is not known."""
    if node.operator == "If":
        return 1
    if node.operator == "Scan":
        scanned = _scanned(graph, node)
        if not scanned:
            return None
        value, axis = scanned[0]
        shape = graph.type(value).shape
        return None if shape is None else shape[axis]
    begins = graph.constant(node.input(1)) if node.input(1) else None
    if begins is not None and not begins.any():
        return 0
    most = graph.constant(node.input(0)) if node.input(0) else None
    if most is None or most.size != 1 or most.item() >= NO_LIMIT:
        return None
    return max(int(most.item()), 0)


def _scanned(graph: Graph, node: Node) -> list[tuple[str, int]]:
    """The inputs that a Scan goes through, with the axis of each; none for that of opset 8, which has a batch too."""
    opset = max(o.version for o in graph.model.opset_import if o.domain in STANDARD_DOMAINS)
    count = node.attribute("num_scan_inputs")
    if opset < 9:
        return []
    axes = node.attribute("scan_input_axes") or [0] * count
    return list(zip(list(node.proto.input)[-count:], axes, strict=True))


def _body(graph: Graph, node: Node, body: onnx.GraphProto) -> Graph:
    """A subgraph as a graph of its own, with the shapes that it meets in the first step."""
    own = onnx.GraphProto()
    own.CopyFrom(body)
    for value, found in zip(own.input, _given(graph, node), strict=False):
        if found.shape is not None and found.dtype is not None:
            value.CopyFrom(_info(value.name, found))
    known = {v.name for v in own.input} | {t.name for t in own.initializer}
    for name in dict.fromkeys(node.reads):
        found = graph.type(name)
        if name in known:
            continue
        if graph.is_constant(name):
            own.initializer.append(graph.initializers[name])
        elif found.dtype is not None:
            own.input.append(_info(name, found))
    del own.value_info[:]
    given = {value.name: value for value in own.input}
    for output in own.output:
        if output.name in given:  # a value that is passed on
            output.CopyFrom(given[output.name])
        elif output.type.WhichOneof("value") == "tensor_type":
            output.type.tensor_type.ClearField("shape")
    model = helper.make_model(own, opset_imports=graph.model.opset_import)
    return Graph(shape_inference.infer_shapes(model, data_prop=True), graph.path)


def _given(graph: Graph, node: Node) -> list[TensorType]:
    """Types of the inputs of a subgraph, as far as the node's own say so."""
    if node.operator == "If":
        return []
    if node.operator == "Loop":
        counter = TensorType(np.dtype(np.int64), ())
        going = TensorType(np.dtype(np.bool_), ())
        return [counter, going, *(graph.type(name) for name in list(node.proto.input)[2:])]
    scanned = _scanned(graph, node)
    if not scanned:
        return []
    states = list(node.proto.input)[: len(node.proto.input) - len(scanned)]
    return [graph.type(name) for name in states] + [
        _slice(graph.type(name), axis) for name, axis in scanned
    ]


def _slice(whole: TensorType, axis: int) -> TensorType:
    if whole.shape is None:
        return whole
    axis %= len(whole.shape)
    return TensorType(whole.dtype, whole.shape[:axis] + whole.shape[axis + 1 :])


def _info(name: str, found: TensorType) -> onnx.ValueInfoProto:
    assert found.dtype is not None
    element = helper.np_dtype_to_tensor_dtype(found.dtype)
    return helper.make_tensor_value_info(name, element, found.shape)
