"""The golden reference against plain arithmetic, onnxruntime, and the compiler's own parameters."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import numpy_helper

from cim.codegen.layer import Activation, Layer, Quantization
from cim.codegen.parameters import input_offset, requantization
from cim.codegen.reference_model import reference_model
from cim.codegen.schedule import make_schedule
from cim.isa.reference import _chain, _narrow_factors, reference_output
from tests.codegen.models import describe, evaluate, run, sums

F = np.float32
TYPES = [np.dtype(np.int8), np.dtype(np.uint8)]
ACTIVATIONS = st.one_of(
    st.just(Activation()),
    st.just(Activation("relu")),
    st.sampled_from([0.125, 0.3, 1.5, -0.5]).map(
        lambda a: Activation("leaky_relu", alpha=float(F(a)))
    ),
    st.tuples(st.sampled_from([-np.inf, -1.0, -0.26]), st.sampled_from([np.inf, 0.5, 6.0])).map(
        lambda b: Activation("clip", low=float(F(b[0])), high=float(F(b[1])))
    ),
)


@st.composite
def layers(draw, quantized=True):
    """A layer of any kind and an input for it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    channels, outputs = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    x_type, y_type = draw(st.sampled_from(TYPES)), draw(st.sampled_from(TYPES))
    kernel = strides = dilations = (1, 1)
    pads = (0, 0, 0, 0)
    if draw(st.booleans()):
        kernel = tuple(draw(st.integers(1, 3)) for _ in range(2))
        strides = tuple(draw(st.integers(1, 2)) for _ in range(2))
        dilations = tuple(draw(st.integers(1, 2)) for _ in range(2))
        pads = tuple(draw(st.integers(0, 2)) for _ in range(4))
        height, width = (
            d * (k - 1) + draw(st.integers(1, 4)) for k, d in zip(kernel, dilations, strict=True)
        )
        layout, x_shape = "NCHW", (1, channels, height, width)
        out = [
            (size + before + after - d * (k - 1) - 1) // s + 1
            for size, before, after, d, k, s in zip(
                (height, width), pads[:2], pads[2:], dilations, kernel, strides, strict=True
            )
        ]
        y_shape = (1, outputs, *out)
    else:
        layout, x_shape = "ROWS", (*draw(st.sampled_from([(1,), (3,), (2, 4)])), channels)
        y_shape = (*x_shape[:-1], outputs)
    shape = (*kernel, channels, outputs)
    if quantized:
        w_type = draw(st.sampled_from(TYPES))
        limits = np.iinfo(w_type)
        weights = rng.integers(limits.min, limits.max + 1, shape).astype(w_type)
        count = outputs if draw(st.booleans()) else 1
        x_range, y_range = np.iinfo(x_type), np.iinfo(y_type)
        quantization = Quantization(
            x_scale=F(rng.uniform(0.002, 0.05)),
            x_zp=draw(st.integers(x_range.min, x_range.max)),
            w_scale=rng.uniform(0.002, 0.02, count).astype(F),
            w_zp=rng.integers(limits.min, limits.max + 1, count).astype(np.int32),
            y_scale=F(rng.uniform(0.002, 0.1)),
            y_zp=draw(st.integers(y_range.min, y_range.max)),
        )
        bias = rng.integers(-20000, 20000, outputs).astype(np.int32)
        x = rng.integers(x_range.min, x_range.max + 1, x_shape).astype(x_type)
    else:
        x_type = y_type = np.dtype(F)
        weights = rng.normal(size=shape).astype(F)
        quantization = None
        bias = rng.normal(size=outputs).astype(F)
        x = rng.normal(size=x_shape).astype(F)
    layer = Layer(
        name="n", operator="Conv", layout=layout, input_name="in", output_name="out",
        input_shape=x_shape, output_shape=y_shape, input_dtype=x_type, output_dtype=y_type,
        weights=weights, bias=bias if draw(st.booleans()) else None, strides=strides,
        dilations=dilations, pads=pads, activation=draw(ACTIVATIONS), quantization=quantization,
    )  # fmt: skip
    return layer, x


