"""The host's conversions, batches, and the command line."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import msgspec
import numpy as np
import pytest
from emulator_images import Core, load, make_image, mvm, region, store, wait, write_image
from hypothesis import given, settings
from hypothesis import strategies as st

from cim.asm.image import LayerDescription, Reference
from cim.diagnostics import CimError
from cim.emulator import cli, host, stats
from cim.emulator.prepare import prepare
from cim.emulator.run import run_image
from cim.isa.machine import load_machine
from cim.isa.numerics import DTYPES


def layer(layout, input_shape, output_shape, pads=(0, 0, 0, 0)):
    return LayerDescription(
        name="layer", operator="Conv", layout=layout, input_name="x", output_name="y",
        input_shape=list(input_shape), output_shape=list(output_shape), kernel=[1, 1], strides=[1, 1],
        dilations=[1, 1], pads=list(pads), scheme="linear", vertical_groups=1, horizontal_groups=1,
        reference=Reference("x.onnx", ""),
    )  # fmt: skip


def dense(path="test.cfg", rows=(1,)):
    """y = W x + 1 without requantization, [..., 4] uint8 to [..., 3] int32; W is in the image."""
    count = int(np.prod(rows))
    weights = np.arange(12, dtype="<i2").reshape(4, 3)
    words = []
    for row in range(count):
        words += [load("ib", 0, 4, 4 * row), mvm(), store(1024 + 12 * row, "ob", 0, 3)]
    core = Core(words, weights, {"offset": np.ones(3, "<i4")})
    regions = [region("ifm", 0, "u8", [count, 1, 4]), region("ofm", 1024, "i32", [count, 3])]
    description = layer("ROWS", [*rows, 4], [*rows, 3])
    return make_image(
        [core], 4096, "i8", "u8", "i32", regions=regions, layer=description, path=path
    ), weights


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 5), st.integers(1, 5), st.tuples(*[st.integers(0, 2)] * 4),
    st.sampled_from(["i8", "u8", "f32"]), st.integers(-3, 3),
)  # fmt: skip
def test_nchw_round_trip(channels, height, width, pads, type_, zero_point):
    zero_point = abs(zero_point) if type_ == "u8" else zero_point
    top, left, bottom, right = pads
    padded = [height + top + bottom, width + left + right, channels]
    shape = (1, channels, height, width)
    image = make_image(
        [], 8192, "f32" if type_ == "f32" else "i8", type_, type_,
        regions=[
            region("ifm", 0, type_, padded, zero_point),
            region("ofm", 4096, type_, [height * width, channels]),
        ],
        layer=layer("NCHW", shape, shape, pads),
    )  # fmt: skip
    x = np.arange(np.prod(shape)).reshape(shape).astype(DTYPES[type_])
    ifm = host.to_ifm(image, x)
    assert list(ifm.shape) == padded
    inner = ifm[top : top + height, left : left + width]
    assert np.array_equal(inner, x[0].transpose(1, 2, 0))
    outside = np.ones(padded, bool)
    outside[top : top + height, left : left + width] = False
    assert (ifm[outside] == DTYPES[type_].type(zero_point)).all()
    memory = image.memory()
    ofm = np.ascontiguousarray(inner).reshape(height * width, channels)
    host.write_region(image, memory, image.config.region("ofm"), ofm)
    back = host.from_ofm(image, memory)
    assert back.dtype == x.dtype
    assert np.array_equal(back, x)


def test_rows_of_any_rank():
    image, weights = dense(rows=(2, 3))
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    done = host.run_layer(prepare(image), x)
    assert done.output.dtype == np.int32
    assert np.array_equal(done.output, x.astype(int) @ weights + 1)


def test_batch_is_a_loop():
    image, weights = dense()
    prepared = prepare(image)
    x = np.arange(20, dtype=np.uint8).reshape(5, 4)
    done = host.run_layer(prepared, x)
    assert np.array_equal(done.output, x.astype(int) @ weights + 1)
    single = run_image(image).cycles
    collected = stats.collect(done.results)
    assert collected.cycles_per_image == [single] * 5
    assert collected.cycles == 5 * single
    assert collected.instructions == stats.Instructions(
        load=5, store=5, mvm=5, gpeu=0, call=0, wait=0
    )
    assert (collected.bytes.load, collected.values.store, collected.bytes.store) == (20, 15, 60)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros(4, np.uint8),
        np.zeros((1, 4)),
        np.zeros((0, 4), np.uint8),
        np.zeros((1, 1, 4), np.uint8),
    ],
)
def test_wrong_input_names_both(x):
    image, _ = dense()
    shape = "x".join(map(str, x.shape))
    with pytest.raises(
        CimError, match=re.escape(f"input must be 1x4 uint8, not {shape} {x.dtype}")
    ):
        host.run_layer(prepare(image), x)


def test_machine_must_fit():
    image, _ = dense()
    with pytest.raises(CimError, match=r"linked for core\.crossbar=128x128, the machine has 64x64"):
        run_image(image, machine=load_machine("default", ["core.crossbar=64x64"]))
    slow = load_machine("default", ["core.mvm_cycles=2000"])
    assert run_image(image, machine=slow).cycles == run_image(image).cycles + 1000
    with pytest.raises(CimError, match="memory must be"):
        run_image(image, np.zeros(3, np.uint8))


# --- command line -------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    image, weights = dense(tmp_path / "test.cfg")
    write_image(image)
    np.save(tmp_path / "x.npy", np.arange(8, dtype=np.uint8).reshape(2, 4))
    return tmp_path, weights


def test_command(folder, capsys):
    path, weights = folder
    arguments = [
        f"{path}/test.cfg", "--input", f"{path}/x.npy", "--output", f"{path}/out/y.npy", "--stats",
        f"{path}/s.json", "--set", "bus.width_bytes=4", "--dump", f"ofm={path}/last.npy",
    ]  # fmt: skip
    assert cli.main(arguments) == 0
    x = np.load(path / "x.npy").astype(int)
    assert np.array_equal(np.load(path / "out/y.npy"), x @ weights + 1)
    assert np.array_equal(np.load(path / "last.npy"), x[1:] @ weights + 1)
    collected = json.loads((path / "s.json").read_text())
    assert set(collected["instructions"]) == {"load", "store", "mvm", "gpeu", "call", "wait"}
    msgspec.convert(collected, stats.Stats, strict=True)
    out = capsys.readouterr()
    assert "inference" in out.out
    assert out.err == ""
    assert cli.main([*arguments, "--quiet"]) == 0
    assert capsys.readouterr().out == ""


def test_load_and_dump(folder):
    path, weights = folder
    np.save(path / "ifm.npy", np.array([[[1, 2, 3, 4]]], np.uint8))
    assert (
        cli.main(
            [f"{path}/test.cfg", "--load", f"ifm={path}/ifm.npy", "--dump", f"ofm={path}/o.npy"]
        )
        == 0
    )
    assert np.array_equal(np.load(path / "o.npy"), [[1, 2, 3, 4] @ weights + 1])


ERRORS = [
    (["--set", "core.crossbar=64x64"], "core.crossbar shapes the program; give it to cim-cc"),
    (["--set", "bus.widht_bytes=4"], "did you mean 'bus.width_bytes'?"),
    (["--input", "{}/missing.npy"], "missing.npy: error: cannot read: No such file"),
    (["--input", "{}/test.cfg"], "is not a .npy file"),
    (["--input", "{}/evil.npy"], "it holds Python objects"),
    (["--input", "{}/many.npz"], "an archive"),
    (["--load", "bias={}/x.npy"], "its regions are: ifm, ofm"),
    (["--load", "ifm={}/x.npy"], "region ifm must be 1x1x4 uint8, not 2x4 uint8"),
    (["--load", "ifm"], "must be REGION=FILE.npy"),
    (["--check"], "--check needs --input"),
    (["--output", "{}/test.cfg/y.npy"], "cannot write"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS, ids=lambda v: str(v)[:30])
def test_errors_of_the_command(folder, capsys, arguments, message):
    path, _ = folder
    np.save(path / "evil.npy", np.array([{}]), allow_pickle=True)
    np.savez(path / "many.npz", a=np.zeros(1), b=np.zeros(1))
    before = sorted(path.rglob("*"))
    assert cli.main([f"{path}/test.cfg", *(a.format(path) for a in arguments)]) == (
        2 if "--set" in arguments or arguments == ["--load", "ifm"] else 1
    )
    out = capsys.readouterr()
    assert message in out.err
    assert "error: " in out.err
    assert out.out == ""
    assert sorted(path.rglob("*")) == before


def test_no_layer_says_to_use_load(tmp_path, capsys):
    write_image(make_image([Core([wait(0)])], path=tmp_path / "a.cfg"))
    np.save(tmp_path / "x.npy", np.zeros(1))
    assert cli.main([f"{tmp_path}/a.cfg", "--input", f"{tmp_path}/x.npy"]) == 1
    assert "use --load REGION=FILE.npy and --dump REGION=FILE.npy" in capsys.readouterr().err
    assert cli.main([f"{tmp_path}/a.cfg"]) == 0


@pytest.mark.parametrize(
    ("words", "more", "status"), [([0], [], 3), ([wait(1)], [], 4), ([wait(0)], ["--max-cycles", "1"], 0),
                                  ([wait(0), wait(0)], ["--max-cycles", "1"], 5)]
)  # fmt: skip
def test_exit_codes(tmp_path, capsys, words, more, status):
    write_image(make_image([Core(words)], path=tmp_path / "a.cfg"))
    out = tmp_path / "s.json"
    assert cli.main([f"{tmp_path}/a.cfg", "--stats", str(out), *more]) == status
    assert out.exists() == (status == 0)


def test_usage():
    for arguments in ([], ["a.cfg", "--max-cycles", "0"], ["a.cfg", "--inp", "x"]):
        with pytest.raises(SystemExit) as raised:
            cli.main(arguments)
        assert raised.value.code == 2


def test_help_is_cheap():
    code = (
        "import sys\nfrom cim.emulator import cli\n"
        "try: cli.main(['--help'])\nexcept SystemExit: pass\n"
        "assert not {'numba', 'rich'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
