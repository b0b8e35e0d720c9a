"""`--fold`: on a machine of few cores the numbers are those of a machine of many."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

import cim
from cim.codegen import cli
from cim.diagnostics import CimError
from tests.codegen.models import model, operator, save, value

DIGITS = Path(__file__).parents[2] / "examples/digits"
F = np.float32


@settings(max_examples=25)
@given(
    st.sampled_from([(1, 3, 9), (2, 4, 6), (3, 2, 5), (6, 1, 2), (4, 1, 1)]), st.integers(0, 6), st.booleans(),
    st.sampled_from(["linear", "ring"]), st.sampled_from(["f32", "i8", "i8n"]), st.sampled_from(["im2col", "sdk"]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_convolutions(shape, spare, slopes, scheme, mode, mapping, seed):
    """Groups of every kind, per-channel scales and slopes, and as few cores as one horizontal group needs, or some more."""
    groups, channels, own = shape
    rng = np.random.default_rng(seed)
    weights = rng.integers(-128, 128, (groups * own, channels, 2, 2))
    x_shape = (2, groups * channels, 4, 3)
    nodes, constants = [], {}
    act = [helper.make_node("PRelu", ["s", "slopes"], ["a"], "act")] if slopes else []
    if slopes:
        constants["slopes"] = rng.uniform(0.1, 2, (groups * own, 1, 1)).astype(F)
    last = "a" if slopes else "s"
    out = (2, groups * own, 3, 2)
    if mode == "f32":
        constants |= {"w": weights.astype(F), "b": rng.normal(size=groups * own).astype(F)}
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["s"], "n", group=groups), *act]
        nodes[-1].output[0] = "y"
        info = [value("x", F, x_shape)], [value("y", F, out)]
        x = rng.normal(size=x_shape).astype(F)
    else:
        scales = rng.uniform(0.1, 1, groups * own).astype(F)
        constants |= {
            "w": weights.astype(np.int8), "ws": scales, "sx": F(0.5), "zx": np.uint8(9), "sy": F(40), "zy": np.uint8(99),
            "b": rng.integers(-99, 99, groups * own).astype(np.int32), "bs": F(0.5) * scales,
        }  # fmt: skip
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["dx"]),
            helper.make_node("DequantizeLinear", ["w", "ws"], ["dw"], axis=0),
            helper.make_node("DequantizeLinear", ["b", "bs"], ["db"], axis=0),
            helper.make_node("Conv", ["dx", "dw", "db"], ["s"], "n", group=groups),
            *act,
            helper.make_node("QuantizeLinear", [last, "sy", "zy"], ["y"]),
        ]
        info = [value("x", np.uint8, x_shape)], [value("y", np.uint8, out)]
        x = rng.integers(0, 256, x_shape).astype(np.uint8)
    made = model(nodes, *info, constants)
    width = "narrow" if mode == "i8n" else "wide"
    common = ["core.crossbar=4x4", f"core.partial_sum={width}", "core.mvm_cycles=10"]
    whole = cim.compile(made, settings=common, sync=scheme).run(x)
    (layer,) = whole.stats.layers.values()
    count = -(-4 * channels // 4) + spare
    few = cim.compile(
        made, settings=[*common, f"core.count={count}"], sync=scheme, fold=True, mapping=mapping
    )
    run = few.run(x, check=True)
    if not (
        mode == "i8n" and slopes
    ):  # whose scale of partial sums is that of the part's own slopes
        assert np.array_equal(run.outputs["y"], whole.outputs["y"])
    assert run.stats.cores <= count
    assert len(run.stats.layers) >= layer.cores / count or mapping == "sdk"
    assert all(node.operator in ("Gather", "Concat") for node in run.stats.host)
    if layer.cores <= count:
        assert len(run.stats.layers) == 1


def test_products_and_setup_is_counted():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(8, 20)).astype(F)
    made = operator("MatMul", (3, 8), {"w": w})
    x = rng.normal(size=(3, 8)).astype(F)
    run = {}
    for count in (2, 4, 10):
        settings_ = ["core.crossbar=4x4", f"core.count={count}"]
        run[count] = cim.compile(made, settings=settings_, fold=True).run(x, check=True)
        np.testing.assert_allclose(run[count].outputs["y"], x @ w, rtol=1e-4, atol=1e-4)
    assert [len(one.stats.layers) for one in run.values()] == [5, 3, 1]
    for one in run.values():
        assert one.stats.setup_cycles == sum(
            layer.setup_cycles for layer in one.stats.layers.values()
        )
        assert one.stats.cycles == sum(layer.cycles for layer in one.stats.layers.values())
        assert one.stats.instructions.mvm == 10 * 3
    assert run[2].stats.cycles > run[4].stats.cycles > run[10].stats.cycles


def test_what_does_not_fit_even_so_is_said(tmp_path, capsys):
    path = save(operator("MatMul", (3, 9), {"w": np.ones((9, 8), F)}), tmp_path)
    common = [str(path), "-q", "-o", str(tmp_path / "b"), "--set", "core.crossbar=4x4", "--set"]
    assert cli.main([*common, "core.count=2", "--fold"]) == 1
    assert "needs 6 cores (3 for 9 kernel rows x 2 for 8 channels), the machine" in (
        err := capsys.readouterr().err
    )
    assert "--fold" not in err
    assert cli.main([*common, "core.count=4"]) == 1
    assert "or --fold, which lets parts of the layer take turns" in capsys.readouterr().err
    assert cli.main([*common, "core.count=4", "--fold"]) == 0


def test_a_whole_network(tmp_path):
    """Digits on a fifth of the cores that it needs."""
    images = np.load(DIGITS / "test_images.npy")[:2]
    machine = ["core.crossbar=32x32", "core.mvm_cycles=50"]
    whole = cim.compile(DIGITS / "digits_int8.onnx", settings=machine).run(images)
    few = [*machine, f"core.count={whole.stats.cores // 2}"]
    with pytest.raises(CimError, match="too few"):
        cim.compile(DIGITS / "digits_int8.onnx", settings=few)
    program = cim.compile(DIGITS / "digits_int8.onnx", settings=few, fold=True)
    run = program.run(images, check=True)
    (name,) = run.outputs
    assert np.array_equal(run.outputs[name], whole.outputs[name])
    assert run.stats.cores <= whole.stats.cores // 2
    program.save(tmp_path)
    steps = json.loads((tmp_path / "network.json").read_text())["steps"]
    assert len([step for step in steps if step["type"] == "layer"]) == len(run.stats.layers) > 4
