"""Float operators with every attribute, against onnxruntime."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from tests.codegen.models import (
    evaluate,
    imported,
    model,
    only_layer,
    operator,
    reasons,
    reference,
    run,
    value,
)

F = np.float32


def close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@st.composite
def convolutions(draw):
    """Shapes and attributes of a 2-D convolution that has at least one output."""
    kernel = [draw(st.integers(1, 4)) for _ in range(2)]
    dilations = [draw(st.integers(1, 3)) for _ in range(2)]
    attributes = {
        "strides": [draw(st.integers(1, 3)) for _ in range(2)],
        "dilations": dilations,
        "kernel_shape": kernel,
    }
    mode = draw(st.sampled_from(["pads", "none", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if mode == "pads":
        attributes["pads"] = [draw(st.integers(0, 3)) for _ in range(4)]
    elif mode != "none":
        attributes["auto_pad"] = mode
    if mode.startswith("SAME"):
        attributes["dilations"] = dilations = [1, 1]  # runtimes disagree; see test_onnx_geometry
    size = [
        draw(st.integers(d * (k - 1) + 1, d * (k - 1) + 6))
        for k, d in zip(kernel, dilations, strict=True)
    ]
    channels, outputs = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    return (1, channels, *size), (outputs, channels, *kernel), attributes


def activation_node(kind, source, target, constants):
    """An activation as a node; puts its constants into `constants`."""
    if kind == "relu":
        return helper.make_node("Relu", [source], [target], "act")
    if kind == "leaky_relu":
        return helper.make_node("LeakyRelu", [source], [target], "act", alpha=0.3)
    constants |= {"low": F(-0.5), "high": F(0.75)}
    inputs = {
        "clip": [source, "low", "high"],
        "clip low": [source, "low"],
        "clip high": [source, "", "high"],
    }
    return helper.make_node("Clip", inputs[kind], [target], "act")


ACTIVATIONS = ["none", "relu", "leaky_relu", "clip", "clip low", "clip high"]


@settings(max_examples=60)
@given(convolutions(), st.booleans(), st.sampled_from(ACTIVATIONS), st.integers(0, 2**32 - 1))
def test_conv(case, has_bias, activation, seed):
    x_shape, w_shape, attributes = case
    rng = np.random.default_rng(seed)
    constants = {"w": rng.normal(size=w_shape).astype(F)}
    if has_bias:
        constants["b"] = rng.normal(size=w_shape[0]).astype(F)
    made = operator("Conv", x_shape, constants, **attributes)
    if activation != "none":
        made.graph.node[0].output[0] = "sum"
        extra = {}
        made.graph.node.append(activation_node(activation, "sum", "y", extra))
        nodes, tensors = list(made.graph.node), {**constants, **extra}
        made = model(nodes, list(made.graph.input), list(made.graph.output), tensors)
    layer = only_layer(imported(made))
    assert layer.activation.kind == activation.split()[0]
    x = rng.normal(size=x_shape).astype(F)
    expected = run(made, {"x": x})[0]
    assert layer.output_shape == expected.shape
    close(evaluate(layer, x), expected)
    close(reference(layer, x), expected)


def test_gemm_rows_that_are_alike_are_a_bias():
    constants = {"w": np.eye(3, dtype=F), "c": np.tile(np.array([1, 2, 3], F), (4, 1))}
    layer = only_layer(imported(operator("Gemm", (4, 3), constants)))
    assert layer.bias.tolist() == [1, 2, 3]


@pytest.mark.parametrize("x_shape", [(1, 3), (4, 3), (2, 4, 3), (2, 1, 2, 3), (1, 1, 1, 1, 3)])
@pytest.mark.parametrize("b_shape", [None, (), (1,), (5,), (1, 5)])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("activation", ["none", "relu"])
def test_matmul_and_add(x_shape, b_shape, swapped, activation):
    rng = np.random.default_rng(6)
    constants = {"w": rng.normal(size=(3, 5)).astype(F)}
    names = ["x", "w"]
    nodes = [helper.make_node("MatMul", names, ["m"], "n")]
    last = "m"
    if b_shape is not None:
        constants["b"] = rng.normal(size=b_shape).astype(F)
        nodes.append(helper.make_node("Add", ["b", "m"] if swapped else ["m", "b"], ["s"], "add"))
        last = "s"
    if activation != "none":
        nodes.append(activation_node(activation, last, "a", constants))
        last = "a"
    nodes[-1].output[0] = last = "y"
    shape = [*x_shape[:-1], 5]
    made = model(nodes, [value("x", F, x_shape)], [value(last, F, shape)], constants)
    layer = only_layer(imported(made))
    assert (layer.bias is not None) == (b_shape is not None)
    assert layer.layout == "ROWS"
    x = rng.normal(size=x_shape).astype(F)
    close(evaluate(layer, x), run(made, {"x": x})[0])
    close(reference(layer, x), run(made, {"x": x})[0])


def test_add_that_makes_more_rows_is_no_bias():
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], "n"),
        helper.make_node("Add", ["m", "b"], ["y"], "add"),
    ]
    constants = {"w": np.eye(3, dtype=F), "b": np.ones((4, 3), F)}
    made = model(nodes, [value("x", F, [1, 3])], [value("y", F, [4, 3])], constants)
    found = imported(made)
    assert len(found.layers) == 1
    assert found.layers[0].output_name == "m"
    assert "add" in reasons(found)


def test_an_all_zero_bias_is_none():
    constants = {"w": np.ones((2, 1, 1, 1), F), "b": np.zeros(2, F)}
    assert only_layer(imported(operator("Conv", (1, 1, 2, 2), constants))).bias is None


@pytest.mark.parametrize("opset", [7, 8, 9, 10, 11, 12, 13, 14, 16, 17, 21, 22])
def test_activations_at_every_opset(opset):
    """Clip's bounds moved from attributes to inputs in opset 11."""
    for op in ("Relu", "LeakyRelu", "Clip"):
        constants = {"w": np.array([[[[2.0]]], [[[-3.0]]]], F)}
        attributes, names = {}, ["s"]
        if op == "Clip" and opset < 11:
            attributes = {"min": -1.0, "max": 2.0}
        elif op == "Clip":
            constants |= {"low": F(-1), "high": F(2)}
            names += ["low", "high"]
        elif op == "LeakyRelu":
            attributes = {"alpha": 0.25}
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["s"], "n"),
            helper.make_node(op, names, ["y"], "act", **attributes),
        ]
        x, y = value("x", F, [1, 1, 2, 2]), value("y", F, [1, 2, 2, 2])
        made = model(nodes, [x], [y], constants, opset=opset)
        layer = only_layer(imported(made))
        kind = {"Relu": "relu", "LeakyRelu": "leaky_relu", "Clip": "clip"}[op]
        assert layer.activation.kind == kind
        image = np.linspace(-2, 2, 4, dtype=F).reshape(1, 1, 2, 2)
        close(evaluate(layer, image), run(made, {"x": image})[0])


