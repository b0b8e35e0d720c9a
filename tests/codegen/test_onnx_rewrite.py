"""Products, transposed convolutions and paddings in every form run on the cores, with the right numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import cim
from cim.codegen.onnx_forms import REWRITERS
from cim.codegen.onnx_import import RECOGNIZED
from cim.diagnostics import CimError
from tests.codegen.models import (
    close,
    imported,
    model,
    on_cores,
    operator,
    reasons,
    requantized,
    run,
    run_whole,
    value,
    with_shapes,
)

F = np.float32


@st.composite
def operand_shapes(draw):
    """Shapes of two operands of a MatMul, of any rank from 1, with broadcasting."""
    k = draw(st.integers(1, 4))
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    shapes = []
    for inner in ((draw(st.integers(1, 4)), k), (k, draw(st.integers(1, 4)))):
        own = [size if draw(st.booleans()) else 1 for size in batch]
        own = own[draw(st.integers(0, len(own))) :]
        shapes.append((*own, *inner))
    if draw(st.integers(0, 4)) == 0:
        shapes[draw(st.integers(0, 1))] = (k,)
    return shapes


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


@pytest.mark.parametrize("opset", [7, 10, 11, 17, 18, 24])
def test_glue_is_valid_at_every_opset(opset):
    rng = np.random.default_rng(1)
    w = rng.normal(size=(2, 3, 4)).astype(F)
    t = rng.normal(size=(2, 3, 2, 2)).astype(F)
    nodes = [
        helper.make_node("MatMul", ["w", "x"], ["m"], "m"),
        helper.make_node("Unsqueeze", ["m"], ["u"], axes=[0]) if opset < 13 else helper.make_node("Unsqueeze", ["m", "axes"], ["u"]),
        helper.make_node("ConvTranspose", ["u", "t"], ["y"], "c", strides=[2, 2]),
    ]  # fmt: skip
    constants = {"w": w, "t": t, **({"axes": np.array([0])} if opset >= 13 else {})}
    made = model(
        nodes, [value("x", F, (4, 5))], [value("y", F, (1, 3, 6, 10))], constants, opset=opset
    )
    x = rng.normal(size=(4, 5)).astype(F)
    close(on_cores(made, {"x": x}, layers=3), run(made, {"x": x})[0])


# --- Pad -----------------------------------------------------------------------------------------------------


def padded(op, opset, pads, fill, *, between=False, mode="constant", shape=(1, 2, 4, 5)):
    """A Pad and a convolution, with what the convolution's operator needs, of input x."""
    integer = op != "Conv" or between
    dtype = np.uint8 if integer else F
    constants = {
        "w": np.random.default_rng(0)
        .integers(-9, 9, (3, 2, 2, 2))
        .astype(np.int8 if integer else F)
    }
    value_name = [] if fill is None else ["fill"]
    if fill is not None:
        constants["fill"] = np.array(fill, dtype)
    if opset >= 11:
        constants["pads"] = np.array(pads)
        nodes = [helper.make_node("Pad", ["x", "pads", *value_name], ["p"], mode=mode)]
    else:
        constants.pop("fill", None)
        nodes = [
            helper.make_node("Pad", ["x"], ["p"], pads=pads, mode=mode, value=float(fill or 0))
        ]
    numbers = {
        "s": F(0.5),
        "z": np.uint8(7),
        "ws": F(1),
        "wz": np.int8(0),
        "ys": F(9),
        "yz": np.uint8(50),
    }
    if between:
        constants |= numbers
        nodes += [
            helper.make_node("DequantizeLinear", ["p", "s", "z"], ["dp"]),
            helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["dw"]),
            helper.make_node("Conv", ["dp", "dw"], ["c"], "n", pads=[0, 1, 0, 0]),
            helper.make_node("QuantizeLinear", ["c", "ys", "yz"], ["y"]),
        ]
    elif op == "QLinearConv":
        constants |= numbers
        nodes.append(
            helper.make_node(
                op, ["p", "s", "z", "w", "ws", "wz", "ys", "yz"], ["y"], "n", pads=[0, 1, 0, 0]
            )
        )
    elif op == "ConvInteger":
        constants["z"] = np.uint8(7)
        nodes.append(helper.make_node(op, ["p", "w", "z"], ["y"], "n", pads=[0, 1, 0, 0]))
    else:
        nodes.append(helper.make_node(op, ["p", "w"], ["y"], "n", pads=[0, 1, 0, 0]))
    out = np.int32 if op == "ConvInteger" else dtype
    return model(nodes, [value("x", dtype, shape)], [value("y", out, None)], constants, opset=opset)


