"""HardSigmoid and HardSwish, in any arithmetic that stands for them, are part of a float layer."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from tests.codegen.models import imported, model, only_layer, reasons, run, run_whole, value

F = np.float32
PRODUCTS = {  # shapes of x, w and the result
    "Conv": ((2, 3, 4, 5), (4, 3, 2, 2), (2, 4, 3, 4)),
    "MatMul": ((2, 5, 3), (3, 4), (2, 5, 4)),
    "Gemm": ((5, 3), (3, 4), (5, 4)),
}
# What makes the gate from x, then the product, then what is behind it; each step an operator and its constants.
FORMS = {
    "HardSigmoid": ([("HardSigmoid", ())], []),
    "clip, product, division": ([("Add", (3,)), ("Clip", (0, 6))], [("Div", (6,))]),
    "clip, product, factor": ([("Add", (3,)), ("Clip", (0, 6))], [("Mul", (1 / 6,))]),
    "clip, division, product": ([("Add", (3,)), ("Clip", (0, 6)), ("Div", (6,))], []),
    "clip, factor, product": ([("Add", (3,)), ("Clip", (0, 6)), ("Mul", (1 / 6,))], []),
    "division, clip, product": ([("Div", (6,)), ("Add", (0.5,)), ("Clip", (0, 1))], []),
    "factor, clip, product": ([("Mul", (1 / 6,)), ("Sub", (-0.5,)), ("Clip", (0, 1))], []),
    "halves": ([("Mul", (1 / 12,)), ("Add", (0.25,)), ("Clip", (0, 0.5))], [("Mul", (2,))]),
}


def spelled_out(
    product, form, swapped=False, alpha=1 / 6, beta=0.5, outputs=(), extra=(), change=None
):
    """The model of a product and a HardSwish in some form. `change` replaces a step's constants by its operator."""
    x_shape, w_shape, y_shape = PRODUCTS[product]
    rng = np.random.default_rng(4)
    constants = {"w": rng.normal(size=w_shape).astype(F), "b": rng.normal(size=4).astype(F)}
    names = ["x", "w"] if product == "MatMul" else ["x", "w", "b"]
    nodes = [helper.make_node(product, names, ["s"], "n")]
    gate, behind = FORMS[form]
    last = "s"
    for number, (operator, numbers) in enumerate([*gate, ("", ()), *behind]):
        target = f"v{number}"
        if not operator:
            pair = ["s", last][:: -1 if swapped else 1]
            nodes.append(helper.make_node("Mul", pair, [target], target))
        elif operator == "HardSigmoid":
            nodes.append(
                helper.make_node(operator, [last], [target], target, alpha=alpha, beta=beta)
            )
        else:
            taken = (change or {}).get(operator, numbers)
            own = {f"c{number}_{i}": np.asarray(c, F) for i, c in enumerate(taken)}
            constants |= own
            turned = swapped and operator in ("Add", "Mul")
            operands = [*own, last] if turned else [last, *own]
            nodes.append(helper.make_node(operator, operands, [target], target))
        last = target
    nodes += extra
    nodes.append(helper.make_node("Identity", [last], ["y"]))
    info = [value(name, F, y_shape) for name in ("y", *outputs, *(n.output[0] for n in extra))]
    return model(nodes, [value("x", F, x_shape)], info, constants)


def feed(product):
    return {"x": 3 * np.random.default_rng(9).normal(size=PRODUCTS[product][0]).astype(F)}


def as_given(made, feeds):
    """The outputs are those of onnxruntime; the layers."""
    found, layers = run_whole(made, feeds)
    for one, want in zip(found, run(made, feeds), strict=True):
        np.testing.assert_allclose(one, want, rtol=1e-4, atol=1e-4)
    return layers


@settings(max_examples=80)
@given(st.sampled_from(sorted(PRODUCTS)), st.sampled_from(sorted(FORMS)), st.booleans())
def test_every_form_is_part_of_the_layer(product, form, swapped):
    made = spelled_out(product, form, swapped)
    assert only_layer(imported(made)).activation.kind == "hard_swish"
    as_given(made, feed(product))


