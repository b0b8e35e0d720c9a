"""Padding in all its forms, and the shapes that the cores cannot do."""

import itertools

import numpy as np
import pytest
from onnx import helper

from cim.codegen.onnx_geometry import same_padding
from cim.explore.table1 import read_table
from tests.codegen.models import (
    evaluate,
    imported,
    model,
    only_layer,
    operator,
    reasons,
    reference,
    run,
    table1_layer,
    value,
)

RNG = np.random.default_rng(3)


def floats(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def expected_same(size, kernel, stride, dilation, upper):
    """The rule in words: as many outputs as strides begin in the input, the rest is padding."""
    outputs = len(range(0, size, stride))
    reach = (outputs - 1) * stride + dilation * (kernel - 1) + 1
    total = max(reach - size, 0)
    before = total // 2 if upper else (total + 1) // 2
    return before, total - before


@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_same_padding_table(upper, dilation):
    for kernel, stride, size in itertools.product(range(1, 6), range(1, 4), range(1, 10)):
        dilated = dilation * (kernel - 1) + 1
        before, after = same_padding(size, dilated, stride, upper)
        assert (before, after) == expected_same(size, kernel, stride, dilation, upper)
        assert (size + before + after - dilated) // stride + 1 == -(-size // stride)
        assert after - before == (before + after) % 2 * (1 if upper else -1)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_padding_against_onnxruntime(mode, stride):
    """Kernel 1..5 x size 1..9, the other side of the image held different."""
    for kernel, size in itertools.product(range(1, 6), range(1, 10)):
        w = floats(2, 1, kernel, 2)
        attributes = {"auto_pad": mode, "strides": [stride, 1], "kernel_shape": [kernel, 2]}
        made = operator("Conv", (1, 1, size, 4), {"w": w}, **attributes)
        layer = only_layer(imported(made))
        x = floats(1, 1, size, 4)
        np.testing.assert_allclose(evaluate(layer, x), run(made, {"x": x})[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("dilation", [1, 2])
def test_same_padding_equals_explicit_pads(mode, dilation):
    """With dilation runtimes disagree; ours counts the dilated kernel, checked through pads."""
    for kernel, stride, size in itertools.product(range(1, 6), range(1, 4), range(1, 10)):
        w = floats(1, 1, kernel, 1)
        common = {"strides": [stride, 1], "dilations": [dilation, 1]}
        same = operator("Conv", (1, 1, size, 3), {"w": w}, auto_pad=mode, **common)
        before, after = expected_same(size, kernel, stride, dilation, mode == "SAME_UPPER")
        layer = only_layer(imported(same))
        assert layer.pads == (before, 0, after, 0)
        explicit = operator("Conv", (1, 1, size, 3), {"w": w}, pads=[before, 0, after, 0], **common)
        x = floats(1, 1, size, 3)
        np.testing.assert_allclose(
            evaluate(layer, x), run(explicit, {"x": x})[0], rtol=1e-4, atol=1e-5
        )


def test_valid_ignores_pads_and_notset_uses_them():
    w = floats(2, 2, 3, 3)
    valid = only_layer(imported(operator("Conv", (1, 2, 6, 7), {"w": w}, auto_pad="VALID")))
    assert (valid.pads, valid.output_shape) == ((0, 0, 0, 0), (1, 2, 4, 5))
    pads = [0, 1, 2, 3]
    made = operator("Conv", (1, 2, 6, 7), {"w": w}, auto_pad="NOTSET", pads=pads)
    notset = only_layer(imported(made))
    assert (notset.pads, notset.output_shape) == ((0, 1, 2, 3), (1, 2, 6, 9))
    x = floats(1, 2, 6, 7)
    np.testing.assert_allclose(evaluate(notset, x), run(made, {"x": x})[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("x_shape", "w_shape", "attributes", "reason"),
    [
        ((1, 3, 5, 5, 5), (8, 3, 3, 3, 3), {}, "the input's rank is 5, must be 3 or 4"),
        ((1, 3, 5, 5), (8, 2, 3, 3), {}, "the weights' number of input channels is 2, must be 3"),
    ],
)
def test_convolutions_for_the_host(x_shape, w_shape, attributes, reason):
    made = operator("Conv", x_shape, {"w": np.ones(w_shape, np.float32)}, **attributes)
    found = imported(made)
    assert reasons(found)["n"].startswith(f"Conv 'n': {reason}")


@pytest.mark.parametrize(
    ("op", "x_shape", "w_shape", "attributes", "reason"),
    [
        ("MatMul", (2, 3), (3, 0), {}, "the shape of the weights is 3x0, must be without empty"),
    ],
)
def test_products_for_the_host(op, x_shape, w_shape, attributes, reason):
    made = operator(op, x_shape, {"w": np.ones(w_shape, np.float32)}, **attributes)
    assert reasons(imported(made))["n"].startswith(f"{op} 'n': {reason}")


def test_other_types_and_sides_go_to_the_host():
    made = operator("MatMul", (2, 3), {"w": np.ones((3, 2), np.int32)}, dtype=np.int32)
    assert "the type of the input is int32, must be float32" in reasons(imported(made))["n"]
    made = operator("MatMul", (2, 5, 3), {"w": np.ones((2, 3, 2), np.int32)}, dtype=np.int32)
    assert "the type of the input is int32, must be float32" in reasons(imported(made))["n"]


def test_macs_of_host_nodes():
    """Grouped: 8 x 3 x 3 outputs, each over 2 channels x 3 x 3; a layer and a host node count alike."""
    made = operator("Conv", (1, 8, 5, 5), {"w": floats(8, 2, 3, 3)}, group=4)
    assert only_layer(imported(made)).macs == 8 * 3 * 3 * 2 * 3 * 3
    made = operator("Conv", (1, 8, 5, 5, 5), {"w": floats(8, 2, 3, 3, 3)}, group=4)
    (unit,) = imported(made).units
    assert unit.macs == 8 * 3 * 3 * 3 * 2 * 3 * 3 * 3
    made = operator("ConvTranspose", (1, 3, 4, 4, 4), {"w": floats(3, 5, 2, 2, 2)})
    (unit,) = imported(made).units
    assert unit.macs == 3 * 4 * 4 * 4 * 5 * 2 * 2 * 2


@pytest.mark.parametrize("number", range(1, 8))
def test_table1_layers(number):
    row = next(row for row in read_table() if row.layer == number)
    layer = only_layer(imported(table1_layer(row)))
    assert layer.matrix_shape == (row.matrix_cols, row.matrix_rows)
    assert layer.image == (row.input_h, row.input_w, row.in_channels)
    assert layer.bias is None
    assert layer.type_names == ("u8", "u8")


@pytest.mark.parametrize(
    ("channels", "outputs", "group"), [(8, 8, 8), (6, 12, 6), (8, 4, 2), (6, 9, 3)]
)
def test_groups(channels, outputs, group):
    w = floats(outputs, channels // group, 3, 2)
    made = operator("Conv", (1, channels, 6, 7), {"w": w}, group=group, pads=[1, 0, 1, 2])
    layer = only_layer(imported(made))
    assert (layer.groups, layer.matrix_shape) == (group, (3 * 2 * channels, outputs))
    x = floats(1, channels, 6, 7)
    np.testing.assert_allclose(reference(layer, x), run(made, {"x": x})[0], rtol=1e-4, atol=1e-5)


def test_groups_that_do_not_divide_the_channels_go_to_the_host():
    node = helper.make_node("Conv", ["x", "w"], ["y"], "n", group=3)
    x, y = value("x", np.float32, [1, 8, 5, 5]), value("y", np.float32, None)
    made = model([node], [x], [y], {"w": floats(9, 2, 3, 3)})
    assert "group is 3, must be a divisor of 8 and 9 channels" in reasons(imported(made))["n"]


@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("size", [(9,), (6, 7)])
@pytest.mark.parametrize("auto_pad", ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"])
def test_one_and_two_dimensions_and_any_number_of_images(images, size, auto_pad):
    axes = len(size)
    attributes = {"strides": [2, 1][:axes], "auto_pad": auto_pad}
    if auto_pad == "NOTSET":
        attributes["pads"] = [1, 0, 2, 1][: 2 * axes]
        attributes["dilations"] = [1, 2][-axes:]  # which onnxruntime refuses together with SAME
    made = operator("Conv", (images, 4, *size), {"w": floats(6, 4, *[3, 2][:axes])}, **attributes)
    layer = only_layer(imported(made))
    x = floats(images, 4, *size)
    (want,) = run(made, {"x": x})
    np.testing.assert_allclose(reference(layer, x), want, rtol=1e-4, atol=1e-5)
    assert layer.macs == want.size * 4 * np.prod([3, 2][:axes])
