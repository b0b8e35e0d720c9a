"""MobileNet and ResNet-18 as Keras models, quantized statically to int8: where the layers of Fig. 6 come from.

Weights are random. Those of convolutions are scaled so that activations neither die out nor explode, which a
quantizer needs to see; batch normalization keeps its identity, so that folding it adds no bias.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from cim.codegen.keras_import import keras_to_onnx, quiet
from cim.codegen.layer import Layer
from cim.codegen.onnx_import import import_model
from cim.codegen.onnx_load import load_graph
from cim.codegen.quantize import quantized
from cim.diagnostics import error

IMAGE = (224, 224, 3)
NETWORKS = ("mobilenet", "resnet18")


def network_layers(name: str) -> list[Layer]:
    """The convolutions of a quantized network that run on the cores, in its order.

    Raises `CimError` where TensorFlow is not installed.
    """
    return list(import_model(quantized_model(name)).layers)


def convolutions() -> dict[str, Layer]:
    """The convolutions of all networks with more than one output vector, by a name that tells their shape.

    Equal ones once. Raises `CimError` where TensorFlow is not installed.
    """
    found: dict[str, Layer] = {}
    seen = set()
    for network in NETWORKS:
        for layer in network_layers(network):
            shape = (layer.weights.shape, layer.groups, layer.image, layer.strides, layer.pads)
            if layer.layout != "NCHW" or layer.outputs == 1 or shape in seen:
                continue
            seen.add(shape)
            ky, kx, channels, outputs = layer.weights.shape
            height, width = layer.output_image
            label = f"{network} {ky}x{kx}x{channels * layer.groups}x{outputs} at {height}x{width}"
            found[label + (f" in {layer.groups} groups" if layer.groups > 1 else "")] = layer
    return found


def float_model(name: str) -> onnx.ModelProto:
    """A network with one image [1][height][width][channel] as input. Raises `CimError` without TensorFlow."""
    return keras_to_onnx(_build(name), {})


def quantized_model(name: str) -> onnx.ModelProto:
    """The same in int8, calibrated with a few random images."""
    images = np.random.default_rng(0).normal(size=(2, *IMAGE)).astype(np.float32)
    return quantized(load_graph(float_model(name)), images)


@quiet()
def _build(name: str) -> Any:
    try:
        import keras
    except ImportError:
        raise error(
            "the layers of Fig. 6 come from Keras models, and TensorFlow is not installed",
            notes=["pip install 'cim-toolchain[tensorflow]'"],
        ) from None
    keras.utils.set_random_seed(0)
    model = (
        keras.applications.MobileNet(weights=None, input_shape=IMAGE)
        if name == "mobilenet"
        else _resnet18(keras)
    )
    for layer in model.layers:
        if "Conv" in type(layer).__name__:
            _rescale(layer)
    return model


def _rescale(layer: Any) -> None:
    """He initialization: the variance of a sum of fan-in products stays that of one input."""
    kernel = np.array(layer.kernel)
    depthwise = "Depthwise" in type(layer).__name__
    fan_in = np.prod(kernel.shape[:2]) * (1 if depthwise else kernel.shape[2])
    kernel *= np.sqrt(2 / fan_in) / max(float(kernel.std()), 1e-9)
    layer.kernel.assign(kernel)


def _resnet18(keras: Any) -> Any:
    """ResNet-18 by its published structure: four stages of two blocks of two 3x3 convolutions."""
    layers = keras.layers

    def convolution(x: Any, filters: int, size: int, stride: int) -> Any:
        x = layers.ZeroPadding2D(size // 2)(x) if size > 1 else x
        x = layers.Conv2D(filters, size, strides=stride, use_bias=False)(x)
        return layers.BatchNormalization()(x)

    inputs = keras.Input(IMAGE)
    x = layers.ReLU()(convolution(inputs, 64, 7, 2))
    x = layers.MaxPooling2D(3, 2)(layers.ZeroPadding2D(1)(x))
    for stage, filters in enumerate((64, 128, 256, 512)):
        for block in range(2):
            stride = 2 if stage and not block else 1
            shortcut = convolution(x, filters, 1, stride) if stride != 1 else x
            y = layers.ReLU()(convolution(x, filters, 3, stride))
            y = convolution(y, filters, 3, 1)
            x = layers.ReLU()(layers.Add()([y, shortcut]))
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(1000)(x))
