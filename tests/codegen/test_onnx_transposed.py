"""Transposed convolutions in every form run on the cores, with the right numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.models import close, imported, model, on_cores, operator, reasons, run, value

F = np.float32


@st.composite
def transposed_convolutions(draw):
    """Shapes and attributes of a ConvTranspose of 1 or 2 axes with at least one output."""
    rank = draw(st.integers(1, 2))
    groups = draw(st.integers(1, 3))
    numbers = lambda low, high: [draw(st.integers(low, high)) for _ in range(rank)]  # noqa: E731
    kernel, strides, dilations, size = numbers(1, 4), numbers(1, 3), numbers(1, 2), numbers(1, 4)
    attributes = {
        "strides": strides,
        "dilations": dilations,
        "group": groups,
        "kernel_shape": kernel,
    }
    extra = [draw(st.integers(0, s - 1)) for s in strides]
    whole = [
        (n - 1) * s + (k - 1) * d + 1
        for n, s, k, d in zip(size, strides, kernel, dilations, strict=True)
    ]
    mode = draw(st.sampled_from(["pads", "none", "output_shape", "SAME_UPPER", "SAME_LOWER"]))
    if mode == "pads":
        before = [
            draw(st.integers(0, min(k * d, w - 1)))
            for k, d, w in zip(kernel, dilations, whole, strict=True)
        ]
        after = [
            draw(st.integers(0, max(min(k * d, w - 1 - b), 0)))
            for k, d, w, b in zip(kernel, dilations, whole, before, strict=True)
        ]
        attributes |= {"pads": before + after, "output_padding": extra}
    elif mode == "none":
        attributes["output_padding"] = extra
    elif mode == "output_shape":
        attributes["output_shape"] = [draw(st.integers(1, w)) for w in whole]
        attributes["auto_pad"] = draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER"]))
    elif all(w >= n * s for w, n, s in zip(whole, size, strides, strict=True)):
        attributes["auto_pad"] = mode
    channels, outputs = draw(st.integers(1, 2)) * groups, draw(st.integers(1, 3))
    return (draw(st.integers(1, 2)), channels, *size), (channels, outputs, *kernel), attributes


@settings(max_examples=100)
@given(transposed_convolutions(), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_convtranspose(case, has_bias, relu, seed):
    x_shape, w_shape, attributes = case
    rng = np.random.default_rng(seed)
    constants = {"w": rng.normal(size=w_shape).astype(F)}
    if has_bias:
        constants["b"] = rng.normal(size=w_shape[1] * attributes["group"]).astype(F)
    made = operator("ConvTranspose", x_shape, constants, **attributes)
    if relu:
        made.graph.node[0].output[0] = "s"
        made.graph.node.append(helper.make_node("Relu", ["s"], ["y"], "act"))
    x = rng.normal(size=x_shape).astype(F)
    close(on_cores(made, {"x": x}, layers=1), run(made, {"x": x})[0])


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("strides", [[1, 1], [2, 3]])
def test_convtranspose_between_dequantize_and_quantize(groups, per_channel, strides):
    """The zeros between the pixels are the input's zero point."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 256, (1, 4, 3, 5)).astype(np.uint8)
    w = rng.integers(-128, 128, (4, 3, 2, 3)).astype(np.int8)
    scale = rng.uniform(0.01, 0.1, 3).astype(F) if per_channel else F(0.05)
    constants = {"w": w, "ws": scale, "wz": np.zeros(np.shape(scale), np.int8), "s": F(0.5), "z": np.uint8(100), "ys": F(3), "yz": np.uint8(120)}  # fmt: skip
    more = {"axis": 1} if per_channel else {}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["dx"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["dw"], **more),
        helper.make_node("ConvTranspose", ["dx", "dw"], ["c"], "n", strides=strides, group=groups),
        helper.make_node("QuantizeLinear", ["c", "ys", "yz"], ["y"]),
    ]
    size = [2 * strides[0] + 2, 4 * strides[1] + 3]
    y = value("y", np.uint8, [1, 3 * groups, *size])
    made = model(nodes, [value("x", np.uint8, x.shape)], [y], constants)
    found = on_cores(made, {"x": x}, layers=1)
    want = run(made, {"x": x})[0]
    assert np.abs(found.astype(int) - want).max() <= 1  # onnxruntime computes in float: ties
    assert np.mean(found != want) < 0.02
    assert len(np.unique(found)) > 20


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "reason"),
    [
        ((1, 3, 4, 4, 4), (3, 2, 2, 2, 2), "the input's rank is 5, must be 3 or 4"),
        ((1, 3, 4, 4), None, "weights 'w' is computed at run time, must be constant"),
    ],
)
def test_convtranspose_for_the_host(x_shape, w_shape, reason):
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], "n")
    inputs = [value("x", F, x_shape)] + ([value("w", F, (3, 2, 2, 2))] if w_shape is None else [])
    constants = {} if w_shape is None else {"w": np.ones(w_shape, F)}
    found = imported(model([node], inputs, [value("y", F, None)], constants))
    assert reasons(found)["n"].startswith(f"ConvTranspose 'n': {reason}")
