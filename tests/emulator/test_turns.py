"""Networks whose turns do not belong together, and turns by themselves."""

import json
import shutil

import numpy as np
import pytest
from onnx import helper

import cim
from cim.codegen import cli as cc
from cim.emulator import cli
from cim.emulator.arrays import npy_bytes
from cim.emulator.network import LoadedNetwork
from tests.codegen.models import model, operator, save, value

F = np.float32


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """A layer in three turns, and layers that differ from it in one thing."""
    made = {}
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(6, 3, 3, 3)).astype(F)
    for name, w, size, options in (
        ("a", weights, 5, []),
        ("weights", weights + 1, 5, []),
        ("size", weights, 7, []),
        ("cores", weights, 5, ["--set", "core.count=7"]),
        ("latency", weights, 5, ["--set", "memory.read_latency_cycles=20"]),
        ("width", weights, 5, ["--set", "bus.width_bytes=64"]),
        ("scheme", weights, 5, ["--sync", "ring"]),
    ):
        folder = tmp_path_factory.mktemp(name)
        path = save(operator("Conv", (1, 3, size, 4), {"w": w}), folder)
        command = [str(path), "-q", "-o", str(folder / "b"), "--fold", "--set", "core.crossbar=4x4"]
        assert cc.main([*command, "--set", "core.count=5", *options]) == 0
        made[name] = folder / "b"
    x = rng.normal(size=(1, 3, 5, 4)).astype(F)
    (made["a"] / "x.npy").write_bytes(npy_bytes(x))
    return made


@pytest.fixture
def build(builds, tmp_path):
    return shutil.copytree(builds["a"], tmp_path / "b")


def run(build, *options):
    return cli.main([str(build / "network.json"), "--input", str(build / "x.npy"), *options])


def change(build, edit):
    network = json.loads((build / "network.json").read_text())
    edit(network["steps"][0])
    (build / "network.json").write_text(json.dumps(network))


def test_statistics_name_the_turns(build, capsys):
    assert run(build, "--check", "--stats", str(build / "s.json")) == 0
    out = capsys.readouterr().out
    layers = json.loads((build / "s.json").read_text())["layers"]
    assert list(layers) == [f"n (turn {turn} of 3)" for turn in (1, 2, 3)]
    assert all(name in out for name in layers)


@pytest.mark.parametrize(
    ("edit", "says"),
    [
        (lambda s: s["later_turns"].pop(), "layer 'n' has 3 turns, the network names 2 turns"),
        (lambda s: s.pop("later_turns"), "layer 'n' has 3 turns, the network names 1 turn\n"),
        (lambda s: s["later_turns"].append(s["cfg"]), "has 3 turns, the network names 4 turns"),
        (lambda s: s["later_turns"].reverse(), "n-turn3.cfg: error: is turn 3, must be turn 2"),
        (lambda s: s.update(cfg=s["later_turns"][0]), "n-turn2.cfg: error: is turn 2, must be turn 1"),
    ],
)  # fmt: skip
def test_a_list_that_is_not_all_turns_in_order(build, edit, says, capsys):
    change(build, edit)
    assert run(build) == 1
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ("weights", "has reference n.ref.onnx with SHA-256 "),
        ("size", "has input_shape [1, 3, 7, 4], n-turn1.cfg has [1, 3, 5, 4]"),
        ("cores", "has core.count 7, n-turn1.cfg has 5\n"),
        ("latency", "has memory.read_latency_cycles 20, n-turn1.cfg has 10\n"),
        ("width", "has bus.width_bytes 64, n-turn1.cfg has 32\n"),
        ("scheme", "has scheme ring, n-turn1.cfg has linear\n"),
    ],
)  # fmt: skip
def test_a_turn_of_another_compilation(builds, build, other, says, capsys):
    for name in ("n-turn2.cfg", "n-turn2.bin"):
        shutil.copy(builds[other] / name, build / name)
    assert run(build) == 1
    err = capsys.readouterr().err
    assert "n-turn2.cfg: error: " in err
    assert says in err
    assert "all turns of a layer must come from the same run of cim-cc" in err


