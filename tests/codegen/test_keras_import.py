"""Keras models in every form: the numbers are Keras's own, and what is wrong is said."""

import shlex
import subprocess
import sys

import numpy as np
import pytest

import cim
from cim.codegen import cli
from cim.codegen.keras_import import is_keras, keras_to_onnx
from cim.codegen.onnx_import import HostNode, import_graph
from cim.codegen.onnx_load import load_graph
from cim.diagnostics import CimError

tf = pytest.importorskip("tensorflow", reason="needs pip install -e '.[tensorflow]'")
keras = pytest.importorskip("keras")
pytestmark = pytest.mark.filterwarnings("ignore")  # of TensorFlow and tf2onnx themselves
SMALL = ["core.crossbar=16x16", "core.mvm_cycles=50"]


def convolutions():
    """Every kind of matrix layer that Keras has for images, with normalization and activations."""
    layers = keras.layers
    inputs = keras.Input((9, 8, 4), name="image")
    x = layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False)(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.ReLU(6.0)(x)
    x = layers.DepthwiseConv2D(3, padding="same")(x)
    x = layers.PReLU(shared_axes=[1, 2], alpha_initializer=keras.initializers.Constant(0.3))(x)
    x = layers.Conv2D(6, 1)(x)
    x = layers.Dropout(0.5)(x)
    x = layers.Conv2DTranspose(5, 3, strides=2, padding="same")(x)
    x = layers.LeakyReLU(negative_slope=0.2)(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(3, activation="softmax")(x), name="small")


def randomized(model):
    """All weights random, the statistics of a BatchNormalization too."""
    rng = np.random.default_rng(0)
    model.set_weights(
        [
            rng.uniform(0.1, 1, w.shape).astype(w.dtype)
            * rng.choice([1, 1, -1] if w.ndim > 1 else [1], w.shape)
            for w in model.get_weights()
        ]
    )
    return model


@pytest.fixture(scope="module")
def model():
    return randomized(convolutions())


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(1).normal(size=(2, 9, 8, 4)).astype(np.float32)


def agree(program, model, x):
    run = program.run(x, check=True)
    want = np.asarray(model(x, training=False))
    np.testing.assert_allclose(run.outputs[program.outputs[0]], want, rtol=1e-4, atol=1e-5)
    assert sum(node.share for node in run.stats.host) == 0
    assert len(run.stats.layers) == 5


def test_a_model_in_memory(model, x):
    agree(cim.compile(model, settings=SMALL), model, x)


def test_a_keras_file_by_the_command_line(model, x, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model.save("m.keras")
    assert (
        cli.main(["m.keras", "-o", "build", "-q", *[a for s in SMALL for a in ("--set", s)]]) == 0
    )
    agree(cim.Program("build"), model, x)


def test_a_saved_model_folder(model, x, tmp_path):
    model.export(tmp_path / "saved", verbose=False)
    agree(cim.compile(tmp_path / "saved", settings=SMALL), model, x)


def test_sequential_models_and_several_inputs():
    model = randomized(
        keras.Sequential(
            [keras.Input((6,)), keras.layers.Dense(4, activation="relu"), keras.layers.Dense(2)]
        )
    )
    data = np.random.default_rng(2).normal(size=(3, 6)).astype(np.float32)
    program = cim.compile(model, settings=SMALL)
    found = program.run(data).outputs[program.outputs[0]]
    np.testing.assert_allclose(found, np.asarray(model(data)), rtol=1e-4, atol=1e-5)
    one, two = keras.Input((6,), name="one"), keras.Input((3,), name="two")
    joined = keras.layers.Concatenate()([keras.layers.Dense(4)(one), two])
    model = randomized(keras.Model([one, two], keras.layers.Dense(2)(joined)))
    program = cim.compile(model, settings=SMALL)
    feeds = {"one": data[:1], "two": data[:1, :3]}
    found = program.run(feeds).outputs[program.outputs[0]]
    np.testing.assert_allclose(
        found, np.asarray(model([feeds["one"], feeds["two"]])), rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("biased", [False, True])
def test_hard_activations_are_part_of_the_layers(biased):
    """Keras writes them as arithmetic, with numbers that tf2onnx alone would stumble over."""
    layers = keras.layers
    inputs = keras.Input((6, 5, 4))
    x = layers.Conv2D(6, 2, use_bias=biased)(inputs)
    x = layers.Activation("hard_silu")(x)
    x = layers.DepthwiseConv2D(3, padding="same", use_bias=biased)(x)
    x = layers.Activation("hard_sigmoid")(x)
    x = layers.Conv2D(3, 1, use_bias=biased, activation="relu")(x)
    model = randomized(keras.Model(inputs, x))
    data = np.random.default_rng(4).normal(size=(2, 6, 5, 4)).astype(np.float32)
    found = import_graph(load_graph(keras_to_onnx(model, {})))
    assert [layer.activation.kind for layer in found.layers] == ["hard_swish", "clip", "relu"]
    assert len(found.units) == 5  # and the Transposes from and to Keras's layout
    program = cim.compile(model, settings=SMALL)
    outputs = program.run(data, check=True).outputs
    want = np.asarray(model(data, training=False))
    np.testing.assert_allclose(outputs[program.outputs[0]], want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("how", ["memory", "keras", "saved_model"])
def test_numbers_that_are_no_variables_are_constants(how, tmp_path):
    """Mean and variance of a Normalization."""
    layers = keras.layers
    inputs = keras.Input((6, 5, 3))
    given = layers.Normalization(mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 0.5])(inputs)
    made = keras.Model(inputs, layers.Conv2D(4, 2, activation="relu")(given), name="normalized")
    x = np.random.default_rng(0).normal(size=(1, 6, 5, 3)).astype(np.float32)
    want = made(x).numpy()
    source = made
    if how != "memory":
        source = tmp_path / ("m.keras" if how == "keras" else "m")
        made.save(source) if how == "keras" else made.export(source, verbose=False)
    program = cim.compile(source, settings=SMALL)
    assert len(program.inputs) == 1
    (y,) = program.run(x, check=True).outputs.values()
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation", ["gelu", "silu", "elu", "selu", "mish", "softplus"])
def test_activations_that_the_host_computes(activation):
    """TensorFlow makes the GELU of Erfc, which tf2onnx does not know."""
    inputs = keras.Input((6, 5, 3))
    made = keras.Model(inputs, keras.layers.Conv2D(4, 2, activation=activation)(inputs))
    x = np.random.default_rng(0).normal(size=(1, 6, 5, 3)).astype(np.float32)
    (y,) = cim.compile(made, settings=SMALL).run(x, check=True).outputs.values()
    np.testing.assert_allclose(y, made(x).numpy(), rtol=1e-4, atol=1e-5)


def test_an_operator_that_onnx_does_not_have_is_named(capfd):
    inputs = keras.Input((5, 3))
    made = keras.Model(inputs, keras.layers.Lambda(tf.math.lgamma, name="stirling")(inputs))
    with pytest.raises(
        CimError, match=r"tf2onnx leaves TensorFlow's Lgamma as it is, first '.*stirling"
    ):
        cim.compile(made)
    assert capfd.readouterr().err == ""  # the error alone says it


def test_quantizing_is_silent(capfd):
    """Of constants that folding has left over, onnxruntime would warn one by one."""
    inputs = keras.Input((6, 5, 3))
    given = keras.layers.Normalization(mean=[0.1, 0.2, 0.3], variance=[1.0, 2.0, 0.5])(inputs)
    made = keras.Model(inputs, keras.layers.Conv2D(4, 2)(given))
    x = np.random.default_rng(0).normal(size=(4, 6, 5, 3)).astype(np.float32)
    program = cim.compile(made, settings=SMALL, quantize=x)
    assert capfd.readouterr().err == ""
    (y,) = program.run(x, check=True).outputs.values()
    np.testing.assert_allclose(y, made(x).numpy(), atol=0.1)


@pytest.mark.parametrize("how", ["None", "closed", "2>&-"])
def test_without_stderr_models_are_read_all_the_same(how, model, tmp_path):
    """As in a process without a console, or with the file descriptor closed."""
    model.save(tmp_path / "m.keras")
    lines = {"None": "sys.stderr = None", "closed": "sys.stderr.close()", "2>&-": ""}
    code = (
        "import sys\n"
        "from cim.codegen.keras_import import keras_to_onnx\n"
        f"{lines[how]}\n"
        "print(len(keras_to_onnx('m.keras', {}).graph.output))\n"
    )
    command = shlex.join([sys.executable, "-W", "ignore", "-c", code])
    shell = f"{command} 2>&-" if how == "2>&-" else command
    done = subprocess.run(
        shell, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_unknown_sizes_are_asked_for_and_given():
    inputs = keras.Input((None, 5, 2), name="wide")
    model = randomized(keras.Model(inputs, keras.layers.Conv2D(3, 2)(inputs), name="open"))
    text = r"open: error: the shape of input 'wide' is \?x\?x5x2\n.*--input-shape wide="
    with pytest.raises(CimError, match=text):
        cim.compile(model)
    with pytest.raises(CimError, match=r"gives 'wide' as 1x4x6x2, the model has it as \?x\?x5x2"):
        cim.compile(model, input_shapes={"wide": (1, 4, 6, 2)})
    with pytest.raises(CimError, match="names 'wdie', the model has no such input"):
        cim.compile(model, input_shapes={"wdie": (1, 4, 5, 2), "wide": (1, 4, 5, 2)})
    program = cim.compile(model, settings=SMALL, input_shapes={"wide": (1, 4, 5, 2)})
    data = np.ones((1, 4, 5, 2), np.float32)
    found = program.run(data).outputs[program.outputs[0]]
    np.testing.assert_allclose(found, np.asarray(model(data)), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_read_is_said(tmp_path, capsys):
    (tmp_path / "bad.keras").write_bytes(b"no archive")
    assert cli.main([str(tmp_path / "bad.keras"), "-o", str(tmp_path / "out")]) == 1
    assert "bad.keras: error: cannot be read: " in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "saved_model.pb").write_bytes(b"nothing")
    assert cli.main([str(tmp_path / "saved"), "-o", str(tmp_path / "out")]) == 1
    assert "saved: error: cannot be read: " in capsys.readouterr().err
    assert cli.main([str(tmp_path / "gone.keras")]) == 1
    assert "gone.keras: error: cannot read: No such file or directory" in capsys.readouterr().err
    with pytest.raises(CimError, match="the model has no inputs yet: build it first"):
        cim.compile(keras.Sequential([keras.layers.Dense(2)]))


def sequences(activation, normalized):
    """Every kind of matrix layer that Keras has for sequences, each with a bias, and what follows it."""
    layers = keras.layers
    x = inputs = keras.Input((12, 4), name="series")
    for part in (
        layers.Conv1D(5, 3, padding="causal"),
        layers.DepthwiseConv1D(3, padding="same"),
        layers.SeparableConv1D(6, 2),
        layers.Conv1D(6, 3, dilation_rate=2, groups=2),
        layers.Conv1DTranspose(4, 3, strides=2),
        layers.Conv1D(3, 2, strides=2),
    ):
        x = part(x)
        x = layers.BatchNormalization()(x) if normalized else x
        x = layers.Activation(activation)(x)
    return randomized(keras.Model(inputs, x, name="series"))


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize(
    ("activation", "kind"),
    [("relu", "relu"), ("leaky_relu", "leaky_relu"), ("relu6", "clip"), ("hard_silu", "hard_swish")],
)  # fmt: skip
def test_bias_normalization_and_activation_of_sequences_are_part_of_the_layers(
    activation, kind, normalized
):
    """TensorFlow has these as images of height 1, which it takes out before the bias."""
    model = sequences(activation, normalized)
    found = import_graph(load_graph(keras_to_onnx(model, {})))
    kinds = [layer.activation.kind for layer in found.layers]
    assert kinds == [kind, kind, "none", kind, kind, kind, kind]  # a separable one is two layers
    assert all(layer.bias is not None for layer in found.layers if layer.activation.kind == kind)
    left = {unit.node.operator for unit in found.units if isinstance(unit, HostNode)}
    # Reshapes of the data, and the zeros of a transposed one.
    assert left <= {"Unsqueeze", "Squeeze", "Transpose", "Concat", "Gather"}
    data = np.random.default_rng(5).normal(size=(2, 12, 4)).astype(np.float32)
    program = cim.compile(model, settings=SMALL)
    outputs = program.run(data, check=True).outputs
    want = np.asarray(model(data, training=False))
    np.testing.assert_allclose(outputs[program.outputs[0]], want, rtol=1e-3, atol=1e-4)


def fused(parts, size, kind, count=1):
    """Compiles the layers `parts` in a row, with any weights and with the zero biases that Keras begins with.

    The last layer must have its activation of that kind, and only glue that moves data be on the host.
    """
    for weights in ("random", "initial"):
        inputs = keras.Input(size, name="series")
        x = inputs
        for part in parts():
            x = part(x)
        model = keras.Model(inputs, x)
        model = randomized(model) if weights == "random" else model
        found = import_graph(load_graph(keras_to_onnx(model, {})))
        assert len(found.layers) == count
        assert found.layers[-1].activation.kind == kind
        left = {unit.node.operator for unit in found.units if isinstance(unit, HostNode)}
        assert left <= {"Unsqueeze", "Squeeze", "Transpose", "Reshape"}
        data = 3 * np.random.default_rng(5).normal(size=(2, *size)).astype(np.float32)
        program = cim.compile(model, settings=SMALL)
        outputs = program.run(data, check=True).outputs
        want = np.asarray(model(data, training=False))
        np.testing.assert_allclose(outputs[program.outputs[0]], want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("kind", ["Conv1D", "DepthwiseConv1D", "SeparableConv1D", "Dense"])
def test_hard_swish_is_part_of_layers_of_sequences_and_vectors(kind, apart):
    sizes = {"Dense": (5,), "DepthwiseConv1D": (3,)}.get(kind, (5, 3))
    more = {} if kind == "Dense" else {"padding": "same"}

    def parts():
        made = getattr(keras.layers, kind)(
            *sizes, activation=None if apart else "hard_swish", **more
        )
        return [made, keras.layers.Activation("hard_swish")] if apart else [made]

    size = (6,) if kind == "Dense" else (12, 4)
    fused(parts, size, "hard_swish", 2 if kind == "SeparableConv1D" else 1)


@pytest.mark.parametrize("causal", [False, True])
def test_padding_of_sequences_is_part_of_the_layer(causal):
    layers = keras.layers

    def parts():
        if causal:
            return [layers.Conv1D(5, 3, padding="causal", dilation_rate=2, activation="relu")]
        return [layers.ZeroPadding1D((2, 1)), layers.Conv1D(5, 3, strides=2, activation="relu")]

    fused(parts, (12, 4), "relu")


@pytest.mark.parametrize(
    ("kind", "size", "shared"),
    [("Conv1D", (12, 4), [1]), ("Conv1D", (12, 4), [1, 2]), ("Conv2D", (6, 5, 3), [1, 2]),
     ("Conv2D", (6, 5, 3), [1, 2, 3]), ("Dense", (6,), None), ("Dense", (6,), [1])],
)  # fmt: skip
def test_prelu_is_part_of_the_layer(kind, size, shared):
    layers = keras.layers
    slopes = keras.initializers.RandomUniform(-0.5, 0.5, seed=1)

    def parts():
        made = layers.Dense(5) if kind == "Dense" else getattr(layers, kind)(5, 2)
        return [made, layers.PReLU(shared_axes=shared, alpha_initializer=slopes)]

    fused(parts, size, "leaky_relu")


def grouped(rank, how):
    """A convolution with groups in the middle of a model, over images or sequences, built in two ways."""
    layers = keras.layers
    size = (7, 6, 4)[-rank - 1 :]
    conv = layers.Conv2D if rank == 2 else layers.Conv1D
    parts = [
        conv(6, 3, strides=2, padding="same", groups=2, bias_initializer="normal", activation="relu"),
        conv(9, 2, dilation_rate=2 if rank == 1 else 1, groups=3, use_bias=False),
        layers.Flatten(),
        layers.Dense(3),
    ]  # fmt: skip
    if how == "sequential":
        return randomized(keras.Sequential([keras.Input(size), *parts]))
    inputs = keras.Input(size, name="series")
    x = inputs
    for part in parts:
        x = part(x)
    return randomized(keras.Model(inputs, x, name="grouped"))


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("how", ["sequential", "functional", "file"])
def test_convolutions_with_groups_are_layers_with_groups(rank, how, tmp_path):
    """Keras compiles them by XLA, which the conversion goes without; afterwards functions are compiled again."""
    model = grouped(rank, how)
    source = model
    if how == "file":
        source = tmp_path / "m.keras"
        model.save(source)
    data = np.random.default_rng(3).normal(size=(2, *model.input_shape[1:])).astype(np.float32)
    program = cim.compile(source, settings=SMALL)
    assert not tf.config.functions_run_eagerly()
    run = program.run(data, check=True)
    want = np.asarray(model(data, training=False))
    np.testing.assert_allclose(run.outputs[program.outputs[0]], want, rtol=1e-4, atol=1e-5)
    assert sum(node.share for node in run.stats.host) == 0
    found = [layer.groups for layer in import_graph(load_graph(keras_to_onnx(source, {}))).layers]
    assert found == [2, 3, 1]


def test_convolutions_with_groups_in_a_saved_model_folder(tmp_path):
    grouped(2, "functional").export(tmp_path / "saved", verbose=False)
    text = r"saved: error: tf2onnx leaves TensorFlow's StatefulPartitionedCall as it is(.|\n)*the \.keras file or the model in memory"
    with pytest.raises(CimError, match=text):
        cim.compile(tmp_path / "saved")


def test_functions_that_branch_on_values_are_traced_on_their_own():
    """Without groups nothing is inlined, and TensorFlow's own conversion of `if` still works."""

    @tf.function
    def halved_where_large(x):
        if tf.reduce_sum(x) > 0:
            return x / 2
        return x

    class Branching(keras.layers.Layer):
        def call(self, x):
            return halved_where_large(x)

    inputs = keras.Input((4,), batch_size=1)
    model = randomized(keras.Model(inputs, keras.layers.Dense(3)(Branching()(inputs))))
    program = cim.compile(model, settings=SMALL)
    for sign in (1, -1):
        data = np.full((1, 4), sign, np.float32)
        found = program.run(data).outputs[program.outputs[0]]
        np.testing.assert_allclose(found, np.asarray(model(data)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "gates"),
    [(keras.layers.LSTM, 4), (keras.layers.GRU, 3), (keras.layers.SimpleRNN, 1)],
)
@pytest.mark.parametrize("both_ways", [False, True])
def test_recurrent_layers_count_on_the_host(layer, gates, both_ways):
    """They come as Loops; the Dense behind them is the layer."""
    steps, width, hidden = 7, 3, 5
    inputs = keras.Input((steps, width), name="series")
    recurrent = layer(hidden)
    x = keras.layers.Bidirectional(recurrent)(inputs) if both_ways else recurrent(inputs)
    model = randomized(keras.Model(inputs, keras.layers.Dense(4)(x)))
    program = cim.compile(model, settings=SMALL)
    data = np.random.default_rng(6).normal(size=(1, steps, width)).astype(np.float32)
    run = program.run(data, check=True)
    want = np.asarray(model(data, training=False))
    np.testing.assert_allclose(run.outputs[program.outputs[0]], want, rtol=1e-4, atol=1e-5)
    directions = 2 if both_ways else 1
    loops = [node for node in run.stats.host if node.operator == "Loop"]
    assert all(node.reason.endswith(": control flow runs on the host") for node in loops)
    own = directions * steps * gates * hidden * (width + hidden)
    share = own / (own + directions * hidden * 4)
    assert sum(node.share for node in loops) == pytest.approx(share)


@pytest.mark.parametrize("missing", ["tensorflow", "tf2onnx"])
def test_without_the_extra_the_message_names_it(tmp_path, capsys, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    (tmp_path / "m.keras").write_bytes(b"")
    assert cli.main([str(tmp_path / "m.keras")]) == 1
    err = capsys.readouterr().err
    assert f"is a Keras or TensorFlow model, and {missing} is not installed" in err
    assert "pip install 'cim-toolchain[tensorflow]'" in err


def test_nobody_imports_tensorflow_before_a_keras_model_comes():
    code = (
        "import sys, cim.backend, cim.codegen, cim.codegen.cli, cim.codegen.driver\n"
        "from cim.codegen.keras_import import is_keras\n"
        "assert not is_keras('m.onnx') and not is_keras(object()) and is_keras('m.keras')\n"
        "assert not {'tensorflow', 'keras', 'tf2onnx'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_models_are_told_from_files(tmp_path):
    assert is_keras(keras.Sequential())
    assert is_keras(tmp_path / "a.h5")
    assert not is_keras(tmp_path)
