"""Random layers through text, assembler, linker and emulator: the OFM equals the NumPy reference.

Kernels, strides, pads, dilations, crossbars, buses, mappings, schemes and modes are all drawn; the reference shares no
code with the compiler or the emulator.
"""

from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cim.asm.assembler import assemble
from cim.asm.elf import read_object, write_object
from cim.asm.image import encode_config
from cim.asm.linker import link
from cim.codegen.compile_layer import compile_layer
from cim.codegen.layer import Activation, Layer, Quantization
from cim.codegen.schedule import SCHEMES
from cim.codegen.window import MAPPINGS, Choice, Window, cut
from cim.diagnostics import CimError, Source
from cim.emulator import layout, stats
from cim.emulator.check import FLOAT_TOLERANCE
from cim.emulator.host import run_layer
from cim.emulator.prepare import prepare
from cim.isa.machine import load_machine
from cim.isa.reference import reference_output

sides = st.integers(1, 3)


@st.composite
def quantizations(draw, channels: int, w_dtype: str, x_dtype: str, y_dtype: str | None):
    def zero_point(dtype: str) -> int:
        limits = np.iinfo(dtype)
        return draw(st.integers(limits.min, limits.max))

    width = draw(st.sampled_from([1, channels]))
    scales = [0.5, 0.125, 0.013, 0.0078125, 0.3]
    w_zp = zero_point(w_dtype) if w_dtype == "uint8" else draw(st.integers(-8, 8))
    # w - w_zp must fit the 9-bit cells of the machine.
    return Quantization(
        np.float32(draw(st.sampled_from(scales))),
        zero_point(x_dtype),
        np.array([draw(st.sampled_from(scales)) for _ in range(width)], dtype=np.float32),
        np.full(width, w_zp, dtype=np.int32),
        None if y_dtype is None else np.float32(draw(st.sampled_from([0.5, 1.0, 4.0, 16.0, 3.7]))),
        0 if y_dtype is None else zero_point(y_dtype),
    )


@st.composite
def activations(draw):
    kind = draw(st.sampled_from(["none", "relu", "leaky_relu", "clip"]))
    if kind == "leaky_relu":
        return Activation(kind, alpha=draw(st.sampled_from([0.25, 0.01, 1.5, 0.0])))
    if kind == "clip":
        low = draw(st.sampled_from([-np.inf, -1.0, 0.0]))
        return Activation(kind, low=low, high=draw(st.sampled_from([np.inf, 6.0, 2.5])))
    return Activation(kind)


