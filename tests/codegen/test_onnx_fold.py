"""What stands between stored numbers and an operator's weights is computed when the model is read."""

import numpy as np
import onnx
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from cim.codegen.onnx_fold import MOST_ELEMENTS, fold_constants
from tests.codegen.models import close, imported, model, only_layer, reasons, run, run_whole, value

F = np.float32
N = helper.make_node
I64 = np.int64


def conv(nodes, constants, shape=(4, 3, 2, 2)):
    """A Conv of `x` with weights `w`, which the nodes make."""
    nodes = [*nodes, N("Conv", ["x", "w"], ["y"], "n")]
    x, y = value("x", F, (1, shape[1], 5, 4)), value("y", F, (1, shape[0], 4, 3))
    return model(nodes, [x], [y], constants)


CHAINS = {
    "weight normalization": (
        [
            N("ReduceL2", ["v"], ["norm"], axes=[1, 2, 3]), N("Div", ["v", "norm"], ["unit"]), N("Mul", ["unit", "g"], ["w"]),
        ],
        {"v": np.arange(1, 49, dtype=F).reshape(4, 3, 2, 2), "g": np.array([1, 2, 3, 4], F).reshape(4, 1, 1, 1)},
    ),
    "spectral normalization": (
        [
            N("Reshape", ["v", "flat"], ["matrix"]), N("MatMul", ["u", "matrix"], ["left"]), N("MatMul", ["left", "r"], ["sigma"]),
            N("Abs", ["sigma"], ["positive"]), N("Div", ["v", "positive"], ["w"]),
        ],
        {
            "v": np.arange(1, 49, dtype=F).reshape(4, 3, 2, 2), "flat": np.array([4, -1], I64), "u": np.ones((1, 4), F),
            "r": np.ones((12, 1), F),
        },
    ),
    "filled": ([N("ConstantOfShape", ["shape"], ["w"], value=numpy_helper.from_array(np.array([2.5], F)))],
               {"shape": np.array([4, 3, 2, 2], I64)}),
    "repeated": ([N("Expand", ["v", "shape"], ["one"]), N("Tile", ["one", "times"], ["w"])],
                 {"v": np.arange(6, dtype=F).reshape(1, 3, 2, 1), "shape": np.array([2, 3, 2, 2], I64), "times": np.array([2, 1, 1, 1], I64)}),
    "counted": ([N("Range", ["start", "stop", "step"], ["line"]), N("Reshape", ["line", "shape"], ["w"])],
                {"start": F(0), "stop": F(24), "step": F(0.5), "shape": np.array([4, 3, 2, 2], I64)}),
    "padded": ([N("Pad", ["v", "pads"], ["w"])],
               {"v": np.ones((4, 3, 1, 1), F), "pads": np.array([0, 0, 1, 1, 0, 0, 0, 0], I64)}),
    "masked": ([N("Greater", ["v", "least"], ["mask"]), N("Where", ["mask", "v", "zero"], ["w"])],
               {"v": np.arange(48, dtype=F).reshape(4, 3, 2, 2), "least": F(20), "zero": F(0)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_weights_that_constants_make(name):
    made = conv(*CHAINS[name])
    layer = only_layer(imported(made))
    x = np.random.default_rng(0).normal(size=(1, 3, 5, 4)).astype(F)
    want = run(made, {"x": x})[0]
    weights = layer.weights.transpose(3, 2, 0, 1)
    plain = run(conv([], {"w": weights}), {"x": x})[0]
    np.testing.assert_allclose(plain, want, rtol=1e-6)


FUNCTIONS = {
    "Abs": 7,
    "Cos": 7,
    "Erf": 9,
    "Exp": 7,
    "Floor": 7,
    "Neg": 7,
    "Sigmoid": 7,
    "Sign": 9,
    "Sin": 7,
    "Tanh": 7,
}


@given(
    st.sampled_from(sorted(FUNCTIONS)), st.sampled_from([7, 9, 12, 13, 17, 20]), st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_functions_of_constants_are_onnxruntimes(function, opset, terms, seed):
    """Of a sum of one to three constants, through a product with alpha, beta and C."""
    assume(opset >= FUNCTIONS[function])
    rng = np.random.default_rng(seed)
    constants = {f"v{i}": rng.normal(size=(4, 12)).astype(F) for i in range(terms)}
    constants |= {"m": rng.normal(size=(12, 12)).astype(F), "c": rng.normal(size=12).astype(F)}
    nodes = [
        N("Sum", [f"v{i}" for i in range(terms)], ["s"]), N("Gemm", ["s", "m", "c"], ["g"], alpha=0.5, beta=2.0, transB=1),
        N(function, ["g"], ["w"]),
    ]  # fmt: skip
    made = model(nodes, [], [value("w", F, (4, 12))], constants, opset=opset)
    (want,) = run(made, {})
    assert fold_constants(made)
    assert not made.graph.node
    (found,) = (numpy_helper.to_array(t) for t in made.graph.initializer if t.name == "w")
    assert found.dtype == want.dtype
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@given(st.sampled_from(["ConstantOfShape", "Expand", "Tile"]), st.integers(0, 40))
def test_no_more_is_made_than_a_layer_may_have(operator, bits):
    """A few bytes can ask for any size."""
    size = 1 << bits
    constants = {"size": np.array([size], I64), "one": np.ones(1, F)}
    inputs = ["size"] if operator == "ConstantOfShape" else ["one", "size"]
    made = model([N(operator, inputs, ["y"])], [], [value("y", F, None)], constants)
    made = onnx.shape_inference.infer_shapes(made, data_prop=True)
    assume(size <= 1 << 20 or size > MOST_ELEMENTS)  # what lies between is allowed, and takes time
    assert fold_constants(made) == (size <= MOST_ELEMENTS)


# --- Identity and Dropout ---


def test_identities_and_dropouts_are_taken_out():
    """In front of, behind and between operators, of an activation, at graph outputs; values stay the same."""
    constants = {"w": np.full((2, 2, 1, 1), 2, F), "ratio": F(0.5), "no": np.array(False)}
    nodes = [
        N("Identity", ["x"], ["a"]),
        N("Conv", ["a", "w"], ["b"], "n"),
        N("Dropout", ["b", "ratio", "no"], ["c", ""]),
        N("Identity", ["c"], ["d"]),
        N("Relu", ["d"], ["e"], "act"),
        N("Identity", ["e"], ["y"]),
    ]
    made = model(nodes, [value("x", F, (1, 2, 3, 3))], [value("y", F, (1, 2, 3, 3))], constants)
    found = imported(made)
    assert reasons(found) == {}
    (layer,) = found.layers
    assert (layer.input_name, layer.output_name, layer.activation.kind) == ("x", "y", "relu")


def test_identities_that_must_stay():
    """From input to output, of a value that is itself an output, and one that a subgraph reads."""
    inner = helper.make_graph([N("Relu", ["kept"], ["r"])], "inner", [], [value("r", F, (2,))])
    nodes = [
        N("Identity", ["x"], ["same"]),
        N("Relu", ["x"], ["a"], "act"),
        N("Identity", ["a"], ["b"]),
        N("Identity", ["a"], ["kept"]),
        N("If", ["go"], ["y"], then_branch=inner, else_branch=inner),
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
        N("Dropout", ["x", "ratio", "train"], ["y", "m"] if mask else ["y"], "drop"),
    ]
    outputs = [value("y", F, (2,))]
    if mask:
        outputs.append(helper.make_tensor_value_info("m", TensorProto.BOOL, (2,)))
    made = model(nodes, [value("x", F, (2,))], outputs, constants)
    assert set(reasons(imported(made))) == {"drop"}
