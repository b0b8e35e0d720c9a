"""Operators of onnxruntime's own domain: QGemm on the cores, the rest on the host with known types."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from cim.diagnostics import CimError
from tests.codegen.models import check_names, imported, model, reasons, run, run_whole, value

F = np.float32


def custom(made):
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return made


@settings(max_examples=60)
@given(
    st.sampled_from([np.int8, np.uint8]), st.integers(0, 1), st.integers(0, 1),
    st.sampled_from([None, (), (5,), (1, 5), (4, 5), (4, 1)]), st.booleans(), st.booleans(),
    st.sampled_from([1.0, 0.5]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_qgemm(dtype, turn_a, turn_b, c_shape, has_y, per_channel, alpha, seed):
    """Against NumPy int64, with an 8-bit output or a float one."""
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max + 1, (4, 3)).astype(dtype)
    w = rng.integers(-128, 128, (3, 5)).astype(np.int8)
    ws = rng.uniform(0.01, 0.1, 5).astype(F) if per_channel else F(0.05)
    constants = {"xs": F(0.5), "xz": np.array(3, dtype), "w": w.T if turn_b else w, "ws": ws}
    constants["wz"] = np.full(np.shape(ws), -2, np.int8)
    sums = (x.astype(np.int64) - 3) @ (w.astype(np.int64) + 2)
    if c_shape is not None:
        constants["c"] = rng.integers(-300, 300, c_shape).astype(np.int32)
        sums = sums + constants["c"]
    names = ["x", *constants] + ([] if c_shape is not None or not has_y else [""])
    if has_y:
        constants |= {"ys": F(0.75), "yz": np.array(7, dtype)}
        names += ["ys", "yz"]
    node = helper.make_node(
        "QGemm",
        names,
        ["y"],
        "n",
        domain="com.microsoft",
        alpha=alpha,
        transA=turn_a,
        transB=turn_b,
    )
    given_x = x.T.copy() if turn_a else x
    y = value("y", dtype if has_y else F, (4, 5))
    made = custom(model([node], [value("x", dtype, given_x.shape)], [y], constants))
    if has_y and c_shape in ((4, 5), (4, 1)):
        assert "different from row to row" in reasons(imported(made))["n"]
        return
    check_names(made)
    found, layers = run_whole(made, {"x": given_x})
    assert len(layers) == 1
    factor = F(0.5) * (ws * F(alpha))
    if has_y:
        scaled = np.rint(sums.astype(F) * (factor / F(0.75))).astype(np.int64) + 7
        assert np.array_equal(found[0], np.clip(scaled, limits.min, limits.max).astype(dtype))
    else:
        np.testing.assert_allclose(found[0], sums * factor, rtol=1e-5)


def test_types_behind_operators_that_onnx_does_not_define():
    """QLinearAdd, QLinearGlobalAveragePool and QGemm one after another, no value declared."""
    numbers = {"s": F(0.5), "z": np.uint8(3), "w": np.ones((4, 2), np.int8), "wz": np.int8(0)}
    nodes = [
        helper.make_node("QLinearAdd", ["x", "s", "z", "x", "s", "z", "s", "z"], ["a"], "add", domain="com.microsoft"),
        helper.make_node("QLinearGlobalAveragePool", ["a", "s", "z", "s", "z"], ["p"], "pool", domain="com.microsoft"),
        helper.make_node("Flatten", ["p"], ["f"], "flat"),
        helper.make_node("QGemm", ["f", "s", "z", "w", "s", "wz", "", "s", "z"], ["y"], "n", domain="com.microsoft"),
    ]  # fmt: skip
    made = custom(
        model(nodes, [value("x", np.uint8, (1, 4, 3, 3))], [value("y", np.uint8, (1, 2))], numbers)
    )
    found = imported(made)
    assert set(reasons(found)) == {"add", "pool", "flat"}
    x = np.random.default_rng(0).integers(0, 100, (1, 4, 3, 3)).astype(np.uint8)
    got, layers = run_whole(made, {"x": x})
    assert len(layers) == 1
    assert np.abs(got[0].astype(int) - run(made, {"x": x})[0]).max() <= 1


def test_behind_an_operator_that_nobody_knows_types_are_unknown():
    nodes = [
        helper.make_node("Strange", ["x"], ["a"], "odd", domain="example.org"),
        helper.make_node("Conv", ["a", "w"], ["y"], "n"),
    ]
    info = [value("x", F, (1, 1, 3, 3))], [value("y", F, (1, 1, 3, 3))]
    made = model(nodes, *info, {"w": np.ones((1, 1, 1, 1), F)})
    made.opset_import.append(helper.make_opsetid("example.org", 1))
    found = imported(made)
    assert "the type of the input is not known, must be float32" in reasons(found)["n"]
    with pytest.raises(
        CimError, match=r"the type of value 'a', made by example\.org\.Strange 'odd',"
    ):
        found.graph.value_info("a")
