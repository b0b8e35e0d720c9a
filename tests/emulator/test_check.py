"""What `--check` tolerates where a network's outputs are quantized."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from cim.asm.network_file import Network, Tensor
from cim.emulator.check import STEPS, Mismatch, check_network, output_steps


def model(scale):
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["y"]),
        helper.make_node("Relu", ["y"], ["r"]),
    ]
    graph = helper.make_graph(
        nodes,
        "m",
        [helper.make_tensor_value_info("x", TensorProto.UINT8, [2])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("y", "r")],
        [
            numpy_helper.from_array(np.asarray(scale, np.float32), "s"),
            numpy_helper.from_array(np.zeros(np.shape(scale), np.uint8), "z"),
        ],
    )
    return helper.make_model(graph).SerializeToString()


def test_only_outputs_of_a_dequantize_have_steps():
    assert output_steps(model(0.25)) == {"y": 0.25}
    assert output_steps(model([0.25, 0.5])) == {}


class Session:
    def __init__(self, values):
        self.values = np.array(values, np.float32)

    def run(self, names, _inputs):
        return [self.values for _ in names]


def check(got, want, steps):
    network = Network(
        name="n", inputs=[], outputs=[Tensor("y", "float32", [2])], steps=[], host=[], macs=0, reference="",
        reference_sha256="",
    )  # fmt: skip
    values = {"y": np.array(got, np.float32)}
    check_network(network, Session(want), {}, values, True, "network.json", steps)


def test_two_steps_are_tolerated_and_three_are_not():
    step = 1 / 256
    check([step, 0], [0, step], {"y": step})
    check([STEPS * step, 0], [0, 0], {"y": step})
    with pytest.raises(Mismatch, match=r"2 steps of 0\.0039"):
        check([(STEPS + 1) * step, 0], [0, 0], {"y": step})
    with pytest.raises(Mismatch, match=r"within 0\.05 of the largest value"):
        check([step, 0], [0, step], {})
