"""Networks whose turns do not belong together, and turns by themselves."""

import json
import shutil

import numpy as np
import pytest

from cim.codegen import cli as cc
from cim.emulator import cli
from cim.emulator.arrays import npy_bytes
from tests.codegen.models import operator, save

F = np.float32


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """A layer in three turns, one like it with other weights, one with another input, and on another machine."""
    made = {}
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(6, 3, 3, 3)).astype(F)
    for name, w, size, count in (
        ("a", weights, 5, 5), ("weights", weights + 1, 5, 5), ("size", weights, 7, 5), ("machine", weights, 5, 7),
    ):  # fmt: skip
        folder = tmp_path_factory.mktemp(name)
        path = save(operator("Conv", (1, 3, size, 4), {"w": w}), folder)
        command = [str(path), "-q", "-o", str(folder / "b"), "--fold", "--set", "core.crossbar=4x4"]
        assert cc.main([*command, "--set", f"core.count={count}"]) == 0
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
        (lambda s: s["later_turns"].reverse(), "n-turn2.cfg: error: is turn 3, must be turn 2"),
        (lambda s: s.update(cfg=s["later_turns"][0]), "n-turn1.cfg: error: is turn 2, must be turn 1"),
    ],
)  # fmt: skip
def test_a_list_that_is_not_all_turns_in_order(build, edit, says, capsys):
    change(build, edit)
    assert run(build) == 1
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ("weights", "has reference Reference("),
        ("size", "has input_shape [1, 3, 7, 4], n-turn0.cfg has [1, 3, 5, 4]"),
        ("machine", "has turn_ends [7, 14], n-turn0.cfg has [5, 10, 14]"),
    ],
)  # fmt: skip
def test_a_turn_of_another_compilation(builds, build, other, says, capsys):
    for name in ("n-turn1.cfg", "n-turn1.bin"):
        shutil.copy(builds[other] / name, build / name)
    assert run(build) == 1
    err = capsys.readouterr().err
    assert "n-turn1.cfg: error: " in err
    assert says in err
    assert "all turns of a layer must come from the same run of cim-cc" in err


def test_a_turn_by_itself(build, capsys):
    """Its time can be looked at, its output is not complete."""
    turn = [str(build / "n-turn1.cfg"), "--input", str(build / "x.npy")]
    assert (
        cli.main([*turn, "--trace", str(build / "t.json"), "--dump", f"ps={build / 'ps.npy'}"]) == 0
    )
    assert np.load(build / "ps.npy").any()
    capsys.readouterr()
    for option in (["--output", str(build / "y.npy")], ["--check"]):
        assert cli.main([*turn, *option]) == 1
        err = capsys.readouterr().err
        assert "n-turn1.cfg: error: is layer 'n (turn 2 of 3)': its output is complete after" in err
        assert "network.json" in err
    assert not (build / "y.npy").exists()
