"""`--quantize`: a float model becomes an int8 one that gives nearly the same; what does not fit is said."""

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

import cim
from cim.codegen import cli
from cim.diagnostics import CimError
from tests.codegen.cases import Chain
from tests.codegen.models import model, operator, run, save, value

DIGITS = Path(__file__).parents[2] / "examples/digits"
SMALL = ["core.crossbar=32x32"]
F = np.float32


@pytest.mark.parametrize("narrow", [False, True])
def test_digits(tmp_path, monkeypatch, narrow):
    """The trained float network, on a narrow machine too, which takes no float layers."""
    monkeypatch.chdir(tmp_path)
    images = np.load(DIGITS / "test_images.npy")[:, None].reshape(
        -1, *np.load(DIGITS / "test_images.npy").shape[1:]
    )
    np.save("calib.npy", images[:40])
    more = ["--set", "core.partial_sum=narrow"] if narrow else []
    arguments = [str(DIGITS / "digits_f32.onnx"), "-q", "-o", "build", "--set", SMALL[0], *more]
    assert cli.main(arguments) == (1 if narrow else 0)
    assert cli.main([*arguments, "--quantize", "calib.npy"]) == 0
    program = cim.Program("build")
    done = program.run(images[40:70], check=True)
    modes = {prepared.image.config.mode for (prepared,) in program._network.layers.values()}
    assert modes == {"i8n" if narrow else "i8"}
    labels = np.load(DIGITS / "test_labels.npy")[40:70]
    right = (done.outputs[program.outputs[0]].argmax(axis=1) == labels).mean()
    assert right > (0.5 if narrow else 0.9)


def test_several_inputs_by_name():
    w = np.random.default_rng(0).normal(size=(3, 2)).astype(F)
    nodes = [
        helper.make_node("MatMul", ["a", "w"], ["m"], "one"),
        helper.make_node("MatMul", ["b", "w"], ["n"], "two"),
        helper.make_node("Concat", ["m", "n"], ["y"], "both", axis=0),
    ]
    made = model(
        nodes, [value("a", F, (1, 3)), value("b", F, (1, 3))], [value("y", F, (2, 2))], {"w": w}
    )
    rng = np.random.default_rng(1)
    data = {name: rng.normal(size=(20, 3)).astype(F) for name in "ab"}
    program = cim.compile(made, quantize=data)
    one = {name: array[:1] for name, array in data.items()}
    found = program.run(one, check=True)
    assert np.abs(found.outputs["y"] - np.concatenate([one["a"], one["b"]]) @ w).max() < 0.1
    assert len(found.stats.layers) == 2
    with pytest.raises(
        CimError, match=r"the model has 2 inputs: calibrate with arrays by name \(a, b\)"
    ):
        cim.compile(made, quantize=data["a"])
    with pytest.raises(CimError, match="nothing to calibrate input 'b' with"):
        cim.compile(made, quantize={"a": data["a"]})


def test_bias_and_activation_behind_a_squeeze_are_quantized_with_the_layer():
    """Where the Squeeze stood before them, its result would have been quantized, and the bias left to the host."""
    made = Chain((1, 6), (1, 3), [2], np.random.default_rng(2))
    made.add_any("Add", (3, 1))
    made.add("Relu")
    data = np.random.default_rng(3).normal(size=(20, 2, 1, 6)).astype(F)
    program = cim.compile(made.model(), quantize=data)
    done = program.run(data[:1], check=True)
    left = {node.operator for node in done.stats.host}
    assert left == {"QuantizeLinear", "Squeeze", "DequantizeLinear"}
    assert np.abs(done.outputs[made.last] - run(made.model(), {"x": data[:1]})[0]).max() < 0.1
    assert len(done.stats.layers) == 1


@pytest.mark.parametrize(
    "array",
    [np.zeros((2, 4), F), np.zeros((2, 3), np.float64), np.zeros((0, 3), F), np.zeros(3, F)],
)
def test_arrays_that_do_not_fit(array):
    made = operator("MatMul", (1, 3), {"w": np.ones((3, 2), F)})
    shown = "x".join(map(str, array.shape))
    text = (
        f"input 'x' is calibrated with {shown} {array.dtype}, must be one or more times 1x3 float32"
    )
    with pytest.raises(CimError, match=text):
        cim.compile(made, quantize=array)


def test_errors_of_the_command_line(tmp_path, capsys):
    path = save(operator("MatMul", (1, 3), {"w": np.ones((3, 2), F)}), tmp_path)
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    for name, text in (
        ("missing.npy", "missing.npy: error: cannot read: No such file"),
        ("bad.npy", "bad.npy: error: is not a .npy or .npz file"),
    ):
        assert (
            cli.main([str(path), "-o", str(tmp_path / "out"), "--quantize", str(tmp_path / name)])
            == 1
        )
        assert text in capsys.readouterr().err
    np.save(tmp_path / "x.npy", np.zeros((1, 64), F))
    assert (
        cli.main(
            [
                str(DIGITS / "digits_int8.onnx"),
                "-o",
                str(tmp_path / "out"),
                "--quantize",
                str(tmp_path / "x.npy"),
            ]
        )
        == 1
    )
    assert "is quantized already: it has " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
