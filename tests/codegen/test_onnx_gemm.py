"""Gemm in every form runs on the cores, in float and between DequantizeLinear and QuantizeLinear."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.cases import Quantized, quantized_gemms
from tests.codegen.models import (
    close,
    evaluate,
    imported,
    model,
    on_cores,
    reasons,
    reference,
    requantized,
    run,
    run_reference,
    run_whole,
    value,
)

F = np.float32
C_SHAPES = [None, (), (1,), (5,), (1, 5), (1, 1), (4, 1), (4, 5)]


@pytest.mark.parametrize("c_shape", C_SHAPES)
@pytest.mark.parametrize("form", ["constant", "run time"])
@pytest.mark.parametrize("turns", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, -2.0), (1.5, 0.0), (0.7, 0.3)])
def test_gemm(c_shape, form, turns, side, alpha, beta):
    """Every attribute and every C, constant or not; a C that is a row vector is the layer's own bias."""
    rng = np.random.default_rng(5)
    shapes = {"a": (3, 4) if turns[0] else (4, 3), "b": (5, 3) if turns[1] else (3, 5)}
    arrays = {name: rng.normal(size=shape).astype(F) for name, shape in shapes.items()}
    if c_shape is not None:
        arrays["c"] = rng.normal(size=c_shape).astype(F)
    data = {"b" if side == "left" else "a"} | ({"c"} if form == "run time" else set())
    feeds = {name: array for name, array in arrays.items() if name in data}
    node = helper.make_node("Gemm", [*arrays], ["y"], "n", transA=turns[0], transB=turns[1], alpha=alpha, beta=beta)  # fmt: skip
    made = model(
        [node], [value(name, F, array.shape) for name, array in feeds.items()], [value("y", F, (4, 5))],
        {name: array for name, array in arrays.items() if name not in data},
    )  # fmt: skip
    found = on_cores(made, feeds, layers=1)
    close(found, run_reference(made, feeds)[0])
    (layer,) = imported(made).layers
    across = (
        c_shape in ((4, 1), (1,), (), (1, 1)) if side == "left" else c_shape not in ((4, 1), (4, 5))
    )
    own = c_shape is not None and beta != 0 and form == "constant" and across
    assert (layer.bias is not None) == own


def test_gemm_between_dequantize_and_quantize_with_transposed_input():
    rng = np.random.default_rng(3)
    x, w = (
        rng.integers(0, 256, (3, 4)).astype(np.uint8),
        rng.integers(-128, 128, (5, 3)).astype(np.int8),
    )
    bias = rng.integers(-500, 500, 5).astype(np.int32)
    constants = {"w": w, "b": bias, "s": F(0.25), "z": np.uint8(7), "ws": F(0.5), "bs": F(0.125), "ys": F(4), "yz": np.uint8(3)}  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["dx"]),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["dw"]),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["db"]),
        helper.make_node("Gemm", ["dx", "dw", "db"], ["g"], "n", transA=1, transB=1),
        helper.make_node("QuantizeLinear", ["g", "ys", "yz"], ["y"]),
    ]
    made = model(nodes, [value("x", np.uint8, x.shape)], [value("y", np.uint8, (4, 5))], constants)
    sums = (x.T.astype(np.int64) - 7) @ w.T.astype(np.int64) + bias
    want = requantized(sums, F(0.25) * F(0.5) / F(4), 3, np.uint8)
    assert np.array_equal(on_cores(made, {"x": x}, layers=1), want)


# --- Between DequantizeLinear and QuantizeLinear ---


POWERS = st.sampled_from([1.0, 0.5, 2.0, -1.0, -0.25, -4.0, 0.0])


@settings(max_examples=300)
@given(quantized_gemms(POWERS, POWERS, activations=("none", "Relu", "Clip")))
def test_quantized_gemm_is_exact(case):
    """Factors that leave C a whole number of units: all in one layer, with the one right answer."""
    made = Quantized(case)
    found = on_cores(made.model, made.feeds, layers=1)
    assert np.array_equal(found, made.wanted())
    (layer,) = imported(made.model).layers
    assert (layer.operator == "Gemm") == made.bias_per_channel()


@settings(max_examples=200)
@given(quantized_gemms(st.floats(-4, 4, width=32), st.floats(-4, 4, width=32)))
def test_quantized_gemm_with_any_factors(case):
    """Within one step of onnxruntime, which multiplies floats; a layer's own references agree to the bit."""
    assume(abs(case["alpha"]) > 1e-3)
    made = Quantized(case, 0.013)
    found = on_cores(made.model, made.feeds, layers=1)
    difference = np.abs(found.astype(int) - run(made.model, made.feeds)[0].astype(int))
    assert difference.max() <= 1
    (layer,) = imported(made.model).layers
    x = made.x.T if layer.input_shape != made.x.shape else made.x
    if layer.operator == "Gemm":
        assert np.array_equal(reference(layer, x), evaluate(layer, x))


@settings(max_examples=200)
@given(quantized_gemms(st.floats(-4, 4, width=32), st.just(0.0), activations=("none",)))
def test_alpha_is_part_of_the_scale_of_the_weights(case):
    """Against NumPy int64: sums, times float32(x_scale * float32(w_scale * |alpha|)) / y_scale, rounded once."""
    assume(abs(case["alpha"]) > 1e-3)
    made = Quantized(case, 0.013)
    w = 0 if case["on_left"] else 1
    scale = made.scales[w].astype(F) * F(abs(case["alpha"]))
    factor = F(made.scales[1 - w]) * scale / made.y_scale
    factor = factor[:, None] if case["on_left"] and factor.ndim else factor
    cells = []
    for i, array in enumerate(made.arrays):
        zero = np.asarray(made.zeros[i])
        by_row = zero.ndim and made.channel_axis() == 0
        cells.append(array.astype(np.int64) - (zero[:, None] if by_row else zero))
    a, b = (v.T if turn else v for v, turn in zip(cells, case["turns"], strict=True))
    sums = int(np.sign(case["alpha"])) * (a @ b)
    want = requantized(sums, factor, made.zeros[2], case["types"][2])
    assert np.array_equal(on_cores(made.model, made.feeds, layers=1), want)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_transposed_operand_with_several_scales_keeps_its_numbers(axis):
    """It is no layer, since an input has one scale; the Transpose may not part the scales from their axis."""
    rng = np.random.default_rng(1)
    x = rng.integers(-128, 128, (3, 4)).astype(np.int8)
    constants = {
        "w": rng.integers(-128, 128, (3, 5)).astype(np.int8), "ws": F(0.1), "ys": F(1), "yz": np.int8(3),
        "xs": rng.uniform(0.01, 0.1, x.shape[axis]).astype(F),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs"], ["dx"], axis=axis),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["dw"]),
        helper.make_node("Gemm", ["dx", "dw"], ["g"], "n", transA=1),
        helper.make_node("QuantizeLinear", ["g", "ys", "yz"], ["y"]),
    ]
    made = model(nodes, [value("x", np.int8, x.shape)], [value("y", np.int8, (4, 5))], constants)
    assert "Gemm 'n': " in reasons(imported(made))["n"]
    assert np.array_equal(run_whole(made, {"x": x})[0][0], run(made, {"x": x})[0])