@st.composite
def layers(draw, mode: str):
    """A layer of the mode, with an input."""
    quantized = mode != "f32"
    rows_layout = draw(st.booleans())
    flat = not rows_layout and draw(st.integers(0, 4)) == 0  # a 1-D convolution
    images = 1 if rows_layout else draw(st.sampled_from([1, 1, 1, 2, 3]))
    groups = 1 if rows_layout else draw(st.sampled_from([1, 1, 2, 3, 5]))
    c, k = groups * draw(st.integers(1, 9 // groups)), groups * draw(st.integers(1, 9 // groups))
    ky, kx = (1, 1) if rows_layout else (draw(sides), draw(sides))
    strides, dilations = (1, 1), (1, 1)
    pads = (0, 0, 0, 0)
    if not rows_layout:
        strides, dilations = (draw(sides), draw(sides)), (draw(sides), draw(sides))
        pads = tuple(draw(st.integers(0, 2)) for _ in range(4))
    if flat:
        ky, strides, dilations = 1, (1, strides[1]), (1, dilations[1])
        pads = (0, pads[1], 0, pads[3])
    height = 1 if flat else draw(st.integers(1, 7))
    width = 1 if rows_layout else draw(st.integers(1, 7))
    height = max(height, dilations[0] * (ky - 1) + 1 - pads[0] - pads[2])
    width = max(width, dilations[1] * (kx - 1) + 1 - pads[1] - pads[3])
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    integer_output = mode == "i8" and draw(st.integers(0, 4)) == 0
    if quantized:
        x_dtype, w_dtype = (
            draw(st.sampled_from(["int8", "uint8"])),
            draw(st.sampled_from(["int8", "uint8"])),
        )
        y_dtype = None if integer_output else draw(st.sampled_from(["int8", "uint8"]))
        q = draw(quantizations(k, w_dtype, x_dtype, y_dtype))
        low, high = (-100, 100) if w_dtype == "int8" else (0, 256)
        weights = rng.integers(low, high, (ky, kx, c // groups, k)).astype(w_dtype)
        bias = rng.integers(-3000, 3000, k).astype(np.int32)
        limits = np.iinfo(x_dtype)
        x_values = rng.integers(limits.min, limits.max + 1, images * height * width * c).astype(
            x_dtype
        )
        output_dtype = np.dtype(y_dtype or "int32")
    else:
        q = None
        weights = rng.standard_normal((ky, kx, c // groups, k)).astype(np.float32)
        bias = rng.standard_normal(k).astype(np.float32)
        x_values = rng.standard_normal(images * height * width * c).astype(np.float32)
        output_dtype = np.dtype(np.float32)
    if integer_output or draw(st.booleans()):
        bias = None
    activation = Activation() if integer_output else draw(activations())
    shape = (height, c) if rows_layout else (images, c, *(() if flat else (height,)), width)
    layer = Layer(
        "layer", "MatMul" if rows_layout else "Conv", "ROWS" if rows_layout else "NCHW", "x", "y",
        shape, (), x_values.dtype, output_dtype, weights, bias, strides, dilations, pads, activation, q,
        groups,
    )  # fmt: skip
    out = (height, k) if rows_layout else (images, k, *layer.output_image[1 if flat else 0 :])
    layer = Layer(**{**layer.__dict__, "output_shape": out})
    return layer, x_values.reshape(shape)


@st.composite
def machines(draw, mode: str):
    # Large ones hold windows of several outputs.
    outputs, inputs = draw(st.integers(1, 8)), draw(st.integers(1, 16))
    if draw(st.booleans()):
        outputs, inputs = draw(st.integers(8, 48)), draw(st.integers(16, 150))
    return load_machine(
        "default",
        [
            f"core.crossbar={outputs}x{inputs}",
            f"core.partial_sum={'narrow' if mode == 'i8n' else 'wide'}",
            f"core.mvm_cycles={draw(st.sampled_from([1, 50]))}",
            f"bus.width_bytes={draw(st.sampled_from([1, 4, 32]))}",
            f"bus.topology={draw(st.sampled_from(['shared', 'per_target']))}",
            f"bus.arbitration={draw(st.sampled_from(['round_robin', 'oldest_first']))}",
        ],
    )


def run(layer: Layer, x: np.ndarray, machine, scheme: str, mapping: str):
    compiled = compile_layer(layer, machine, scheme, "layer", mapping)
    image = compiled.image()
    got = run_layer(prepare(image), x)
    description = image.config.layer
    assert description is not None
    want = reference_output(
        description, image.config.mode, image.config.ofm, compiled.program.reference[1], x,
        (machine.core.outputs, machine.core.inputs),
    )  # fmt: skip
    return compiled, got, want


@pytest.mark.parametrize("mode", ["f32", "i8", "i8n"])
@settings(max_examples=120)
@given(data=st.data(), scheme=st.sampled_from(SCHEMES), mapping=st.sampled_from(MAPPINGS))
def test_the_ofm_equals_the_numpy_reference(mode: str, data, scheme: str, mapping: str) -> None:
    layer, x = data.draw(layers(mode))
    machine = data.draw(machines(mode))
    compiled, got, want = run(layer, x, machine, scheme, mapping)
    assert got.output.shape == want.shape
    assert got.output.dtype == want.dtype
    if mode == "f32":
        scale = max(float(np.abs(want).max()), 1.0)
        np.testing.assert_allclose(got.output, want, rtol=0, atol=FLOAT_TOLERANCE * scale)
    else:
        np.testing.assert_array_equal(got.output, want)
    calls = compiled.schedule.calls
    assert len(got.results) == (layer.input_shape[0] if layer.layout == "NCHW" else 1)
    counted = int(got.results[0].counters[:, layout.CALLS_DONE].sum())
    assert counted == calls


@settings(max_examples=40)
@given(
    data=st.data(), scheme=st.sampled_from(SCHEMES), mode=st.sampled_from(["f32", "i8", "i8n"]),
    mapping=st.sampled_from(MAPPINGS),
)  # fmt: skip
def test_the_chain_of_tools_gives_the_same_bytes(
    data, scheme: str, mode: str, mapping: str
) -> None:
    """Text, `cim-as` to ELF, `cim-ld`: what the compiler links itself."""
    layer, _ = data.draw(layers(mode))
    compiled = compile_layer(layer, data.draw(machines(mode)), scheme, "layer", mapping)
    direct = compiled.image()
    weights = compiled.program.weights[1]
    objects = [
        read_object(
            write_object(assemble([Source(f"some/where/{name}", text)], name, lambda _: weights)),
            name,
        )
        for name, text in compiled.program.texts.items()
    ]
    chained = link(reversed(objects), "layer")
    assert chained.content == direct.content
    assert encode_config(chained.config) == encode_config(direct.config)


@pytest.mark.parametrize("mode", ["f32", "i8", "i8n"])
@settings(max_examples=120)
@given(
    data=st.data(),
    scheme=st.sampled_from(SCHEMES),
    mapping=st.sampled_from(["sdk", "vw-sdk"]),
)
def test_any_window_gives_the_same_numbers(mode: str, data, scheme: str, mapping: str) -> None:
    """Also where the rule would not choose it: overlapping at borders, with strides, dilations and groups."""
    layer, x = data.draw(layers(mode))
    machine = data.draw(machines(mode))
    height, width = layer.output_image
    window = Window(
        data.draw(st.integers(1, min(height, 3))), data.draw(st.integers(1, min(width, 4)))
    )
    outputs, inputs = machine.core.outputs, machine.core.inputs
    assume(cut(layer, window, mapping, outputs, inputs) is not None)
    with mock.patch("cim.codegen.mapping.choose_window", return_value=Choice(window)):
        compiled, got, want = run(layer, x, machine, scheme, mapping)
    if mode == "f32":
        scale = max(float(np.abs(want).max()), 1.0)
        np.testing.assert_allclose(got.output, want, rtol=0, atol=FLOAT_TOLERANCE * scale)
    else:
        np.testing.assert_array_equal(got.output, want)
    mapped = compiled.mapping
    assert mapped.vectors == -(-height // window.down) * -(-width // window.right)
    program = got.results[0].prepared.program
    assert np.count_nonzero(program["op"] == layout.MVM) == mapped.vectors * mapped.cores
    counted = stats.collect([got.results[0]]).values
    sums = sum(tile.columns for tile in mapped.tiles) * mapped.vectors
    of_last = sum(tile.columns for tile in mapped.tiles if tile.vg == 0) * mapped.vectors
    bias = of_last if compiled.program.texts["layer.data.s"].count(".region bias") else 0
    assert counted.load == mapped.ifm_values + sums - of_last + bias
    assert counted.store == sums - of_last + layer.outputs * layer.weights.shape[3]


def test_more_cores_than_the_machine_has() -> None:
    weights = np.ones((1, 1, 64, 64), dtype=np.float32)
    layer = Layer(
        "big", "Conv", "NCHW", "x", "y", (1, 64, 2, 2), (1, 64, 2, 2), np.dtype("f4"), np.dtype("f4"),
        weights, None, (1, 1), (1, 1), (0, 0, 0, 0), Activation(), None,
    )  # fmt: skip
    machine = load_machine("default", ["core.crossbar=16x16", "core.count=10"])
    with pytest.raises(CimError) as raised:
        compile_layer(layer, machine, "linear", "big")
    assert raised.value.diagnostics[0].message == (
        "layer 'big' needs 16 cores (4 for 64 kernel rows x 4 for 64 channels), the machine 'default' has "
        "10: 6 too few"
    )
    with pytest.raises(CimError, match="is float32, and the machine 'pelke23' has narrow"):
        compile_layer(layer, load_machine("pelke23"), "linear", "big")
