"""Reading model files: what is refused and how, shapes, external data, the forms of constants."""

import contextlib

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from cim.codegen.onnx_import import import_graph, import_model
from cim.codegen.onnx_load import build_graph, load_graph, parse_model
from cim.codegen.partition import partition
from cim.diagnostics import CimError
from tests.codegen.models import (
    imported,
    model,
    only_layer,
    operator,
    reasons,
    run,
    save,
    value,
)

WEIGHTS = np.arange(2 * 3 * 2 * 2, dtype=np.float32).reshape(2, 3, 2, 2)


def conv(x_shape=(1, 3, 5, 5), weights=WEIGHTS):
    return model(
        [helper.make_node("Conv", ["x", "w"], ["y"], "n")],
        [value("x", np.float32, x_shape)],
        [value("y", np.float32, ["a", "b", "c", "d"])],
        {"w": weights},
    )


def message(call, *args, **kwargs):
    with pytest.raises(CimError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def test_missing_file_and_folder(tmp_path):
    assert "cannot read: No such file" in message(load_graph, tmp_path / "none.onnx")
    assert "cannot read: Is a directory" in message(load_graph, tmp_path)


@pytest.mark.parametrize("content", [b"", b"hello world", b"\x08\x01", b"\x08\x08", bytes(100)])
def test_file_that_is_no_onnx(tmp_path, content):
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert f"{path}: error: is not an ONNX model" in message(load_graph, path)


def test_text_that_is_no_utf8(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(conv().SerializeToString().replace(b"Conv", b"C\xf4nv"))
    assert "it holds text that is not UTF-8: b'C\\xf4nv'" in message(load_graph, path)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=3))
def test_flipped_bytes_give_a_diagnostic_or_a_model(changes):
    content = bytearray(conv(("n", 3, 5, 5)).SerializeToString())
    for position, byte in changes:
        content[position % len(content)] = byte
    with contextlib.suppress(CimError):
        made = parse_model(bytes(content), "m.onnx", "/nowhere")
        partition(import_graph(build_graph(made, "m.onnx", {}, {})))


@pytest.mark.parametrize("opset", [6, 99])
def test_opset(tmp_path, opset):
    made = conv()
    made.opset_import[0].version = opset
    text = message(load_graph, save(made, tmp_path))
    assert f"its opset is {opset}; 7 to {onnx.defs.onnx_opset_version()} are supported" in text


def test_checker(tmp_path):
    made = conv()
    made.graph.node[0].input[1] = "nobody"
    assert "the ONNX checker rejects it: " in message(load_graph, save(made, tmp_path))


def test_shapes_that_do_not_fit(tmp_path):
    made = operator("MatMul", (2, 3), {"w": np.ones((3, 4), np.float32)})
    made.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 5
    assert "its shapes do not fit: " in message(load_graph, save(made, tmp_path))


def test_cycle(tmp_path):
    made = conv()
    made.graph.node.append(helper.make_node("Relu", ["b"], ["a"]))
    made.graph.node.append(helper.make_node("Relu", ["a"], ["b"]))
    assert "the ONNX checker rejects it: " in message(load_graph, save(made, tmp_path))


def test_external_data_is_relative_to_the_model(tmp_path, monkeypatch):
    folder = tmp_path / "sub"
    folder.mkdir()
    weights = np.random.default_rng(0).normal(size=(8, 3, 5, 5)).astype(np.float32)
    made = conv(weights=weights)
    path = folder / "m.onnx"
    onnx.save(made, path, save_as_external_data=True, location="m.data", size_threshold=0)
    monkeypatch.chdir(tmp_path)
    layer = only_layer(import_model("sub/m.onnx"))
    assert np.array_equal(layer.weights, weights.transpose(2, 3, 1, 0))
    (folder / "m.data").unlink()
    text = message(import_model, "sub/m.onnx")
    assert "its external data cannot be read" in text
    assert "m.data" in text


def test_a_symbolic_first_dimension_is_one(tmp_path):
    layer = only_layer(imported(conv(("batch", 3, 5, 5)), tmp_path))
    assert (layer.input_shape, layer.output_shape) == ((1, 3, 5, 5), (1, 2, 4, 4))
    layer = only_layer(imported(conv((None, 3, 5, 5)), tmp_path))
    assert layer.input_shape == (1, 3, 5, 5)
    layer = only_layer(imported(conv((-1, 3, 5, 5)), tmp_path))
    assert layer.input_shape == (1, 3, 5, 5)


