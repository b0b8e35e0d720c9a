"""Cutting a model into steps, and running the steps."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cim.codegen.onnx_import import import_model
from cim.codegen.partition import HostStep, LayerStep, partition
from tests.codegen.models import (
    execute,
    imported,
    model,
    operator,
    run,
    session,
    value,
)

F = np.float32
DIGITS = Path(__file__).parents[2] / "examples" / "digits"
ONE = np.ones((1, 1, 1, 1), F)


def cut(made):
    parts = partition(imported(made))
    for step in parts.steps:
        if isinstance(step, HostStep):
            onnx.checker.check_model(step.model, full_check=True)
            session(step.model)
            assert [v.name for v in step.model.graph.input] == list(step.inputs)
            assert [v.name for v in step.model.graph.output] == list(step.outputs)
    return parts


def kinds(parts):
    return ["host" if isinstance(step, HostStep) else step.layer.name for step in parts.steps]


def images(*names):
    return [value(name, F, [1, 1, 4, 4]) for name in names]


def conv(x, y, name):
    return helper.make_node("Conv", [x, "w"], [y], name)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs, outputs, outputs[0] + "_node", **attributes)


def check(made, *shapes):
    parts = cut(made)
    rng = np.random.default_rng(0)
    feeds = {
        v.name: rng.normal(size=[d.dim_value for d in v.type.tensor_type.shape.dim]).astype(F)
        for v in made.graph.input
    }
    for found, expected in zip(execute(parts, feeds), run(made, feeds), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    return parts


def test_a_chain_of_layers_needs_no_host():
    nodes = [conv("x", "a", "one"), node("Relu", ["a"], ["b"]), conv("b", "y", "two")]
    assert kinds(check(model(nodes, images("x"), images("y"), {"w": ONE}))) == ["one", "two"]


def test_branches_share_host_subgraphs():
    """Two branches of layer, glue, layer: the glue of both runs in one subgraph."""
    nodes = [
        conv("x", "a", "one"), node("Sigmoid", ["a"], ["b"]), conv("b", "c", "two"),
        conv("x", "d", "three"), node("Tanh", ["d"], ["e"]), conv("e", "f", "four"),
        node("Mul", ["c", "f"], ["y"]),
    ]  # fmt: skip
    parts = check(model(nodes, images("x"), images("y"), {"w": ONE}))
    assert kinds(parts) == ["one", "three", "host", "two", "four", "host"]
    assert parts.steps[2].inputs == ("a", "d")
    assert parts.steps[2].outputs == ("b", "e")


def test_host_work_that_can_wait_makes_no_subgraph_of_its_own():
    nodes = [
        node("Sigmoid", ["x"], ["s"]),
        conv("x", "a", "one"),
        node("Mul", ["s", "a"], ["y"]),
    ]
    assert kinds(check(model(nodes, images("x"), images("y"), {"w": ONE}))) == ["one", "host"]


def test_a_value_that_several_steps_read():
    nodes = [
        node("Sigmoid", ["x"], ["s"]), conv("s", "a", "one"), node("Mul", ["s", "a"], ["m"]),
        conv("m", "b", "two"), node("Add", ["s", "b"], ["y"]),
    ]  # fmt: skip
    parts = check(model(nodes, images("x"), images("y", "s"), {"w": ONE}))
    assert kinds(parts) == ["host", "one", "host", "two", "host"]
    assert parts.outputs == ("y", "s")


def test_constants_and_inputs_that_are_outputs_and_inputs_that_nobody_reads():
    nodes = [
        conv("x", "y", "one"),
        helper.make_node("Constant", [], ["k"], value=numpy_helper.from_array(ONE)),
        helper.make_node("Identity", ["w"], ["i"]),
    ]
    outputs = [*images("y"), value("k", F, [1, 1, 1, 1]), value("w", F, [1, 1, 1, 1])]
    outputs += [value("i", F, [1, 1, 1, 1]), *images("x")]
    parts = check(model(nodes, images("x", "unused"), outputs, {"w": ONE}))
    assert parts.inputs == ("x", "unused")
    assert kinds(parts) == ["one", "host"]
    assert parts.steps[1].outputs == ("k", "w", "i")
    assert parts.steps[1].nodes == ()


def test_dead_nodes_are_left_out():
    nodes = [conv("x", "y", "one"), conv("x", "z", "dead"), node("Relu", ["z"], ["zz"])]
    parts = check(model(nodes, images("x"), images("y"), {"w": ONE}))
    assert kinds(parts) == ["one"]
    assert parts.macs == 16


def test_constants_go_where_they_are_used():
    shape = numpy_helper.from_array(np.array([1, 1, 2, 8]))
    nodes = [
        helper.make_node("Constant", [], ["shape"], value=shape),
        helper.make_node("Identity", ["shape"], ["same"]),
        node("Reshape", ["x", "same"], ["r"]),
        conv("r", "c", "one"),
        node("Mul", ["c", "k"], ["m"]),
        node("Reshape", ["m", "shape"], ["y"]),
    ]
    constants = {"w": ONE, "k": np.arange(8, dtype=F)}
    made = model(nodes, images("x"), [value("y", F, [1, 1, 2, 8])], constants)
    parts = check(made)
    assert kinds(parts) == ["host", "one", "host"]
    assert {t.name for t in parts.steps[2].model.graph.initializer} == {"k", "shape"}
    assert parts.steps[2].nodes == ("m_node", "y_node")


def test_values_that_a_subgraph_captures():
    """The branches of an If read the output of a layer and a constant of the outer graph."""

    def branch(op):
        inner = helper.make_node(op, ["a", "w"], ["r"])
        return helper.make_graph([inner], op, [], [value("r", F, [1, 1, 4, 4])])

    nodes = [
        conv("x", "a", "one"),
        node("ReduceSum", ["a"], ["sum"], keepdims=0),
        node("Cast", ["sum"], ["c"], to=TensorProto.BOOL),
        node("If", ["c"], ["y"], then_branch=branch("Mul"), else_branch=branch("Add")),
    ]
    parts = check(model(nodes, images("x"), images("y"), {"w": 3 * ONE}))
    assert kinds(parts) == ["one", "host"]
    assert parts.steps[1].inputs == ("a",)


def test_report():
    nodes = [
        helper.make_node("Conv", ["x", "g"], ["a"], "grouped", group=4),
        helper.make_node("Conv", ["a", "w"], ["b"], "mapped"),
        helper.make_node("Softmax", ["b"], ["y"], "soft"),
    ]
    inputs = [value("x", F, [1, 8, 2, 2]), value("g", F, [8, 2, 1, 1])]
    outputs = [value("y", F, [1, 3, 2, 2])]
    parts = cut(model(nodes, inputs, outputs, {"w": np.ones((3, 8, 1, 1), F)}))
    assert parts.macs == 8 * 2 * 4 + 3 * 8 * 4
    grouped, soft = parts.report
    assert grouped.reason == "Conv 'grouped': weights 'g' is computed at run time, must be constant"
    assert (grouped.macs, grouped.share) == (64, 64 / 160)
    assert soft.reason == "Softmax 'soft': no matrix with constant weights"
    assert (soft.name, soft.operator, soft.macs, soft.share) == ("soft", "Softmax", 0, 0)


def test_a_model_without_layers_is_one_host_step():
    made = operator("Softmax", (2, 3), {})
    parts = check(made)
    assert kinds(parts) == ["host"]
    assert parts.macs == 0


@pytest.mark.parametrize("name", ["digits_f32", "digits_int8"])
def test_digits(name):
    """Four layers, the rest on the host; the classification is onnxruntime's on every image."""
    path = DIGITS / f"{name}.onnx"
    parts = partition(import_model(path))
    layers = [step.layer for step in parts.steps if isinstance(step, LayerStep)]
    assert [layer.operator for layer in layers] == ["Conv", "Conv", "Conv", "Gemm"]
    assert [layer.activation.kind for layer in layers] == ["relu", "leaky_relu", "relu", "none"]
    assert all(entry.macs == 0 for entry in parts.report)
    assert len(parts.steps) == 4 + (3 if name == "digits_f32" else 4)
    sessions = [session(s.model) if isinstance(s, HostStep) else None for s in parts.steps]
    whole = session(path.read_bytes())
    stored = np.load(DIGITS / "test_images.npy")[:, None]
    found = np.concatenate([execute(parts, {"image": x}, sessions)[0] for x in stored])
    expected = np.concatenate([whole.run(None, {"image": x})[0] for x in stored])
    assert np.array_equal(found.argmax(axis=1), expected.argmax(axis=1))
    np.testing.assert_allclose(found, expected, atol=1e-5 if name == "digits_f32" else 0.05)
    if name == "digits_int8":  # equal but for ties, which float arithmetic may round otherwise
        assert np.count_nonzero(found != expected) <= found.size // 100
