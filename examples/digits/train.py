"""Train a small digit classifier and export it to ONNX in float32 and in int8 (QDQ).

The network is a CNN of three convolutions and a dense layer for scikit-learn's 8x8 handwritten
digits. Its layers are sized for 32x32 crossbars: the second and third convolution split into
several tiles both ways, and the last tiles of most layers are only partly filled.

Needs TensorFlow, tf2onnx, ONNX, ONNX Runtime and scikit-learn:

    pip install '.[tensorflow]' scikit-learn
    python examples/digits/train.py

Takes about 15 seconds on two CPU cores. It uses no GPU and downloads nothing: scikit-learn ships
the images. Writes these files beside the script, or into the folder given with --out:

    digits_f32.onnx    float32 model, input `image` [1, 1, 8, 8], output `probabilities` [1, 10]
    digits_int8.onnx   the same model, statically quantized, QDQ form
    test_images.npy    float32 [360, 1, 8, 8], the held-out images, scaled to 0..1
    test_labels.npy    uint8 [360], their digits

All seeds are fixed and TensorFlow runs its deterministic kernels on one thread, so a second run
with the same package versions on the same kind of CPU writes the same bytes. Other versions, or a
CPU with other vector instructions, may round sums differently and end at slightly other weights.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import onnx
import onnxruntime as ort
import tensorflow as tf
import tf2onnx
from numpy.typing import NDArray
from onnxruntime import quantization as quant
from onnxruntime.quantization.shape_inference import quant_pre_process
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 20
TEST_SIZE = 360
EPOCHS = 60
BATCH_SIZE = 32
CALIBRATION_SIZE = 256
OPSET = 17
LEAKY_SLOPE = 0.125  # a power of two, so that integer hardware can apply it with a shift

FloatArray = NDArray[np.float32]
LabelArray = NDArray[np.uint8]


class Split(NamedTuple):
    """Images and labels for training and for the held-out test; images are NCHW, 0..1."""

    train_images: FloatArray
    train_labels: LabelArray
    test_images: FloatArray
    test_labels: LabelArray


class CalibrationImages:
    """Feeds images one by one to the calibration, which runs the batch-1 float model.

    Having get_next() makes it a CalibrationDataReader to ONNX Runtime, with no base class.
    """

    def __init__(self, images: FloatArray) -> None:
        """Start at the first of the images."""
        self._images = iter(images)

    def get_next(self) -> dict[str, FloatArray] | None:
        """Return the next image as the model's input, or None at the end."""
        image = next(self._images, None)
        return None if image is None else {"image": image[np.newaxis]}


def make_deterministic() -> None:
    """Fix all seeds and make TensorFlow's sums independent of thread timing and of any GPU."""
    tf.config.set_visible_devices([], "GPU")
    keras.utils.set_random_seed(SEED)  # seeds python's random, numpy and tensorflow
    tf.config.experimental.enable_op_determinism()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def load_split() -> Split:
    """Load the digits, scale the pixels from 0..16 to 0..1 and split them by class."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, np.newaxis]
    labels = digits.target.astype(np.uint8)
    train_x, test_x, train_y, test_y = train_test_split(
        images, labels, test_size=TEST_SIZE, random_state=SEED, stratify=labels
    )
    return Split(train_x, train_y, test_x, test_y)


def to_nhwc(images: FloatArray) -> FloatArray:
    """Move the channels last: Keras trains on CPU in NHWC only."""
    return np.ascontiguousarray(np.transpose(images, (0, 2, 3, 1)))


def build_model() -> keras.Model:
    """Build the CNN. Dropout acts in training only and leaves nothing in the exported graph."""
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu", name="conv1"),
            layers.Conv2D(40, 3, padding="same", name="conv2"),
            layers.LeakyReLU(negative_slope=LEAKY_SLOPE, name="leaky2"),
            layers.MaxPooling2D(2, name="pool2"),
            layers.Conv2D(48, 3, padding="same", activation="relu", name="conv3"),
            layers.MaxPooling2D(2, name="pool3"),
            layers.Flatten(name="flatten"),
            layers.Dropout(0.4, seed=SEED, name="dropout"),
            layers.Dense(10, activation="softmax", name="dense"),
        ],
        name="digits",
    )


def train(model: keras.Model, split: Split) -> None:
    """Train with Adam and a cosine decay, so that the last epochs settle."""
    steps = EPOCHS * -(-len(split.train_images) // BATCH_SIZE)
    schedule = keras.optimizers.schedules.CosineDecay(2e-3, steps)
    model.compile(
        optimizer=keras.optimizers.Adam(schedule),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    model.fit(
        to_nhwc(split.train_images),
        split.train_labels,
        batch_size=BATCH_SIZE,
        epochs=EPOCHS,
        verbose=0,
    )


def export_float(model: keras.Model) -> onnx.ModelProto:
    """Convert to ONNX with a static batch of 1 and an NCHW input."""
    signature = (tf.TensorSpec((1, 8, 8, 1), tf.float32, name="image"),)

    def infer(image: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"probabilities": model(image, training=False)}

    proto: onnx.ModelProto
    proto, _ = tf2onnx.convert.from_function(
        tf.function(infer, input_signature=signature),
        input_signature=signature,
        opset=OPSET,
        inputs_as_nchw=["image"],
    )
    return proto


def drop_identity_reshapes(model: onnx.ModelProto) -> None:
    """Remove Reshape nodes that give back the shape they got, in place.

    tf2onnx turns NCHW input into NHWC and back again. With one channel both are reshapes, which it
    merges into a single one that does nothing, but it doesn't remove that one.
    """
    graph = model.graph
    shapes = value_shapes(model)
    for node in [node for node in graph.node if node.op_type == "Reshape"]:
        source, target = node.input[0], node.output[0]
        if shapes[source] != shapes[target]:
            continue
        graph.node.remove(node)
        for user in graph.node:
            user.input[:] = [source if name == target else name for name in user.input]
    used = {name for node in graph.node for name in node.input}
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in used]:
        graph.initializer.remove(tensor)


def value_shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Return the inferred shape of every value in the graph; all are static here."""
    graph = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True).graph
    values = [*graph.input, *graph.value_info, *graph.output]
    return {v.name: tuple(d.dim_value for d in v.type.tensor_type.shape.dim) for v in values}


