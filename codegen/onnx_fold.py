"""Constant folding: afterwards every constant that the importer can use is an initializer.

That is Constant and Identity nodes, the shape arithmetic that exporters put before a Reshape (with
fixed input shapes it is constant), and what stands between stored weights and their operator, such
as the QuantizeLinear that a quantizer leaves there, or the arithmetic of a weight normalization.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from cim.codegen.onnx_graph import STANDARD_DOMAINS, fixed_shape

# Softmax is not here: up to opset 12 it is another one than the ReferenceEvaluator computes.
FOLDED = frozenset({
    "Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Clip", "Concat", "Constant", "Cos", "Div", "Equal", "Erf", "Exp",
    "Flatten", "Floor", "Gather", "Gemm", "Greater", "Identity", "Less", "Log", "MatMul", "Max", "Min", "Mod", "Mul", "Neg",
    "Not", "Or", "Pow", "QuantizeLinear", "Reciprocal", "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "ReduceSumSquare", "Reshape", "Round", "Shape", "Sigmoid", "Sign", "Sin", "Slice", "Sqrt",
    "Squeeze", "Sub", "Sum", "Tanh", "Transpose", "Unsqueeze", "Where",
})  # fmt: skip
# A few bytes make anything of these; so they must have a shape that is known, and not too large.
GROWING = frozenset({"ConstantOfShape", "Expand", "Pad", "Range", "Tile"})
# Half a gigabyte of float32: more than any weights, and it can still be computed.
MOST_ELEMENTS = 1 << 27


def fold_constants(model: onnx.ModelProto) -> bool:
    """Replace nodes that can be computed now by initializers of the same name, in place.

    DequantizeLinear stays: it tells a quantized operand. Whether anything was replaced.
    """
    graph = model.graph
    known = _Constants(graph)
    kept = []
    for node in graph.node:
        result = _result(node, known, model) if _foldable(node) and _fits(node, known) else None
        if result is None:
            kept.append(node)
        else:
            known.arrays[node.output[0]] = result
            graph.initializer.append(numpy_helper.from_array(result, node.output[0]))
    changed = len(kept) < len(graph.node)
    del graph.node[:]
    graph.node.extend(kept)
    folded = {tensor.name for tensor in graph.initializer}
    infos = [info for info in graph.value_info if info.name not in folded]
    del graph.value_info[:]
    graph.value_info.extend(infos)
    return changed


def drop_identities(model: onnx.ModelProto) -> None:
    """Take out Identity, and Dropout as it is outside training, in place.

    One that joins a graph input or constant to a graph output stays, and so does one whose value a
    subgraph reads.
    """
    graph = model.graph
    captured = set(_subgraph_text(graph))
    fixed = {v.name for v in (*graph.input, *graph.output)} | {t.name for t in graph.initializer}
    outputs = {value.name for value in graph.output}
    flags = {
        t.name: _to_array(t) for t in graph.initializer if t.data_type == onnx.TensorProto.BOOL
    }
    training = {name: bool(flag.any()) for name, flag in flags.items() if flag is not None}
    uses: dict[str, list[tuple[Any, int]]] = {}
    makers: dict[str, tuple[Any, int]] = {}
    for node in graph.node:
        for place, name in enumerate(node.input):
            uses.setdefault(name, []).append((node.input, place))
        for place, name in enumerate(node.output):
            makers[name] = (node.output, place)
    kept = []
    for node in graph.node:
        if not _passes_on(node, uses, outputs, training) or captured.intersection((node.input[0], node.output[0])):  # fmt: skip
            kept.append(node)
            continue
        source, target = node.input[0], node.output[0]
        if target not in outputs:
            for names, place in uses.pop(target, []):
                names[place] = source
                uses[source].append((names, place))
        elif source not in fixed and source in makers:
            for names, place in (*uses.pop(source, []), makers[source]):
                names[place] = target
                uses.setdefault(target, []).append((names, place))
            makers[target] = makers.pop(source)
        else:
            kept.append(node)
    del graph.node[:]
    graph.node.extend(kept)


def _passes_on(
    node: onnx.NodeProto, uses: dict[str, Any], outputs: set[str], training: dict[str, bool]
) -> bool:
    """Whether the node's one used output is its first input."""
    if node.domain not in STANDARD_DOMAINS or not node.input or not node.input[0]:
        return False
    if node.op_type == "Identity":
        return True
    if node.op_type != "Dropout" or any(name in uses or name in outputs for name in node.output[1:] if name):  # fmt: skip
        return False
    mode = node.input[2] if len(node.input) > 2 else ""
    return not mode or training.get(mode, True) is False