def test_unknown_dimensions_are_all_named_with_the_flag(tmp_path):
    path = save(conv(("n", 3, "height", None)), tmp_path)
    text = message(load_graph, path)
    assert "dimension 2 of input 'x' (nx3xheightx?) has no size" in text
    assert "--dim height=VALUE or --input-shape x=nx3xheightx?" in text
    assert "dimension 3 of input 'x'" in text
    text = message(load_graph, path, {"height": 7})
    assert "dimension 2" not in text
    assert "fix it with --input-shape x=" in text


def test_fixing_dimensions(tmp_path):
    path = save(conv(("n", 3, "h", "w")), tmp_path)
    assert only_layer(import_model(path, {"h": 7, "w": 6})).output_shape == (1, 2, 6, 5)
    fixed = import_model(path, {}, {"x": (1, 3, 6, 9)})
    assert only_layer(fixed).output_shape == (1, 2, 5, 8)
    both = import_model(path, {"h": 7, "w": 6}, {"x": (1, 3, 6, 9)})
    assert only_layer(both).output_shape == (1, 2, 5, 8)


def test_two_dimensions_of_the_same_name(tmp_path):
    path = save(conv(("?", 3, "?", "?")), tmp_path)
    assert only_layer(import_model(path, {}, {"x": (1, 3, 6, 9)})).output_shape == (1, 2, 5, 8)
    assert "--dim" not in message(load_graph, path)


def test_wrong_flags(tmp_path):
    path = save(conv(("n", 3, "height", "w")), tmp_path)
    text = message(load_graph, path, {"hight": 7})
    assert "--dim names 'hight'" in text
    assert "did you mean 'height'?" in text
    assert "its symbolic dimensions are: height, n, w" in text
    assert "--input-shape names 'z'" in message(load_graph, path, {}, {"z": (1,)})
    text = message(load_graph, path, {}, {"x": (1, 3, 5)})
    assert "--input-shape gives 'x' as 1x3x5, the model has it as nx3xheightxw" in text
    text = message(load_graph, path, {}, {"x": (1, 4, 5, 5)})
    assert "dimension 1 of 'x' is 3, --input-shape gives 4" in text
    assert "is 0, must be >= 1" in message(load_graph, path, {"height": 0, "w": 3})


def test_input_without_a_shape(tmp_path):
    made = conv()
    made.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(CimError, match="the ONNX checker rejects it"):
        load_graph(save(made, tmp_path))


def test_stale_shapes_in_the_file_give_way(tmp_path):
    made = conv(("n", 3, "h", 5))
    made.graph.node[0].output[0] = "z"
    made.graph.node.append(helper.make_node("Relu", ["z"], ["y"]))
    made.graph.value_info.append(value("z", np.float32, [1, 2, 99, 4]))
    assert only_layer(imported(made, tmp_path, dims={"h": 9})).output_shape == (1, 2, 8, 4)


def test_output_without_a_shape(tmp_path):
    made = conv()
    made.graph.output[0].type.tensor_type.ClearField("shape")
    assert only_layer(imported(made, tmp_path)).output_shape == (1, 2, 4, 4)


def weights_in_form(form, weights):
    """Nodes, initializers and graph inputs that give `weights` as value w."""
    tensor = numpy_helper.from_array(weights, "w0")
    if form == "initializer":
        return [], {"w": weights}, []
    if form == "constant node":
        return [helper.make_node("Constant", [], ["w"], value=tensor)], {}, []
    if form == "graph input":
        return [], {"w": weights}, [value("w", weights.dtype, weights.shape)]
    if form == "identity chain":
        nodes = [helper.make_node("Identity", ["w0"], ["w1"]),
                 helper.make_node("Identity", ["w1"], ["w"])]  # fmt: skip
        return nodes, {"w0": weights}, []
    nodes = [helper.make_node("Constant", [], ["w0"], value=tensor),
             helper.make_node("Identity", ["w0"], ["w"])]  # fmt: skip
    return nodes, {}, []


