"""Rewritten models: which nodes may be asked for on the host, what names there are, and valid glue at every opset."""

import numpy as np
import pytest
from onnx import helper, numpy_helper

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
    run,
    run_whole,
    value,
    with_shapes,
)

F = np.float32


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
