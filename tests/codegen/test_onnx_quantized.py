"""Integer operators and QDQ forms: exact against onnxruntime where it is, and every refusal."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from cim.codegen.onnx_import import LayerUnit
from tests.codegen.models import (
    evaluate,
    imported,
    model,
    only_layer,
    operator,
    reasons,
    reference,
    run,
    run_whole,
    value,
)

F = np.float32
SAFE = 60  # larger int8 weights saturate in onnxruntime's own kernels on some CPUs


def integers(rng, dtype, shape, largest=None):
    limits = np.iinfo(dtype)
    low, high = limits.min, limits.max
    if largest is not None:
        low, high = max(low, -largest), min(high, largest)
    return rng.integers(low, high + 1, shape).astype(dtype)


@st.composite
def qlinear_convs(draw):
    """A QLinearConv with its constants, and an input."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kernel = [draw(st.integers(1, 3)) for _ in range(2)]
    dilations = [draw(st.integers(1, 2)) for _ in range(2)]
    size = [d * (k - 1) + draw(st.integers(1, 5)) for k, d in zip(kernel, dilations, strict=True)]
    channels, outputs = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    x_type = draw(st.sampled_from([np.uint8, np.int8]))
    # onnxruntime has no kernel for int8 with uint8 weights, nor for another type of output
    w_type = draw(st.sampled_from([np.uint8, np.int8])) if x_type == np.uint8 else np.int8
    vector = () if draw(st.booleans()) else (outputs,)
    zeros = np.iinfo(x_type)
    constants = {
        "xs": F(rng.uniform(0.001, 0.1)),
        "xz": x_type(draw(st.integers(zeros.min, zeros.max))),
        "w": integers(rng, w_type, (outputs, channels, *kernel), SAFE),
        "ws": rng.uniform(0.001, 0.1, vector).astype(F),
        "wz": np.full(vector, draw(st.integers(0, 7)) if w_type == np.uint8 else 0, w_type),
        "ys": F(rng.uniform(0.005, 0.3)),
        "yz": x_type(draw(st.integers(zeros.min, zeros.max))),
    }
    if draw(st.booleans()):
        constants["b"] = rng.integers(-3000, 3000, outputs).astype(np.int32)
    attributes = {
        "strides": [draw(st.integers(1, 2)) for _ in range(2)],
        "dilations": dilations,
        "pads": [draw(st.integers(0, 2)) for _ in range(4)],
    }
    made = operator("QLinearConv", (1, channels, *size), constants, dtype=x_type, **attributes)
    return made, integers(rng, x_type, (1, channels, *size))


@settings(max_examples=100)
@given(qlinear_convs())
def test_qlinear_conv_is_exact(case):
    made, x = case
    layer = only_layer(imported(made))
    expected = run(made, {"x": x})[0]
    assert np.array_equal(evaluate(layer, x), expected)
    assert np.array_equal(reference(layer, x), expected)


@pytest.mark.parametrize("zero_point", [0, 1, 127, 128, 255])
def test_ties_round_to_even_before_the_zero_point(zero_point):
    """Sums of 1, 3, 5 … at a factor of 0.5: every other one is a tie."""
    x = np.arange(0, 256, dtype=np.uint8).reshape(1, 1, 16, 16)
    constants = {
        "xs": F(0.5), "xz": np.uint8(101), "w": np.array([[[[1]]], [[[-1]]]], np.int8), "ws": F(1),
        "wz": np.int8(0), "ys": F(1), "yz": np.uint8(zero_point),
    }  # fmt: skip
    made = operator("QLinearConv", x.shape, constants, dtype=np.uint8)
    layer = only_layer(imported(made))
    halves = (x.astype(int) - 101) / 2
    exact = [[round(v) + zero_point for v in (sign * halves).ravel()] for sign in (1, -1)]
    expected = np.clip(np.array(exact), 0, 255).reshape(1, 2, 16, 16)
    assert np.array_equal(reference(layer, x), expected)
    assert np.array_equal(evaluate(layer, x), expected)
    assert np.array_equal(run(made, {"x": x})[0], expected)


