"""What a float layer takes in: BatchNormalization and arithmetic with constants, and its activation."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from cim.codegen.compile_layer import compile_layer
from cim.emulator.check import check_layer
from cim.emulator.host import run_layer
from cim.emulator.prepare import prepare
from cim.isa.machine import load_machine
from tests.codegen.models import imported, model, reasons, run, run_whole, value

F = np.float32


def close(found, expected):
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-4)


PRODUCTS = {
    # operator: input shape, weights shape, output shape, channel axis
    "Conv": ((2, 3, 4, 5), (4, 3, 2, 2), (2, 4, 3, 4), 1),
    "ConvTranspose": ((1, 3, 4, 5), (3, 4, 2, 2), (1, 4, 5, 6), 1),
    "Gemm": ((5, 3), (3, 4), (5, 4), 1),
    "MatMul": ((2, 5, 3), (3, 4), (2, 5, 4), 2),
}


def operand(rng, shape, axis, kind):
    """A constant: a number, one number a channel, or the same with all axes."""
    if kind == "number":
        return F(rng.uniform(0.5, 2))
    sizes = [1] * len(shape)
    sizes[axis] = shape[axis]
    array = rng.uniform(0.5, 2, sizes).astype(F)
    if kind == "channels":
        return array.reshape(sizes[axis:])
    return np.ascontiguousarray(np.broadcast_to(array, shape))


@st.composite
def chains(draw):
    """A product and up to four operators of arithmetic behind it."""
    steps = st.sampled_from(
        ["Add", "Sub", "Mul", "Div", "rSub", "rAdd", "rMul", "BatchNormalization"]
    )
    return (
        draw(st.sampled_from(sorted(PRODUCTS))), draw(st.lists(steps, max_size=4)),
        draw(st.sampled_from(["number", "channels", "all"])),
        draw(st.sampled_from(["none", "Relu", "PRelu", "PRelu one", "HardSigmoid", "HardSwish", "Clip"])),
    )  # fmt: skip


def chain(op, steps, kind, activation, rng):
    """The model of such a chain and its input."""
    x_shape, w_shape, y_shape, axis = PRODUCTS[op]
    constants = {"w": rng.normal(size=w_shape).astype(F)}
    nodes = [helper.make_node(op, ["x", "w"], ["v0"], "n")]
    for number, step in enumerate(steps):
        source, target = f"v{number}", f"v{number + 1}"
        if step == "BatchNormalization" and axis == 1:
            names = [f"{part}{number}" for part in ("g", "b", "m", "s")]
            constants |= {name: rng.uniform(0.5, 2, y_shape[1]).astype(F) for name in names}
            nodes.append(helper.make_node(step, [source, *names], [target], epsilon=0.1))
            continue
        constants[f"c{number}"] = operand(rng, y_shape, axis, kind)
        names = [source, f"c{number}"]
        nodes.append(
            helper.make_node(
                "Add" if step == "BatchNormalization" else step.removeprefix("r"),
                names[:: -1 if step[0] == "r" else 1],
                [target],
            )
        )
    last = nodes[-1].output[0]
    names = [last]
    if activation.startswith("PRelu"):
        constants["slope"] = operand(
            rng, y_shape, axis, "number" if "one" in activation else "channels"
        ).reshape(-1, *[1] * (len(y_shape) - axis - 1))
        constants["slope"] -= F(1)
        names.append("slope")
    elif activation == "Clip":
        constants |= {"low": F(-1), "high": F(2)}
        names += ["low", "high"]
    if activation != "none":
        more = {"alpha": 0.3, "beta": 0.4} if activation == "HardSigmoid" else {}
        nodes.append(helper.make_node(activation.split()[0], names, ["y"], "act", **more))
    nodes[-1].output[0] = "y"
    made = model(nodes, [value("x", F, x_shape)], [value("y", F, y_shape)], constants)
    return made, rng.normal(size=x_shape).astype(F)


@settings(max_examples=80)
@given(chains(), st.integers(0, 2**32 - 1))
def test_a_chain_is_one_layer(case, seed):
    made, x = chain(*case, np.random.default_rng(seed))
    assert [text for name, text in reasons(imported(made)).items() if "n/" not in name] == []
    outputs, layers = run_whole(made, {"x": x})
    assert len(layers) == 1
    close(outputs[0], run(made, {"x": x})[0])


@pytest.mark.parametrize(
    ("operator", "constants", "attributes"),
    [
        ("Mul", {"c": np.arange(1, 5, dtype=F)}, {}),  # along the width
        ("Add", {"c": np.arange(1, 4, dtype=F).reshape(3, 1)}, {}),  # along the height
        ("Add", {"c": np.ones((2, 1, 4, 1, 1), F)}, {}),  # makes more
        ("Div", {"c": np.zeros(1, F)}, {}),  # infinite weights
        ("Mul", {"c": np.full(1, np.nan, F)}, {}),
        ("PRelu", {"c": np.arange(4, dtype=F)}, {}),  # slopes along the width
        ("Mul", {"c": np.full(1, 3e38, F)}, {}),  # infinite weights again, though the factor is finite
        ("HardSigmoid", {}, {"alpha": 3e38}),
        ("BatchNormalization", {n: np.ones(4, F) for n in "gbmv"}, {"training_mode": 1}),
        ("BatchNormalization", {n: np.ones(4, F) * (-1 if n == "v" else 1) for n in "gbmv"}, {}),
    ],
)  # fmt: skip
def test_what_does_not_fit_stays_on_the_host(operator, constants, attributes):
    outputs = ["y"] + (["rm", "rv"] if "training_mode" in attributes else [])
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["s"], "n"),
        helper.make_node(operator, ["s", *constants], outputs, "second", **attributes),
    ]
    constants = constants | {"w": np.random.default_rng(0).normal(size=(4, 3, 2, 2)).astype(F)}
    shape = (2, 2, 4, 3, 4) if np.ndim(constants.get("c")) == 5 else (2, 4, 3, 4)
    outs = [value("y", F, shape)] + [value(n, F, (4,)) for n in outputs[1:]]
    made = model(nodes, [value("x", F, (2, 3, 4, 5))], outs, constants)
    found = imported(made)
    assert set(reasons(found)) == {"second"}
    (layer,) = found.layers
    assert layer.output_name == "s"
    assert layer.bias is None
    x = np.random.default_rng(1).normal(size=(2, 3, 4, 5)).astype(F)
    np.testing.assert_array_equal(layer.weights, constants["w"].transpose(2, 3, 1, 0))
    with np.errstate(all="ignore"):
        (want, *_) = run(made, {"x": x})
        largest = np.abs(want[np.isfinite(want)]).max(initial=1)
        np.testing.assert_allclose(
            run_whole(made, {"x": x})[0][0], want, rtol=1e-4, atol=1e-4 * largest
        )


@pytest.mark.parametrize("operator", ["Mul", "BatchNormalization", "Add", "HardSigmoid", "PRelu"])
@pytest.mark.parametrize("second", ["output", "consumer"])
def test_a_sum_that_others_see_is_left_alone(operator, second):
    """Shared weights are no obstacle: each layer has its own copy; a second user of the sum is."""
    names = {"Mul": 1, "Add": 1, "PRelu": 1, "BatchNormalization": 4, "HardSigmoid": 0}[operator]
    constants = {f"c{i}": np.full(4 if names == 4 else (4, 1, 1), 2, F) for i in range(names)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["s"], "n"),
        helper.make_node("Conv", ["x", "w"], ["t"], "other"),
        helper.make_node(operator, ["s", *constants], ["y"], "second"),
        helper.make_node("Mul", ["t", "s" if second == "consumer" else "t"], ["z"], "third"),
    ]
    outputs = [
        value(n, F, (1, 4, 2, 2)) for n in ("y", "z", *(["s"] if second == "output" else []))
    ]
    made = model(
        nodes, [value("x", F, (1, 3, 2, 2))], outputs, constants | {"w": np.ones((4, 3, 1, 1), F)}
    )
    found = imported(made)
    assert {"second", "third"} == set(reasons(found))
    assert all(np.all(layer.weights == 1) and layer.bias is None for layer in found.layers)


@settings(max_examples=25)
@given(
    st.sampled_from(["f32", "i8", "i8n"]),
    st.sampled_from(["linear", "ring"]),
    st.integers(0, 2**32 - 1),
)
def test_one_slope_a_channel_on_the_emulated_chip(mode, scheme, seed):
    """Against the NumPy reference: bit for bit but for f32, on several cores that take turns."""
    rng = np.random.default_rng(seed)
    slopes = rng.uniform(-1, 2, (5, 1, 1)).astype(F)
    weights = rng.normal(size=(5, 3, 2, 2)).astype(F)
    if mode == "f32":
        nodes = [
            helper.make_node("Conv", ["x", "w"], ["s"], "n"),
            helper.make_node("PRelu", ["s", "slopes"], ["y"], "act"),
        ]
        constants = {"w": weights, "slopes": slopes}
        made = model(nodes, [value("x", F, (1, 3, 4, 4))], [value("y", F, (1, 5, 3, 3))], constants)
        x = rng.normal(size=(1, 3, 4, 4)).astype(F)
    else:
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "s", "z"], ["dx"]),
            helper.make_node("DequantizeLinear", ["w", "ws"], ["dw"]),
            helper.make_node("Conv", ["dx", "dw"], ["c"], "n"),
            helper.make_node("PRelu", ["c", "slopes"], ["a"], "act"),
            helper.make_node("QuantizeLinear", ["a", "ys", "yz"], ["y"]),
        ]
        constants = {
            "w": rng.integers(-128, 128, weights.shape).astype(np.int8), "slopes": slopes, "s": F(0.5),
            "z": np.uint8(99), "ws": F(0.25), "ys": F(11), "yz": np.uint8(77),
        }  # fmt: skip
        made = model(
            nodes,
            [value("x", np.uint8, (1, 3, 4, 4))],
            [value("y", np.uint8, (1, 5, 3, 3))],
            constants,
        )
        x = rng.integers(0, 256, (1, 3, 4, 4)).astype(np.uint8)
    found = imported(made)
    assert reasons(found) == {}
    (layer,) = found.layers
    np.testing.assert_array_equal(layer.activation.slope, slopes.reshape(-1))
    width = "narrow" if mode == "i8n" else "wide"
    machine = load_machine("default", ["core.crossbar=4x5", f"core.partial_sum={width}"])
    compiled = compile_layer(layer, machine, scheme, "one")
    name, content = compiled.program.reference
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / name).write_bytes(content)
        image = compiled.image()
        image = replace(image, path=Path(folder) / image.path.name)
        y = run_layer(prepare(image), x).output
        check_layer(image, x, y)
    if mode == "f32":
        close(y, run(made, {"x": x})[0])
    elif mode == "i8":  # onnxruntime computes in float: ties
        assert np.abs(y.astype(int) - run(made, {"x": x})[0]).max() <= 1
