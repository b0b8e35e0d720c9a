"""Small ONNX models for the tests, and the runtimes that they are compared with."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from cim.asm.image import LayerDescription, Reference
from cim.codegen.onnx_forms import REWRITERS
from cim.codegen.onnx_graph import Node
from cim.codegen.onnx_import import Imported, LayerUnit, import_graph, import_model
from cim.codegen.onnx_load import build_graph, parse_model
from cim.codegen.partition import LayerStep, partition
from cim.codegen.reference_model import reference_model
from cim.explore.table1 import make_layer
from cim.isa.reference import reference_output

ROOT = Path(__file__).parents[2]
ELEMENTS = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.int64): TensorProto.INT64,
}

MATRIX = frozenset(REWRITERS)  # operators that run on the cores


def table1_layer(row):
    """The generated quantized model of a row of Table I."""
    return make_layer(row)


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


def operator(
    op, x_shape, constants, *, dtype=np.float32, out=None, opset=17, inputs=None, **attributes
):
    """A model of one operator `op` called n: input x, the constants in order, output y."""
    names = inputs or ["x", *constants]
    node = helper.make_node(op, names, ["y"], "n", **attributes)
    made = model(
        [node], [value("x", dtype, x_shape)], [value("y", out or dtype, None)], constants, opset
    )
    return with_shapes(made)


def save(made, folder, name="model.onnx"):
    """Write a model; its path."""
    path = Path(folder) / name
    path.write_bytes(made.SerializeToString())
    return path


def imported(made, folder=None, host=(), **kwargs):
    """Import a model, through a file where a folder is given."""
    if folder is None:
        content = made.SerializeToString()
        graph = build_graph(parse_model(content, "m.onnx", "."), "m.onnx", {}, {}, host)
        return import_graph(graph, **kwargs)
    return import_model(save(made, folder), host=host, **kwargs)


def only_layer(found: Imported):
    """The layer of a model that is one layer and no host node."""
    assert len(found.units) == 1, [
        str(u.reason) for u in found.units if not isinstance(u, LayerUnit)
    ]
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


def describe(layer, scheme="linear", vertical_groups=1, horizontal_groups=1, turn_ends=()):
    """The layer as the cfg describes it."""
    return LayerDescription(
        name=layer.name,
        operator=layer.operator,
        layout=layer.layout,
        input_name=layer.input_name,
        output_name=layer.output_name,
        input_shape=list(layer.input_shape),
        output_shape=list(layer.output_shape),
        kernel=list(layer.weights.shape),
        strides=list(layer.strides),
        dilations=list(layer.dilations),
        pads=list(layer.pads),
        activation=layer.activation.kind,
        alpha=layer.activation.alpha,
        scheme=scheme,
        vertical_groups=vertical_groups,
        horizontal_groups=horizontal_groups,
        turn_ends=list(turn_ends),
        groups=layer.groups,
        reference=Reference(path="", digest=""),
    )


def reference(layer, x):
    """The golden reference's output of a layer in its own mode, f32 or i8."""
    rows = int(np.prod(layer.weights.shape[:3]))
    mode = "f32" if layer.quantization is None else "i8"
    content = reference_model(layer).SerializeToString(deterministic=True)
    return reference_output(
        describe(layer), mode, layer.type_names[1], content, x, (layer.weights.shape[3], rows)
    )


def sums(layer, x):
    """Convolution and bias, output vector by output vector: [O, K], float64 or int64."""
    q = layer.quantization
    kind = np.float64 if q is None else np.int64
    weights = layer.weights.astype(kind) - (0 if q is None else q.w_zp)
    x = x.astype(kind) - (0 if q is None else q.x_zp)
    image = x.reshape(-1, 1, x.shape[-1]) if layer.layout == "ROWS" else x[0].transpose(1, 2, 0)
    top, left, bottom, right = layer.pads
    image = np.pad(image, ((top, bottom), (left, right), (0, 0)))
    ky, kx = weights.shape[:2]
    (sy, sx), (dy, dx) = layer.strides, layer.dilations
    height, width = layer.output_image
    rows = []
    for oy in range(height):
        for ox in range(width):
            patch = image[oy * sy :, ox * sx :][: (ky - 1) * dy + 1 : dy, : (kx - 1) * dx + 1 : dx]
            rows.append(np.tensordot(patch, weights, 3))
    return np.array(rows) + (0 if layer.bias is None else layer.bias.astype(kind))