@pytest.mark.parametrize("vector", [(), (1,), (5,), (1, 5)])
@pytest.mark.parametrize("x_shape", [(4, 3), (2, 2, 3)])
def test_qlinear_matmul(vector, x_shape):
    rng = np.random.default_rng(8)
    constants = {
        "xs": F(0.02), "xz": np.uint8(11), "w": integers(rng, np.int8, (3, 5), SAFE),
        "ws": rng.uniform(0.01, 0.05, vector).astype(F), "wz": np.zeros(vector, np.int8),
        "ys": F(0.06), "yz": np.uint8(130),
    }  # fmt: skip
    made = operator("QLinearMatMul", x_shape, constants, dtype=np.uint8)
    layer = only_layer(imported(made))
    x = integers(rng, np.uint8, x_shape)
    assert np.array_equal(evaluate(layer, x), reference(layer, x))
    if vector != (1, 5):  # onnxruntime wants 1-D scales here
        assert np.array_equal(reference(layer, x), run(made, {"x": x})[0])


@pytest.mark.parametrize("zeros", ["none", "input", "both", "per channel"])
def test_conv_integer_and_matmul_integer(zeros):
    rng = np.random.default_rng(9)
    for op, x_shape, w_shape in (
        ("ConvInteger", (1, 3, 5, 4), (2, 3, 3, 2)),
        ("MatMulInteger", (2, 4, 3), (3, 2)),
    ):
        constants = {"w": integers(rng, np.uint8, w_shape)}
        if zeros != "none":
            constants["xz"] = np.uint8(99)
        if zeros in ("both", "per channel"):
            constants["wz"] = np.array([7, 30] if zeros == "per channel" else 7, np.uint8)
        attributes = {"pads": [0, 1, 1, 0]} if op == "ConvInteger" else {}
        made = operator(op, x_shape, constants, dtype=np.uint8, out=np.int32, **attributes)
        layer = only_layer(imported(made))
        assert layer.quantization.y_scale is None
        x = integers(rng, np.uint8, x_shape)
        assert np.array_equal(evaluate(layer, x), reference(layer, x))
        if not (op == "ConvInteger" and zeros == "per channel"):  # no kernel in onnxruntime
            assert np.array_equal(evaluate(layer, x), run(made, {"x": x})[0])


# --- QDQ ---


@dataclass
class Qdq:
    """The parts of a QDQ model; tests change one of them."""

    op: str = "Conv"
    x_shape: tuple[int, ...] = (1, 3, 5, 5)
    x_type: Any = np.uint8
    w: Any = None
    w_axis: int = 0
    y_type: Any = np.uint8
    activation: Any = None
    bias_scale: Any = None
    attributes: dict[str, Any] = field(default_factory=dict)
    replace: dict[str, Any] = field(default_factory=dict)
    runtime: tuple[str, ...] = ()
    extra: tuple[Any, ...] = ()
    opset: int = 17

    def model(self):
        rng = np.random.default_rng(4)
        w = self.w if self.w is not None else integers(rng, np.int8, (4, 3, 3, 2))
        outputs = w.shape[self.w_axis]
        constants = {
            "xs": F(0.03), "xz": self.x_type(5), "w": w,
            "ws": rng.uniform(0.005, 0.02, outputs).astype(F), "wz": np.zeros(outputs, w.dtype),
            "ys": F(0.04), "yz": self.y_type(17),
            "b": rng.integers(-2000, 2000, outputs).astype(np.int32),
        } | self.replace  # fmt: skip
        scale = (constants["xs"] * constants["ws"]).astype(F)
        constants.setdefault("bs", scale if self.bias_scale is None else self.bias_scale)
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xd"], "dq"),
            helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=self.w_axis),
        ]
        bias = "b"
        if constants["b"].dtype != F:
            nodes.append(helper.make_node("DequantizeLinear", ["b", "bs"], ["bd"], axis=0))
            bias = "bd"
        names = ["xd", "wd"] if self.op == "MatMul" else ["xd", "wd", bias]
        nodes.append(helper.make_node(self.op, names, ["s"], "n", **self.attributes))
        last = "s"
        if self.op == "MatMul":
            nodes.append(helper.make_node("Add", ["s", bias], ["t"], "add"))
            last = "t"
        if self.activation is not None:
            op, inputs, values, attributes = self.activation
            constants |= values
            nodes.append(helper.make_node(op, [last, *inputs], ["a"], "act", **attributes))
            last = "a"
        nodes.append(helper.make_node("QuantizeLinear", [last, "ys", "yz"], ["y"], "q"))
        nodes += self.extra
        inputs = [value("x", self.x_type, self.x_shape)]
        inputs += [value(n, constants[n].dtype, np.shape(constants[n])) for n in self.runtime]
        constants = {k: v for k, v in constants.items() if k not in self.runtime}
        rank = len(self.x_shape)
        outputs = [value("y", self.y_type, [f"d{i}" for i in range(rank)])]
        outputs += [value(n.output[0], F, [f"e{i}" for i in range(rank)]) for n in self.extra]
        return model(nodes, inputs, outputs, constants, opset=self.opset)


