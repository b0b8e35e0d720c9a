"""Keras's own applications on the cores: each is built with random weights and small images, compiled and run with `check`.

    python benchmarks/applications.py [NAME ...]

Every layer is compared with NumPy and the network with onnxruntime, in float and in int8; `differs` is the largest
difference to Keras's own logits, relative to the largest of them. Needs TensorFlow. All of them take a quarter of an hour.
"""

from __future__ import annotations

import sys
import time

import numpy as np
from numpy.typing import NDArray

import cim
from cim.codegen.keras_import import quiet

NETWORKS = (
    "MobileNetV2", "MobileNetV3Small", "EfficientNetB0", "EfficientNetV2B0", "DenseNet121", "VGG16", "InceptionV3", "Xception",
    "NASNetMobile", "ResNet50V2", "ConvNeXtTiny",
)  # fmt: skip
SIDE = 96  # of an image: the least that all of them take
SETTINGS = {"core.crossbar": "256x256", "core.mvm_cycles": 10}


@quiet()
def built(name: str) -> tuple[object, NDArray[np.float32], NDArray[np.float32]]:
    """A model, an image for it, and what Keras makes of that."""
    import keras

    keras.utils.set_random_seed(0)
    make = getattr(keras.applications, name)
    # Logits: a softmax of what random weights give is a step, which a difference of a bit can turn.
    model = make(weights=None, input_shape=(SIDE, SIDE, 3), classes=10, classifier_activation=None)
    x = np.random.default_rng(0).normal(size=(1, SIDE, SIDE, 3)).astype(np.float32)
    return model, x, model(x).numpy()


def main() -> None:
    """Print a line for each network and type of numbers."""
    print(f"{'network':18}{'numbers':>8}{'layers':>8}{'host':>6}{'MACs there':>12}{'compile':>9}{'run':>7}{'differs':>10}")  # fmt: skip
    for name in sys.argv[1:] or NETWORKS:
        model, x, want = built(name)
        for numbers, calibration in (("float", None), ("int8", x)):
            began = time.monotonic()
            program = cim.compile(model, settings=SETTINGS, quantize=calibration)
            compiled = time.monotonic()
            run = program.run(x, check=True)
            took = time.monotonic() - compiled
            (y,) = run.outputs.values()
            on_host = sum(node.share for node in run.stats.host)
            print(
                f"{name:18}{numbers:>8}{len(run.stats.layers):8}{len(run.stats.host):6}{on_host:12.2%}"
                f"{compiled - began:8.1f}s{took:6.1f}s{np.abs(y - want).max() / np.abs(want).max():10.2g}",
                flush=True,
            )


if __name__ == "__main__":
    main()