def golden(layer, x, mode, scheme="linear", inputs=None):
    rows = int(np.prod(layer.weights.shape[:3]))
    inputs = inputs or rows
    content = reference_model(layer).SerializeToString(deterministic=True)
    described = describe(layer, scheme, -(-rows // inputs))
    return reference_output(described, mode, layer.type_names[1], content, x, (1024, inputs))


@given(layers(quantized=False))
def test_float(case):
    layer, x = case
    found = golden(layer, x, "f32")
    assert found.dtype == F
    np.testing.assert_allclose(found, evaluate(layer, x), rtol=1e-6, atol=1e-6)
    expected = run(reference_model(layer), {"x": x})[0]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@given(layers())
def test_wide(case):
    layer, x = case
    found = golden(layer, x, "i8")
    assert found.dtype == layer.output_dtype
    assert np.array_equal(found, evaluate(layer, x))


@given(layers())
def test_reference_model_in_onnxruntime_rounds_alike(case):
    """Float arithmetic differs on ties only, and a LeakyRelu's product may be a step off."""
    layer, x = case
    expected = run(reference_model(layer), {"x": x})[0].astype(int)
    found = golden(layer, x, "i8").astype(int)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1


@pytest.mark.parametrize("layout", ["NCHW", "ROWS"])
def test_int32_outputs(layout):
    rng = np.random.default_rng(1)
    shape = ((1, 3, 4, 4), (1, 2, 4, 4)) if layout == "NCHW" else ((2, 3), (2, 2))
    one = np.ones(1, F)
    layer = Layer(
        name="n", operator="ConvInteger", layout=layout, input_name="in", output_name="out",
        input_shape=shape[0], output_shape=shape[1], input_dtype=np.dtype(np.uint8),
        output_dtype=np.dtype(np.int32),
        weights=rng.integers(0, 256, (1, 1, 3, 2)).astype(np.uint8), bias=None,
        strides=(1, 1), dilations=(1, 1), pads=(0, 0, 0, 0), activation=Activation(),
        quantization=Quantization(F(1), 9, one, np.array([3], np.int32), None, 0),
    )  # fmt: skip
    x = rng.integers(0, 256, shape[0]).astype(np.uint8)
    assert np.array_equal(golden(layer, x, "i8"), run(reference_model(layer), {"x": x})[0])
    r = requantization(layer, "i8")
    assert (r.bias, r.clip, r.y_zp) == (None, (None, None), 0)


def on_cores(layer, x, mode, scheme, inputs):
    """The layer step by step: the compiler's parameters and schedule, one core's MVM at a time."""
    q, r = layer.quantization, requantization(layer, mode)
    matrix = layer.cells.astype(np.int64)
    rows, channels = matrix.shape
    p_v = -(-rows // inputs)
    # im2col of the stored IFM: what lies in memory holds x_zp in the padding
    raw = np.zeros((layer.outputs, rows), np.int64)
    for row in range(rows):
        picked = np.zeros((*layer.weights.shape[:3], 1), layer.weights.dtype)
        picked.reshape(-1)[row] = 1
        alone = Quantization(F(1), q.x_zp, np.ones(1, F), np.zeros(1, np.int32), F(1), 0)
        one = replace(layer, weights=picked, bias=None, quantization=alone)
        raw[:, row] = sums(one, x)[:, 0] + q.x_zp
    schedule = make_schedule(scheme, layer.outputs, p_v)
    owners = [{int(o): bool(first) for o, first in zip(s.output, s.first, strict=True)}
              for s in (plan.expand() for plan in schedule.plans)]  # fmt: skip
    low, high = (-128, 127) if mode == "i8n" else (-(2**31), 2**31 - 1)
    y = np.zeros((layer.outputs, channels), np.int64)
    for o in range(layer.outputs):
        v = next(v for v in range(p_v) if owners[v][o])
        total = np.zeros(channels, np.int64) if r.bias is None else r.bias.astype(np.int64)
        for _ in range(p_v):
            piece = slice(v * inputs, min((v + 1) * inputs, rows))
            d = raw[o, piece] @ matrix[piece] + input_offset(layer, matrix[piece])
            if mode == "i8n":
                d = np.clip(np.rint(d.astype(F) * r.adc_mul), -128, 127).astype(np.int64)
            total = np.clip(total + d, low, high)
            v = schedule.plans[v].successor if schedule.plans[v].successor is not None else v
        factor = np.where(total >= 0, r.mul_pos, r.mul_neg)
        limits = np.iinfo(layer.output_dtype)
        value = np.rint(total.astype(F) * factor).astype(np.int64) + r.y_zp
        value = np.clip(value, limits.min, limits.max)
        for bound, apply in zip(r.clip, (np.maximum, np.minimum), strict=True):
            value = value if bound is None else apply(value, bound)
        y[o] = value
    y = y.astype(layer.output_dtype)
    return (y if layer.layout == "ROWS" else y.T).reshape(layer.output_shape)


@settings(max_examples=150)
@given(
    layers(),
    st.sampled_from(["i8", "i8n"]),
    st.sampled_from(["sequential", "linear", "cyclic", "ring", "central"]),
    st.integers(1, 9),
)
def test_parameters_and_chain_orders_agree_with_the_compiler(case, mode, scheme, inputs):
    layer, x = case
    assert np.array_equal(
        golden(layer, x, mode, scheme, inputs), on_cores(layer, x, mode, scheme, inputs)
    )


@settings(max_examples=300)
@given(layers())
def test_factors_of_the_narrow_mode_are_the_compilers_to_the_bit(case):
    layer, _ = case
    model = onnx.load_model_from_string(reference_model(layer).SerializeToString())
    numbers = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    adc, factor = _narrow_factors(describe(layer), layer.type_names[1], numbers)
    r = requantization(layer, "i8n")
    assert np.array_equal(np.broadcast_to(adc, r.adc_mul.shape), r.adc_mul)
    assert np.all(r.mul_pos == factor)


def test_the_order_matters_where_partial_sums_saturate():
    """+100, +100, -100: in this order 127 - 100, from the last core on 0 + 100."""
    q = Quantization(F(1), 0, np.ones(1, F), np.zeros(1, np.int32), F(1), 0)
    layer = Layer(
        name="n", operator="MatMul", layout="ROWS", input_name="in", output_name="out",
        input_shape=(3, 3), output_shape=(3, 1), input_dtype=TYPES[0], output_dtype=TYPES[0],
        weights=np.array([100, 100, -100], np.int8).reshape(1, 1, 3, 1), bias=None, strides=(1, 1),
        dilations=(1, 1), pads=(0, 0, 0, 0), activation=Activation(), quantization=q,
    )  # fmt: skip
    x = np.ones((3, 3), np.int8)
    step = F(F(1) * F(128)) / F(127)  # p_scale
    d = round(float(F(100) * (F(1) / step)))
    found = {s: golden(layer, x, "i8n", s, 1).ravel() for s in ("linear", "cyclic")}
    forward = round((min(2 * d, 127) - d) * float(step))
    assert found["linear"].tolist() == [forward] * 3
    # cyclic: output o starts at core o and goes down: 0 2 1, 1 0 2, 2 1 0
    assert found["cyclic"].tolist() == [round(d * float(step)), forward, round(d * float(step))]


def test_chain_orders():
    assert np.array_equal(_chain("linear", 4, 3), [[0] * 4, [1] * 4, [2] * 4])
    assert np.array_equal(_chain("cyclic", 4, 3), [[0, 1, 2, 0], [2, 0, 1, 2], [1, 2, 0, 1]])
    # ring with 3 cores on 5 outputs: starts at 0, 1, 3
    assert np.array_equal(_chain("ring", 5, 3)[0], [0, 1, 1, 2, 2])
    assert np.array_equal(_chain("ring", 2, 4)[0], [1, 3])  # starts at 0, 0, 1, 1


def test_a_crossbar_that_does_not_fit_the_description():
    rng = np.random.default_rng(0)
    q = Quantization(F(1), 0, np.ones(1, F), np.zeros(1, np.int32), F(1), 0)
    layer = Layer(
        name="n", operator="MatMul", layout="ROWS", input_name="in", output_name="out",
        input_shape=(1, 9), output_shape=(1, 1), input_dtype=TYPES[0], output_dtype=TYPES[0],
        weights=rng.integers(-9, 9, (1, 1, 9, 1)).astype(np.int8), bias=None, strides=(1, 1),
        dilations=(1, 1), pads=(0, 0, 0, 0), activation=Activation(), quantization=q,
    )  # fmt: skip
    content = reference_model(layer).SerializeToString()
    with pytest.raises(
        ValueError, match="9 kernel rows on crossbars with 4 inputs make 3 vertical"
    ):
        reference_output(
            describe(layer, "linear", 2), "i8", "i8", content, np.ones((1, 9), np.int8), (1, 4)
        )


def test_importing_the_reference_does_not_import_onnx():
    code = "import sys, cim.isa.reference; sys.exit('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