RELU = ("Relu", [], {}, {})
LEAKY = ("LeakyRelu", [], {}, {"alpha": 0.125})
CLIP = ("Clip", ["lo", "hi"], {"lo": F(-0.3), "hi": F(2.5)}, {})
MATRIX = np.random.default_rng(7).integers(-127, 128, (3, 6)).astype(np.int8)
GEMM = {"op": "Gemm", "x_shape": (4, 3), "w": MATRIX, "w_axis": 1}


@pytest.mark.parametrize("activation", [None, RELU, LEAKY, CLIP])
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"attributes": {"pads": [1, 0, 2, 1], "strides": [2, 1]}},
        {"op": "Gemm", "x_shape": (4, 3), "w": MATRIX, "w_axis": 1},
        {"op": "Gemm", "x_shape": (4, 6), "w": MATRIX, "attributes": {"transB": 1}},
        {"op": "MatMul", "x_shape": (2, 4, 3), "w": MATRIX, "w_axis": 1},
    ],
)
@pytest.mark.parametrize("types", [(np.uint8, np.uint8), (np.int8, np.int8), (np.int8, np.uint8)])
def test_qdq(activation, shape, types):
    """Exactly what NumPy's integers give; at most one off onnxruntime's float arithmetic."""
    made = Qdq(activation=activation, x_type=types[0], y_type=types[1], **shape).model()
    layer = only_layer_of(made)
    assert (layer.input_name, layer.output_name) == ("x", "y")
    assert layer.quantization.w_scale.size == layer.weights.shape[3]
    kind = {None: "none", "Relu": "relu", "LeakyRelu": "leaky_relu", "Clip": "clip"}
    assert layer.activation.kind == kind[activation and activation[0]]
    x = integers(np.random.default_rng(2), types[0], shape.get("x_shape", (1, 3, 5, 5)))
    found = reference(layer, x)
    assert np.array_equal(found, evaluate(layer, x))
    difference = found.astype(int) - run(made, {"x": x})[0].astype(int)
    assert np.abs(difference).max() <= 1
    assert np.count_nonzero(difference) <= difference.size // 50


def only_layer_of(made):
    """The layer of a model all of whose nodes are absorbed."""
    return only_layer(imported(made))


def test_weight_zero_points_and_uint8_weights():
    rng = np.random.default_rng(12)
    w = integers(rng, np.uint8, (4, 3, 3, 2))
    zeros = np.array([0, 128, 255, 3], np.uint8)
    layer = only_layer_of(Qdq(w=w, replace={"wz": zeros}).model())
    assert layer.quantization.w_zp.tolist() == zeros.tolist()
    x = integers(rng, np.uint8, (1, 3, 5, 5))
    assert np.array_equal(reference(layer, x), evaluate(layer, x))
    one = {"ws": F(0.01), "wz": np.uint8(128), "bs": F(0.03) * F(0.01)}
    layer = only_layer_of(Qdq(w=w, replace=one).model())
    assert layer.quantization.w_zp.tolist() == [128]


