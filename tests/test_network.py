"""Whole networks by the command line: compile, run, check; and what is said when something is wrong."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from cim.asm import cli_as, cli_ld
from cim.codegen import cli as cli_cc
from cim.codegen.schedule import SCHEMES
from cim.emulator import cli as cli_emu
from cim.emulator.network import LoadedNetwork, onnx_session

DIGITS = Path(__file__).parents[1] / "examples/digits"
SMALL = ["--set", "core.crossbar=32x32"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.load(DIGITS / "test_images.npy")[:6])
    return tmp_path


def compiled(*arguments: str, model: str = "digits_int8") -> None:
    assert (
        cli_cc.main([str(DIGITS / f"{model}.onnx"), "-o", "build", "-q", *SMALL, *arguments]) == 0
    )


def last_error(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("model", ["digits_int8", "digits_f32"])
def test_digits_run_and_agree_with_onnxruntime(folder: Path, scheme: str, model: str) -> None:
    compiled("--sync", scheme, model=model)
    run = [
        "build/network.json",
        "--input",
        "x.npy",
        "--output",
        "y.npy",
        "--stats",
        "s.json",
        "--check",
    ]
    assert cli_emu.main(run) == 0
    session = onnx_session((DIGITS / f"{model}.onnx").read_bytes())
    want = np.concatenate([session.run(None, {"image": x[None]})[0] for x in np.load("x.npy")])
    got = np.load("y.npy")
    if model == "digits_int8":
        np.testing.assert_array_equal(got, want)
    else:
        np.testing.assert_allclose(got, want, atol=1e-5)
    stats = json.loads((folder / "s.json").read_text())
    assert len(stats["cycles_per_image"]) == 6
    assert stats["cycles"] == sum(layer["cycles"] for layer in stats["layers"].values())
    assert len(stats["layers"]) == 4
    assert stats["cores"] == 24
    assert {node["operator"] for node in stats["host"]} >= {"MaxPool", "Softmax"}
    assert sum(node["share"] for node in stats["host"]) == 0


def test_narrow_layers_equal_the_reference(folder: Path) -> None:
    compiled("--set", "core.partial_sum=narrow")
    assert cli_emu.main(["build/network.json", "--input", "x.npy", "--output", "y.npy"]) == 0
    answers = np.load("y.npy").argmax(axis=1)
    assert (answers == np.load(DIGITS / "test_labels.npy")[:6]).mean() > 0.5
    for cfg in folder.glob("build/*conv2*.cfg"):
        np.save("c.npy", np.random.default_rng(0).integers(0, 256, (2, 16, 8, 8)).astype(np.uint8))
        assert cli_emu.main([str(cfg), "--input", "c.npy", "--check"]) == 0


def test_text_assembled_and_linked_by_hand_is_what_the_compiler_writes(folder: Path) -> None:
    compiled()
    assert cli_cc.main([str(DIGITS / "digits_int8.onnx"), "-S", "-o", "text", "-q", *SMALL]) == 0
    assert cli_cc.main([str(DIGITS / "digits_int8.onnx"), "-c", "-o", "objects", "-q", *SMALL]) == 0
    for cfg in folder.glob("build/*.cfg"):
        stem = cfg.stem
        objects = []
        for source in sorted(folder.glob(f"text/{stem}.*.s")):
            objects.append(str(source.with_suffix(".o")))
            assert cli_as.main([str(source), "-o", objects[-1]]) == 0
        assert cli_ld.main([*objects, "-o", f"text/{stem}"]) == 0
        from_objects = [str(path) for path in sorted(folder.glob(f"objects/{stem}.*.o"))]
        assert cli_ld.main([*from_objects, "-o", f"objects/{stem}"]) == 0
        for name in (f"{stem}.cfg", f"{stem}.bin"):
            want = (folder / "build" / name).read_bytes()
            assert (folder / "text" / name).read_bytes() == want
            assert (folder / "objects" / name).read_bytes() == want


def test_each_text_says_what_it_is(folder: Path) -> None:
    assert cli_cc.main([str(DIGITS / "digits_int8.onnx"), "-S", "-o", "text", "-q", *SMALL]) == 0
    head = next(folder.glob("text/*conv3*core00013.s")).read_text().split("\n")[:4]
    assert "Conv 3x3, 40 to 48 channels" in head[0]
    assert "core 13 = C[hg 1, vg 1] of 2 x 12, scheme linear" in head[1]
    assert head[2] == "# output channels 32..47"
    assert head[3] == "# kernel rows 32..63: (ky 0, kx 0, c 32) to (ky 0, kx 1, c 23)"
    assert all(len(p.read_text().split("\n")) < 80 for p in folder.glob("text/*.core*.s"))


# --- what goes wrong ------------------------------------------------------------------------------------------


def test_a_changed_weight_is_found_by_check(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_cc.main([str(DIGITS / "digits_int8.onnx"), "-S", "-o", "text", "-q", *SMALL]) == 0
    weights = next(folder.glob("text/*conv1*.weights.bin"))
    raw = np.fromfile(weights, dtype="<i2")
    raw[5] = -raw[5] or 7
    raw.tofile(weights)
    stem = weights.name.removesuffix(".weights.bin")
    objects = []
    for source in sorted(folder.glob(f"text/{stem}.*.s")):
        objects.append(str(source.with_suffix(".o")))
        assert cli_as.main([str(source), "-o", objects[-1]]) == 0
    assert cli_ld.main([*objects, "-o", f"text/{stem}"]) == 0
    np.save("c.npy", np.full((1, 1, 8, 8), 200, dtype=np.uint8))
    run = [f"text/{stem}.cfg", "--input", "c.npy", "--output", "y.npy", "--check"]
    assert cli_emu.main(run) == 6
    message = last_error(capsys)
    assert "differs from the NumPy reference, first at [0, 5, 1, 1]: " in message
    assert "values differ, compared bit for bit" in message
    assert not (folder / "y.npy").exists()


def test_changed_and_missing_files_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled()
    host = folder / "build/digits_int8.host0.onnx"
    content = host.read_bytes()
    host.write_bytes(content + b"\0")
    assert cli_emu.main(["build/network.json", "--input", "x.npy"]) == 1
    assert "digits_int8.host0.onnx: error: SHA-256 is" in last_error(capsys)
    host.unlink()
    assert cli_emu.main(["build/network.json", "--input", "x.npy"]) == 1
    assert "cannot read: No such file" in last_error(capsys)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (
            np.zeros((1, 8, 8), np.float32),
            "input 'image' must be 1x1x8x8 float32, not 1x8x8 float32",
        ),
        (
            np.zeros((1, 1, 8, 8), np.float64),
            "input 'image' must be 1x1x8x8 float32, not 1x1x8x8 float64",
        ),
        (
            np.zeros((0, 1, 8, 8), np.float32),
            "input 'image' must be 1x1x8x8 float32, not 0x1x8x8 float32",
        ),
    ],
)
def test_a_wrong_input_is_said_with_both_shapes(
    folder: Path, capsys: pytest.CaptureFixture[str], array, message: str
) -> None:
    compiled()
    np.save("bad.npy", array)
    assert cli_emu.main(["build/network.json", "--input", "bad.npy", "--output", "y.npy"]) == 1
    assert message in last_error(capsys)
    assert not (folder / "y.npy").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--layer", "conv2"], "has no layer 'conv2'"),
        (["--layer", "Softmax@6"], "has no layer"),
        (["--arch", "pelke23"], "is float32, and the machine 'pelke23' has narrow partial sums"),
        (["--set", "core.count=20"], "needs 24 cores (12 for 360 kernel rows x 2 for 48 channels)"),
        (
            ["--set", "core.crosbar=32x32"],
            "unknown key 'core.crosbar'; did you mean 'core.crossbar'?",
        ),
        (["--set", "memory.size_bytes=5000"], "shared memory needs"),
        (["--arch", "pelke32"], "no machine is called 'pelke32'; did you mean 'pelke23'?"),
        (["--dim", "N=0"], "--dim N=0: error: must be NAME=VALUE"),
        (["--input-shape", "image=1xx"], "must be like NAME=1x3x48x192"),
    ],
)
def test_what_the_compiler_refuses(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    command = [str(DIGITS / "digits_f32.onnx"), "-o", "build", *SMALL, *arguments]
    is_slip = arguments[0].startswith(("--dim", "--input-shape")) or "crosbar" in arguments[1]
    assert cli_cc.main(command) == (2 if is_slip else 1)
    assert message in last_error(capsys)
    assert not (folder / "build").exists()


# --- models of other shapes -------------------------------------------------------------------------------------


def save(nodes, inputs, outputs, constants, path: str = "m.onnx") -> None:
    def info(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        nodes, "m", [info(*i) for i in inputs], [info(*o) for o in outputs],
        [numpy_helper.from_array(np.asarray(v, np.float32), k) for k, v in constants.items()],
    )  # fmt: skip
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )


def test_a_model_without_layers_runs_on_the_host(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save([helper.make_node("Relu", ["a"], ["y"])], [("a", [1, 3])], [("y", [1, 3])], {})
    assert cli_cc.main(["m.onnx", "-o", "build"]) == 0
    assert "no layer runs on the cores" in capsys.readouterr().out
    np.save("a.npy", np.array([[-1, 0, 2]], np.float32))
    run = [
        "build/network.json",
        "--input",
        "a.npy",
        "--output",
        "y.npy",
        "--stats",
        "s.json",
        "--check",
    ]
    assert cli_emu.main(run) == 0
    assert np.load("y.npy").tolist() == [[0, 0, 2]]
    assert json.loads((folder / "s.json").read_text())["cycles"] == 0


def test_several_inputs_and_outputs_by_name(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    w = np.random.default_rng(0).normal(size=(4, 3, 3, 3))
    save(
        [helper.make_node("Conv", ["a", "w"], ["c"], "conv"), helper.make_node("Add", ["c", "b"], ["y"])],
        [("a", [1, 3, 6, 6]), ("b", [1, 4, 4, 4])], [("y", [1, 4, 4, 4]), ("c", [1, 4, 4, 4])], {"w": w},
    )  # fmt: skip
    assert cli_cc.main(["m.onnx", "-o", "build", "-q", "--set", "core.crossbar=3x8"]) == 0
    rng = np.random.default_rng(1)
    feed = {"a": rng.normal(size=(1, 3, 6, 6)), "b": rng.normal(size=(1, 4, 4, 4))}
    feed = {name: value.astype(np.float32) for name, value in feed.items()}
    for name, value in feed.items():
        np.save(f"{name}.npy", value)
    run = ["build/network.json", "--input", "a=a.npy", "--input", "b=b.npy", "--output", "y=y.npy",
           "--output", "c=c.npy", "--check"]  # fmt: skip
    assert cli_emu.main(run) == 0
    y, c = onnx_session((folder / "m.onnx").read_bytes()).run(["y", "c"], feed)
    np.testing.assert_allclose(np.load("y.npy"), y, atol=1e-5)
    np.testing.assert_allclose(np.load("c.npy"), c, atol=1e-5)
    assert cli_emu.main(run[:3]) == 1
    assert "input 'b' is missing" in last_error(capsys)
    assert cli_emu.main(["build/network.json", "--input", "a.npy"]) == 1
    assert "must be NAME=X.npy, the inputs are a, b" in last_error(capsys)
    assert cli_emu.main([*run[:5], "--output", "z=z.npy"]) == 1
    assert "unknown output 'z'; there are y, c" in last_error(capsys)


def test_a_single_layer_by_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(
        [helper.make_node("Conv", ["a", "w"], ["y"], "deep")],
        [("a", [1, 4, 6, 6, 6])], [("y", [1, 4, 4, 4, 4])], {"w": np.ones((4, 4, 3, 3, 3))},
    )  # fmt: skip
    assert cli_cc.main(["m.onnx", "-o", "build", "--layer", "deep"]) == 1
    assert "cannot be mapped: Conv 'deep': the input's rank is 5" in last_error(capsys)
    compiled("--layer", "digits_1/conv2_1/BiasAdd")
    names = sorted(p.name for p in folder.glob("build/*"))
    assert names == [f"digits_1_conv2_1_BiasAdd.{kind}" for kind in ("bin", "cfg", "ref.onnx")]


def test_a_network_json_whose_steps_do_not_fit_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled()
    path = folder / "build/network.json"
    good = json.loads(path.read_text())

    def broken(change) -> str:
        content = json.loads(json.dumps(good))
        change(content)
        path.write_text(json.dumps(content))
        assert cli_emu.main(["build/network.json", "--input", "x.npy", "--output", "y.npy"]) == 1
        return last_error(capsys)

    assert "step 0 needs 'image_QuantizeLinear_Output'" in broken(lambda c: c["steps"].pop(0))
    assert "the output list needs 'zz'" in broken(lambda c: c["outputs"][0].update(name="zz"))
    assert "the output list needs" in broken(lambda c: c.update(steps=[]))
    assert "step 1 needs 'zz'" in broken(lambda c: c["steps"][1].update(input="zz"))
    assert "onnxruntime cannot run it" in broken(lambda c: c["steps"][0].update(inputs=[]))
    assert not (folder / "y.npy").exists()


def test_nodes_of_one_name(folder: Path) -> None:
    w = np.random.default_rng(0).normal(size=(5, 5))
    save(
        [helper.make_node("MatMul", ["a", "w"], ["c"], "same"), helper.make_node("Relu", ["c"], ["d"], "same"),
         helper.make_node("MatMul", ["d", "w"], ["y"], "same")],
        [("a", [2, 5])], [("y", [2, 5])], {"w": w},
    )  # fmt: skip
    assert cli_cc.main(["m.onnx", "-o", "build", "-q"]) == 0
    np.save("a.npy", np.ones((2, 5), np.float32))
    assert cli_emu.main(["build/network.json", "--input", "a.npy", "--check"]) == 0


def test_a_host_node_that_onnxruntime_refuses_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = helper.make_node("Conv", ["a", "w"], ["y"], "odd", kernel_shape=[2, 2])
    save([node], [("a", [1, 3, 6, 6])], [("y", [1, 4, 5, 5])], {"w": np.ones((4, 3, 3, 3))})
    if cli_cc.main(["m.onnx", "-o", "build", "-q"]) == 0:
        np.save("a.npy", np.ones((1, 3, 6, 6), np.float32))
        assert cli_emu.main(["build/network.json", "--input", "a.npy"]) == 1
    assert "internal error" not in last_error(capsys)


def test_not_a_number_equals_itself(folder: Path) -> None:
    w = np.array([[np.nan, 1.0], [np.inf, 2.0]])
    save(
        [helper.make_node("MatMul", ["a", "w"], ["y"], "m")],
        [("a", [1, 2])],
        [("y", [1, 2])],
        {"w": w},
    )
    assert cli_cc.main(["m.onnx", "-o", "build", "-q"]) == 0
    np.save("a.npy", np.ones((1, 2), np.float32))
    assert (
        cli_emu.main(["build/network.json", "--input", "a.npy", "--output", "y.npy", "--check"])
        == 0
    )
    assert np.isnan(np.load("y.npy")[0, 0])


def test_narrow_networks_are_checked_layer_by_layer(folder: Path) -> None:
    compiled("--set", "core.partial_sum=narrow")
    assert cli_emu.main(["build/network.json", "--input", "x.npy", "--check"]) == 0


def test_a_name_cannot_end_its_comment(folder: Path) -> None:
    name = 'x "y"\n.error "no"'
    save([helper.make_node("MatMul", ["a", "w"], ["y"], name)], [("a", [1, 2])], [("y", [1, 2])],
         {"w": np.ones((2, 2))})  # fmt: skip
    assert cli_cc.main(["m.onnx", "-o", "build", "-q"]) == 0


@pytest.mark.parametrize(
    ("name", "says", "note"),
    [
        ("build", "is a folder, must be a cfg or a network.json", "note: give build/network.json"),
        (".", "is a folder, must be a cfg or a network.json", "note: give a layer's cfg, or a"),
        ("m.keras", "is a model, must be a cfg", "note: compile it first: cim-cc m.keras -o build"),
    ],
)
def test_what_people_give_instead(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, says: str, note: str
) -> None:
    compiled("-S")
    assert cli_emu.main([name, "--input", "x.npy"]) == 1
    found = last_error(capsys)
    assert f"{name}: error: {says}" in found
    assert note in found
    assert cli_emu.main(["build/network.json", "--input", "x.npy"]) == 1
    assert "cim-cc -S and -c make no images: assemble and link" in last_error(capsys)
    assert cli_cc.main(["build", "-o", "again"]) == 1
    assert "build: error: is a folder without a saved_model.pb" in last_error(capsys)


def test_swapped_layers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where their shapes are the same, and only the numbers would be wrong."""
    square = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"], "first"),
        helper.make_node("MatMul", ["h", "b"], ["y"], "second"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 4]) for name in "xy"]
    constants = [numpy_helper.from_array(w, name) for w, name in zip(square, "ab", strict=True)]
    graph = helper.make_graph(nodes, "two", ends[:1], ends[1:], constants)
    onnx.save(helper.make_model(graph), "m.onnx")
    assert cli_cc.main(["m.onnx", "-o", "build", "-q"]) == 0
    text = (folder / "build/network.json").read_text()
    swapped = text.replace("first.cfg", "?").replace("second.cfg", "first.cfg")
    (folder / "build/network.json").write_text(swapped.replace("?", "second.cfg"))
    np.save("x.npy", np.ones((1, 4), np.float32))
    assert cli_emu.main(["build/network.json", "--input", "x.npy"]) == 1
    assert (
        "second.cfg: error: is of layer 'second', network.json has it as layer 'first'"
        in last_error(capsys)
    )


