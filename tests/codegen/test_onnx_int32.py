"""Int32 sums: none on machines with narrow partial sums, none that could leave int32; else the node stays as it was."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import cim
from cim.codegen import cli
from cim.codegen.compile_layer import compile_layer
from cim.codegen.onnx_import import LayerUnit
from cim.diagnostics import CimError
from cim.isa.machine import load_machine
from tests.codegen.cases import Quantized, operand_shapes, quantized_gemms
from tests.codegen.models import (
    MATRIX,
    check_names,
    imported,
    model,
    on_cores,
    only_layer,
    operator,
    reasons,
    run,
    run_whole,
    save,
    value,
)

F = np.float32
NARROW = "what its layer gives is int32, must be 8-bit where partial sums are narrow"
INT32 = np.iinfo(np.int32)


def keeps_its_own_form(found):
    """Every matrix operator on the host is a node of the model, with the same inputs, outputs and attributes."""
    given_nodes = {node.name: node for node in found.graph.named_model().graph.node}
    for unit in found.units:
        if not isinstance(unit, LayerUnit) and unit.node.operator in MATRIX:
            assert unit.node.proto == given_nodes[unit.node.name]


def for_narrow(made, feeds):
    """The import for a narrow machine, after checks: 8-bit layers alone, own forms, onnxruntime's numbers."""
    found = imported(made, narrow=True)
    assert all(layer.quantization.y_scale is not None for layer in found.layers)
    keeps_its_own_form(found)
    check_names(made)
    wide = {layer.name for layer in imported(made).layers if layer.quantization.y_scale is not None}
    assert {layer.name for layer in found.layers} == wide
    for got, want in zip(run_whole(made, feeds, narrow=True)[0], run(made, feeds), strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        if got.dtype == F:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        else:
            assert np.abs(got.astype(int) - want).max() <= (0 if got.dtype == np.int32 else 1)
    return found


# --- Narrow partial sums ---


@settings(max_examples=200)
@given(quantized_gemms(st.sampled_from([1.0, 0.3, -2.0]), st.sampled_from([1.0, 0.7, 0.0])))
def test_quantized_gemms_on_narrow_machines(case):
    """Those that are a layer of their own stay one; others keep transposes, constants on the left, and C."""
    made = Quantized(case, 0.013)
    found = for_narrow(made.model, made.feeds)
    if not found.layers:
        assert NARROW in reasons(found)["n"]


@st.composite
def products(draw):
    """A MatMulInteger, or a MatMul of dequantized operands that nothing quantizes, of any ranks and either side constant."""
    left, right = draw(operand_shapes())
    on_left, dequantized = draw(st.booleans()), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # uint8 with int8: of both sides signed, onnxruntime has no kernel
    x = rng.integers(0, 256, right if on_left else left).astype(np.uint8)
    w = rng.integers(-60, 61, left if on_left else right).astype(np.uint8 if on_left else np.int8)
    if on_left and not dequantized:
        x = (x.astype(int) - 128).astype(np.int8)
    pair = ["w", "x"] if on_left else ["x", "w"]
    constants, nodes = {"w": w}, []
    shape = np.matmul(np.zeros(left), np.zeros(right)).shape
    if dequantized:
        constants |= {"xs": F(0.5), "ws": F(0.25), "xz": x.dtype.type(3)}
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["dx"]),
            helper.make_node("DequantizeLinear", ["w", "ws"], ["dw"]),
        ]
        pair = [f"d{name}" for name in pair]
    nodes.append(helper.make_node("MatMul" if dequantized else "MatMulInteger", pair, ["y"], "n"))
    y = value("y", F if dequantized else np.int32, shape)
    return model(nodes, [value("x", x.dtype, x.shape)], [y], constants), {"x": x}


@settings(max_examples=100)
@given(products())
def test_products_on_narrow_machines(case):
    made, feeds = case
    found = for_narrow(made, feeds)
    assert not found.layers
    assert NARROW in reasons(found)["n"]


