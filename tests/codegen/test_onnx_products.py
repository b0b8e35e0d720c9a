"""Products in every form run on the cores, with the right numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.cases import operand_shapes
from tests.codegen.models import close, model, on_cores, operator, requantized, run, value

F = np.float32


@settings(max_examples=60)
@given(operand_shapes(), st.booleans(), st.integers(0, 2**32 - 1))
def test_matmul_with_either_side_constant(shapes, on_left, seed):
    rng = np.random.default_rng(seed)
    left, right = (rng.normal(size=shape).astype(F) for shape in shapes)
    w, x = (left, right) if on_left else (right, left)
    names = ["w", "x"] if on_left else ["x", "w"]
    made = operator("MatMul", x.shape, {"w": w}, inputs=names)
    found = on_cores(made, {"x": x}, layers=int(np.prod(w.shape[:-2])))
    close(found, np.matmul(left, right).astype(F).reshape(found.shape))
    close(found, run(made, {"x": x})[0])


@st.composite
def integer_operands(draw):
    """Operands and zero points of a MatMulInteger, each int8 or uint8."""
    made = []
    for shape in draw(operand_shapes()):
        dtype = np.dtype(draw(st.sampled_from([np.int8, np.uint8])))
        limits = np.iinfo(dtype)
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        made.append(rng.integers(limits.min, limits.max + 1, shape).astype(dtype))
    return made


@settings(max_examples=60)
@given(integer_operands(), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_matmulinteger_with_either_side_constant(operands, on_left, per_channel, seed):
    """Against NumPy int64: zero points of both sides, of the constant one per row or column."""
    rng = np.random.default_rng(seed)
    left, right = operands
    w = left if on_left else right
    zero = {"left": np.array(7, left.dtype), "right": np.array(3, right.dtype)}
    a, b = left.astype(np.int64) - 7, right.astype(np.int64) - 3
    if per_channel and w.ndim >= 2:
        count = w.shape[-2] if on_left else w.shape[-1]
        vector = rng.integers(0, 5, count).astype(w.dtype)
        if on_left:
            zero["left"], a = vector, left.astype(np.int64) - vector.astype(np.int64)[:, None]
        else:
            zero["right"], b = vector, right.astype(np.int64) - vector.astype(np.int64)
    names = ["w", "x"] if on_left else ["x", "w"]
    x = right if on_left else left
    made = operator(
        "MatMulInteger", x.shape, {"w": w, "az": zero["left"], "bz": zero["right"]},
        dtype=x.dtype, out=np.int32, inputs=[*names, "az", "bz"],
    )  # fmt: skip
    found = on_cores(made, {"x": x})
    assert found.dtype == np.int32
    assert np.array_equal(found, np.matmul(a, b).reshape(found.shape))


@settings(max_examples=60)
@given(integer_operands(), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_qlinearmatmul_and_qdq_with_either_side_constant(operands, on_left, per_channel, qdq, seed):
    """Against NumPy: exact sums, one rounding to even, then the zero point."""
    rng = np.random.default_rng(seed)
    left, right = operands
    w, x = (left, right) if on_left else (right, left)
    w_scale = np.array(0.02, F)
    along = w.ndim >= 2 and per_channel
    if along:
        w_scale = rng.uniform(0.01, 0.1, w.shape[-2] if on_left else w.shape[-1]).astype(F)
    a, b = left.astype(np.int64) - 1, right.astype(np.int64) - 2
    factor = F(0.5) * w_scale / F(0.7)
    if along and on_left:
        factor = factor if right.ndim == 1 else factor[:, None]
    elif along and left.ndim == 1 and right.ndim == 1:
        factor = factor[0]
    sums = np.matmul(a, b)
    want = requantized(sums, factor, 5, np.uint8)
    sx, zx = np.array(0.5, F), np.array(2 if on_left else 1, x.dtype)
    zw = np.full(w_scale.shape, 1 if on_left else 2, w.dtype)
    constants = {"w": w, "sw": w_scale, "zw": zw, "sx": sx, "zx": zx}
    constants |= {"sy": np.array(0.7, F), "zy": np.array(5, np.uint8)}
    sides = [("w", "sw", "zw"), ("x", "sx", "zx")]
    sides = sides if on_left else sides[::-1]
    if qdq:
        nodes = [
            helper.make_node(
                "DequantizeLinear", [*side], [f"d{side[0]}"],
                **({"axis": w.ndim - (2 if on_left else 1)} if side[0] == "w" and along else {}),
            )
            for side in sides
        ]  # fmt: skip
        nodes.append(helper.make_node("MatMul", [f"d{side[0]}" for side in sides], ["m"], "n"))
        nodes.append(helper.make_node("QuantizeLinear", ["m", "sy", "zy"], ["y"]))
    else:
        nodes = [helper.make_node("QLinearMatMul", [*sides[0], *sides[1], "sy", "zy"], ["y"], "n")]
    output = value("y", np.uint8, want.shape)
    made = model(nodes, [value("x", x.dtype, x.shape)], [output], constants)
    found = on_cores(made, {"x": x})
    assert np.array_equal(found, want)


@settings(max_examples=80)
@given(
    integer_operands(), st.booleans(), st.booleans(), st.sampled_from(["Relu", "Add", "output"]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_products_that_are_not_quantized_at_once(operands, on_left, per_channel, behind, seed):
    """As before an activation or a residual sum: exact sums on the cores, whichever side is constant; the rest in float."""
    rng = np.random.default_rng(seed)
    left, right = operands
    w, x = (left, right) if on_left else (right, left)
    zero, w_scale = [np.asarray(7, left.dtype), np.asarray(3, right.dtype)], np.array(0.25, F)
    along = w.ndim >= 2 and per_channel
    place = 0 if on_left else 1
    if along:
        count = w.shape[-2] if on_left else w.shape[-1]
        w_scale = 2.0 ** -rng.integers(0, 3, count).astype(F)
        zero[place] = rng.integers(0, 5, count).astype(w.dtype)
    spread = (-1, 1) if on_left else (-1,)
    numbers = [left.astype(np.float64) - 7, right.astype(np.float64) - 3]
    if along:
        numbers[place] = (w - zero[place].astype(np.float64).reshape(spread)) * w_scale.reshape(
            spread
        )
    else:
        numbers[place] = numbers[place] * 0.25
    want = np.asarray(np.matmul(*numbers) * 0.5, F)
    names = "wx" if on_left else "xw"
    constants = {"w": w, "sw": w_scale, "zw": zero[place], "sx": F(0.5), "zx": zero[1 - place]}
    axis = {"axis": w.ndim - (2 if on_left else 1)} if along else {}
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["dw"], **axis),
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["dx"]),
        helper.make_node("MatMul", [f"d{name}" for name in names], ["m"], "n"),
    ]
    feeds = {"x": x}
    outputs = [value("m", F, want.shape)]
    if behind == "Relu":
        want = np.maximum(want, 0)
        nodes.append(helper.make_node("Relu", ["m"], ["r"], "act"))
    elif behind == "Add":
        feeds["other"] = rng.integers(-9, 9, want.shape).astype(np.int8)
        nodes.append(helper.make_node("DequantizeLinear", ["other", "sx"], ["o"]))
        nodes.append(helper.make_node("Add", ["m", "o"], ["r"], "sum"))
        want = want + feeds["other"].astype(F) * F(0.5)
    if behind != "output":
        constants |= {"sy": F(2), "zy": np.uint8(9)}
        nodes.append(helper.make_node("QuantizeLinear", ["r", "sy", "zy"], ["y"], "q"))
        outputs = [value("y", np.uint8, want.shape)]
        want = requantized(want, F(0.5), 9, np.uint8)
    inputs = [value(name, array.dtype, array.shape) for name, array in feeds.items()]
    found = on_cores(model(nodes, inputs, outputs, constants), feeds)
    assert np.array_equal(found, want)


@pytest.mark.parametrize("operator", ["MatMul", "Gemm"])
def test_an_output_scale_that_is_computed_later(operator):
    """What stands for a product with its QuantizeLinear may not read it before it is made."""
    rng = np.random.default_rng(3)
    w, x = (rng.integers(-9, 10, shape).astype(np.int8) for shape in ((4, 3), (3, 2)))
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["dw"]),
        helper.make_node("DequantizeLinear", ["x", "s"], ["dx"]),
        helper.make_node(operator, ["dw", "dx"], ["m"], "n"),
        helper.make_node("Abs", ["given"], ["sy"], "abs"),
        helper.make_node("QuantizeLinear", ["m", "sy", "z"], ["y"], "q"),
    ]
    inputs = [value("x", np.int8, x.shape), value("given", F, ())]
    made = model(nodes, inputs, [value("y", np.int8, (4, 2))], {"w": w, "s": F(0.5), "z": np.int8(0)})  # fmt: skip
    feeds = {"x": x, "given": np.array(-2, F)}
    assert np.array_equal(on_cores(made, feeds, layers=1), run(made, feeds)[0])


def test_scales_of_each_matrix_of_a_batch():
    """Scales [2, 1, N] are those of the matrix's own columns."""
    rng = np.random.default_rng(2)
    x = rng.integers(0, 256, (2, 3, 4)).astype(np.uint8)
    w = rng.integers(-128, 128, (2, 4, 5)).astype(np.int8)
    scale = rng.uniform(0.01, 0.1, (2, 1, 5)).astype(F)
    constants = {
        "xs": F(0.5),
        "xz": np.uint8(3),
        "w": w,
        "ws": scale,
        "wz": np.zeros((2, 1, 5), np.int8),
    }
    constants |= {"ys": F(2), "yz": np.uint8(9)}
    node = helper.make_node("QLinearMatMul", ["x", *constants], ["y"], "n")
    info = [value("x", np.uint8, x.shape)], [value("y", np.uint8, (2, 3, 5))]
    made = model([node], *info, constants)
    want = requantized(
        (x.astype(np.int64) - 3) @ w.astype(np.int64), F(0.5) * scale / F(2), 9, np.uint8
    )
    assert np.array_equal(on_cores(made, {"x": x}, layers=2), want)