FORMS = [
    "initializer",
    "constant node",
    "graph input",
    "identity chain",
    "identity of constant node",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("op", ["Conv", "QLinearConv", "MatMul", "Gemm"])
def test_weights_in_every_form(tmp_path, form, op):
    rng = np.random.default_rng(1)
    shape = (2, 3, 2, 2) if op.endswith("Conv") else (3, 2)
    x_shape = (1, 3, 4, 5) if op.endswith("Conv") else (4, 3)
    integer = op == "QLinearConv"
    dtype = np.uint8 if integer else np.float32
    weights = (
        rng.integers(-9, 9, shape).astype(np.int8)
        if integer
        else rng.normal(size=shape).astype(np.float32)
    )
    nodes, constants, inputs = weights_in_form(form, weights)
    names = ["x", "w"]
    if integer:
        constants |= {"s": np.float32(0.5), "z": np.uint8(3), "wz": np.int8(0)}
        names = ["x", "s", "z", "w", "s", "wz", "s", "z"]
    nodes.append(helper.make_node(op, names, ["y"], "n"))
    made = model(
        nodes,
        [value("x", dtype, x_shape), *inputs],
        [value("y", dtype, ["a", "b", "c", "d"][: len(x_shape)])],
        constants,
    )
    layer = only_layer(imported(made, tmp_path))
    expected = weights.transpose(2, 3, 1, 0) if op.endswith("Conv") else weights[None, None]
    assert np.array_equal(layer.weights, expected)


def test_old_ir_where_every_initializer_is_an_input(tmp_path):
    made = conv()
    made.graph.input.append(value("w", np.float32, WEIGHTS.shape))
    made.ir_version = 3
    made.opset_import[0].version = 7
    found = imported(made, tmp_path)
    assert only_layer(found).output_shape == (1, 2, 4, 4)
    assert found.graph.inputs == ("x",)


def test_weights_that_arrive_at_run_time(tmp_path):
    made = conv()
    del made.graph.initializer[:]
    made.graph.input.append(value("w", np.float32, WEIGHTS.shape))
    found = reasons(imported(made, tmp_path))
    assert found == {"n": "Conv 'n': weights 'w' is computed at run time, must be constant"}


def test_weights_behind_quantize_linear_and_computed_shapes(tmp_path):
    """Both are constant once the input's shape is fixed."""
    w = np.linspace(-1, 1, 12, dtype=np.float32).reshape(6, 2)
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Slice", ["s", "zero", "one"], ["n"]),
        helper.make_node("Cast", ["n"], ["n32"], to=TensorProto.INT32),
        helper.make_node("Cast", ["n32"], ["n64"], to=TensorProto.INT64),
        helper.make_node("Concat", ["n64", "six"], ["flat"], axis=0),
        helper.make_node("Reshape", ["x", "flat"], ["r"]),
        helper.make_node("QuantizeLinear", ["w", "ws", "wz"], ["wq"]),
        helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["wd"]),
        helper.make_node("QuantizeLinear", ["r", "xs", "xz"], ["rq"]),
        helper.make_node("DequantizeLinear", ["rq", "xs", "xz"], ["rd"]),
        helper.make_node("MatMul", ["rd", "wd"], ["m"], "n"),
        helper.make_node("QuantizeLinear", ["m", "xs", "xz"], ["y"]),
    ]
    constants = {
        "zero": np.array([0]), "one": np.array([1]), "six": np.array([6]), "w": w,
        "ws": np.float32(0.01), "wz": np.int8(0), "xs": np.float32(0.02), "xz": np.uint8(7),
    }  # fmt: skip
    x_info = value("x", np.float32, ["n", 2, "h", 1])
    made = model(nodes, [x_info], [value("y", np.uint8, [None, 2])], constants)
    found = imported(made, tmp_path, dims={"h": 3})
    assert len(found.layers) == 1
    layer = found.layers[0]
    assert layer.input_shape == (1, 6)
    assert np.array_equal(layer.weights[0, 0], np.clip(np.rint(w / np.float32(0.01)), -128, 127))
    x = np.zeros((1, 2, 3, 1), np.float32)
    assert run(made, {"x": x})[0].shape == layer.output_shape


def test_local_functions_are_inlined(tmp_path):
    made = conv()
    body = [helper.make_node("Conv", ["a", "b"], ["c"])]
    opsets = [helper.make_opsetid("", 17)]
    made.functions.append(helper.make_function("own", "F", ["a", "b"], ["c"], body, opsets))
    made.opset_import.append(helper.make_opsetid("own", 1))
    made.graph.node[0].op_type = "F"
    made.graph.node[0].domain = "own"
    assert only_layer(imported(made, tmp_path)).operator == "Conv"