def convolution_before_an_add(operator_="Conv", padded=False):
    """Quantized operands, a float result that an Add reads; a Pad before it would be part of its layer."""
    rng = np.random.default_rng(1)
    constants = {
        "w": rng.integers(-60, 60, (2, 2, 3, 3)).astype(np.int8), "xs": F(0.5), "xz": np.uint8(7), "ws": F(0.25),
        "one": F(1), "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1]), "zero": F(0),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["dx"]),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["dw"]),
    ]
    if padded:
        nodes.append(helper.make_node("Pad", ["dx", "pads", "zero"], ["px"]))
    stride = {"strides": [2, 2]} if operator_ == "ConvTranspose" else {}
    nodes += [
        helper.make_node(operator_, ["px" if padded else "dx", "dw"], ["c"], "n", **stride),
        helper.make_node("Add", ["c", "one"], ["y"], "add"),
    ]
    size = 11 if stride else 5 if padded else 3
    made = model(nodes, [value("x", np.uint8, (1, 2, 5, 5))], [value("y", F, (1, 2, size, size))], constants)  # fmt: skip
    return made, {"x": rng.integers(0, 256, (1, 2, 5, 5)).astype(np.uint8)}


@pytest.mark.parametrize("form", [("Conv", False), ("Conv", True), ("ConvTranspose", False)])
def test_convolutions_on_narrow_machines(form):
    made, feeds = convolution_before_an_add(*form)
    on_cores(made, feeds, layers=1)
    found = for_narrow(made, feeds)
    assert f"{form[0]} 'n': {NARROW}" in reasons(found)["n"]
    share = {unit.node.name: unit.macs for unit in found.units if not isinstance(unit, LayerUnit)}
    assert share["n"] == found.macs > 0


def test_qgemm_with_a_float_output_on_narrow_machines():
    rng = np.random.default_rng(1)
    x, w = rng.integers(0, 256, (4, 3)).astype(np.uint8), rng.integers(-60, 60, (3, 5))
    constants = {"s": F(0.5), "z": np.uint8(3), "w": w.astype(np.int8), "wz": np.int8(0)}
    node = helper.make_node("QGemm", ["x", "s", "z", "w", "s", "wz"], ["y"], "n", domain="com.microsoft")  # fmt: skip
    made = model([node], [value("x", np.uint8, (4, 3))], [value("y", F, (4, 5))], constants)
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    on_cores(made, {"x": x}, layers=1)
    assert NARROW in reasons(for_narrow(made, {"x": x}))["n"]


def mixed():
    """A layer with an 8-bit output, and behind it one with an int32 output."""
    rng = np.random.default_rng(6)
    constants = {
        "s": F(0.5), "z": np.uint8(120), "w": rng.integers(-9, 9, (6, 5)).astype(np.int8), "wz": np.int8(0),
        "ys": F(40), "v": rng.integers(-9, 9, (5, 4)).astype(np.int8),
    }  # fmt: skip
    nodes = [
        helper.make_node("QLinearMatMul", ["x", "s", "z", "w", "s", "wz", "ys", "z"], ["m"], "first"),
        helper.make_node("MatMulInteger", ["m", "v", "z"], ["y"], "second"),
    ]  # fmt: skip
    made = model(nodes, [value("x", np.uint8, (3, 6))], [value("y", np.int32, (3, 4))], constants)
    return made, rng.integers(0, 256, (3, 6)).astype(np.uint8)


def test_a_whole_model_on_a_narrow_machine():
    made, x = mixed()
    program = cim.compile(made, arch="pelke23", settings=["core.crossbar=8x8"])
    done = program.run(x, check=True)
    assert list(done.stats.layers) == ["first"]
    (host,) = done.stats.host
    assert host.name == "second"
    assert NARROW in host.reason
    wide = cim.compile(made, settings=["core.crossbar=8x8"])
    assert len(wide.run(x, check=True).stats.layers) == 2
    assert np.abs(wide.run(x).outputs["y"] - run(made, {"x": x})[0]).max() == 0


def test_a_model_without_any_layer_left_runs_on_the_host():
    made, feeds = convolution_before_an_add()
    program = cim.compile(made, arch="pelke23", settings=["core.crossbar=8x8"])
    assert np.array_equal(program.run(feeds["x"]).outputs["y"], run(made, feeds)[0])


