"""Layers that are made in workers are the same as without, and so is what goes wrong."""

import os
import pickle
from dataclasses import replace

import numpy as np
import pytest
from loky import ProcessPoolExecutor
from onnx import helper

from cim.codegen import layer_files as module
from cim.codegen.driver import compile_model
from cim.diagnostics import CimError, Diagnostic, Note, usage_error
from cim.isa.machine import load_machine
from tests.codegen.models import model, value

F = np.float32


@pytest.fixture
def three(monkeypatch):
    """Three layers on many cores, and two workers for them."""
    monkeypatch.setattr(module, "CORES_WORTH_WORKERS", 2)
    monkeypatch.setattr(module, "cpu_count", lambda: 2)
    rng = np.random.default_rng(0)
    names = ["x", "a", "b", "y"]
    nodes = [
        helper.make_node("MatMul", [names[i], f"w{i}"], [names[i + 1]], f"n{i}") for i in range(3)
    ]
    constants = {f"w{i}": rng.normal(size=(8 + i, 9 + i)).astype(F) for i in range(3)}
    made = model(nodes, [value("x", F, (2, 8))], [value("y", F, (2, 11))], constants)
    return compile_model(made, load_machine("default", ["core.crossbar=4x4"]))


@pytest.mark.parametrize("stage", ["object", "image"])
def test_files_and_progress(three, stage, monkeypatch):
    names = []
    found = three.files(stage, names.append)
    assert sorted(names) == ["n0", "n1", "n2"]
    monkeypatch.setattr(module, "CORES_WORTH_WORKERS", 10**9)
    assert found == three.files(stage)


def test_workers_get_and_give_what_is_a_layer_s_own(three, monkeypatch):
    """Not its tensors and its reference, which all turns of a folded layer have in common."""
    sent = []

    class Watching(ProcessPoolExecutor):
        def submit(self, made, *arguments):
            sent.append(len(pickle.dumps(arguments)))
            future = super().submit(made, *arguments)
            assert not any(name.endswith(".onnx") for name in future.result())
            return future

    monkeypatch.setattr(module, "ProcessPoolExecutor", Watching)
    three.files()
    own = [
        sum(map(len, layer.program.files.values())) - len(layer.program.reference[1])
        for layer in three.layers
    ]
    assert len(sent) == len(own)
    assert max(sent) < 1.5 * max(own)


def failing(layers):
    texts = dict.fromkeys(layers[1].program.texts, "  bad\n")
    broken = replace(layers[1], program=replace(layers[1].program, texts=texts))
    return [layers[0], broken, layers[2]]


def test_errors_come_out_as_they_are(three):
    with pytest.raises(CimError) as alone:
        module.program_files(failing(three.layers)[1].program, "image")
    with pytest.raises(CimError) as raised:
        module.made_layers(failing(three.layers), "image", lambda _: None)
    assert str(raised.value) == str(alone.value)
    assert [d.render() for d in raised.value.diagnostics] == [
        d.render() for d in alone.value.diagnostics
    ]


def test_a_worker_that_dies_leaves_its_layers_to_us(three, monkeypatch):
    want = three.files()

    class Dying(ProcessPoolExecutor):
        def submit(self, *_):
            return super().submit(os._exit, 1)

    monkeypatch.setattr(module, "ProcessPoolExecutor", Dying)
    assert three.files() == want


def test_errors_can_be_sent_between_processes():
    """Of every kind: with notes, of subclasses, with their exit code."""
    first = CimError([Diagnostic("one", where="a", notes=(Note("n"),)), Diagnostic("two")])
    first.limit = 1
    for problem in (first, usage_error("bad", "--x")):
        copy = pickle.loads(pickle.dumps(problem))
        assert type(copy) is type(problem)
        assert (copy.diagnostics, copy.limit, str(copy)) == (
            problem.diagnostics,
            problem.limit,
            str(problem),
        )
        assert copy.exit_code == problem.exit_code