def test_left_out_zero_points_are_zero():
    made = Qdq(x_type=np.uint8, replace={"xz": np.uint8(0)}).model()
    for node in made.graph.node:
        if node.op_type != "DequantizeLinear" or node.input[0] == "b":
            continue
        del node.input[2]
    layer = only_layer_of(made)
    assert layer.quantization.x_zp == 0
    assert not layer.quantization.w_zp.any()


def test_the_dequantized_input_of_others_stays_on_the_host():
    """The layer reads x itself; a second reader of the DequantizeLinear keeps it."""
    made = Qdq(extra=(helper.make_node("Sigmoid", ["xd"], ["z"], "other"),)).model()
    found = imported(made)
    assert [layer.input_name for layer in found.layers] == ["x"]
    assert set(reasons(found)) == {"dq", "other"}


def test_bias_with_another_scale_is_converted_where_exact():
    power = {"xs": F(0.5), "ws": np.full(4, 0.25, F), "b": np.array([2, 4, -6, 0], np.int32)}
    made = Qdq(replace=power, bias_scale=np.full(4, 0.0625, F)).model()
    assert only_layer_of(made).bias.tolist() == [1, 2, -3, 0]
    made = Qdq(replace=power | {"b": np.array([0.25, -1, 0, 0.125], F)}).model()
    assert only_layer_of(made).bias.tolist() == [2, -8, 0, 1]


@pytest.mark.parametrize("bias", [np.array([2, 3, 4, 5], np.int32), np.array([0.3] * 4, F)])
def test_bias_that_cannot_be_converted(bias):
    power = {"xs": F(0.5), "ws": np.full(4, 0.25, F), "b": bias}
    found = reasons(imported(Qdq(replace=power, bias_scale=np.full(4, 0.0625, F)).model()))
    assert "Conv 'n': bias is" in found["n"]
    assert "must be a multiple of x_scale * w_scale (0.125)" in found["n"]


def test_bias_is_converted_within_float_rounding_only():
    """A scale that is off by one unit in the last place gives the same numbers; 0.1 % does not."""
    replace = {"xs": F(0.5), "ws": np.full(4, 0.25, F), "b": np.array([100, -7, 3, 0], np.int32)}
    near = np.full(4, np.nextafter(F(0.125), F(1)), F)
    assert only_layer_of(Qdq(replace=replace, bias_scale=near).model()).bias.tolist() == [
        100, -7, 3, 0,
    ]  # fmt: skip
    off = np.full(4, 0.125 * 1.001, F)
    found = reasons(imported(Qdq(replace=replace, bias_scale=off).model()))
    assert "bias is in units of 0.125125006, must be a multiple" in found["n"]


def test_bias_with_a_scale_for_all_channels():
    replace = {"ws": F(0.01), "wz": np.int8(0)}
    made = Qdq(replace=replace, bias_scale=F(0.03) * F(0.01)).model()
    assert only_layer_of(made).bias.dtype == np.int32


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"runtime": ("xs",)}, "x_scale 'xs' is computed at run time, must be constant"),
        ({"runtime": ("xz",)}, "x_zero_point 'xz' is computed at run time, must be constant"),
        ({"runtime": ("w",)}, "weights 'w' is computed at run time, must be constant"),
        ({"runtime": ("ws",), "bias_scale": F(1)}, "w_scale 'ws' is computed at run time"),
        ({"runtime": ("ys",)}, "y_scale 'ys' is computed at run time, must be constant"),
        ({"replace": {"xs": F(0)}}, "x_scale is 0.0, must be positive and finite"),
        ({"replace": {"ys": F(np.inf)}}, "y_scale is inf, must be positive and finite"),
        ({"replace": {"xs": F(1e-30), "ys": F(1e30)}}, "x_scale * w_scale / y_scale is 0.0"),
        (
            {"w_axis": 1, "w": np.ones((4, 3, 3, 2), np.int8),
             "replace": {"b": np.zeros(4, np.int32), "bs": F(1)}},
            "the axis of w_scale is 1, must be 0 (the output channels)",
        ),
        (GEMM | {"attributes": {"alpha": np.inf}}, "alpha is inf, must be finite"),
        (GEMM | {"attributes": {"beta": np.nan}}, "beta is nan, must be finite"),
        (GEMM | {"attributes": {"alpha": 1e-44}}, "alpha * w_scale is 0.0, must be positive"),
        (
            GEMM | {"attributes": {"alpha": -3e38}, "replace": {"ws": F(9), "wz": np.int8(0)}},
            "alpha * w_scale is inf, must be positive and finite",
        ),
    ],
)  # fmt: skip
def test_qdq_for_the_host(change, reason):
    found = reasons(imported(Qdq(**change).model()))
    assert reason in found["n"]