def quantize(float_path: Path, calibration: FloatArray) -> onnx.ModelProto:
    """Quantize a float model to QDQ: int8 weights per output channel, uint8 activations.

    Relu and LeakyRelu are left out of the quantized types and Conv's output isn't quantized, so
    each activation sits between its Conv and the Q: the sums are requantized once, after it.
    """
    with tempfile.TemporaryDirectory() as folder:
        prepared, quantized = Path(folder) / "prepared.onnx", Path(folder) / "quantized.onnx"
        # All shapes are static: ONNX's own shape inference is enough, and sympy isn't needed.
        quant_pre_process(float_path, prepared, skip_symbolic_shape=True)
        quant.quantize_static(
            prepared,
            quantized,
            CalibrationImages(calibration),
            quant_format=quant.QuantFormat.QDQ,
            op_types_to_quantize=["Conv", "Gemm", "MaxPool", "Transpose", "Reshape"],
            per_channel=True,
            activation_type=quant.QuantType.QUInt8,
            weight_type=quant.QuantType.QInt8,
            calibrate_method=quant.CalibrationMethod.MinMax,
            extra_options={
                "OpTypesToExcludeOutputQuantization": ["Conv"],
                # MaxPool would stay in float, as nothing else asks to quantize its input.
                "ForceQuantizeNoInputCheck": True,
            },
        )
        return onnx.load(quantized)


def keep_standard_domain(model: onnx.ModelProto) -> None:
    """Drop, in place, the imports of operator domains that the tools add and no node uses."""
    used = [entry for entry in model.opset_import if entry.domain == ""]
    del model.opset_import[:]
    model.opset_import.extend(used)


def save(model: onnx.ModelProto, path: Path) -> None:
    """Tidy a model, check it and write it."""
    keep_standard_domain(model)
    onnx.checker.check_model(model, full_check=True)
    path.write_bytes(model.SerializeToString(deterministic=True))


def check_qdq_form(model: onnx.ModelProto) -> None:
    """Raise if a matrix node isn't DQ(x), DQ(w), DQ(b) -> Conv [-> activation] or Gemm -> Q."""
    producer = {name: node.op_type for node in model.graph.node for name in node.output}
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)

    for node in model.graph.node:
        if node.op_type not in ("Conv", "Gemm"):
            continue
        sources = [producer.get(name) for name in node.input]
        (last,) = users[node.output[0]]
        if node.op_type == "Conv" and last.op_type in ("Relu", "LeakyRelu"):
            (last,) = users[last.output[0]]
        if sources != ["DequantizeLinear"] * 3 or last.op_type != "QuantizeLinear":
            raise RuntimeError(f"{node.name}: fed by {sources}, then {last.op_type}")


def predict_onnx(path: Path, images: FloatArray) -> NDArray[np.int64]:
    """Return the class that a model gives each image.

    Optimizations are off, so that the int8 model runs node by node as written. Otherwise ONNX
    Runtime would fuse it into integer kernels, whose 16-bit partial sums can saturate on x86 CPUs
    without VNNI instructions.
    """
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    outputs = [session.run(None, {"image": image[np.newaxis]})[0] for image in images]
    classes: NDArray[np.int64] = np.concatenate(outputs).argmax(axis=1)
    return classes


def report(model: keras.Model, split: Split, float_path: Path, int8_path: Path) -> None:
    """Print how often each model is right on the held-out images, and how often they agree."""
    images, labels = split.test_images, split.test_labels
    keras_classes = model.predict(to_nhwc(images), verbose=0).argmax(axis=1)
    float_classes = predict_onnx(float_path, images)
    int8_classes = predict_onnx(int8_path, images)
    rows = {
        "keras accuracy": keras_classes == labels,
        "onnx f32 accuracy": float_classes == labels,
        "onnx int8 accuracy": int8_classes == labels,
        "keras and f32 agree": keras_classes == float_classes,
        "f32 and int8 agree": float_classes == int8_classes,
    }
    for title, hits in rows.items():
        print(f"{title:20} {hits.mean():7.2%}  ({hits.sum()} of {hits.size})")


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, export, quantize, write the held-out images and report the accuracies."""
    parser = argparse.ArgumentParser(description="Train and export the digit classifier.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="output folder")
    out: Path = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    float_path, int8_path = out / "digits_f32.onnx", out / "digits_int8.onnx"

    make_deterministic()
    split = load_split()
    model = build_model()
    train(model, split)

    float_model = export_float(model)
    drop_identity_reshapes(float_model)
    save(float_model, float_path)
    int8_model = quantize(float_path, split.train_images[:CALIBRATION_SIZE])
    check_qdq_form(int8_model)
    save(int8_model, int8_path)

    np.save(out / "test_images.npy", split.test_images)
    np.save(out / "test_labels.npy", split.test_labels)
    report(model, split, float_path, int8_path)


if __name__ == "__main__":
    main()
