"""The ONNX project's own backend tests, on a machine of crossbars so small that layers are split."""

import re
import unittest
import warnings
from typing import ClassVar

import numpy as np
import onnx
import onnx.backend.test
import pytest
from onnx import helper

from cim import backend
from cim.codegen.onnx_geometry import WEIGHT_INPUT
from cim.diagnostics import CimError

SMALL = {"settings": ["core.crossbar=2x2", "core.mvm_cycles=10"], "sync": "ring"}
INCLUDED = (
    "basic_conv", "conv_with", "convinteger", "convtranspose", "qlinearconv", "gemm", "matmul_[1-4bd]",
    "matmulinteger", "qlinearmatmul", "relu_", "relu_expanded", "leakyrelu", "prelu", "clip_", "add_", "batchnorm",
    "averagepool", "maxpool", "globalaveragepool", "globalmaxpool", "softmax_", "quantizelinear", "dequantizelinear",
    "hardsigmoid", "hardswish", "Conv", "Linear", "operator_conv", "operator_mm", "operator_addmm",
)  # fmt: skip
# Whole networks. Their weights are made by operators, so that their files are small.
NETWORKS = (
    "bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "zfnet512",
)  # fmt: skip
# Why a matrix operator of these tests may be on the host.
ON_HOST = (
    "the input's rank is 5, must be 3 or 4",
    "the type of x_scale is float16, must be float32",
)


class SmallRep(backend.CimRep):
    """After each run: matrix operators have run on the cores, with MVMs, or `ON_HOST` says why not."""

    def run(self, inputs, **kwargs):
        outputs = super().run(inputs, **kwargs)
        on_host = [node for node in self.stats.host if node.operator in WEIGHT_INPUT]
        assert all(any(why in node.reason for why in ON_HOST) for node in on_host), on_host
        matrices = sum(node.op_type in WEIGHT_INPUT for node in self.model.graph.node)
        assert (self.stats.instructions.mvm > 0) == (matrices > len(on_host))
        return outputs


class Small(backend.CimBackend):
    machine = SMALL

    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        rep = super().prepare(model, device, **kwargs)
        return SmallRep(rep.model, rep.options)


class Large(Small):
    """For whole networks, in which there are larger matrices."""

    machine: ClassVar = {"settings": ["core.crossbar=512x512", "core.mvm_cycles=10"]}


def suite(tested, patterns):
    """The included tests alone: a test that is left out is no skipped one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making their data overflows on purpose
        made = onnx.backend.test.BackendTest(tested, __name__)
    for pattern in patterns:
        made.include(f"^test_{pattern}.*_cpu$")
    for name, case in made.test_cases.items():
        for test in [key for key in vars(case) if key.startswith("test_")]:
            if getattr(getattr(case, test), "__unittest_skip__", False):
                delattr(case, test)
        if any(key.startswith("test_") for key in vars(case)):
            yield name, pytest.mark.filterwarnings("ignore")(case)


globals().update(suite(Small, INCLUDED))
globals().update(suite(Large, NETWORKS))  # of another class than those


def test_every_pattern_includes_tests():
    cases = [case for name, case in globals().items() if name.startswith("OnnxBackend")]
    names = [name for case in cases for name in vars(case) if name.startswith("test_")]
    for pattern in (*INCLUDED, *NETWORKS):
        assert any(re.match(f"test_{pattern}", name) for name in names), pattern
    assert all(issubclass(case, unittest.TestCase) for case in cases)


def conv(weights_as_input):
    w = np.arange(2 * 3 * 2 * 2, dtype=np.float32).reshape(2, 3, 2, 2)
    node = helper.make_node("Conv", ["x", "w"], ["y"], "n")
    info = [
        helper.make_tensor_value_info(n, 1, s) for n, s in (("x", ["N", 3, 4, 4]), ("w", w.shape))
    ]
    graph = helper.make_graph(
        [node], "conv", info if weights_as_input else info[:1],
        [helper.make_tensor_value_info("y", 1, ["N", 2, 3, 3])],
        [] if weights_as_input else [onnx.numpy_helper.from_array(w, "w")],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), w


def test_weights_are_bound_when_they_are_given_and_compiled_once():
    made, w = conv(weights_as_input=True)
    rep = backend.prepare(made, **SMALL)
    x = np.ones((2, 3, 4, 4), np.float32)
    (first,) = rep.run([x, w])
    program = rep.program
    (second,) = rep.run({"x": 2 * x, "w": w})
    assert rep.program is program
    (third,) = rep.run([x, 2 * w], check=True)
    assert rep.program is not program
    np.testing.assert_array_equal(second, 2 * first)
    np.testing.assert_array_equal(third, 2 * first)
    held, _ = conv(weights_as_input=False)
    (fourth,) = backend.run_model(held, [x], **SMALL)
    np.testing.assert_array_equal(fourth, first)
    # 12 rows on 6 cores, each with one MVM for 2 images of 9 outputs.
    assert (rep.stats.cores, rep.stats.instructions.mvm) == (6, 6 * 2 * 9)
    with pytest.raises(CimError, match="1 inputs are given, must be x, w"):
        rep.run([x])


def test_single_operators():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 5)).astype(np.float32), rng.normal(size=(5, 4)).astype(np.float32)
    (y,) = backend.run_node(helper.make_node("MatMul", ["a", "b"], ["y"]), [a, b], opset_version=13)
    np.testing.assert_allclose(y, a @ b, rtol=1e-5, atol=1e-5)
    x = rng.integers(0, 9, (2, 3)).astype(np.uint8)
    node = helper.make_node("QLinearAdd", ["x", "s", "z", "x", "s", "z", "s", "z"], ["y"], domain="com.microsoft")  # fmt: skip
    (y,) = backend.run_node(
        node, [x, np.float32(1), np.uint8(0)], outputs_info=[(np.uint8, (2, 3))], opset_version=13
    )
    np.testing.assert_array_equal(y, x + x)


@pytest.mark.parametrize(
    ("device", "there"), [("CPU", True), ("CPU:0", True), ("CUDA", False), ("TPU", False)]
)
def test_devices(device, there):
    made, _ = conv(weights_as_input=False)
    assert backend.supports_device(device) == there
    assert backend.is_compatible(made)
    if not there:
        with pytest.raises(CimError, match=f"no device '{device}', only CPU"):
            backend.prepare(made, device)