@given(
    st.sampled_from(["Add", "Clip", "Div", "HardSigmoid"]),
    st.floats(0.25, 8, width=32).filter(lambda factor: abs(factor - 1) > 1e-3),
)
def test_with_other_numbers_it_is_no_hard_swish(operator, factor):
    if operator == "HardSigmoid":
        made = spelled_out("Conv", operator, alpha=factor / 6)
    else:
        numbers = {"Add": (3 * factor,), "Clip": (0, 6 * factor), "Div": (6 * factor,)}
        form = "clip, product, division"
        made = spelled_out("Conv", form, change={operator: numbers[operator]})
    (layer,) = as_given(made, feed("Conv"))
    assert layer.activation.kind == "none"


GATES = [
    [("Add", 3), ("Clip", (0, 6)), ("Div", 6)],
    [("Add", 3), ("Clip", (0, 6)), ("Mul", 1 / 6)],
    [("Clip", (-3, 3)), ("Add", 3), ("Div", 6)],
    [("HardSigmoid", ()), ("Mul", 2), ("Sub", 1)],
]


@pytest.mark.parametrize("steps", GATES)
@pytest.mark.parametrize("product", sorted(PRODUCTS))
def test_arithmetic_behind_a_clip_is_part_of_it(steps, product):
    """A hard sigmoid by itself, as in front of the product of a squeeze-and-excite block."""
    made, layers = chained(product, steps)
    assert only_layer(imported(made)).activation.kind == "clip"
    assert len(layers) == 1


@pytest.mark.parametrize(
    "behind",
    [("Mul", -1), ("Mul", 0), ("Mul", [[[1]], [[1]], [[1]], [[2]]]), ("Add", np.inf), ("Mul", np.nan), ("Mul", 3e38)],
)  # fmt: skip
def test_what_turns_or_breaks_a_clip_stays_behind_it(behind):
    made, _ = chained("Conv", [("Clip", (-3, 3)), behind])
    assert set(reasons(imported(made))) == {"v1"}


def two_relus(product, slopes, turns=(False, False), seen=()):
    """The model of a product and a PRelu as Relu(s) - slopes * Relu(-s), either way round."""
    x_shape, w_shape, y_shape = PRODUCTS[product]
    w = np.random.default_rng(5).normal(size=w_shape).astype(F)
    pairs = [["b", "k"], ["a", "m"]]
    scaled, added = (p[::-1] if turn else p for p, turn in zip(pairs, turns, strict=True))
    nodes = [
        helper.make_node(product, ["x", "w"], ["s"], "n"),
        helper.make_node("Relu", ["s"], ["a"], "above"),
        helper.make_node("Neg", ["s"], ["t"], "negated"),
        helper.make_node("Relu", ["t"], ["b"], "below"),
        helper.make_node("Mul", scaled, ["m"], "scaled"),
        helper.make_node("Add", added, ["y"], "sum"),
    ]
    outputs = [value(name, F, y_shape) for name in ("y", *seen)]
    return model(nodes, [value("x", F, x_shape)], outputs, {"w": w, "k": -np.asarray(slopes, F)})


def along_channels(product, slopes):
    """Slopes one a channel, in the shape in which they broadcast."""
    return np.reshape(slopes, (-1, 1, 1) if product == "Conv" else -1)


@given(
    st.sampled_from(sorted(PRODUCTS)), st.lists(st.floats(-2, 2, width=32), min_size=4, max_size=4),
    st.booleans(), st.tuples(st.booleans(), st.booleans()),
)  # fmt: skip
def test_a_prelu_of_two_relus_is_part_of_the_layer(product, slopes, one, turns):
    """With one slope a channel, or one in all."""
    made = two_relus(product, slopes[0] if one else along_channels(product, slopes), turns)
    assert only_layer(imported(made)).activation.kind == "leaky_relu"
    as_given(made, feed(product))


