"""Small ONNX models for the tests, and the runtimes that they are compared with."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from cim.codegen.onnx_graph import Graph
from cim.codegen.onnx_import import Imported, LayerUnit, import_graph, import_model

ROOT = Path(__file__).parents[2]
ELEMENTS = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.int64): TensorProto.INT64,
}


def table1():
    """The module examples/table1/make_layer.py."""
    path = ROOT / "examples" / "table1" / "make_layer.py"
    spec = importlib.util.spec_from_file_location("table1_make_layer", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def table1_layer(row):
    """The generated quantized model of a row of Table I."""
    return table1().make_layer(row)


def value(name, dtype, shape):
    """A graph input or output."""
    return helper.make_tensor_value_info(name, ELEMENTS[np.dtype(dtype)], shape)


def model(nodes, inputs, outputs, constants=None, opset=17, ir_version=8, **kwargs):
    """A model; `inputs` and `outputs` are value infos, `constants` arrays by name."""
    tensors = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, tensors, **kwargs)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def with_shapes(made):
    """The model with its outputs' shapes as ONNX infers them."""
    for output in made.graph.output:
        output.type.tensor_type.ClearField("shape")
    return onnx.shape_inference.infer_shapes(made, strict_mode=True, data_prop=True)


def operator(op, x_shape, constants, *, dtype=np.float32, out=None, opset=17, inputs=None, **attributes):
    """A model of one operator `op` called n: input x, the constants in order, output y."""
    names = inputs or ["x", *constants]
    node = helper.make_node(op, names, ["y"], "n", **attributes)
    made = model([node], [value("x", dtype, x_shape)], [value("y", out or dtype, None)], constants, opset)
    return with_shapes(made)


def save(made, folder, name="model.onnx"):
    """Write a model; its path."""
    path = Path(folder) / name
    path.write_bytes(made.SerializeToString())
    return path


def imported(made, folder=None, **kwargs):
    """Import a model, through a file where a folder is given."""
    if folder is None:
        return import_graph(Graph(with_shapes(made), "model.onnx"))
    return import_model(save(made, folder), **kwargs)


def only_layer(found: Imported):
    """The layer of a model that is one layer and no host node."""
    assert len(found.units) == 1, [str(u.reason) for u in found.units if not isinstance(u, LayerUnit)]
    assert isinstance(found.units[0], LayerUnit)
    return found.units[0].layer


def reasons(found: Imported):
    """The reasons of the host nodes, by node name."""
    return {u.node.name: str(u.reason) for u in found.units if not isinstance(u, LayerUnit)}


def session(made):
    """Onnxruntime on a model, without optimizations: fusions round ties in their own way."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    content = made if isinstance(made, bytes) else made.SerializeToString()
    return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def run(made, feeds):
    """All outputs of a model in onnxruntime."""
    return session(made).run(None, feeds)


def run_reference(made, feeds):
    """All outputs of a model in the ONNX project's own evaluator."""
    return ReferenceEvaluator(made).run(None, feeds)
