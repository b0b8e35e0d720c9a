"""The networks of Fig. 6: the layers are those of the published structures, and narrow at the bus."""

from __future__ import annotations

import numpy as np
import pytest

from cim.codegen.compile_layer import compile_layer
from cim.emulator import stats
from cim.emulator.prepare import prepare
from cim.emulator.run import execute
from cim.explore.networks import NETWORKS, network_layers
from cim.explore.table1 import read_table
from cim.isa.machine import load_machine

pytestmark = pytest.mark.filterwarnings("ignore")  # of TensorFlow and its friends


@pytest.fixture(scope="module")
def networks():
    pytest.importorskip("tensorflow")
    return {name: network_layers(name) for name in NETWORKS}


def distinct(layers):
    """One layer of each shape."""
    return {
        (layer.weights.shape, layer.groups, layer.image, layer.strides, layer.pads): layer
        for layer in layers
    }.values()


def test_table_1_is_an_excerpt_of_mobilenet(networks):
    shapes = {(layer.weights.shape, layer.image) for layer in networks["mobilenet"]}
    for row in read_table():
        kernel = (row.kernel_h, row.kernel_w, row.in_channels, row.out_channels)
        assert (kernel, (row.input_h, row.input_w, row.in_channels)) in shapes


def test_mobilenet_has_its_published_number_of_weights(networks):
    layers = networks["mobilenet"]
    # 27 convolutions and the classifier; 4,253,864 parameters with 4 a channel of normalization and 1000 biases.
    assert len(layers) == 28
    channels = sum(layer.weights.shape[3] for layer in layers[:-1])
    assert sum(layer.weights.size for layer in layers) == 4_253_864 - 4 * channels - 1000


def test_resnet18_has_its_published_number_of_weights(networks):
    layers = networks["resnet18"]
    # 20 convolutions and the classifier; 11,689,512 parameters with 2 a channel of normalization and 1000 biases.
    assert len(layers) == 21
    channels = sum(layer.weights.shape[3] for layer in layers[:-1])
    assert sum(layer.weights.size for layer in layers) == 11_689_512 - 2 * channels - 1000


@pytest.mark.parametrize("name", NETWORKS)
def test_a_value_is_one_byte_at_the_bus(networks, name):
    """On a bus of one byte, each value is one beat of data, and each CALL one."""
    machine = load_machine("pelke23", ["core.crossbar=256x256", "bus.width_bytes=1"])
    for layer in distinct(networks[name]):
        compiled = compile_layer(layer, machine, "cyclic", "layer")
        assert compiled.mode.mode == "i8n"
        image = compiled.image()
        counted = stats.collect([execute(prepare(image), values=False)])
        assert counted.values.load >= layer.outputs * layer.weights[..., 0].size
        assert counted.bus.r_busy_cycles == counted.values.load == counted.bytes.load
        assert counted.values.store == counted.bytes.store
        assert counted.bus.w_busy_cycles == counted.values.store + counted.instructions.call


@pytest.mark.parametrize("name", NETWORKS)
def test_activations_neither_die_out_nor_saturate(networks, name):
    """A quantizer that saw nothing but zeros would give scales that mean nothing."""
    scales = [float(layer.quantization.y_scale) for layer in networks[name]]
    assert np.isfinite(scales).all()
    assert min(scales) > 1e-4
    assert max(scales) < 10