@pytest.mark.parametrize("few", [(), ("--set", "core.count=7", "--fold")])
def test_progress_counts_all_instructions(folder: Path, few: tuple[str, ...]) -> None:
    """Of every image, layer and turn, upwards to the total that it is told before."""
    compiled(*few)
    network = LoadedNetwork("build/network.json")
    inputs = {"image": np.load("x.npy")}
    told: list[int] = []
    done = network.run(inputs, progress=told.append)
    total = network.instructions(inputs)
    executed = sum(
        len(result.prepared.program) for results in done.results.values() for result in results
    )
    assert done.instructions == total == executed
    assert told == sorted(told)
    assert 0 < told[0] < total // 2 < told[-1] <= total


def test_a_network_of_constants_needs_no_input(folder: Path) -> None:
    save([helper.make_node("Relu", ["w"], ["y"])], [], [("y", [2])], {"w": [-1, 2]})
    assert cli_cc.main(["m.onnx", "-o", "build", "-q"]) == 0
    assert cli_emu.main(["build/network.json", "--output", "y.npy", "--quiet"]) == 0
    assert np.load("y.npy").tolist() == [0, 2]


def test_a_bias_without_a_literal(folder: Path) -> None:
    node = helper.make_node("Gemm", ["a", "w", "b"], ["y"], "g")
    save([node], [("a", [1, 2])], [("y", [1, 2])], {"w": np.ones((2, 2)), "b": [np.inf, np.nan]})
    assert cli_cc.main(["m.onnx", "-o", "build", "-q"]) == 0
    np.save("a.npy", np.ones((1, 2), np.float32))
    assert (
        cli_emu.main(["build/network.json", "--input", "a.npy", "--output", "y.npy", "--check"])
        == 0
    )
    assert np.load("y.npy")[0, 0] == np.inf


def test_a_damaged_npy_is_a_diagnostic(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compiled()
    raw = (folder / "x.npy").read_bytes()
    (folder / "bad.npy").write_bytes(
        raw.replace(b"(6, 1, 8, 8)", b"(6, 1, 8, 8 ").replace(b"}", b" ", 1)
    )
    assert cli_emu.main(["build/network.json", "--input", "bad.npy"]) == 1
    assert "is not a .npy file" in last_error(capsys)