@pytest.mark.parametrize(
    ("op", "opset", "fill", "between"),
    [("Conv", 7, 0, False), ("Conv", 11, 0, False), ("Conv", 17, None, False), ("Conv", 17, 7, True),
     ("QLinearConv", 17, 7, False), ("ConvInteger", 17, 7, False)],
)  # fmt: skip
def test_a_pad_becomes_the_convolutions_own(op, opset, fill, between):
    made = padded(op, opset, [0, 0, 1, 2, 0, 0, 0, 3], fill, between=between)
    found = imported(made)
    assert [layer.pads for layer in found.layers] == [(1, 3, 0, 3)]
    assert reasons(found) == {}
    x = (
        np.random.default_rng(1)
        .integers(0, 200, (1, 2, 4, 5))
        .astype(F if op == "Conv" and not between else np.uint8)
    )
    found, want = on_cores(made, {"x": x}), run(made, {"x": x})[0]
    if found.dtype == np.uint8:  # onnxruntime computes in float: ties
        assert np.abs(found.astype(int) - want).max() <= 1
        assert np.mean(found != want) < 0.02
    else:
        close(found, want)


@pytest.mark.parametrize(
    "change",
    [{"fill": 1}, {"pads": [0, 0, -1, 0, 0, 0, 0, 0]}, {"pads": [0, 1, 0, 0, 0, 0, 0, 0], "shape": (1, 1, 4, 5)},
     {"mode": "edge", "fill": None}],
)  # fmt: skip
def test_another_pad_stays_what_it_is(change):
    made = padded(
        "Conv", 17, change.pop("pads", [0, 0, 1, 2, 0, 0, 0, 3]), change.pop("fill", 0), **change
    )
    found = imported(made)
    assert [layer.pads for layer in found.layers] == [(0, 1, 0, 0)]
    shape = found.graph.type("x").shape
    x = np.random.default_rng(1).normal(size=shape).astype(F)
    close(run_whole(made, {"x": x})[0][0], run(made, {"x": x})[0])


# --- Identity and Dropout ------------------------------------------------------------------------------------


def test_identities_and_dropouts_are_taken_out():
    """In front of, behind and between operators, of an activation, at graph outputs; values stay the same."""
    constants = {"w": np.full((2, 2, 1, 1), 2, F), "ratio": F(0.5), "no": np.array(False)}
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Conv", ["a", "w"], ["b"], "n"),
        helper.make_node("Dropout", ["b", "ratio", "no"], ["c", ""]),
        helper.make_node("Identity", ["c"], ["d"]),
        helper.make_node("Relu", ["d"], ["e"], "act"),
        helper.make_node("Identity", ["e"], ["y"]),
    ]
    made = model(nodes, [value("x", F, (1, 2, 3, 3))], [value("y", F, (1, 2, 3, 3))], constants)
    found = imported(made)
    assert reasons(found) == {}
    (layer,) = found.layers
    assert (layer.input_name, layer.output_name, layer.activation.kind) == ("x", "y", "relu")


def test_identities_that_must_stay():
    """From input to output, of a value that is itself an output, and one that a subgraph reads."""
    inner = helper.make_graph(
        [helper.make_node("Relu", ["kept"], ["r"])], "inner", [], [value("r", F, (2,))]
    )
    nodes = [
        helper.make_node("Identity", ["x"], ["same"]),
        helper.make_node("Relu", ["x"], ["a"], "act"),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Identity", ["a"], ["kept"]),
        helper.make_node("If", ["go"], ["y"], then_branch=inner, else_branch=inner),
    ]
    inputs = [value("x", F, (2,)), helper.make_tensor_value_info("go", TensorProto.BOOL, ())]
    outputs = [value(name, F, (2,)) for name in ("same", "a", "b", "y")]
    made = model(nodes, inputs, outputs)
    feeds = {"x": np.array([-1, 2], F), "go": np.array(True)}
    for found, want in zip(run_whole(made, feeds)[0], run(made, feeds), strict=True):
        close(found, want)


