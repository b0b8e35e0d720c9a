"""From Python: compile, run, look."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

import cim
from cim.diagnostics import CimError

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
