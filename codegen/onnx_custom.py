"""Operators outside the ONNX standard: their types as onnxruntime knows them, and QGemm as a product."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper

from cim.codegen.onnx_gemm import turned
from cim.codegen.onnx_graph import STANDARD_DOMAINS, Graph, Node
from cim.codegen.onnx_rewrite import Replacement

QGEMM = "com.microsoft.QGemm"


def add_custom_types(model: onnx.ModelProto) -> bool:
    """Declare the types of values that ONNX's inference does not reach, in place; whether there were any.

    That is behind operators of other domains, for which onnxruntime is asked. Where it does not know the
    operator either, they stay unknown.
    """
    graph = model.graph
    if all(node.domain in STANDARD_DOMAINS for node in graph.node):
        return False
    known = {
        value.name
        for value in (*graph.value_info, *graph.output, *graph.input)
        if value.type.tensor_type.elem_type and value.type.tensor_type.HasField("shape")
    }
    missing = [n for node in graph.node for n in node.output if n and n not in known]
    if not missing:
        return False
    asked = onnx.ModelProto()
    asked.CopyFrom(model)
    own = {value.name for value in graph.output}
    asked.graph.output.extend(onnx.ValueInfoProto(name=n) for n in missing if n not in own)
    for output in asked.graph.output:
        if output.name in missing:
            output.ClearField("type")
    found = [info for info in _outputs(asked) if info.name in missing]
    for output in graph.output:
        for info in found:
            if info.name == output.name:
                output.CopyFrom(info)
    stale = {info.name for info in found}
    kept = [info for info in graph.value_info if info.name not in stale]
    del graph.value_info[:]
    graph.value_info.extend([*kept, *(info for info in found if info.name not in own)])
    return bool(found)


def _outputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Name, type and shape of the outputs, for those whose shape onnxruntime knows whole."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # noqa: BLE001  (whatever it is, the types stay unknown, which is reported)
        return []
    made = []
    for output in session.get_outputs():
        element = ELEMENTS.get(output.type)
        if element is not None and all(isinstance(side, int) for side in output.shape):
            made.append(helper.make_tensor_value_info(output.name, element, output.shape))
    return made


ELEMENTS = {
    f"tensor({spelled})": element
    for spelled, element in {
        "float": onnx.TensorProto.FLOAT, "float16": onnx.TensorProto.FLOAT16,
        "double": onnx.TensorProto.DOUBLE, "bool": onnx.TensorProto.BOOL,
        **{kind: getattr(onnx.TensorProto, kind.upper()) for kind in (
            "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "string",
        )},
    }.items()
}  # fmt: skip


def qgemm(graph: Graph, node: Node) -> Replacement | None:
    """Replaces a QGemm with transA, or with a float output: a MatMulInteger, scaled on the host."""
    inputs = [node.input(i) for i in range(9)]
    weights = graph.constant(inputs[3])
    if weights is None or weights.ndim != 2 or len(graph.type(inputs[0]).shape or ()) != 2:
        return None
    turn_a, turn_b = bool(node.attribute("transA", 0)), bool(node.attribute("transB", 0))
    alpha = float(node.attribute("alpha", 1.0))
    made = Replacement(graph, node)
    if inputs[7]:
        if not turn_a:
            return None
        inputs[0] = turned(made, inputs[0])
        y = made.add("QGemm", inputs, node.name, "com.microsoft", alpha=alpha, transA=0, transB=int(turn_b))  # fmt: skip
        made.end(y, node.outputs[0])
        return made
    scales = [graph.constant(inputs[i]) for i in (1, 4)]
    if scales[0] is None or scales[1] is None:
        return None
    x = turned(made, inputs[0]) if turn_a else inputs[0]
    w = made.constant(weights.T, "matrix") if turn_b else inputs[3]
    y = made.add("MatMulInteger", [x, w, inputs[2], inputs[5]], name=node.name)
    if inputs[6]:
        y = made.add("Add", [y, inputs[6]])
    y = made.add("Cast", [y], to=onnx.TensorProto.FLOAT)
    factor = np.float32(alpha) * scales[0].reshape(()) * scales[1].reshape(-1)
    y = made.add("Mul", [y, made.constant(factor.astype(np.float32), "factor")])
    made.end(y, node.outputs[0])
    return made
