"""Outputs of Keras models have Keras's names and order, with Keras's numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import cim
from cim.codegen.keras_outputs import name_outputs
from tests.codegen.models import model as onnx_model
from tests.codegen.models import run, value

F = np.float32


def named(names, structure=None, inputs=("x",), nodes=(), own=None):
    """A model that adds its number to x for each output, after `name_outputs`."""
    adds = [helper.make_node("Add", ["x", f"c{i}"], [f"Identity_{i}:0"]) for i in range(len(names))]
    constants = {f"c{i}": np.full(1, i, F) for i in range(len(names))}
    outputs = [value(node.output[0], F, [1]) for node in adds]
    infos = [value(name, F, [1]) for name in inputs]
    made = onnx_model([*adds, *nodes], infos, outputs, constants)
    name_outputs(made.graph, structure, list(names) if own is None else own)
    return made


@given(st.lists(st.sampled_from(["a", "b", "a_1", "b_1", "b_2", "c"]), min_size=1, max_size=6))
def test_any_names_are_told_apart(names):
    """The first of each has its own name, others a number; the values keep their places."""
    made = named(names)
    found = [v.name for v in made.graph.output]
    assert len(set(found)) == len(found)
    for place, name in enumerate(names):
        assert found[place].startswith(name)
        assert (found[place] == name) == (name not in names[:place])
    got = run(made, {"x": np.zeros(1, F)})
    assert [int(array[0]) for array in got] == [*range(len(names))]


@given(st.integers(1, 25), st.sampled_from(["output_", "", "a1b"]))
def test_keys_of_a_dict_are_in_the_order_of_their_numbers(count, prefix):
    """TensorFlow gives the values by sorted key, with output_10 before output_2."""
    keys = [f"{prefix}{i}" for i in range(count)]
    made = named(keys, dict.fromkeys(keys), own=[])
    assert [v.name for v in made.graph.output] == keys
    got = run(made, {"x": np.zeros(1, F)})
    assert [int(array[0]) for array in got] == [sorted(keys).index(key) for key in keys]


def test_names_of_other_values_are_not_taken():
    """Of an input, a constant, a value in between, and one in a subgraph; nor are too few names used."""
    inner = helper.make_graph(
        [helper.make_node("Add", ["Identity_0:0", "c0"], ["deep"])], "g", [],
        [helper.make_tensor_value_info("deep", TensorProto.FLOAT, [1])],
    )  # fmt: skip
    which = helper.make_node("If", ["q"], ["unused"], then_branch=inner, else_branch=inner)
    compare = helper.make_node("Greater", ["x", "c0"], ["q"])
    made = named(["first", "x", "c1", "q", "deep"], nodes=[compare, which])
    assert [v.name for v in made.graph.output] == [
        "first", "Identity_1:0", "Identity_2:0", "Identity_3:0", "Identity_4:0",
    ]  # fmt: skip
    got = run(made, {"x": np.zeros(1, F)})
    assert [int(array[0]) for array in got] == [*range(5)]  # the subgraph still finds the first
    assert [v.name for v in named(["a", "b"], own=["a"]).graph.output] == ["Identity_0:0", "Identity_1:0"]  # fmt: skip


def two_heads(keras, how):
    """A model with two outputs of different sizes, in one of Keras's forms, and the names that they have."""
    inputs = keras.Input((6,), name="x")
    first = keras.layers.Dense(3, name="scores")(inputs)
    second = keras.layers.Dense(2, name="boxes")(inputs)
    if how == "list":
        return keras.Model(inputs, [first, second]), {"scores": first, "boxes": second}
    if how == "shared":
        again = keras.layers.Dense(3, name="scores")
        outputs = [again(inputs), again(keras.layers.Dense(6)(inputs))]
        return keras.Model(inputs, outputs), {"scores": outputs[0], "scores_1": outputs[1]}
    if how == "one":
        return keras.Model(inputs, second), {"boxes": second}
    if how == "sequential":
        made = keras.Sequential([inputs, keras.layers.Dense(2, name="boxes")])
        return made, {"boxes": made.outputs[0]}
    keys = ("z", "a") if how == "dict" else ("x", "a")
    made = keras.Model(inputs, dict(zip(keys, (first, second), strict=True)))
    return made, {"a": second, "z" if how == "dict" else "Identity_1:0": first}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("how", ["list", "shared", "one", "sequential", "dict", "key of an input"])
@pytest.mark.parametrize("form", ["memory", "file", "folder"])
def test_outputs_have_keras_names(how, form, tmp_path):
    pytest.importorskip("tensorflow", reason="needs pip install -e '.[tensorflow]'")
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(0)
    model, tensors = two_heads(keras, how)
    names = list(tensors)
    source = model
    if form == "file":
        source = tmp_path / "m.keras"
        model.save(source)
    elif form == "folder":
        source = tmp_path / "saved"
        model.export(source, verbose=False)
        if how in ("list", "shared", "one", "sequential"):
            names = [f"output_{i}" for i in range(len(names))]  # as its signature has them
    data = np.random.default_rng(0).normal(size=(2, 6)).astype(F)
    expected = [np.asarray(keras.Model(model.inputs, one)(data)) for one in tensors.values()]
    program = cim.compile(source, settings=["core.crossbar=16x16"])
    assert list(program.outputs) == names
    outputs = program.run(data, check=True).outputs
    for name, want in zip(names, expected, strict=True):
        np.testing.assert_allclose(outputs[name], want, rtol=1e-4, atol=1e-5)