def _subgraph_text(graph: onnx.GraphProto) -> Iterator[str]:
    """Every name that stands in a subgraph of a node."""
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                for deeper in inner.node:
                    yield from (*deeper.input, *deeper.output)
                yield from (value.name for value in inner.output)
                yield from _subgraph_text(inner)


class _Constants:
    """Constants by name, decoded when first asked for, and the fixed shapes of other values."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.tensors = {tensor.name: tensor for tensor in graph.initializer}
        self.arrays: dict[str, NDArray[Any]] = {}
        values = (*graph.value_info, *graph.input, *graph.output)
        self.shapes = {value.name: fixed_shape(value) for value in values}

    def get(self, name: str) -> NDArray[Any] | None:
        """The array of a constant; None for any other value."""
        if name not in self.arrays and name in self.tensors:
            array = _to_array(self.tensors[name])
            if array is not None:
                self.arrays[name] = array
        return self.arrays.get(name)


def _foldable(node: onnx.NodeProto) -> bool:
    known = node.op_type in FOLDED or node.op_type in GROWING
    return node.domain in STANDARD_DOMAINS and known and len(node.output) == 1


def _fits(node: onnx.NodeProto, known: _Constants) -> bool:
    shape = known.shapes.get(node.output[0])
    if shape is None:
        return node.op_type not in GROWING
    return math.prod(shape) <= MOST_ELEMENTS


def _result(node: onnx.NodeProto, known: _Constants, model: onnx.ModelProto) -> NDArray[Any] | None:
    """The value of a node whose inputs are constant; None where they are not."""
    if node.op_type == "Constant":
        return _constant_value(node)
    if node.op_type == "Identity":
        return known.get(node.input[0])
    if node.op_type == "Shape" and known.get(node.input[0]) is None:
        shape = known.shapes.get(node.input[0])
        if shape is None:
            return None
        bounds = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        return np.array(shape[bounds.get("start", 0) : bounds.get("end")], dtype=np.int64)
    feeds = {}
    for name in node.input:
        if name:
            array = known.get(name)
            if array is None:
                return None
            feeds[name] = array
    inputs = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in feeds.items()
    ]
    output = onnx.ValueInfoProto(name=node.output[0])
    alone = helper.make_model(
        helper.make_graph([node], "fold", inputs, [output]),
        opset_imports=model.opset_import,
        ir_version=model.ir_version,
    )
    try:
        return np.asarray(ReferenceEvaluator(alone).run(None, feeds)[0])
    except Exception:  # noqa: BLE001  (a kernel may raise anything; the node then stays as it is)
        return None


def _constant_value(node: onnx.NodeProto) -> NDArray[Any] | None:
    """What a Constant node holds; None for strings and sparse tensors."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return _to_array(attribute.t)
        if attribute.name in ("value_float", "value_floats"):
            return np.array(helper.get_attribute_value(attribute), dtype=np.float32)
        if attribute.name in ("value_int", "value_ints"):
            return np.array(helper.get_attribute_value(attribute), dtype=np.int64)
    return None


def _to_array(tensor: onnx.TensorProto) -> NDArray[Any] | None:
    """The array of a tensor; None for strings and for data that does not fit its shape."""
    if tensor.data_type == onnx.TensorProto.STRING:
        return None
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError):
        return None  # whoever uses it reports it
