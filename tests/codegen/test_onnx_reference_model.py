"""The reference model of a layer: valid, with the fixed names, and the same bytes every time."""

import numpy as np
import onnx
import pytest

from cim.codegen.layer import Activation, Layer, Quantization
from cim.codegen.reference_model import reference_model
from tests.codegen.models import session

F = np.float32


def make_layer(layout, kind, bias, activation):
    shape = ((1, 3, 6, 5), (1, 4, 5, 4)) if layout == "NCHW" else ((2, 6, 3), (2, 6, 4))
    kernel = (2, 2, 3, 4) if layout == "NCHW" else (1, 1, 3, 4)
    quantization, dtype, out = None, np.dtype(F), np.dtype(F)
    if kind != "float":
        size = 4 if kind == "per channel" else 1
        scale = None if kind == "int32" else F(0.5)
        dtype = np.dtype(np.uint8)
        out = np.dtype(np.int32) if scale is None else dtype
        zeros = np.arange(size, dtype=np.int32)
        quantization = Quantization(F(0.25), 3, np.full(size, 0.125, F), zeros, scale, 7)
    return Layer(
        name="n", operator="op", layout=layout, input_name="in", output_name="out",
        input_shape=shape[0], output_shape=shape[1], input_dtype=dtype, output_dtype=out,
        weights=np.ones(kernel, F if kind == "float" else np.uint8),
        bias=np.arange(4).astype(F if kind == "float" else np.int32) if bias else None,
        strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), activation=activation,
        quantization=quantization,
    )  # fmt: skip


ACTIVATIONS = [
    Activation(),
    Activation("relu"),
    Activation("leaky_relu", alpha=0.5),
    Activation("clip", low=-1.0),
    Activation("clip", low=-1.0, high=6.0),
]


@pytest.mark.parametrize("layout", ["NCHW", "ROWS"])
@pytest.mark.parametrize("kind", ["float", "per tensor", "per channel"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_models(layout, kind, bias, activation):
    layer = make_layer(layout, kind, bias, activation)
    made = reference_model(layer)
    onnx.checker.check_model(made, full_check=True)
    content = made.SerializeToString(deterministic=True)
    assert content == reference_model(layer).SerializeToString(deterministic=True)
    runtime = session(content)
    (x,), (y,) = runtime.get_inputs(), runtime.get_outputs()
    assert (x.name, tuple(x.shape)) == ("x", layer.input_shape)
    assert (y.name, tuple(y.shape)) == ("y", layer.output_shape)
    names = {tensor.name: tensor for tensor in made.graph.initializer}
    expected = {"w"} | ({"b"} if bias else set())
    if kind != "float":
        expected |= {"x_scale", "x_zp", "w_scale", "w_zp", "y_scale", "y_zp"}
        expected |= {"b_scale"} if bias else set()
    expected |= {"low"} if np.isfinite(activation.low) else set()
    expected |= {"high"} if np.isfinite(activation.high) else set()
    assert set(names) == expected
    assert list(names["w"].dims) == ([4, 3, 2, 2] if layout == "NCHW" else [3, 4])


@pytest.mark.parametrize("layout", ["NCHW", "ROWS"])
def test_int32_output(layout):
    made = reference_model(make_layer(layout, "int32", False, Activation()))
    onnx.checker.check_model(made, full_check=True)
    operators = [node.op_type for node in made.graph.node]
    assert operators == ["ConvInteger" if layout == "NCHW" else "MatMulInteger"]
    session(made)