@pytest.mark.parametrize("mask", [False, True])
def test_a_dropout_in_training_or_with_its_mask_stays(mask):
    constants = {"ratio": F(0.0), "train": np.array(not mask)}
    nodes = [
        helper.make_node("Dropout", ["x", "ratio", "train"], ["y", "m"] if mask else ["y"], "drop"),
    ]
    outputs = [value("y", F, (2,))]
    if mask:
        outputs.append(helper.make_tensor_value_info("m", TensorProto.BOOL, (2,)))
    made = model(nodes, [value("x", F, (2,))], outputs, constants)
    assert set(reasons(imported(made))) == {"drop"}


# --- --host --------------------------------------------------------------------------------------------------


def test_nodes_that_are_asked_for_on_the_host(tmp_path):
    constants = {"w": np.ones((2, 2, 1, 1), F), "t": np.ones((2, 2, 2, 2), F)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "one"),
        helper.make_node("ConvTranspose", ["a", "t"], ["y"], "two", strides=[2, 2]),
    ]
    made = model(nodes, [value("x", F, (1, 2, 3, 3))], [value("y", F, (1, 2, 6, 6))], constants)
    found = imported(made, tmp_path, host=["two"])
    text = "ConvTranspose 'two': it is asked for on the host (--host), must be left to the cores"
    assert reasons(found) == {"two": text}
    assert [layer.name for layer in found.layers] == ["one"]
    with pytest.raises(
        CimError, match="--host names 'tow', the model has no such node; did you mean 'two'"
    ):
        imported(made, tmp_path, host=["tow"])


@pytest.mark.parametrize("op", ["Relu", "MaxPool", "Squeeze"])
def test_what_is_no_matrix_operator_cannot_be_asked_for_on_the_host(op):
    """It would be part of a layer all the same, or is on the host anyway."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "conv"),
        helper.make_node(op, ["a"], ["y"], "other", **({"kernel_shape": [1, 1]} if op == "MaxPool" else {})),
    ]  # fmt: skip
    made = with_shapes(
        model(nodes, [value("x", F, (1, 1, 3, 1))], [value("y", F, None)], {"w": np.ones((1, 1, 1, 1), F)})
    )  # fmt: skip
    with pytest.raises(CimError) as caught:
        imported(made, host=["other", "unknown", "conv"])
    texts = [diagnostic.message for diagnostic in caught.value.diagnostics]
    assert texts == [
        f"--host names 'other', a {op}, must be a matrix operator: {', '.join(REWRITERS)}",
        "--host names 'unknown', the model has no such node",
    ]
    assert set(REWRITERS) == set(RECOGNIZED)


def test_the_model_that_is_compared_with_is_the_given_one():
    made = operator("MatMul", (4, 5), {"w": np.ones((3, 4), F)}, inputs=["w", "x"])
    found = imported(made)
    assert [node.op_type for node in found.graph.named_model().graph.node] == ["MatMul"]
    assert numpy_helper.to_array(found.graph.named_model().graph.initializer[0]).shape == (3, 4)


def test_names_that_the_model_has_already():
    """A model whose own values are called what a replacement or a folded part would be."""
    rng = np.random.default_rng(0)
    first = operator(
        "MatMul", (4, 5), {"w": rng.normal(size=(2, 3, 4)).astype(F)}, inputs=["w", "x"]
    )
    own = [name for node in imported(first).graph.nodes for name in (node.name, *node.outputs)]
    taken = [name for name in own if name.startswith("n/")]
    assert len(taken) > 4
    nodes = [
        *first.graph.node,
        *(
            helper.make_node("Relu", ["x"], [name], f"r{i}")
            for i, name in enumerate(dict.fromkeys(taken))
        ),
    ]
    nodes += [
        helper.make_node("Tanh", ["x"], [f"t{i}"], name)
        for i, name in enumerate(dict.fromkeys(taken))
    ]
    outputs = [
        *first.graph.output,
        *(value(name, F, (4, 5)) for name in dict.fromkeys(taken)),
        *(value(f"t{i}", F, (4, 5)) for i, _ in enumerate(dict.fromkeys(taken))),
    ]
    made = model(nodes, list(first.graph.input), outputs)
    made.graph.initializer.extend(first.graph.initializer)
    x = rng.normal(size=(4, 5)).astype(F)
    for found, want in zip(run_whole(made, {"x": x})[0], run(made, {"x": x}), strict=True):
        close(found, want)
    program = cim.compile(made, settings=["core.crossbar=2x2", "core.count=2"], fold=True)
    program.run(x, check=True)
    names = [layer.name for layer in imported(made).layers]
    assert len(set(names)) == len(names) == 2