@pytest.mark.parametrize("seen", ["s", "a", "t", "b", "m"])
def test_two_relus_in_which_others_see_a_value_stay(seen):
    (layer,) = as_given(two_relus("Conv", 0.25, seen=(seen,)), feed("Conv"))
    assert layer.activation.kind == "none"


@pytest.mark.parametrize("slopes", [np.arange(12).reshape(3, 4), np.nan, np.inf])
def test_two_relus_with_other_slopes_stay(slopes):
    """One for each element, and such as are no numbers."""
    (layer,) = as_given(two_relus("Conv", slopes), feed("Conv"))
    assert layer.activation.kind == "none"


def chained(product, steps):
    """The model of a product and operators one behind the other, which has been run; its layers."""
    x_shape, w_shape, y_shape = PRODUCTS[product]
    constants = {"w": np.random.default_rng(5).normal(size=w_shape).astype(F)}
    nodes = [helper.make_node(product, ["x", "w"], ["s"], "n")]
    for number, (operator, numbers) in enumerate(steps):
        bounds = numbers if operator in ("Clip", "HardSigmoid") else (numbers,)
        own = {f"c{number}_{i}": np.asarray(c, F) for i, c in enumerate(bounds)}
        constants |= own
        source = nodes[-1].output[0]
        nodes.append(helper.make_node(operator, [source, *own], [f"v{number}"], f"v{number}"))
    nodes[-1].output[0] = "y"
    made = model(nodes, [value("x", F, x_shape)], [value("y", F, y_shape)], constants)
    return made, as_given(made, feed(product))


@pytest.mark.parametrize(
    "change", [{"Add": ([[[3]], [[3]], [[3]], [[2]]],)}, {"Div": ([6, 6, 6, 5],)}]
)
def test_with_other_numbers_for_one_channel_or_column_it_is_none(change):
    made = spelled_out("Conv", "clip, product, division", change=change)
    (layer,) = as_given(made, feed("Conv"))
    assert layer.activation.kind == "none"


@pytest.mark.parametrize("seen", ["s", "v0", "v1", "v2"])
@pytest.mark.parametrize("how", ["output", "operator"])
def test_where_others_see_a_value_in_between_it_is_not_fused(seen, how):
    """v2 is the product, behind which the division stands; alone it is no HardSwish."""
    more = (
        {"outputs": (seen,)}
        if how == "output"
        else {"extra": (helper.make_node("Sigmoid", [seen], ["z"], "other"),)}
    )
    made = spelled_out("Conv", "clip, product, division", **more)
    (layer,) = as_given(made, feed("Conv"))
    assert layer.activation.kind == "none"
    assert "v2" in reasons(imported(made))


def test_normalization_before_it_is_folded_too():
    made = spelled_out("Conv", "clip, division, product")
    nodes = list(made.graph.node)
    nodes[0].output[0] = "c"
    nodes.insert(1, helper.make_node("BatchNormalization", ["c", *"gbmv"], ["s"], "norm"))
    constants = {name: np.array([0.5, 1, 1.5, 2], F) for name in "gmv"}
    with_norm = model(nodes, list(made.graph.input), list(made.graph.output), constants)
    with_norm.graph.initializer.extend(made.graph.initializer)
    assert only_layer(imported(with_norm)).activation.kind == "hard_swish"
    as_given(with_norm, feed("Conv"))


@pytest.mark.parametrize("opset", [7, 10, 13])
def test_before_there_was_an_operator_for_it(opset):
    """HardSwish is of opset 14, what exporters wrote before is not."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["s"], "n"),
        helper.make_node("HardSigmoid", ["s"], ["g"], "gate", alpha=1 / 6, beta=0.5),
        helper.make_node("Mul", ["g", "s"], ["y"], "product"),
    ]
    shapes = [value("x", F, (1, 1, 3, 3))], [value("y", F, (1, 1, 3, 3))]
    made = model(nodes, *shapes, {"w": np.full((1, 1, 1, 1), 2, F)}, opset=opset)
    assert only_layer(imported(made)).activation.kind == "hard_swish"
    as_given(made, {"x": np.linspace(-4, 4, 9, dtype=F).reshape(1, 1, 3, 3)})
