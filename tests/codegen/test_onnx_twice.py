"""A Gemm beside a MatMul of the same operands is an Add behind it, and nothing else is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.models import close, imported, model, only_layer, reasons, run, run_whole, value

F = np.float32
RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 3)).astype(F)
X = RNG.normal(size=(2, 3)).astype(F)


def beside(order, constants=None, weights="w", c="c0", **attributes):
    """Gemms, in numbers, and one MatMul, "m", in any order; each value is an output."""
    nodes = []
    for name in order:
        if name == "m":
            nodes.append(helper.make_node("MatMul", ["x", "w"], ["m"], "product"))
        else:
            inputs = ["x", weights, *([c] if c else [])]
            nodes.append(helper.make_node("Gemm", inputs, [f"g{name}"], f"gemm{name}", **attributes))  # fmt: skip
    outputs = [value(node.output[0], F, X.shape) for node in nodes]
    own = {"w": W, "v": 2 * W, "c0": np.arange(3, dtype=F), **(constants or {})}
    return model(nodes, [value("x", F, X.shape)], outputs, own)


def as_given(made, feeds=None):
    """The numbers are those of onnxruntime; the layers."""
    feeds = feeds or {"x": X}
    found, layers = run_whole(made, feeds)
    for got, want in zip(found, run(made, feeds), strict=True):
        close(got, want)
    return layers


@given(st.permutations(["m", 0, 1]), st.sampled_from([(), (1,), (3,), (1, 3), (2, 1), (2, 3)]))
def test_a_product_that_stands_there_more_than_once_is_one_layer(order, shape):
    """Whichever comes first, and whatever is added."""
    made = beside(order, {"c0": RNG.normal(size=shape).astype(F)})
    assert len(as_given(made)) == 1
    assert {text.split(" ")[0] for text in reasons(imported(made)).values()} == {"Add"}


@pytest.mark.parametrize(
    "change", [{"weights": "v"}, {"c": ""}, {"transB": 1}, {"alpha": 0.5}, {"beta": 2.0}]
)
def test_another_product_is_a_layer_of_its_own(change):
    assert len(as_given(beside(["m", 0], **change))) == 2


def test_weights_that_are_computed_stay_where_they_are():
    nodes = [
        helper.make_node("Gemm", ["x", "w", "c"], ["g"], "gemm"),
        helper.make_node("MatMul", ["x", "w"], ["m"], "product"),
    ]
    outputs = [value(name, F, X.shape) for name in ("g", "m")]
    inputs = [value("x", F, X.shape), value("w", F, W.shape)]
    made = model(nodes, inputs, outputs, {"c": np.ones(3, F)})
    assert as_given(made, {"x": X, "w": W}) == ()
    assert set(reasons(imported(made))) == {"gemm", "product"}


def test_a_hard_swish_of_a_product_without_bias_is_one_layer():
    """As tf2onnx has it: x W + 3 is a Gemm, and x W a MatMul behind it."""
    nodes = [
        helper.make_node("Gemm", ["x", "w", "three"], ["g"], "gemm"),
        helper.make_node("Clip", ["g", "low", "high"], ["h"], "clip"),
        helper.make_node("MatMul", ["x", "w"], ["m"], "product"),
        helper.make_node("Mul", ["h", "sixth"], ["i"], "scaled"),
        helper.make_node("Mul", ["m", "i"], ["y"], "gated"),
    ]
    constants = {"w": W, "three": np.full(3, 3, F), "low": F(0), "high": F(6), "sixth": F(1 / 6)}
    made = model(nodes, [value("x", F, X.shape)], [value("y", F, X.shape)], constants)
    assert only_layer(imported(made)).activation.kind == "hard_swish"
    as_given(made)


def test_nodes_that_make_nothing():
    """As ONNX allows of an LSTM, all of whose outputs may be left out."""
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.normal(size=(3, 4)).astype(np.float32),
        "gates": rng.normal(size=(1, 8, 3)).astype(np.float32),
        "state": rng.normal(size=(1, 8, 2)).astype(np.float32),
    }
    for outputs in ([], ["", "", ""]):
        nodes = [
            helper.make_node("LSTM", ["s", "gates", "state"], outputs, "idle", hidden_size=2),
            helper.make_node("LSTM", ["s", "gates", "state"], outputs, "idle_too", hidden_size=2),
            helper.make_node("MatMul", ["x", "w"], ["y"], "n"),
        ]
        inputs = [value("s", np.float32, (5, 1, 3)), value("x", np.float32, (2, 3))]
        made = model(nodes, inputs, [value("y", np.float32, (2, 4))], constants)
        assert [layer.name for layer in imported(made).layers] == ["n"]
