"""A Pad becomes the convolution's own padding where it is the same, and else stays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.models import close, imported, model, on_cores, reasons, run, run_whole, value

F = np.float32


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


@settings(max_examples=150)
@given(st.data())
def test_unsqueeze_and_transpose_may_be_between(data):
    """In any order, of any axes: the Pad goes where it is then of the spatial axes alone, and else stays."""
    small = st.integers(0, 2)
    shape = [data.draw(st.integers(2, 4)) for _ in range(data.draw(st.integers(2, 3)))]
    before, after = ([data.draw(small) for _ in shape] for _ in range(2))
    constants = {"pads": np.array([*before, *after])}
    nodes = [helper.make_node("Pad", ["x", "pads"], ["p"])]
    sizes = [n + b + a for n, b, a in zip(shape, before, after, strict=True)]
    grown = [b + a > 0 for b, a in zip(before, after, strict=True)]
    steps = ["Unsqueeze"] * (4 - len(shape)) + ["Transpose"] * data.draw(small)
    for number, operator in enumerate(data.draw(st.permutations(steps))):
        source, target = nodes[-1].output[0], f"t{number}"
        if operator == "Transpose":
            order = data.draw(st.permutations(range(len(sizes))))
            nodes.append(helper.make_node(operator, [source], [target], target, perm=order))
            sizes, grown = [sizes[i] for i in order], [grown[i] for i in order]
        else:
            axis = data.draw(st.integers(0, len(sizes)))
            constants[f"axes{number}"] = np.array([axis - data.draw(st.sampled_from([0, len(sizes) + 1]))])  # fmt: skip
            nodes.append(helper.make_node(operator, [source, f"axes{number}"], [target], target))
            sizes.insert(axis, 1)
            grown.insert(axis, False)
    rng = np.random.default_rng(0)
    constants["w"] = rng.normal(size=(3, sizes[1], 1, 1)).astype(F)
    nodes.append(helper.make_node("Conv", [nodes[-1].output[0], "w"], ["y"], "n"))
    made = model(nodes, [value("x", F, shape)], [value("y", F, [sizes[0], 3, *sizes[2:]])], constants)  # fmt: skip
    left = {reason.split(" ")[0] for reason in reasons(imported(made)).values()}
    assert ("Pad" in left) == any(grown[:2])
    x = rng.normal(size=shape).astype(F)
    close(on_cores(made, {"x": x}, layers=1), run(made, {"x": x})[0])
