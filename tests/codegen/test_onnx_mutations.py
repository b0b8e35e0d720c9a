"""Damaged and faulty models: a diagnostic or a program that gives the right numbers, never a traceback."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import cim
from cim.codegen import cli
from cim.diagnostics import CimError
from cim.emulator.check import Mismatch
from tests.codegen.models import imported, save
from tests.codegen.onnx_mutations import float_model, mutate, quantized_model

MODELS = [float_model(), quantized_model()]
LARGEST = 10**6  # elements of an input that is worth running


def compile_and_run(made, folder, capsys=None):
    """The exit code of `cim-cc`, after running what it wrote with `--check`."""
    began = time.monotonic()
    build = Path(folder) / "build"
    code = cli.main([str(save(made, folder)), "-q", "-o", str(build), "--set", "core.crossbar=8x8"])
    assert time.monotonic() - began < 100
    assert code in (0, 1)
    assert build.exists() == (code == 0)
    if code == 0:
        run(build)
    return code


def run(build):
    """What onnxruntime refuses is an error; what runs must be right."""
    try:
        program = cim.Program(build)
        rng = np.random.default_rng(0)
        inputs = {}
        for tensor in program._network.network.inputs:
            if np.prod(tensor.shape, dtype=float) > LARGEST or not tensor.dtype:
                return
            inputs[tensor.name] = rng.uniform(-2, 5, tensor.shape).astype(tensor.dtype)
        program.run(inputs, check=True)
    except CimError as problem:
        if isinstance(problem, Mismatch) or "onnxruntime" not in str(problem):
            raise


@pytest.mark.parametrize("number", range(len(MODELS)))
def test_the_models_themselves_are_right(number, tmp_path):
    assert compile_and_run(MODELS[number], tmp_path) == 0
    assert len(imported(MODELS[number]).layers) == (4, 5)[number]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(range(len(MODELS))), st.integers(0, 2**32 - 1), st.integers(1, 3))
# What was once a traceback, or a wrong number.
@example(1, 203, 1)
@example(0, 478, 1)
@example(1, 801, 1)
@example(0, 100290, 1)
@example(1, 202089, 1)
@example(1, 300627, 1)
@example(1, 301889, 1)
@example(1, 302035, 1)
@example(0, 900506, 1)
def test_mutants(capsys, number, seed, count):
    with TemporaryDirectory() as folder, np.errstate(all="ignore"):
        code = compile_and_run(mutate(MODELS[number], seed, count), folder)
    told = capsys.readouterr().err
    assert ("error: " in told) == (code == 1)
    assert "Traceback" not in told


def test_a_model_without_outputs_is_refused(tmp_path, capsys):
    made = float_model()
    del made.graph.output[:]
    assert compile_and_run(made, tmp_path) == 1
    assert "it has no outputs" in capsys.readouterr().err


def test_a_cycle_and_an_input_of_huge_size_are_said(tmp_path, capsys):
    made = float_model()
    made.graph.node[0].input[0] = "y"
    assert compile_and_run(made, tmp_path) == 1
    assert "Nodes in a graph must be topologically sorted" in capsys.readouterr().err
    made = float_model()
    made.graph.input[0].type.tensor_type.shape.dim[2].dim_value = 2**40
    assert compile_and_run(made, tmp_path) == 1
    assert "error: " in capsys.readouterr().err