def test_a_layer_that_is_named_is_an_error(tmp_path, capsys):
    """By `--layer`, and where a layer with int32 outputs is compiled by itself."""
    made, _ = mixed()
    path = save(made, tmp_path)
    arguments = [str(path), "--arch", "pelke23", "-o", str(tmp_path / "out")]
    assert cli.main([*arguments, "--layer", "second"]) == 1
    assert f"cannot be mapped: MatMulInteger 'second': {NARROW}" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert cli.main([*arguments, "--layer", "first", "-q"]) == 0
    layer = imported(made).layers[1]
    with pytest.raises(CimError, match="'second' has int32 outputs, and the machine 'pelke23' has"):
        compile_layer(layer, load_machine("pelke23"), "linear", "one")


def test_a_float_model_on_a_narrow_machine_is_told_to_quantize(tmp_path, capsys):
    path = save(operator("MatMul", (2, 3), {"w": np.ones((3, 4), F)}), tmp_path)
    assert cli.main([str(path), "--arch", "pelke23", "-o", str(tmp_path / "out")]) == 1
    assert "--quantize CALIB.npy" in capsys.readouterr().err


# --- Sums beyond int32 ---


def long_product(form, rows, x_zero):
    """A quantized product of `rows` rows of the largest weights, whose result nothing quantizes; its largest input."""
    w = np.full((rows, 2), 255, np.uint8)
    x = np.full((3, rows), 255 if x_zero < 128 else 0, np.uint8)
    constants = {"xs": F(0.5), "xz": np.uint8(x_zero), "w": w, "ws": F(0.25)}
    dequantize = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["dx"]),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["dw"]),
    ]
    shape, element = (3, 2), F
    pair, attributes, name = ["dx", "dw"], {}, "MatMul"
    if form == "on the left":
        constants["w"], x, pair, shape = w.T, x.T, ["dw", "dx"], (2, 3)
    elif form == "batch":
        constants["w"], x, shape = np.stack([w, w]), np.stack([x, x]), (2, 3, 2)
    elif form == "Gemm":
        name, x, attributes = "Gemm", x.T, {"transA": 1, "alpha": 0.5}
    elif form == "Conv":
        name, x, shape = "Conv", x[:, :, None], (3, 2, 1)
        constants["w"] = w.T[:, :, None]
    elif form == "MatMulInteger":
        name, pair, dequantize, element = form, ["x", "w", "xz"], [], np.int32
    nodes = [*dequantize, helper.make_node(name, pair, ["y"], "n", **attributes)]
    made = model(nodes, [value("x", np.uint8, x.shape)], [value("y", element, shape)], constants)
    return made, {"x": np.ascontiguousarray(x)}


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(["MatMul", "on the left", "batch", "Gemm", "Conv", "MatMulInteger"]),
    st.integers(33000, 33050), st.sampled_from([0, 1, 255]),
)  # fmt: skip
def test_sums_that_could_leave_int32_are_not_chosen(form, rows, x_zero):
    """A layer where the largest sum fits; else the node in its own form, and in float the right numbers."""
    made, feeds = long_product(form, rows, x_zero)
    largest = rows * 255 * max(255 - x_zero, x_zero)
    found = imported(made)
    if largest <= INT32.max:
        on_cores(made, feeds, layers=2 if form == "batch" else 1)
    else:
        assert not found.layers
        assert f"the largest sum is {largest}, must be <= 2147483647" in reasons(found)["n"]
        keeps_its_own_form(found)
    if form != "MatMulInteger":  # which is int32 by its definition
        (got,), _ = run_whole(made, feeds)
        scale = 0.125 * (0.5 if form == "Gemm" else 1)
        exact = largest * scale * (1 if x_zero < 128 else -1)
        np.testing.assert_allclose(got, np.full(got.shape, exact), rtol=1e-4)


def test_a_rewritten_node_is_mapped_whole_or_not_at_all():
    """One matrix of two has sums beyond int32."""
    w = np.stack([np.full((33100, 2), 255, np.uint8), np.ones((33100, 2), np.uint8)])
    made = operator("MatMulInteger", (2, 1, 33100), {"w": w}, dtype=np.uint8, out=np.int32)
    found = imported(made)
    assert not found.layers
    assert "the largest sum is 2152327500" in reasons(found)["n"]
    keeps_its_own_form(found)
    made = operator("MatMulInteger", (1, 33100), {"w": w[1]}, dtype=np.uint8, out=np.int32)
    assert only_layer(imported(made)).operator == "MatMulInteger"