def test_float_input_with_quantized_weights_goes_to_the_host():
    made = Qdq().model()
    kept = [n for n in made.graph.node if n.name != "dq"]
    del made.graph.node[:]
    made.graph.node.extend(kept)
    made.graph.input[0].CopyFrom(value("xd", F, [1, 3, 5, 5]))
    text = reasons(imported(made))["n"]
    assert (
        "input 'xd' is a graph input or constant, must be the output of a DequantizeLinear" in text
    )


def test_sums_beyond_int32_go_to_the_host():
    constants = {
        "xs": F(0.5), "xz": np.uint8(0), "w": np.full((33100, 1), 255, np.uint8), "ws": F(1),
        "wz": np.uint8(0), "ys": F(1e6), "yz": np.uint8(0),
    }  # fmt: skip
    made = operator("QLinearMatMul", (1, 33100), constants, dtype=np.uint8)
    assert "the largest sum is 2152327500, must be <= 2147483647" in reasons(imported(made))["n"]


@pytest.mark.parametrize("opset", [10, 12, 13, 19, 21, 23])
def test_qdq_at_every_opset(opset):
    """Per-channel scales exist from opset 13 on."""
    replace = {"ws": F(0.01), "wz": np.int8(0), "bs": F(0.03) * F(0.01)} if opset < 13 else {}
    made = Qdq(replace=replace, opset=opset).model()
    if opset < 13:
        for node in made.graph.node:
            if node.op_type == "DequantizeLinear":
                del node.attribute[:]
    layer = only_layer_of(made)
    x = integers(np.random.default_rng(2), np.uint8, (1, 3, 5, 5))
    expected = run(made, {"x": x})[0].astype(int)
    assert np.abs(reference(layer, x).astype(int) - expected).max() <= 1


@pytest.mark.parametrize("shape", [{}, GEMM, {"x_type": np.int8}])
@pytest.mark.parametrize(
    "change",
    [
        {"activation": ("Sigmoid", [], {}, {})},
        {"extra": (helper.make_node("Sigmoid", ["s"], ["z"], "other"),)},
    ],
)
def test_a_result_that_is_not_quantized_at_once_is_an_integer_sum(shape, change):
    """As in a residual block whose sum alone is quantized: the sums on the cores, in int32, scaled by the host."""
    made = Qdq(**shape, **change).model()
    found = imported(made)
    (layer,) = found.layers
    assert layer.operator in ("ConvInteger", "MatMulInteger")
    assert layer.output_dtype == np.int32
    assert sum(unit.macs for unit in found.units if not isinstance(unit, LayerUnit)) == 0
    x = integers(
        np.random.default_rng(2), shape.get("x_type", np.uint8), shape.get("x_shape", (1, 3, 5, 5))
    )
    outputs, _ = run_whole(made, {"x": x})
    for got, want in zip(outputs, run(made, {"x": x}), strict=True):
        if got.dtype == np.float32:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
        else:
            assert np.abs(got.astype(int) - want).max() <= 1
