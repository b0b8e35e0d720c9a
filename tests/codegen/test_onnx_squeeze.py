"""A Squeeze or Transpose behind a convolution moves behind what a layer can take in, whichever axes it takes out or turns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.cases import Chain
from tests.codegen.models import (
    check_names,
    close,
    imported,
    model,
    on_cores,
    reasons,
    run,
    run_whole,
    value,
)

F = np.float32
OPERATORS = [
    "Add", "Sub", "Mul", "Div", "PRelu", "Relu", "LeakyRelu", "Clip", "HardSigmoid", "HardSwish", "Neg", "BatchNormalization",
]  # fmt: skip


@st.composite
def operand_shapes(draw, shape):
    """Of a constant that broadcasts to `shape`, of any rank up to its own."""
    rank = draw(st.integers(0, len(shape)))
    return tuple(size if draw(st.booleans()) else 1 for size in shape[len(shape) - rank :])


def spatial_axes(draw, image, kernel, operator):
    """Any of the spatial axes that have size 1 behind the convolution, counted from either side; at least one."""
    rank = 2 + len(image)
    every = [2 + i for i in range(len(image)) if image[i] == kernel[i] and (operator == "Conv" or image[i] == 1)]  # fmt: skip
    chosen = [axis for axis in every if draw(st.booleans())] or every[:1]
    return [axis - rank if draw(st.booleans()) else axis for axis in chosen]


@st.composite
def chains(draw, turned=False):
    """One or both spatial axes of size 1, in every position, perhaps a Transpose, and any operators behind them."""
    operator = draw(st.sampled_from(["Conv", "ConvTranspose"]))
    image = [draw(st.integers(1, 4)) for _ in range(draw(st.integers(1, 2)))]
    kernel = [draw(st.integers(1, size)) for size in image]
    one = draw(st.integers(0, len(image) - 1))
    image[one] = kernel[one] = draw(st.integers(1, 3)) if operator == "Conv" else 1
    batch = draw(st.integers(1, 2))
    axes = spatial_axes(draw, image, kernel, operator)
    opset = draw(st.sampled_from([14, 17]))
    seed = draw(st.integers(0, 2**32 - 1))
    made = Chain(image, kernel, axes, np.random.default_rng(seed), operator, batch, opset)
    if turned and draw(st.booleans()):
        made.transpose(draw(st.permutations(range(len(made.shape)))))
    operators = draw(st.lists(st.sampled_from([*OPERATORS, "Abs"]), min_size=1, max_size=4))
    extra = draw(st.sampled_from([None, None, *range(len(operators))]))
    outputs = []
    for number, name in enumerate(operators):
        made.add_any(name, draw(operand_shapes(made.shape)), draw(st.booleans()))
        if number == extra and number < len(operators) - 1:
            outputs.append(made.last)
    return made, outputs


@settings(max_examples=300)
@given(chains(turned=True))
def test_any_operators_behind_a_squeeze(case):
    """Against onnxruntime: constants of every shape that broadcasts, and values in between that others see."""
    made, outputs = case
    whole = made.model(outputs)
    check_names(whole)
    found, _ = run_whole(whole, {"x": made.x})
    for got, want in zip(found, run(whole, {"x": made.x}), strict=True):
        close(got, want)


@settings(max_examples=150)
@given(chains(), st.sampled_from(["Relu", "LeakyRelu", "Clip", "HardSwish"]))
def test_what_lies_along_the_channels_is_part_of_the_layer(case, activation):
    made, _ = case
    del made.nodes[2:]
    made.last = "s"
    along = (made.shape[1], *[1] * (len(made.shape) - 2))
    for operator, shape in (("Mul", along), ("Add", (1, *along)), ("BatchNormalization", ())):
        made.add_any(operator, shape)
    made.add_any(activation, ())
    whole = made.model()
    (layer,) = imported(whole).layers
    assert layer.bias is not None
    assert layer.activation.kind != "none"
    left = {reason.split(" ")[0] for reason in reasons(imported(whole)).values()}
    assert left <= {"Squeeze", "Concat", "Gather"}  # and the zeros of a transposed convolution
    close(on_cores(whole, {"x": made.x}, layers=1), run(whole, {"x": made.x})[0])


@settings(max_examples=60)
@given(st.permutations(range(3)), st.sampled_from(["Relu", "Clip", "HardSwish"]), st.booleans())
def test_behind_a_transpose_too(order, activation, squeezed):
    """As where the channels come last: what lies along them is part of the layer, wherever they are."""
    made = Chain((1, 5), (1, 2), [2], np.random.default_rng(0))
    if not squeezed:
        made = Chain((6,), (2,), [], np.random.default_rng(0))
        del made.nodes[1:]
        made.last = "c"
    made.transpose(order)
    along = tuple(size if axis == 1 else 1 for size, axis in zip(made.shape, order, strict=True))
    made.add_any("Mul", along)
    made.add_any("Add", along[list(order).index(1) :])
    made.add_any(activation, ())
    (layer,) = imported(made.model()).layers
    assert layer.bias is not None
    assert layer.activation.kind != "none"
    left = [reason.split(" ")[0] for reason in reasons(imported(made.model())).values()]
    assert left == ["Squeeze", "Transpose"][not squeezed :]
    close(on_cores(made.model(), {"x": made.x}, layers=1), run(made.model(), {"x": made.x})[0])


@pytest.mark.parametrize("opset", [7, 12, 13, 21])
def test_axes_are_an_attribute_or_an_input(opset):
    made = Chain((1, 4), (1, 2), [2], np.random.default_rng(0), opset=opset)
    made.add_any("Add", (3, 1))
    made.add("Relu")
    (layer,) = imported(made.model()).layers
    assert layer.activation.kind == "relu"
    close(on_cores(made.model(), {"x": made.x}), run(made.model(), {"x": made.x})[0])


@pytest.mark.parametrize("batch", [1, 2])
def test_a_squeeze_without_axes_takes_out_the_batch_too(batch):
    """Where it is 1, the Squeeze stays before the Add, whose constant then has the channels first."""
    made = Chain((1, 4), (1, 2), None, np.random.default_rng(0), batch=batch)
    made.add_any("Add", (3, 1))
    (layer,) = imported(made.model()).layers
    assert (layer.bias is not None) == (batch == 2)
    close(on_cores(made.model(), {"x": made.x}), run(made.model(), {"x": made.x})[0])


def test_a_batch_normalization_for_each_element_stays_where_it_is():
    """As opset 7 has it with spatial=0: its numbers then have the axes of the value."""
    made = Chain((1, 1), (1, 1), [2, 3], np.random.default_rng(0), opset=8)
    numbers = [made.constant(made.rng.uniform(0.5, 2, 3).astype(F)) for _ in range(4)]
    made.add("BatchNormalization", [made.last, *numbers], spatial=0)
    found = imported(made.model())
    assert found.layers[0].output_name == "c"
    assert list(reasons(found)) == ["squeeze", f"BatchNormalization_{made.last}"]


def test_hard_swish_in_arithmetic():
    """The value before it has two users, both of which move."""
    made = Chain((1, 5), (1, 2), [-2], np.random.default_rng(3))
    made.add_any("Add", (3, 1))
    x = made.last
    made.add("Add", [x, made.constant(np.full((1, 1, 1), 3, F))])
    made.add("Clip", [made.last, made.constant(F(0)), made.constant(F(6))])
    made.add("Mul", [made.last, made.constant(F(1 / 6))])
    made.add("Mul", [x, made.last])
    (layer,) = imported(made.model()).layers
    assert layer.activation.kind == "hard_swish"
    assert list(reasons(imported(made.model()))) == ["squeeze"]
    close(on_cores(made.model(), {"x": made.x}), run(made.model(), {"x": made.x})[0])


def test_a_constant_that_makes_the_value_larger_stays_behind_the_squeeze():
    made = Chain((1, 4), (1, 4), [2], np.random.default_rng(1))
    made.add("Add", [made.last, made.constant(np.arange(5, dtype=F))])
    made.shape = (1, 3, 5)
    (layer,) = imported(made.model()).layers
    assert layer.bias is None
    close(on_cores(made.model(), {"x": made.x}), run(made.model(), {"x": made.x})[0])


def test_where_a_branch_needs_the_squeezed_value_the_squeeze_is_there_once():
    made = Chain((1, 4), (1, 2), [2], np.random.default_rng(1))
    made.add_any("Add", (3, 1))
    x = made.last
    made.add("Abs")
    made.add("Relu", [x])
    made.add("Add", [made.last, made.nodes[-2].output[0]])
    found = imported(made.model())
    (layer,) = found.layers
    assert layer.bias is not None
    assert sum(text.startswith("Squeeze") for text in reasons(found).values()) == 1
    close(on_cores(made.model(), {"x": made.x}), run(made.model(), {"x": made.x})[0])


@settings(max_examples=40)
@given(st.booleans(), st.sampled_from(["Relu", "none"]), st.integers(0, 2**32 - 1))
def test_between_dequantize_and_quantize(transposed, activation, seed):
    """The QuantizeLinear is then right behind the convolution; scales are powers of 2, and the numbers exact."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (1, 2, 1, 5)).astype(np.uint8)
    w = rng.integers(-128, 128, (2, 3, 1, 2) if transposed else (3, 2, 1, 2)).astype(np.int8)
    width = 6 if transposed else 4
    constants = {"w": w, "xs": F(0.25), "xz": np.uint8(9), "ws": F(0.5), "ys": F(4), "yz": np.uint8(77), "axes": np.array([2])}  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["dx"]),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["dw"]),
        helper.make_node("ConvTranspose" if transposed else "Conv", ["dx", "dw"], ["c"], "n"),
        helper.make_node("Squeeze", ["c", "axes"], ["s"]),
    ]
    if activation != "none":
        nodes.append(helper.make_node(activation, ["s"], ["a"]))
    last = nodes[-1].output[0]
    nodes.append(helper.make_node("QuantizeLinear", [last, "ys", "yz"], ["y"]))
    made = model(nodes, [value("x", np.uint8, x.shape)], [value("y", np.uint8, (1, 3, width))], constants)  # fmt: skip
    (layer,) = imported(made).layers
    assert layer.output_dtype == np.uint8
    assert np.array_equal(on_cores(made, {"x": x}, layers=1), run(made, {"x": x})[0])