def test_clip_defaults_are_no_bounds():
    for opset in (7, 11):
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["s"], "n"),
            helper.make_node("Clip", ["s"], ["y"], "act"),
        ]
        x, y = value("x", F, [1, 1, 2, 2]), value("y", F, [1, 1, 2, 2])
        made = model(nodes, [x], [y], {"w": np.ones((1, 1, 1, 1), F)}, opset=opset)
        activation = only_layer(imported(made)).activation
        assert (activation.low, activation.high) == (-np.inf, np.inf)


def two_uses(second):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["s"], "n"),
        helper.make_node("Relu", ["s"], ["y"], "act"),
    ]
    outputs = [value("y", F, [1, 1, 2, 2])]
    if second == "graph output":
        outputs.append(value("s", F, [1, 1, 2, 2]))
    else:
        nodes.append(helper.make_node("Sigmoid", ["s"], ["z"], "other"))
        outputs.append(value("z", F, [1, 1, 2, 2]))
    return model(nodes, [value("x", F, [1, 1, 2, 2])], outputs, {"w": np.ones((1, 1, 1, 1), F)})


@pytest.mark.parametrize("second", ["graph output", "consumer"])
def test_no_fusion_where_the_sum_is_seen_by_others(second):
    found = imported(two_uses(second))
    assert found.layers[0].activation.kind == "none"
    assert found.layers[0].output_name == "s"
    assert "act" in reasons(found)


def test_clip_with_a_bound_of_run_time_stays_on_the_host():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["s"], "n"),
        helper.make_node("Clip", ["s", "low"], ["y"], "act"),
    ]
    inputs = [value("x", F, [1, 1, 2, 2]), value("low", F, [])]
    y = value("y", F, [1, 1, 2, 2])
    found = imported(model(nodes, inputs, [y], {"w": np.ones((1, 1, 1, 1), F)}))
    assert found.layers[0].activation.kind == "none"
    assert "act" in reasons(found)


def test_shared_weights():
    """Two convolutions with the same weights are two layers."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "one"),
        helper.make_node("Conv", ["a", "w"], ["y"], "two"),
    ]
    x, y = value("x", F, [1, 1, 3, 3]), value("y", F, [1, 1, 3, 3])
    found = imported(model(nodes, [x], [y], {"w": np.full((1, 1, 1, 1), 2, F)}))
    assert [layer.name for layer in found.layers] == ["one", "two"]


def test_names_of_nameless_nodes_are_unique():
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("Conv", ["a", "w"], ["b"], "same"),
        helper.make_node("Conv", ["b", "w"], ["y"], "same"),
    ]
    x, y = value("x", F, [1, 1, 3, 3]), value("y", F, [1, 1, 3, 3])
    found = imported(model(nodes, [x], [y], {"w": np.ones((1, 1, 1, 1), F)}))
    assert [layer.name for layer in found.layers] == ["Conv_0", "same_1", "same_2"]


def test_float16_goes_to_the_host():
    node = helper.make_node("MatMul", ["x", "w"], ["y"], "n")
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT16, [2, 2]) for n in "xy"]
    made = model([node], info[:1], info[1:], {"w": np.ones((2, 2), np.float16)})
    text = "MatMul 'n': the type of the input is float16, must be float32"
    assert reasons(imported(made)) == {"n": text}


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("number", [float("inf"), float("nan"), 3e38])
def test_factors_that_make_infinite_weights_stay_what_they_are(name, number):
    constants = {"w": np.full((3, 5), 9, F), "c": np.full(5, 9, F)}
    found = imported(operator("Gemm", (4, 3), constants, **{name: number}))
    assert f"Gemm 'n': {name} is " in reasons(found)["n"]
