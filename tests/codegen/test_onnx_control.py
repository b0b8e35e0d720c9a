"""Control flow and recurrent operators run on the host, with their multiply-accumulates and a reason of their own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from cim.codegen.onnx_reasons import CONTROL_FLOW, RECURRENT, STEPS_NOT_KNOWN
from tests.codegen.models import close, imported, model, run, run_whole, value

F = np.float32
WIDTH = 3
X = np.random.default_rng(0).normal(size=(2, WIDTH)).astype(F)
W = np.random.default_rng(1).normal(size=(WIDTH, WIDTH)).astype(F)
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def tensor(name, element, shape):
    return helper.make_tensor_value_info(name, element, shape)


def products(count, source, inner=None, name="p"):
    """Nodes of `count` products with the constant w, one after another, and a node `inner` behind; the last value."""
    nodes = []
    for number in range(count):
        nodes.append(helper.make_node("MatMul", [source, "w"], [f"{name}{number}"]))
        source = f"{name}{number}"
    if inner is not None:
        node = inner(source)
        nodes.append(node)
        source = node.output[0]
    return nodes, source


def loop(count, source, limit="limit", begins="", inner=None, name="loop", declared=None):
    """A Loop whose state is multiplied `count` times with w; the body passes its condition and another value on."""
    nodes, last = products(count, f"{name}_state", inner, f"{name}_p")
    inputs = [
        tensor(f"{name}_i", TensorProto.INT64, []), tensor(f"{name}_cond", TensorProto.BOOL, []),
        tensor(f"{name}_state", TensorProto.FLOAT, declared), tensor(f"{name}_kept", TensorProto.FLOAT, declared),
    ]  # fmt: skip
    nodes += [
        helper.make_node("Identity", [f"{name}_cond"], [f"{name}_on"]),
        helper.make_node("Identity", [last], [f"{name}_out"]),
    ]
    outputs = [
        tensor(f"{name}_on", TensorProto.BOOL, []), tensor(f"{name}_out", TensorProto.FLOAT, declared), inputs[3],
    ]  # fmt: skip
    body = helper.make_graph(nodes, f"{name}_body", inputs, outputs)
    return helper.make_node("Loop", [limit, begins, source, "w"], [f"{name}_y", f"{name}_z"], name, body=body)  # fmt: skip


def with_loop(node, constants, inputs=()):
    infos = [value("x", F, X.shape), *inputs]
    return model([node], infos, [value(node.output[0], F, X.shape)], {"w": W, **constants})


def host(made):
    """The one host node with multiply-accumulates or a reason of its own: its reason and count."""
    (unit,) = imported(made).units
    return str(unit.reason).split(": ", 1)[1], unit.macs


ONE = X.shape[0] * W.size


@settings(max_examples=25)
@given(st.integers(0, 3), st.integers(0, 4), st.integers(1, 2), st.booleans())
def test_a_loop_counts_as_its_products_written_out(steps, count, inner_steps, nested):
    """With a Loop in the body, too, and whatever the body says of its shapes."""
    limits = {"limit": np.int64(steps), "inner": np.int64(inner_steps)}

    def inner(source):
        return loop(1, source, "inner", name="inside", declared=X.shape)

    made = with_loop(loop(count, "x", inner=inner if nested else None), limits)
    written, _ = products(steps * (count + (inner_steps if nested else 0)), "x")
    last = written[-1].output[0] if written else ""
    assert host(made) == (CONTROL_FLOW, 0 if not written else _macs(written, last))
    close(run_whole(made, {"x": X})[0][0], run(made, {"x": X})[0])


def _macs(nodes, last):
    return imported(model(nodes, [value("x", F, X.shape)], [value(last, F, X.shape)], {"w": W})).macs  # fmt: skip


@pytest.mark.parametrize("limit", [None, "input", np.int64(2**63 - 1), np.int64(2**31 - 1)])
def test_where_the_number_of_steps_is_not_known_one_is_counted_and_said(limit):
    """A limit that is left out or computed, and the numbers that stand for none."""
    constants = {} if limit is None or isinstance(limit, str) else {"limit": limit}
    inputs = [value("limit", np.int64, [])] if limit == "input" else []
    name = "" if limit is None else "limit"
    made = with_loop(loop(2, "x", name), constants, inputs)
    assert host(made) == (STEPS_NOT_KNOWN, 2 * ONE)

    def inner(source):
        return loop(2, source, name, name="inside")

    outer = with_loop(loop(1, "x", "five", inner=inner), {"five": np.int64(5), **constants}, inputs)
    assert host(outer) == (STEPS_NOT_KNOWN, 5 * 3 * ONE)


def test_a_loop_that_does_not_begin_counts_nothing():
    made = with_loop(loop(2, "x", begins="never"), {"limit": np.int64(4), "never": np.bool_(False)})
    assert host(made) == (CONTROL_FLOW, 0)


@pytest.mark.parametrize(("then", "otherwise"), [(1, 3), (2, 0), (0, 0)])
def test_of_an_if_the_larger_branch_counts(then, otherwise):
    branches = {}
    for name, count in (("then_branch", then), ("else_branch", otherwise)):
        nodes, last = products(count, "x", name=name)
        nodes.append(helper.make_node("Identity", [last], [f"{name}_y"]))
        branches[name] = helper.make_graph(nodes, name, [], [tensor(f"{name}_y", TensorProto.FLOAT, X.shape)])  # fmt: skip
    node = helper.make_node("If", ["which"], ["y"], "n", **branches)
    which = helper.make_tensor_value_info("which", TensorProto.BOOL, [])
    made = model([node], [value("x", F, X.shape), which], [value("y", F, X.shape)], {"w": W})
    assert host(made) == (CONTROL_FLOW, max(then, otherwise) * ONE)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_scan_counts_once_for_each_slice(axis):
    """The state is a matrix; each slice is added to a row of its product with the constant."""
    steps = 5
    shape = [WIDTH, WIDTH]
    shape.insert(axis % 3, steps)
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["s", "w"], ["p"]),
            helper.make_node("MatMul", ["slice", "p"], ["q"]),
            helper.make_node("Add", ["p", "q"], ["t"]),
        ],
        "body",
        [tensor("s", TensorProto.FLOAT, None), tensor("slice", TensorProto.FLOAT, None)],
        [tensor("t", TensorProto.FLOAT, None)],
    )
    node = helper.make_node("Scan", ["x", "seq"], ["y"], "n", body=body, num_scan_inputs=1, scan_input_axes=[axis])  # fmt: skip
    square = (WIDTH, WIDTH)
    infos = [value("x", F, square), value("seq", F, shape)]
    made = model([node], infos, [value("y", F, square)], {"w": W})
    assert host(made) == (CONTROL_FLOW, steps * 2 * WIDTH**3)
    rng = np.random.default_rng(2)
    feeds = {"x": rng.normal(size=square).astype(F), "seq": rng.normal(size=shape).astype(F)}
    close(run_whole(made, feeds)[0][0], run(made, feeds)[0])


@settings(max_examples=30)
@given(
    st.sampled_from([*GATES]), st.sampled_from(["forward", "reverse", "bidirectional"]),
    *[st.integers(1, 4)] * 4, st.booleans(), st.booleans(),
)  # fmt: skip
def test_recurrent_operators(
    operator, direction, steps, batch, width, hidden, batch_first, lengths
):
    """Every gate multiplies the input and the state, each step, in each direction."""
    directions = 2 if direction == "bidirectional" else 1
    rows = GATES[operator] * hidden
    rng = np.random.default_rng(steps)
    constants = {
        "w": rng.normal(size=(directions, rows, width)).astype(F),
        "r": rng.normal(size=(directions, rows, hidden)).astype(F),
        "lengths": np.full(batch, steps, np.int32),
    }
    shape = (batch, steps, width) if batch_first else (steps, batch, width)
    names = ["x", "w", "r", "", "lengths" if lengths else ""]
    node = helper.make_node(operator, names, ["y"], "n", hidden_size=hidden, direction=direction, layout=int(batch_first))  # fmt: skip
    out = (batch, steps, directions, hidden) if batch_first else (steps, directions, batch, hidden)
    made = model([node], [value("x", F, shape)], [value("y", F, out)], constants)
    want = steps * batch * directions * GATES[operator] * hidden * (width + hidden)
    assert host(made) == (RECURRENT, want)


def test_other_operators_are_what_they_were():
    node = helper.make_node("Softmax", ["x"], ["y"], "n")
    made = model([node], [value("x", F, X.shape)], [value("y", F, X.shape)])
    assert host(made) == ("no matrix with constant weights", 0)


def test_a_constant_of_the_body_is_no_value_of_the_model():
    """The weights of a body's product may be its own."""
    node = loop(1, "x")
    body = node.attribute[0].g
    body.initializer.append(numpy_helper.from_array(W, "own"))
    body.node[0].input[1] = "own"
    assert host(with_loop(node, {"limit": np.int64(3)})) == (CONTROL_FLOW, 3 * ONE)
