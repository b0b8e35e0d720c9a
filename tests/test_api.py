"""From Python: compile, run, look."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper

import cim
from cim import backend
from cim.diagnostics import CimError
from cim.emulator.cli import main as emulate
from tests.codegen.models import model, value

DIGITS = Path(__file__).parents[1] / "examples" / "digits"
SMALL = ["core.crossbar=32x32", "core.mvm_cycles=50"]


@pytest.fixture(scope="module")
def program():
    return cim.compile(DIGITS / "digits_int8.onnx", settings=SMALL, sync="ring")


def test_outputs_are_onnxruntime_s(program):
    (name,) = program.inputs
    options = ort.SessionOptions()
    # Its fused integer kernels round in other places than ONNX says.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(DIGITS / "digits_int8.onnx", options)
    shape = session.get_inputs()[0].shape[1:]
    x = np.random.default_rng(0).uniform(0, 1, (3, *shape)).astype(np.float32)
    run = program.run(x, check=True)
    assert list(run.outputs) == program.outputs
    wanted = np.concatenate([session.run(None, {name: one[None]})[0] for one in x])
    assert np.allclose(run.outputs[program.outputs[0]], wanted, atol=5e-2)
    assert len(run.stats.cycles_per_image) == 3
    again = program.run({name: x[:1]})
    assert again.stats.cycles == run.stats.cycles_per_image[0]


def test_a_saved_program_is_the_same(program, tmp_path):
    program.save(tmp_path)
    read = cim.Program(tmp_path)
    (name,) = read.inputs
    x = np.zeros((1, *read._network.network.inputs[0].shape[1:]), np.float32)
    one, two = program.run(x), read.run({name: x})
    assert one.stats == two.stats
    assert all(np.array_equal(one.outputs[key], two.outputs[key]) for key in one.outputs)
    with pytest.raises(CimError, match="was read from files"):
        read.save(tmp_path / "again")


def test_what_is_wrong_is_said(program):
    with pytest.raises(CimError, match="unknown scheme 'rign'; did you mean 'ring'"):
        cim.compile(DIGITS / "digits_int8.onnx", sync="rign")
    with pytest.raises(CimError, match="input"):
        program.run(np.zeros((1, 2), np.float32))
    with pytest.raises(AttributeError, match="no attribute 'compil'"):
        cim.compil  # noqa: B018


def two_ends():
    """A convolution and a product of a model with two inputs, two outputs and a batch of its own."""
    rng = np.random.default_rng(0)
    constants = {
        "k": rng.normal(size=(2, 1, 2, 2)).astype(np.float32),
        "w": rng.normal(size=(18, 3)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["a", "k"], ["c"], "conv"),
        helper.make_node("Flatten", ["c"], ["f"], "flat"),
        helper.make_node("MatMul", ["f", "w"], ["m"], "product"),
        helper.make_node("Add", ["m", "b"], ["s"], "sum"),
    ]
    inputs = [value("a", np.float32, (2, 1, 4, 4)), value("b", np.float32, (2, 3))]
    outputs = [value("s", np.float32, (2, 3)), value("c", np.float32, (2, 2, 3, 3))]
    x = rng.normal(size=(2, 1, 4, 4)).astype(np.float32), rng.normal(size=(2, 3)).astype(np.float32)
    return model(nodes, inputs, outputs, constants), x


def test_a_batch_of_the_models_own(tmp_path, capsys):
    """Image by image in the convolution, all rows at once in the product: an inference is one figure."""
    made, x = two_ends()
    program = cim.compile(made, settings=SMALL)
    run = program.run(x, check=True)
    want = ort.InferenceSession(made.SerializeToString()).run(None, dict(zip("ab", x, strict=True)))
    for got, wanted in zip(run.outputs.values(), want, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
    layers = run.stats.layers
    assert [len(layer.cycles_per_image) for layer in layers.values()] == [2, 1]
    assert run.stats.cycles_per_image == [run.stats.cycles]
    (s, _) = backend.run_model(made, list(x))
    np.testing.assert_array_equal(s, run.outputs["s"])
    program.save(tmp_path)
    np.savez(tmp_path / "x.npz", a=x[0], b=x[1])
    command = [str(tmp_path / "network.json"), "--input", str(tmp_path / "x.npz"), "--check"]
    assert emulate([*command, "--output", f"c={tmp_path / 'c.npy'}"]) == 0
    assert "checked: 2 layers agree with the NumPy reference, and the network with" in (
        capsys.readouterr().out
    )
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), run.outputs["c"])
    assert emulate([*command, "--output", str(tmp_path / "y.npy")]) == 1
    assert "must be NAME=Y.npy, the outputs are s, c" in capsys.readouterr().err


def test_what_people_give(tmp_path):
    """Settings as one text or by name, calibration as a file, a model's file, inputs in order or from a batch of lists."""
    path = DIGITS / "digits_f32.onnx"
    images = np.load(DIGITS / "test_images.npy")[:4]
    np.save(tmp_path / "calib.npy", images)
    by_text = cim.compile(path, settings="core.crossbar=32x32", quantize=tmp_path / "calib.npy")
    by_name = cim.compile(path, settings={"core.crossbar": "32x32"}, quantize=images)
    one, two = by_text.run(images), by_name.run([images])
    assert one.stats == two.stats
    assert "image: 1x1x8x8 float32 -> " in repr(by_text)
    assert len(repr(one)) < 200
    assert {"compile", "Program", "Run"} <= set(dir(cim))
    (y,) = backend.prepare(path, settings=["core.crossbar=32x32"]).run([images[:1]])
    assert y.shape == (1, 10)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_calibration_that_is_no_number(bad):
    images = np.load(DIGITS / "test_images.npy")[:2].copy()
    images[1, 0, 3, 3] = bad
    with pytest.raises(CimError, match="what input 'image' is calibrated with has NaN or infinity"):
        cim.compile(DIGITS / "digits_f32.onnx", quantize=images)


def test_inputs_of_another_type_or_size(program):
    (tensor,) = program._network.network.inputs
    with pytest.raises(CimError, match=r"convert it: numpy.save\('x.npy', x.astype\('float32'\)\)"):
        program.run(np.zeros(tensor.shape))
    with pytest.raises(CimError, match="the first dimension may have any size, the others may not"):
        program.run(np.zeros((5, 1, 9, 8), np.float32))
    with pytest.raises(CimError, match="2 inputs are given, the model has image"):
        program.run([np.zeros(tensor.shape, np.float32)] * 2)
