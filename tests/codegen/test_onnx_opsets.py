"""Every operator that becomes a layer, and every one that is folded or fused, at every opset."""

import numpy as np
import onnx
import pytest
from onnx import helper

from cim.codegen.onnx_load import OLDEST_OPSET
from cim.emulator.network import onnx_session
from tests.codegen.models import imported, model, reasons, run_whole, value

F = np.float32
RNG = np.random.default_rng(0)


OPSETS = range(OLDEST_OPSET, onnx.defs.onnx_opset_version() + 1)


def floats(*shape):
    return RNG.normal(size=shape).astype(F)


def bytes_(*shape):
    return RNG.integers(-9, 10, shape).astype(np.int8)


def cases(opset):
    """Name, nodes, constants, input shape and type, output type, and the operators that the host may have."""
    scales = {"s": F(0.5), "z": np.uint8(3), "ws": F(0.25), "wz": np.int8(0)}
    yield (
        "conv",
        [helper.make_node("Conv", ["x", "w", "b"], ["y"], pads=[1, 0, 0, 1])],
        {"w": floats(3, 2, 2, 2), "b": floats(3)},
        (1, 2, 4, 4),
        F,
        F,
        (),
    )
    yield (
        "transposed",
        [helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2])],
        {"w": floats(2, 3, 2, 2)},
        (1, 2, 4, 4),
        F,
        F,
        ("Concat", "Gather"),
    )
    yield (
        "gemm",
        [helper.make_node("Gemm", ["x", "w", "c"], ["y"], transB=1, alpha=0.5)],
        {"w": floats(3, 4), "c": floats(1, 3)},
        (2, 4),
        F,
        F,
        (),
    )
    yield (
        "gemm turned",
        [helper.make_node("Gemm", ["x", "w", "c"], ["y"], transA=1)],
        {"w": floats(2, 3), "c": floats(4, 3)},
        (2, 4),
        F,
        F,
        ("Transpose", "Add"),
    )
    yield (
        "matmul",
        [helper.make_node("MatMul", ["w", "x"], ["y"])],
        {"w": floats(2, 3, 4)},
        (4, 5),
        F,
        F,
        ("Transpose", "Reshape", "Gather", "Concat"),
    )
    norm = {name: np.abs(floats(3)) + F(0.1) for name in ("g", "h", "m", "v")}
    yield (
        "norm",
        [
            helper.make_node("Conv", ["x", "w"], ["c"]),
            helper.make_node("BatchNormalization", ["c", "g", "h", "m", "v"], ["y"]),
        ],
        {"w": floats(3, 2, 1, 1), **norm},
        (1, 2, 3, 3),
        F,
        F,
        (),
    )
    for op in ("Add", "Sub", "Mul", "Div"):
        yield (
            op,
            [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node(op, ["c", "k"], ["y"])],
            {"w": floats(3, 2, 1, 1), "k": np.abs(floats(3, 1, 1)) + F(0.1)},
            (1, 2, 3, 3),
            F,
            F,
            (),
        )
    for op, attributes in (
        ("Relu", {}),
        ("LeakyRelu", {"alpha": 0.2}),
        ("HardSigmoid", {"alpha": 0.3}),
        *([("HardSwish", {})] if opset >= 14 else []),
        ("Identity", {}),
        ("Dropout", {}),
    ):
        yield (
            op,
            [
                helper.make_node("Conv", ["x", "w"], ["c"]),
                helper.make_node(op, ["c"], ["y"], **attributes),
            ],
            {"w": floats(3, 2, 1, 1)},
            (1, 2, 3, 3),
            F,
            F,
            (),
        )
    yield (
        "PRelu",
        [helper.make_node("Conv", ["x", "w"], ["c"]), helper.make_node("PRelu", ["c", "k"], ["y"])],
        {"w": floats(3, 2, 1, 1), "k": floats(3, 1, 1)},
        (1, 2, 3, 3),
        F,
        F,
        (),
    )
    bounds = {"low": F(-0.5), "high": F(0.5)} if opset >= 11 else {}
    clip = helper.make_node(
        "Clip", ["c", *bounds], ["y"], **({} if bounds else {"min": -0.5, "max": 0.5})
    )
    yield (
        "Clip",
        [helper.make_node("Conv", ["x", "w"], ["c"]), clip],
        {"w": floats(3, 2, 1, 1), **bounds},
        (1, 2, 3, 3),
        F,
        F,
        (),
    )
    pads = [0, 0, 1, 0, 0, 0, 0, 2]
    pad = (
        helper.make_node("Pad", ["x", "pads"], ["p"])
        if opset >= 11
        else helper.make_node("Pad", ["x"], ["p"], pads=pads)
    )
    yield (
        "Pad",
        [pad, helper.make_node("Conv", ["p", "w"], ["y"])],
        {"w": floats(3, 2, 2, 2), **({"pads": np.array(pads)} if opset >= 11 else {})},
        (1, 2, 3, 3),
        F,
        F,
        (),
    )
    if opset < 10:
        return
    yield (
        "ConvInteger",
        [helper.make_node("ConvInteger", ["x", "w", "z"], ["y"])],
        {"w": bytes_(3, 2, 2, 2), "z": scales["z"]},
        (1, 2, 4, 4),
        np.uint8,
        np.int32,
        (),
    )
    yield (
        "MatMulInteger",
        [helper.make_node("MatMulInteger", ["x", "w", "z", "wz"], ["y"])],
        {"w": bytes_(4, 3), "z": scales["z"], "wz": scales["wz"]},
        (2, 4),
        np.uint8,
        np.int32,
        (),
    )
    yield (
        "QLinearConv",
        [helper.make_node("QLinearConv", ["x", "s", "z", "w", "ws", "wz", "s", "z"], ["y"])],
        {"w": bytes_(3, 2, 2, 2), **scales},
        (1, 2, 4, 4),
        np.uint8,
        np.uint8,
        (),
    )
    yield (
        "QLinearMatMul",
        [helper.make_node("QLinearMatMul", ["x", "s", "z", "w", "ws", "wz", "s", "z"], ["y"])],
        {"w": bytes_(4, 3), **scales},
        (2, 4),
        np.uint8,
        np.uint8,
        (),
    )
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["dx"]), helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["dw"]),
        helper.make_node("Conv", ["dx", "dw"], ["c"]), helper.make_node("QuantizeLinear", ["c", "s", "z"], ["y"]),
    ]  # fmt: skip
    yield "QDQ", nodes, {"w": bytes_(3, 2, 2, 2), **scales}, (1, 2, 4, 4), np.uint8, np.uint8, ()


@pytest.mark.parametrize("opset", OPSETS)
def test_each_operator(opset):
    for name, nodes, constants, shape, x_type, y_type, glue in cases(opset):
        made = model(
            nodes, [value("x", x_type, shape)], [value("y", y_type, None)], constants, opset=opset
        )
        found = imported(made)
        runtime = onnx_session(
            made.SerializeToString()
        )  # ONNX's own where onnxruntime lacks the opset
        assert len(found.layers) == (2 if name == "matmul" else 1), (name, reasons(found))
        assert {text.split(" ")[0] for text in reasons(found).values()} <= set(glue), name
        x = floats(*shape) if x_type == F else RNG.integers(0, 256, shape).astype(np.uint8)
        got, want = run_whole(made, {"x": x})[0][0], runtime.run(None, {"x": x})[0]
        if y_type == np.uint8:  # onnxruntime computes in float: ties
            assert np.abs(got.astype(int) - want).max() <= 1, name
        else:
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4, err_msg=name)