def evaluate(layer, x):
    """A layer in plain NumPy from its own fields, in the model's shape: f32 and i8."""
    y = sums(layer, x)
    q, activation = layer.quantization, layer.activation
    if q is not None and q.y_scale is not None:
        factor = np.broadcast_to((q.x_scale * q.w_scale) / q.y_scale, y.shape[1:])
        slope = {"relu": 0.0, "leaky_relu": activation.alpha}.get(activation.kind, 1.0)
        factor = np.where(y < 0, factor * np.float32(slope), factor).astype(np.float32)
        y = np.rint(y.astype(np.float32) * factor).astype(np.int64) + q.y_zp
        limits = np.iinfo(layer.output_dtype)
        low, high = (
            int(np.clip(np.rint(np.float32(b) / q.y_scale) + q.y_zp, limits.min, limits.max))
            for b in (activation.low, activation.high)
        )
        y = np.clip(np.clip(y, limits.min, limits.max), low, high)
    elif activation.kind == "relu":
        y = np.maximum(y, 0)
    elif activation.kind == "leaky_relu":
        y = np.where(y < 0, y * activation.alpha, y)
    elif activation.kind == "clip":
        y = np.clip(y, activation.low, activation.high)
    y = y.astype(layer.output_dtype)
    return (y if layer.layout == "ROWS" else y.T).reshape(layer.output_shape)


def execute(parts, feeds, sessions=None):
    """All outputs of a partition, layers by the golden reference and host steps by onnxruntime."""
    values = dict(feeds)
    for number, step in enumerate(parts.steps):
        if isinstance(step, LayerStep):
            layer = step.layer
            values[layer.output_name] = reference(layer, values[layer.input_name])
            continue
        runtime = session(step.model) if sessions is None else sessions[number]
        found = runtime.run(list(step.outputs), {name: values[name] for name in step.inputs})
        values |= dict(zip(step.outputs, found, strict=True))
    return [values[name] for name in parts.outputs]


def run_whole(made, feeds, **kwargs):
    """A model's outputs by its layers and host steps, and its layers."""
    found = imported(made, **kwargs)
    return execute(partition(found), feeds), found.layers


def close(found, expected):
    """The same shape, type and numbers, to float rounding."""
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def on_cores(made, feeds, layers=None):
    """The outputs; no matrix operator may have stayed on the host, and nodes may have any names."""
    refused = reasons(imported(made))
    assert not MATRIX.intersection(text.split(" ")[0] for text in refused.values()), refused
    check_names(made)
    found, made_layers = run_whole(made, feeds)
    if layers is not None:
        assert len(made_layers) == layers
    return found[0]


def namings(made):
    """Names for all nodes that others could be taken for: of their own and of other values, and such as rewriting makes."""
    nodes = made.graph.node
    outputs = [node.output[0] for node in nodes]
    yield outputs
    yield [*outputs[1:], outputs[0]]
    yield [*outputs[-1:], *outputs[:-1]]
    yield ["" for _ in nodes]
    yield ["same" for _ in nodes]
    found = imported(made).graph
    names = (name for node in found.nodes for name in (node.name, *node.proto.input, *node.outputs))
    fresh = [*dict.fromkeys(name for name in names if name.startswith(tuple(found.origins)))]
    others = [node for node in nodes if node.op_type not in MATRIX]
    if len(fresh) >= len(others):
        given = iter(fresh)
        yield [node.name if node.op_type in MATRIX else next(given) for node in nodes]


def check_names(made):
    """Layers, reasons and what is asked for on the host are nodes of the model, whatever these are called."""
    count = len(imported(made).layers)
    for names in namings(made):
        renamed = onnx.ModelProto()
        renamed.CopyFrom(made)
        for node, name in zip(renamed.graph.node, names, strict=True):
            node.name = name
        found = imported(renamed)
        assert len(found.layers) == count
        for name in _matrix_names(found):
            assert "asked for on the host" in reasons(imported(renamed, host=[name]))[name]
            _matrix_names(imported(renamed, host=[name]))
        _matrix_names(imported(renamed, narrow=True))


def _matrix_names(found):
    """The matrix operators of the model; each has layers, all of other names, or is on the host as it is."""
    nodes = (Node(proto.name, proto) for proto in found.graph.named_model().graph.node)
    matrix = {node.name: node.operator for node in nodes if node.operator in MATRIX}
    layers = [layer.name for layer in found.layers]
    assert len(set(layers)) == len(layers)
    on_cores = {found.graph.origins.get(name, name) for name in layers}
    on_host = {
        unit.node.name: unit.node.operator
        for unit in found.units
        if not isinstance(unit, LayerUnit) and unit.node.operator in MATRIX
    }
    assert on_host.items() <= matrix.items()
    assert on_cores == matrix.keys() - on_host.keys()
    return list(matrix)


def requantized(sums, factor, zero_point, dtype):
    """Int64 sums as an 8-bit type: one rounding to even, then the zero point, then saturation."""
    limits = np.iinfo(dtype)
    scaled = np.rint(sums.astype(np.float32) * np.asarray(factor, np.float32)).astype(np.int64)
    return np.clip(scaled + zero_point, limits.min, limits.max).astype(dtype)
