"""Whole networks of real size: every layer on the cores equals NumPy, the outputs are onnxruntime's.

The classifier is a real trained one, with depthwise convolutions, squeeze-excite and odd strides. It comes out of the package
rapidocr-onnxruntime (Apache-2.0, PaddleOCR authors), from which pip takes it, once, into build/models.
"""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import cim
from cim.codegen import cli as cli_cc
from cim.codegen.onnx_import import import_model
from cim.emulator import cli as cli_emu
from cim.explore import networks
from cim.explore.table1 import read_counts, read_table

pytestmark = pytest.mark.filterwarnings("ignore")  # of TensorFlow, tf2onnx and the quantizer
MODELS = Path(__file__).parents[1] / "build/models"
PACKAGE = "rapidocr-onnxruntime==1.4.4"
INSIDE = "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx"
SETTINGS = ["core.crossbar=128x128"]
IMAGE = (1, 3, 48, 192)
TENSORFLOW = "needs pip install -e '.[tensorflow]'"


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
    """The path of the classifier's ONNX file."""
    if not list(MODELS.glob("rapidocr_onnxruntime-*.whl")):
        command = ["-m", "pip", "download", "--quiet", "--no-deps", "-d", str(MODELS), PACKAGE]
        done = subprocess.run(
            [sys.executable, *command], check=False, capture_output=True, text=True
        )
        if done.returncode:
            pytest.skip(
                f"the classifier is in {PACKAGE}, which `python {' '.join(command)}` did not get: {done.stderr[-300:]}"
            )
    wheel = next(MODELS.glob("rapidocr_onnxruntime-*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(INSIDE, tmp_path_factory.mktemp("classifier")))


def runs_whole(program, x, layers, modes):
    """Runs and compares; nothing that multiplies and accumulates may be on the host."""
    run = program.run(x, check=True)
    assert len(run.stats.layers) == layers
    assert sum(node.share for node in run.stats.host) == 0
    assert {one.image.config.mode for (one,) in program._network.layers.values()} == modes
    (output,) = run.outputs.values()
    assert np.ptp(output) > 0
    return output


def texts(count):
    """Images of the classifier's size and range, not all alike."""
    rng = np.random.default_rng(0)
    coarse = rng.uniform(-1, 1, (count, 3, 6, 24)).astype(np.float32)
    return coarse.repeat(8, axis=2).repeat(8, axis=3)


def test_the_classifier_in_float(classifier):
    program = cim.compile(classifier, settings=SETTINGS, input_shapes={"x": IMAGE})
    runs_whole(program, texts(2), 54, {"f32"})


def test_the_classifier_in_int8(classifier):
    program = cim.compile(
        classifier, settings=SETTINGS, input_shapes={"x": IMAGE}, quantize=texts(4)
    )
    runs_whole(program, texts(1), 54, {"i8"})


@pytest.fixture(scope="module", params=["mobilenet", "resnet18"])
def float_model(request):
    """A Keras model of 224x224 images as ONNX, and its number of layers."""
    pytest.importorskip("tensorflow", reason=TENSORFLOW)
    return networks.float_model(request.param), {"mobilenet": 28, "resnet18": 21}[request.param]


def pictures(count):
    return np.random.default_rng(1).normal(size=(count, 224, 224, 3)).astype(np.float32)


class Calibration:
    """Two pictures for the quantizer."""

    def __init__(self, name):
        self.feeds = iter([{name: pictures(1)} for _ in range(2)])

    def get_next(self):
        return next(self.feeds, None)


def test_keras_networks_in_float(float_model):
    made, layers = float_model
    runs_whole(cim.compile(made, settings=SETTINGS), pictures(1), layers, {"f32"})


def test_keras_networks_quantized(float_model):
    made, layers = float_model
    program = cim.compile(made, settings=SETTINGS, sync="ring", quantize=pictures(2))
    runs_whole(program, pictures(1), layers, {"i8"})


def test_keras_networks_of_quantized_operators(float_model, tmp_path):
    """The form in which the quantizer leaves no float operator: QLinearConv, QGemm and others of its own."""
    made, layers = float_model
    onnx.save(made, str(tmp_path / "float.onnx"))
    quant_pre_process(
        str(tmp_path / "float.onnx"), str(tmp_path / "ready.onnx"), skip_symbolic_shape=True
    )
    calibration = Calibration(made.graph.input[0].name)
    quantize_static(
        str(tmp_path / "ready.onnx"), str(tmp_path / "int8.onnx"), calibration,
        quant_format=QuantFormat.QOperator, activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
    )  # fmt: skip
    assert "QLinearConv" in {node.op_type for node in onnx.load(tmp_path / "int8.onnx").graph.node}
    program = cim.compile(tmp_path / "int8.onnx", settings=SETTINGS)
    runs_whole(program, pictures(1), layers, {"i8"})


def test_layers_of_mobilenet_have_the_counters_of_the_paper(tmp_path, monkeypatch):
    """Table I's layers are MobileNet's: each one out of the quantized Keras model, by the command lines, as Table II has it."""
    pytest.importorskip("tensorflow", reason=TENSORFLOW)
    monkeypatch.chdir(tmp_path)
    onnx.save(networks.quantized_model("mobilenet"), "m.onnx")
    by_shape = {(one.image, one.matrix_shape): one.name for one in import_model("m.onnx").layers}
    rows = {row.layer: row for row in read_table()}
    counts = [count for count in read_counts() if count.crossbar >= 64]
    assert len(counts) == 14
    for count in counts:
        row, side = rows[count.layer], count.crossbar
        shape = (row.input_h, row.input_w, row.in_channels)
        name = by_shape[shape, (row.matrix_cols, row.matrix_rows)]
        folder = f"{row.layer}-{side}"
        machine = ["--arch", "pelke23", "--set", f"core.crossbar={side}x{side}"]
        assert cli_cc.main(["m.onnx", "--layer", name, "-q", "-o", folder, *machine]) == 0
        (cfg,) = Path(folder).glob("*.cfg")
        assert cli_emu.main([str(cfg), "--timing-only", "--quiet", "--stats", "s.json"]) == 0
        stats = json.loads(Path("s.json").read_text())
        found = (
            stats["cores"],
            stats["values"]["load"],
            stats["values"]["store"],
            stats["instructions"]["call"],
        )
        assert found == (count.cores, count.load_values, count.store_values, count.calls)