@pytest.mark.parametrize(
    ("number", "edit", "says"),
    [
        (0, {"turn_ends": [4, 10, 14]}, "its cores are not cores 0 to 3 of the whole layer, which turn 1 has"),
        (1, {"turn_ends": [5, 9, 14]}, "its cores are not cores 5 to 8 of the whole layer, which turn 2 has"),
        (1, {"turn": 2}, "its cores are not cores 10 to 13 of the whole layer, which turn 3 has"),
        (2, {"turn": 3}, "layer.turn is 3 of 3 turns"),
        (0, {"turn_ends": [5, 5, 14]}, "turns that end before cores [5, 5, 14] are not those of 7 x 2 cores"),
        (0, {"turn_ends": [5, 10, 15]}, "turns that end before cores [5, 10, 15] are not those of 7 x 2 cores"),
        (0, {"turn_ends": [5, 10]}, "turns that end before cores [5, 10] are not those of 7 x 2 cores"),
    ],
)  # fmt: skip
def test_a_turn_with_other_cores_than_it_says(build, number, edit, says, capsys):
    """By itself, too: the description and the image's own cores must agree."""
    path = build / f"n-turn{number + 1}.cfg"
    config = json.loads(path.read_text())
    config["layer"].update(edit)
    path.write_text(json.dumps(config))
    for command in (str(path), str(build / "network.json")):
        assert cli.main([command, "--input", str(build / "x.npy")]) == 1
        assert f"{path.name}: error: is not a valid cfg: {says}" in capsys.readouterr().err


def test_the_memory_of_a_run_is_not_kept(build):
    """Not even as the base of an empty part of it: there may be thousands of turns and images."""
    network = LoadedNetwork(build / "network.json")
    x = np.load(build / "x.npy")
    done = network.run({"x": np.concatenate([x, x])})
    results = [result for results in done.results.values() for result in results]
    assert len(results) == 6
    assert all(result.memory.size == 0 and result.memory.base is None for result in results)


def test_a_layer_that_is_called_like_a_turn_of_another(tmp_path):
    """Every layer and turn has figures of its own."""
    rng = np.random.default_rng(0)
    names = ["n", "n (turn 1 of 3)", "n (turn 2 of 3)"]
    nodes = [
        helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"x{i + 1}"], name)
        for i, name in enumerate(names)
    ]
    sizes = [6, 8, 3, 4]
    constants = {f"w{i}": rng.normal(size=(sizes[i], sizes[i + 1])).astype(F) for i in range(3)}
    made = model(nodes, [value("x0", F, (2, 6))], [value("x3", F, (2, 4))], constants)
    settings = ["core.crossbar=4x4", "core.count=2", "core.mvm_cycles=10"]
    program = cim.compile(made, settings=settings, fold=True)
    stats = program.run(rng.normal(size=(2, 6)).astype(F), check=True).stats
    whole = cim.compile(made, settings=settings[::2]).run(rng.normal(size=(2, 6)).astype(F)).stats
    assert sum(one.cores for one in stats.layers.values()) == sum(
        one.cores for one in whole.layers.values()
    )
    assert all(len(one.cycles_per_image) == 1 for one in stats.layers.values())


def test_two_layers_of_one_name(build, capsys):
    """Their figures would be added."""
    network = json.loads((build / "network.json").read_text())
    network["steps"] *= 2
    (build / "network.json").write_text(json.dumps(network))
    assert run(build) == 1
    assert (
        "network.json: error: is not a valid network: it has two layers 'n'"
        in capsys.readouterr().err
    )


def test_a_turn_by_itself(build, capsys):
    """Its time can be looked at, its output is not complete."""
    turn = [str(build / "n-turn2.cfg"), "--input", str(build / "x.npy")]
    assert (
        cli.main([*turn, "--trace", str(build / "t.json"), "--dump", f"ps={build / 'ps.npy'}"]) == 0
    )
    assert np.load(build / "ps.npy").any()
    capsys.readouterr()
    for option in (["--output", str(build / "y.npy")], ["--check"]):
        assert cli.main([*turn, *option]) == 1
        err = capsys.readouterr().err
        assert "n-turn2.cfg: error: is layer 'n (turn 2 of 3)': its output is complete after" in err
        assert "network.json" in err
    assert not (build / "y.npy").exists()
